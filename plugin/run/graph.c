/* The graph as the model needs it: made symmetric, with self loops, transposed for the backward pass, and the factors
 * that turn sums over neighbours into means or into Kipf and Welling's normalisation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "graph/order.h"
#include "run/setup.h"

#include <math.h>
#include <string.h>

/* Sum of the values of a row; without values, the number of its entries. */
static double degree(const graft_csr *csr, int64_t row)
{
    double sum = 0;

    if (csr->values == NULL) return (double)(csr->row_ptr[row + 1] - csr->row_ptr[row]);
    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) sum += ((const float *)csr->values)[e];
    return sum;
}

void gr_setup_scales_refresh(struct gr_setup *s, const graft_csr *local, const graft_csr *remote)
{
    const int symmetric = s->model.config.normalization == GR_NORMALIZE_SYMMETRIC;

    for (int64_t v = 0; v < s->data.n && s->derived.left != NULL; v++) {
        const double d = degree(local, v) + (remote != NULL ? degree(remote, v) : 0);

        s->derived.left[v] = d > 0 ? (float)(symmetric ? 1 / sqrt(d) : 1 / d) : 0;
    }
}

int32_t gr_setup_scales(struct gr_setup *s, const graft_csr *local, const graft_csr *remote, graft_error *error)
{
    const enum gr_normalization normalization = s->model.config.normalization;
    int32_t                     rc = GRAFT_OK;

    if (normalization == GR_NORMALIZE_NONE) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, s->derived.left, s->data.n, error));
    gr_setup_scales_refresh(s, local, remote);
    if (normalization == GR_NORMALIZE_SYMMETRIC) s->derived.right = s->derived.left;
done:
    return rc;
}

int32_t gr_matrix_take(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    const int32_t rc = gr_matrix_create(context, &csr->view, matrix, error);

    if (rc < 0) return rc;
    gr_matrix_adopt(*matrix);
    memset(csr, 0, sizeof *csr);
    return GRAFT_OK;
}

static void free_copy(struct gr_budget *budget, struct gr_csr *csr)
{
    gr_budget_return(budget, gr_csr_bytes(csr));
    gr_csr_fini(budget->context, csr);
}

/* Replace the copy by its derived graph. */
static void replace_copy(struct gr_graph_copy *graph, struct gr_csr *next)
{
    free_copy(graph->budget, &graph->copy);
    graph->copy = *next;
    graph->csr = &graph->copy.view;
    memset(next, 0, sizeof *next);
}

/* Reserve the memory of a copy before it is made; free_copy() or keep_copy() ends the reservation. */
static int32_t borrow_copy(struct gr_budget *budget, const graft_csr *like, int64_t n_rows, int64_t entries,
                           graft_error *error)
{
    return gr_budget_borrow(budget, gr_csr_copy_bytes(like, n_rows, entries), "graph (a copy of it)", error);
}

/* The borrowed bytes stay with the setup. */
static int32_t keep_copy(struct gr_setup *s, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    const int64_t bytes = gr_csr_bytes(csr);
    const int32_t rc = gr_matrix_take(s->context, csr, matrix, error);

    if (rc < 0) return rc;
    gr_budget_return(&s->budget, bytes);
    gr_budget_charge(&s->budget, GR_USE_GRAPH, gr_matrix_own_bytes(*matrix));
    return GRAFT_OK;
}

static int32_t transpose_copy(struct gr_budget *budget, const graft_csr *csr, struct gr_csr *made, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(borrow_copy(budget, csr, csr->n_cols, gr_csr_entries(csr), error));
    rc = gr_csr_transpose(budget->context, csr, made, error);
done:
    return rc;
}

/* Every entry in both directions, once. Its value is the value of (i, j) if there was one, else of (j, i). */
static int32_t make_symmetric(struct gr_graph_copy *graph, graft_error *error)
{
    struct gr_budget *budget = graph->budget;
    struct gr_csr     back = { 0 }, there = { 0 }, both = { 0 };
    int64_t           entries;
    int32_t           rc = GRAFT_OK;

    GR_TRY(transpose_copy(budget, graph->csr, &back, error));
    GR_TRY(transpose_copy(budget, &back.view, &there, error)); /* for sorted rows */
    entries = gr_csr_union_entries(&there.view, &back.view);
    GR_TRY(borrow_copy(budget, graph->csr, graph->csr->n_rows, entries, error));
    GR_TRY(gr_csr_union(budget->context, &there.view, &back.view, entries, &both, error));
    replace_copy(graph, &both);
done:
    free_copy(budget, &back);
    free_copy(budget, &there);
    return rc;
}

struct gr_loop_value gr_setup_loop_value(const struct gr_setup *s, const graft_csr *remote)
{
    return (struct gr_loop_value){ .is_mean = s->model.config.edge_features > 0 && !s->model.config.edge_array,
                                   .rest = remote };
}

static int32_t add_loops(const struct gr_setup *s, struct gr_graph_copy *graph, graft_error *error)
{
    const int64_t              missing = gr_csr_missing_loops(graph->csr);
    const struct gr_loop_value value = gr_setup_loop_value(s, NULL);
    struct gr_csr              looped = { 0 };
    int32_t                    rc = GRAFT_OK;

    if (missing == 0) return GRAFT_OK;
    GR_TRY(borrow_copy(graph->budget, graph->csr, graph->csr->n_rows, gr_csr_entries(graph->csr) + missing, error));
    GR_TRY(gr_csr_add_self_loops(graph->budget->context, graph->csr, &value, &looped, error));
    replace_copy(graph, &looped);
done:
    return rc;
}

/* The graph in the order of the setup, with sorted rows, like all graphs that Graft makes: a transpose is sorted. */
static int32_t put_in_order(const struct gr_setup *s, struct gr_graph_copy *graph, graft_error *error)
{
    const int64_t places = gr_block_bytes(s->data.n, sizeof *s->derived.vertex);
    struct gr_csr next = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY(borrow_copy(graph->budget, graph->csr, s->data.n, gr_csr_entries(graph->csr), error));
    GR_TRY(gr_budget_borrow(graph->budget, places, "graph (the places of its vertices)", error));
    GR_TRY(gr_order_apply(s->context, graph->csr, s->derived.vertex, &next, error));
    gr_budget_return(graph->budget, places);
    for (int times = 0; times < 2; times++) {
        replace_copy(graph, &next);
        GR_TRY(transpose_copy(graph->budget, graph->csr, &next, error));
    }
    replace_copy(graph, &next);
done:
    return rc;
}

int32_t gr_setup_graph_derive(struct gr_setup *s, struct gr_graph_copy *graph, int first, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (s->model.config.symmetrize) GR_TRY(make_symmetric(graph, error));
    if (first) GR_TRY(gr_setup_order_init(s, graph->csr, error));
    if (s->model.config.self_loops) GR_TRY(add_loops(s, graph, error));
    if (s->derived.vertex != NULL) rc = put_in_order(s, graph, error);
done:
    return rc;
}

/* The graph of one layer in a step of training: the first rows, whose columns are among the first too. */
static int32_t mask_layer(struct gr_setup *s, int32_t l, graft_error *error)
{
    struct gr_csr turned = { 0 };
    graft_csr     part = s->derived.a->csr;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(s->derived.reach[l + 1] <= s->derived.reach[l] && s->derived.reach[l] <= s->data.n);
    part.n_rows = s->derived.reach[l + 1];
    part.n_cols = s->derived.reach[l];
    GR_TRY(gr_matrix_create(s->context, &part, &s->derived.masked_a[l], error));
    if (s->given != NULL) goto done; /* No gradient goes back along the edges. */
    GR_TRY(transpose_copy(&s->budget, &part, &turned, error));
    rc = keep_copy(s, &turned, &s->derived.masked_transpose[l], error);
done:
    gr_csr_fini(s->context, &turned);
    return rc;
}

void gr_setup_blocks(struct gr_setup *s)
{
    s->derived.whole = (struct gr_block){ .n_dst = s->data.n,
                                          .n_src = s->data.n,
                                          .n_seen = s->derived.n_seen,
                                          .a = s->derived.a,
                                          .a_transpose = s->derived.a_transpose,
                                          .left = s->derived.left,
                                          .right = s->derived.right,
                                          .edge = s->derived.edge,
                                          .vertex = s->derived.vertex,
                                          .kind = s->derived.row_kind,
                                          .of_strategy = s->partition.plan };
    s->run.input.whole = &s->derived.whole;
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        struct gr_block *step = &s->derived.step[l];

        *step = s->derived.whole;
        step->n_dst = s->derived.reach[l + 1];
        step->n_src = s->derived.reach[l];
        if (!gr_reads_halo(s)) step->n_seen = step->n_src;
        if (s->derived.masked_a[l] != NULL) {
            step->a = s->derived.masked_a[l];
            step->a_transpose = s->derived.masked_transpose[l];
        }
        step->of_strategy = s->partition.step_plan[l];
        s->derived.whole_of[l] = &s->derived.whole;
        s->derived.step_of[l] = step;
        GR_ASSERT(gr_block_is_valid(step));
    }
}

int32_t gr_setup_graph_mask(struct gr_setup *s, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (s->data.over != NULL) GR_TRY(gr_ranks_graph_mask(s, error));
    for (int32_t l = gr_first_masked(s); l < s->model.config.n_layers && s->data.over == NULL && s->derived.a != NULL;
         l++) {
        if (l >= s->model.config.gathers_from && s->derived.reach[l + 1] < s->data.n) GR_TRY(mask_layer(s, l, error));
    }
    gr_setup_blocks(s);
done:
    return rc;
}

static int32_t find_symmetry(struct gr_setup *s, const graft_csr *csr, graft_error *error)
{
    const int64_t bytes = gr_block_bytes(s->data.n, sizeof *csr->row_ptr);
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(&s->budget, bytes, "graph (whether it is symmetric)", error));
    rc = gr_csr_is_symmetric(s->context, csr, &s->derived.symmetric, error);
    gr_budget_return(&s->budget, bytes);
done:
    return rc;
}

/* The map that gat uses instead of a transpose; made here, so that no epoch allocates. */
static int32_t make_map(struct gr_setup *s, graft_error *error)
{
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_budget_check(&s->budget, (double)gr_edge_map_bytes(&s->derived.a->csr),
                           "graph (the map of its transpose)", error));
    GR_TRY(gr_edge_map(s->derived.a, &map, error));
    gr_budget_charge(&s->budget, GR_USE_GRAPH, gr_edge_map_bytes(&s->derived.a->csr));
done:
    return rc;
}

/* The matrices of all rows, forward and backward. */
static int32_t make_matrices(struct gr_setup *s, struct gr_graph_copy *graph, graft_error *error)
{
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    if (s->given == NULL) GR_TRY(find_symmetry(s, graph->csr, error));
    if (graph->csr == &s->data.graph) GR_TRY(gr_matrix_create(s->context, graph->csr, &s->derived.a, error));
    else GR_TRY(keep_copy(s, &graph->copy, &s->derived.a, error));
    if (s->model.config.kind->attends)
        return s->given == NULL && !gr_setup_has_batches(s) ? make_map(s, error) : GRAFT_OK;
    if (s->given != NULL || gr_setup_has_batches(s)) {
        s->derived.a_transpose = NULL; /* No gradient goes back along all edges. */
    } else if (s->derived.symmetric) {
        s->derived.a_transpose = s->derived.a;
    } else {
        GR_TRY(transpose_copy(&s->budget, &s->derived.a->csr, &turned, error));
        GR_TRY(keep_copy(s, &turned, &s->derived.a_transpose, error));
    }
    rc = gr_setup_scales(s, &s->derived.a->csr, NULL, error);
done:
    gr_csr_fini(s->context, &turned);
    return rc;
}

int32_t gr_setup_graph_init(struct gr_setup *s, graft_error *error)
{
    struct gr_graph_copy graph = { .budget = &s->budget, .csr = &s->data.graph };
    int64_t             *numbers = NULL;
    int32_t              rc = GRAFT_OK;

    s->derived.n_seen = s->data.n;
    if (s->data.over != NULL) return gr_ranks_graph_init(s, error);
    if (!s->model.config.kind->gathers) return gr_setup_order_init(s, NULL, error);
    if (s->model.config.edge_array) GR_TRY(gr_edge_numbers_begin(s, &graph, error));
    GR_TRY(gr_setup_graph_derive(s, &graph, 1, error));
    if (s->model.config.edge_array) numbers = gr_edge_numbers_take(s, &graph);
    if (s->model.config.edge_array) GR_TRY(gr_edge_features_init(s, graph.csr, numbers, error));
    gr_budget_return(&s->budget, gr_bytes(numbers));
    rc = make_matrices(s, &graph, error);
done:
    gr_free(s->context, numbers);
    gr_csr_fini(s->context, &graph.copy);
    return rc;
}

void gr_setup_graph_fini(struct gr_setup *s)
{
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        gr_matrix_destroy(s->derived.masked_a[l]);
        gr_matrix_destroy(s->derived.masked_transpose[l]);
    }
    if (s->derived.a_transpose != s->derived.a) gr_matrix_destroy(s->derived.a_transpose);
    gr_matrix_destroy(s->derived.a);
}
