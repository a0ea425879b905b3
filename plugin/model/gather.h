/* Sums and extrema over neighbours: what a layer gathers, and where the gradients go.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"

/** A sum over neighbours: begin and end of the strategy. With option model.type=bf16 it reads rounded rows. */
int32_t       gr_model_aggregate(struct gr_run *run, const struct gr_sum *wanted, graft_error *error);
/** The same with the scales of the block: sum->out = diag(left) A diag(right) x + own x. With a right scale, the
 *  scratch memory is overwritten; x may be in it. */
int32_t       gr_model_aggregate_scaled(struct gr_run *run, double own, struct gr_sum sum, graft_error *error);
/** The arguments of a sum over the block of a layer, of rows without gaps. */
struct gr_sum gr_model_sum_of(const struct gr_activations *a, enum gr_direction direction, const float *scale,
                              const float *x, int64_t width, int add, float *out);

/** Decide whether the layer computes (A H) W rather than A (H W), and if so count a->gathered. */
void              gr_model_layer_count_gathered(const struct gr_run *run, struct gr_activations *a,
                                                const struct gr_capacity *capacity);
/** a->gathered = diag(left) A diag(right) x + own x, unless it is already computed: features that do not change in
 *  training are aggregated once. Labels of x are summed into run->labels.gathered likewise, once in a pass. */
int32_t           gr_model_layer_gather(struct gr_run *run, struct gr_activations *a, struct gr_operand x, double own,
                                        graft_error *error);
/** The aggregated input as an operand. */
struct gr_operand gr_model_layer_gathered(const struct gr_run *run, const struct gr_activations *a);

/** a->gathered = extrema over neighbours instead of the sum, 0 if there are none; `winner` may be NULL. */
int32_t gr_model_layer_gather_extrema(struct gr_run *run, struct gr_activations *a, struct gr_operand x, void *winner,
                                      graft_error *error);
/** dx[n_src x in] = the scratch memory [n_dst x in], each element added to the source of its extremum. */
int32_t gr_model_layer_scatter_extrema(struct gr_run *run, const struct gr_activations *a, const void *winner,
                                       float *dx, graft_error *error);

/** The neighbours with the extrema: [n_dst x width] numbers of rows, or -1. */
struct gr_winners {
    const void *winner;
    graft_dtype type; /* of the numbers */
    int64_t     n_dst, n_src, n_seen, width;
    int         adds; /* to the present dx and halo */
};

/** dx[n_src x width] = the sum of the elements of g[n_dst x width] whose extremum is in this element; rows n_src to
 *  n_seen - 1 likewise, in `halo` at the same rows. */
void gr_model_scatter_extrema(struct gr_run *run, const struct gr_winners *from, const float *g, float *dx,
                              float *halo);
