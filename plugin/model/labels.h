/* Labels as input of the first layer: label propagation.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_LABELS_H
#define GR_MODEL_LABELS_H

#include "model/model.h"

/** Whether it is in the loss of the step: it is trained, and its label is no input. */
static inline int gr_is_in_loss(const graft_trainer *trainer, int64_t v)
{
    return gr_is_trained(trainer, v) && (trainer->labels.taken == NULL || !trainer->labels.taken[v]);
}

/** Whether labels can be input, if they are to be. */
int32_t gr_labels_check(const graft_trainer *trainer, graft_error *error);
int32_t gr_labels_init(graft_trainer *trainer, graft_error *error);
/** Bytes of what it makes, but for `taken`. */
double  gr_labels_bytes(const graft_trainer *trainer);
/** Choose the labels that are input of a pass: of a step, those drawn for the epoch, in evaluation all. Over ranks
 *  collective. */
int32_t gr_labels_begin(graft_trainer *trainer, int training, graft_error *error);
/** x[rows x classes] = those labels, 1 where a vertex has the class, else 0. */
void    gr_labels_fill(const graft_trainer *trainer, int64_t rows, float *x);
/** out[x.rows x w->cols] = L E w + beta out, for the labels L of x, the embedding E, and beta 0 or 1. */
int32_t gr_labels_product(const graft_trainer *trainer, struct gr_operand x, const struct gr_parameter *w, float beta,
                          float *out, graft_error *error);
/** From g, the gradient of that, add to the gradients of w and of the embedding. */
int32_t gr_labels_gradient(const graft_trainer *trainer, struct gr_operand x, const float *g, struct gr_parameter *w,
                           graft_error *error);

#endif
