/* The edges of a group as blocks of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/edges.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* Their name in refusals of the memory budget. */
static const char BLOCKS_NAME[] = "graph (blocks of rows)";

/* -- memory ------------------------------------------------------------------------------------------------------- */

static int64_t rows_held(const struct gr_edge_set *set, const struct gr_grid *grid)
{
    int64_t rows = 0;

    for (int32_t q = set->first; q < set->first + set->n_held; q++)
        rows += gr_parallel_grid_rows_of(grid, q, set->levels);
    return rows;
}

static int64_t entries_held(const struct gr_edge_set *set, const struct gr_grid *grid)
{
    int64_t entries = 0;

    for (int32_t q = set->first; q < set->first + set->n_held; q++)
        entries += gr_parallel_edge_entries(set, grid, q, set->levels);
    return entries;
}

static int64_t ends_count(const struct gr_grid *grid)
{
    return (int64_t)grid->n_groups * grid->columns * (grid->n_levels + 1);
}

static int64_t bytes_of_ranks(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t first, int32_t end)
{
    int64_t bytes = 0;

    for (int32_t q = first; q < end && set->ends != NULL; q++)
        bytes += gr_parallel_edge_block_bytes(set, grid, q, set->levels);
    return bytes;
}

static int64_t set_bytes(const struct gr_edge_set *set, const struct gr_grid *grid)
{
    if (set->ends == NULL) return 0;
    return ends_count(grid) * (int64_t)sizeof *set->ends +
           bytes_of_ranks(set, grid, set->first, set->first + set->n_held);
}

int64_t gr_parallel_edge_sets_bytes(const struct gr_edge_sets *sets, const struct gr_grid *grid)
{
    int64_t bytes = 0;

    for (int d = 0; d < GR_DIRECTIONS; d++) bytes += set_bytes(&sets->whole[d], grid);
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) bytes += set_bytes(&sets->back[l], grid);
    return bytes;
}

static void arrays_fini(const graft_context *context, struct gr_edge_set *set)
{
    gr_free(context, set->count);
    gr_free(context, set->column);
    gr_free(context, set->values);
    set->count = set->column = NULL;
    set->values = NULL;
}

static void set_fini(const graft_context *context, struct gr_edge_set *set)
{
    arrays_fini(context, set);
    gr_free(context, set->ends);
    *set = (struct gr_edge_set){ 0 };
}

void gr_parallel_edge_sets_fini(const graft_context *context, struct gr_edge_sets *sets)
{
    for (int d = 0; d < GR_DIRECTIONS; d++) set_fini(context, &sets->whole[d]);
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) set_fini(context, &sets->back[l]);
}

/* Allocate rows and entries, if they and `more` bytes fit the budget. */
static int32_t arrays_init(const struct gr_budget *budget, int64_t rows, int64_t entries, int has_values, double more,
                           struct gr_edge_set *set, graft_error *error)
{
    const double bytes = 4.0 * ((double)rows + (double)entries * (has_values ? 2 : 1));
    int32_t      rc = gr_budget_check(budget, bytes + more, BLOCKS_NAME, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(GR_NEW(budget->context, set->count, rows, error));
    GR_TRY_DONE(GR_NEW(budget->context, set->column, entries, error));
    if (has_values) rc = GR_NEW(budget->context, set->values, entries, error);
done:
    return rc;
}

/* A set without arrays. */
static int32_t set_init(const graft_context *context, const struct gr_grid *grid, int32_t levels,
                        struct gr_edge_set *set, graft_error *error)
{
    *set = (struct gr_edge_set){ .levels = levels, .first = grid->first + grid->column, .n_held = 1 };
    return GR_NEW(context, set->ends, ends_count(grid), error);
}

struct gr_edge_block gr_parallel_edge_block_of(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix)
{
    int64_t row = 0, entry = 0;

    GR_ASSERT(gr_parallel_edge_set_holds(set, rank) && prefix <= set->levels);
    for (int32_t q = set->first; q < rank; q++) {
        row += gr_parallel_grid_rows_of(grid, q, set->levels);
        entry += gr_parallel_edge_entries(set, grid, q, set->levels);
    }
    return (struct gr_edge_block){ .count = set->count + row,
                                   .column = set->column + entry,
                                   .values = set->values != NULL ? set->values + entry : NULL,
                                   .rows = gr_parallel_grid_rows_of(grid, rank, prefix),
                                   .entries = gr_parallel_edge_entries(set, grid, rank, prefix) };
}

/* -- the block of this rank --------------------------------------------------------------------------------------- */

/* All ranks learn the number of entries in the first levels of each rank. This rank has its own rows. */
static int32_t share_ends(struct gr_comm *comm, const struct gr_grid *grid, struct gr_edge_set *set, graft_error *error)
{
    const int32_t rank = comm->rank;
    int64_t      *mine = set->ends + (int64_t)rank * (grid->n_levels + 1), row = 0;

    mine[0] = 0;
    for (int32_t level = 0; level < grid->n_levels; level++) {
        mine[level + 1] = mine[level];
        for (; row < gr_parallel_grid_rows_of(grid, rank, level + 1) && level < set->levels; row++)
            mine[level + 1] += set->count[row];
    }
    return gr_comm_allgather(comm, mine, (uint64_t)(grid->n_levels + 1) * sizeof *mine, set->ends, error);
}

/* The rank that has a vertex of the halo; `from` is this owner or an earlier rank. */
static int32_t halo_owner(const struct gr_part *part, int64_t vertex, int32_t from)
{
    while (vertex >= part->halo.start[from + 1]) from++;
    return from;
}

/* The column of a vertex of another group, after the rows of this group. */
static int32_t beyond_column(const struct gr_grid *grid, const struct gr_halo *halo, int32_t rank, int64_t row)
{
    const int32_t owner = rank - rank % grid->columns + grid->column;
    int64_t       begin = halo->start[owner], end = halo->start[owner + 1];

    while (begin + 1 < end) {
        const int64_t middle = begin + (end - begin) / 2;

        if (halo->place[middle] <= row) begin = middle;
        else end = middle;
    }
    GR_ASSERT(halo->place[begin] == row);
    return (int32_t)(gr_parallel_grid_rows(grid, grid->n_levels) + begin);
}

/* For each vertex of the halo of this rank, its column in the group; -1: no column. */
static void find_halo_columns(const struct gr_grid *grid, const struct gr_part *part, const struct gr_halo *halo,
                              int32_t *column)
{
    for (int32_t q = 0; q < grid->n_groups * grid->columns; q++) {
        for (int64_t s = part->halo.start[q]; s < part->halo.start[q + 1]; s++) {
            const int64_t row = gr_parallel_grid_row(grid, q, part->halo.place[s]);

            if (gr_parallel_grid_has(grid, q)) column[s] = (int32_t)row;
            else column[s] = halo != NULL ? beyond_column(grid, halo, q, row) : -1;
        }
    }
}

/* Entries of the block of this rank. */
static int64_t count_block_entries(const struct gr_part *part, const int32_t *halo_column)
{
    int64_t entries = gr_csr_entries(&part->local);

    for (int64_t e = 0; e < gr_csr_entries(&part->remote); e++)
        entries += halo_column[gr_csr_column(&part->remote, e)] >= 0;
    return entries;
}

static float edge_value(const graft_csr *csr, int64_t entry)
{
    return csr->values != NULL ? ((const float *)csr->values)[entry] : 1;
}

/* The rows of this rank, each with its local entries first. */
static void fill_rows(const struct gr_grid *grid, const struct gr_part *part, const int32_t *halo_column,
                      struct gr_edge_set *set)
{
    const int32_t rank = grid->first + grid->column;
    int64_t       at = 0;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        const int64_t begin = at;

        for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1]; e++, at++) {
            set->column[at] = (int32_t)gr_parallel_grid_row(grid, rank, gr_csr_column(&part->local, e));
            if (set->values != NULL) set->values[at] = edge_value(&part->local, e);
        }
        for (int64_t e = part->remote.row_ptr[row]; e < part->remote.row_ptr[row + 1]; e++) {
            const int32_t column = halo_column[gr_csr_column(&part->remote, e)];

            if (column < 0) continue;
            set->column[at] = column;
            if (set->values != NULL) set->values[at] = edge_value(&part->remote, e);
            at++;
        }
        set->count[row] = (int32_t)(at - begin);
    }
}

static int32_t make_rows(const struct gr_budget *budget, const struct gr_grid *grid, const struct gr_part *part,
                         const struct gr_halo *halo, struct gr_edge_set *set, graft_error *error)
{
    const double more = (double)part->halo.count * sizeof(int32_t);
    int32_t     *halo_column = NULL, rc = set_init(budget->context, grid, grid->n_levels, set, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_budget_check(budget, more, BLOCKS_NAME, error));
    GR_TRY_DONE(GR_NEW(budget->context, halo_column, part->halo.count, error));
    find_halo_columns(grid, part, halo, halo_column);
    GR_TRY_DONE(arrays_init(budget, part->local.n_rows, count_block_entries(part, halo_column),
                            part->local.values != NULL, more, set, error));
    fill_rows(grid, part, halo_column, set);
done:
    gr_free(budget->context, halo_column);
    return rc;
}

/* -- the block of this rank of the transpose ---------------------------------------------------------------------- */

/* An entry for the owner of its column. */
struct turned_edge {
    int32_t row, column; /* of the receiver, and in the group */
};

struct turned_edges {
    int64_t            *start[2]; /* [n_ranks + 1] of the entries to and from each rank */
    int64_t            *cursor;   /* [n_ranks] */
    struct turned_edge *edge[2];
    float              *value[2]; /* NULL: there are none */
};

static double turned_bytes(const struct turned_edges *t, int side, int32_t n_ranks, int has_values)
{
    return (double)t->start[side][n_ranks] * (double)(sizeof **t->edge + (has_values ? sizeof **t->value : 0));
}

static void turned_edges_fini(const graft_context *context, struct turned_edges *t)
{
    for (int i = 0; i < 2; i++) {
        gr_free(context, t->start[i]);
        gr_free(context, t->edge[i]);
        gr_free(context, t->value[i]);
    }
    gr_free(context, t->cursor);
}

static void put_turned(struct turned_edges *t, int64_t at, int32_t row, int32_t column, float value)
{
    t->edge[0][at] = (struct turned_edge){ row, column };
    if (t->value[0] != NULL) t->value[0][at] = value;
}

/* Count the entries to each rank of the group, and with `writes` write them, row by row. */
static void turn_rows(const struct gr_grid *grid, const struct gr_part *part, struct turned_edges *t, int writes)
{
    const int32_t rank = grid->first + grid->column;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        const int32_t column = (int32_t)gr_parallel_grid_row(grid, rank, row);

        for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1]; e++) {
            const int64_t at = t->cursor[rank]++;

            if (writes) put_turned(t, at, (int32_t)gr_csr_column(&part->local, e), column, edge_value(&part->local, e));
        }
        for (int64_t e = part->remote.row_ptr[row]; e < part->remote.row_ptr[row + 1]; e++) {
            const int64_t vertex = gr_csr_column(&part->remote, e);
            const int32_t owner = halo_owner(part, vertex, 0);
            int64_t       at;

            if (!gr_parallel_grid_has(grid, owner)) continue;
            at = t->cursor[owner]++;
            if (writes) put_turned(t, at, part->halo.place[vertex], column, edge_value(&part->remote, e));
        }
    }
}

/* The entries to and from each rank. */
static int32_t share_turned(struct gr_comm *comm, struct turned_edges *t, int64_t *counts, graft_error *error)
{
    const int64_t n = comm->n_ranks;

    GR_TRY(gr_comm_alltoall(comm, t->cursor, sizeof *t->cursor, counts, error));
    for (int64_t q = 0; q < n; q++) {
        t->start[0][q + 1] = t->start[0][q] + t->cursor[q];
        t->start[1][q + 1] = t->start[1][q] + counts[q];
    }
    memcpy(t->cursor, t->start[0], (uint64_t)n * sizeof *t->cursor);
    return GRAFT_OK;
}

/* Entries of a row must be in the order of their columns. Entries from one rank are in this order, so the levels of all
 * ranks are read one after the other. With `ends`, the place of each row, write; else count. */
static void place_turned(const struct gr_grid *grid, int32_t n_ranks, struct turned_edges *t, int64_t *ends,
                         struct gr_edge_set *set)
{
    memcpy(t->cursor, t->start[1], (uint64_t)n_ranks * sizeof *t->cursor);
    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
            const int64_t end = grid->place[(int64_t)q * grid->n_levels + level] +
                                gr_parallel_grid_rows_of(grid, q, level + 1) - gr_parallel_grid_rows_of(grid, q, level);

            for (; t->cursor[q] < t->start[1][q + 1] && t->edge[1][t->cursor[q]].column < end; t->cursor[q]++) {
                const struct turned_edge *edge = &t->edge[1][t->cursor[q]];

                if (ends == NULL) {
                    set->count[edge->row]++;
                    continue;
                }
                set->column[ends[edge->row]] = edge->column;
                if (set->values != NULL) set->values[ends[edge->row]] = t->value[1][t->cursor[q]];
                ends[edge->row]++;
            }
        }
    }
}

static int32_t fill_turned(const struct gr_budget *budget, const struct gr_grid *grid, int32_t n_ranks, int has_values,
                           struct turned_edges *t, struct gr_edge_set *set, graft_error *error)
{
    const int64_t rows = gr_parallel_grid_rows_of(grid, grid->first + grid->column, grid->n_levels);
    int64_t      *ends = NULL, at = 0;
    int32_t       rc = GRAFT_OK;

    gr_free(budget->context, t->edge[0]);
    gr_free(budget->context, t->value[0]);
    t->edge[0] = NULL;
    t->value[0] = NULL;
    GR_TRY_DONE(arrays_init(budget, rows, t->start[1][n_ranks], has_values,
                            turned_bytes(t, 1, n_ranks, has_values) + (double)rows * sizeof *ends, set, error));
    GR_TRY_DONE(GR_NEW(budget->context, ends, rows, error));
    if (rows > 0) memset(set->count, 0, (uint64_t)rows * sizeof *set->count);
    place_turned(grid, n_ranks, t, NULL, set);
    for (int64_t row = 0; row < rows; at += set->count[row++]) ends[row] = at;
    place_turned(grid, n_ranks, t, ends, set);
done:
    gr_free(budget->context, ends);
    return rc;
}

static int32_t turned_edges_init(const graft_context *context, int32_t n_ranks, int64_t **counts,
                                 struct turned_edges *t, graft_error *error)
{
    for (int i = 0; i < 2; i++) GR_TRY(GR_NEW(context, t->start[i], n_ranks + 1, error));
    GR_TRY(GR_NEW(context, t->cursor, n_ranks, error));
    return GR_NEW(context, *counts, n_ranks, error);
}

/* Collective. */
static int32_t make_turned(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                           const struct gr_part *part, struct gr_edge_set *set, graft_error *error)
{
    const graft_context *context = budget->context;
    const int            has_values = part->local.values != NULL;
    const int32_t        n = comm->n_ranks;
    struct turned_edges  t = { 0 };
    int64_t             *counts = NULL;
    int32_t              rc = set_init(context, grid, grid->n_levels, set, error);

    if (rc == GRAFT_OK) rc = turned_edges_init(context, n, &counts, &t, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    turn_rows(grid, part, &t, 0);
    GR_TRY_DONE(share_turned(comm, &t, counts, error));
    rc = gr_budget_check(budget, turned_bytes(&t, 0, n, has_values) + turned_bytes(&t, 1, n, has_values), BLOCKS_NAME,
                         error);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        rc = GR_NEW(context, t.edge[i], t.start[i][n], error);
        if (rc == GRAFT_OK && has_values) rc = GR_NEW(context, t.value[i], t.start[i][n], error);
    }
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    turn_rows(grid, part, &t, 1);
    GR_TRY_DONE(gr_comm_alltoallv(comm, t.edge[0], t.start[0], t.edge[1], t.start[1], sizeof **t.edge, error));
    if (has_values)
        GR_TRY_DONE(gr_comm_alltoallv(comm, t.value[0], t.start[0], t.value[1], t.start[1], sizeof **t.value, error));
    rc = fill_turned(budget, grid, n, has_values, &t, set, error);
    rc = gr_comm_agree(comm, rc, error);
done:
    turned_edges_fini(context, &t);
    gr_free(context, counts);
    return rc;
}

int32_t gr_parallel_edge_sets_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   const struct gr_part *part, const struct gr_halo *halo, int transposed,
                                   struct gr_edge_sets *sets, graft_error *error)
{
    int32_t rc = make_rows(budget, grid, part, halo, &sets->whole[GR_FORWARD], error);

    GR_ASSERT(part->local.values == NULL || part->local.value_type == GRAFT_F32);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(share_ends(comm, grid, &sets->whole[GR_FORWARD], error));
    if (!transposed) return GRAFT_OK;
    GR_TRY(make_turned(budget, comm, grid, part, &sets->whole[GR_BACKWARD], error));
    return share_ends(comm, grid, &sets->whole[GR_BACKWARD], error);
}

/* -- the blocks of the group -------------------------------------------------------------------------------------- */

static int32_t gather_set(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                          int64_t *counts, struct gr_edge_set *set, graft_error *error)
{
    const int32_t      n = comm->n_ranks, first = grid->first, end = first + grid->columns;
    struct gr_edge_set all = { .levels = set->levels, .first = first, .n_held = grid->columns, .ends = set->ends };
    int32_t            rc =
        arrays_init(budget, rows_held(&all, grid), entries_held(&all, grid), set->values != NULL, 0, &all, error);

    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    for (int32_t q = 0; q < n; q++) counts[q] = gr_parallel_grid_rows_of(grid, q, set->levels);
    GR_TRY_DONE(gr_comm_gather_among(comm, first, end, set->count, counts, sizeof *set->count, all.count, error));
    for (int32_t q = 0; q < n; q++) counts[q] = gr_parallel_edge_entries(set, grid, q, set->levels);
    GR_TRY_DONE(gr_comm_gather_among(comm, first, end, set->column, counts, sizeof *set->column, all.column, error));
    if (set->values != NULL)
        GR_TRY_DONE(
            gr_comm_gather_among(comm, first, end, set->values, counts, sizeof *set->values, all.values, error));
    arrays_fini(budget->context, set);
    *set = all;
    return GRAFT_OK;
done:
    arrays_fini(budget->context, &all);
    return rc;
}

int32_t gr_parallel_edge_sets_gather(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                     struct gr_edge_sets *sets, graft_error *error)
{
    int64_t *counts = NULL;
    int32_t  rc = gr_comm_agree(comm, GR_NEW(budget->context, counts, comm->n_ranks, error), error);

    for (int d = 0; d < GR_DIRECTIONS && rc == GRAFT_OK; d++)
        if (sets->whole[d].ends != NULL) rc = gather_set(budget, comm, grid, counts, &sets->whole[d], error);
    for (int32_t l = 0; l < GR_LAYERS_MAX && rc == GRAFT_OK; l++)
        if (sets->back[l].ends != NULL) rc = gather_set(budget, comm, grid, counts, &sets->back[l], error);
    gr_free(budget->context, counts);
    return rc;
}

/* -- rows of a step ----------------------------------------------------------------------------------------------- */

/* Of the first rows of the own block, the entries whose columns are below `n_cols`. Entries of a row are sorted. With
 * `set`, write them. \return Their number. */
static int64_t cut_columns(const struct gr_grid *grid, const struct gr_edge_set *whole, int32_t levels, int64_t n_cols,
                           struct gr_edge_set *set)
{
    const struct gr_edge_block from = gr_parallel_edge_block_of(whole, grid, whole->first, levels);
    int64_t                    to = 0;

    for (int64_t row = 0, at = 0; row < from.rows; at += from.count[row++]) {
        int32_t n = 0;

        while (n < from.count[row] && from.column[at + n] < n_cols) n++;
        if (set != NULL) {
            set->count[row] = n;
            if (n > 0) memcpy(set->column + to, from.column + at, (uint64_t)n * sizeof *set->column);
            if (n > 0 && set->values != NULL)
                memcpy(set->values + to, from.values + at, (uint64_t)n * sizeof *set->values);
        }
        to += n;
    }
    return to;
}

int32_t gr_parallel_edge_sets_mask(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t layer, int32_t prefix, struct gr_edge_sets *sets, graft_error *error)
{
    const struct gr_edge_set *whole = &sets->whole[GR_BACKWARD];
    struct gr_edge_set       *set = &sets->back[layer];
    const int64_t             n_cols = gr_parallel_grid_rows(grid, prefix);
    int32_t                   rc = GRAFT_OK;

    if (whole->ends == NULL) return GRAFT_OK;
    rc = set_init(budget->context, grid, prefix + 1, set, error);

    GR_ASSERT(whole->n_held == 1);
    if (rc == GRAFT_OK)
        rc = arrays_init(budget, rows_held(set, grid), cut_columns(grid, whole, prefix + 1, n_cols, NULL),
                         whole->values != NULL, 0, set, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    cut_columns(grid, whole, prefix + 1, n_cols, set);
    return share_ends(comm, grid, set, error);
}
