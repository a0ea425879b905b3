/* Makes batches of the vertices of random walks (GraphSAINT, Zeng et al. 2020, section 3.4), with the normalisation of
 * section 3.2. Walks begin at the seeds of the batch; a step goes from a vertex to one of its in-neighbours, with equal
 * probabilities.
 *
 * N batches are drawn in create(). Let C_v and C_e be the numbers of drawn batches with vertex v and edge e from u to
 * v. With the batch itself as one more, the estimates are p_v = (C_v + 1) / (N + 1) and alpha_e = p_e / p_v, which is
 * (C_e + 1) / (C_v + 1). Then the expectation of a sum over the edges of a batch with weights 1 / alpha_e is the sum
 * over all edges, and the expectation of a sum over seeds with weights 1 / p_v is the sum over all seeds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/context.h"
#include "base/parallel.h"
#include "base/random.h"
#include "sample/options.h"

struct saint {
    const graft_csr  *graph;
    uint8_t          *is_seed; /* one bit for each vertex */
    int64_t           walk;
    int64_t           n_drawn;             /* N */
    _Atomic uint32_t *of_vertex, *of_edge; /* C_v and C_e */
};

static int64_t step_from(const graft_csr *graph, int64_t v, uint64_t key, int64_t root, int64_t step)
{
    const int64_t begin = graph->row_ptr[v], degree = graph->row_ptr[v + 1] - begin;
    uint32_t      word[4];
    int64_t       e;

    if (degree == 0) return v;
    gr_random_block(key, (uint64_t)root, (uint64_t)step, word);
    e = begin + (int64_t)((unsigned __int128)((uint64_t)word[0] << 32 | word[1]) * (uint64_t)degree >> 64);
    return gr_csr_column(graph, e);
}

/* Walk from each root, and add either the vertices that are seeds, or the other vertices. */
static void walk(const struct saint *s, const struct gr_making *g, uint64_t key, int adds_seeds)
{
    const struct gr_batch_request *request = g->request;

    for (int64_t i = 0; i < request->n_seeds; i++) {
        int64_t v = request->seeds[i];

        for (int64_t step = 0; step < s->walk; step++) {
            v = step_from(s->graph, v, key, request->seeds[i], step);
            if (adds_seeds == (s->is_seed[v / 8] >> v % 8 & 1)) gr_sample_making_add(g, v);
        }
    }
}

static int32_t add_walks(const struct gr_making *g, graft_error *error)
{
    const struct saint            *s = g->request->state;
    const struct gr_batch_request *request = g->request;
    const int64_t  most = request->n_seeds < s->graph->n_rows / s->walk ? request->n_seeds * s->walk : s->graph->n_rows;
    const uint64_t key = gr_sample_making_key(g, 0);

    GR_TRY(gr_sample_making_reserve(g, most, error));
    walk(s, g, key, 1);
    if (request->index >= 0) g->batch->n_seeds = g->batch->n_vertices;
    walk(s, g, key, 0);
    return GRAFT_OK;
}

static uint32_t count_of(const _Atomic uint32_t *count, int64_t i)
{
    return atomic_load_explicit(&count[i], memory_order_relaxed);
}

static int32_t weigh_saint(const struct gr_making *g, graft_error *error)
{
    const struct saint      *s = g->request->state;
    struct gr_batch         *batch = g->batch;
    struct gr_sampled_layer *layer = &batch->layers[0];

    GR_TRY(gr_sample_making_reserve_weights(g, layer, error));
    GR_TRY(gr_sample_grow(g->context, (void **)&batch->weight, &batch->weights, batch->n_vertices, 0,
                          sizeof *batch->weight, error));
    batch->weighs_edges = batch->weighs_seeds = 1;
    for (int64_t i = 0; i < batch->n_vertices; i++) {
        const double of_vertex = (double)count_of(s->of_vertex, batch->vertex[i]) + 1;

        batch->weight[i] = (float)((double)(s->n_drawn + 1) / of_vertex);
        for (int64_t e = layer->row_ptr[i]; e < layer->row_ptr[i + 1]; e++)
            layer->weight[e] = (float)(of_vertex / ((double)count_of(s->of_edge, layer->entry[e]) + 1));
    }
    return GRAFT_OK;
}

static int32_t make_saint(const struct gr_making *g, graft_error *error)
{
    const int has_weights = g->request->epoch >= 0 && g->request->index >= 0;

    GR_TRY(add_walks(g, error));
    GR_TRY(gr_sample_making_induce(g, error));
    if (has_weights) return weigh_saint(g, error);
    return GRAFT_OK;
}

static void count_batch(struct saint *s, const struct gr_batch *batch)
{
    const struct gr_sampled_layer *layer = &batch->layers[0];

    for (int64_t i = 0; i < batch->n_vertices; i++)
        atomic_fetch_add_explicit(&s->of_vertex[batch->vertex[i]], 1, memory_order_relaxed);
    for (int64_t e = 0; e < layer->n_edges; e++)
        atomic_fetch_add_explicit(&s->of_edge[layer->entry[e]], 1, memory_order_relaxed);
}

/* Batches that are drawn to be counted, each by one thread. */
struct counting {
    const struct gr_kind_source *source;
    struct saint                *saint;
    int                          threads;
    struct gr_batch             *batch; /* [threads] batch of each thread */
    struct gr_sample_work       *work;  /* [threads] */
    int64_t                     *seeds;
    int64_t                      epoch; /* a negative number, which no epoch of the host has */
    _Atomic int32_t              failed;
};

static void count_one(void *arg, int64_t b, int64_t begin, int64_t end)
{
    struct counting              *c = arg;
    const struct gr_kind_source  *source = c->source;
    const int                     t = c->threads > 1 ? omp_get_thread_num() : 0;
    const int64_t                 first = gr_sample_deal(source->n_seeds, source->n_batches, b);
    const struct gr_draw_rule     rule = { .graph = source->graph };
    const struct gr_batch_request request = { .kind = &gr_sample_saint,
                                              .state = c->saint,
                                              .rule = &rule,
                                              .n_layers = 1,
                                              .seed = source->seed,
                                              .epoch = c->epoch,
                                              .index = b,
                                              .seeds = c->seeds + first,
                                              .n_seeds =
                                                  gr_sample_deal(source->n_seeds, source->n_batches, b + 1) - first };
    graft_error                   error = { .size = sizeof error };
    int32_t                       rc = gr_context_check_cancel(source->context, &error);

    (void)begin;
    (void)end;
    if (rc == GRAFT_OK) rc = gr_sample_batch_make(source->context, &c->batch[t], &c->work[t], &request, &error);
    if (rc < 0) atomic_store(&c->failed, rc);
    else count_batch(c->saint, &c->batch[t]);
}

/* Draw and count all batches of epoch c->epoch. */
static int32_t count_epoch(struct counting *c, graft_error *error)
{
    const struct gr_kind_source *source = c->source;
    struct gr_team               team = { .threads = c->threads };

    for (int64_t i = 0; i < source->n_seeds; i++) c->seeds[i] = source->seeds[i];
    gr_sample_shuffle(c->seeds, source->n_seeds, gr_random_key(source->seed, GR_RANDOM_SHUFFLE, (uint64_t)c->epoch, 0));
    gr_parallel_chunks(team, INT64_MAX, source->n_batches, 1, count_one, c);
    if (c->failed == GRAFT_OK) return GRAFT_OK;
    if (c->failed == GRAFT_ERR_CANCELLED) return gr_context_check_cancel(source->context, error);
    return gr_fail(error, GRAFT_ERR_NOMEM, "no memory for a subgraph that is drawn for option 'sampler'");
}

static int32_t count_batches(const struct gr_kind_source *source, struct saint *s, graft_error *error)
{
    graft_context *const context = source->context;
    const int64_t        epochs = (int64_t)gr_sample_options(context)->sampler.number[1];
    struct gr_pool       pool = { 0 };
    struct counting      c = { .source = source, .saint = s, .threads = gr_pool_team(gr_context_threads(context, 0)) };
    int32_t              rc = GRAFT_OK;

    GR_TRY_DONE(GR_POOL_NEW(context, &pool, c.batch, c.threads, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, c.work, c.threads, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, c.seeds, source->n_seeds, error));
    for (int t = 0; t < c.threads; t++)
        GR_TRY_DONE(gr_sample_work_init(context, &c.work[t], source->graph->n_rows, 1, error));
    for (c.epoch = -1; c.epoch >= -epochs; c.epoch--) GR_TRY_DONE(count_epoch(&c, error));
    s->n_drawn = epochs * source->n_batches;
done:
    for (int t = 0; c.work != NULL && t < c.threads; t++) {
        gr_sample_batch_fini(context, &c.batch[t]);
        gr_sample_work_fini(context, &c.work[t]);
    }
    gr_pool_fini(context, &pool);
    return rc;
}

static int32_t create_saint(const struct gr_kind_source *source, void **state, int64_t *n_batches, graft_error *error)
{
    graft_context *const context = source->context;
    const graft_csr     *graph = source->graph;
    struct saint        *s = NULL;

    (void)n_batches;
    GR_TRY(GR_POOL_NEW(context, source->pool, s, 1, error));
    s->graph = graph;
    s->walk = (int64_t)gr_sample_options(context)->sampler.number[0];
    GR_TRY(GR_POOL_NEW(context, source->pool, s->is_seed, graph->n_rows / 8 + 1, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, s->of_vertex, graph->n_rows, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, s->of_edge, gr_csr_entries(graph), error));
    for (int64_t i = 0; i < source->n_seeds; i++)
        s->is_seed[source->seeds[i] / 8] |= (uint8_t)(1u << source->seeds[i] % 8);
    if (source->n_seeds > 0) GR_TRY(count_batches(source, s, error));
    *state = s;
    return GRAFT_OK;
}

static void explain_saint(const struct gr_batch_request *request, struct gr_text *text)
{
    const struct saint *s = request->state;

    gr_text_add(text, "saint     walks of %lld steps; weights from %lld batches\n", (long long)s->walk,
                (long long)s->n_drawn);
}

const struct gr_sampler_kind gr_sample_saint = {
    .word = "saint",
    .deals_evenly = 1,
    .one_process = "its subgraphs are of a graph that one process has",
    .no_history = "an epoch of random walks leaves out some vertices, and rows of all are renewed",
    .create = create_saint,
    .make = make_saint,
    .explain = explain_saint,
};
