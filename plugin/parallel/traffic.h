/* Counts of sent rows and bytes. No function is collective.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "parallel/ranks.h"

void gr_parallel_traffic_begin(struct gr_ranks *r);
/** Count the rows that the current layer has sent in one direction, if it is part of a step.
 *  \param[in] flow  [n_ranks] rows of this exchange, forward. */
void gr_parallel_traffic_count(struct gr_ranks *r, const struct gr_run *run, const struct gr_exchange *pass,
                               const struct gr_flow *flow, enum gr_direction direction);
/** Return the rows of an exchange for all vertices, forward, [n_ranks]; NULL: there is no exchange. */
const struct gr_flow     *gr_parallel_traffic_whole(const struct gr_ranks *r);
/** Return the sums for one rank, or with -1 for all ranks: flow(): of the rows of one exchange; step(): of an exchange
 *  of layer l in a step; adapted(): of a layer's rows with adaptive widths. NULL: zeros. */
struct gr_flow            gr_parallel_traffic_flow(const struct gr_ranks *r, const struct gr_flow *flow, int32_t rank);
struct gr_flow            gr_parallel_traffic_step(const struct gr_ranks *r, int32_t layer, int32_t rank);
struct gr_row_bits_flow   gr_parallel_traffic_adapted(const struct gr_ranks *r, const struct gr_halo_layer *layer,
                                                      int32_t rank);
/** Return the messages of sums, or of rows of the halo; and the bytes of one of their rows of `width` columns. */
const struct gr_messages *gr_parallel_traffic_messages(const struct gr_ranks *r);
int64_t gr_parallel_traffic_row_bytes(const struct gr_ranks *r, enum gr_direction direction, int64_t width);
/** Return the bytes of the rows of labels that a rank, or with -1 all ranks, receive in a step. */
int64_t gr_parallel_traffic_label_bytes(const struct gr_ranks *r, int32_t rank);

/** Functions gr_strategy_ops.report. There are n_layers * GR_DIRECTIONS items. */
int32_t gr_parallel_traffic_of(const struct gr_strategy *strategy, int32_t rank, graft_traffic *traffic,
                               graft_error *error);
int32_t gr_parallel_traffic_item(const struct gr_strategy *strategy, int32_t rank, int32_t index,
                                 graft_traffic_item *item, graft_error *error);
int32_t gr_parallel_traffic_pair(const struct gr_strategy *strategy, int32_t peer, int32_t index,
                                 graft_traffic_pair *pair, graft_error *error);
