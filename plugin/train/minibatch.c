/* Training by minibatch: during a step, the blocks of a batch of training vertices, with its features and targets,
 * replace the blocks of the whole graph. The memory of a batch has a separate budget, which ends with the step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/finite.h"
#include "sample/kind.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

/* -- creation ----------------------------------------------------------------------------------------------------- */

/* Options that may change between epochs. */
static int32_t check_live_options(const struct gr_setup *s, graft_error *error)
{
    if (s->context->options.train.restores)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'on_nonfinite=restore' cannot be set together: earlier weights must "
                       "have a finite loss, and a batch measures the loss of some training vertices only");
    return gr_by_rows_check_folder(s, error);
}

/* Refuse options that are not supported with batches. */
static int32_t check_options(const struct gr_setup *s, graft_error *error)
{
    const struct gr_config  *config = &s->model.config;
    const struct gr_options *options = &s->context->options;

    if (config->label_rate > 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'label_rate' cannot be set together: a step draws known labels from "
                       "all training vertices, and a batch has some of them");
    if (options->resource.workers_sparse != 0)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "options 'batch_size' and 'workers.sparse' cannot be set together: the pipeline is made once for "
            "the whole graph, and each batch has another one");
    if (config->kind->attends && options->sampling.replace && gr_sample_kind(s->context)->draws)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'sample.replace' is yes, but attention needs each neighbour at most once");
    if (s->data.over != NULL) {
        const int32_t rc = gr_batch_ranks_check(s, error);
        if (rc < 0) return rc;
    }
    return check_live_options(s, error);
}

/* One number for all layers that gather, or one for each; other layers have no edges. */
static int32_t read_fanouts(const struct gr_setup *s, int64_t *fanout, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    const struct gr_widths *given = &s->context->options.sampling.fanout;
    const int32_t           first = config->kind->gathers ? config->gathers_from : config->n_layers;

    if (given->count != 1 && given->count != config->n_layers - first && gr_sample_kind(s->context)->has_fanout)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but %d layers gather from neighbours", given->count,
                       config->n_layers - first);
    for (int32_t l = 0; l < config->n_layers; l++)
        fanout[l] = l < first ? 0 : given->width[l - first < given->count ? l - first : 0];
    return GRAFT_OK;
}

int32_t gr_batch_seeds(const struct gr_setup *s, const struct gr_targets *targets, int64_t **seeds, int64_t *n_seeds,
                       graft_error *error)
{
    const int all = gr_setup_has_history(s);
    int64_t   count = 0;
    int32_t   rc = GRAFT_OK;

    for (int64_t v = 0; v < targets->n; v++) count += all || gr_is_trained(targets, v);
    GR_TRY(GR_NEW(s->context, *seeds, count, error));
    *n_seeds = count;
    count = 0;
    for (int64_t v = 0; v < targets->n; v++)
        if (all || gr_is_trained(targets, v)) (*seeds)[count++] = v;
done:
    return rc;
}

/* Places for the blocks of a batch; and for a model that uses no edges, a graph without edges. */
static int32_t make_places(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const int64_t layers = s->model.config.n_layers;
    int64_t      *row_ptr = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_NEW(s->context, m->block_of, layers, error));
    GR_TRY(GR_NEW(s->context, m->block, layers, error));
    for (int32_t l = 0; l < layers; l++) m->block_of[l] = &m->block[l];
    if (s->model.config.kind->gathers) return GRAFT_OK;
    GR_TRY(GR_NEW(s->context, row_ptr, s->data.n + 1, error));
    m->no_edges =
        (graft_csr){ .size = sizeof m->no_edges, .index_type = GRAFT_I32, .n_rows = s->data.n, .n_cols = s->data.n };
    m->no_edges.row_ptr = row_ptr;
done:
    return rc;
}

static int32_t check_batch_size(const struct gr_setup *s, int64_t n_seeds, graft_error *error)
{
    const int64_t size = s->context->options.sampling.batch_size;

    if (size <= n_seeds) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION, "option 'batch_size' is %lld, expected at most %lld, the number of %s",
                   (long long)size, (long long)n_seeds, gr_setup_has_history(s) ? "vertices" : "training vertices");
}

int32_t gr_batch_sampler(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch_deal *deal,
                         const struct gr_sampler_source *from, graft_sampler **sampler, graft_error *error)
{
    const struct gr_sampling_options *options = &s->context->options.sampling;
    struct gr_sampler_source          source = *from;
    int64_t                           fanout[GR_LAYERS_MAX];
    int32_t                           rc = GRAFT_OK;

    source.fanout = fanout;
    source.n_layers = s->model.config.n_layers;
    source.neighbours = !s->model.config.kind->gathers || gr_setup_has_history(s);
    if (deal != NULL) {
        source.n_batches = deal->n_batches;
        source.rank = s->data.over->comm->rank;
        source.degree = m->ranks->degree;
        source.name = s->derived.whole.vertex;
        source.shift = m->ranks->shift;
        source.extension = gr_batch_fetch_extension(s, m);
    } else {
        GR_TRY(check_batch_size(s, source.n_seeds, error));
    }
    if (gr_setup_has_history(s)) {
        source.n_layers = 1; /* which all layers share */
        source.by_parts = gr_sample_kind(s->context)->order != NULL;
        fanout[0] = source.by_parts || gr_option_is_default(s->context, "fanout") ? GR_ALL_NEIGHBOURS
                                                                                  : options->fanout.width[0];
    } else {
        GR_TRY(read_fanouts(s, fanout, error));
    }
    rc = gr_sampler_create(s->context, &source, sampler, error);
done:
    return rc;
}

/* All except the agreement of ranks on local failures. */
static int32_t make_minibatches(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_batch_deal    *deal = NULL;
    struct gr_sampler_source source = { 0 };
    int64_t                 *seeds = NULL;
    int32_t                  rc = GRAFT_OK;

    GR_TRY(check_options(s, error));
    if (gr_setup_has_history(s)) GR_TRY(gr_batch_history_init(s, m, error));
    rc = make_places(s, m, error);
    if (rc == GRAFT_OK) rc = gr_batch_seeds(s, &s->run.targets, &seeds, &source.n_seeds, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    m->graph = &m->no_edges;
    if (s->model.config.kind->gathers && s->derived.whole.a != NULL) m->graph = &s->derived.whole.a->csr;
    if (s->data.over != NULL) {
        GR_TRY(gr_batch_ranks_init(s, m, error));
        deal = &m->ranks->deal;
        GR_TRY(gr_batch_ranks_deal(s, source.n_seeds, deal, error));
    }
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_batch_tables_init(s, m, error), error));
    source.graph = m->graph;
    source.seeds = seeds;
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_batch_sampler(s, m, deal, &source, &m->sampler, error), error));
    GR_TRY(gr_batches_identify(s, m->sampler, &m->id, error));
    if (m->cached != NULL) rc = gr_cached_gather(m->cached, error); /* so that explain() knows the capacities */
done:
    gr_free(s->context, seeds);
    return rc;
}

static void free_minibatches(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m == NULL) return;
    gr_sampler_destroy(m->sampler);
    gr_batch_ranks_fini(s, m);
    gr_batch_history_fini(s, m);
    gr_free(s->context, m->block);
    gr_free(s->context, m->block_of);
    gr_free(s->context, (void *)(uintptr_t)m->no_edges.row_ptr);
    gr_budget_charge(&s->budget, GR_USE_GRAPH, -m->charged);
    gr_free(s->context, m);
}

void gr_batch_charge_sampler(struct gr_setup *s, struct gr_minibatches *m)
{
    const int64_t bytes = gr_sampler_bytes(m->sampler) + gr_bytes(m->no_edges.row_ptr);

    gr_budget_charge(&s->budget, GR_USE_GRAPH, bytes - m->charged);
    m->charged = bytes;
}

int32_t gr_minibatches_init(graft_trainer *t, graft_error *error)
{
    struct gr_setup       *s = &t->setup;
    struct gr_minibatches *made = NULL;
    int32_t                rc = GRAFT_OK;

    if (s->context->options.sampling.batch_size == 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    GR_TRY(gr_strategy_agree(s->run.strategy, GR_NEW(s->context, made, 1, error), error));
    GR_TRY(make_minibatches(s, made, error));
    gr_minibatches_fini(t);
    t->batches = made;
    made = NULL;
    gr_batch_charge_sampler(s, t->batches);
    t->progress.n_batches = gr_sampler_batches(t->batches->sampler);
    t->progress.batches = t->batches->id;
done:
    free_minibatches(s, made);
    return rc;
}

void gr_batches_charge(struct gr_setup *s, const struct gr_budget *lasting, int64_t *charged, int exists)
{
    for (int use = 0; use < GR_USES; use++) {
        const int64_t bytes = exists ? gr_budget_bytes(lasting, (enum gr_use)use) : 0;

        gr_budget_charge(&s->budget, (enum gr_use)use, bytes - charged[use]);
        charged[use] = bytes;
    }
}

/* Batches as text; states of older builds do not say. */
static void describe_batches(const struct gr_batches_id *id, char text[96])
{
    if (id->n_batches == 0) snprintf(text, 96, "batches");
    else
        snprintf(text, 96, "%lld batches (batch_size=%lld, ranks: %lld)", (long long)id->n_batches,
                 (long long)id->batch_size, (long long)id->n_ranks);
}

/* Tell that an epoch begins again. Over ranks only rank 0 warns. */
static void warn_of_batches(const graft_trainer *t, const struct gr_batches_id *own)
{
    const struct gr_progress *p = &t->progress;
    const struct gr_setup    *s = &t->setup;
    char                      then[96], now[96] = "the whole graph";

    if (s->data.over != NULL && s->data.over->comm->rank != 0) return;
    describe_batches(&p->batches, then);
    if (own->n_batches > 0) describe_batches(own, now);
    gr_log(s->context, GRAFT_LOG_WARNING,
           "epoch %lld begins again, on %s: the state is after %lld of %s, with other training vertices or other "
           "options (batch_size, sampler, seed, ...); with the same ones the epoch would go on",
           (long long)p->epoch + 1, now, (long long)p->batch, then);
}

void gr_minibatches_restart(graft_trainer *t)
{
    struct gr_progress *p = &t->progress;

    p->batch = 0;
    p->loss = p->weight = 0;
    p->batches = t->batches != NULL ? t->batches->id : (struct gr_batches_id){ 0 };
}

void gr_minibatches_settle(graft_trainer *t)
{
    const struct gr_progress  *p = &t->progress;
    const struct gr_batches_id own = t->batches != NULL ? t->batches->id : (struct gr_batches_id){ 0 };

    if (p->batch > 0 && p->batch <= p->n_batches && memcmp(&p->batches, &own, sizeof own) == 0) return;
    if (p->batch > 0) warn_of_batches(t, &own);
    gr_minibatches_restart(t);
}

void gr_minibatches_forget(graft_trainer *t)
{
    if (t->batches == NULL) return;
    if (t->batches->cached != NULL) gr_cached_forget(t->batches->cached);
    gr_batch_tables_unset(t->batches);
}

int32_t gr_minibatches_prepare(graft_trainer *t, graft_error *error)
{
    struct gr_setup *s = &t->setup;
    int32_t          rc = check_live_options(s, error);

    if (rc == GRAFT_OK && t->batches->ranks != NULL) rc = gr_batch_ranks_check(s, error);
    return gr_strategy_agree(s->run.strategy, rc, error);
}

void gr_minibatches_fini(graft_trainer *t)
{
    free_minibatches(&t->setup, t->batches);
    t->batches = NULL;
}

/* -- a batch ------------------------------------------------------------------------------------------------------ */

/* Features of the vertices of the halo in the batch. */
static int32_t take_halo_features(struct gr_setup *s, struct gr_minibatches *m, float *to, graft_error *error)
{
    const int64_t   owned = m->ranks->n_owned, count = m->n_vertices - owned, *vertex = m->vertex + owned;
    struct gr_input halo = m->input;
    int64_t        *row;
    int32_t         rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, row, count, error));
    for (int64_t i = 0; i < count; i++) row[i] = vertex[i] - s->data.n;
    halo.x = m->ranks->x;
    rc = gr_setup_take_features(s, &halo, row, count, to, error);
done:
    return rc;
}

static int32_t take_features(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const int64_t width = s->model.config.width[0], owned = m->ranks != NULL ? m->ranks->n_owned : m->n_vertices;
    float        *x;
    int32_t       rc = GRAFT_OK;

    if (m->input.x == NULL)
        return gr_setup_sparse_rows(s, &m->budget, m->vertex, m->block[0].n_src, m->block[0].n_dst, error);
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_FEATURES, x, m->n_vertices * width, error));
    GR_TRY(gr_setup_take_features(s, &m->input, m->vertex, owned, x, error));
    if (m->ranks != NULL) GR_TRY(take_halo_features(s, m, x + owned * width, error));
    s->run.input.x = x;
    s->run.input.type = GRAFT_F32;
    s->run.input.stride = width;
    if (s->model.config.input_dropout > 0)
        rc = GR_BUDGET_NEW(&m->budget, GR_USE_FEATURES, s->run.input.dropped, m->n_vertices * width, error);
done:
    return rc;
}

/* Labels, targets or float targets of the seeds, and whether they are training vertices: without option history all
 * are. */
static int32_t take_targets(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                            graft_error *error)
{
    const struct gr_targets *from = &m->targets;
    struct gr_targets       *now = &s->run.targets;
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
    if (batch->weighs_seeds) { /* the loss of all training vertices is estimated */
        now->vertex_weight = batch->weight;
        goto done;
    }
    now->loss_weight = m->ranks != NULL ? m->ranks->deal.weight[batch->index] : 0;
    for (int64_t i = 0; i < batch->n_seeds; i++) {
        if (!gr_is_trained(now, i)) continue;
        now->n_train++;
        if (m->ranks == NULL)
            now->loss_weight += values != NULL ? (double)gr_known_values(now, i) : gr_vertex_weight(now, i);
    }
done:
    return rc;
}

/* Global vertices, which key random draws. */
static int32_t name_batch(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                          graft_error *error)
{
    int64_t *names;
    int32_t  rc = GRAFT_OK;

    if (m->ranks != NULL) return gr_batch_ranks_number(s, m, batch, error);
    m->n_vertices = batch->n_vertices;
    m->vertex = m->names = batch->vertex;
    if (s->derived.whole.vertex == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, names, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++) names[i] = s->derived.whole.vertex[batch->vertex[i]];
    m->names = names;
done:
    return rc;
}

static int32_t make_batch_layer(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                                graft_error *error)
{
    const struct gr_sampled_layer sampled = gr_batch_layer(batch, l), *from = &sampled;
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
    int32_t                       rc = GRAFT_OK;

    if (m->ranks != NULL) GR_TRY(gr_batch_ranks_layer(s, m, batch, l, &layer, error));
    rc = gr_batch_block(s, m, l, &layer, error);
done:
    return rc;
}

/* The local part of a batch. */
static int32_t make_batch(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                          graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        if (m->history != NULL) GR_TRY(gr_batch_history_block(s, m, batch, l, error));
        else GR_TRY(make_batch_layer(s, m, batch, l, error));
    }
    GR_TRY(take_features(s, m, error));
    GR_TRY(take_targets(s, m, batch, error));
    rc = gr_arrays_for_batch(s, m->block, gr_budget_total(&m->budget), error);
done:
    return rc;
}

/* Over ranks: use the rows of earlier batches, and send the rows of this batch. */
static int32_t begin_over_ranks(struct gr_setup *s, struct gr_minibatches *m, int64_t number, graft_error *error)
{
    struct gr_cached *cached = &m->ranks->cached;
    struct gr_team    team = { .threads = s->run.threads };
    const double      begin = gr_profile_begin(&s->run.profile);
    int32_t           rc = GRAFT_OK;

    GR_TRY(gr_cached_begin(cached, number, team, error));
    gr_profile_end_alone(&s->run.profile, "receive", begin);
done:
    return rc;
}

int64_t gr_minibatch_number(const struct gr_progress *progress)
{
    return progress->epoch * progress->n_batches + progress->batch;
}

int32_t gr_minibatch_begin(graft_trainer *t, graft_error *error)
{
    struct gr_setup       *s = &t->setup;
    struct gr_minibatches *m = t->batches;
    const int64_t          number = gr_minibatch_number(&t->progress);
    const int              fetches = m->ranks != NULL && m->ranks->cached.fetches;
    const struct gr_batch *batch;
    double                 begin;
    int32_t                rc = GRAFT_OK;

    m->input = s->run.input;
    m->targets = s->run.targets;
    m->strategy = s->run.strategy;
    gr_budget_init(&m->budget, s->context, 0);
    m->budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    if (m->cached != NULL) m->cached->unfit = 0;
    if (m->history != NULL) GR_TRY(gr_batch_history_fill(s, m, number, error));
    if (fetches) GR_TRY(begin_over_ranks(s, m, number, error)); /* the cached rows determine which rows are fetched */
    begin = gr_profile_begin(&s->run.profile);
    s->run.profile.pass = GRAFT_PASS_FORWARD;
    s->run.profile.layer = -1;
    rc = gr_spans_reserve(s, error);
    if (fetches && rc == GRAFT_OK) rc = gr_sampler_prepare(m->sampler, error);
    if (fetches) GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    if (rc == GRAFT_OK) rc = gr_sampler_next(m->sampler, error);
    gr_batch_charge_sampler(s, m);
    m->budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    if (rc == GRAFT_OK) rc = name_batch(s, m, gr_sampler_batch(m->sampler), error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    batch = gr_sampler_batch(m->sampler);
    GR_ASSERT(batch->index == t->progress.batch);
    gr_profile_end_alone(&s->run.profile, "sample", begin);
    if (m->ranks != NULL && !fetches) GR_TRY(begin_over_ranks(s, m, number, error));
    begin = gr_profile_begin(&s->run.profile);
    if (m->history != NULL) GR_TRY(gr_batch_history_begin(s, m, batch, number, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, make_batch(s, m, batch, error), error));
    gr_profile_end_alone(&s->run.profile, "gather", begin);
    if (m->ranks != NULL) GR_TRY(gr_cached_post(m->cached, m->vertex, m->ranks->owned, error));
    if (m->cached != NULL) s->run.strategy = &m->cached->base;
done:
    return rc;
}

void gr_minibatch_end(graft_trainer *t)
{
    struct gr_minibatches *m = t->batches;
    struct gr_setup       *s = &t->setup;

    s->run.strategy = m->strategy;
    if (s->run.input.sparse.whole.x != m->input.sparse.whole.x) gr_setup_sparse_fini(s);
    s->run.input = m->input;
    s->run.targets = m->targets;
    gr_batch_blocks_fini(s, m);
    gr_budget_fini(&m->budget);
    memset(&m->budget, 0, sizeof m->budget);
}
