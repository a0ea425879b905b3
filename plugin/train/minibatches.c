/* The batches of a trainer: their sampler, and other data that all batches share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/crc.h"
#include "base/options.h"
#include "model/options.h"
#include "nn/options.h"
#include "sample/kind.h"
#include "sample/options.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

/* Check the options that may change between epochs. */
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
    const struct gr_config *config = &s->model.config;

    if (config->label_rate > 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'label_rate' cannot be set together: a step draws known labels from "
                       "all training vertices, and a batch has some of them");
    if (gr_resource_options(s->context)->workers.word != GR_WORKERS_NO)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'batch_size' and 'workers' cannot be set together: the pipeline is made once for "
                       "the whole graph, and each batch has another one");
    if (config->kind->attends && gr_sample_replaces(s->context))
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'sampler' is neighbour:replace, but attention needs each neighbour at most once");
    return check_live_options(s, mode, error);
}

/* Read the fanout of each layer: one number for all layers that gather, or one for each; 0 for other layers. */
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

static int32_t list_seeds(const struct gr_setup *s, const struct gr_minibatches *m, const struct gr_targets *targets,
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

/* Allocate the blocks of a batch; and for a model that uses no edges, a graph without edges. */
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

static int32_t deal_seeds(const struct gr_setup *s, const struct gr_minibatches *m, int64_t n_seeds,
                          struct gr_batch_deal *deal, graft_error *error)
{
    const int64_t size = gr_sample_options(s->context)->batch_size;

    if (m->mode->deal != NULL) return m->mode->deal(s, n_seeds, deal, error);
    if (size <= n_seeds) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION, "option 'batch_size' is %lld, expected at most %lld, the number of %s",
                   (long long)size, (long long)n_seeds, m->mode->renews ? "vertices" : "training vertices");
}

static int32_t make_sampler(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source source,
                            const struct gr_batch_deal *deal, graft_sampler **sampler, graft_error *error)
{
    int64_t fanout[GR_LAYERS_MAX];

    source.fanout = fanout;
    source.n_layers = s->model.config.n_layers;
    source.n_batches = deal->n_batches;
    source.extension = m->strategy != NULL ? m->strategy->extension : NULL;
    source.neighbours = !s->model.config.kind->gathers || m->mode->renews;
    if (!m->mode->renews) GR_TRY(read_fanouts(s, fanout, error));
    if (m->mode->source != NULL) m->mode->source(s, m, &source, fanout);
    return gr_sampler_create(s->context, &source, sampler, error);
}

/* Return a checksum of everything that determines the batch of each seed of this rank. */
static uint32_t checksum_of(const struct gr_setup *s, const graft_sampler *sampler)
{
    const int64_t *seeds = gr_sampler_seeds(sampler), n_batches = gr_sampler_batches(sampler);
    const int64_t  rank = s->data.over != NULL ? s->data.over->comm->rank : 0;
    const int64_t  options[] = { rank, (int64_t)gr_base_options(s->context)->seed,
                                 (int64_t)gr_sample_options(s->context)->sampler.word, gr_setup_has_history(s) };
    uint32_t       crc = gr_crc(0, options, sizeof options);

    for (int64_t b = 0; b < n_batches; b++) {
        const int64_t end = gr_sampler_first_seed(sampler, b + 1);

        for (int64_t i = gr_sampler_first_seed(sampler, b); i < end; i++) {
            const int64_t vertex = s->derived.whole.vertex != NULL ? s->derived.whole.vertex[seeds[i]] : seeds[i];

            crc = gr_crc(crc, &vertex, sizeof vertex);
        }
        crc = gr_crc(crc, &end, sizeof end);
    }
    return crc;
}

static int32_t identify_batches(const struct gr_setup *s, const graft_sampler *sampler, struct gr_batches_id *id,
                                graft_error *error)
{
    double checksum = checksum_of(s, sampler);

    GR_TRY(gr_strategy_sum(s->run.strategy, &checksum, 1, error));
    id->n_batches = gr_sampler_batches(sampler);
    id->batch_size = gr_sample_options(s->context)->batch_size;
    id->n_ranks = s->data.over != NULL ? s->data.over->comm->n_ranks : 1;
    id->checksum = (int64_t)checksum;
    return GRAFT_OK;
}

/* Create the data that all batches share, and the strategy of their steps. */
static int32_t init_mode(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_batch_wish wish = {
        .run = &s->run, .vertex = s->derived.whole.vertex, .lasting = &m->lasting.budget, .batch = &m->now.budget
    };

    if (m->mode->init == NULL) return GRAFT_OK;
    GR_TRY(m->mode->init(s, m, &wish, error));
    wish.graph = m->graph;
    return gr_parallel_create_batches(&wish, &m->strategy, error);
}

static int32_t make_minibatches(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_sampler_source source = { 0 };
    int64_t                 *seeds = NULL;
    int32_t                  rc = GRAFT_OK;

    GR_TRY_DONE(check_options(s, m->mode, error));
    rc = make_places(s, m, error);
    if (rc == GRAFT_OK) rc = list_seeds(s, m, &s->run.targets, &seeds, &source.n_seeds, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    m->graph = &m->no_edges;
    if (s->model.config.kind->gathers && s->derived.whole.a != NULL) m->graph = &s->derived.whole.a->csr;
    GR_TRY_DONE(init_mode(s, m, error));
    GR_TRY_DONE(deal_seeds(s, m, source.n_seeds, &m->deal, error));
    source.graph = m->graph;
    source.seeds = seeds;
    rc = make_sampler(s, m, source, &m->deal, &m->sampler, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    rc = identify_batches(s, m->sampler, &m->id, error);
done:
    gr_free(s->context, seeds);
    return rc;
}

static void free_minibatches(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m == NULL) return;
    gr_sampler_destroy(m->sampler);
    if (m->strategy != NULL) gr_strategy_destroy(&m->strategy->base);
    if (m->mode != NULL && m->mode->fini != NULL) m->mode->fini(s, m); /* NULL: another rank had no memory */
    for (int use = 0; use < GR_USES; use++) gr_budget_charge(&s->budget, (enum gr_use)use, -m->lasting.charged[use]);
    gr_budget_fini(&m->lasting.budget);
    gr_free(s->context, m->now.block);
    gr_free(s->context, m->now.block_of);
    gr_free(s->context, m->deal.weight);
    gr_free(s->context, (void *)(uintptr_t)m->no_edges.row_ptr);
    gr_free(s->context, m);
}

void gr_train_batches_charge(struct gr_setup *s, struct gr_minibatches *m)
{
    const int64_t sampler = gr_sampler_bytes(m->sampler) + gr_memory_bytes(m->no_edges.row_ptr);

    for (int use = 0; use < GR_USES; use++) {
        const int64_t bytes =
            gr_budget_bytes(&m->lasting.budget, (enum gr_use)use) + (use == GR_USE_GRAPH ? sampler : 0);

        gr_budget_charge(&s->budget, (enum gr_use)use, bytes - m->lasting.charged[use]);
        m->lasting.charged[use] = bytes;
    }
}

int32_t gr_train_minibatches_init(graft_trainer *t, graft_error *error)
{
    struct gr_setup       *s = &t->setup;
    struct gr_minibatches *made = NULL;
    int32_t                rc = GRAFT_OK;

    if (gr_sample_options(s->context)->batch_size == 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, GR_NEW(s->context, made, 1, error), error));
    made->mode = gr_train_batch_mode(s);
    gr_budget_init(&made->lasting.budget, s->context, s->budget.limit - gr_budget_total(&s->budget));
    GR_TRY_DONE(make_minibatches(s, made, error));
    gr_train_minibatches_fini(t);
    t->batches = made;
    made = NULL;
    gr_train_batches_charge(s, t->batches);
    t->progress.n_batches = gr_sampler_batches(t->batches->sampler);
    t->progress.batches = t->batches->id;
done:
    free_minibatches(s, made);
    return rc;
}

/* Describe batches. States of older builds do not contain their numbers. */
static void describe_batches(const struct gr_batches_id *id, char text[96])
{
    if (id->n_batches == 0) snprintf(text, 96, "batches");
    else
        snprintf(text, 96, "%lld batches (batch_size=%lld, ranks: %lld)", (long long)id->n_batches,
                 (long long)id->batch_size, (long long)id->n_ranks);
}

/* Warn that an epoch begins again. Over ranks only rank 0 warns. */
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
    if (t->batches->strategy != NULL) gr_strategy_forget(&t->batches->strategy->base, 0);
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

    if (m->strategy != NULL) GR_TRY(m->strategy->ops->settle(m->strategy, error));
    return m->mode->end_epoch != NULL ? m->mode->end_epoch(&t->setup, m, error) : GRAFT_OK;
}

void gr_train_minibatches_fini(graft_trainer *t)
{
    free_minibatches(&t->setup, t->batches);
    t->batches = NULL;
}

/* -- updates ------------------------------------------------------------------------------------------------------ */

/* An update of the data of a trainer. All that can fail is prepared before any change: a new sampler, if training
 * vertices or weights of draws change, and memory for rows from other ranks. Owners of vertices and the halo do not
 * change. */
struct batch_update {
    graft_trainer          *trainer;
    uint32_t                what;
    graft_sampler          *sampler; /* new sampler; NULL: the current one stays */
    struct gr_batches_id    id;      /* of the new sampler */
    struct gr_batch_deal    deal;    /* of the new sampler */
    struct gr_batch_changes changes; /* new data over ranks */
};

/* Return the graph from which batches will be drawn. */
static graft_csr next_graph(const struct batch_update *u, const struct gr_new_edges *edges)
{
    const struct gr_setup       *s = &u->trainer->setup;
    const struct gr_minibatches *m = u->trainer->batches;
    graft_csr                    graph = *m->graph;

    if (m->graph != &m->no_edges && edges != NULL && s->derived.whole.a != NULL)
        return gr_derived_new_graph(&s->derived, edges);
    if (u->changes.values != NULL) graph.values = u->changes.values;
    return graph;
}

/* Create a sampler for new targets or a new graph, if any rank cannot continue to use its sampler. */
static int32_t prepare_sampler(struct batch_update *u, const graft_csr *graph, const int64_t *seeds, int64_t n_seeds,
                               graft_error *error)
{
    struct gr_setup       *s = &u->trainer->setup;
    struct gr_minibatches *m = u->trainer->batches;
    const int              reads_values = (u->what & GRAFT_UPDATE_EDGE_VALUES) && gr_sampler_reads_values(m->sampler);
    int                    differs = reads_values || !gr_sampler_has_seeds(m->sampler, seeds, n_seeds);
    const struct gr_sampler_source source = { .graph = graph, .seeds = seeds, .n_seeds = n_seeds, .like = m->sampler };
    int32_t                        rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(s->run.strategy, &differs, error));
    if (!differs) return GRAFT_OK;
    GR_TRY(deal_seeds(s, m, n_seeds, &u->deal, error));
    rc = make_sampler(s, m, source, &u->deal, &u->sampler, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    return identify_batches(s, u->sampler, &u->id, error);
}

static int32_t prepare_batches(void *arg, const struct gr_targets *targets, const struct gr_new_edges *edges,
                               graft_error *error)
{
    struct batch_update *u = arg;
    struct gr_setup     *s = &u->trainer->setup;
    graft_csr            graph;
    int64_t              n_seeds = 0, *seeds = NULL;
    int32_t              rc = list_seeds(s, u->trainer->batches, targets, &seeds, &n_seeds, error);

    if (rc == GRAFT_OK && s->data.over != NULL)
        rc = gr_train_batch_halo_prepare(s, u->trainer->batches, u->what, edges, &u->changes, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    graph = next_graph(u, edges);
    rc = prepare_sampler(u, &graph, seeds, n_seeds, error);
done:
    gr_free(s->context, seeds);
    return rc;
}

static void take_sampler(graft_trainer *t, struct batch_update *u)
{
    struct gr_minibatches *m = t->batches;

    gr_sampler_destroy(m->sampler);
    m->sampler = u->sampler;
    u->sampler = NULL;
    m->id = u->id;
    if (t->progress.batch == 0) t->progress.batches = m->id;
    t->progress.n_batches = gr_sampler_batches(m->sampler);
    gr_free(t->setup.context, m->deal.weight);
    m->deal = u->deal;
    u->deal.weight = NULL;
}

int32_t gr_train_minibatches_update(graft_trainer *t, uint32_t what, const graft_dataset *data, graft_error *error)
{
    struct gr_minibatches           *m = t->batches;
    struct batch_update              update = { .trainer = t, .what = what };
    const struct gr_update_dependent dependent = { prepare_batches, &update };
    int32_t                          rc = GRAFT_OK;

    GR_TRY_DONE(gr_setup_update(&t->setup, what, data, &dependent, error));
    if (update.sampler != NULL) take_sampler(t, &update);
    gr_train_minibatches_forget(t);
    if (m->ranks != NULL) rc = gr_train_batch_halo_take(&t->setup, m, what, &update.changes, error);
    gr_sampler_set_graph(m->sampler, m->graph);
    gr_train_batches_charge(&t->setup, m);
done:
    gr_sampler_destroy(update.sampler);
    gr_free(t->setup.context, update.deal.weight);
    gr_free(t->setup.context, update.changes.values);
    gr_free(t->setup.context, update.changes.packed);
    return rc;
}
