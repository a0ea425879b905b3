/* The strategies, and the choice of one.
 *
 * serial     all vertices are in one process
 * partition  each rank owns some of the vertices, and has all columns of their rows
 * feature    as partition, but in sums all ranks share the columns of all rows (MixGCN)
 * grid       as feature, but in groups of ranks
 * batches.h  strategies of batches, which read rows of earlier batches
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/strategy.h"

extern const struct gr_strategy_ops gr_serial_ops, gr_partition_ops, gr_feature_ops, gr_grid_ops;

/** A row of the table of strategies. The first one that suits is used. */
struct gr_strategy_row {
    const struct gr_strategy_ops *ops;
    int (*suits)(const struct gr_strategy_wish *wish);
};

/** Create the strategy of a run. All ranks choose the same, because their options are equal. Collective over ranks.
 *  \return OK; ERR_NOMEM; ERR_OPTION: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_choose(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error);

/** The memory that ranks need: most[variant][recompute] is the maximum over ranks in bytes, with option recompute as it
 *  is set (0), or yes (1). */
struct gr_rank_bytes {
    double most[2][2];
    int    fits[2]; /* whether each variant fits the limit, with recompute as it is set */
};

/** Report that memory.limit is too small, in a sentence that says what would fit, the same on all ranks. Collective.
 *  \return ERR_NOMEM; ERR_PEER. */
int32_t gr_parallel_refuse_limit(const struct gr_strategy *strategy, const struct gr_rank_bytes *bytes, int variant,
                                 graft_error *error);
