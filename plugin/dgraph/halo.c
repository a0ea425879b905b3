/* The halo of a graph as an object of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/halo.h"

#include "base/dense_view.h"
#include "base/memory.h"
#include "comm/compare_options.h"
#include "halo/options.h"

/* List the ranks that share rows with this rank, and the first row of each. */
static int32_t list_neighbours(graft_halo *h, graft_error *error)
{
    const int64_t *in = h->rows.halo->start, *out = h->rows.links.send_start;
    const int32_t  n_ranks = h->graph->comm->n_ranks;

    GR_TRY(GR_POOL_NEW(h->context, &h->pool, h->neighbour, n_ranks, error));
    GR_TRY(GR_POOL_NEW(h->context, &h->pool, h->receive_start, (int64_t)n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(h->context, &h->pool, h->send_start, (int64_t)n_ranks + 1, error));
    for (int32_t q = 0; q < n_ranks; q++) {
        if (in[q] == in[q + 1] && out[q] == out[q + 1]) continue;
        h->neighbour[h->n_neighbours++] = q;
        h->receive_start[h->n_neighbours] = in[q + 1];
        h->send_start[h->n_neighbours] = out[q + 1];
    }
    return GRAFT_OK;
}

static int32_t make_halo(graft_halo *h, graft_error *error)
{
    struct gr_comm *comm = h->graph->comm;
    int64_t        *packed = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_compare_options(h->context, comm, gr_options_bit(h->context, &gr_halo_option_table), error));
    GR_TRY_DONE(gr_halo_rows_init(h->context, comm, &h->graph->part.halo, NULL, 0, &h->rows, error));
    rc = GR_NEW(h->context, packed, h->rows.links.send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(h->context, &h->pool, h->vertex, h->rows.halo->count, error);
    if (rc == GRAFT_OK) rc = list_neighbours(h, error);
    if (rc == GRAFT_OK)
        rc = gr_comm_outcome_init(&h->outcome, comm, h->rows.messages.framed.channel + 1, "a pass of a halo", error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    h->rows.messages.framed.outcome = &h->outcome;
    rc = gr_halo_links_ask(&h->rows.links, comm, h->graph->vertex, packed, h->vertex, sizeof *h->vertex, error);
done:
    gr_free(h->context, packed);
    return rc;
}

int32_t gr_graph_halo_create(graft_graph *graph, graft_halo **halo, graft_error *error)
{
    graft_halo *made = NULL;
    int32_t     rc = GR_NEW(graph->context, made, 1, error);

    if (rc == GRAFT_OK) {
        made->context = graph->context;
        made->graph = graph;
        graph->references++;
    }
    GR_TRY_DONE(gr_comm_agree(graph->comm, rc, error));
    GR_TRY_DONE(make_halo(made, error));
    made->next = graph->users.halos;
    graph->users.halos = made;
    *halo = made;
    made = NULL;
done:
    gr_graph_halo_destroy(made);
    return rc;
}

void gr_graph_halo_destroy(graft_halo *h)
{
    graft_halo **link;

    if (h == NULL) return;
    for (link = &h->graph->users.halos; *link != NULL && *link != h;) link = &(*link)->next;
    if (*link != NULL) *link = h->next;
    if (gr_graph_halo_has_begun(h)) gr_comm_abandon(h->graph->comm, "a halo was destroyed between begin and end");
    if (h->rows.halo != NULL) gr_halo_rows_fini(h->graph->comm, &h->rows);
    gr_comm_outcome_fini(&h->outcome);
    gr_csr_fini(h->context, &h->matrix);
    gr_pool_fini(h->context, &h->pool);
    gr_graph_destroy(h->graph);
    gr_free(h->context, h);
}

void gr_graph_halo_info(const graft_halo *h, graft_halo_info *info)
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
                               .passes = h->passes };
    info->bytes = gr_memory_bytes(h) + gr_halo_rows_bytes(&h->rows, h->graph->comm->n_ranks) + h->pool.bytes +
                  gr_csr_bytes(&h->matrix) + gr_comm_outcome_bytes(&h->outcome);
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

int32_t gr_graph_halo_matrix(graft_halo *h, const graft_csr **matrix, graft_error *error)
{
    const struct gr_part *part = &h->graph->part;
    const int64_t         n_cols = part->local.n_cols + part->halo.count;
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);

    *matrix = &h->matrix.view;
    if (h->matrix.row_ptr != NULL) return GRAFT_OK;
    if (n_cols > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "the rank owns %lld vertices and has %lld in its halo; a matrix of all has more columns than "
                       "GRAFT_I32 can number",
                       (long long)part->local.n_cols, (long long)part->halo.count);
    GR_TRY(gr_csr_init(h->context, &h->matrix, &part->local, part->local.n_rows, n_cols, entries, error));
    for (int64_t row = 0; row < part->local.n_rows; row++) join_row(h, row);
    return GRAFT_OK;
}

void gr_graph_halo_take_values(graft_halo *h)
{
    const int64_t n = h->graph->part.local.n_rows;

    for (int64_t row = 0; row < n && h->matrix.row_ptr != NULL; row++) join_row(h, row);
}

static struct gr_team halo_team(const graft_halo *h)
{
    return (struct gr_team){ .threads = gr_context_threads(h->context, h->threads) };
}

/* The arguments of a pass that are equal on all ranks. */
struct halo_terms {
    uint32_t    flags;
    graft_dtype dtype;
    int64_t     width;
};

_Static_assert(sizeof(struct halo_terms) <= GR_OUTCOME_TERMS, "terms fit into an outcome");

/* Send the rows of `args`, or zeros if it is NULL. */
static int32_t send_halo(graft_halo *h, const struct halo_terms *terms, const graft_halo_args *args, graft_error *error)
{
    const int64_t       width = terms->width, n_owned = h->graph->n_owned, n_halo = h->rows.halo->count;
    struct gr_halo_pass pass = { .direction = terms->flags & GRAFT_HALO_SUM ? GR_BACKWARD : GR_FORWARD,
                                 .exact = (terms->flags & GRAFT_HALO_EXACT) != 0,
                                 .stateless = 1,
                                 .epoch = h->passes,
                                 .call = h->call,
                                 .sends_refused_rows = 1,
                                 .is_refused = args == NULL };
    int32_t             rc = gr_halo_rows_reserve(&h->rows, width, terms->dtype, 0, error);

    if (rc < 0) return gr_comm_fail(h->graph->comm, error);
    pass.owned = args != NULL ? *args->owned : gr_dense_view(NULL, terms->dtype, n_owned, width, width);
    pass.halo = args != NULL ? *args->halo : gr_dense_view(NULL, terms->dtype, n_halo, width, width);
    h->threads = args != NULL ? args->threads : 0;
    return gr_halo_rows_begin(&h->rows, &pass, halo_team(h), error);
}

/* End a pass whose outcome is the failure `rc`. If some ranks have sent rows, all ranks complete the exchange, and do
 * not use its rows. Returns `rc`, or ERR_PEER. */
static int32_t end_refused_pass(graft_halo *h, int32_t rc, graft_error *error)
{
    const struct halo_terms *terms = gr_comm_outcome_terms(&h->outcome);
    int32_t                  sent = GRAFT_OK;

    if (rc == GRAFT_ERR_PEER) {
        h->rows.begun = 0;
        return rc;
    }
    if (!h->rows.begun && terms != NULL) sent = send_halo(h, terms, NULL, error);
    h->rows.pass.is_refused = 1;
    if (sent == GRAFT_OK) sent = gr_halo_rows_end(&h->rows, halo_team(h), error);
    return sent < 0 ? sent : rc;
}

int32_t gr_graph_halo_begin(graft_halo *h, int32_t rc, const graft_halo_args *args, graft_error *error)
{
    struct halo_terms terms = { 0 };
    int32_t           begun;

    h->call = h->outcome.calls;
    if (rc == GRAFT_OK) {
        terms = (struct halo_terms){ args->flags, args->owned->dtype, args->owned->n_cols };
        rc = send_halo(h, &terms, args, error);
    }
    if (rc < 0 && (rc == GRAFT_ERR_PEER || h->graph->comm->n_ranks == 1)) return rc;
    begun = gr_comm_outcome_begin(&h->outcome, h->call, rc, error, h->rows.begun ? &terms : NULL, sizeof terms, error);
    return begun < 0 ? end_refused_pass(h, begun, error) : GRAFT_OK;
}

int32_t gr_graph_halo_end(graft_halo *h, graft_error *error)
{
    int32_t rc = gr_comm_outcome_end(&h->outcome, error);

    if (rc < 0) return end_refused_pass(h, rc, error);
    rc = gr_halo_rows_end(&h->rows, halo_team(h), error);
    h->passes += rc == GRAFT_OK;
    return rc;
}
