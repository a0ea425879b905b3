/* The edges inside a group, as blocks of rows: a block has the rows of one rank, in the order of that rank, with
 * columns that are rows of the group. A rank stores all blocks of its group, or only its own; then other blocks are
 * received when a sum needs them (stream.h). For extrema a block also has the edges from other groups: the vertices of
 * the halo of the group are columns after its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "model/model.h"
#include "parallel/grid.h"

/** Rows of one rank. Values are NULL if the graph has none. */
struct gr_edge_block {
    const int32_t *count, *column; /* [rows] number of entries of each row; [entries] columns */
    const float   *values;
    int64_t        rows, entries;
};

/** The blocks of one matrix. The rows in the first levels of a block are a block too. */
struct gr_edge_set {
    const char *name;          /* name in errors of the memory budget */
    int32_t     levels;        /* number of levels of its rows */
    int32_t     first, n_held; /* the ranks whose blocks this rank stores */
    int64_t    *ends;          /* [n_ranks x (n_levels + 1)] entries in the first levels of each rank */
    int32_t    *count, *column;
    float      *values;
};

/** The matrices of all sums. All fields 0: empty. */
struct gr_edge_sets {
    struct gr_edge_set whole[GR_DIRECTIONS];
    struct gr_edge_set back[GR_LAYERS_MAX]; /* transpose of the rows that a layer computes in a step, or empty */
};

/** Create the block of this rank, and with `transposed` its block of the transpose. Collective. Always call
 *  gr_parallel_edge_sets_fini().
 *  \param[in] halo  The halo of the group, for extrema, which have no transpose; NULL: edges from other groups are
 *                   omitted.
 *  \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_edge_sets_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   const struct gr_part *part, const struct gr_halo *halo, int transposed,
                                   struct gr_edge_sets *sets, graft_error *error);
/** Gather all blocks of the group on each of its ranks, after mask(). Collective. \return As
 *  gr_parallel_edge_sets_init(). */
int32_t gr_parallel_edge_sets_gather(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                     struct gr_edge_sets *sets, graft_error *error);
/** Gather the edges from other groups to this group as a part: its rows are the linked rows of the group, in the order
 *  of levels, and its local matrix is empty. `part`: the part of the linked rows of this rank. Without has_rows
 *  (extrema, one group) only the halo is created. Collective.
 *  \return OK; ERR_NOMEM, ERR_UNSUPPORTED (rows and halo are more than INT32_MAX vertices): the same on all ranks;
 *  ERR_PEER. */
int32_t gr_parallel_edge_gather_outside(const struct gr_budget *budget, struct gr_comm *comm,
                                        const struct gr_grid *grid, const struct gr_part *part, int has_rows,
                                        struct gr_made_part *made, graft_error *error);
/** Create sets->back[layer], this rank's block of the transpose of the rows in the first `prefix` levels, if there is a
 *  transpose. Collective. \return As gr_parallel_edge_sets_init(). */
int32_t gr_parallel_edge_sets_mask(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t layer, int32_t prefix, struct gr_edge_sets *sets, graft_error *error);
void    gr_parallel_edge_sets_fini(const graft_context *context, struct gr_edge_sets *sets);

/** Return the bytes of the blocks that this rank stores. */
int64_t gr_parallel_edge_sets_bytes(const struct gr_edge_sets *sets, const struct gr_grid *grid);

/** Return the number of entries of a rank in its first `prefix` levels. */
static inline int64_t gr_parallel_edge_entries(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix)
{
    return set->ends[(int64_t)rank * (grid->n_levels + 1) + prefix];
}

/** Return the bytes of the block of a rank, with its first `prefix` levels. */
static inline int64_t gr_parallel_edge_block_bytes(const struct gr_edge_set *set, const struct gr_grid *grid,
                                                   int32_t rank, int32_t prefix)
{
    return (int64_t)sizeof *set->count * gr_parallel_grid_rows_of(grid, rank, prefix) +
           (int64_t)(sizeof *set->column + (set->values != NULL ? sizeof *set->values : 0)) *
               gr_parallel_edge_entries(set, grid, rank, prefix);
}

/** Return the stored block of a rank, with its first `prefix` levels. */
struct gr_edge_block gr_parallel_edge_block_of(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix);
