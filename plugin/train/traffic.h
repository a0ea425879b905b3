/* What a trainer over ranks sends, counted; part of model.h. Nothing in here is collective.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_TRAIN_TRAFFIC_H
#define GR_TRAIN_TRAFFIC_H

struct gr_text;

/** A step begins. */
void gr_traffic_begin(const graft_trainer *trainer);

/** A pass of the layer in work has sent its rows, which counts for the step if it is one.
 * \param[in] flow  [n_ranks] rows of such a pass forward. \param[in] direction  GRAFT_PASS_FORWARD or BACKWARD. */
void gr_traffic_count(const graft_trainer *trainer, const struct gr_exchange *pass, const struct gr_flow *flow,
                      int32_t direction);

/** [n_ranks] rows of an exchange for all vertices, forward; NULL: mlp has none. */
const struct gr_flow *gr_traffic_whole(const graft_trainer *trainer);

/** Of one rank, or with -1 of all: rows of one exchange, and what a layer exchanges in adaptive widths. NULL:
 *  nothing. */
struct gr_flow          gr_traffic_flow(const graft_trainer *trainer, const struct gr_flow *flow, int32_t rank);
struct gr_row_bits_flow gr_traffic_adapted(const graft_trainer *trainer, const struct gr_halo_layer *layer,
                                           int32_t rank);

/** Bytes of rows that come to a rank, or to all, in a step where labels are input and summed for the first layer. */
int64_t gr_traffic_label_bytes(const graft_trainer *trainer, int32_t rank);

/** Tables of what a step makes each rank receive, layer by layer; and of what the last one did, and lost. */
void gr_traffic_explain(const graft_trainer *trainer, struct gr_text *text);

#endif
