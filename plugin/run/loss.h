/* Losses and metrics of classes, and of float targets (regression.c).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"

/** Check that options of the softmax loss suit the targets, and allocate the class weights, which are set later.
 *  \return OK; ERR_OPTION; ERR_NOMEM. */
int32_t gr_run_loss_init(struct gr_run *run, struct gr_budget *budget, graft_error *error);
/** The bytes that gr_run_loss_init() allocates. */
double  gr_run_loss_bytes(const struct gr_run *run);
/** Compute n_train, loss_weight and class_weight over all ranks. Collective. */
int32_t gr_run_targets_count(struct gr_targets *targets, struct gr_strategy *strategy, graft_error *error);
/** Compute the mean loss over the vertices in the loss and, in `gradient`, its gradient with respect to the logits;
 *  logits and gradient are [rows x classes]. Over ranks, return the contribution of this rank to the mean. */
double  gr_run_loss_gradient(const struct gr_run *run, int64_t rows, const float *logits, float *gradient);
/** Compute loss and accuracy, or RMSE and R^2, of each split over all targets. Metrics that do not exist become NaN. */
int32_t gr_run_loss_measure(struct gr_run *run, const float *logits, graft_metrics *metrics, int *is_finite,
                            graft_error *error);
void    gr_run_metrics_clear(graft_metrics *metrics);
/** Return the sum of the losses of the known targets of vertex v. `gradient`, if not NULL, becomes `factor` times its
 *  gradient with respect to x. */
double  gr_run_regression_loss(const struct gr_run *run, const float *x, int64_t v, float factor, float *gradient);
int32_t gr_run_regression_measure(struct gr_run *run, const float *outputs, graft_metrics *metrics, int *is_finite,
                                  graft_error *error);
/** The number of sums that gr_run_regression_measure() computes for each split, in each chunk of rows and in total. */
int64_t gr_run_regression_sums(int64_t columns);
