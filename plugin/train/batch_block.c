/* Creates the blocks of a batch.
 *
 * Sums over sampled neighbours estimate sums over all neighbours. A mean is over the drawn neighbours. Any other sum of
 * a row is multiplied by (number of neighbours / number of draws), so it is unbiased if draws are uniform, and
 * evaluations, which use all neighbours, need no other scale. If drawn edges have weights, (sum of weights) replaces
 * the number of draws; in subgraphs of random walks, sums with weights need no scale. Extrema and attention are over
 * the drawn neighbours. Over ranks, neighbours whose rows are missing count as zero in sums, or with
 * hec.miss=drop_rescaled as not drawn; extrema and attention ignore them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/fp.h"
#include "edge/edge.h"
#include "sample/options.h"

#include <string.h>

/* The edges from which the scale of a destination's sum is computed: of the sampled layer, or only of the block. */
struct counted {
    int64_t        begin, end;
    const int64_t *entry;  /* entry of the graph of each edge */
    const float   *weight; /* weight of each draw; NULL: all 1 */
};

static struct counted counted_edges(const struct gr_setup *s, const struct gr_batch_layer *b, int64_t i)
{
    const int64_t at = b->row != NULL ? b->row[i] : i;

    if (gr_sample_options(s->context)->cache_miss == GR_MISS_DROP_RESCALED)
        return (struct counted){ b->row_ptr[i], b->row_ptr[i + 1], b->entry, b->weight };
    return (struct counted){ b->from->row_ptr[at], b->from->row_ptr[at + 1], b->from->entry, b->from->weight };
}

/* Return the sum of (weight times value) of these edges; a NULL array counts as 1. */
static double counted_sum(struct counted c, const float *value)
{
    double sum = c.weight != NULL || value != NULL ? 0 : (double)(c.end - c.begin);

    if (c.weight == NULL && value == NULL) return sum;
    for (int64_t e = c.begin; e < c.end; e++)
        sum += (c.weight != NULL ? (double)c.weight[e] : 1) * (value != NULL ? (double)value[c.entry[e]] : 1);
    return sum;
}

/* Return the number of neighbours of vertex v divided by the sum of the weights of its counted edges. */
static float share_of(const graft_csr *graph, int64_t v, struct counted counted)
{
    const double sum = counted_sum(counted, NULL);

    return sum > 0 ? (float)((double)(graph->row_ptr[v + 1] - graph->row_ptr[v]) / sum) : 0;
}

/* Compute the values of the edges of the block: values of the graph, times weights of draws, times share_of() if
 * make_scales() does not scale the sums. NULL: all are 1.
 */
static int32_t make_values(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch_layer *b,
                           const float **values, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    const graft_csr        *graph = m->graph;
    const int               sums = !config->kind->attends && config->extremum == 0, weighs = sums && b->weight != NULL;
    const int shared = sums && config->normalization == GR_NORMALIZE_NONE && (b->weight == NULL || b->normalizes);
    const int threads = gr_threads_worth(s->run.threads, 4 * b->n_edges);
    const struct gr_fp fp = gr_fp_get();
    float             *made;

    *values = NULL;
    if (graph->values == NULL && !shared && !weighs) return GRAFT_OK;
    GR_ASSERT(graph->values == NULL || graph->value_type == GRAFT_F32);
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, made, b->n_edges, error));
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct gr_fp own = gr_fp_swap(fp);

#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < b->n_dst; i++) {
            const float share = shared ? share_of(graph, m->now.vertex[i], counted_edges(s, b, i)) : 1;

            for (int64_t e = b->row_ptr[i]; e < b->row_ptr[i + 1]; e++)
                made[e] = (graph->values != NULL ? ((const float *)graph->values)[b->entry[e]] : 1) *
                          (weighs ? b->weight[e] : 1) * share;
        }
        gr_fp_set(own);
    }
    *values = made;
    return GRAFT_OK;
}

/* Return the left factor of the sum of destination i, which is vertex v. */
static float scale_of(const struct gr_setup *s, const graft_csr *graph, const struct gr_batch_layer *b, int64_t i,
                      int64_t v)
{
    double sum;

    if (b->weight != NULL && !b->normalizes) return s->derived.whole.left[v];
    if (s->model.config.normalization == GR_NORMALIZE_SYMMETRIC)
        return s->derived.whole.left[v] * share_of(graph, v, counted_edges(s, b, i));
    sum = counted_sum(counted_edges(s, b, i), graph->values);
    return sum > 0 ? (float)(1 / sum) : 0;
}

/* Compute the factors of destinations (left) and sources (right); see the top of this file. */
static int32_t make_scales(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch_layer *b,
                           struct gr_block *block, graft_error *error)
{
    const enum gr_normalization normalization = s->model.config.normalization;
    float                      *left, *right;

    if (normalization == GR_NORMALIZE_NONE) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, left, b->n_dst, error));
    for (int64_t i = 0; i < b->n_dst; i++) left[i] = scale_of(s, m->graph, b, i, m->now.vertex[i]);
    block->left = left;
    if (normalization != GR_NORMALIZE_SYMMETRIC) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, right, b->n_src, error));
    for (int64_t i = 0; i < b->n_src; i++)
        right[i] = m->now.vertex[i] < s->data.n ? s->derived.whole.right[m->now.vertex[i]]
                                                : m->halo.right[m->now.vertex[i] - s->data.n];
    block->right = right;
    return GRAFT_OK;
}

/* Copy the features of the edges, if attention reads them from an array of rows. */
static int32_t take_edge_rows(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch_layer *b,
                              struct gr_block *block, graft_error *error)
{
    const int64_t width = s->model.config.attention.edge_features;
    float        *made;

    if (s->derived.edge == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, made, b->n_edges * width, error));
    for (int64_t e = 0; e < b->n_edges; e++)
        memcpy(made + e * width, s->derived.edge + b->entry[e] * width, (uint64_t)width * sizeof *made);
    block->edge = made;
    return GRAFT_OK;
}

/* Let the strategy add edges from rows that only it has. */
static int32_t complete_block(struct gr_minibatches *m, int32_t l, const struct gr_batch_layer *b, graft_csr *csr,
                              struct gr_block *block, graft_error *error)
{
    return m->strategy != NULL ? m->strategy->ops->block(m->strategy, l, b, csr, block, error) : GRAFT_OK;
}

int32_t gr_train_batch_block(struct gr_setup *s, struct gr_minibatches *m, int32_t l, const struct gr_batch_layer *b,
                             graft_error *error)
{
    struct gr_block *block = &m->now.block[l];
    graft_csr        csr = { .size = sizeof csr, .index_type = GRAFT_I32, .n_rows = b->n_dst, .n_cols = b->n_seen };

    if (b->is_shared) {
        *block = m->now.block[l - 1];
        return complete_block(m, l, b, NULL, block, error);
    }
    *block = (struct gr_block){ .n_dst = b->n_dst, .n_src = b->n_src, .n_seen = b->n_src, .vertex = m->now.names };
    if (m->graph == &m->no_edges || l < s->model.config.gathers_from) return GRAFT_OK;
    csr.row_ptr = b->row_ptr;
    csr.col_idx = b->col;
    GR_TRY(make_values(s, m, b, (const float **)&csr.values, error));
    csr.value_type = csr.values != NULL ? GRAFT_F32 : 0;
    GR_TRY(make_scales(s, m, b, block, error));
    GR_TRY(take_edge_rows(s, m, b, block, error));
    GR_TRY(complete_block(m, l, b, &csr, block, error));
    GR_TRY(gr_matrix_create(s->context, &csr, &block->a, error));
    /* The transpose exists only if the backward pass sums along these edges; gradients of features are not needed. */
    if (!s->model.config.kind->attends && s->model.config.extremum == 0 && (l > 0 || !s->run.layers[0].aggregate_first))
        GR_TRY(gr_parallel_transpose_block(s->context, &m->now.budget, &csr, &block->a_transpose, error));
    GR_ASSERT(gr_model_block_is_valid(block));
    return GRAFT_OK;
}

void gr_train_batch_blocks_fini(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m->strategy != NULL) m->strategy->ops->end(m->strategy);
    for (int32_t l = s->model.config.n_layers - 1; l >= 0; l--) {
        struct gr_block *block = &m->now.block[l];
        const int        is_shared = l > 0 && block->a != NULL && block->a == m->now.block[l - 1].a;

        if (!is_shared) gr_matrix_destroy(block->a_transpose);
        if (!is_shared) gr_matrix_destroy(block->a);
        *block = (struct gr_block){ 0 };
    }
}
