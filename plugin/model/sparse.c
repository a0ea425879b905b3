/* Sparse features that stay so: what the first layer makes of them are sparse products, X W forward and X^T G for the
 * gradient of W. They have no part in a product with A, so layers transform first: A (X W).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dropout.h"
#include "edge/edge.h"
#include "edge/rows.h"
#include "graph/csr.h"
#include "model/model.h"

#include <math.h>

/* What a multiply-add of a sparse product costs, in those of a dense one: a row of B is read for each entry, so that
 * memory sets the pace, where a dense product is bound by arithmetic. README.md has both rates. */
static const double SPARSE_COST = 8;

/* Entries of A that the first layer gathers along in a step. Those of gat are no matter, for it always transforms
 * first. */
static double edges_of(const graft_trainer *t)
{
    if (t->config.kind == GR_MODEL_MLP || t->config.kind == GR_MODEL_GAT) return 0;
    if (t->over != NULL)
        return (double)(t->ranks.part.local.row_ptr[t->reach[1]] + t->ranks.part.remote.row_ptr[t->reach[1]]);
    return (double)t->a->csr.row_ptr[t->reach[1]];
}

/* Multiply-adds of the first layer in a step, forward and backward, if X stays sparse: X W and X^T G, of sage once more
 * for the weights of the vertex itself, and A (X W) with its transpose. */
static double sparse_cost(const graft_trainer *t, const graft_csr *x)
{
    const double wide = (double)gr_config_wide(&t->config, 0);
    const double self = t->config.kind == GR_MODEL_SAGE ? (double)x->row_ptr[t->reach[1]] : 0;

    return SPARSE_COST * 2 * wide * ((double)x->row_ptr[t->reach[0]] + self + edges_of(t));
}

/* The same if X is dense, in the cheaper order; A X, which sends no gradient back, costs nothing where it is kept.
 * Labels beside X go with it. Dropout is left out on both sides: it draws no more for entries than for all elements. */
static double dense_cost(const graft_trainer *t)
{
    const double in = (double)t->config.width[0], wide = (double)gr_config_wide(&t->config, 0);
    const double rows_in = (double)t->reach[0], rows_out = (double)t->reach[1];
    const double self = t->config.kind == GR_MODEL_SAGE ? 2 * rows_out * in * wide : 0;
    const double columns = (gr_gathers_once(t) ? 0 : in) + (gr_propagates(t) ? (double)t->data.n_classes : 0);
    const double aggregated = 2 * rows_out * in * wide + SPARSE_COST * columns * edges_of(t);
    const double transformed = 2 * rows_in * in * wide + SPARSE_COST * 2 * wide * edges_of(t);

    return self + fmin(aggregated, transformed);
}

/* X, the same with dropout, and what is gathered of it once. */
static double dense_bytes(const graft_trainer *t)
{
    const int copies = 1 + (t->config.input_dropout > 0) + (edges_of(t) > 0 && gr_gathers_once(t));

    return 4.0 * (double)t->n * (double)t->config.width[0] * copies;
}

int gr_sparse_is_better(const graft_trainer *t, const graft_csr *x)
{
    graft_error error = { .size = sizeof error };

    if (t->config.sparse_input != GR_AUTO) return t->config.sparse_input == GR_YES;
    if (sparse_cost(t, x) <= dense_cost(t)) return 1;
    return gr_ledger_check(t, dense_bytes(t), "features", &error) < 0;
}

/* The values of the transpose, from those of x. */
static void fill_transpose(const graft_trainer *t, const struct gr_sparse_part *part)
{
    const float  *from = part->x->csr.values;
    const int64_t entries = gr_csr_entries(&part->x->csr);
    const int     threads = gr_threads_worth(t->threads, entries);

#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) part->transpose_values[e] = from[part->entry[e]];
}

/* The first rows of X for a step, which share its arrays but for values with dropout, and their transpose. */
static int32_t init_part(graft_trainer *t, int64_t rows, struct gr_sparse_part *part, graft_error *error)
{
    graft_csr                 csr = t->sparse.whole.x->csr;
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    csr.n_rows = part->rows = rows;
    if (t->sparse.dropped != NULL) csr.values = t->sparse.dropped;
    GR_TRY(gr_ledger_check(t, (double)gr_edge_map_bytes(&csr), "features (the transpose of sparse ones)", error));
    GR_TRY(gr_matrix_create(t->context, &csr, &part->x, error));
    GR_TRY(gr_edge_map(part->x, &map, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_FEATURES, part->transpose_values, gr_csr_entries(&csr), error));
    part->entry = map->entry;
    csr = map->csr.view;
    csr.values = part->transpose_values;
    GR_TRY(gr_matrix_create(t->context, &csr, &part->transpose, error));
    fill_transpose(t, part);
done:
    return rc;
}

int32_t gr_sparse_init(graft_trainer *t, struct gr_csr *x, graft_error *error)
{
    const int64_t     bytes = gr_csr_bytes(x);
    struct gr_sparse *s = &t->sparse;
    int32_t           rc = GRAFT_OK;

    s->whole.rows = t->n;
    GR_TRY(gr_model_wrap(t->context, x, &s->whole.x, error));
    gr_ledger_return(t, bytes);
    if (t->n_train == 0) return GRAFT_OK;
    if (t->config.input_dropout > 0)
        GR_TRY(GR_LEDGER_NEW(t, GR_USE_FEATURES, s->dropped, s->whole.x->csr.row_ptr[t->reach[0]], error));
    GR_TRY(init_part(t, t->reach[0], &s->step[0], error));
    if (t->config.kind == GR_MODEL_SAGE && t->reach[1] < t->reach[0])
        rc = init_part(t, t->reach[1], &s->step[1], error);
done:
    return rc;
}

void gr_sparse_fini(graft_trainer *t)
{
    for (int i = 0; i < 2; i++) {
        gr_matrix_destroy(t->sparse.step[i].transpose);
        gr_matrix_destroy(t->sparse.step[i].x);
    }
    gr_matrix_destroy(t->sparse.whole.x);
}

int64_t gr_sparse_bytes(const graft_trainer *t)
{
    int64_t bytes = gr_matrix_own_bytes(t->sparse.whole.x);

    for (int i = 0; i < 2; i++) bytes += gr_matrix_own_bytes(t->sparse.step[i].x);
    return bytes;
}

struct drop {
    const graft_trainer *t;
    uint64_t             key;
    uint32_t             threshold;
};

/* As gr_rows_dropout(), at the entries alone. Those of eight columns have their draws in one block, so where columns
 * come in order a block is made once. */
static void drop_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct drop *drop = arg;
    const graft_csr   *csr = &drop->t->sparse.whole.x->csr;
    const float        scale = (float)gr_dropout_scale(drop->threshold);
    const float       *from = csr->values;

    for (; row < row_end; row++) {
        int64_t  block = -1;
        unsigned kept = 0;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const int64_t column = gr_csr_column(csr, e);

            if (column / 8 != block) {
                block = column / 8;
                kept = gr_dropout_kept(drop->key, gr_vertex(drop->t->vertex, row), block, drop->threshold);
            }
            drop->t->sparse.dropped[e] = kept >> column % 8 & 1 ? from[e] * scale : 0;
        }
    }
}

void gr_sparse_dropout(graft_trainer *t, uint64_t key, uint32_t threshold)
{
    const graft_csr *csr = &t->sparse.step[0].x->csr;
    struct drop      drop = { t, key, threshold };

    gr_edge_parallel_rows(gr_profile_team(t), 8 * gr_csr_entries(csr), csr, NULL, drop_rows, &drop);
    for (int i = 0; i < 2; i++) {
        const struct gr_sparse_part *part = &t->sparse.step[i];

        if (part->x == NULL) continue;
        fill_transpose(t, part);
        gr_matrix_unprepare(part->x);
        gr_matrix_unprepare(part->transpose);
    }
}
