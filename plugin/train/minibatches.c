/* The batches of a trainer: their sampler, and what lasts between them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "model/options.h"
#include "nn/options.h"
#include "sample/kind.h"
#include "sample/options.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

/* Options that may change between epochs. */
static int32_t check_live_options(const struct gr_setup *s, const struct gr_batch_mode *mode, graft_error *error)
{
    const int32_t rc = mode->check != NULL ? mode->check(s, error) : GRAFT_OK;

    if (rc < 0) return rc;
    if (gr_training_options(s->context)->on_nonfinite == GR_NONFINITE_RESTORE)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'on_nonfinite=restore' cannot be set together: earlier weights must "
                       "have a finite loss, and a batch measures the loss of some training vertices only");
    return gr_setup_by_rows_check_folder(s, error);
}

/* Refuse options that are not supported with batches. */
static int32_t check_options(const struct gr_setup *s, const struct gr_batch_mode *mode, graft_error *error)
{
    const struct gr_config         *config = &s->model.config;
    const struct gr_sample_options *options = gr_sample_options(s->context);

    if (config->label_rate > 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'label_rate' cannot be set together: a step draws known labels from "
                       "all training vertices, and a batch has some of them");
    if (gr_resource_options(s->context)->workers_sparse != 0)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "options 'batch_size' and 'workers.sparse' cannot be set together: the pipeline is made once for "
            "the whole graph, and each batch has another one");
    if (config->kind->attends && options->replace && gr_sample_kind(s->context)->draws)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'sample.replace' is yes, but attention needs each neighbour at most once");
    return check_live_options(s, mode, error);
}

/* One number for all layers that gather, or one for each; other layers have no edges. */
static int32_t read_fanouts(const struct gr_setup *s, int64_t *fanout, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    const struct gr_widths *given = &gr_sample_options(s->context)->fanout;
    const int32_t           first = config->kind->gathers ? config->gathers_from : config->n_layers;

    if (given->count != 1 && given->count != config->n_layers - first && gr_sample_kind(s->context)->has_fanout)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but %d layers gather from neighbours", given->count,
                       config->n_layers - first);
    for (int32_t l = 0; l < config->n_layers; l++)
        fanout[l] = l < first ? 0 : given->width[l - first < given->count ? l - first : 0];
    return GRAFT_OK;
}

int32_t gr_train_batch_seeds(const struct gr_setup *s, const struct gr_minibatches *m, const struct gr_targets *targets,
                             int64_t **seeds, int64_t *n_seeds, graft_error *error)
{
    const int all = m->mode->renews;
    int64_t   count = 0;

    for (int64_t v = 0; v < targets->n; v++) count += all || gr_is_trained(targets, v);
    GR_TRY(GR_NEW(s->context, *seeds, count, error));
    *n_seeds = count;
    count = 0;
    for (int64_t v = 0; v < targets->n; v++)
        if (all || gr_is_trained(targets, v)) (*seeds)[count++] = v;
    return GRAFT_OK;
}

/* Places for the blocks of a batch; and for a model that uses no edges, a graph without edges. */
static int32_t make_places(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const int64_t layers = s->model.config.n_layers;
    int64_t      *row_ptr = NULL;

    GR_TRY(GR_NEW(s->context, m->now.block_of, layers, error));
    GR_TRY(GR_NEW(s->context, m->now.block, layers, error));
    for (int32_t l = 0; l < layers; l++) m->now.block_of[l] = &m->now.block[l];
    if (s->model.config.kind->gathers) return GRAFT_OK;
    GR_TRY(GR_NEW(s->context, row_ptr, s->data.n + 1, error));
    m->no_edges =
        (graft_csr){ .size = sizeof m->no_edges, .index_type = GRAFT_I32, .n_rows = s->data.n, .n_cols = s->data.n };
    m->no_edges.row_ptr = row_ptr;
    return GRAFT_OK;
}

int32_t gr_train_batch_deal_seeds(const struct gr_setup *s, const struct gr_minibatches *m, int64_t n_seeds,
                                  struct gr_batch_deal *deal, graft_error *error)
{
    const int64_t size = gr_sample_options(s->context)->batch_size;

    if (m->mode->deal != NULL) return m->mode->deal(s, n_seeds, deal, error);
    if (size <= n_seeds) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION, "option 'batch_size' is %lld, expected at most %lld, the number of %s",
                   (long long)size, (long long)n_seeds, m->mode->renews ? "vertices" : "training vertices");
}

int32_t gr_train_batch_sampler(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source source,
                               const struct gr_batch_deal *deal, graft_sampler **sampler, graft_error *error)
{
    int64_t fanout[GR_LAYERS_MAX];

    source.fanout = fanout;
    source.n_layers = s->model.config.n_layers;
    source.n_batches = deal->n_batches;
    source.neighbours = !s->model.config.kind->gathers || m->mode->renews;
    if (!m->mode->renews) GR_TRY(read_fanouts(s, fanout, error));
    if (m->mode->source != NULL) m->mode->source(s, m, &source, fanout);
    return gr_sampler_create(s->context, &source, sampler, error);
}

/* Rows of earlier batches are of the layers above the first that gathers. */
static int32_t init_mode(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    const int32_t           second = config->gathers_from + 1;
    int64_t                 width[GR_LAYERS_MAX];
    struct gr_cached_wish   wish = { .ranks = s->run.strategy,
                                     .first = second < config->n_layers ? second : config->n_layers,
                                     .n_layers = config->n_layers,
                                     .width = width };

    for (int32_t l = 0; l < config->n_layers; l++)
        width[l] = config->kind->attends ? gr_model_config_wide(config, l) : gr_summed_columns(&s->run.layers[l]);
    if (m->mode->init != NULL) GR_TRY(m->mode->init(s, m, &wish, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_train_batch_tables_init(s, m, error), error));
    gr_train_batches_charge(s, m);
    return GRAFT_OK;
}

static int32_t make_minibatches(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_sampler_source source = { 0 };
    int64_t                 *seeds = NULL;
    int32_t                  rc = GRAFT_OK;

    GR_TRY_DONE(check_options(s, m->mode, error));
    rc = make_places(s, m, error);
    if (rc == GRAFT_OK) rc = gr_train_batch_seeds(s, m, &s->run.targets, &seeds, &source.n_seeds, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    m->graph = &m->no_edges;
    if (s->model.config.kind->gathers && s->derived.whole.a != NULL) m->graph = &s->derived.whole.a->csr;
    GR_TRY_DONE(init_mode(s, m, error));
    GR_TRY_DONE(gr_train_batch_deal_seeds(s, m, source.n_seeds, &m->deal, error));
    source.graph = m->graph;
    source.seeds = seeds;
    rc = gr_train_batch_sampler(s, m, source, &m->deal, &m->sampler, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY_DONE(gr_train_batches_identify(s, m->sampler, &m->id, error));
    if (m->cached != NULL)
        rc = gr_parallel_cached_gather(m->cached, error); /* so that explain() knows the capacities */
done:
    gr_free(s->context, seeds);
    return rc;
}

static void free_minibatches(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m == NULL) return;
    gr_sampler_destroy(m->sampler);
    if (m->cached != NULL) gr_parallel_cached_fini(m->cached);
    if (m->mode->fini != NULL) m->mode->fini(s, m);
    for (int use = 0; use < GR_USES; use++) gr_budget_charge(&s->budget, (enum gr_use)use, -m->lasting.charged[use]);
    gr_budget_charge(&s->budget, GR_USE_GRAPH, -m->charged);
    gr_budget_fini(&m->lasting.budget);
    gr_free(s->context, m->now.block);
    gr_free(s->context, m->now.block_of);
    gr_free(s->context, m->deal.weight);
    gr_free(s->context, (void *)(uintptr_t)m->no_edges.row_ptr);
    gr_free(s->context, m);
}

void gr_train_batch_charge_sampler(struct gr_setup *s, struct gr_minibatches *m)
{
    const int64_t bytes = gr_sampler_bytes(m->sampler) + gr_memory_bytes(m->no_edges.row_ptr);

    gr_budget_charge(&s->budget, GR_USE_GRAPH, bytes - m->charged);
    m->charged = bytes;
}

static const struct gr_batch_mode one_process = { .seeds = "training vertices" };

static const struct gr_batch_mode *mode_of(const struct gr_setup *s)
{
    if (s->data.over != NULL) return &gr_train_ranks_batches;
    return gr_setup_has_history(s) ? &gr_train_history_batches : &one_process;
}

int32_t gr_train_minibatches_init(graft_trainer *t, graft_error *error)
{
    struct gr_setup       *s = &t->setup;
    struct gr_minibatches *made = NULL;
    int32_t                rc = GRAFT_OK;

    if (gr_sample_options(s->context)->batch_size == 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, GR_NEW(s->context, made, 1, error), error));
    made->mode = mode_of(s);
    gr_budget_init(&made->lasting.budget, s->context, s->budget.limit - gr_budget_total(&s->budget));
    GR_TRY_DONE(make_minibatches(s, made, error));
    gr_train_minibatches_fini(t);
    t->batches = made;
    made = NULL;
    gr_train_batch_charge_sampler(s, t->batches);
    t->progress.n_batches = gr_sampler_batches(t->batches->sampler);
    t->progress.batches = t->batches->id;
done:
    free_minibatches(s, made);
    return rc;
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

void gr_train_minibatches_restart(graft_trainer *t)
{
    struct gr_progress *p = &t->progress;

    p->batch = 0;
    p->loss = p->weight = 0;
    p->batches = t->batches != NULL ? t->batches->id : (struct gr_batches_id){ 0 };
}

void gr_train_minibatches_settle(graft_trainer *t)
{
    const struct gr_progress  *p = &t->progress;
    const struct gr_batches_id own = t->batches != NULL ? t->batches->id : (struct gr_batches_id){ 0 };

    if (p->batch > 0 && p->batch <= p->n_batches && memcmp(&p->batches, &own, sizeof own) == 0) return;
    if (p->batch > 0) warn_of_batches(t, &own);
    gr_train_minibatches_restart(t);
}

void gr_train_minibatches_forget(graft_trainer *t)
{
    if (t->batches == NULL) return;
    if (t->batches->cached != NULL) gr_parallel_cached_forget(t->batches->cached);
    gr_train_batch_tables_unset(t->batches);
}

int32_t gr_train_minibatches_prepare(graft_trainer *t, graft_error *error)
{
    struct gr_setup *s = &t->setup;

    return gr_strategy_agree(s->run.strategy, check_live_options(s, t->batches->mode, error), error);
}

int32_t gr_train_minibatches_begin_epoch(graft_trainer *t, graft_error *error)
{
    struct gr_minibatches *m = t->batches;
    const int32_t          rc = gr_sampler_begin(m->sampler, t->progress.epoch, t->progress.batch, error);

    return rc < 0 || m->mode->begin_epoch == NULL ? rc : m->mode->begin_epoch(&t->setup, m, error);
}

int32_t gr_train_minibatches_end_epoch(graft_trainer *t, graft_error *error)
{
    struct gr_minibatches *m = t->batches;
    const int32_t          rc = m->mode->end_epoch != NULL ? m->mode->end_epoch(&t->setup, m, error) : GRAFT_OK;

    return rc < 0 || m->cached == NULL ? rc : gr_parallel_cached_gather(m->cached, error);
}

void gr_train_minibatches_fini(graft_trainer *t)
{
    free_minibatches(&t->setup, t->batches);
    t->batches = NULL;
}
