/* A kind of model: what its layers compute, and which arrays they need.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"
#include "nn/rows.h"

/** A kind of model. Each kind is one file, and one word of GR_KIND_MAP (model/options.h). */
struct gr_model_kind {
    const char                      *name;   /* value of option "model" */
    const struct gr_parameter_shape *shapes; /* weights of a layer, in the order of the state; the last has no name */
    const struct gr_array_shape     *arrays; /* arrays a->own[i] of a layer; the last has no name; NULL: none */
    enum gr_normalization            normalization;
    int                              gathers; /* layers gather from neighbours; 0: edges are not used */
    int attends;       /* layers compute edge weights, so a vertex needs the rows of its neighbours, not their sum */
    int self_loops;    /* option self_loops=auto adds them */
    int propagates;    /* option propagation adds layers without weights; only they gather from neighbours */
    int teleports;     /* each layer without weights also reads the output of the last layer with weights */
    int own_rows;      /* products have the rows of the destinations as an operand, besides the rows of all sources */
    int wide_gradient; /* the gradient of a layer's output needs space for as many rows as the layer's input has */
    int gathers_late;  /* layers that compute A (H W) gather in GR_STEP_Z; 0: all layers gather in GR_STEP_BEGIN */

    /** Set the non-zero elements of a->own_count, the sizes of the arrays of the kind, and with
     *  gr_model_layer_count_gathered() that of `gathered`. NULL: there are no such arrays. */
    void (*count)(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity);
    /** Do GR_STEP_BEGIN: compute from x the arrays that the backward pass needs besides x and Z. NULL: there are
     *  none. */
    int32_t (*begin)(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error);
    /** Do GR_STEP_Z: compute a->z from x and the results of begin(), and then do the pass over rows `rows`. */
    int32_t (*forward)(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error);
    /** Compute from g, the gradient of Z, the gradients of the weights and, unless dx is NULL, dx, the gradient of x.
     *  May overwrite g. */
    int32_t (*backward)(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                        graft_error *error);
};

#define GR_KIND_ROW(constant, word) extern const struct gr_model_kind gr_kind_##word;
GR_KIND_MAP(GR_KIND_ROW)
#undef GR_KIND_ROW

/** The parameters of mlp, and of other kinds whose layers with weights are those of mlp. */
extern const struct gr_parameter_shape gr_own_shapes[];

/** The struct of a kind of model, by the value of option "model". */
const struct gr_model_kind *gr_model_kind(enum gr_kind kind);

/** Whether layer l reads the output of layer k. */
static inline int gr_model_config_reads(const struct gr_config *config, int32_t l, int32_t k)
{
    if (k == l - 1 || (k < l && gr_model_config_jumps(config, l))) return 1;
    return config->kind->teleports && k == config->n_weighted - 1 && l > k;
}
