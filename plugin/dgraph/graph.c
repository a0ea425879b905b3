/* Creates graphs over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/graph.h"
#include "base/assert.h"
#include "base/memory.h"
#include "comm/compare_options.h"
#include "dgraph/options.h"
#include "partition/options.h"

#include <stdio.h>
#include <string.h>

/* Sizes and settings of the slice of a rank, which all ranks gather and check. */
struct slice_record {
    int64_t n_vertices, first_row, n_rows, n_edges;
    int32_t value_type;
    int32_t has_owner;
};

int32_t gr_graph_slice_check(const graft_context *context, const graft_slice *slice, graft_error *error)
{
    const graft_csr *rows = slice->rows;

    if (slice->n_vertices < 0 || slice->first_row < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "slice: n_vertices is %lld and first_row is %lld, expected at least 0",
                       (long long)slice->n_vertices, (long long)slice->first_row);
    if (rows == NULL) return GRAFT_OK;
    GR_TRY(gr_csr_check(rows, "slice.rows", 0, gr_context_threads(context, 0), error));
    if (rows->n_cols != slice->n_vertices || rows->n_rows > slice->n_vertices - slice->first_row)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "slice: rows is %lld x %lld and begins at row %lld, expected a slice of %lld x %lld",
                       (long long)rows->n_rows, (long long)rows->n_cols, (long long)slice->first_row,
                       (long long)slice->n_vertices, (long long)slice->n_vertices);
    return GRAFT_OK;
}

static struct slice_record record_of(const graft_slice *slice)
{
    struct slice_record r = { .n_vertices = slice->n_vertices, .first_row = slice->first_row };

    r.n_rows = slice->rows != NULL ? slice->rows->n_rows : 0;
    r.n_edges = r.n_rows > 0 ? gr_csr_entries(slice->rows) : 0;
    r.value_type = r.n_edges > 0 && slice->rows->values != NULL ? slice->rows->value_type : 0;
    r.has_owner = slice->owner != NULL;
    return r;
}

/* Check that rank `p` states the same number as rank `q`, the first rank that states one. */
static int32_t compare_numbers(const char *what, int32_t q, int64_t of_q, int32_t p, int64_t of_p, graft_error *error)
{
    if (of_p == of_q) return GRAFT_OK;
    gr_fail(error, GRAFT_ERR_ARG, "the ranks disagree: %s is %lld on rank %d, %lld on rank %d", what, (long long)of_q,
            q, (long long)of_p, p);
    error->rank = p;
    return error->code;
}

/* Check that the slice of rank `p` begins where the slices before it end, and that the last slice ends with the
 * graph. */
static int32_t check_slice_range(const struct slice_record *r, int32_t p, int32_t n_ranks, int64_t end,
                                 graft_error *error)
{
    const int64_t last = r[p].first_row + r[p].n_rows;

    if (r[p].first_row != end) {
        gr_fail(error, GRAFT_ERR_ARG,
                "the slice of rank %d begins at row %lld, but the slices before it end at %lld: %s", p,
                (long long)r[p].first_row, (long long)end,
                r[p].first_row < end ? "they overlap" : "there is a gap between them");
    } else if (p + 1 == n_ranks && last != r[p].n_vertices) {
        gr_fail(error, GRAFT_ERR_ARG, "the slice of the last rank, %d, ends at row %lld of %lld, expected the last row",
                p, (long long)last, (long long)r[p].n_vertices);
    } else {
        return GRAFT_OK;
    }
    error->rank = p;
    return error->code;
}

/* Check the records of all slices. All ranks check the same records, so all find the same error. The first row does not
 * matter on a rank without rows, nor does the type of values on a rank without edges. */
static int32_t check_records(struct slice_record *r, int32_t n_ranks, graft_error *error)
{
    int32_t with_rows = -1, with_values = -1;
    int64_t end = 0;

    for (int32_t p = 0; p < n_ranks; p++) {
        GR_TRY(compare_numbers("n_vertices", 0, r[0].n_vertices, p, r[p].n_vertices, error));
        if (r[p].n_rows == 0) r[p].first_row = end;
        GR_TRY(check_slice_range(r, p, n_ranks, end, error));
        end += r[p].n_rows;
        if (r[p].n_rows > 0 && with_rows < 0) with_rows = p;
        if (r[p].n_edges > 0 && with_values < 0) with_values = p;
        if (r[p].n_rows > 0)
            GR_TRY(compare_numbers("whether owners are given", with_rows, r[with_rows].has_owner, p, r[p].has_owner,
                                   error));
        if (r[p].n_edges > 0)
            GR_TRY(compare_numbers("the type of values", with_values, r[with_values].value_type, p, r[p].value_type,
                                   error));
    }
    return GRAFT_OK;
}

static int32_t allocate_graph(graft_graph *g, const graft_slice *slice, struct slice_record **records,
                              graft_error *error)
{
    const graft_context *context = g->context;
    const int64_t        n_ranks = g->comm->n_ranks;

    g->n_vertices = slice->n_vertices;
    g->n_slice = slice->rows != NULL ? slice->rows->n_rows : 0;
    GR_TRY(GR_NEW(context, *records, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->share, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->first, n_ranks + 1, error));
    GR_TRY(gr_comm_route_init(&g->slice.route, g->comm, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->part.halo.start, n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->slice.owner, g->n_slice, error));
    return GR_POOL_NEW(context, &g->pool, g->slice.packed, g->n_slice, error);
}

/* Gather the records of all slices, and check that the slices make up one graph. */
static int32_t join_slices(graft_graph *g, const graft_slice *slice, graft_error *error)
{
    struct slice_record *records = NULL, mine = record_of(slice);
    const int32_t        n_ranks = g->comm->n_ranks;
    int32_t              rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_agree(g->comm, allocate_graph(g, slice, &records, error), error));
    GR_TRY_DONE(gr_comm_compare_options(g->context, g->comm, gr_graph_option_bits(g->context), error));
    if (g->comm->rank == 0) gr_options_report(g->context, gr_graph_option_bits(g->context), n_ranks);
    GR_TRY_DONE(gr_comm_allgather(g->comm, &mine, sizeof mine, records, error));
    GR_TRY_DONE(check_records(records, n_ranks, error));
    for (int32_t p = 0; p < n_ranks; p++) {
        g->share[p].n_slice = records[p].n_rows;
        g->share[p].n_edges = records[p].n_edges;
        g->first[p + 1] = g->first[p] + records[p].n_rows;
        if (records[p].n_edges > 0) g->value_type = records[p].value_type;
        if (records[p].n_rows > 0 && records[p].has_owner) g->division.is_given = 1;
    }
done:
    gr_free(g->context, records);
    return rc;
}

/* A row in a message. Its edges follow in other messages. */
struct row {
    int64_t vertex, n_edges;
};

/* Rows and edges that are sent to their owners. */
struct row_parcel {
    struct gr_route edges;
    struct row     *row, *row_in;     /* rows packed, and received */
    int64_t        *col, *col_in;     /* columns of the edges, packed and received */
    char           *value, *value_in; /* values of the edges, packed and received */
    int64_t        *row_ptr;          /* [n_owned + 1] row pointers of the received rows */
};

static void row_parcel_fini(const struct gr_comm *comm, struct row_parcel *p)
{
    void *const blocks[] = { p->row, p->row_in, p->col, p->col_in, p->value, p->value_in, p->row_ptr };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(comm->context, blocks[i]);
    gr_comm_route_fini(&p->edges);
    *p = (struct row_parcel){ 0 };
}

/* Find the destination of each row, and its index among the packed rows. */
static int32_t route_rows(graft_graph *g, graft_error *error)
{
    for (int64_t i = 0; i < g->n_slice; i++) g->slice.route.out[g->slice.owner[i] + 1]++;
    GR_TRY(gr_comm_route_plan(&g->slice.route, error));
    for (int64_t i = 0; i < g->n_slice; i++)
        g->slice.packed[i] = gr_comm_route_take(&g->slice.route, g->slice.owner[i], 1);
    gr_comm_route_rewind(&g->slice.route);
    g->n_owned = gr_comm_route_n_in(&g->slice.route);
    return GRAFT_OK;
}

static int32_t allocate_parcel(graft_graph *g, struct row_parcel *p, graft_error *error)
{
    const int64_t bytes = gr_dtype_bytes(g->value_type);
    const int64_t n_out = gr_comm_route_n_out(&p->edges), n_in = gr_comm_route_n_in(&p->edges);

    if (g->n_owned > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "a rank would own %lld vertices, expected at most %d",
                       (long long)g->n_owned, INT32_MAX);
    GR_TRY(GR_POOL_NEW(g->context, &g->pool, g->vertex, g->n_owned, error));
    GR_TRY(GR_NEW(g->context, p->row_ptr, g->n_owned + 1, error));
    GR_TRY(GR_NEW(g->context, p->row, g->n_slice, error));
    GR_TRY(GR_NEW(g->context, p->row_in, g->n_owned, error));
    GR_TRY(GR_NEW(g->context, p->col, n_out, error));
    GR_TRY(GR_NEW(g->context, p->col_in, n_in, error));
    GR_TRY(GR_NEW(g->context, p->value, n_out * bytes, error));
    return GR_NEW(g->context, p->value_in, n_in * bytes, error);
}

/* Pack rows and columns. Columns are sent as int64, because the index types of the ranks may differ. */
static void pack_rows(const graft_graph *g, const graft_slice *slice, struct row_parcel *p)
{
    for (int64_t i = 0; i < g->n_slice; i++) {
        const int64_t begin = slice->rows->row_ptr[i], n_edges = slice->rows->row_ptr[i + 1] - begin;
        int64_t      *col = p->col + gr_comm_route_take(&p->edges, g->slice.owner[i], n_edges);

        p->row[g->slice.packed[i]] = (struct row){ slice->first_row + i, n_edges };
        for (int64_t e = 0; e < n_edges; e++) col[e] = gr_csr_column(slice->rows, begin + e);
    }
    gr_comm_route_rewind(&p->edges);
}

/* Send the rows to their owners. They arrive in the order of vertices: the slices are in the order of ranks, and the
 * rows of a slice stay in order. */
static int32_t deliver_rows(graft_graph *g, const graft_slice *slice, struct row_parcel *p, graft_error *error)
{
    const int64_t *row_ptr = slice->rows != NULL ? slice->rows->row_ptr : NULL;

    GR_TRY(gr_comm_agree(g->comm, gr_comm_route_init(&p->edges, g->comm, error), error));
    GR_TRY(route_rows(g, error));
    GR_TRY(gr_graph_route_edges(g, row_ptr, &p->edges, error));
    GR_TRY(gr_comm_agree(g->comm, allocate_parcel(g, p, error), error));
    pack_rows(g, slice, p);
    GR_TRY(gr_comm_route_send(&g->slice.route, p->row, p->row_in, sizeof *p->row, error));
    GR_TRY(gr_comm_route_send(&p->edges, p->col, p->col_in, sizeof *p->col, error));
    if (g->value_type != 0)
        GR_TRY(gr_graph_send_edges(g, row_ptr, &p->edges, slice->rows != NULL ? slice->rows->values : NULL,
                                   gr_dtype_bytes(g->value_type), p->value, p->value_in, error));
    for (int64_t i = 0; i < g->n_owned; i++) {
        g->vertex[i] = p->row_in[i].vertex;
        p->row_ptr[i + 1] = p->row_ptr[i] + p->row_in[i].n_edges;
    }
    gr_free(g->context, p->col);
    gr_free(g->context, p->value);
    p->col = NULL;
    p->value = NULL;
    return GRAFT_OK;
}

int32_t gr_graph_share(const graft_graph *g, const struct gr_part *part, struct gr_share *share, graft_error *error)
{
    struct gr_share mine = { .n_slice = g->n_slice, .n_owned = g->n_owned, .n_halo = part->halo.count };

    for (int64_t i = 0; i < g->n_slice; i++) mine.n_moved += g->slice.owner[i] != g->comm->rank;
    mine.n_cut = gr_csr_entries(&part->remote);
    mine.n_edges = gr_csr_entries(&part->local) + mine.n_cut;
    return gr_comm_allgather(g->comm, &mine, sizeof mine, share, error);
}

static int32_t distribute(graft_graph *g, const graft_slice *slice, graft_error *error)
{
    struct row_parcel parcel = { 0 };
    int32_t           rc = GRAFT_OK;

    GR_TRY_DONE(join_slices(g, slice, error));
    if (g->value_type != 0) g->slice.digest = gr_graph_slice_digest(slice->rows);
    GR_TRY_DONE(gr_graph_owner_find(g, slice, error));
    GR_TRY_DONE(deliver_rows(g, slice, &parcel, error));
    GR_TRY_DONE(gr_graph_split(g, slice, parcel.row_ptr, parcel.col_in, parcel.value_in, error));
    GR_TRY_DONE(gr_graph_share(g, &g->part, g->share, error));
    if (gr_graph_is_in_place(g)) {
        gr_free(g->context, g->slice.row_ptr);
        g->slice.row_ptr = NULL;
    }
done:
    row_parcel_fini(g->comm, &parcel);
    return rc;
}

uint32_t gr_graph_option_bits(const graft_context *context)
{
    return gr_options_bit(context, &gr_partition_option_table) | gr_options_bit(context, &gr_dgraph_option_table);
}

int32_t gr_graph_create(graft_context *context, struct gr_comm *comm, const struct gr_workload *workload,
                        const graft_slice *slice, graft_graph **graph, graft_error *error)
{
    graft_graph *made = NULL;
    int32_t      rc = GR_NEW(context, made, 1, error);

    if (rc == GRAFT_OK) {
        made->context = context;
        made->comm = comm;
        made->division.workload = *workload;
        made->references = 1;
    }
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(distribute(made, slice, error));
    GR_ASSERT(gr_csr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
    *graph = made;
    made = NULL;
done:
    gr_graph_destroy(made);
    return rc;
}

void gr_graph_destroy(graft_graph *g)
{
    if (g == NULL || --g->references > 0) return;
    gr_csr_fini(g->context, &g->local);
    gr_csr_fini(g->context, &g->remote);
    gr_free(g->context, g->slice.row_ptr);
    gr_pool_fini(g->context, &g->pool);
    gr_comm_route_fini(&g->slice.route);
    gr_comm_destroy(g->own_comm);
    gr_free(g->context, g);
}
