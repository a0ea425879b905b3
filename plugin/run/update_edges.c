/* New edge values. Everything that depends on them is computed by the functions of create() into new arrays, which
 * replace the arrays in use when nothing can fail afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "graph/csr.h"
#include "run/setup.h"

#include <string.h>

/* Check that row pointers and columns equal the arrays of create(), which are in s->data.graph. */
static int32_t compare_entries(const struct gr_setup *s, const graft_csr *given, graft_error *error)
{
    const graft_csr *graph = &s->data.graph;
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

/* Read the struct of the host, widen row pointers to 64 bits, and make the checks common to one process and ranks. */
static int32_t read_edges(const struct gr_setup *s, const graft_csr *theirs, struct gr_new_edges *e, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (theirs == NULL) return gr_fail(error, GRAFT_ERR_ARG, "the values of the graph are to be replaced: it is null");
    GR_TRY(gr_struct_read(&e->graph, sizeof e->graph, theirs, "dataset.graph", error));
    GR_TRY(gr_csr_widen(s->context, &e->graph, "graph", &e->row_ptr, error));
    GR_TRY(gr_csr_check(&e->graph, "graph", 1, 1, error));
    if (e->graph.values == NULL && gr_csr_entries(&e->graph) > 0)
        return gr_fail(error, GRAFT_ERR_ARG, "the values of the graph are to be replaced: they are null");
    if (e->graph.values != NULL && e->graph.value_type != GRAFT_F32)
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       e->graph.value_type);
done:
    return rc;
}

static int32_t check_edges(const struct gr_setup *s, const graft_dataset *data, struct gr_new_edges *e,
                           graft_error *error)
{
    const int64_t first = s->data.over != NULL ? s->data.over->first[s->data.over->comm->rank] : 0;
    int32_t       rc = GRAFT_OK;

    if (s->data.over != NULL ? s->data.over->value_type == 0 : s->data.graph.values == NULL)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this trainer was created with a graph without values: they cannot be replaced");
    if (s->data.over != NULL && s->data.over->n_slice == 0) return GRAFT_OK;
    GR_TRY(read_edges(s, data->graph, e, error));
    GR_TRY(s->data.over != NULL ? gr_ranks_edges_check(s, e, error) : compare_entries(s, &e->graph, error));
    rc = gr_csr_check_entries(&e->graph, "graph", first, 0, s->run.threads, error);
done:
    return rc;
}

/* Compute the values of an existing transpose from the new values of its original. */
static int32_t turn_values(const struct gr_setup *s, const graft_csr *csr, const graft_matrix *transpose, void **turned,
                           graft_error *error)
{
    float  *values = NULL;
    int32_t rc = GR_NEW(s->context, values, gr_csr_entries(&transpose->csr), error);

    *turned = values;
    return rc < 0 ? rc : gr_csr_transpose_values(s->context, csr, &transpose->csr, 1, values, error);
}

/* Create a transpose if the old values were symmetric and the new values are not. */
static int32_t make_transpose(struct gr_setup *s, const graft_csr *csr, struct gr_new_edges *e, graft_error *error)
{
    const int64_t bytes = gr_csr_copy_bytes(csr, csr->n_cols, gr_csr_entries(csr));
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_check(&s->budget, (double)bytes, "graph (its transpose)", error));
    GR_TRY(gr_csr_transpose(s->context, csr, &turned, error));
    rc = gr_matrix_take(s->context, &turned, &e->a_transpose, error);
done:
    gr_csr_fini(s->context, &turned);
    return rc;
}

/* In one process: compute the new matrices, in the order of the setup, and the values of their transposes. */
static int32_t derive_edges(struct gr_setup *s, struct gr_new_edges *e, graft_error *error)
{
    graft_csr part;
    int32_t   rc = GRAFT_OK;

    GR_TRY(gr_setup_graph_derive(s, &e->copy, 0, error));
    GR_ASSERT(gr_csr_entries(e->copy.csr) == gr_csr_entries(&s->derived.a->csr));
    GR_TRY(gr_csr_is_symmetric(s->context, e->copy.csr, &e->symmetric, error));
    if (s->derived.a_transpose == NULL) return GRAFT_OK; /* of attention, and of training by minibatch */
    if (s->derived.a_transpose != s->derived.a)
        GR_TRY(turn_values(s, e->copy.csr, s->derived.a_transpose, &e->turned, error));
    else if (!e->symmetric) GR_TRY(make_transpose(s, e->copy.csr, e, error));
    part = *e->copy.csr;
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        if (s->derived.masked_a[l] == NULL) continue;
        part.n_rows = s->derived.reach[l + 1];
        part.n_cols = s->derived.reach[l];
        GR_TRY(turn_values(s, &part, s->derived.masked_transpose[l], &e->masked_turned[l], error));
    }
done:
    return rc;
}

int gr_setup_uses_values(const struct gr_setup *s)
{
    const struct gr_config           *config = &s->model.config;
    const struct gr_sampling_options *sampling = &s->context->options.sampling;

    if (gr_setup_has_batches(s) && config->kind->gathers && sampling->sampler == GR_SAMPLER_NEIGHBOUR &&
        sampling->weights == GR_SAMPLE_BY_EDGE)
        return 1;
    if (config->kind->attends) return config->edge_features > 0 && !config->edge_array;
    return config->kind->gathers && config->extremum == 0;
}

int32_t gr_new_edges_begin(struct gr_setup *s, const graft_dataset *data, struct gr_new_edges **edges,
                           graft_error *error)
{
    struct gr_new_edges *e = NULL;
    int32_t              rc = GR_NEW(s->context, e, 1, error);

    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    *edges = e;
    gr_budget_init(&e->budget, s->context, INT64_MAX);
    e->copy = (struct gr_graph_copy){ .budget = &e->budget, .csr = &e->graph };
    GR_TRY(gr_strategy_agree(s->run.strategy, check_edges(s, data, e, error), error));
    if (gr_setup_uses_values(s))
        rc = s->data.over != NULL ? gr_ranks_edges_begin(s, e, error) : derive_edges(s, e, error);
done:
    if (*edges == NULL) gr_free(s->context, e);
    return rc;
}

graft_csr gr_new_edges_graph(const struct gr_setup *s, const struct gr_new_edges *e)
{
    graft_csr graph = s->derived.a->csr;

    if (e->joined != NULL) graph.values = e->joined;
    if (s->data.over != NULL) return graph;
    if (gr_setup_uses_values(s)) return *e->copy.csr;
    if (s->derived.a->owned[GR_OWNED_VALUES] == NULL) graph.values = e->graph.values;
    return graph;
}

/* In one process: put the new values into use. */
static void take_edges(struct gr_setup *s, struct gr_new_edges *e)
{
    if (e->graph.values != NULL) s->data.graph.values = e->graph.values; /* null without edges */
    gr_setup_lend_edge_values(s, &s->data.graph);
    if (s->derived.a != NULL && s->derived.a->owned[GR_OWNED_VALUES] == NULL)
        gr_matrix_set_values(s->derived.a, s->data.graph.values);
    if (!gr_setup_uses_values(s)) return;
    s->derived.symmetric = e->symmetric;
    if (s->derived.a->owned[GR_OWNED_VALUES] != NULL) gr_matrix_swap_values(s->derived.a, &e->copy.copy.values);
    if (e->turned != NULL) gr_matrix_swap_values(s->derived.a_transpose, &e->turned);
    if (e->a_transpose != NULL) {
        s->derived.a_transpose = e->a_transpose;
        e->a_transpose = NULL;
        gr_budget_charge(&s->budget, GR_USE_GRAPH, gr_matrix_own_bytes(s->derived.a_transpose));
        gr_setup_blocks(s);
    }
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        if (s->derived.masked_a[l] == NULL) continue;
        gr_matrix_set_values(s->derived.masked_a[l], s->derived.a->csr.values);
        gr_matrix_swap_values(s->derived.masked_transpose[l], &e->masked_turned[l]);
    }
    gr_setup_scales_refresh(s, &s->derived.a->csr, NULL);
}

void gr_new_edges_end(struct gr_setup *s, struct gr_new_edges *e)
{
    if (s->data.over != NULL) gr_ranks_edges_end(s, e);
    else take_edges(s, e);
}

void gr_new_edges_fini(struct gr_setup *s, struct gr_new_edges *e)
{
    if (e == NULL) return;
    gr_csr_fini(s->context, &e->copy.copy);
    gr_budget_fini(&e->budget);
    gr_matrix_destroy(e->a_transpose);
    gr_free(s->context, e->turned);
    gr_free(s->context, e->joined);
    gr_made_part_fini(s->context, &e->made);
    gr_made_part_fini(s->context, &e->group);
    if (e->blocks != NULL) gr_edge_sets_fini(s->context, e->blocks);
    gr_free(s->context, e->blocks);
    if (s->partition.plan != NULL) gr_plan_values_fini(s->partition.plan, &e->whole);
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        gr_free(s->context, e->masked_turned[l]);
        if (s->partition.masked[l].plan != NULL) gr_plan_values_fini(s->partition.masked[l].plan, &e->masked[l]);
    }
    gr_free(s->context, e->row_ptr);
    gr_free(s->context, e);
}
