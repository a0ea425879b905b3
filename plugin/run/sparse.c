/* Sparse features that stay sparse: the first layer uses them in sparse products, X W forward and X^T G for the
 * gradient of W. They are never multiplied by A, so the layer transforms first: A (X W).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "run/input.h"
#include "run/pass.h"

#include <math.h>
#include <string.h>

/* The cost of a multiply-add in a sparse product, relative to one in a dense product. A sparse product reads a row of B
 * for each entry, so it is bound by memory, and the dense product by arithmetic. tests/bench/NOTES.md has both
 * rates. */
static const double SPARSE_COST = 8;

/* The number of entries of A along which the first layer gathers in a step. It is 0 for gat, which transforms first in
 * any case. */
static double gathered_edges(const struct gr_setup *s)
{
    if (s->model.config.gathers_from > 0 || s->model.config.kind->attends) return 0;
    return (double)gr_derived_entries(&s->derived, s->derived.reach[1]);
}

/* The cost of the first layer in a step, forward and backward, if X stays sparse: X W and X^T G, which sage has twice
 * because of the weights of the vertex itself, and A (X W) with its transpose. */
static double sparse_cost(const struct gr_setup *s, const graft_csr *x)
{
    const double wide = (double)gr_model_config_wide(&s->model.config, 0);
    const double self = s->model.config.kind->own_rows ? (double)x->row_ptr[s->derived.reach[1]] : 0;

    return SPARSE_COST * 2 * wide * ((double)x->row_ptr[s->derived.reach[0]] + self + gathered_edges(s));
}

/* The cost of the first layer in a step if X is dense, with the cheaper order of products. A X costs nothing if it is
 * kept, and sends no gradient back. Labels that are input are included. Dropout is omitted in both costs: it draws as
 * many numbers for entries as for all elements. */
static double dense_cost(const struct gr_setup *s)
{
    const double in = (double)s->model.config.width[0], wide = (double)gr_model_config_wide(&s->model.config, 0);
    const double rows_in = (double)s->derived.reach[0], rows_out = (double)s->derived.reach[1];
    const double self = s->model.config.kind->own_rows ? 2 * rows_out * in * wide : 0;
    const double columns =
        (s->run.input.is_constant ? 0 : in) + (gr_propagates(&s->run) ? (double)s->data.given.n_classes : 0);
    const double aggregated = 2 * rows_out * in * wide + SPARSE_COST * columns * gathered_edges(s);
    const double transformed = 2 * rows_in * in * wide + SPARSE_COST * 2 * wide * gathered_edges(s);

    return self + fmin(aggregated, transformed);
}

/* The bytes of X, of X with dropout, and of sums of X that are computed once. */
static double dense_bytes(const struct gr_setup *s)
{
    const int copies = 1 + (s->model.config.input_dropout > 0) + (gathered_edges(s) > 0 && s->run.input.is_constant);

    return 4.0 * (double)s->data.n * (double)s->model.config.width[0] * copies;
}

int gr_setup_sparse_is_better(const struct gr_setup *s, const graft_csr *x)
{
    if (s->model.config.data.sparse_input != GR_AUTO) return s->model.config.data.sparse_input == GR_YES;
    if (sparse_cost(s, x) <= dense_cost(s)) return 1;
    return !gr_budget_fits(&s->budget, dense_bytes(s));
}

/* Make a part of X for a step: its first rows, which share the arrays of X except for values with dropout, and their
 * transpose. */
static int32_t init_part(struct gr_setup *s, struct gr_budget *budget, int64_t rows, struct gr_sparse_part *part,
                         graft_error *error)
{
    graft_csr                 csr = s->run.input.sparse.whole.x->csr;
    const struct gr_edge_map *map;

    GR_ASSERT(rows >= 0 && rows <= s->run.input.sparse.whole.rows);
    csr.n_rows = part->rows = rows;
    if (s->run.input.sparse.dropped != NULL) csr.values = s->run.input.sparse.dropped;
    GR_TRY(gr_budget_check(budget, (double)gr_edge_map_bytes(&csr), "features (the transpose of sparse ones)", error));
    GR_TRY(gr_matrix_create(s->context, &csr, &part->x, error));
    GR_TRY(gr_edge_map(part->x, &map, error));
    gr_budget_charge(budget, GR_USE_FEATURES, gr_matrix_own_bytes(part->x));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, part->transpose_values, gr_csr_entries(&csr), error));
    part->entry = map->entry;
    csr = map->csr.view;
    csr.values = part->transpose_values;
    GR_TRY(gr_matrix_create(s->context, &csr, &part->transpose, error));
    gr_run_fill_sparse_transpose(&s->run, part);
    return GRAFT_OK;
}

int32_t gr_setup_sparse_init(struct gr_setup *s, struct gr_csr *x, graft_error *error)
{
    const int64_t     bytes = gr_csr_bytes(x);
    struct gr_sparse *parts = &s->run.input.sparse;

    parts->whole.rows = s->data.n;
    GR_TRY(gr_derived_matrix(s->context, x, &parts->whole.x, error));
    gr_budget_return(&s->budget, bytes);
    gr_budget_charge(&s->budget, GR_USE_FEATURES, gr_matrix_own_bytes(parts->whole.x));
    if (s->run.targets.n_train == 0 || s->given != NULL || gr_setup_has_batches(s)) return GRAFT_OK;
    if (s->model.config.input_dropout > 0)
        GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_FEATURES, parts->dropped,
                             parts->whole.x->csr.row_ptr[s->derived.reach[0]], error));
    GR_TRY(init_part(s, &s->budget, s->derived.reach[0], &parts->step[0], error));
    if (s->model.config.kind->own_rows && s->derived.reach[1] < s->derived.reach[0])
        return init_part(s, &s->budget, s->derived.reach[1], &parts->step[1], error);
    return GRAFT_OK;
}

/* Copy rows of x to a separate matrix. */
static int32_t copy_sparse_rows(struct gr_setup *s, struct gr_budget *budget, const graft_csr *x, const int64_t *vertex,
                                int64_t rows, graft_matrix **made, graft_error *error)
{
    graft_csr csr = { .size = sizeof csr, .index_type = x->index_type, .value_type = GRAFT_F32 };
    int64_t  *row_ptr;
    int32_t  *col;
    float    *values;
    int       threads;

    GR_ASSERT(x->index_type == GRAFT_I32 && x->value_type == GRAFT_F32);
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, row_ptr, rows + 1, error));
    for (int64_t i = 0; i < rows; i++) row_ptr[i + 1] = row_ptr[i] + x->row_ptr[vertex[i] + 1] - x->row_ptr[vertex[i]];
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, col, row_ptr[rows], error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, values, row_ptr[rows], error));
    threads = gr_threads_worth(s->run.threads, row_ptr[rows]);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t  from = x->row_ptr[vertex[i]], to = row_ptr[i];
        const uint64_t count = (uint64_t)(row_ptr[i + 1] - to);

        memcpy(col + to, (const int32_t *)x->col_idx + from, count * sizeof *col);
        memcpy(values + to, (const float *)x->values + from, count * sizeof *values);
    }
    csr.n_rows = rows;
    csr.n_cols = x->n_cols;
    csr.row_ptr = row_ptr;
    csr.col_idx = col;
    csr.values = values;
    return gr_matrix_create(s->context, &csr, made, error);
}

int32_t gr_setup_sparse_rows(struct gr_setup *s, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                             int64_t n_dst, graft_error *error)
{
    const graft_csr  *x = &s->run.input.sparse.whole.x->csr;
    struct gr_sparse *parts = &s->run.input.sparse;
    graft_matrix     *made;

    GR_TRY(copy_sparse_rows(s, budget, x, vertex, n_src, &made, error));
    *parts = (struct gr_sparse){ .whole = { .rows = n_src, .x = made } };
    if (s->model.config.input_dropout > 0)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, parts->dropped, gr_csr_entries(&made->csr), error));
    GR_TRY(init_part(s, budget, n_src, &parts->step[0], error));
    if (s->model.config.kind->own_rows && n_dst < n_src) return init_part(s, budget, n_dst, &parts->step[1], error);
    return GRAFT_OK;
}

int32_t gr_setup_sparse_block(struct gr_setup *s, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                              int64_t n_dst, graft_error *error)
{
    struct gr_sparse *parts = &s->run.input.sparse;
    const graft_csr  *x = &parts->whole.x->csr;
    graft_csr         own;

    *parts = (struct gr_sparse){ .step = { { .rows = n_src }, { .rows = n_dst } } };
    GR_TRY(copy_sparse_rows(s, budget, x, vertex, n_src, &parts->step[0].x, error));
    if (n_dst == n_src) return GRAFT_OK;
    own = parts->step[0].x->csr;
    own.n_rows = n_dst;
    return gr_matrix_create(s->context, &own, &parts->step[1].x, error);
}

void gr_setup_sparse_fini(struct gr_setup *s)
{
    for (int i = 0; i < 2; i++) {
        gr_matrix_destroy(s->run.input.sparse.step[i].transpose);
        gr_matrix_destroy(s->run.input.sparse.step[i].x);
    }
    gr_matrix_destroy(s->run.input.sparse.whole.x);
}
