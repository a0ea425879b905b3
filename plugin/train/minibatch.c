/* Training by minibatch: the blocks of a batch of training vertices, with features and targets of its own, in the place
 * of those of the whole graph during a step. What a batch needs has a budget of its own, which ends with the step.
 *
 * Sums over sampled neighbours estimate those over all: a mean is over those that were drawn, and other sums of a row
 * are multiplied by its neighbours over its draws, which makes them unbiased if draws are uniform. So evaluations, over
 * all neighbours, need no other scale. Maxima and attention are over what was drawn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "edge/edge.h"
#include "sample/sample.h"
#include "train/train.h"

#include <string.h>

/* -- creation ----------------------------------------------------------------------------------------------------- */

/* What cannot be together with batches. */
static int32_t check_options(const graft_trainer *t, graft_error *error)
{
    const struct gr_setup   *s = &t->setup;
    const struct gr_config  *config = &s->model.config;
    const struct gr_options *options = &s->context->options;

    if (s->over != NULL)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "option 'batch_size' is for one process, and not over ranks");
    if (config->label_rate > 0)
        return gr_fail(error, GRAFT_ERR_OPTION, "options 'batch_size' and 'label_rate' cannot be set together");
    if (options->resource.workers_sparse != 0)
        return gr_fail(error, GRAFT_ERR_OPTION, "options 'batch_size' and 'workers.sparse' cannot be set together");
    if (config->kind->attends && options->sampling.replace)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'sample.replace' is yes, but attention needs each neighbour at most once");
    return GRAFT_OK;
}

/* One number for all layers that gather, or one for each of them; the others have no edges. */
static int32_t read_fanouts(const graft_trainer *t, int64_t *fanout, graft_error *error)
{
    const struct gr_config *config = &t->setup.model.config;
    const struct gr_widths *given = &t->setup.context->options.sampling.fanout;
    const int32_t           first = config->kind->gathers ? config->gathers_from : config->n_layers;

    if (given->count != 1 && given->count != config->n_layers - first)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but %d layers gather from neighbours", given->count,
                       config->n_layers - first);
    for (int32_t l = 0; l < config->n_layers; l++)
        fanout[l] = l < first ? 0 : given->width[given->count == 1 ? 0 : l - first];
    return GRAFT_OK;
}

/* The training vertices, in the order of the setup. */
static int32_t find_seeds(const graft_trainer *t, int64_t **seeds, int64_t *n_seeds, graft_error *error)
{
    const struct gr_targets *targets = &t->setup.run.targets;
    int64_t                  count = 0;
    int32_t                  rc = GRAFT_OK;

    GR_TRY(GR_NEW(t->setup.context, *seeds, targets->n_train, error));
    for (int64_t v = 0; v < targets->n; v++)
        if (gr_is_trained(targets, v)) (*seeds)[count++] = v;
    GR_ASSERT(count == targets->n_train);
    *n_seeds = count;
done:
    return rc;
}

/* Places for the blocks of a batch. */
static int32_t make_places(graft_trainer *t, graft_error *error)
{
    struct gr_minibatches *m = &t->batches;
    const int64_t          layers = t->setup.model.config.n_layers;
    int32_t                rc = GRAFT_OK;

    if (m->block != NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&t->setup.budget, GR_USE_GRAPH, m->block_of, layers, error));
    GR_TRY(GR_BUDGET_NEW(&t->setup.budget, GR_USE_GRAPH, m->block, layers, error));
    for (int32_t l = 0; l < layers; l++) m->block_of[l] = &m->block[l];
done:
    return rc;
}

/* A graph without edges, for a model that uses none. */
static int32_t make_no_edges(graft_trainer *t, graft_csr *graph, graft_error *error)
{
    struct gr_setup *s = &t->setup;
    int32_t          rc = GRAFT_OK;

    *graph = (graft_csr){ .size = sizeof *graph, .index_type = GRAFT_I32, .n_rows = s->n, .n_cols = s->n };
    if (t->batches.no_edges == NULL)
        GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, t->batches.no_edges, s->n + 1, error));
    graph->row_ptr = t->batches.no_edges;
done:
    return rc;
}

int32_t gr_minibatches_init(graft_trainer *t, graft_error *error)
{
    struct gr_setup         *s = &t->setup;
    struct gr_minibatches   *m = &t->batches;
    struct gr_sampler_source source = { .n_layers = s->model.config.n_layers };
    int64_t                  fanout[GR_LAYERS_MAX], *seeds = NULL;
    graft_csr                none;
    graft_sampler           *made = NULL;
    int32_t                  rc = GRAFT_OK;

    if (s->context->options.sampling.batch_size == 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    GR_TRY(check_options(t, error));
    GR_TRY(read_fanouts(t, fanout, error));
    GR_TRY(make_places(t, error));
    GR_TRY(find_seeds(t, &seeds, &source.n_seeds, error));
    if (s->a == NULL) GR_TRY(make_no_edges(t, &none, error));
    source.graph = s->a != NULL ? &s->a->csr : &none;
    source.seeds = seeds;
    source.fanout = fanout;
    GR_TRY(gr_sampler_create(s->context, &source, &made, error));
    gr_minibatches_fini(t);
    m->sampler = made;
    t->progress.n_batches = gr_sampler_batches(made);
done:
    gr_free(s->context, seeds);
    return rc;
}

void gr_minibatches_fini(graft_trainer *t)
{
    struct gr_minibatches *m = &t->batches;

    gr_sampler_destroy(m->sampler);
    gr_budget_charge(&t->setup.budget, GR_USE_GRAPH, -m->sampler_bytes);
    m->sampler = NULL;
    m->sampler_bytes = 0;
}

/* -- a batch ------------------------------------------------------------------------------------------------------ */

/* Destinations whose row has `of` entries, of which `drawn` are edges. */
static float share_of(int64_t of, int64_t drawn)
{
    return drawn > 0 ? (float)((double)of / (double)drawn) : 0;
}

/* Values of the edges, where the graph has them; and where sums are not scaled otherwise, their share. */
static int32_t make_values(struct gr_minibatches *m, const struct gr_setup *s, const struct gr_sampled_layer *from,
                           const int64_t *vertex, const float **values, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    const graft_csr        *graph = &s->a->csr;
    const int shared = config->normalization == GR_NORMALIZE_NONE && !config->kind->attends && !config->takes_largest;
    const int threads = gr_threads_worth(s->run.threads, 4 * from->n_edges);
    float    *made;
    int32_t   rc = GRAFT_OK;

    *values = NULL;
    if (graph->values == NULL && !shared) return GRAFT_OK;
    GR_ASSERT(graph->values == NULL || graph->value_type == GRAFT_F32);
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, made, from->n_edges, error));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < from->n_dst; i++) {
        const int64_t begin = from->row_ptr[i], end = from->row_ptr[i + 1], v = vertex[i];
        const float   share = shared ? share_of(graph->row_ptr[v + 1] - graph->row_ptr[v], end - begin) : 1;

        for (int64_t e = begin; e < end; e++)
            made[e] = (graph->values != NULL ? ((const float *)graph->values)[from->entry[e]] : 1) * share;
    }
    *values = made;
done:
    return rc;
}

/* The factors on both sides; see the top. */
static int32_t make_scales(struct gr_minibatches *m, const struct gr_setup *s, const struct gr_sampled_layer *from,
                           const int64_t *vertex, const float *values, struct gr_block *block, graft_error *error)
{
    const enum gr_normalization normalization = s->model.config.normalization;
    const graft_csr            *graph = &s->a->csr;
    float                      *left, *right;
    int32_t                     rc = GRAFT_OK;

    if (normalization == GR_NORMALIZE_NONE) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, left, from->n_dst, error));
    for (int64_t i = 0; i < from->n_dst; i++) {
        const int64_t begin = from->row_ptr[i], end = from->row_ptr[i + 1], v = vertex[i];
        double        sum = (double)(end - begin);

        if (normalization == GR_NORMALIZE_SYMMETRIC) {
            left[i] = s->left[v] * share_of(graph->row_ptr[v + 1] - graph->row_ptr[v], end - begin);
            continue;
        }
        if (values != NULL) sum = 0;
        for (int64_t e = begin; e < end && values != NULL; e++) sum += (double)values[e];
        left[i] = sum > 0 ? (float)(1 / sum) : 0;
    }
    block->left = left;
    if (normalization != GR_NORMALIZE_SYMMETRIC) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, right, from->n_src, error));
    for (int64_t i = 0; i < from->n_src; i++) right[i] = s->right[vertex[i]];
    block->right = right;
done:
    return rc;
}

/* Features of the edges of attention that are rows of an array. */
static int32_t take_edge_rows(struct gr_minibatches *m, const struct gr_setup *s, const struct gr_sampled_layer *from,
                              struct gr_block *block, graft_error *error)
{
    const int64_t width = s->model.config.edge_features;
    float        *made;
    int32_t       rc = GRAFT_OK;

    if (s->edge == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, made, from->n_edges * width, error));
    for (int64_t e = 0; e < from->n_edges; e++)
        memcpy(made + e * width, s->edge + from->entry[e] * width, (uint64_t)width * sizeof *made);
    block->edge = made;
done:
    return rc;
}

/* Whether the backward pass sums along the edges of this layer: gradients of features are not wanted. */
static int sums_backward(const struct gr_setup *s, int32_t l)
{
    if (s->model.config.kind->attends || s->model.config.takes_largest) return 0;
    return l > 0 || !s->run.layers[0].aggregate_first;
}

static int32_t make_batch_block(graft_trainer *t, const struct gr_batch *batch, int32_t l, graft_error *error)
{
    struct gr_minibatches         *m = &t->batches;
    struct gr_setup               *s = &t->setup;
    const struct gr_sampled_layer *from = &batch->layers[l];
    struct gr_block               *block = &m->block[l];
    graft_csr     csr = { .size = sizeof csr, .index_type = GRAFT_I32, .n_rows = from->n_dst, .n_cols = from->n_src };
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    *block =
        (struct gr_block){ .n_dst = from->n_dst, .n_src = from->n_src, .n_seen = from->n_src, .vertex = m->vertex };
    if (s->a == NULL || l < s->model.config.gathers_from) return GRAFT_OK;
    csr.row_ptr = from->row_ptr;
    csr.col_idx = from->col;
    GR_TRY(make_values(m, s, from, batch->vertex, (const float **)&csr.values, error));
    csr.value_type = csr.values != NULL ? GRAFT_F32 : 0;
    GR_TRY(make_scales(m, s, from, batch->vertex, csr.values, block, error));
    GR_TRY(take_edge_rows(m, s, from, block, error));
    GR_TRY(gr_matrix_create(s->context, &csr, &block->a, error));
    if (!sums_backward(s, l)) goto done;
    GR_TRY(gr_budget_check(&m->budget, (double)gr_csr_copy_bytes(&csr, csr.n_cols, from->n_edges), "graph", error));
    GR_TRY(gr_csr_transpose(s->context, &csr, &turned, error));
    rc = gr_matrix_take(s->context, &turned, &block->a_transpose, error);
done:
    gr_csr_fini(s->context, &turned);
    GR_ASSERT(rc < 0 || gr_block_is_valid(block));
    return rc;
}

/* The rows of the features that the first layer reads. */
static int32_t take_features(graft_trainer *t, const struct gr_batch *batch, graft_error *error)
{
    struct gr_minibatches *m = &t->batches;
    struct gr_setup       *s = &t->setup;
    const int64_t          width = s->model.config.width[0];
    const graft_index      index = {
             .size = sizeof index, .index_type = GRAFT_I64, .count = batch->n_vertices, .data = batch->vertex
    };
    const graft_dense from = gr_dense_view((void *)(uintptr_t)m->input.x, GRAFT_F32, s->n, width, m->input.stride);
    graft_dense       to;
    float            *x;
    int32_t           rc = GRAFT_OK;

    if (m->input.x == NULL)
        return gr_setup_sparse_rows(s, &m->budget, batch->vertex, m->block[0].n_src, m->block[0].n_dst, error);
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_FEATURES, x, batch->n_vertices * width, error));
    to = gr_dense_view(x, GRAFT_F32, batch->n_vertices, width, width);
    gr_edge_gather_rows(&from, &index, &to, gr_threads_worth(s->run.threads, batch->n_vertices * width));
    s->run.input.x = x;
    s->run.input.stride = width;
done:
    return rc;
}

/* Labels, targets or float targets of the seeds, which are all of training. */
static int32_t take_targets(graft_trainer *t, const struct gr_batch *batch, graft_error *error)
{
    struct gr_minibatches   *m = &t->batches;
    const struct gr_targets *from = &m->targets;
    struct gr_targets       *now = &t->setup.run.targets;
    const uint64_t           classes = (uint64_t)from->n_classes;
    int32_t                 *labels = NULL;
    uint8_t                 *targets = NULL, *split;
    float                   *values = NULL;
    int32_t                  rc = GRAFT_OK;

    if (from->labels != NULL) GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, labels, batch->n_seeds, error));
    if (from->targets != NULL)
        GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, targets, batch->n_seeds * from->n_classes, error));
    if (from->values != NULL)
        GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, values, batch->n_seeds * from->n_classes, error));
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, split, batch->n_seeds, error));
    for (int64_t i = 0; i < batch->n_seeds; i++) {
        const uint64_t v = (uint64_t)batch->vertex[i], to = (uint64_t)i * classes;

        split[i] = GRAFT_SPLIT_TRAIN;
        if (labels != NULL) labels[i] = from->labels[v];
        if (targets != NULL) memcpy(targets + to, from->targets + v * classes, classes);
        if (values != NULL) memcpy(values + to, from->values + v * (uint64_t)from->stride, classes * sizeof *values);
    }
    now->labels = labels;
    now->targets = targets;
    now->values = values;
    now->stride = from->n_classes;
    now->split = split;
    now->n = now->n_train = batch->n_seeds;
    now->loss_weight = 0;
    for (int64_t i = 0; i < batch->n_seeds; i++)
        now->loss_weight += values != NULL ? (double)gr_known_values(now, i) : gr_vertex_weight(now, i);
done:
    return rc;
}

/* Global vertices, which key random draws. */
static int32_t name_batch(graft_trainer *t, const struct gr_batch *batch, graft_error *error)
{
    struct gr_minibatches *m = &t->batches;
    const int64_t         *named = t->setup.vertex;
    int64_t               *vertex;
    int32_t                rc = GRAFT_OK;

    m->vertex = batch->vertex;
    if (named == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, vertex, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++) vertex[i] = named[batch->vertex[i]];
    m->vertex = vertex;
done:
    return rc;
}

/* The memory of the sampler counts as the trainer's. */
static void charge_sampler(graft_trainer *t)
{
    const int64_t bytes = gr_sampler_bytes(t->batches.sampler);

    gr_budget_charge(&t->setup.budget, GR_USE_GRAPH, bytes - t->batches.sampler_bytes);
    t->batches.sampler_bytes = bytes;
}

int32_t gr_minibatch_begin(graft_trainer *t, graft_error *error)
{
    struct gr_minibatches *m = &t->batches;
    struct gr_setup       *s = &t->setup;
    const double           begin = gr_profile_begin(&s->run.profile);
    const struct gr_batch *batch;
    int32_t                rc = GRAFT_OK;

    m->input = s->run.input;
    m->targets = s->run.targets;
    GR_TRY(gr_sampler_next(m->sampler, error));
    batch = gr_sampler_batch(m->sampler);
    GR_ASSERT(batch->index == t->progress.batch);
    charge_sampler(t);
    gr_profile_end_alone(&s->run.profile, "sample", begin);
    gr_budget_init(&m->budget, s->context, 0);
    m->budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    GR_TRY(name_batch(t, batch, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++) GR_TRY(make_batch_block(t, batch, l, error));
    GR_TRY(take_features(t, batch, error));
    rc = take_targets(t, batch, error);
    gr_profile_end_alone(&s->run.profile, "gather", begin);
done:
    return rc;
}

void gr_minibatch_end(graft_trainer *t)
{
    struct gr_minibatches *m = &t->batches;
    struct gr_setup       *s = &t->setup;

    if (s->run.input.sparse.whole.x != m->input.sparse.whole.x) gr_setup_sparse_rows_fini(s);
    s->run.input = m->input;
    s->run.targets = m->targets;
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        gr_matrix_destroy(m->block[l].a_transpose);
        gr_matrix_destroy(m->block[l].a);
        m->block[l] = (struct gr_block){ 0 };
    }
    gr_budget_fini(&m->budget);
    memset(&m->budget, 0, sizeof m->budget);
}
