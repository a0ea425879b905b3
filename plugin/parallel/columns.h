/* Sums and extrema where ranks share columns: a transpose to slices of columns, the sums of the slices, and a transpose
 * back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_COLUMNS_H
#define GR_PARALLEL_COLUMNS_H

#include "parallel/partition.h"

/** Begin a sum: its rows are turned to slices of columns, and boundary rows of the slices are sent to other groups. A
 *  slice without columns needs no sum, also on the ranks with the same slice in other groups.
 *  \return OK; ERR_PEER. */
int32_t gr_columns_begin(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error);
/** The slice is summed block by block, and turned back. \return OK; ERR_PEER. */
int32_t gr_columns_end(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error);
/** Extrema, or their gradients: see gr_strategy_ops. */
int32_t gr_columns_extrema(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error);

/** Edges, and rows of the result, of a sum. */
struct gr_amount {
    double edges, rows;
};
struct gr_amount gr_columns_amount(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);

/** Begin a sum over the graph of this rank or, with shared columns, over the edges from other groups. \return OK;
 *  ERR_PEER. */
int32_t gr_partition_begin_sum(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum,
                               graft_error *error);
/** Whether rows of a sum travel in full precision; cached sums are computed once. */
int32_t gr_partition_is_exact(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);
/** Whether a sum is not a step of its layer, and so does not use the stored rows of the layer. */
int     gr_partition_is_stateless(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);
/** The parts of a phase up to the sending of rows. */
void    gr_partition_sent_parts(struct gr_run *run, const struct gr_exchange *pass, double begin);
/** The parts of a phase after the sending of rows: work without other ranks from `local` (0: the sending) to
 *  `computed`, waiting, and the rest to `end` (0: of the phase). */
void    gr_partition_received_parts(struct gr_run *run, const struct gr_exchange *pass, double local, double computed,
                                    double end);

#endif
