/* Labels as input of the first layer: label propagation.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"

/** Whether vertex v is in the loss of the step: it is a training vertex with a target, and its label is not input. */
static inline int gr_is_in_loss(const struct gr_run *run, int64_t v)
{
    return gr_is_trained(&run->targets, v) && (run->labels.taken == NULL || !run->labels.taken[v]);
}

/** Check that the data set has the labels that option label_rate needs. \return OK; ERR_OPTION. */
int32_t gr_model_labels_check(const struct gr_run *run, graft_error *error);
/** Add to `bytes` what gr_model_labels_init() will allocate, and allocate it; the sizes of the arrays of layers must be
 *  known. */
void    gr_model_labels_plan(const struct gr_run *run, const struct gr_capacity *capacity, double bytes[GR_USES]);
int32_t gr_model_labels_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                             graft_error *error);
/** Choose the labels that are input of a pass: in a step the labels drawn for the epoch, in evaluation all.
 *  Collective. */
int32_t gr_model_labels_begin(struct gr_run *run, int training, graft_error *error);
/** x[rows x classes] = the chosen labels, 1 where a vertex has the class, else 0. */
void    gr_model_labels_fill(struct gr_run *run, int64_t rows, float *x);
/** out[x.rows x w->cols] = L E w + beta out, with the labels L of x, their embedding E, and beta 0 or 1. */
int32_t gr_model_labels_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                                float *out, graft_error *error);
/** Add to the gradients of w and of the embedding what follows from g, the gradient of gr_model_labels_product(). */
int32_t gr_model_labels_gradient(struct gr_run *run, struct gr_operand x, const float *g, struct gr_parameter *w,
                                 graft_error *error);
