/* Sums and maxima where ranks share columns: a transpose to slices of columns, the sum of these, and a transpose back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_COLUMNS_H
#define GR_PARALLEL_COLUMNS_H

#include "parallel/partition.h"

/** Begin a sum. *slice is that of the columns that this rank has of its group, which is the caller's unless the graph
 *  is in blocks. A slice without columns needs no sum, and the ranks that have the same slice in other groups know
 *  that. \return OK; ERR_PEER. */
int32_t gr_columns_begin(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, struct gr_sum *slice,
                         graft_error *error);
/** The slice has been summed, or is summed here block by block. \return OK; ERR_PEER. */
int32_t gr_columns_end(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error);
/** Maxima, or their gradients: see gr_strategy_ops. */
int32_t gr_columns_largest(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error);

/** Edges and rows of the result of a sum; and of one over blocks. */
struct gr_amount {
    double edges, rows;
};
struct gr_amount gr_columns_amount(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);

/** Whether rows of a sum travel in full precision; what is cached is computed once. */
int32_t gr_partition_is_exact(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);
/** Whether a sum is no step of its layer, which leaves alone what the layer keeps. */
int     gr_partition_is_stateless(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum);
/** The parts of a phase up to the sending of rows. */
void    gr_partition_sent_parts(struct gr_run *run, const struct gr_exchange *pass, double begin);

#endif
