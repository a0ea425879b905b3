/* Sums and extrema of ranks that share columns (grid.h): rows are transposed to slices of columns, slices are summed,
 * and the result is transposed back. With parallel=feature all ranks share the columns; with parallel=grid groups of
 * ranks do.
 *
 * columns.c        the strategies, and their steps     grid.c, linked.c  the vertices of a group
 * columns_graph.c  their graph and memory              transpose.c       rows to slices of columns, and back
 * edges.c          the edges of one group, in blocks   stream.c          sums block by block
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "parallel/ranks.h"
#include "parallel/stream.h"
#include "parallel/transpose.h"

/** The data of a rank that shares columns with others. */
struct gr_columns {
    struct gr_grid      grid;
    struct gr_transpose transpose;
    struct gr_blocks    blocks;
    int32_t            *winner[GR_LAYERS_MAX]; /* winners of extrema in a step, see gr_block_sum; or NULL */
};

/** Return the rows that a sum of a layer reads forward (`sources`), or the rows that it computes, as a prefix of the
 *  grid. */
static inline int32_t gr_parallel_columns_prefix(const struct gr_ranks *r, const graft_plan *plan, int32_t layer,
                                                 int sources)
{
    return plan == r->plans.whole ? r->columns->grid.n_levels : r->n_layers - layer + (sources ? 1 : 0);
}

/** Whether sums of slices of columns add rows of other groups, over a graph of the rows of the group. */
static inline int gr_parallel_columns_have_remote(const struct gr_ranks *r)
{
    return r->columns->grid.n_groups > 1 && gr_parallel_config(r)->extremum == 0;
}

/** Return the number of columns of a sum that this rank computes. */
static inline int64_t gr_parallel_columns_slice(const struct gr_ranks *r, int64_t width)
{
    return gr_parallel_grid_own_width(&r->columns->grid, width);
}

/* -- columns_graph.c: functions of struct gr_strategy_ops ---------------------------------------------------------- */

int32_t gr_parallel_columns_graph(struct gr_strategy *strategy, const struct gr_strategy_graph *graph,
                                  graft_error *error);
double  gr_parallel_columns_need(const struct gr_strategy *strategy, int streams);
int32_t gr_parallel_columns_hold(struct gr_strategy *strategy, int streams, graft_error *error);
int32_t gr_parallel_columns_reserve(struct gr_strategy *strategy, graft_error *error);
int32_t gr_parallel_columns_values_begin(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                                         graft_error *error);
void    gr_parallel_columns_values_end(struct gr_strategy *strategy, void *values, int takes);
void    gr_parallel_columns_destroy(struct gr_strategy *strategy);
