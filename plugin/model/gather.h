/* Sums and extrema over neighbours, and their gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"

/** Compute a sum over neighbours with aggregate_begin() and aggregate_end() of the strategy. With option
 *  model.type=bf16 the rows are rounded first. */
int32_t       gr_model_aggregate(struct gr_run *run, const struct gr_sum *wanted, graft_error *error);
/** Compute a sum with the scales of the block: sum.out = diag(left) A diag(right) x + own x. With a right scale, the
 *  scratch memory is overwritten; x may be in it. */
int32_t       gr_model_aggregate_scaled(struct gr_run *run, double own, struct gr_sum sum, graft_error *error);
/** Fill in the arguments of a sum over the block of a layer, for rows without gaps. */
struct gr_sum gr_model_sum_of(const struct gr_activations *a, enum gr_direction direction, const float *scale,
                              const float *x, int64_t width, int add, float *out);

/** Decide whether the layer computes (A H) W rather than A (H W), and if so set the size of a->gathered. */
void              gr_model_layer_count_gathered(const struct gr_run *run, struct gr_activations *a,
                                                const struct gr_capacity *capacity);
/** a->gathered = diag(left) A diag(right) x + own x, unless it is already computed: features that do not change in
 *  training are aggregated once. In the same way labels of x are summed into run->labels.gathered, once in a pass. */
int32_t           gr_model_layer_gather(struct gr_run *run, struct gr_activations *a, struct gr_operand x, double own,
                                        graft_error *error);
/** The aggregated input, a->gathered with its labels, as an operand. */
struct gr_operand gr_model_layer_gathered(const struct gr_run *run, const struct gr_activations *a);

/** a->gathered = extrema of x over neighbours, 0 where there are none. `winner` receives their sources, unless NULL. */
int32_t gr_model_layer_gather_extrema(struct gr_run *run, struct gr_activations *a, struct gr_operand x, void *winner,
                                      graft_error *error);
/** Compute dx[n_src x in]: each element of the scratch memory, [n_dst x in], is added to the source of its extremum. */
int32_t gr_model_layer_scatter_extrema(struct gr_run *run, const struct gr_activations *a, const void *winner,
                                       float *dx, graft_error *error);

/** The neighbours with the extrema: [n_dst x width] indices of rows; -1: none. */
struct gr_winners {
    const void *winner;
    graft_dtype type; /* type of the indices */
    int64_t     n_dst, n_src, n_seen, width;
    int         adds; /* dx and halo are added to, else overwritten */
};

/** Add each element of g[n_dst x width] to the element that is its extremum: in dx[n_src x width], or for rows n_src to
 *  n_seen - 1 in `halo`, which has them at the same row indices. */
void gr_model_scatter_extrema(struct gr_run *run, const struct gr_winners *from, const float *g, float *dx,
                              float *halo);
