/* The modes of batches: in one process; with option history, where batches read rows computed by earlier batches; and
 * over ranks, where each rank samples in its part of the graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "halo/options.h"
#include "run/pass.h"
#include "sample/kind.h"
#include "sample/options.h"
#include "train/train.h"

/* Check the options of a mode in which a batch gathers from all in-neighbours of its vertices, but not from their
 * neighbours (Fey et al. 2021, "GNNAutoScale", section 2). A batch computes the rows of its own vertices, with exact
 * gradients; rows of other vertices are constants, from the last batch that computed them. The first layer that gathers
 * reads features, and is exact. */
static int32_t check_history_options(const struct gr_setup *s, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(s->context);
    const struct gr_sampler_kind   *kind = gr_sample_kind(s->context);

    if (kind->no_history != NULL)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'history' and 'sampler=%s' cannot be set together: %s; expected neighbour or cluster",
                       kind->word, kind->no_history);
    if (options->drop_last && !kind->deals_evenly) /* otherwise drop_last has no effect */
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'drop_last' is yes, but with history=full each epoch renews the rows of all vertices");
    if (options->fanout.count > 1 && kind->has_fanout)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but with history=full all layers gather from the same "
                       "neighbours; expected one number",
                       options->fanout.count);
    return GRAFT_OK;
}

static int32_t init_history(struct gr_setup *s, struct gr_minibatches *m, struct gr_batch_wish *wish,
                            graft_error *error)
{
    (void)m;
    (void)wish;
    return check_history_options(s, error);
}

/* Set the arguments of the sampler: one sampled layer, which all layers share. */
static void source_of_history(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source *source,
                              int64_t *fanout)
{
    (void)m;
    source->n_layers = 1;
    source->by_parts = gr_sample_kind(s->context)->order != NULL;
    fanout[0] = source->by_parts || gr_option_is_default(s->context, "fanout")
                    ? GR_ALL_NEIGHBOURS
                    : gr_sample_options(s->context)->fanout.width[0];
}

/* Create the blocks of one batch of all vertices from the blocks of the whole graph. */
static int32_t make_whole_blocks(struct gr_setup *s, struct gr_minibatches *m, struct gr_block *block,
                                 const struct gr_block **block_of, graft_error *error)
{
    const struct gr_batch       batch = { .n_seeds = s->data.n, .n_vertices = s->data.n };
    const struct gr_batch_layer layer = { .n_dst = s->data.n, .n_src = s->data.n, .n_seen = s->data.n };
    const int64_t              *vertex;
    int64_t                     n;

    GR_TRY(m->strategy->ops->number(m->strategy, &batch, &vertex, &n, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        block[l] = *s->derived.whole_of[l];
        block_of[l] = &block[l];
        GR_TRY(m->strategy->ops->block(m->strategy, l, &layer, NULL, &block[l], error));
    }
    return GRAFT_OK;
}

int32_t gr_train_history_fill(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_block        block[GR_LAYERS_MAX];
    const struct gr_block *block_of[GR_LAYERS_MAX];
    int32_t                rc = GRAFT_OK;

    GR_TRY_DONE(gr_setup_arrays_for_all(s, error));
    m->now.budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    GR_TRY_DONE(make_whole_blocks(s, m, block, block_of, error));
    s->run.strategy = &m->strategy->base;
    GR_TRY_DONE(gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, block_of, error));
    /* If rows do not fit into the codec of the tables, the step fails or is cancelled, and the tables are filled
     * again. */
    m->strategy->is_filled = m->strategy->unfit == 0;
done:
    gr_setup_arrays_fini(s);
    s->run.strategy = m->whole.strategy;
    return rc;
}

static const struct gr_batch_mode history = {
    .seeds = "vertices, which read rows of earlier batches,",
    .refills = "tables will be filled again",
    .renews = 1,
    .init = init_history,
    .source = source_of_history,
};

static int32_t check_ranks(const struct gr_setup *s, graft_error *error)
{
    const struct gr_config         *config = &s->model.config;
    const struct gr_sample_options *options = gr_sample_options(s->context);
    const struct gr_halo_options   *halo = gr_halo_options(s->context);
    const struct gr_sampler_kind   *kind = gr_sample_kind(s->context);
    const char                     *what = NULL;

    if (s->strategy->ops->refuses_batches != NULL) what = s->strategy->ops->refuses_batches;
    else if (config->hidden.norm == GR_NORM_BATCH)
        what = "norm=batch: ranks have batches of their own, and statistics are of one batch";
    else if (config->kind->gathers && options->history == GR_HISTORY_FULL)
        what = "history=full: its tables have all vertices, and over ranks options hec.* have their place";
    else if (halo->staleness.word == GR_HALO_STALE)
        what = "halo.staleness=1: batches have other rows of the halo each, and hec.rows says how old they may be";
    else if (gr_halo_codec_of(halo, GR_FORWARD).adaptive)
        what = "halo.codec=adaptive: widths are assigned to rows that are sent in each epoch; aep.codec is for batches";
    if (config->kind->gathers && kind->one_process != NULL)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'batch_size' over ranks cannot be set together with sampler=%s: %s", kind->word,
                       kind->one_process);
    if (what != NULL)
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'batch_size' over ranks cannot be set together with %s", what);
    if (config->extremum != 0 && options->cache_miss == GR_MISS_DROP_RESCALED)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "option 'hec.miss' is drop_rescaled, but aggregator=%s has no scale; expected drop, last or fetch",
            gr_extremum_word(config->extremum));
    if (options->cache.number[1] < options->push.number[1] && options->cache_miss != GR_MISS_LAST)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'hec.rows' keeps a row for %.0f batches, but rows arrive %.0f batches after they were "
                       "sent (option 'aep.rows')",
                       options->cache.number[1], options->push.number[1]);
    return GRAFT_OK;
}

static int32_t init_ranks(struct gr_setup *s, struct gr_minibatches *m, struct gr_batch_wish *wish, graft_error *error)
{
    struct gr_comm *comm = s->data.over->comm;

    GR_TRY(gr_comm_agree(comm, GR_NEW(s->context, m->ranks, 1, error), error));
    GR_TRY(gr_train_batch_halo_init(s, m, error));
    wish->comm = comm;
    wish->links = &m->ranks->links;
    wish->halo = m->halo.name;
    wish->feature_bytes = s->model.config.width[0] * gr_dtype_bytes(s->run.input.type);
    return GRAFT_OK;
}

static void fini_ranks(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m->ranks == NULL) return;
    gr_csr_fini(s->context, &m->ranks->joined);
    gr_halo_links_fini(s->data.over->comm, &m->ranks->links);
    gr_free(s->context, m->ranks);
    m->ranks = NULL;
}

/* Warn if a rank has much larger batches than batch_size, because it has more training vertices. Only rank 0 warns. */
static void warn_of_large_batches(const struct gr_setup *s, const struct gr_batch_deal *deal)
{
    const int64_t size = gr_sample_options(s->context)->batch_size;
    const int64_t largest = (deal->most_seeds + deal->n_batches - 1) / deal->n_batches;

    if (s->data.over->comm->rank != 0 || 2 * largest <= 3 * size) return;
    gr_log(s->context, GRAFT_LOG_WARNING,
           "batches of one rank have up to %lld training vertices, more than option 'batch_size' = %lld, and need more "
           "memory: the rank has %lld of the %lld training vertices; another option 'partition' may spread them evenly",
           (long long)largest, (long long)size, (long long)deal->most_seeds, (long long)deal->n_all);
}

static int32_t deal_seeds(const struct gr_setup *s, int64_t n_seeds, struct gr_batch_deal *deal, graft_error *error)
{
    const int64_t size = gr_sample_options(s->context)->batch_size, ranks = s->data.over->comm->n_ranks;
    double        all = (double)n_seeds;

    deal->n_seeds = deal->most_seeds = n_seeds;
    GR_TRY(gr_strategy_sum(s->run.strategy, &all, 1, error));
    GR_TRY(gr_comm_max(s->data.over->comm, &deal->most_seeds, 1, error));
    deal->n_all = (int64_t)all;
    if (size > (deal->n_all + ranks - 1) / ranks)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'batch_size' is %lld on each of %lld ranks, but the number of training vertices is %lld",
                       (long long)size, (long long)ranks, (long long)deal->n_all);
    deal->n_batches = (deal->n_all + ranks * size - 1) / (ranks * size);
    warn_of_large_batches(s, deal);
    return gr_comm_agree(s->data.over->comm, GR_NEW(s->context, deal->weight, deal->n_batches, error), error);
}

/* Compute the weights of all batches in the loss, summed over ranks. */
static int32_t begin_epoch(const struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const struct gr_targets *targets = &s->run.targets;
    const int64_t           *seeds = gr_sampler_seeds(m->sampler), n_batches = gr_sampler_batches(m->sampler);

    for (int64_t b = 0; b < n_batches; b++) {
        m->deal.weight[b] = 0;
        for (int64_t i = gr_sampler_first_seed(m->sampler, b); i < gr_sampler_first_seed(m->sampler, b + 1); i++)
            m->deal.weight[b] += targets->values != NULL ? (double)gr_known_values(targets, seeds[i])
                                                         : gr_vertex_weight(targets, seeds[i]);
    }
    m->edges.n = 0;
    return gr_strategy_sum(s->run.strategy, m->deal.weight, n_batches, error);
}

/* Compute the sum and the maximum over ranks of the edges of this epoch's batches. */
static int32_t end_epoch(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    double  all = (double)m->edges.n;
    int64_t most = m->edges.n;

    GR_TRY(gr_strategy_sum(s->run.strategy, &all, 1, error));
    GR_TRY(gr_comm_max(s->data.over->comm, &most, 1, error));
    m->edges.all = all;
    m->edges.most = most;
    return GRAFT_OK;
}

static void source_of_ranks(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source *source,
                            int64_t *fanout)
{
    (void)fanout;
    source->rank = s->data.over->comm->rank;
    source->degree = m->ranks->degree;
    source->name = s->derived.whole.vertex;
    source->shift = m->ranks->shift;
}

static const struct gr_batch_mode over_ranks = {
    .seeds = "training vertices",
    .refills = "caches begin empty",
    .check = check_ranks,
    .init = init_ranks,
    .fini = fini_ranks,
    .deal = deal_seeds,
    .source = source_of_ranks,
    .begin_epoch = begin_epoch,
    .end_epoch = end_epoch,
};

static const struct gr_batch_mode one_process = { .seeds = "training vertices" };

const struct gr_batch_mode *gr_train_batch_mode(const struct gr_setup *s)
{
    if (s->data.over != NULL) return &over_ranks;
    return gr_setup_has_history(s) ? &history : &one_process;
}
