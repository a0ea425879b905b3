/* Batches over ranks: a rank samples in its part of the graph, where vertices of the halo have no neighbours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/sort.h"
#include "comm/collective.h"
#include "halo/options.h"
#include "sample/kind.h"
#include "sample/options.h"

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
        what = "halo.staleness=1: batches have other rows of the halo each, and hec.life says how old they may be";
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
    if (options->cache_life < options->push_delay && options->cache_miss != GR_MISS_LAST)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'hec.life' is %lld, but rows arrive %lld batches after they were sent (aep.delay)",
                       (long long)options->cache_life, (long long)options->push_delay);
    return GRAFT_OK;
}

static int32_t init_ranks(struct gr_setup *s, struct gr_minibatches *m, struct gr_cached_wish *wish, graft_error *error)
{
    struct gr_comm *comm = s->data.over->comm;

    GR_TRY(gr_comm_agree(comm, GR_NEW(s->context, m->ranks, 1, error), error));
    GR_TRY(gr_train_batch_halo_init(s, m, error));
    wish->comm = comm;
    wish->links = &m->ranks->links;
    wish->graph = m->graph;
    wish->feature_width = s->model.config.width[0];
    wish->feature_bytes = wish->feature_width * gr_dtype_bytes(s->run.input.type);
    m->cached = &m->rows;
    return gr_comm_agree(comm, gr_parallel_cached_init(m->cached, s->context, wish, &m->lasting.budget, error), error);
}

static void fini_ranks(struct gr_setup *s, struct gr_minibatches *m)
{
    if (m->ranks == NULL) return;
    gr_csr_fini(s->context, &m->ranks->joined);
    gr_halo_links_fini(s->data.over->comm, &m->ranks->links);
    gr_free(s->context, m->ranks);
    m->ranks = NULL;
}

/* -- an epoch ----------------------------------------------------------------------------------------------------- */

/* A rank with more training vertices than others has larger batches. Only rank 0 warns. */
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

/* The weights of the losses of all batches. */
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

/* Store rows in transit, and count the edges of the batches of each rank. */
static int32_t end_epoch(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    double       all = (double)m->edges.n;
    int64_t      most = m->edges.n;
    const double begin = gr_profile_begin(&s->run.profile);

    s->run.profile.pass = GRAFT_PASS_FORWARD;
    s->run.profile.layer = -1;
    GR_TRY(gr_parallel_cached_settle(m->cached, (struct gr_team){ .threads = s->run.threads }, error));
    gr_profile_end_alone(&s->run.profile, "receive", begin);
    GR_TRY(gr_strategy_sum(s->run.strategy, &all, 1, error));
    GR_TRY(gr_comm_max(s->data.over->comm, &most, 1, error));
    m->edges.all = all;
    m->edges.most = most;
    return GRAFT_OK;
}

/* -- a batch ------------------------------------------------------------------------------------------------------ */

/* Use the rows of earlier batches. */
static int32_t receive_rows(struct gr_setup *s, struct gr_minibatches *m, int64_t number, graft_error *error)
{
    const double begin = gr_profile_begin(&s->run.profile);

    GR_TRY(gr_parallel_cached_begin(m->cached, number, (struct gr_team){ .threads = s->run.threads }, error));
    gr_profile_end_alone(&s->run.profile, "receive", begin);
    return GRAFT_OK;
}

/* With an extension, the cached rows determine which rows are fetched while the batch is sampled. */
static int32_t receive_before(struct gr_setup *s, struct gr_minibatches *m, int64_t number, graft_error *error)
{
    return m->is_extended ? receive_rows(s, m, number, error) : GRAFT_OK;
}

static int32_t receive_after(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int64_t number,
                             graft_error *error)
{
    (void)batch;
    return m->is_extended ? GRAFT_OK : receive_rows(s, m, number, error);
}

static int32_t send_rows(struct gr_minibatches *m, graft_error *error)
{
    return gr_parallel_cached_post(m->cached, m->now.vertex, m->ranks->owned, error);
}

static void set_source(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout)
{
    (void)fanout;
    source->rank = s->data.over->comm->rank;
    source->degree = m->ranks->degree;
    source->name = s->derived.whole.vertex;
    source->shift = m->ranks->shift;
    source->extension = gr_train_batch_fetch_extension(s, m);
    m->is_extended = source->extension != NULL;
}

static int32_t number_vertices(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                               graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;
    struct gr_batch_now   *now = &m->now;
    const int64_t          n = batch->n_vertices;
    int32_t                l = batch->n_layers - 1;

    GR_TRY(GR_BUDGET_NEW(&now->budget, GR_USE_GRAPH, r->place, n, error));
    GR_TRY(GR_BUDGET_NEW(&now->budget, GR_USE_GRAPH, r->vertex, n, error));
    GR_TRY(GR_BUDGET_NEW(&now->budget, GR_USE_GRAPH, r->names, n, error));
    now->n_owned = r->n_halo = 0;
    for (int64_t i = 0; i <= n; i++) {
        /* Including destinations of the layer below whose rows other ranks need. */
        for (; l >= 0 && (l > 0 ? batch->layers[l - 1].n_dst : batch->layers[0].n_src) == i; l--) {
            r->owned[l] = now->n_owned;
            r->halo[l] = r->n_halo;
        }
        if (i < n) r->place[i] = (int32_t)(batch->vertex[i] < s->data.n ? now->n_owned++ : ~r->n_halo++);
    }
    GR_ASSERT(l < 0 && now->n_owned + r->n_halo == n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = batch->vertex[i], at = r->place[i] >= 0 ? r->place[i] : now->n_owned + ~r->place[i];

        r->vertex[at] = v;
        r->names[at] = v < s->data.n ? s->derived.whole.vertex[v] : m->halo.name[v - s->data.n];
    }
    m->cached->counts.features_read += r->n_halo;
    m->edges.n += gr_sample_batch_edges(batch);
    now->vertex = r->vertex;
    now->names = r->names;
    return gr_train_batch_fetch_number(m, error);
}

/* Columns of vertices of the halo: column[h] for number h of the batch, or -1 if its row is missing. Columns of fetched
 * rows follow columns of cached rows. */
static int32_t find_cached(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_sampled_layer *from,
                           int32_t l, struct gr_batch_layer *b, int32_t *column, graft_error *error)
{
    struct gr_batch_ranks  *r = m->ranks;
    struct gr_cached_layer *cached = b->cached;
    int32_t                *vertex, *row;
    const struct gr_fetch  *fetch = &cached->fetch;
    int64_t                 wanted = 0, found = 0;

    for (int64_t e = 0; e < from->n_edges; e++)
        if (r->place[from->col[e]] < 0) column[~r->place[from->col[e]]] = 1;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, vertex, r->halo[l], error));
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, row, r->halo[l], error));
    for (int64_t h = 0; h < r->halo[l]; h++)
        if (column[h] != 0) vertex[wanted++] = (int32_t)(r->vertex[m->now.n_owned + h] - s->data.n);
    cached->n_rows = gr_sample_cache_find(&cached->cache, vertex, wanted, &m->cached->life, s->run.threads, row);
    wanted = 0;
    for (int64_t h = 0; h < r->halo[l]; h++) {
        const int is_wanted = column[h] != 0;

        column[h] = -1;
        if (!is_wanted) continue;
        if (row[wanted] != GR_NOT_CACHED) {
            column[h] = (int32_t)(b->n_src + found);
            row[found++] = row[wanted];
        } else if (fetch->count > 0) {
            column[h] =
                (int32_t)(b->n_src + cached->n_rows + gr_sorted_index(fetch->vertex, fetch->count, vertex[wanted]));
        }
        wanted++;
    }
    GR_ASSERT(found == cached->n_rows);
    cached->row = row;
    b->n_seen = b->n_src + found + fetch->count;
    return GRAFT_OK;
}

/* Copy the edges whose columns exist. */
static int32_t copy_edges(struct gr_minibatches *m, const struct gr_sampled_layer *from, const int32_t *column,
                          struct gr_batch_layer *b, graft_error *error)
{
    const struct gr_batch_ranks *r = m->ranks;
    int64_t                     *row_ptr, *entry, *row, at = 0;
    int32_t                     *col;

    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, row_ptr, b->n_dst + 1, error));
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, row, b->n_dst, error));
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, col, from->n_edges, error));
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, entry, from->n_edges, error));
    for (int64_t i = 0; i < from->n_dst; i++) {
        if (r->place[i] < 0) continue;
        for (int64_t e = from->row_ptr[i]; e < from->row_ptr[i + 1]; e++) {
            const int32_t place = r->place[from->col[e]], to = place >= 0 ? place : column[~place];

            if (to < 0) continue;
            col[at] = to;
            entry[at++] = from->entry[e];
        }
        row[r->place[i]] = i;
        row_ptr[r->place[i] + 1] = at;
    }
    b->row_ptr = row_ptr;
    b->row = row;
    b->col = col;
    b->entry = entry;
    b->n_edges = at;
    return GRAFT_OK;
}

/* The edges of layer l, with the cached rows of the halo. */
static int32_t make_layer(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                          struct gr_batch_layer *b, graft_error *error)
{
    struct gr_batch_ranks         *r = m->ranks;
    const struct gr_sampled_layer *from = &batch->layers[l];
    const int32_t                  first = s->model.config.gathers_from;
    int32_t                       *column;

    *b = (struct gr_batch_layer){ .n_dst = l < first                 ? batch->n_vertices
                                           : l + 1 < batch->n_layers ? r->owned[l + 1]
                                                                     : batch->n_seeds,
                                  .n_src = l <= first ? batch->n_vertices : r->owned[l],
                                  .from = from };
    b->n_seen = b->n_src;
    if (l < first) return GRAFT_OK;
    if (l > first) {
        b->cached = &m->cached->layer[l];
        b->row_width = b->cached->width;
    }
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, column, r->halo[l], error));
    for (int64_t h = 0; l == first && h < r->halo[l]; h++) column[h] = (int32_t)(m->now.n_owned + h);
    if (l > first) GR_TRY(find_cached(s, m, from, l, b, column, error));
    return copy_edges(m, from, column, b, error);
}

const struct gr_batch_mode gr_train_ranks_batches = {
    .seeds = "training vertices",
    .refills = "caches begin empty",
    .check = check_ranks,
    .init = init_ranks,
    .fini = fini_ranks,
    .deal = deal_seeds,
    .source = set_source,
    .begin_epoch = begin_epoch,
    .end_epoch = end_epoch,
    .before = receive_before,
    .name = number_vertices,
    .begin = receive_after,
    .layer = make_layer,
    .end = send_rows,
};
