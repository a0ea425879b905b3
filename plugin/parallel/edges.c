/* Creates the edges of a group as blocks of rows, and its edges from vertices of other groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/edges.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"

#include <stddef.h>
#include <string.h>

/* Names of sets in errors of the memory budget. */
static const char BLOCKS_NAME[] = "graph (blocks of rows)";
static const char OUTSIDE_NAME[] = "graph (edges from other groups of ranks)";

/* -- memory ------------------------------------------------------------------------------------------------------- */

/* Numbers of rows and entries of the blocks of successive ranks. */
struct sizes {
    int64_t rows, entries;
};

static struct sizes sizes_of(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t first, int32_t end)
{
    struct sizes sizes = { 0 };

    for (int32_t q = first; q < end; q++) {
        sizes.rows += gr_parallel_grid_rows_of(grid, q, set->levels);
        sizes.entries += gr_parallel_edge_entries(set, grid, q, set->levels);
    }
    return sizes;
}

static int64_t ends_count(const struct gr_grid *grid)
{
    return (int64_t)grid->n_groups * grid->columns * (grid->n_levels + 1);
}

static int64_t arrays_bytes(struct sizes sizes, int has_values)
{
    return 4 * (sizes.rows + sizes.entries * (has_values ? 2 : 1));
}

static int64_t set_bytes(const struct gr_edge_set *set, const struct gr_grid *grid)
{
    if (set->ends == NULL) return 0;
    return ends_count(grid) * (int64_t)sizeof *set->ends +
           arrays_bytes(sizes_of(set, grid, set->first, set->first + set->n_held), set->values != NULL);
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
static int32_t arrays_init(const struct gr_budget *budget, struct sizes sizes, int has_values, double more,
                           struct gr_edge_set *set, graft_error *error)
{
    GR_TRY(gr_budget_check(budget, (double)arrays_bytes(sizes, has_values) + more, set->name, error));
    GR_TRY(GR_NEW(budget->context, set->count, sizes.rows, error));
    GR_TRY(GR_NEW(budget->context, set->column, sizes.entries, error));
    if (has_values) return GR_NEW(budget->context, set->values, sizes.entries, error);
    return GRAFT_OK;
}

/* Initialise a set without rows. */
static int32_t set_init(const graft_context *context, const struct gr_grid *grid, int32_t levels, const char *name,
                        struct gr_edge_set *set, graft_error *error)
{
    *set = (struct gr_edge_set){ .name = name, .levels = levels, .first = grid->first + grid->column, .n_held = 1 };
    return GR_NEW(context, set->ends, ends_count(grid), error);
}

struct gr_edge_block gr_parallel_edge_block_of(const struct gr_edge_set *set, const struct gr_grid *grid, int32_t rank,
                                               int32_t prefix)
{
    const struct sizes before = sizes_of(set, grid, set->first, rank);

    GR_ASSERT(rank >= set->first && rank < set->first + set->n_held && prefix <= set->levels);
    return (struct gr_edge_block){ .count = set->count + before.rows,
                                   .column = set->column + before.entries,
                                   .values = set->values != NULL ? set->values + before.entries : NULL,
                                   .rows = gr_parallel_grid_rows_of(grid, rank, prefix),
                                   .entries = gr_parallel_edge_entries(set, grid, rank, prefix) };
}

/* -- the block of this rank --------------------------------------------------------------------------------------- */

/* Share the numbers of entries in the first levels of each rank (gr_edge_set.ends) with all ranks. */
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

/* Which edges a block has: those inside the group, or from other groups, or both. */
struct source {
    const struct gr_part *part;
    const struct gr_halo *halo;   /* halo of the group: columns after the rows; NULL: only edges inside */
    int                   inside; /* the block has the edges inside the group */
};

/* Return the rank, in the column of this rank, that sends the rows of vertices which `rank` of another group owns. */
static int32_t owner_in_column(const struct gr_grid *grid, int32_t rank)
{
    return rank - rank % grid->columns + grid->column;
}

/* Find the column of each vertex of the halo of this rank; -1: the block has no such edges. */
static void find_halo_columns(const struct gr_grid *grid, const struct source *from, int32_t *column)
{
    const struct gr_halo *own = &from->part->halo;
    const int64_t         rows = from->inside ? gr_parallel_grid_rows(grid, grid->n_levels) : 0;

    for (int32_t q = 0; q < grid->n_groups * grid->columns; q++) {
        for (int64_t s = own->start[q]; s < own->start[q + 1]; s++) {
            const int64_t row = gr_parallel_grid_row(grid, q, own->place[s]);

            column[s] = -1;
            if (gr_parallel_grid_has(grid, q) && from->inside) column[s] = (int32_t)row;
            else if (!gr_parallel_grid_has(grid, q) && from->halo != NULL)
                column[s] = (int32_t)(rows + gr_csr_halo_index(from->halo, owner_in_column(grid, q), row));
        }
    }
}

/* Return the number of entries of the block of this rank. */
static int64_t count_block_entries(const struct source *from, const int32_t *halo_column)
{
    int64_t entries = from->inside ? gr_csr_entries(&from->part->local) : 0;

    for (int64_t e = 0; e < gr_csr_entries(&from->part->remote); e++)
        entries += halo_column[gr_csr_column(&from->part->remote, e)] >= 0;
    return entries;
}

static float edge_value(const graft_csr *csr, int64_t entry)
{
    return csr->values != NULL ? ((const float *)csr->values)[entry] : 1;
}

/* Fill the rows of this rank, each with its local entries first. */
static void fill_rows(const struct gr_grid *grid, const struct source *from, const int32_t *halo_column,
                      struct gr_edge_set *set)
{
    const struct gr_part *part = from->part;
    const int32_t         rank = grid->first + grid->column;
    int64_t               at = 0;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        const int64_t begin = at;

        for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1] && from->inside; e++, at++) {
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

static int32_t make_rows(const struct gr_budget *budget, const struct gr_grid *grid, const struct source *from,
                         struct gr_edge_set *set, graft_error *error)
{
    const struct gr_part *part = from->part;
    const double          more = (double)part->halo.count * sizeof(int32_t);
    struct sizes          sizes = { .rows = part->local.n_rows };
    int32_t              *halo_column = NULL, rc = GRAFT_OK;

    GR_TRY_DONE(gr_budget_check(budget, more, set->name, error));
    GR_TRY_DONE(GR_NEW(budget->context, halo_column, part->halo.count, error));
    find_halo_columns(grid, from, halo_column);
    sizes.entries = count_block_entries(from, halo_column);
    GR_TRY_DONE(arrays_init(budget, sizes, part->local.values != NULL, more, set, error));
    fill_rows(grid, from, halo_column, set);
done:
    gr_free(budget->context, halo_column);
    return rc;
}

/* Create the block of this rank, and share the numbers of entries of all ranks. Collective. */
static int32_t make_block(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                          const struct source *from, const char *name, struct gr_edge_set *set, graft_error *error)
{
    int32_t rc = set_init(budget->context, grid, grid->n_levels, name, set, error);

    if (rc == GRAFT_OK) rc = make_rows(budget, grid, from, set, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    return share_ends(comm, grid, set, error);
}

/* -- this rank's block of the transpose --------------------------------------------------------------------------- */

/* An entry of the transpose, sent to the owner of its row. */
struct turned_edge {
    int32_t row, column; /* row of the receiver; column, a row of the group */
    float   value;       /* sent if the graph has values */
};

struct turning {
    const struct gr_grid *grid;
    const struct gr_part *part;
};

static void pack_turned(struct gr_route *route, int32_t to, int64_t row, int32_t column, const graft_csr *csr,
                        int64_t entry)
{
    struct turned_edge *edge = gr_comm_route_item(route, to);

    if (edge == NULL) return;
    edge->row = (int32_t)row;
    edge->column = column;
    if (csr->values != NULL) edge->value = edge_value(csr, entry);
}

/* Pack the entries of the transpose for each rank of the group, row by row of the original. */
static void turn_rows(void *arg, struct gr_route *route)
{
    const struct turning *turning = arg;
    const struct gr_part *part = turning->part;
    const struct gr_grid *grid = turning->grid;
    const int32_t         rank = grid->first + grid->column;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        const int32_t column = (int32_t)gr_parallel_grid_row(grid, rank, row);

        for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1]; e++)
            pack_turned(route, rank, gr_csr_column(&part->local, e), column, &part->local, e);
        for (int64_t e = part->remote.row_ptr[row]; e < part->remote.row_ptr[row + 1]; e++) {
            const int64_t vertex = gr_csr_column(&part->remote, e);
            const int32_t owner = (int32_t)gr_sorted_last(part->halo.start, route->comm->n_ranks, vertex);

            if (gr_parallel_grid_has(grid, owner))
                pack_turned(route, owner, part->halo.place[vertex], column, &part->remote, e);
        }
    }
}

/* Store received entries in the order of columns if `ends` is given, where ends[row] is the position of the next entry
 * of each row; else count the entries of each row. Entries from one rank are in this order, so the levels of all ranks
 * are read one after the other; next[q] is scratch memory. */
static void place_turned(const struct gr_grid *grid, const struct gr_route *route, int64_t *next, int64_t *ends,
                         struct gr_edge_set *set)
{
    memcpy(next, route->in, (uint64_t)route->comm->n_ranks * sizeof *next);
    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
            const int64_t end = grid->place[(int64_t)q * grid->n_levels + level] +
                                gr_parallel_grid_rows_of(grid, q, level + 1) - gr_parallel_grid_rows_of(grid, q, level);

            for (; next[q] < route->in[q + 1]; next[q]++) {
                const struct turned_edge *edge =
                    (const void *)((const char *)route->received + next[q] * route->item_bytes);

                if (edge->column >= end) break;
                if (ends == NULL) {
                    set->count[edge->row]++;
                    continue;
                }
                set->column[ends[edge->row]] = edge->column;
                if (set->values != NULL) set->values[ends[edge->row]] = edge->value;
                ends[edge->row]++;
            }
        }
    }
}

static int32_t fill_turned(const struct gr_budget *budget, const struct gr_grid *grid, const struct gr_route *route,
                           int has_values, struct gr_edge_set *set, graft_error *error)
{
    const struct sizes sizes = { gr_parallel_grid_rows_of(grid, route->comm->rank, grid->n_levels),
                                 gr_comm_route_n_in(route) };
    const double       more =
        (double)(sizes.entries * route->item_bytes) + (double)(sizes.rows + route->comm->n_ranks) * sizeof(int64_t);
    int64_t *ends = NULL, at = 0;
    int32_t  rc = GRAFT_OK;

    GR_TRY_DONE(arrays_init(budget, sizes, has_values, more, set, error));
    GR_TRY_DONE(GR_NEW(budget->context, ends, sizes.rows + route->comm->n_ranks, error));
    place_turned(grid, route, ends + sizes.rows, NULL, set);
    for (int64_t row = 0; row < sizes.rows; at += set->count[row++]) ends[row] = at;
    place_turned(grid, route, ends + sizes.rows, ends, set);
done:
    gr_free(budget->context, ends);
    return rc;
}

/* Create this rank's block of the transpose. Collective. */
static int32_t make_turned(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                           const struct gr_part *part, struct gr_edge_set *set, graft_error *error)
{
    const int       has_values = part->local.values != NULL;
    const int64_t   bytes = has_values ? sizeof(struct turned_edge) : offsetof(struct turned_edge, value);
    struct turning  turning = { grid, part };
    struct gr_route route;
    int32_t         rc = gr_comm_route_init(&route, comm, error);

    if (rc == GRAFT_OK) rc = set_init(budget->context, grid, grid->n_levels, BLOCKS_NAME, set, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_comm_route_count(&route, turn_rows, &turning, error));
    rc = gr_budget_check(budget, (double)((gr_comm_route_n_out(&route) + gr_comm_route_n_in(&route)) * bytes),
                         BLOCKS_NAME, error);
    GR_TRY_DONE(gr_comm_route_deliver(&route, rc, turn_rows, &turning, bytes, error));
    rc = gr_comm_agree(comm, fill_turned(budget, grid, &route, has_values, set, error), error);
done:
    gr_comm_route_fini(&route);
    return rc;
}

int32_t gr_parallel_edge_sets_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                   const struct gr_part *part, const struct gr_halo *halo, int transposed,
                                   struct gr_edge_sets *sets, graft_error *error)
{
    const struct source from = { part, halo, .inside = 1 };

    GR_ASSERT(part->local.values == NULL || part->local.value_type == GRAFT_F32);
    GR_TRY(make_block(budget, comm, grid, &from, BLOCKS_NAME, &sets->whole[GR_FORWARD], error));
    if (!transposed) return GRAFT_OK;
    GR_TRY(make_turned(budget, comm, grid, part, &sets->whole[GR_BACKWARD], error));
    return share_ends(comm, grid, &sets->whole[GR_BACKWARD], error);
}

/* -- the blocks of the group -------------------------------------------------------------------------------------- */

/* Replace the block of this rank by the blocks of its group. `more`: bytes of other temporary memory. */
static int32_t gather_set(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid, double more,
                          struct gr_edge_set *set, graft_error *error)
{
    const int32_t      n = comm->n_ranks, first = grid->first, end = first + grid->columns;
    struct gr_edge_set all = *set;
    int64_t           *counts = NULL; /* [2][n] rows and entries of each rank */
    int32_t            rc = GR_NEW(budget->context, counts, 2 * (int64_t)n, error);

    all.first = first;
    all.n_held = grid->columns;
    all.count = all.column = NULL;
    all.values = NULL;
    if (rc == GRAFT_OK)
        rc = arrays_init(budget, sizes_of(set, grid, first, end), set->values != NULL, more, &all, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    for (int32_t q = 0; q < n; q++) {
        counts[q] = gr_parallel_grid_rows_of(grid, q, set->levels);
        counts[n + q] = gr_parallel_edge_entries(set, grid, q, set->levels);
    }
    GR_TRY_DONE(gr_comm_gather_among(comm, first, end, set->count, counts, sizeof *set->count, all.count, error));
    GR_TRY_DONE(
        gr_comm_gather_among(comm, first, end, set->column, counts + n, sizeof *set->column, all.column, error));
    if (set->values != NULL)
        GR_TRY_DONE(
            gr_comm_gather_among(comm, first, end, set->values, counts + n, sizeof *set->values, all.values, error));
    arrays_fini(budget->context, set);
    *set = all;
done:
    if (rc < 0) arrays_fini(budget->context, &all);
    gr_free(budget->context, counts);
    return rc;
}

int32_t gr_parallel_edge_sets_gather(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                     struct gr_edge_sets *sets, graft_error *error)
{
    for (int d = 0; d < GR_DIRECTIONS; d++)
        if (sets->whole[d].ends != NULL) GR_TRY(gather_set(budget, comm, grid, 0, &sets->whole[d], error));
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++)
        if (sets->back[l].ends != NULL) GR_TRY(gather_set(budget, comm, grid, 0, &sets->back[l], error));
    return GRAFT_OK;
}

/* -- edges from other groups -------------------------------------------------------------------------------------- */

/* List the vertices of other groups in the halo of this rank, as keys: first rank of the group << 32 | row of the
 * group. \return The number of keys. */
static int64_t list_outside(const struct gr_grid *grid, const struct gr_halo *halo, int64_t *keys)
{
    int64_t n = 0;

    for (int32_t q = 0; q < grid->n_groups * grid->columns; q++)
        for (int64_t s = halo->start[q]; s < halo->start[q + 1] && !gr_parallel_grid_has(grid, q); s++)
            keys[n++] = (int64_t)(q - q % grid->columns) << 32 | gr_parallel_grid_row(grid, q, halo->place[s]);
    return n;
}

/* Create the halo of the group from the keys of its ranks. */
static int32_t number_outside(const graft_context *context, const struct gr_grid *grid, int64_t *keys, int64_t count,
                              struct gr_made_part *made, graft_error *error)
{
    const int32_t n_ranks = grid->n_groups * grid->columns;
    const int64_t rows = gr_parallel_grid_rows(grid, grid->n_levels);

    GR_TRY(gr_sort_unique(context, keys, (int64_t)n_ranks << 32, &count, error));
    if (rows + count > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "%d ranks share %lld vertices and a halo of %lld, expected %d at most together", grid->columns,
                       (long long)rows, (long long)count, INT32_MAX);
    for (int64_t i = 0; i < count; i++) keys[i] += (int64_t)grid->column << 32; /* now the rank that sends the row */
    return gr_graph_made_part_key_halo(context, made, n_ranks, keys, count, error);
}

/* Create the halo of the group: the vertices of other groups from which it gathers. Collective. */
static int32_t make_outside_halo(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_grid *grid,
                                 const struct gr_halo *halo, struct gr_made_part *made, graft_error *error)
{
    const graft_context *context = budget->context;
    int64_t             *counts = NULL, *mine = NULL, *all = NULL, n = 0, total = 0;
    int32_t              rc = gr_budget_check(budget, 8 * (double)halo->count, OUTSIDE_NAME, error);

    if (rc == GRAFT_OK) rc = GR_NEW(context, counts, comm->n_ranks, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, mine, halo->count, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    n = list_outside(grid, halo, mine);
    GR_TRY_DONE(gr_comm_allgather(comm, &n, sizeof n, counts, error));
    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) total += counts[q];
    /* Sorting needs a copy of the keys. */
    rc = gr_budget_check(budget, 8 * (double)(halo->count + 2 * total), OUTSIDE_NAME, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, all, total, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    rc = gr_comm_gather_among(comm, grid->first, grid->first + grid->columns, mine, counts, sizeof *mine, all, error);
    GR_TRY_DONE(rc);
    rc = gr_comm_agree(comm, number_outside(context, grid, all, total, made, error), error);
done:
    gr_free(context, counts);
    gr_free(context, mine);
    gr_free(context, all);
    return rc;
}

/* Copy the blocks of the group to a matrix of its rows in the order of the levels. */
static void fill_group(const struct gr_grid *grid, const struct gr_edge_set *set, struct gr_csr *csr)
{
    int32_t *column = csr->col_idx;
    float   *values = csr->values;
    int64_t  to = 0, row = 0;

    for (int32_t level = 0; level < grid->n_levels; level++) {
        for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
            const struct gr_edge_block block = gr_parallel_edge_block_of(set, grid, q, level + 1);
            const int64_t              begin = gr_parallel_edge_entries(set, grid, q, level);
            const uint64_t             n = (uint64_t)(block.entries - begin);

            memcpy(column + to, block.column + begin, n * sizeof *column);
            if (values != NULL) memcpy(values + to, block.values + begin, n * sizeof *values);
            for (int64_t i = gr_parallel_grid_rows_of(grid, q, level); i < block.rows; i++) {
                to += block.count[i];
                csr->row_ptr[++row] = to;
            }
        }
    }
}

/* Create the matrices of the group from its blocks, or without rows if `set` is NULL. */
static int32_t make_group(const struct gr_budget *budget, const struct gr_grid *grid, const struct gr_part *part,
                          const struct gr_edge_set *set, struct gr_made_part *made, graft_error *error)
{
    const int64_t rows = set != NULL ? gr_parallel_grid_rows(grid, grid->n_levels) : 0;
    const int64_t entries = set != NULL ? sizes_of(set, grid, set->first, set->first + set->n_held).entries : 0;
    const double  bytes = (double)gr_csr_copy_bytes(&part->remote, rows, entries);

    if (set != NULL) GR_TRY(gr_budget_check(budget, (double)set_bytes(set, grid) + bytes, OUTSIDE_NAME, error));
    GR_TRY(gr_csr_init(budget->context, &made->local, &part->local, rows, rows, 0, error));
    GR_TRY(gr_csr_init(budget->context, &made->remote, &part->remote, rows, made->part.halo.count, entries, error));
    if (set != NULL) fill_group(grid, set, &made->remote);
    made->part.local = made->local.view;
    made->part.remote = made->remote.view;
    return GRAFT_OK;
}

int32_t gr_parallel_edge_gather_outside(const struct gr_budget *budget, struct gr_comm *comm,
                                        const struct gr_grid *grid, const struct gr_part *part, int has_rows,
                                        struct gr_made_part *made, graft_error *error)
{
    const struct source from = { part, &made->part.halo, .inside = 0 };
    struct gr_edge_set  set = { 0 };
    int32_t             rc = GRAFT_OK;

    GR_TRY_DONE(make_outside_halo(budget, comm, grid, &part->halo, made, error));
    if (has_rows) {
        GR_TRY_DONE(make_block(budget, comm, grid, &from, OUTSIDE_NAME, &set, error));
        GR_TRY_DONE(gather_set(budget, comm, grid, (double)set_bytes(&set, grid), &set, error));
    }
    rc = gr_comm_agree(comm, make_group(budget, grid, part, has_rows ? &set : NULL, made, error), error);
    GR_ASSERT(rc < 0 || gr_csr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
done:
    set_fini(budget->context, &set);
    return rc;
}

/* -- rows of a step ----------------------------------------------------------------------------------------------- */

/* Count the entries of the first rows of this rank's block whose columns are below `n_cols`, and copy them to `set`,
 * unless it is NULL. Entries of a row are sorted. \return The number of entries. */
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
    struct sizes              sizes = { gr_parallel_grid_rows_of(grid, whole->first, prefix + 1), 0 };
    int32_t                   rc = GRAFT_OK;

    if (whole->ends == NULL) return GRAFT_OK;
    GR_ASSERT(whole->n_held == 1);
    sizes.entries = cut_columns(grid, whole, prefix + 1, n_cols, NULL);
    rc = set_init(budget->context, grid, prefix + 1, BLOCKS_NAME, set, error);
    if (rc == GRAFT_OK) rc = arrays_init(budget, sizes, whole->values != NULL, 0, set, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    cut_columns(grid, whole, prefix + 1, n_cols, set);
    return share_ends(comm, grid, set, error);
}
