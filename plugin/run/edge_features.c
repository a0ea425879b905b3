/* Features of edges (edge_features=array): an array of the host with a row for each entry of its graph. While the graph
 * is derived, its values are the numbers of the host's entries, and GR_NO_ENTRY for added self-loops. In the end each
 * entry gets the row of its number, over ranks from the rank whose host has this row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "comm/route.h"
#include "graph/csr.h"
#include "run/setup.h"

#include <string.h>

int32_t gr_edge_numbers_begin(const struct gr_setup *s, struct gr_graph_copy *graph, graft_error *error)
{
    const int64_t entries = gr_csr_entries(&s->data.graph);
    int64_t      *numbers;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(graph->budget, gr_block_bytes(entries, sizeof *numbers), "graph (numbers of its entries)",
                            error));
    GR_TRY(GR_NEW(s->context, numbers, entries, error));
    for (int64_t e = 0; e < entries; e++) numbers[e] = e;
    graph->copy.view = s->data.graph;
    graph->copy.view.values = graph->copy.values = numbers;
    graph->copy.view.value_type = GRAFT_I64;
    graph->csr = &graph->copy.view;
done:
    return rc;
}

int64_t *gr_edge_numbers_take(const struct gr_setup *s, struct gr_graph_copy *graph)
{
    int64_t *const numbers = graph->copy.values;

    graph->copy.values = NULL;
    graph->copy.view.values = NULL;
    if (graph->copy.row_ptr == NULL) graph->csr = &s->data.graph; /* nothing was derived */
    return numbers;
}

/* -- over ranks --------------------------------------------------------------------------------------------------- */

/* The number of the first entry of each row, and the count of its entries, in the order of slices and in the order of
 * owners. */
struct row_numbers {
    int64_t *length_owned, *length, *first, *first_owned;
};

static int32_t row_numbers_init(const struct gr_setup *s, struct row_numbers *r, graft_error *error)
{
    const graft_graph *g = s->data.over;
    int32_t            rc = GRAFT_OK;

    GR_TRY(GR_NEW(s->context, r->length_owned, g->n_owned, error));
    GR_TRY(GR_NEW(s->context, r->length, g->n_slice, error));
    GR_TRY(GR_NEW(s->context, r->first, g->n_slice, error));
    GR_TRY(GR_NEW(s->context, r->first_owned, g->n_owned, error));
    for (int64_t v = 0; v < g->n_owned; v++)
        r->length_owned[v] = g->part.local.row_ptr[v + 1] - g->part.local.row_ptr[v] + g->part.remote.row_ptr[v + 1] -
                             g->part.remote.row_ptr[v];
done:
    return rc;
}

static void row_numbers_fini(const struct gr_setup *s, struct row_numbers *r)
{
    gr_free(s->context, r->length_owned);
    gr_free(s->context, r->length);
    gr_free(s->context, r->first);
    gr_free(s->context, r->first_owned);
}

static int32_t move_numbers(const struct gr_setup *s, int32_t direction, const int64_t *from, int64_t *to,
                            graft_error *error)
{
    const graft_redistribution args = { .size = sizeof args,
                                        .direction = direction,
                                        .row_bytes = sizeof *from,
                                        .from = from,
                                        .from_stride = sizeof *from,
                                        .to = to,
                                        .to_stride = sizeof *to };

    return gr_graph_redistribute(s->data.over, &args, GR_OWN_FROM | GR_OWN_TO, error);
}

/* The entries of a rank's slice have the numbers from first_entry[rank] on. Owners send the counts of the rows. */
static int32_t number_slice_rows(const struct gr_setup *s, const graft_dense *features, struct row_numbers *r,
                                 graft_error *error)
{
    const graft_graph *g = s->data.over;
    int64_t            mine = 0, next;
    int32_t            rc = GRAFT_OK;

    GR_TRY(move_numbers(s, GRAFT_TO_SLICES, r->length_owned, r->length, error));
    for (int64_t i = 0; i < g->n_slice; i++) mine += r->length[i];
    if (features->n_rows != mine)
        rc = gr_fail(error, GRAFT_ERR_ARG,
                     "edge_features have %lld rows, but the slice of this rank has %lld edges; expected a row for each",
                     (long long)features->n_rows, (long long)mine);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_comm_allgather(g->comm, &mine, sizeof mine, s->derived.first_entry + 1, error));
    s->derived.first_entry[0] = 0;
    for (int32_t p = 0; p < g->comm->n_ranks; p++) s->derived.first_entry[p + 1] += s->derived.first_entry[p];
    next = s->derived.first_entry[g->comm->rank];
    for (int64_t i = 0; i < g->n_slice; i++) {
        r->first[i] = next;
        next += r->length[i];
    }
    rc = move_numbers(s, GRAFT_TO_OWNERS, r->first, r->first_owned, error);
done:
    return rc;
}

/* The numbers of the entries of owned rows as values of both matrices; the bits of is_cut are in the order of the host.
 */
static void fill_numbers(const graft_graph *g, const struct row_numbers *r, struct gr_made_part *made)
{
    int64_t *to[] = { made->local.values, made->remote.values };
    int64_t  bit = 0;

    for (int64_t v = 0; v < g->n_owned; v++)
        for (int64_t i = 0; i < r->length_owned[v]; i++, bit++)
            *to[g->is_cut[bit / 8] >> bit % 8 & 1]++ = r->first_owned[v] + i;
    made->part = g->part;
    made->part.local.values = made->local.values;
    made->part.remote.values = made->remote.values;
    made->part.local.value_type = made->part.remote.value_type = GRAFT_I64;
}

int32_t gr_ranks_edge_numbers(struct gr_setup *s, struct gr_budget *budget, const graft_dense *features,
                              struct gr_made_part *made, graft_error *error)
{
    const graft_graph *g = s->data.over;
    const int64_t      local = gr_csr_entries(&g->part.local), remote = gr_csr_entries(&g->part.remote);
    struct row_numbers r = { 0 };
    int64_t           *values = NULL;
    int32_t            rc = row_numbers_init(s, &r, error);

    if (rc == GRAFT_OK && s->derived.first_entry == NULL)
        rc = GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, s->derived.first_entry, g->comm->n_ranks + 1, error);
    if (rc == GRAFT_OK)
        rc = gr_budget_check(budget, 8 * (double)(local + remote), "graph (numbers of its entries)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(s->context, values, local, error);
    made->local.values = values;
    if (rc == GRAFT_OK) rc = GR_NEW(s->context, values, remote, error);
    made->remote.values = rc == GRAFT_OK ? values : NULL;
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(number_slice_rows(s, features, &r, error));
    fill_numbers(g, &r, made);
done:
    row_numbers_fini(s, &r);
    return rc;
}

void gr_ranks_edge_numbers_drop(struct gr_setup *s)
{
    struct gr_partition *r = &s->partition;

    gr_free(s->context, r->made.local.values);
    gr_free(s->context, r->made.remote.values);
    r->made.local.values = r->made.remote.values = NULL;
    r->made.local.view.values = r->made.remote.view.values = NULL;
    r->made.part.local.values = r->made.part.remote.values = NULL;
    r->part.local.values = r->part.remote.values = NULL;
    gr_partition_charge(r, &s->budget);
}

/* Rows of edge features that this rank requests from others, and rows that others request from it. */
struct asked_rows {
    struct gr_route route;
    int64_t        *asked, *asked_in; /* packed and received: places in the slice of the other rank, of this rank */
    float          *rows, *rows_in;   /* [n x d] requested by this rank, and by others */
};

/* The rank whose slice has an entry. */
static int32_t rank_of_entry(const struct gr_setup *s, int64_t number)
{
    int32_t low = 0, high = s->data.over->comm->n_ranks;

    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;

        if (s->derived.first_entry[middle] <= number) low = middle;
        else high = middle;
    }
    return low;
}

static int32_t asked_rows_init(const struct gr_setup *s, const struct gr_budget *budget, struct asked_rows *a,
                               graft_error *error)
{
    const int64_t out = gr_route_n_out(&a->route), in = gr_route_n_in(&a->route), d = s->model.config.edge_features;
    const double  bytes = (double)(out + in) * (8 + 4 * (double)d);
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_check(budget, bytes, "graph (messages with features of edges)", error));
    GR_TRY(GR_NEW(s->context, a->asked, out, error));
    GR_TRY(GR_NEW(s->context, a->asked_in, in, error));
    GR_TRY(GR_NEW(s->context, a->rows, out * d, error));
    rc = GR_NEW(s->context, a->rows_in, in * d, error);
done:
    return rc;
}

static void asked_rows_fini(const struct gr_setup *s, struct asked_rows *a)
{
    gr_route_fini(&a->route);
    gr_free(s->context, a->asked);
    gr_free(s->context, a->asked_in);
    gr_free(s->context, a->rows);
    gr_free(s->context, a->rows_in);
}

static void copy_edge_row(const graft_dense *features, int64_t row, float *to)
{
    memcpy(to, (const float *)features->data + row * features->stride, (uint64_t)features->n_cols * sizeof *to);
}

/* to[e] becomes the row of entry numbers[e], if it has a number. */
static int32_t fetch_rows(const struct gr_setup *s, const struct gr_budget *budget, const int64_t *numbers,
                          int64_t entries, const graft_dense *features, float *to, graft_error *error)
{
    const int64_t     d = s->model.config.edge_features;
    struct asked_rows a = { 0 };
    int32_t           rc = gr_route_init(&a.route, s->data.over->comm, error);

    GR_TRY(gr_comm_agree(s->data.over->comm, rc, error));
    for (int64_t e = 0; e < entries; e++)
        if (numbers[e] >= 0) a.route.out[rank_of_entry(s, numbers[e]) + 1]++;
    GR_TRY(gr_route_plan(&a.route, error));
    GR_TRY(gr_comm_agree(s->data.over->comm, asked_rows_init(s, budget, &a, error), error));
    for (int64_t e = 0; e < entries; e++) {
        const int32_t q = numbers[e] >= 0 ? rank_of_entry(s, numbers[e]) : -1;

        if (q >= 0) a.asked[gr_route_take(&a.route, q, 1)] = numbers[e] - s->derived.first_entry[q];
    }
    gr_route_rewind(&a.route);
    GR_TRY(gr_route_send(&a.route, a.asked, a.asked_in, sizeof *a.asked, error));
    for (int64_t i = 0; i < gr_route_n_in(&a.route); i++) {
        GR_ASSERT(a.asked_in[i] >= 0 && a.asked_in[i] < features->n_rows);
        copy_edge_row(features, a.asked_in[i], a.rows_in + i * d);
    }
    GR_TRY(gr_route_return(&a.route, a.rows_in, a.rows, d * (int64_t)sizeof *a.rows, error));
    for (int64_t e = 0; e < entries; e++) {
        if (numbers[e] < 0) continue;
        memcpy(to + e * d, a.rows + gr_route_take(&a.route, rank_of_entry(s, numbers[e]), 1) * d,
               (uint64_t)d * sizeof *to);
    }
done:
    asked_rows_fini(s, &a);
    return rc;
}

/* -- the rows of all entries -------------------------------------------------------------------------------------- */

/* Entry `loop` of a row, an added loop, gets the mean of the other entries. */
static void fill_loop(const graft_csr *csr, int64_t row, int64_t loop, int64_t d, float *features)
{
    const int64_t begin = csr->row_ptr[row], end = csr->row_ptr[row + 1];

    for (int64_t k = 0; k < d; k++) {
        double sum = 0;

        for (int64_t e = begin; e < end; e++)
            if (e != loop) sum += (double)features[e * d + k];
        features[loop * d + k] = end - begin > 1 ? (float)(sum / (double)(end - begin - 1)) : 0;
    }
}

/* to[entries of csr x features] becomes the rows of these numbers, and means for added loops. */
static int32_t place_rows(const struct gr_setup *s, const struct gr_budget *budget, const graft_csr *csr,
                          const int64_t *numbers, const graft_dense *features, float *to, graft_error *error)
{
    const int64_t d = s->model.config.edge_features, entries = gr_csr_entries(csr);
    int32_t       rc = GRAFT_OK;

    if (s->data.over != NULL) GR_TRY(fetch_rows(s, budget, numbers, entries, features, to, error));
    for (int64_t e = 0; e < entries && s->data.over == NULL; e++)
        if (numbers[e] >= 0) copy_edge_row(features, numbers[e], to + e * d);
    for (int64_t row = 0; row < csr->n_rows; row++)
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++)
            if (numbers[e] == GR_NO_ENTRY) fill_loop(csr, row, e, d, to);
done:
    return rc;
}

int32_t gr_edge_features_init(struct gr_setup *s, const graft_csr *csr, const int64_t *numbers, graft_error *error)
{
    int32_t rc = GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, s->derived.edge,
                               gr_csr_entries(csr) * s->model.config.edge_features, error);

    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    rc = place_rows(s, &s->budget, csr, numbers, &s->data.edge_features, s->derived.edge, error);
done:
    return rc;
}

/* -- other features ----------------------------------------------------------------------------------------------- */

/* Find the numbers of the entries of s->derived.a again, in one process and over ranks. */
static int32_t number_again(struct gr_setup *s, struct gr_budget *budget, int64_t **numbers, graft_error *error)
{
    struct gr_graph_copy graph = { .budget = budget, .csr = &s->data.graph };
    int32_t              rc = GRAFT_OK;

    GR_TRY(gr_edge_numbers_begin(s, &graph, error));
    GR_TRY(gr_setup_graph_derive(s, &graph, 0, error));
    *numbers = gr_edge_numbers_take(s, &graph);
done:
    gr_csr_fini(s->context, &graph.copy);
    return rc;
}

static int32_t number_ranks_again(struct gr_setup *s, struct gr_budget *budget, const graft_dense *features,
                                  int64_t **numbers, graft_error *error)
{
    struct gr_made_part made = { 0 };
    struct gr_part      part;
    struct gr_part_copy copy = { budget, &part, &made };
    int32_t             rc = gr_ranks_edge_numbers(s, budget, features, &made, error);

    GR_TRY(rc);
    part = made.part;
    GR_TRY(gr_ranks_graph_derive(s, &copy, 0, error));
    rc = GR_NEW(s->context, *numbers, gr_csr_entries(&s->derived.a->csr), error);
    if (rc == GRAFT_OK) gr_ranks_join_values(&part, *numbers);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    gr_made_part_fini(s->context, &made);
    return rc;
}

int32_t gr_new_edge_features(struct gr_setup *s, const graft_dense *features, float **made, graft_error *error)
{
    const int64_t    count = gr_csr_entries(&s->derived.a->csr) * s->model.config.edge_features;
    int64_t         *numbers = NULL;
    struct gr_budget budget;
    int32_t          rc = GR_NEW(s->context, *made, count, error);

    gr_budget_init(&budget, s->context, INT64_MAX);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(s->data.over != NULL ? number_ranks_again(s, &budget, features, &numbers, error)
                                : number_again(s, &budget, &numbers, error));
    rc = place_rows(s, &budget, &s->derived.a->csr, numbers, features, *made, error);
done:
    gr_budget_fini(&budget);
    gr_free(s->context, numbers);
    return rc;
}

void gr_edge_features_take(struct gr_setup *s, const float *made)
{
    memcpy(s->derived.edge, made,
           (uint64_t)(gr_csr_entries(&s->derived.a->csr) * s->model.config.edge_features) * sizeof *made);
}
