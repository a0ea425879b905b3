/* Counts of sent rows. Not collective.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "parallel/ranks.h"

void gr_parallel_traffic_begin(struct gr_ranks *r);
/** Count the rows that the current layer has sent in one direction, if it is part of a step.
 *  \param[in] flow  [n_ranks] rows of this exchange, forward. */
void gr_parallel_traffic_count(struct gr_ranks *r, const struct gr_run *run, const struct gr_exchange *pass,
                               const struct gr_flow *flow, enum gr_direction direction);
/** [n_ranks] rows of an exchange for all vertices, forward; NULL: no exchange. */
const struct gr_flow     *gr_parallel_traffic_whole(const struct gr_ranks *r);
/** Of one rank, or with -1 of all ranks: rows of one exchange, and of an exchange of layer l in a step; and the flow of
 *  a layer in adaptive bits. NULL: no flow. */
struct gr_flow            gr_parallel_traffic_flow(const struct gr_ranks *r, const struct gr_flow *flow, int32_t rank);
struct gr_flow            gr_parallel_traffic_step(const struct gr_ranks *r, int32_t layer, int32_t rank);
struct gr_row_bits_flow   gr_parallel_traffic_adapted(const struct gr_ranks *r, const struct gr_halo_layer *layer,
                                                      int32_t rank);
/** The messages of sums, or of rows of the halo; and bytes of one of their rows, of `width` columns. */
const struct gr_messages *gr_parallel_traffic_messages(const struct gr_ranks *r);
int64_t gr_parallel_traffic_row_bytes(const struct gr_ranks *r, enum gr_direction direction, int64_t width);
/** Bytes of the rows of labels that a rank, or with -1 all ranks, receive in a step. */
int64_t gr_parallel_traffic_label_bytes(const struct gr_ranks *r, int32_t rank);

/** As in struct gr_strategy_ops; there are n_layers * GR_DIRECTIONS items. */
int32_t gr_parallel_traffic_of(const struct gr_strategy *strategy, int32_t rank, graft_traffic *traffic,
                               graft_error *error);
int32_t gr_parallel_traffic_item(const struct gr_strategy *strategy, int32_t rank, int32_t index,
                                 graft_traffic_item *item, graft_error *error);
int32_t gr_parallel_traffic_pair(const struct gr_strategy *strategy, int32_t peer, int32_t index,
                                 graft_traffic_pair *pair, graft_error *error);
