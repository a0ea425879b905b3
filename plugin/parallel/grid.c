/* The vertices of a group, and the graph between them and those of other groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/grid.h"

#include "base/memory.h"
#include "base/sort.h"

#include <string.h>

/* -- vertices ----------------------------------------------------------------------------------------------------- */

static int64_t level_rows(const struct gr_grid *grid, int32_t rank, int32_t level)
{
    return gr_grid_rows_of(grid, rank, level + 1) - gr_grid_rows_of(grid, rank, level);
}

/* Where the levels of all ranks of a group begin. \return The rows of the group. */
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

int64_t gr_grid_row(const struct gr_grid *grid, int32_t rank, int64_t row)
{
    int32_t level = 0;

    while (row >= gr_grid_rows_of(grid, rank, level + 1)) level++;
    return grid->place[(int64_t)rank * grid->n_levels + level] + row - gr_grid_rows_of(grid, rank, level);
}

int32_t gr_grid_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_part *part, int32_t columns,
                     int32_t n_levels, const int64_t *reach, struct gr_grid *grid, graft_error *error)
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
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(gr_linked_rows_init(budget, comm, part, &grid->linked, error));
    memcpy(grid->owned, reach, (uint64_t)(n_levels + 1) * sizeof *reach);
    mine = grid->reach + comm->rank * (int64_t)(n_levels + 1);
    for (int32_t level = 0; level <= n_levels; level++) mine[level] = gr_linked_rows_among(&grid->linked, reach[level]);
    GR_TRY(gr_comm_allgather(comm, mine, (uint64_t)(n_levels + 1) * sizeof *mine, grid->reach, error));
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

void gr_grid_fini(const graft_context *context, struct gr_grid *grid)
{
    gr_free(context, grid->reach);
    gr_free(context, grid->place);
    gr_free(context, grid->owned);
    gr_linked_rows_fini(context, &grid->linked);
    gr_made_part_fini(context, &grid->made);
    *grid = (struct gr_grid){ 0 };
}

int64_t gr_grid_bytes(const struct gr_grid *grid, int32_t n_ranks)
{
    if (grid->reach == NULL) return 0;
    return (n_ranks * (2 * (int64_t)grid->n_levels + 1) + grid->n_levels + 1) * (int64_t)sizeof *grid->reach +
           gr_linked_rows_bytes(&grid->linked) + gr_made_part_bytes(&grid->made);
}

/* -- edges -------------------------------------------------------------------------------------------------------- */

enum { INSIDE, OUTSIDE, SIDES }; /* edges from vertices of the group, and from others */

/* Their name in refusals of the memory budget. */
static const char EDGES_NAME[] = "graph (of all ranks that share its columns)";

/* A vertex of any group: the group, then the row in it. */
enum { ROW_BITS = 32 };

/* Edges of the rows of one rank, or of all ranks of the group one after the other. */
struct edges {
    int32_t *count[SIDES]; /* [rows] of each row */
    int64_t  rows, entries[SIDES];
    int32_t *inside;        /* [entries] rows of the group */
    int64_t *outside;       /* [entries] vertices of other groups */
    float   *values[SIDES]; /* NULL: there are none */
};

static int32_t edges_init(const graft_context *context, int has_values, struct edges *e, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int side = 0; side < SIDES; side++) {
        GR_TRY(GR_NEW(context, e->count[side], e->rows, error));
        if (has_values) GR_TRY(GR_NEW(context, e->values[side], e->entries[side], error));
    }
    GR_TRY(GR_NEW(context, e->inside, e->entries[INSIDE], error));
    rc = GR_NEW(context, e->outside, e->entries[OUTSIDE], error);
done:
    return rc;
}

static void edges_fini(const graft_context *context, struct edges *e)
{
    for (int side = 0; side < SIDES; side++) {
        gr_free(context, e->count[side]);
        gr_free(context, e->values[side]);
    }
    gr_free(context, e->inside);
    gr_free(context, e->outside);
    *e = (struct edges){ 0 };
}

static double edges_bytes(const struct edges *e, int has_values)
{
    const double value = has_values ? sizeof(float) : 0;

    return (double)e->rows * SIDES * sizeof **e->count + (double)e->entries[INSIDE] * (sizeof *e->inside + value) +
           (double)e->entries[OUTSIDE] * (sizeof *e->outside + value);
}

/* The vertices of the halo of this rank, by group and row. */
static void name_halo(const struct gr_grid *grid, const struct gr_part *part, int32_t n_ranks, int64_t *vertex)
{
    for (int32_t q = 0; q < n_ranks; q++) {
        for (int64_t s = part->halo.start[q]; s < part->halo.start[q + 1]; s++)
            vertex[s] = (int64_t)(q / grid->columns) << ROW_BITS | gr_grid_row(grid, q, part->halo.place[s]);
    }
}

static int is_inside(const struct gr_grid *grid, int64_t vertex)
{
    return vertex >> ROW_BITS == grid->first / grid->columns;
}

static void put_edge(struct edges *e, int64_t row, int side, int64_t vertex, const graft_csr *from, int64_t entry)
{
    const int64_t at = e->entries[side]++;

    if (side == INSIDE) e->inside[at] = (int32_t)(vertex & INT32_MAX);
    else e->outside[at] = vertex;
    if (e->values[side] != NULL) e->values[side][at] = ((const float *)from->values)[entry];
    e->count[side][row]++;
}

/* The edges of this rank; of the entries, the numbers are set again. */
static void fill_rank_edges(const struct gr_grid *grid, const struct gr_part *part, const int64_t *halo_vertex,
                            struct edges *e)
{
    const int32_t rank = grid->first + grid->column;

    e->entries[INSIDE] = e->entries[OUTSIDE] = 0;
    for (int64_t row = 0; row < e->rows; row++) {
        for (int64_t i = part->local.row_ptr[row]; i < part->local.row_ptr[row + 1]; i++)
            put_edge(e, row, INSIDE, gr_grid_row(grid, rank, gr_csr_column(&part->local, i)), &part->local, i);
        for (int64_t i = part->remote.row_ptr[row]; i < part->remote.row_ptr[row + 1]; i++) {
            const int64_t vertex = halo_vertex[gr_csr_column(&part->remote, i)];

            put_edge(e, row, is_inside(grid, vertex) ? INSIDE : OUTSIDE, vertex, &part->remote, i);
        }
    }
}

/* The edges of this rank, if they fit the budget. */
static int32_t make_edges(const struct gr_budget *budget, const struct gr_grid *grid, int32_t n_ranks,
                          const struct gr_part *part, struct edges *e, graft_error *error)
{
    const graft_context *context = budget->context;
    const int            has_values = part->local.values != NULL;
    int64_t             *vertex = NULL;
    int32_t              rc = gr_budget_check(budget, (double)part->halo.count * sizeof *vertex, EDGES_NAME, error);

    if (rc == GRAFT_OK) rc = GR_NEW(context, vertex, part->halo.count, error);
    if (rc < 0) return rc;
    name_halo(grid, part, n_ranks, vertex);
    e->rows = part->local.n_rows;
    e->entries[INSIDE] = gr_csr_entries(&part->local);
    for (int64_t i = 0; i < gr_csr_entries(&part->remote); i++)
        e->entries[is_inside(grid, vertex[gr_csr_column(&part->remote, i)]) ? INSIDE : OUTSIDE]++;
    GR_TRY(gr_budget_check(budget, (double)part->halo.count * sizeof *vertex + edges_bytes(e, has_values), EDGES_NAME,
                           error));
    GR_TRY(edges_init(context, has_values, e, error));
    fill_rank_edges(grid, part, vertex, e);
done:
    gr_free(context, vertex);
    return rc;
}

/* The edges of all ranks of the group. `counts` are rows and entries of all ranks: [SIDES + 1][n_ranks]. */
static int32_t gather_edges(struct gr_comm *comm, const struct gr_grid *grid, const int64_t *counts,
                            const struct edges *mine, struct edges *all, graft_error *error)
{
    const struct {
        const int64_t *count; /* [n_ranks] */
        int64_t        bytes;
        const void    *mine;
        void          *all;
    } arrays[] = {
        { counts, sizeof **all->count, mine->count[INSIDE], all->count[INSIDE] },
        { counts, sizeof **all->count, mine->count[OUTSIDE], all->count[OUTSIDE] },
        { counts + comm->n_ranks, sizeof *all->inside, mine->inside, all->inside },
        { counts + 2 * comm->n_ranks, sizeof *all->outside, mine->outside, all->outside },
        { counts + comm->n_ranks, sizeof **all->values, mine->values[INSIDE], all->values[INSIDE] },
        { counts + 2 * comm->n_ranks, sizeof **all->values, mine->values[OUTSIDE], all->values[OUTSIDE] },
    };
    const int n = mine->values[INSIDE] != NULL ? 6 : 4;
    int32_t   rc = GRAFT_OK;

    for (int i = 0; i < n; i++)
        GR_TRY(gr_comm_gather_among(comm, grid->first, grid->first + grid->columns, arrays[i].mine, arrays[i].count,
                                    arrays[i].bytes, arrays[i].all, error));
done:
    return rc;
}

/* -- the graph of the group ---------------------------------------------------------------------------------------- */

/* Edges of the rows of one rank that have been read so far. */
struct cursor {
    int64_t row, entry;
};

/* From the edges of the ranks, one after the other, to the rows of the group in the order of the levels. `column` has
 * the columns of all edges. */
static void fill_matrix(const struct gr_grid *grid, const struct edges *all, int side, const int32_t *column,
                        struct cursor *cursors, struct gr_csr *csr)
{
    struct cursor at = { 0 };
    int32_t      *columns = csr->col_idx;
    int64_t       to = 0, row = 0;

    for (int32_t q = 0; q < grid->columns; q++) {
        cursors[q] = at;
        for (int64_t n = gr_grid_rows_of(grid, grid->first + q, grid->n_levels); n > 0; n--)
            at.entry += all->count[side][at.row++];
    }
    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = 0; q < grid->columns; q++) {
            const int64_t begin = cursors[q].entry, first = to;

            for (int64_t n = level_rows(grid, grid->first + q, level); n > 0; n--) {
                to += all->count[side][cursors[q].row++];
                csr->row_ptr[++row] = to;
            }
            cursors[q].entry += to - first;
            memcpy(columns + first, column + begin, (uint64_t)(to - first) * sizeof *column);
            if (csr->values != NULL)
                memcpy((float *)csr->values + first, all->values[side] + begin, (uint64_t)(to - first) * sizeof(float));
        }
    }
}

/* The vertices of other groups that this one gathers from, sorted; and for each edge the number of its vertex. */
static int32_t make_group_halo(const graft_context *context, const struct gr_grid *grid, int32_t n_ranks,
                               const struct edges *all, int32_t *column, struct gr_made_part *made, graft_error *error)
{
    int64_t *vertex = NULL, count = all->entries[OUTSIDE];
    int32_t  rc = GR_NEW(context, vertex, count, error);

    if (rc < 0) return rc;
    if (count > 0) memcpy(vertex, all->outside, (uint64_t)count * sizeof *vertex);
    GR_TRY(gr_sort_unique(context, vertex, (int64_t)grid->n_groups << ROW_BITS, &count, error));
    if (count > INT32_MAX)
        rc = gr_fail(error, GRAFT_ERR_UNSUPPORTED, "%d ranks share a halo of %lld vertices, expected %d at most",
                     grid->columns, (long long)count, INT32_MAX);
    GR_TRY(rc);
    GR_TRY(gr_made_part_halo(context, made, n_ranks, count, error));
    for (int64_t i = 0; i < all->entries[OUTSIDE]; i++)
        column[i] = (int32_t)gr_sorted_index(vertex, count, all->outside[i]);
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
                          const struct edges *all, struct gr_made_part *made, graft_error *error)
{
    const int64_t   rows = gr_grid_rows(grid, grid->n_levels);
    const graft_csr like = {
        .size = sizeof like, .index_type = GRAFT_I32, .value_type = GRAFT_F32, .values = all->values[INSIDE]
    };
    int32_t       *column = NULL;
    struct cursor *cursors = NULL;
    int32_t        rc = GR_NEW(context, column, all->entries[OUTSIDE], error);

    GR_TRY(rc);
    GR_TRY(GR_NEW(context, cursors, grid->columns, error));
    GR_TRY(make_group_halo(context, grid, n_ranks, all, column, made, error));
    GR_TRY(gr_csr_init(context, &made->local, &like, rows, rows, all->entries[INSIDE], error));
    GR_TRY(gr_csr_init(context, &made->remote, &like, rows, made->part.halo.count, all->entries[OUTSIDE], error));
    fill_matrix(grid, all, INSIDE, all->inside, cursors, &made->local);
    fill_matrix(grid, all, OUTSIDE, column, cursors, &made->remote);
    made->part.local = made->local.view;
    made->part.remote = made->remote.view;
done:
    gr_free(context, column);
    gr_free(context, cursors);
    return rc;
}

/* The rows and entries of all ranks: [SIDES + 1][n_ranks]. */
static int32_t share_counts(struct gr_comm *comm, const struct edges *mine, int64_t *counts, graft_error *error)
{
    const int64_t own[SIDES + 1] = { mine->rows, mine->entries[INSIDE], mine->entries[OUTSIDE] };
    int32_t       rc = GRAFT_OK;

    for (int i = 0; i <= SIDES; i++)
        GR_TRY(gr_comm_allgather(comm, &own[i], sizeof *own, counts + (int64_t)i * comm->n_ranks, error));
done:
    return rc;
}

/* The sizes of the edges of the group. */
static void sum_counts(const struct gr_grid *grid, int32_t n_ranks, const int64_t *counts, struct edges *all)
{
    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
        all->rows += counts[q];
        all->entries[INSIDE] += counts[n_ranks + q];
        all->entries[OUTSIDE] += counts[2 * (int64_t)n_ranks + q];
    }
}

int32_t gr_grid_gather(struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                       const struct gr_part *part, struct gr_made_part *made, graft_error *error)
{
    const graft_context *context = budget->context;
    const int            has_values = part->local.values != NULL;
    struct edges         mine = { 0 }, all = { 0 };
    int64_t             *counts = NULL;
    int32_t              rc = GR_NEW(context, counts, (SIDES + 1) * (int64_t)comm->n_ranks, error);

    if (rc == GRAFT_OK) rc = make_edges(budget, grid, comm->n_ranks, part, &mine, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(share_counts(comm, &mine, counts, error));
    sum_counts(grid, comm->n_ranks, counts, &all);
    rc = gr_budget_check(budget, 3 * edges_bytes(&all, has_values) + edges_bytes(&mine, has_values), EDGES_NAME, error);
    if (rc == GRAFT_OK) rc = edges_init(context, has_values, &all, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(gather_edges(comm, grid, counts, &mine, &all, error));
    edges_fini(context, &mine);
    rc = gr_comm_agree(comm, make_group(context, grid, comm->n_ranks, &all, made, error), error);
    GR_ASSERT(rc < 0 || gr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
done:
    edges_fini(context, &mine);
    edges_fini(context, &all);
    gr_free(context, counts);
    return rc;
}

int32_t gr_grid_empty(const graft_context *context, int32_t n_ranks, struct gr_made_part *made, graft_error *error)
{
    const graft_csr like = { .size = sizeof like, .index_type = GRAFT_I32, .value_type = GRAFT_F32 };
    int32_t         rc = gr_made_part_halo(context, made, n_ranks, 0, error);

    GR_TRY(rc);
    GR_TRY(gr_csr_init(context, &made->local, &like, 0, 0, 0, error));
    GR_TRY(gr_csr_init(context, &made->remote, &like, 0, 0, 0, error));
    made->part.local = made->local.view;
    made->part.remote = made->remote.view;
done:
    return rc;
}
