/* Sparse features that stay so: what the first layer makes of them are sparse products, X W forward and X^T G for the
 * gradient of W. They have no part in a product with A, so layers transform first: A (X W).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "train/train.h"

#include <math.h>

/* What a multiply-add of a sparse product costs, in those of a dense one: a row of B is read for each entry, so that
 * memory sets the pace, where a dense product is bound by arithmetic. tests/bench/NOTES.md has both rates. */
static const double SPARSE_COST = 8;

/* Entries of A that the first layer gathers along in a step. Those of gat are no matter, for it always transforms
 * first. */
static double gathered_edges(const graft_trainer *t)
{
    if (t->model.config.gathers_from > 0 || t->model.config.kind->attends) return 0;
    if (t->over != NULL)
        return (double)(t->partition.part.local.row_ptr[t->reach[1]] + t->partition.part.remote.row_ptr[t->reach[1]]);
    return (double)t->a->csr.row_ptr[t->reach[1]];
}

/* Multiply-adds of the first layer in a step, forward and backward, if X stays sparse: X W and X^T G, of sage once more
 * for the weights of the vertex itself, and A (X W) with its transpose. */
static double sparse_cost(const graft_trainer *t, const graft_csr *x)
{
    const double wide = (double)gr_config_wide(&t->model.config, 0);
    const double self = t->model.config.kind->own_rows ? (double)x->row_ptr[t->reach[1]] : 0;

    return SPARSE_COST * 2 * wide * ((double)x->row_ptr[t->reach[0]] + self + gathered_edges(t));
}

/* The same if X is dense, in the cheaper order; A X, which sends no gradient back, costs nothing where it is kept.
 * Labels beside X go with it. Dropout is left out on both sides: it draws no more for entries than for all elements. */
static double dense_cost(const graft_trainer *t)
{
    const double in = (double)t->model.config.width[0], wide = (double)gr_config_wide(&t->model.config, 0);
    const double rows_in = (double)t->reach[0], rows_out = (double)t->reach[1];
    const double self = t->model.config.kind->own_rows ? 2 * rows_out * in * wide : 0;
    const double columns =
        (t->run.input.is_constant ? 0 : in) + (gr_propagates(&t->run) ? (double)t->data.n_classes : 0);
    const double aggregated = 2 * rows_out * in * wide + SPARSE_COST * columns * gathered_edges(t);
    const double transformed = 2 * rows_in * in * wide + SPARSE_COST * 2 * wide * gathered_edges(t);

    return self + fmin(aggregated, transformed);
}

/* X, the same with dropout, and what is gathered of it once. */
static double dense_bytes(const graft_trainer *t)
{
    const int copies = 1 + (t->model.config.input_dropout > 0) + (gathered_edges(t) > 0 && t->run.input.is_constant);

    return 4.0 * (double)t->n * (double)t->model.config.width[0] * copies;
}

int gr_trainer_sparse_is_better(const graft_trainer *t, const graft_csr *x)
{
    graft_error error = { .size = sizeof error };

    if (t->model.config.sparse_input != GR_AUTO) return t->model.config.sparse_input == GR_YES;
    if (sparse_cost(t, x) <= dense_cost(t)) return 1;
    return gr_budget_check(&t->budget, dense_bytes(t), "features", &error) < 0;
}

/* The first rows of X for a step, which share its arrays but for values with dropout, and their transpose. */
static int32_t init_part(graft_trainer *t, int64_t rows, struct gr_sparse_part *part, graft_error *error)
{
    graft_csr                 csr = t->run.input.sparse.whole.x->csr;
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_ASSERT(rows >= 0 && rows <= t->run.input.sparse.whole.rows);
    csr.n_rows = part->rows = rows;
    if (t->run.input.sparse.dropped != NULL) csr.values = t->run.input.sparse.dropped;
    GR_TRY(
        gr_budget_check(&t->budget, (double)gr_edge_map_bytes(&csr), "features (the transpose of sparse ones)", error));
    GR_TRY(gr_matrix_create(t->context, &csr, &part->x, error));
    GR_TRY(gr_edge_map(part->x, &map, error));
    gr_budget_charge(&t->budget, GR_USE_FEATURES, gr_matrix_own_bytes(part->x));
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_FEATURES, part->transpose_values, gr_csr_entries(&csr), error));
    part->entry = map->entry;
    csr = map->csr.view;
    csr.values = part->transpose_values;
    GR_TRY(gr_matrix_create(t->context, &csr, &part->transpose, error));
    gr_sparse_fill_transpose(&t->run, part);
done:
    return rc;
}

int32_t gr_trainer_sparse_init(graft_trainer *t, struct gr_csr *x, graft_error *error)
{
    const int64_t     bytes = gr_csr_bytes(x);
    struct gr_sparse *s = &t->run.input.sparse;
    int32_t           rc = GRAFT_OK;

    s->whole.rows = t->n;
    GR_TRY(gr_matrix_take(t->context, x, &s->whole.x, error));
    gr_budget_return(&t->budget, bytes);
    gr_budget_charge(&t->budget, GR_USE_FEATURES, gr_matrix_own_bytes(s->whole.x));
    if (t->run.targets.n_train == 0) return GRAFT_OK;
    if (t->model.config.input_dropout > 0)
        GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_FEATURES, s->dropped, s->whole.x->csr.row_ptr[t->reach[0]], error));
    GR_TRY(init_part(t, t->reach[0], &s->step[0], error));
    if (t->model.config.kind->own_rows && t->reach[1] < t->reach[0]) rc = init_part(t, t->reach[1], &s->step[1], error);
done:
    return rc;
}

void gr_trainer_sparse_fini(graft_trainer *t)
{
    for (int i = 0; i < 2; i++) {
        gr_matrix_destroy(t->run.input.sparse.step[i].transpose);
        gr_matrix_destroy(t->run.input.sparse.step[i].x);
    }
    gr_matrix_destroy(t->run.input.sparse.whole.x);
}
