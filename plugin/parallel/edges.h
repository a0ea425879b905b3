/* The edges inside a group, as blocks of rows: a block has the rows of one rank, in the order of that rank, with
 * columns in the numbering of the group. A rank holds the blocks of its group, or only its own; then other blocks are
 * received when a sum needs them (stream.h). For extrema a block also has the edges from other groups: the vertices of
 * the halo of the group are columns after its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "model/model.h"
#include "parallel/grid.h"

/** Rows of one rank. Values are NULL if the graph has none. */
struct gr_edge_block {
    const int32_t *count, *column; /* [rows] entries of each row; [entries] */
    const float   *values;
    int64_t        rows, entries;
};

/** The blocks of one matrix. The first levels of the rows of a block are a block too. */
struct gr_edge_set {
    const char *name;          /* in refusals of the memory budget */
    int32_t     levels;        /* of its rows */
    int32_t     first, n_held; /* the ranks whose blocks this rank stores */
    int64_t    *ends;          /* [n_ranks x (n_levels + 1)] entries in the first levels of a rank of any group */
    int32_t    *count, *column;
    float      *values;
};

/** The matrices of all sums. Empty if zeroed. */
struct gr_edge_sets {
    struct gr_edge_set whole[GR_DIRECTIONS];
    struct gr_edge_set back[GR_LAYERS_MAX]; /* the transpose of the rows that a layer computes in a step */
};

/** Make the block of this rank, and with `transposed` the block of the transpose. Collective. Always call fini().
 *  \param[in] halo  Of the group, for extrema, which have no transpose; NULL: edges from other groups are left out.
 *  \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_edge_sets_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   const struct gr_part *part, const struct gr_halo *halo, int transposed,
                                   struct gr_edge_sets *sets, graft_error *error);
/** Hold the blocks of the group, after mask(). Collective. \return as above. */
int32_t gr_parallel_edge_sets_gather(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                     struct gr_edge_sets *sets, graft_error *error);
/** The edges from other groups, from the part of the linked rows of each rank, in the order of the levels; the local
 *  matrix is empty. For extrema, or with one group, there are no rows, only the halo. Collective.
 *  \return OK; ERR_NOMEM, ERR_UNSUPPORTED (rows and halo are more than INT32_MAX vertices): the same on all ranks;
 *  ERR_PEER. */
int32_t gr_parallel_edge_gather_outside(const struct gr_budget *budget, struct gr_comm *comm,
                                        const struct gr_grid *grid, const struct gr_part *part, int has_rows,
                                        struct gr_made_part *made, graft_error *error);
/** The own block of the transpose of the rows in the first `prefix` levels, for a layer, if there is a transpose.
 *  Collective. \return as above. */
int32_t gr_parallel_edge_sets_mask(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t layer, int32_t prefix, struct gr_edge_sets *sets, graft_error *error);
void    gr_parallel_edge_sets_fini(const graft_context *context, struct gr_edge_sets *sets);

/** Bytes of the blocks that are stored on this rank. */
int64_t gr_parallel_edge_sets_bytes(const struct gr_edge_sets *sets, const struct gr_grid *grid);

/** Entries of a rank in its first `prefix` levels. */
static inline int64_t gr_parallel_edge_entries(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix)
{
    return set->ends[(int64_t)rank * (grid->n_levels + 1) + prefix];
}

/** Bytes of the rows of a rank. */
static inline int64_t gr_parallel_edge_block_bytes(const struct gr_edge_set *set, const struct gr_grid *grid,
                                                   int32_t rank, int32_t prefix)
{
    return (int64_t)sizeof *set->count * gr_parallel_grid_rows_of(grid, rank, prefix) +
           (int64_t)(sizeof *set->column + (set->values != NULL ? sizeof *set->values : 0)) *
               gr_parallel_edge_entries(set, grid, rank, prefix);
}

/** The held rows of a rank. */
struct gr_edge_block gr_parallel_edge_block_of(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix);
