/* Arranges the vertices of a group.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/grid.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* Find the row at which each level of each rank of a group begins. \return The number of rows of the group. */
static int64_t place_group(struct gr_grid *grid, int32_t group)
{
    int64_t at = 0;

    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = group * grid->columns; q < (group + 1) * grid->columns; q++) {
            grid->place[(int64_t)q * grid->n_levels + level] = at;
            at += gr_parallel_grid_rows_of(grid, q, level + 1) - gr_parallel_grid_rows_of(grid, q, level);
        }
    }
    return at;
}

int64_t gr_parallel_grid_row(const struct gr_grid *grid, int32_t rank, int64_t row)
{
    int32_t level = 0;

    while (row >= gr_parallel_grid_rows_of(grid, rank, level + 1)) level++;
    return grid->place[(int64_t)rank * grid->n_levels + level] + row - gr_parallel_grid_rows_of(grid, rank, level);
}

int32_t gr_parallel_grid_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_part *part,
                              int32_t columns, int32_t n_levels, const int64_t *reach, struct gr_grid *grid,
                              graft_error *error)
{
    const graft_context *context = budget->context;
    const int64_t        n_ranks = comm->n_ranks;
    int64_t              most = 0, *mine;
    int32_t              rc = GRAFT_OK;

    GR_ASSERT(columns > 0 && comm->n_ranks % columns == 0 && reach[0] == 0);
    *grid = (struct gr_grid){ .columns = columns, .n_groups = comm->n_ranks / columns, .n_levels = n_levels };
    grid->column = comm->rank % columns;
    grid->first = comm->rank - grid->column;
    rc = GR_POOL_NEW(context, &grid->pool, grid->reach, n_ranks * (n_levels + 1), error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(context, &grid->pool, grid->place, n_ranks * n_levels, error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(context, &grid->pool, grid->owned, n_levels + 1, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(gr_parallel_linked_rows_init(budget, comm, part, &grid->linked, error));
    memcpy(grid->owned, reach, (uint64_t)(n_levels + 1) * sizeof *reach);
    mine = grid->reach + comm->rank * (int64_t)(n_levels + 1);
    for (int32_t level = 0; level <= n_levels; level++)
        mine[level] = gr_parallel_linked_rows_among(&grid->linked, reach[level]);
    GR_TRY(gr_comm_allgather(comm, mine, (uint64_t)(n_levels + 1) * sizeof *mine, grid->reach, error));
    for (int32_t g = 0; g < grid->n_groups; g++) {
        const int64_t rows = place_group(grid, g);

        if (rows > most) most = rows;
    }
    if (most > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "%d ranks share the columns of %lld vertices, expected %d at most",
                       columns, (long long)most, INT32_MAX);
    return GRAFT_OK;
}

void gr_parallel_grid_fini(const graft_context *context, struct gr_grid *grid)
{
    gr_pool_fini(context, &grid->pool);
    gr_parallel_linked_rows_fini(context, &grid->linked);
    gr_graph_made_part_fini(context, &grid->made);
    *grid = (struct gr_grid){ 0 };
}

int64_t gr_parallel_grid_bytes(const struct gr_grid *grid)
{
    return grid->pool.bytes + gr_parallel_linked_rows_bytes(&grid->linked) + gr_graph_made_part_bytes(&grid->made);
}
