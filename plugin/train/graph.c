/* The graph as the model wants it: made symmetric, with self loops, transposed for the backward pass, and the factors
 * that turn sums over neighbours into means or into Kipf and Welling's normalisation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "graph/order.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

/* Sum of the values of a row; the number of its entries if there are none. */
static double degree(const graft_csr *csr, int64_t row)
{
    double sum = 0;

    if (csr->values == NULL) return (double)(csr->row_ptr[row + 1] - csr->row_ptr[row]);
    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) sum += ((const float *)csr->values)[e];
    return sum;
}

int32_t gr_trainer_scales(graft_trainer *t, const graft_csr *local, const graft_csr *remote, graft_error *error)
{
    const enum gr_normalization normalization = t->model.config.kind->normalization;
    const int                   symmetric = normalization == GR_NORMALIZE_SYMMETRIC;
    int32_t                     rc = GRAFT_OK;

    if (normalization == GR_NORMALIZE_NONE) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, t->left, t->n, error));
    for (int64_t v = 0; v < t->n; v++) {
        const double d = degree(local, v) + (remote != NULL ? degree(remote, v) : 0);

        t->left[v] = d > 0 ? (float)(symmetric ? 1 / sqrt(d) : 1 / d) : 0;
    }
    if (symmetric) t->right = t->left;
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

/* The graph as far as it is made: the host's, or a copy. */
struct graph_copy {
    const graft_csr *csr;
    struct gr_csr    copy;
};

static void free_copy(graft_trainer *t, struct gr_csr *csr)
{
    gr_budget_return(&t->budget, gr_csr_bytes(csr));
    gr_csr_fini(t->context, csr);
}

/* What was made of it takes its place. */
static void replace_copy(graft_trainer *t, struct graph_copy *graph, struct gr_csr *next)
{
    free_copy(t, &graph->copy);
    graph->copy = *next;
    graph->csr = &graph->copy.view;
    memset(next, 0, sizeof *next);
}

/* Reserve the memory of a copy before it is made; free_copy() or keep_copy() ends the reservation. */
static int32_t borrow_copy(graft_trainer *t, const graft_csr *like, int64_t n_rows, int64_t entries, graft_error *error)
{
    return gr_budget_borrow(&t->budget, gr_csr_copy_bytes(like, n_rows, entries), "graph (a copy of it)", error);
}

/* What was borrowed stays with the trainer. */
static int32_t keep_copy(graft_trainer *t, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    const int64_t bytes = gr_csr_bytes(csr);
    const int32_t rc = gr_matrix_take(t->context, csr, matrix, error);

    if (rc < 0) return rc;
    gr_budget_return(&t->budget, bytes);
    gr_budget_charge(&t->budget, GR_USE_GRAPH, gr_matrix_own_bytes(*matrix));
    return GRAFT_OK;
}

static int32_t transpose_copy(graft_trainer *t, const graft_csr *csr, struct gr_csr *made, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(borrow_copy(t, csr, csr->n_cols, gr_csr_entries(csr), error));
    rc = gr_csr_transpose(t->context, csr, made, error);
done:
    return rc;
}

/* Every entry in both directions, once. A value is that of (i, j) if it was there, else that of (j, i). */
static int32_t make_symmetric(graft_trainer *t, struct graph_copy *graph, graft_error *error)
{
    struct gr_csr back = { 0 }, there = { 0 }, both = { 0 };
    int64_t       entries;
    int32_t       rc = GRAFT_OK;

    GR_TRY(transpose_copy(t, graph->csr, &back, error));
    GR_TRY(transpose_copy(t, &back.view, &there, error)); /* for sorted rows */
    entries = gr_csr_union_entries(&there.view, &back.view);
    GR_TRY(borrow_copy(t, graph->csr, t->n, entries, error));
    GR_TRY(gr_csr_union(t->context, &there.view, &back.view, entries, &both, error));
    replace_copy(t, graph, &both);
done:
    free_copy(t, &back);
    free_copy(t, &there);
    return rc;
}

static int32_t add_loops(graft_trainer *t, struct graph_copy *graph, graft_error *error)
{
    const int64_t missing = gr_csr_missing_loops(graph->csr);
    struct gr_csr looped = { 0 };
    int32_t       rc = GRAFT_OK;

    if (missing == 0) return GRAFT_OK;
    GR_TRY(borrow_copy(t, graph->csr, t->n, gr_csr_entries(graph->csr) + missing, error));
    GR_TRY(gr_csr_add_self_loops(t->context, graph->csr, &looped, error));
    replace_copy(t, graph, &looped);
done:
    return rc;
}

/* The graph in the order of the trainer, rows sorted as those that Graft makes are: a transpose comes sorted. */
static int32_t put_in_order(graft_trainer *t, struct graph_copy *graph, graft_error *error)
{
    const int64_t places = gr_block_bytes(t->n, sizeof *t->vertex);
    struct gr_csr next = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY(borrow_copy(t, graph->csr, t->n, gr_csr_entries(graph->csr), error));
    GR_TRY(gr_budget_borrow(&t->budget, places, "graph (the places of its vertices)", error));
    GR_TRY(gr_order_apply(t->context, graph->csr, t->vertex, &next, error));
    gr_budget_return(&t->budget, places);
    for (int times = 0; times < 2; times++) {
        replace_copy(t, graph, &next);
        GR_TRY(transpose_copy(t, graph->csr, &next, error));
    }
    replace_copy(t, graph, &next);
done:
    return rc;
}

/* The graph as a step of training sees it in one layer: the first rows, whose columns are among the first ones too. */
static int32_t mask_layer(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_csr turned = { 0 };
    graft_csr     part = t->a->csr;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(t->reach[l + 1] <= t->reach[l] && t->reach[l] <= t->n);
    part.n_rows = t->reach[l + 1];
    part.n_cols = t->reach[l];
    GR_TRY(gr_matrix_create(t->context, &part, &t->masked_a[l], error));
    GR_TRY(transpose_copy(t, &part, &turned, error));
    rc = keep_copy(t, &turned, &t->masked_transpose[l], error);
done:
    gr_csr_fini(t->context, &turned);
    return rc;
}

/* The block of all rows, and those of the layers in a step. */
static void make_blocks(graft_trainer *t)
{
    t->whole = (struct gr_block){ .n_dst = t->n,
                                  .n_src = t->n,
                                  .n_seen = t->n_seen,
                                  .a = t->a,
                                  .a_transpose = t->a_transpose,
                                  .left = t->left,
                                  .right = t->right,
                                  .vertex = t->vertex,
                                  .kind = t->row_kind,
                                  .of_strategy = t->partition.plan };
    t->run.input.whole = &t->whole;
    for (int32_t l = 0; l < t->model.config.n_layers; l++) {
        struct gr_block *step = &t->step[l];

        *step = t->whole;
        step->n_dst = t->reach[l + 1];
        step->n_src = t->reach[l];
        if (!t->model.config.kind->attends) step->n_seen = step->n_src;
        if (t->masked_a[l] != NULL) {
            step->a = t->masked_a[l];
            step->a_transpose = t->masked_transpose[l];
        }
        step->of_strategy = t->partition.step_plan[l];
        t->whole_of[l] = &t->whole;
        t->step_of[l] = step;
        GR_ASSERT(gr_block_is_valid(step));
    }
}

int32_t gr_trainer_graph_mask(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over != NULL) GR_TRY(gr_ranks_graph_mask(t, error));
    for (int32_t l = gr_first_masked(t); l < t->model.config.n_layers && t->a_transpose != NULL; l++) {
        if (l >= t->model.config.gathers_from && t->reach[l + 1] < t->n) GR_TRY(mask_layer(t, l, error));
    }
    make_blocks(t);
done:
    return rc;
}

static int32_t find_symmetry(graft_trainer *t, const graft_csr *csr, graft_error *error)
{
    const int64_t bytes = gr_block_bytes(t->n, sizeof *csr->row_ptr);
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(&t->budget, bytes, "graph (whether it is symmetric)", error));
    rc = gr_csr_is_symmetric(t->context, csr, &t->symmetric, error);
    gr_budget_return(&t->budget, bytes);
done:
    return rc;
}

/* What gat has in place of a transpose; made here, so that no epoch allocates. */
static int32_t make_map(graft_trainer *t, graft_error *error)
{
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(
        gr_budget_check(&t->budget, (double)gr_edge_map_bytes(&t->a->csr), "graph (the map of its transpose)", error));
    GR_TRY(gr_edge_map(t->a, &map, error));
    gr_budget_charge(&t->budget, GR_USE_GRAPH, gr_edge_map_bytes(&t->a->csr));
done:
    return rc;
}

/* The matrices of all rows, forward and backward. */
static int32_t make_matrices(graft_trainer *t, struct graph_copy *graph, graft_error *error)
{
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY(find_symmetry(t, graph->csr, error));
    if (graph->csr == &t->graph) GR_TRY(gr_matrix_create(t->context, graph->csr, &t->a, error));
    else GR_TRY(keep_copy(t, &graph->copy, &t->a, error));
    if (t->model.config.kind->attends) return make_map(t, error);
    if (t->symmetric) {
        t->a_transpose = t->a;
    } else {
        GR_TRY(transpose_copy(t, &t->a->csr, &turned, error));
        GR_TRY(keep_copy(t, &turned, &t->a_transpose, error));
    }
    rc = gr_trainer_scales(t, &t->a->csr, NULL, error);
done:
    gr_csr_fini(t->context, &turned);
    return rc;
}

int32_t gr_trainer_graph_init(graft_trainer *t, graft_error *error)
{
    struct graph_copy graph = { .csr = &t->graph };
    int32_t           rc = GRAFT_OK;

    t->n_seen = t->n;
    if (t->over != NULL) return gr_ranks_graph_init(t, error);
    if (!t->model.config.kind->gathers) return gr_trainer_order_init(t, NULL, error);
    if (t->model.config.symmetrize) GR_TRY(make_symmetric(t, &graph, error));
    GR_TRY(gr_trainer_order_init(t, graph.csr, error));
    if (t->model.config.self_loops) GR_TRY(add_loops(t, &graph, error));
    if (t->vertex != NULL) GR_TRY(put_in_order(t, &graph, error));
    rc = make_matrices(t, &graph, error);
done:
    gr_csr_fini(t->context, &graph.copy);
    return rc;
}

void gr_trainer_graph_fini(graft_trainer *t)
{
    for (int32_t l = 0; l < t->model.config.n_layers; l++) {
        gr_matrix_destroy(t->masked_a[l]);
        gr_matrix_destroy(t->masked_transpose[l]);
    }
    if (t->a_transpose != t->a) gr_matrix_destroy(t->a_transpose);
    gr_matrix_destroy(t->a);
}
