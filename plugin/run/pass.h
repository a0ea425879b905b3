/* Passes of a model over blocks: all layers forward and backward, and their arrays.
 *
 * layers.c      all layers in their order        layer_arrays.c  their arrays
 * layer_input.c  dropout of features             batch_norm.c    statistics over all vertices
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"
#include "nn/rows.h"

/** Count the elements of all arrays for blocks of this capacity, and plan their bytes in the budget. */
void    gr_run_plan(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity);
/** Allocate the planned arrays. */
int32_t gr_run_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                    graft_error *error);
/** Set the pointers to arrays to NULL, after their budget was freed. */
void    gr_run_clear(struct gr_run *run);

/** Run all layers over blocks[n_layers], blocks[0] for the first layer. GRAFT_PASS_FORWARD is the pass of a training
 *  step, with dropout; GRAFT_PASS_EVALUATION has no dropout. The logits are then z of the last layer. */
int32_t      gr_run_forward(struct gr_run *run, int32_t pass, const struct gr_block *const *blocks, graft_error *error);
/** Run only layer l of an evaluation over this block. The caller has set the outputs of layers below that this layer
 *  reads, or the features of the block in run->input. */
int32_t      gr_run_layer(struct gr_run *run, int32_t l, const struct gr_block *block, graft_error *error);
/** Run a step up to the gradients: forward, loss and backward. \param[out] loss The contribution of this rank. */
int32_t      gr_run_step(struct gr_run *run, const struct gr_block *const *blocks, double *loss, graft_error *error);
const float *gr_run_logits(const struct gr_run *run);

/** Apply dropout to the features that blocks[0] reads, for this step. */
void              gr_run_drop_input(struct gr_run *run, const struct gr_block *block);
/** The input of layer l, as an operand of its products. */
struct gr_operand gr_run_input(const struct gr_run *run, int32_t l);
/** Copy the values of x, sparse features, to their transpose. */
void              gr_run_fill_sparse_transpose(const struct gr_run *run, const struct gr_sparse_part *part);

/** Whether BatchNorm follows this layer. */
static inline int gr_has_batch_norm(const struct gr_run *run, const struct gr_layer *layer)
{
    return layer->hidden && gr_run_config(run)->hidden.norm == GR_NORM_BATCH;
}

/** Compute mean and deviation of the columns of Z over all its rows on all ranks, and then the operations on rows that
 *  need them. Collective. */
int32_t gr_run_batch_norm_forward(struct gr_run *run, const struct gr_activations *a, struct gr_rows *rows,
                                  graft_error *error);
/** Use the running mean and variance instead, for evaluations. */
void    gr_run_batch_norm_take_running(const struct gr_activations *a);
/** Turn the gradient of norm(Z), left by gr_nn_rows_backward_end(), into the gradient of Z. Collective. */
int32_t gr_run_batch_norm_backward(struct gr_run *run, struct gr_rows_backward *pass, graft_error *error);
