/* The halo of a graph as an object of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/halo.h"

#include "base/memory.h"
#include "comm/compare_options.h"

/* The ranks that share rows with this rank, and the first row of each. */
static int32_t list_neighbours(graft_halo *h, graft_error *error)
{
    const int64_t *in = h->rows.halo->start, *out = h->rows.links.send_start;
    const int32_t  n_ranks = h->graph->comm->n_ranks;
    int32_t        rc = GRAFT_OK;

    GR_TRY(GR_NEW(h->context, h->neighbour, n_ranks, error));
    GR_TRY(GR_NEW(h->context, h->receive_start, (int64_t)n_ranks + 1, error));
    GR_TRY(GR_NEW(h->context, h->send_start, (int64_t)n_ranks + 1, error));
    for (int32_t q = 0; q < n_ranks; q++) {
        if (in[q] == in[q + 1] && out[q] == out[q + 1]) continue;
        h->neighbour[h->n_neighbours++] = q;
        h->receive_start[h->n_neighbours] = in[q + 1];
        h->send_start[h->n_neighbours] = out[q + 1];
    }
done:
    return rc;
}

/* The local allocations, and the buffer for the numbers of the sent vertices. */
static int32_t allocate_halo(graft_halo *h, int64_t **packed, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(GR_NEW(h->context, *packed, h->rows.links.send_start[h->graph->comm->n_ranks], error));
    GR_TRY(GR_NEW(h->context, h->vertex, h->rows.halo->count, error));
    rc = list_neighbours(h, error);
done:
    return rc;
}

static int32_t make_halo(graft_halo *h, graft_error *error)
{
    struct gr_comm *comm = h->graph->comm;
    int64_t        *packed = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY(gr_options_compare(h->context, comm, 1u << GR_GROUP_HALO, error));
    GR_TRY(gr_halo_rows_init(h->context, comm, &h->graph->part.halo, NULL, 0, &h->rows, error));
    GR_TRY(gr_comm_agree(comm, allocate_halo(h, &packed, error), error));
    rc = gr_links_ask(&h->rows.links, comm, h->graph->vertex, packed, h->vertex, sizeof *h->vertex, error);
done:
    gr_free(h->context, packed);
    return rc;
}

int32_t gr_halo_create(graft_graph *graph, graft_halo **halo, graft_error *error)
{
    graft_halo *made = NULL;
    int32_t     rc = GR_NEW(graph->context, made, 1, error);

    if (rc == GRAFT_OK) {
        made->context = graph->context;
        made->graph = graph;
        graph->references++;
    }
    GR_TRY(gr_comm_agree(graph->comm, rc, error));
    GR_TRY(make_halo(made, error));
    made->next = graph->halos;
    graph->halos = made;
    *halo = made;
    made = NULL;
done:
    gr_halo_destroy(made);
    return rc;
}

void gr_halo_destroy(graft_halo *h)
{
    graft_halo **link;

    if (h == NULL) return;
    for (link = &h->graph->halos; *link != NULL && *link != h;) link = &(*link)->next;
    if (*link != NULL) *link = h->next;
    if (h->rows.begun) gr_comm_abandon(h->graph->comm, "a halo was destroyed between begin and end");
    if (h->rows.halo != NULL) gr_halo_rows_fini(h->graph->comm, &h->rows);
    gr_csr_fini(h->context, &h->matrix);
    gr_free(h->context, h->vertex);
    gr_free(h->context, h->neighbour);
    gr_free(h->context, h->receive_start);
    gr_free(h->context, h->send_start);
    gr_graph_destroy(h->graph);
    gr_free(h->context, h);
}

void gr_halo_info(const graft_halo *h, graft_halo_info *info)
{
    *info = (graft_halo_info){ .size = sizeof *info,
                               .n_neighbours = h->n_neighbours,
                               .n_owned = h->graph->n_owned,
                               .n_halo = h->rows.halo->count,
                               .n_sent = h->rows.links.send_start[h->graph->comm->n_ranks],
                               .vertex = h->vertex,
                               .neighbour = h->neighbour,
                               .receive_start = h->receive_start,
                               .send_start = h->send_start,
                               .send_row = h->rows.links.place,
                               .passes = h->passes - h->rows.begun };
    info->bytes = gr_bytes(h) + gr_halo_rows_bytes(&h->rows, h->graph->comm->n_ranks) + gr_bytes(h->vertex) +
                  gr_bytes(h->neighbour) + gr_bytes(h->receive_start) + gr_bytes(h->send_start) +
                  gr_csr_bytes(&h->matrix);
}

static void join_row(graft_halo *h, int64_t row)
{
    const struct gr_part *part = &h->graph->part;
    int64_t               to = h->matrix.row_ptr[row];

    for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1]; e++)
        gr_csr_put(&h->matrix, to++, gr_csr_column(&part->local, e), &part->local, e);
    for (int64_t e = part->remote.row_ptr[row]; e < part->remote.row_ptr[row + 1]; e++)
        gr_csr_put(&h->matrix, to++, part->local.n_cols + gr_csr_column(&part->remote, e), &part->remote, e);
    h->matrix.row_ptr[row + 1] = to;
}

int32_t gr_halo_matrix(graft_halo *h, const graft_csr **matrix, graft_error *error)
{
    const struct gr_part *part = &h->graph->part;
    const int64_t         n_cols = part->local.n_cols + part->halo.count;
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);
    int32_t               rc = GRAFT_OK;

    *matrix = &h->matrix.view;
    if (h->matrix.row_ptr != NULL) return GRAFT_OK;
    if (n_cols > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "the rank owns %lld vertices and has %lld in its halo; a matrix of all has more columns than "
                       "GRAFT_I32 can number",
                       (long long)part->local.n_cols, (long long)part->halo.count);
    GR_TRY(gr_csr_init(h->context, &h->matrix, &part->local, part->local.n_rows, n_cols, entries, error));
    for (int64_t row = 0; row < part->local.n_rows; row++) join_row(h, row);
done:
    return rc;
}

void gr_halo_take_values(graft_halo *h)
{
    const int64_t n = h->graph->part.local.n_rows;

    for (int64_t row = 0; row < n && h->matrix.row_ptr != NULL; row++) join_row(h, row);
}

static struct gr_team halo_team(const graft_halo *h)
{
    return (struct gr_team){ .threads = gr_threads(h->context, h->threads) };
}

int32_t gr_halo_begin(graft_halo *h, const graft_halo_args *args, graft_error *error)
{
    /* Frames carry the number of the pass, so that ranks out of step are detected. */
    const struct gr_halo_pass pass = { .direction = args->flags & GRAFT_HALO_SUM ? GR_BACKWARD : GR_FORWARD,
                                       .exact = (args->flags & GRAFT_HALO_EXACT) != 0,
                                       .stateless = 1,
                                       .epoch = h->passes,
                                       .owned = *args->owned,
                                       .halo = *args->halo };
    int32_t                   rc = gr_halo_rows_reserve(&h->rows, pass.owned.n_cols, pass.owned.dtype, 0, error);

    if (rc < 0) return gr_comm_fail(h->graph->comm, error);
    h->threads = args->threads;
    GR_TRY(gr_halo_rows_begin(&h->rows, &pass, halo_team(h), error));
    h->passes++;
done:
    return rc;
}

int32_t gr_halo_end(graft_halo *h, graft_error *error)
{
    return gr_halo_rows_end(&h->rows, halo_team(h), error);
}
