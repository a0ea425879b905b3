/* Features of edges (edge_features=array): an array of the host with a row for each entry of its graph. While the graph
 * is derived, its values are the numbers of entries: their indices in the host's graph, or GR_NO_ENTRY for added
 * self-loops. In the end each entry gets the row with its number, over ranks from the rank whose host has this row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"
#include "comm/collective.h"
#include "comm/route.h"
#include "derived/derived.h"
#include "graph/csr.h"

#include <string.h>

/* Do gr_derived_number() in one process. */
static int32_t number_entries(const struct gr_derived *d, struct gr_graph_copy *copy, graft_error *error)
{
    const int64_t entries = gr_csr_entries(&d->data->graph);
    int64_t      *numbers;

    GR_TRY(gr_budget_check(copy->budget, (double)gr_memory_block_bytes(entries, sizeof *numbers),
                           "graph (numbers of its entries)", error));
    GR_TRY(GR_NEW(d->context, numbers, entries, error));
    for (int64_t e = 0; e < entries; e++) numbers[e] = e;
    copy->part.local = d->data->graph;
    copy->part.local.values = copy->made.local.values = numbers;
    copy->part.local.value_type = GRAFT_I64;
    return GRAFT_OK;
}

int64_t *gr_derived_take_numbers(struct gr_graph_copy *copy)
{
    int64_t *const numbers = copy->made.local.values;

    gr_free(copy->budget->context, copy->made.remote.values);
    copy->made.local.values = copy->made.remote.values = NULL;
    copy->made.local.view.values = copy->made.remote.view.values = NULL;
    copy->made.part.local.values = copy->made.part.remote.values = NULL;
    copy->part.local.values = copy->part.remote.values = NULL;
    gr_derived_charge(copy);
    return numbers;
}

/* -- over ranks --------------------------------------------------------------------------------------------------- */

/* The length of each row, and the number of its first entry: for owned rows, and for rows of the slice. */
struct row_numbers {
    int64_t *length_owned, *first_owned, *length, *first; /* parts of one block of memory */
};

static int32_t row_numbers_init(const struct gr_derived *d, struct row_numbers *r, graft_error *error)
{
    const graft_graph *g = d->data->over;
    const graft_csr   *local = &g->part.local, *remote = &g->part.remote;

    GR_TRY(GR_NEW(d->context, r->length_owned, 2 * (g->n_owned + g->n_slice), error));
    r->first_owned = r->length_owned + g->n_owned;
    r->length = r->first_owned + g->n_owned;
    r->first = r->length + g->n_slice;
    for (int64_t v = 0; v < g->n_owned; v++)
        r->length_owned[v] = local->row_ptr[v + 1] - local->row_ptr[v] + remote->row_ptr[v + 1] - remote->row_ptr[v];
    return GRAFT_OK;
}

/* Compute the number of the first entry of each row. Owners send the lengths of rows to the slices. The entries of a
 * rank's slice are numbered from first_entry[rank] on. */
static int32_t number_slice_rows(const struct gr_derived *d, const graft_dense *features, struct row_numbers *r,
                                 graft_error *error)
{
    const graft_graph *g = d->data->over;
    int64_t            mine = 0, next;
    int32_t            rc = GRAFT_OK;

    GR_TRY(gr_dataset_return_rows(d->data, r->length_owned, 8, r->length, error));
    for (int64_t i = 0; i < g->n_slice; i++) mine += r->length[i];
    if (features->n_rows != mine)
        rc = gr_fail(error, GRAFT_ERR_ARG,
                     "edge_features have %lld rows, but the slice of this rank has %lld edges; expected a row for each",
                     (long long)features->n_rows, (long long)mine);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_comm_allgather(g->comm, &mine, sizeof mine, d->first_entry + 1, error));
    d->first_entry[0] = 0;
    for (int32_t p = 0; p < g->comm->n_ranks; p++) d->first_entry[p + 1] += d->first_entry[p];
    next = d->first_entry[g->comm->rank];
    for (int64_t i = 0; i < g->n_slice; i++) {
        r->first[i] = next;
        next += r->length[i];
    }
    return gr_dataset_send_rows(d->data, r->first, 8, 8, r->first_owned, error);
}

/* Write the numbers of the entries of owned rows as values of both matrices. The bits of is_cut, which say to which
 * matrix an entry belongs, are in the order of the host. */
static void fill_numbers(const graft_graph *g, const struct row_numbers *r, struct gr_made_part *made)
{
    int64_t *to[] = { made->local.values, made->remote.values };
    int64_t  bit = 0;

    for (int64_t v = 0; v < g->n_owned; v++)
        for (int64_t i = 0; i < r->length_owned[v]; i++, bit++)
            *to[g->slice.is_cut[bit / 8] >> bit % 8 & 1]++ = r->first_owned[v] + i;
    made->part = g->part;
    made->part.local.values = made->local.values;
    made->part.remote.values = made->remote.values;
    made->part.local.value_type = made->part.remote.value_type = GRAFT_I64;
}

static int32_t number_over_ranks(struct gr_derived *d, struct gr_graph_copy *copy, const graft_dense *features,
                                 graft_error *error)
{
    const graft_graph   *g = d->data->over;
    const int64_t        local = gr_csr_entries(&g->part.local), remote = gr_csr_entries(&g->part.remote);
    struct gr_made_part *made = &copy->made;
    struct row_numbers   r = { 0 };
    int64_t             *values = NULL;
    int32_t              rc = row_numbers_init(d, &r, error);

    if (rc == GRAFT_OK && d->first_entry == NULL)
        rc = GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, d->first_entry, g->comm->n_ranks + 1, error);
    if (rc == GRAFT_OK)
        rc = gr_budget_check(copy->budget, 8 * (double)(local + remote), "graph (numbers of its entries)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(d->context, values, local, error);
    made->local.values = values;
    if (rc == GRAFT_OK) rc = GR_NEW(d->context, values, remote, error);
    made->remote.values = rc == GRAFT_OK ? values : NULL;
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(number_slice_rows(d, features, &r, error));
    fill_numbers(g, &r, made);
    copy->part = made->part;
done:
    gr_free(d->context, r.length_owned);
    return rc;
}

int32_t gr_derived_number(struct gr_derived *d, struct gr_graph_copy *copy, const graft_dense *features,
                          graft_error *error)
{
    const int32_t rc =
        d->data->over != NULL ? number_over_ranks(d, copy, features, error) : number_entries(d, copy, error);

    gr_derived_charge(copy);
    return rc;
}

/* Rows of edge features that this rank requests from others, and rows that others request from it. */
struct asked_rows {
    struct gr_route route;
    int64_t        *asked, *asked_in; /* indices in the slice of the owner: of rows requested by this rank, by others */
    float          *rows, *rows_in;   /* [n x features] rows requested by this rank, and by others */
};

/* Find the rank whose slice has an entry, by bisection. */
static int32_t rank_of_entry(const struct gr_derived *d, int64_t number)
{
    return (int32_t)gr_sorted_last(d->first_entry, d->data->over->comm->n_ranks, number);
}

static int32_t asked_rows_init(const struct gr_derived *d, const struct gr_budget *budget, struct asked_rows *a,
                               graft_error *error)
{
    const int64_t out = gr_comm_route_n_out(&a->route), in = gr_comm_route_n_in(&a->route),
                  width = d->config->attention.edge_features;
    const double bytes = (double)(out + in) * (8 + 4 * (double)width);

    GR_TRY(gr_budget_check(budget, bytes, "graph (messages with features of edges)", error));
    GR_TRY(GR_NEW(d->context, a->asked, out + in, error));
    GR_TRY(GR_NEW(d->context, a->rows, (out + in) * width, error));
    a->asked_in = a->asked + out;
    a->rows_in = a->rows + out * width;
    return GRAFT_OK;
}

static void copy_edge_row(const graft_dense *features, int64_t row, float *to)
{
    memcpy(to, (const float *)features->data + row * features->stride, (uint64_t)features->n_cols * sizeof *to);
}

/* Get the row of each entry numbers[e] from the rank that has it, and write it to to[e]. Added self-loops are
 * skipped. */
static int32_t fetch_rows(const struct gr_derived *d, const struct gr_budget *budget, const int64_t *numbers,
                          int64_t entries, const graft_dense *features, float *to, graft_error *error)
{
    const int64_t     width = d->config->attention.edge_features;
    struct asked_rows a = { 0 };
    int32_t           rc = gr_comm_route_init(&a.route, d->data->over->comm, error);

    GR_TRY_DONE(gr_comm_agree(d->data->over->comm, rc, error));
    for (int64_t e = 0; e < entries; e++)
        if (numbers[e] >= 0) a.route.out[rank_of_entry(d, numbers[e]) + 1]++;
    GR_TRY_DONE(gr_comm_route_plan(&a.route, error));
    GR_TRY_DONE(gr_comm_agree(d->data->over->comm, asked_rows_init(d, budget, &a, error), error));
    for (int64_t e = 0; e < entries; e++) {
        const int32_t q = numbers[e] >= 0 ? rank_of_entry(d, numbers[e]) : -1;

        if (q >= 0) a.asked[gr_comm_route_take(&a.route, q, 1)] = numbers[e] - d->first_entry[q];
    }
    gr_comm_route_rewind(&a.route);
    GR_TRY_DONE(gr_comm_route_send(&a.route, a.asked, a.asked_in, sizeof *a.asked, error));
    for (int64_t i = 0; i < gr_comm_route_n_in(&a.route); i++) {
        GR_ASSERT(a.asked_in[i] >= 0 && a.asked_in[i] < features->n_rows);
        copy_edge_row(features, a.asked_in[i], a.rows_in + i * width);
    }
    GR_TRY_DONE(gr_comm_route_return(&a.route, a.rows_in, a.rows, width * (int64_t)sizeof *a.rows, error));
    for (int64_t e = 0; e < entries; e++) {
        if (numbers[e] < 0) continue;
        memcpy(to + e * width, a.rows + gr_comm_route_take(&a.route, rank_of_entry(d, numbers[e]), 1) * width,
               (uint64_t)width * sizeof *to);
    }
done:
    gr_comm_route_fini(&a.route);
    gr_free(d->context, a.asked);
    gr_free(d->context, a.rows);
    return rc;
}

/* -- the rows of all entries -------------------------------------------------------------------------------------- */

/* Set the features of entry `loop` of a row, an added self-loop, to the mean over the other entries. */
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

/* Write to[entries of csr x features]: the rows with the numbers of the entries, and means for added self-loops. */
static int32_t place_rows(const struct gr_derived *d, const struct gr_budget *budget, const graft_csr *csr,
                          const int64_t *numbers, const graft_dense *features, float *to, graft_error *error)
{
    const int64_t width = d->config->attention.edge_features, entries = gr_csr_entries(csr);

    if (d->data->over != NULL) GR_TRY(fetch_rows(d, budget, numbers, entries, features, to, error));
    for (int64_t e = 0; e < entries && d->data->over == NULL; e++)
        if (numbers[e] >= 0) copy_edge_row(features, numbers[e], to + e * width);
    for (int64_t row = 0; row < csr->n_rows; row++)
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++)
            if (numbers[e] == GR_NO_ENTRY) fill_loop(csr, row, e, width, to);
    return GRAFT_OK;
}

int32_t gr_derived_edge_features(struct gr_derived *d, const graft_csr *csr, const int64_t *numbers, graft_error *error)
{
    int32_t rc = GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, d->edge,
                               gr_csr_entries(csr) * d->config->attention.edge_features, error);

    d->whole.edge = d->edge;
    GR_TRY(gr_dataset_agree(d->data, rc, error));
    return place_rows(d, d->budget, csr, numbers, &d->data->edge_features, d->edge, error);
}

/* -- other features ----------------------------------------------------------------------------------------------- */

/* Find the numbers of the entries of whole.a again, by repeating the derivation. */
static int32_t number_again(struct gr_derived *d, struct gr_graph_copy *copy, const graft_dense *features,
                            int64_t **numbers, graft_error *error)
{
    int32_t rc;

    GR_TRY(gr_derived_number(d, copy, features, error));
    GR_TRY(gr_derived_derive(d, copy, 0, error));
    if (d->data->over == NULL) {
        *numbers = gr_derived_take_numbers(copy);
        return GRAFT_OK;
    }
    rc = GR_NEW(d->context, *numbers, gr_csr_entries(&d->whole.a->csr), error);
    if (rc == GRAFT_OK) gr_derived_join_values(&copy->part, *numbers);
    return gr_dataset_agree(d->data, rc, error);
}

int32_t gr_derived_new_edge_features(struct gr_derived *d, const graft_dense *features, float **made,
                                     graft_error *error)
{
    const int64_t        count = gr_csr_entries(&d->whole.a->csr) * d->config->attention.edge_features;
    int64_t             *numbers = NULL;
    struct gr_budget     budget;
    struct gr_graph_copy copy = { .budget = &budget };
    int32_t              rc = GR_NEW(d->context, *made, count, error);

    gr_budget_init(&budget, d->context, INT64_MAX);
    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    GR_TRY_DONE(number_again(d, &copy, features, &numbers, error));
    rc = place_rows(d, &budget, &d->whole.a->csr, numbers, features, *made, error);
done:
    gr_derived_copy_fini(&copy);
    gr_budget_fini(&budget);
    gr_free(d->context, numbers);
    return rc;
}

void gr_derived_take_edge_features(struct gr_derived *d, const float *made)
{
    memcpy(d->edge, made,
           (uint64_t)(gr_csr_entries(&d->whole.a->csr) * d->config->attention.edge_features) * sizeof *made);
}
