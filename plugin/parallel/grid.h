/* The ranks as a grid: groups of `columns` successive ranks. The vertices of a group are the vertices of its ranks. For
 * sums over neighbours each rank of a group has all vertices of the group, but only a slice of their columns; otherwise
 * it has all columns of the vertices that it owns. One column is partition parallelism; one group is the feature
 * parallelism of MixGCN (section 3.1.2, Algorithm 2). Between groups, ranks of equal column exchange boundary rows.
 *
 * A group has only the linked rows of its ranks, those with neighbours (linked.h); here, "row" means a linked row.
 *
 * grid.c   vertices of a group     edges.c   edges of a group     transpose.c   rows to slices of columns, and back
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "parallel/linked.h"

/** A rank orders its vertices by levels: first the vertices that the last layer of a step needs, then the vertices that
 *  the layer before it needs, and so on. A group has all vertices of a level, rank by rank, before the next level, so
 *  the rows that a layer needs are first in the group too. A prefix means the first levels, and is given by their
 *  number; n_levels: all vertices. */
struct gr_grid {
    int32_t               columns, n_groups;
    int32_t               first, column; /* first rank of this group, and index of this rank in it */
    int32_t               n_levels;
    struct gr_pool        pool;  /* owner of reach, place and owned */
    int64_t              *reach; /* [n_ranks x (n_levels + 1)] number of rows in the first levels of each rank */
    int64_t              *place; /* [n_ranks x n_levels] row of the group at which a level of a rank begins */
    int64_t              *owned; /* [n_levels + 1] as reach, for this rank, including rows without neighbours */
    struct gr_linked_rows linked;
    struct gr_made_part   made; /* edges from other groups; owners: the ranks of the same column */
};

/** Find the rows of all ranks that have neighbours (linked.h). Collective. Always call gr_parallel_grid_fini().
 *  \param[in] part   All rows of this rank.
 *  \param[in] reach  [n_levels + 1] rows of this rank in the first levels: from 0 to all its rows.
 *  \return OK; ERR_NOMEM, ERR_UNSUPPORTED (a group has more than INT32_MAX vertices): the same on all ranks;
 *  ERR_PEER. */
int32_t gr_parallel_grid_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_part *part,
                              int32_t columns, int32_t n_levels, const int64_t *reach, struct gr_grid *grid,
                              graft_error *error);
void    gr_parallel_grid_fini(const graft_context *context, struct gr_grid *grid);
/** Return the bytes of memory of the grid. */
int64_t gr_parallel_grid_bytes(const struct gr_grid *grid);

/** Return the row of the group that is row `row` of a rank. */
int64_t gr_parallel_grid_row(const struct gr_grid *grid, int32_t rank, int64_t row);

/** Return the number of rows of a rank, or of this group, in a prefix. */
static inline int64_t gr_parallel_grid_rows_of(const struct gr_grid *grid, int32_t rank, int32_t prefix)
{
    return grid->reach[(int64_t)rank * (grid->n_levels + 1) + prefix];
}

static inline int64_t gr_parallel_grid_rows(const struct gr_grid *grid, int32_t prefix)
{
    int64_t rows = 0;

    for (int32_t q = grid->first; q < grid->first + grid->columns; q++)
        rows += gr_parallel_grid_rows_of(grid, q, prefix);
    return rows;
}

/** Whether a rank is in this group. */
static inline int gr_parallel_grid_has(const struct gr_grid *grid, int32_t rank)
{
    return rank >= grid->first && rank < grid->first + grid->columns;
}

/** Return the first of the `width` columns that belongs to the slice of the rank with index `column` in its group. */
static inline int64_t gr_parallel_grid_slice(const struct gr_grid *grid, int64_t width, int32_t column)
{
    return width * column / grid->columns;
}

static inline int64_t gr_parallel_grid_slice_width(const struct gr_grid *grid, int64_t width, int32_t column)
{
    return gr_parallel_grid_slice(grid, width, column + 1) - gr_parallel_grid_slice(grid, width, column);
}

/** Return the number of columns of the slice of this rank. */
static inline int64_t gr_parallel_grid_own_width(const struct gr_grid *grid, int64_t width)
{
    return gr_parallel_grid_slice_width(grid, width, grid->column);
}
