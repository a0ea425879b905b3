/* The vertices of a group, and its edges from vertices of other groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/grid.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"

#include <string.h>

/* -- vertices ----------------------------------------------------------------------------------------------------- */

static int64_t level_rows(const struct gr_grid *grid, int32_t rank, int32_t level)
{
    return gr_parallel_grid_rows_of(grid, rank, level + 1) - gr_parallel_grid_rows_of(grid, rank, level);
}

/* Find where the levels of all ranks of a group begin. \return The rows of the group. */
static int64_t place_group(struct gr_grid *grid, int32_t group)
{
    int64_t at = 0;

    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = group * grid->columns; q < (group + 1) * grid->columns; q++) {
            grid->place[(int64_t)q * grid->n_levels + level] = at;
            at += level_rows(grid, q, level);
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
    rc = GR_NEW(context, grid->reach, n_ranks * (n_levels + 1), error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, grid->place, n_ranks * n_levels, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, grid->owned, n_levels + 1, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_parallel_linked_rows_init(budget, comm, part, &grid->linked, error));
    memcpy(grid->owned, reach, (uint64_t)(n_levels + 1) * sizeof *reach);
    mine = grid->reach + comm->rank * (int64_t)(n_levels + 1);
    for (int32_t level = 0; level <= n_levels; level++)
        mine[level] = gr_parallel_linked_rows_among(&grid->linked, reach[level]);
    GR_TRY_DONE(gr_comm_allgather(comm, mine, (uint64_t)(n_levels + 1) * sizeof *mine, grid->reach, error));
    for (int32_t g = 0; g < grid->n_groups; g++) {
        const int64_t rows = place_group(grid, g);

        if (rows > most) most = rows;
    }
    if (most > INT32_MAX)
        rc = gr_fail(error, GRAFT_ERR_UNSUPPORTED, "%d ranks share the columns of %lld vertices, expected %d at most",
                     columns, (long long)most, INT32_MAX);
done:
    return rc;
}

void gr_parallel_grid_fini(const graft_context *context, struct gr_grid *grid)
{
    gr_free(context, grid->reach);
    gr_free(context, grid->place);
    gr_free(context, grid->owned);
    gr_parallel_linked_rows_fini(context, &grid->linked);
    gr_graph_made_part_fini(context, &grid->made);
    *grid = (struct gr_grid){ 0 };
}

int64_t gr_parallel_grid_bytes(const struct gr_grid *grid, int32_t n_ranks)
{
    if (grid->reach == NULL) return 0;
    return (n_ranks * (2 * (int64_t)grid->n_levels + 1) + grid->n_levels + 1) * (int64_t)sizeof *grid->reach +
           gr_parallel_linked_rows_bytes(&grid->linked) + gr_graph_made_part_bytes(&grid->made);
}

/* -- edges from other groups -------------------------------------------------------------------------------------- */

/* Their name in refusals of the memory budget. */
static const char EDGES_NAME[] = "graph (edges from other groups of ranks)";

/* A vertex of any group: the group, then the row in it. */
enum { ROW_BITS = 32 };

/* Edges from other groups, of the rows of one rank, or of all ranks of the group one after the other. */
struct edges {
    int32_t *count; /* [rows] of each row */
    int64_t  rows, entries;
    int64_t *vertex; /* [entries] */
    float   *values; /* NULL: there are none */
};

static int32_t edges_init(const graft_context *context, int has_values, struct edges *e, graft_error *error)
{
    GR_TRY(GR_NEW(context, e->count, e->rows, error));
    GR_TRY(GR_NEW(context, e->vertex, e->entries, error));
    if (has_values) return GR_NEW(context, e->values, e->entries, error);
    return GRAFT_OK;
}

static void edges_fini(const graft_context *context, struct edges *e)
{
    gr_free(context, e->count);
    gr_free(context, e->vertex);
    gr_free(context, e->values);
    *e = (struct edges){ 0 };
}

static double edges_bytes(const struct edges *e, int has_values)
{
    const double value = has_values ? sizeof *e->values : 0;

    return (double)e->rows * sizeof *e->count + (double)e->entries * (sizeof *e->vertex + value);
}

/* The vertices of the halo of this rank, by group and row; -1: vertices of this group. */
static void name_halo(const struct gr_grid *grid, const struct gr_part *part, int32_t n_ranks, int64_t *vertex)
{
    for (int32_t q = 0; q < n_ranks; q++) {
        for (int64_t s = part->halo.start[q]; s < part->halo.start[q + 1]; s++) {
            const int64_t row = gr_parallel_grid_row(grid, q, part->halo.place[s]);

            vertex[s] = gr_parallel_grid_has(grid, q) ? -1 : (int64_t)(q / grid->columns) << ROW_BITS | row;
        }
    }
}

/* The edges of this rank. */
static void fill_rank_edges(const struct gr_part *part, const int64_t *halo_vertex, struct edges *e)
{
    const float *values = part->remote.values;
    int64_t      at = 0;

    for (int64_t row = 0; row < e->rows; row++) {
        const int64_t begin = at;

        for (int64_t i = part->remote.row_ptr[row]; i < part->remote.row_ptr[row + 1]; i++) {
            const int64_t vertex = halo_vertex[gr_csr_column(&part->remote, i)];

            if (vertex < 0) continue;
            e->vertex[at] = vertex;
            if (e->values != NULL) e->values[at] = values[i];
            at++;
        }
        e->count[row] = (int32_t)(at - begin);
    }
}

/* The edges of this rank, if they fit the budget. */
static int32_t make_edges(const struct gr_budget *budget, const struct gr_grid *grid, int32_t n_ranks,
                          const struct gr_part *part, struct edges *e, graft_error *error)
{
    const graft_context *context = budget->context;
    const int            has_values = part->local.values != NULL;
    const double         more = (double)part->halo.count * sizeof *e->vertex;
    int64_t             *vertex = NULL;
    int32_t              rc = gr_budget_check(budget, more, EDGES_NAME, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(GR_NEW(context, vertex, part->halo.count, error));
    name_halo(grid, part, n_ranks, vertex);
    e->rows = part->local.n_rows;
    for (int64_t i = 0; i < gr_csr_entries(&part->remote); i++)
        e->entries += vertex[gr_csr_column(&part->remote, i)] >= 0;
    GR_TRY_DONE(gr_budget_check(budget, more + edges_bytes(e, has_values), EDGES_NAME, error));
    GR_TRY_DONE(edges_init(context, has_values, e, error));
    fill_rank_edges(part, vertex, e);
done:
    gr_free(context, vertex);
    return rc;
}

/* The edges of all ranks of the group. `counts` are rows and entries of all ranks: [2][n_ranks]. */
static int32_t gather_edges(struct gr_comm *comm, const struct gr_grid *grid, const int64_t *counts,
                            const struct edges *mine, struct edges *all, graft_error *error)
{
    const int32_t        first = grid->first, end = first + grid->columns;
    const int64_t *const entries = counts + comm->n_ranks;

    GR_TRY(gr_comm_gather_among(comm, first, end, mine->count, counts, sizeof *all->count, all->count, error));
    GR_TRY(gr_comm_gather_among(comm, first, end, mine->vertex, entries, sizeof *all->vertex, all->vertex, error));
    if (mine->values != NULL)
        return gr_comm_gather_among(comm, first, end, mine->values, entries, sizeof *all->values, all->values, error);
    return GRAFT_OK;
}

/* Edges of the rows of one rank that have been read so far. */
struct cursor {
    int64_t row, entry;
};

/* From the edges of the ranks, one after the other, to the rows of the group in the order of the levels. `column` has
 * the columns of all edges. */
static void fill_matrix(const struct gr_grid *grid, const struct edges *all, const int32_t *column,
                        struct cursor *cursors, struct gr_csr *csr)
{
    struct cursor at = { 0 };
    int32_t      *columns = csr->col_idx;
    int64_t       to = 0, row = 0;

    for (int32_t q = 0; q < grid->columns; q++) {
        cursors[q] = at;
        for (int64_t n = gr_parallel_grid_rows_of(grid, grid->first + q, grid->n_levels); n > 0; n--)
            at.entry += all->count[at.row++];
    }
    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = 0; q < grid->columns; q++) {
            const int64_t begin = cursors[q].entry, first = to;

            for (int64_t n = level_rows(grid, grid->first + q, level); n > 0; n--) {
                to += all->count[cursors[q].row++];
                csr->row_ptr[++row] = to;
            }
            cursors[q].entry += to - first;
            memcpy(columns + first, column + begin, (uint64_t)(to - first) * sizeof *column);
            if (csr->values != NULL)
                memcpy((float *)csr->values + first, all->values + begin, (uint64_t)(to - first) * sizeof(float));
        }
    }
}

/* The vertices of other groups from which this group gathers, sorted; and for each edge the number of its vertex. */
static int32_t make_group_halo(const graft_context *context, const struct gr_grid *grid, int32_t n_ranks,
                               const struct edges *all, int32_t *column, struct gr_made_part *made, graft_error *error)
{
    const int64_t rows = gr_parallel_grid_rows(grid, grid->n_levels);
    int64_t      *vertex = NULL, count = all->entries;
    int32_t       rc = GR_NEW(context, vertex, count, error);

    if (rc < 0) return rc;
    if (count > 0) memcpy(vertex, all->vertex, (uint64_t)count * sizeof *vertex);
    GR_TRY_DONE(gr_sort_unique(context, vertex, (int64_t)grid->n_groups << ROW_BITS, &count, error));
    if (rows + count > INT32_MAX)
        rc = gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                     "%d ranks share %lld vertices and a halo of %lld, expected %d at most together", grid->columns,
                     (long long)rows, (long long)count, INT32_MAX);
    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_graph_made_part_new_halo(context, made, n_ranks, count, error));
    for (int64_t i = 0; i < all->entries; i++) column[i] = (int32_t)gr_sorted_index(vertex, count, all->vertex[i]);
    for (int64_t s = 0; s < count; s++) {
        made->halo_place[s] = (int32_t)(vertex[s] & INT32_MAX);
        made->halo_start[(vertex[s] >> ROW_BITS) * grid->columns + grid->column + 1]++;
    }
    for (int32_t q = 0; q < n_ranks; q++) made->halo_start[q + 1] += made->halo_start[q];
done:
    gr_free(context, vertex);
    return rc;
}

static int32_t make_group(const graft_context *context, const struct gr_grid *grid, int32_t n_ranks,
                          const struct edges *all, int has_rows, struct gr_made_part *made, graft_error *error)
{
    const int64_t rows = has_rows ? gr_parallel_grid_rows(grid, grid->n_levels) : 0,
                  entries = has_rows ? all->entries : 0;
    const graft_csr like = {
        .size = sizeof like, .index_type = GRAFT_I32, .value_type = GRAFT_F32, .values = all->values
    };
    int32_t       *column = NULL;
    struct cursor *cursors = NULL;
    int32_t        rc = GR_NEW(context, column, all->entries, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(GR_NEW(context, cursors, grid->columns, error));
    GR_TRY_DONE(make_group_halo(context, grid, n_ranks, all, column, made, error));
    GR_TRY_DONE(gr_csr_init(context, &made->local, &like, rows, rows, 0, error));
    GR_TRY_DONE(gr_csr_init(context, &made->remote, &like, rows, made->part.halo.count, entries, error));
    if (has_rows) fill_matrix(grid, all, column, cursors, &made->remote);
    made->part.local = made->local.view;
    made->part.remote = made->remote.view;
done:
    gr_free(context, column);
    gr_free(context, cursors);
    return rc;
}

/* The rows and entries of all ranks: [2][n_ranks]; and of the group. */
static int32_t share_counts(struct gr_comm *comm, const struct gr_grid *grid, const struct edges *mine, int64_t *counts,
                            struct edges *all, graft_error *error)
{
    GR_TRY(gr_comm_allgather(comm, &mine->rows, sizeof mine->rows, counts, error));
    GR_TRY(gr_comm_allgather(comm, &mine->entries, sizeof mine->entries, counts + comm->n_ranks, error));
    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
        all->rows += counts[q];
        all->entries += counts[comm->n_ranks + q];
    }
    return GRAFT_OK;
}

int32_t gr_parallel_grid_gather(struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                const struct gr_part *part, int has_rows, struct gr_made_part *made, graft_error *error)
{
    const graft_context *context = budget->context;
    const int            has_values = part->local.values != NULL;
    struct edges         mine = { 0 }, all = { 0 };
    int64_t             *counts = NULL;
    int32_t              rc = GR_NEW(context, counts, 2 * (int64_t)comm->n_ranks, error);

    if (rc == GRAFT_OK) rc = make_edges(budget, grid, comm->n_ranks, part, &mine, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(share_counts(comm, grid, &mine, counts, &all, error));
    rc = gr_budget_check(budget, 3 * edges_bytes(&all, has_values) + edges_bytes(&mine, has_values), EDGES_NAME, error);
    if (rc == GRAFT_OK) rc = edges_init(context, has_values, &all, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gather_edges(comm, grid, counts, &mine, &all, error));
    edges_fini(context, &mine);
    rc = gr_comm_agree(comm, make_group(context, grid, comm->n_ranks, &all, has_rows, made, error), error);
    GR_ASSERT(rc < 0 || gr_csr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
done:
    edges_fini(context, &mine);
    edges_fini(context, &all);
    gr_free(context, counts);
    return rc;
}
