/* New edge values. All arrays that depend on them are computed anew by the functions that created them, and replace the
 * arrays in use when nothing can fail any more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "derived/derived.h"
#include "graph/csr.h"

/* Check that row pointers and columns equal those at the creation of the trainer, which are in the data set. */
static int32_t compare_entries(const struct gr_derived *d, const graft_csr *given, graft_error *error)
{
    const graft_csr *graph = &d->data->graph;
    int64_t          row = 0;

    if (given->n_rows != graph->n_rows || given->n_cols != graph->n_cols)
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld; the trainer was created with %lld x %lld",
                       (long long)given->n_rows, (long long)given->n_cols, (long long)graph->n_rows,
                       (long long)graph->n_cols);
    while (row < graph->n_rows && given->row_ptr[row + 1] == graph->row_ptr[row + 1]) row++;
    if (row < graph->n_rows)
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "graph: row_ptr[%lld] is %lld, and was %lld when the trainer was created; values may change, and "
            "entries may not",
            (long long)row + 1, (long long)given->row_ptr[row + 1], (long long)graph->row_ptr[row + 1]);
    for (int64_t e = 0; e < gr_csr_entries(graph) && given->col_idx != graph->col_idx; e++) {
        if (gr_csr_column(given, e) == gr_csr_column(graph, e)) continue;
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "graph: col_idx[%lld] is %lld, and was %lld when the trainer was created; values may change, and "
            "entries may not",
            (long long)e, (long long)gr_csr_column(given, e), (long long)gr_csr_column(graph, e));
    }
    return GRAFT_OK;
}

/* Check that row pointers and columns equal those of the slice at the creation of the graph over ranks. */
static int32_t compare_slice(const struct gr_derived *d, const graft_csr *rows, graft_error *error)
{
    const graft_graph *over = d->data->over;

    if (rows->n_rows != over->n_slice || rows->n_cols != over->n_vertices)
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld; the slice of this rank is %lld x %lld",
                       (long long)rows->n_rows, (long long)rows->n_cols, (long long)over->n_slice,
                       (long long)over->n_vertices);
    if (gr_graph_slice_digest(rows) == over->slice.digest) return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_ARG,
        "graph: row_ptr or col_idx differ from the slice at the creation of the graph over ranks; values may "
        "change, but not entries");
}

/* Read the struct of the host, widen row pointers to 64 bits, and do the checks that need no comparison. */
static int32_t read_edges(const struct gr_derived *d, const graft_csr *theirs, struct gr_new_edges *e,
                          graft_error *error)
{
    if (theirs == NULL) return gr_fail(error, GRAFT_ERR_ARG, "the values of the graph are to be replaced: it is null");
    GR_TRY(gr_struct_read(&e->graph, sizeof e->graph, theirs, "dataset.graph", error));
    GR_TRY(gr_csr_widen(d->context, &e->graph, "graph", &e->row_ptr, error));
    GR_TRY(gr_csr_check(&e->graph, "graph", 1, 1, error));
    if (e->graph.values == NULL && gr_csr_entries(&e->graph) > 0)
        return gr_fail(error, GRAFT_ERR_ARG, "the values of the graph are to be replaced: they are null");
    if (e->graph.values != NULL && e->graph.value_type != GRAFT_F32)
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       e->graph.value_type);
    return GRAFT_OK;
}

static int32_t check_edges(const struct gr_derived *d, const graft_dataset *data, struct gr_new_edges *e,
                           graft_error *error)
{
    const int64_t first = gr_dataset_first(d->data);

    if (d->data->over != NULL ? d->data->over->value_type == 0 : d->data->graph.values == NULL)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this trainer was created with a graph without values: they cannot be replaced");
    if (d->data->over != NULL && d->data->over->n_slice == 0) return GRAFT_OK;
    GR_TRY(read_edges(d, data->graph, e, error));
    GR_TRY(d->data->over != NULL ? compare_slice(d, &e->graph, error) : compare_entries(d, &e->graph, error));
    return gr_csr_check_entries(&e->graph, "graph", first, 0, d->data->threads, error);
}

/* Compute the values of an existing transpose from the new values of its original. */
static int32_t turn_values(const struct gr_derived *d, const graft_csr *csr, const graft_matrix *transpose,
                           void **turned, graft_error *error)
{
    float *values = NULL;

    GR_TRY(GR_NEW(d->context, values, gr_csr_entries(&transpose->csr), error));
    *turned = values;
    return gr_csr_transpose_values(d->context, csr, &transpose->csr, 1, values, error);
}

/* Create a transpose if the old values were symmetric and the new values are not. */
static int32_t make_transpose(struct gr_derived *d, const graft_csr *csr, struct gr_new_edges *e, graft_error *error)
{
    const int64_t bytes = gr_csr_copy_bytes(csr, csr->n_cols, gr_csr_entries(csr));
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY_DONE(gr_budget_check(d->budget, (double)bytes, "graph (its transpose)", error));
    GR_TRY_DONE(gr_csr_transpose(d->context, csr, &turned, error));
    rc = gr_derived_matrix(d->context, &turned, &e->a_transpose, error);
done:
    gr_csr_fini(d->context, &turned);
    return rc;
}

/* Compute the new matrix and the values of existing transposes, in one process. */
static int32_t derive_alone(struct gr_derived *d, struct gr_new_edges *e, graft_error *error)
{
    graft_csr part;

    e->copy.part.local = e->graph;
    GR_TRY(gr_derived_derive(d, &e->copy, 0, error));
    part = e->copy.part.local;
    GR_ASSERT(gr_csr_entries(&part) == gr_csr_entries(&d->whole.a->csr));
    GR_TRY(gr_csr_is_symmetric(d->context, &part, &e->symmetric, error));
    if (d->whole.a_transpose == NULL) return GRAFT_OK; /* attention and minibatches need no transpose */
    if (d->whole.a_transpose != d->whole.a) GR_TRY(turn_values(d, &part, d->whole.a_transpose, &e->turned, error));
    else if (!e->symmetric) GR_TRY(make_transpose(d, &part, e, error));
    for (int32_t l = 0; l < d->config->n_layers; l++) {
        if (d->masked[l].a == NULL) continue;
        part.n_rows = d->reach[l + 1];
        part.n_cols = d->reach[l];
        GR_TRY(turn_values(d, &part, d->masked[l].transpose, &e->masked_turned[l], error));
    }
    return GRAFT_OK;
}

/* Check the memory for new arrays of values, where so far those of the graph over ranks are used. */
static int32_t check_memory(const struct gr_derived *d, graft_error *error)
{
    double bytes = 0;

    if (d->wish.reads_halo) return GRAFT_OK;
    if (d->graph.made.local.values == NULL) bytes += 4.0 * (double)gr_csr_entries(&d->graph.part.local);
    if (d->graph.made.remote.values == NULL) bytes += 4.0 * (double)gr_csr_entries(&d->graph.part.remote);
    return gr_budget_check(d->budget, bytes, "graph (values of its own)", error);
}

/* Compute the new part over ranks and, for a block with a halo, the values of its matrix. */
static int32_t derive_over_ranks(struct gr_derived *d, struct gr_new_edges *e, graft_error *error)
{
    float  *values = NULL;
    int32_t rc;

    GR_TRY(gr_dataset_agree(d->data, check_memory(d, error), error));
    GR_TRY(gr_graph_send_values(d->data->over, e->graph.values, &e->copy.made, error));
    e->copy.part = e->copy.made.part;
    GR_TRY(gr_derived_derive(d, &e->copy, 0, error));
    if (!d->wish.reads_halo) return GRAFT_OK;
    rc = GR_NEW(d->context, values, gr_csr_entries(&d->whole.a->csr), error);
    if (rc == GRAFT_OK) gr_derived_join_values(&e->copy.part, values);
    e->joined = values;
    return gr_dataset_agree(d->data, rc, error);
}

int32_t gr_derived_new_edges(struct gr_derived *d, const graft_dataset *given, struct gr_new_edges **edges,
                             graft_error *error)
{
    struct gr_new_edges *e = NULL;
    int32_t              rc = GR_NEW(d->context, e, 1, error);

    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    *edges = e;
    gr_budget_init(&e->budget, d->context, INT64_MAX);
    e->copy.budget = &e->budget;
    GR_TRY_DONE(gr_dataset_agree(d->data, check_edges(d, given, e, error), error));
    if (d->wish.uses_values) rc = d->data->over != NULL ? derive_over_ranks(d, e, error) : derive_alone(d, e, error);
done:
    if (*edges == NULL) gr_free(d->context, e);
    return rc;
}

graft_csr gr_derived_new_graph(const struct gr_derived *d, const struct gr_new_edges *e)
{
    graft_csr graph = d->whole.a->csr;

    if (e->joined != NULL) graph.values = e->joined;
    if (d->data->over != NULL) return graph;
    if (d->wish.uses_values) return e->copy.part.local;
    if (d->whole.a->owned[GR_OWNED_VALUES] == NULL) graph.values = e->graph.values;
    return graph;
}

static void take_alone(struct gr_derived *d, struct gr_new_edges *e)
{
    struct gr_dataset *data = d->data;

    if (e->graph.values != NULL) data->graph.values = e->graph.values; /* NULL: there are no edges */
    gr_dataset_lend_edge_values(data, &data->graph);
    if (d->whole.a != NULL && d->whole.a->owned[GR_OWNED_VALUES] == NULL)
        gr_matrix_set_values(d->whole.a, data->graph.values);
    if (!d->wish.uses_values) return;
    d->symmetric = e->symmetric;
    if (d->whole.a->owned[GR_OWNED_VALUES] != NULL) gr_matrix_swap_values(d->whole.a, &e->copy.made.local.values);
    d->graph.part.local.values = d->whole.a->csr.values;
    if (e->turned != NULL) gr_matrix_swap_values(d->whole.a_transpose, &e->turned);
    if (e->a_transpose != NULL) {
        d->whole.a_transpose = e->a_transpose;
        e->a_transpose = NULL;
        gr_budget_charge(data->budget, GR_USE_GRAPH, gr_matrix_own_bytes(d->whole.a_transpose));
        gr_derived_blocks(d);
    }
    for (int32_t l = 0; l < d->config->n_layers; l++) {
        if (d->masked[l].a == NULL) continue;
        gr_matrix_set_values(d->masked[l].a, d->whole.a->csr.values);
        gr_matrix_swap_values(d->masked[l].transpose, &e->masked_turned[l]);
    }
}

static void take_over_ranks(struct gr_derived *d, struct gr_new_edges *e)
{
    struct gr_made_part *made = &d->graph.made, *next = &e->copy.made;

    if (!d->wish.uses_values) return;
    if (e->joined != NULL) {
        gr_matrix_swap_values(d->whole.a, &e->joined);
        return;
    }
    gr_graph_part_take_values(&made->local, &d->graph.part.local, &next->local);
    gr_graph_part_take_values(&made->remote, &d->graph.part.remote, &next->remote);
    gr_derived_charge(&d->graph);
}

void gr_derived_take_edges(struct gr_derived *d, struct gr_new_edges *e)
{
    if (d->data->over != NULL) take_over_ranks(d, e);
    else take_alone(d, e);
    if (d->wish.uses_values) gr_derived_scale(d);
}

void gr_derived_new_edges_fini(struct gr_derived *d, struct gr_new_edges *e)
{
    if (e == NULL) return;
    gr_derived_copy_fini(&e->copy);
    gr_budget_fini(&e->budget);
    gr_matrix_destroy(e->a_transpose);
    gr_free(d->context, e->turned);
    gr_free(d->context, e->joined);
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) gr_free(d->context, e->masked_turned[l]);
    gr_free(d->context, e->row_ptr);
    gr_free(d->context, e);
}
