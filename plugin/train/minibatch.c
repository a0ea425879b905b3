/* Training by minibatch: during a step, the blocks of a batch of training vertices, with its features and targets,
 * replace the blocks of the whole graph. The memory of a batch has a separate budget, which ends with the step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "train/train.h"

#include <string.h>

/* Copy the features of the batch's halo vertices. */
static int32_t take_halo_features(struct gr_setup *s, struct gr_minibatches *m, float *to, graft_error *error)
{
    const struct gr_batch_now *now = &m->now;
    const int64_t              count = now->n_vertices - now->n_owned;
    struct gr_input            halo = m->whole.input;
    int64_t                   *row;

    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, row, count, error));
    for (int64_t i = 0; i < count; i++) row[i] = now->vertex[now->n_owned + i] - s->data.n;
    halo.x = m->halo.x;
    return gr_setup_take_features(s, &halo, row, count, to, error);
}

static int32_t take_features(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const struct gr_batch_now *now = &m->now;
    const int64_t              width = s->model.config.width[0];
    float                     *x;

    if (m->whole.input.x == NULL)
        return gr_setup_sparse_rows(s, &m->now.budget, now->vertex, now->block[0].n_src, now->block[0].n_dst, error);
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_FEATURES, x, now->n_vertices * width, error));
    GR_TRY(gr_setup_take_features(s, &m->whole.input, now->vertex, now->n_owned, x, error));
    if (now->n_vertices > now->n_owned) GR_TRY(take_halo_features(s, m, x + now->n_owned * width, error));
    s->run.input.x = x;
    s->run.input.type = GRAFT_F32;
    s->run.input.stride = width;
    if (s->model.config.input_dropout > 0)
        return GR_BUDGET_NEW(&m->now.budget, GR_USE_FEATURES, s->run.input.dropped, now->n_vertices * width, error);
    return GRAFT_OK;
}

/* Copy the labels, targets or float targets of the seeds, and their split. */
static int32_t take_targets(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                            graft_error *error)
{
    const struct gr_targets *from = &m->whole.targets;
    struct gr_targets       *now = &s->run.targets;
    const uint64_t           classes = (uint64_t)from->n_classes;
    int32_t                 *labels = NULL;
    uint8_t                 *targets = NULL, *split;
    float                   *values = NULL;

    if (from->labels != NULL) GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, labels, batch->n_seeds, error));
    if (from->targets != NULL)
        GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, targets, batch->n_seeds * from->n_classes, error));
    if (from->values != NULL)
        GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, values, batch->n_seeds * from->n_classes, error));
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, split, batch->n_seeds, error));
    for (int64_t i = 0; i < batch->n_seeds; i++) {
        const uint64_t v = (uint64_t)batch->vertex[i], to = (uint64_t)i * classes;

        split[i] = from->split[v];
        if (labels != NULL) labels[i] = from->labels[v];
        if (targets != NULL) memcpy(targets + to, from->targets + v * classes, classes);
        if (values != NULL) memcpy(values + to, from->values + v * (uint64_t)from->stride, classes * sizeof *values);
    }
    now->labels = labels;
    now->targets = targets;
    now->values = values;
    now->stride = from->n_classes;
    now->split = split;
    now->n = batch->n_seeds;
    now->n_train = batch->weighs_seeds ? batch->n_seeds : 0;
    if (batch->weighs_seeds) { /* weights of seeds make the loss an estimate for all training vertices */
        now->vertex_weight = batch->weight;
        return GRAFT_OK;
    }
    now->loss_weight = m->deal.weight != NULL ? m->deal.weight[batch->index] : 0;
    for (int64_t i = 0; i < batch->n_seeds; i++) {
        if (!gr_is_trained(now, i)) continue;
        now->n_train++;
        if (m->deal.weight == NULL)
            now->loss_weight += values != NULL ? (double)gr_known_values(now, i) : gr_vertex_weight(now, i);
    }
    return GRAFT_OK;
}

/* Set the vertices of the batch, and their global indices, which are the keys of random draws. */
static int32_t name_batch(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                          graft_error *error)
{
    struct gr_batch_now *now = &m->now;
    int64_t             *names;

    now->n_vertices = now->n_owned = batch->n_vertices;
    now->vertex = batch->vertex;
    if (m->strategy != NULL) GR_TRY(m->strategy->ops->number(m->strategy, batch, &now->vertex, &now->n_owned, error));
    m->edges.n += gr_sample_batch_edges(batch);
    now->names = now->vertex;
    if (s->derived.whole.vertex == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&now->budget, GR_USE_GRAPH, names, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++)
        names[i] =
            i < now->n_owned ? s->derived.whole.vertex[now->vertex[i]] : m->halo.name[now->vertex[i] - s->data.n];
    now->names = names;
    return GRAFT_OK;
}

static int32_t make_batch_layer(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                                graft_error *error)
{
    const struct gr_sampled_layer sampled = gr_sample_batch_layer(batch, l), *from = &sampled;
    struct gr_batch_layer         layer = { .n_dst = from->n_dst,
                                            .n_src = from->n_src,
                                            .n_seen = from->n_src,
                                            .n_edges = from->n_edges,
                                            .row_ptr = from->row_ptr,
                                            .col = from->col,
                                            .entry = from->entry,
                                            .weight = from->weight,
                                            .normalizes = batch->normalizes,
                                            .from = from };

    if (m->strategy != NULL) GR_TRY(m->strategy->ops->layer(m->strategy, batch, l, &layer, error));
    return gr_train_batch_block(s, m, l, &layer, error);
}

/* Create the blocks, features and targets of a batch. Not collective. */
static int32_t make_batch(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                          graft_error *error)
{
    for (int32_t l = 0; l < s->model.config.n_layers; l++) GR_TRY(make_batch_layer(s, m, batch, l, error));
    GR_TRY(take_features(s, m, error));
    GR_TRY(take_targets(s, m, batch, error));
    return gr_setup_arrays_for_batch(s, m->now.block, gr_budget_total(&m->now.budget), error);
}

static int is_extended(const struct gr_minibatches *m)
{
    return m->strategy != NULL && m->strategy->extension != NULL;
}

/* Sample the seeds of the batch and their neighbours. With an extension of the sampler this is collective, so ranks
 * agree before it. */
static int32_t sample_batch(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    int32_t rc = gr_setup_spans_reserve(s, error);

    if (is_extended(m)) {
        if (rc == GRAFT_OK) rc = gr_sampler_prepare(m->sampler, error);
        GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    }
    if (rc == GRAFT_OK) rc = gr_sampler_next(m->sampler, error);
    gr_train_batches_charge(s, m);
    m->now.budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    if (rc == GRAFT_OK) rc = name_batch(s, m, gr_sampler_batch(m->sampler), error);
    return gr_strategy_agree(s->run.strategy, rc, error);
}

int64_t gr_train_minibatch_number(const struct gr_progress *progress)
{
    return progress->epoch * progress->n_batches + progress->batch;
}

int32_t gr_train_minibatch_begin(graft_trainer *t, graft_error *error)
{
    struct gr_setup          *s = &t->setup;
    struct gr_minibatches    *m = t->batches;
    struct gr_batch_strategy *strategy = m->strategy;
    const int64_t             number = gr_train_minibatch_number(&t->progress);
    const int                 begins_first = is_extended(m) || m->mode->renews;
    double                    begin;

    m->whole = (struct gr_batch_whole){ s->run.input, s->run.targets, s->run.strategy };
    gr_budget_init(&m->now.budget, s->context, 0);
    m->now.budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    if (begins_first) GR_TRY(strategy->ops->begin(strategy, number, error));
    if (m->mode->renews && !strategy->is_filled) GR_TRY(gr_train_history_fill(s, m, error));
    begin = gr_profile_begin(&s->run.profile);
    s->run.profile.pass = GRAFT_PASS_FORWARD;
    s->run.profile.layer = -1;
    GR_TRY(sample_batch(s, m, error));
    GR_ASSERT(gr_sampler_batch(m->sampler)->index == t->progress.batch);
    gr_profile_end_alone(&s->run.profile, "sample", begin);
    if (strategy != NULL && !begins_first) GR_TRY(strategy->ops->begin(strategy, number, error));
    begin = gr_profile_begin(&s->run.profile);
    GR_TRY(gr_strategy_agree(s->run.strategy, make_batch(s, m, gr_sampler_batch(m->sampler), error), error));
    gr_profile_end_alone(&s->run.profile, "gather", begin);
    if (strategy == NULL) return GRAFT_OK;
    if (strategy->ops->post != NULL) GR_TRY(strategy->ops->post(strategy, error));
    s->run.strategy = &strategy->base;
    return GRAFT_OK;
}

void gr_train_minibatch_end(graft_trainer *t)
{
    struct gr_minibatches *m = t->batches;
    struct gr_setup       *s = &t->setup;

    s->run.strategy = m->whole.strategy;
    if (s->run.input.sparse.whole.x != m->whole.input.sparse.whole.x) gr_setup_sparse_fini(s);
    s->run.input = m->whole.input;
    s->run.targets = m->whole.targets;
    gr_train_batch_blocks_fini(s, m);
    gr_budget_fini(&m->now.budget);
    memset(&m->now.budget, 0, sizeof m->now.budget);
}
