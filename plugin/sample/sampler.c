/* The batches of an epoch, some of them made ahead of the batch in use.
 *
 * Batch b of an epoch is in slot b % n_slots. Batches are claimed in order, by next() or prefetch(), made without the
 * lock, and marked as ready. After a failure, next() makes the batch again, and returns the error if it fails again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/subgraph.h"

#include "base/assert.h"
#include "base/fp.h"
#include "base/handle.h"
#include "base/random.h"
#include "base/text.h"

#include <pthread.h>
#include <string.h>

enum slot_state { SLOT_EMPTY, SLOT_CLAIMED, SLOT_READY, SLOT_FAILED };

struct slot {
    struct gr_batch batch;
    enum slot_state state;
};

struct work_item {
    struct gr_sample_work work;
    struct work_item     *next;
};

struct graft_sampler {
    struct gr_handle        handle;
    graft_context          *context;
    graft_matrix           *matrix;
    graft_csr               graph;
    struct gr_draw_rule     rule;
    struct gr_batch_request request; /* of a batch of the epoch, without its seeds */
    uint64_t                shuffle_seed;
    int64_t                *seeds, *shuffled;
    int64_t                 n_seeds, batch_size, n_batches;
    struct gr_subgraphs    *subgraphs; /* NULL: neighbours are drawn */
    int64_t                *first_of;  /* [n_batches + 1] first seed of each batch of it */
    int                     is_dealt;  /* sizes of batches differ by at most one seed; else all but the last have
                                        * batch_size seeds */

    pthread_mutex_t   lock; /* of all fields that follow */
    pthread_cond_t    done; /* a claimed batch is ready or failed */
    struct slot      *slots;
    int64_t           n_slots;
    int64_t           epoch, first; /* arguments of begin() */
    int64_t           current;      /* the last batch of next(), or first - 1 */
    int64_t           claimed;      /* the next one to claim */
    int64_t           in_making;
    struct work_item *idle; /* of one thread each */
    int64_t           n_items;

    struct gr_sample_work  team_work; /* of the caller's team */
    struct gr_batch        single;    /* of sample() */
    const struct gr_batch *given;     /* or NULL */
};

/* -- creation ----------------------------------------------------------------------------------------------------- */

static int32_t read_fanout(graft_sampler *s, const struct gr_sampler_source *source, graft_error *error)
{
    const struct gr_options *options = &s->context->options;
    const struct gr_widths  *fanout = &options->sampling.fanout;

    s->request.n_layers = source->n_layers;
    for (int32_t l = 0; l < source->n_layers; l++) s->request.fanout[l] = source->fanout[l];
    if (source->n_layers > 0) return GRAFT_OK;
    s->request.n_layers = (int32_t)options->model.layers;
    if (options->sampling.sampler != GR_SAMPLER_NEIGHBOUR) return GRAFT_OK;
    if (fanout->count != 1 && fanout->count != s->request.n_layers)
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'fanout' is a list of %d numbers, but there are %d layers",
                       fanout->count, s->request.n_layers);
    for (int32_t l = 0; l < s->request.n_layers; l++) s->request.fanout[l] = fanout->width[fanout->count == 1 ? 0 : l];
    return GRAFT_OK;
}

static int32_t read_batch_sizes(graft_sampler *s, const struct gr_sampler_source *source, graft_error *error)
{
    const struct gr_sampling_options *options = &s->context->options.sampling;

    s->n_slots = options->ahead > 0 ? options->ahead : gr_threads(s->context, 0);
    if (source->extension != NULL) s->n_slots = 1;
    s->is_dealt = source->n_batches > 0;
    if (s->is_dealt) {
        s->n_batches = source->n_batches;
        return GRAFT_OK;
    }
    s->batch_size = options->batch_size > 0 ? options->batch_size : s->n_seeds;
    if (s->n_seeds > 0 && s->batch_size > s->n_seeds)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'batch_size' is %lld, expected at most %lld, the number of seeds",
                       (long long)s->batch_size, (long long)s->n_seeds);
    if (s->n_seeds > 0)
        s->n_batches = (options->drop_last ? s->n_seeds : s->n_seeds + s->batch_size - 1) / s->batch_size;
    return GRAFT_OK;
}

static int32_t check_edge_weights(const graft_sampler *s, graft_error *error)
{
    const graft_csr *graph = &s->graph;

    if (s->rule.weights != GR_SAMPLE_BY_EDGE) return GRAFT_OK;
    if (graph->values == NULL)
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'sample.weights' is edge, but the graph has no values");
    for (int64_t e = 0; e < gr_csr_entries(graph); e++) {
        const double value = graph->value_type == GRAFT_F32 ? (double)((const float *)graph->values)[e]
                                                            : ((const double *)graph->values)[e];
        if (value < 0)
            return gr_fail(error, GRAFT_ERR_OPTION,
                           "option 'sample.weights' is edge, but the value of entry %lld of the graph is %g",
                           (long long)e, value);
    }
    return GRAFT_OK;
}

/* Copy the seeds, which must be different vertices. */
static int32_t copy_seeds(graft_sampler *s, const int64_t *seeds, graft_error *error)
{
    const int64_t n = s->graph.n_rows;
    uint8_t      *seen = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_NEW(s->context, seen, n / 8 + 1, error));
    GR_TRY(GR_NEW(s->context, s->seeds, s->n_seeds, error));
    GR_TRY(GR_NEW(s->context, s->shuffled, s->n_seeds, error));
    for (int64_t i = 0; i < s->n_seeds && rc == GRAFT_OK; i++) {
        const int64_t v = seeds[i];

        if (v < 0 || v >= n)
            rc = gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, but the graph has %lld vertices", (long long)i,
                         (long long)v, (long long)n);
        else if (seen[v / 8] >> v % 8 & 1)
            rc = gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, which is a seed already", (long long)i,
                         (long long)v);
        else seen[v / 8] |= (uint8_t)(1u << v % 8);
        s->seeds[i] = v;
    }
done:
    gr_free(s->context, seen);
    return rc;
}

void gr_sample_shuffle(int64_t *values, int64_t n, uint64_t key)
{
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t word[4];
        int64_t  other, v;

        gr_random_block(key, (uint64_t)i, 0, word);
        other = (int64_t)((unsigned __int128)((uint64_t)word[0] << 32 | word[1]) * (uint64_t)(i + 1) >> 64);
        v = values[i];
        values[i] = values[other];
        values[other] = v;
    }
}

static void shuffle_seeds(graft_sampler *s)
{
    const uint64_t seed = s->shuffle_seed;

    for (int64_t i = 0; i < s->n_seeds; i++) s->shuffled[i] = s->seeds[i];
    if (s->subgraphs != NULL) gr_subgraphs_order(s->subgraphs, seed, s->epoch, s->shuffled, s->n_seeds, s->first_of);
    else gr_sample_shuffle(s->shuffled, s->n_seeds, gr_random_key(seed, GR_RANDOM_SHUFFLE, (uint64_t)s->epoch, 0));
}

/* Option sampler, if it is not neighbour, or only the order of the seeds. */
static int32_t create_subgraphs(graft_sampler *s, const struct gr_sampler_source *from, graft_error *error)
{
    const int64_t asked = s->context->options.sampling.batch_size, n = s->n_seeds > 0 ? s->n_seeds : s->graph.n_rows;
    const struct gr_subgraph_source source = { .context = s->context,
                                               .graph = &s->graph,
                                               .seeds = s->seeds,
                                               .n_seeds = s->n_seeds,
                                               .seed = s->request.seed,
                                               .n_batches = asked > 0 && n > 0 ? (n + asked - 1) / asked : 1,
                                               .like = from->like != NULL ? from->like->subgraphs : NULL };
    int32_t                         rc = GRAFT_OK;

    GR_TRY(gr_subgraphs_create(&source, &s->subgraphs, error));
    s->n_batches = s->subgraphs->n_batches;
    if (!from->neighbours) s->request.subgraphs = s->subgraphs;
    GR_TRY(GR_NEW(s->context, s->first_of, s->n_batches + 1, error));
done:
    return rc;
}

static int32_t check_source(const struct gr_sampler_source *source, graft_error *error)
{
    const graft_csr *graph = source->graph;

    if (source->n_layers == 0 && graph->n_rows != graph->n_cols)
        return gr_fail(error, GRAFT_ERR_ARG, "graph is %lld x %lld, and not square", (long long)graph->n_rows,
                       (long long)graph->n_cols);
    if (graph->n_cols >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "graph has %lld vertices, more than 2147483646",
                       (long long)graph->n_cols);
    if (source->n_seeds < 0 || (source->seeds == NULL && source->n_seeds > 0))
        return gr_fail(error, GRAFT_ERR_ARG, "n_seeds is %lld, and seeds %s", (long long)source->n_seeds,
                       source->seeds == NULL ? "is null" : "is an array");
    return GRAFT_OK;
}

int32_t gr_sampler_create(graft_context *context, const struct gr_sampler_source *source, graft_sampler **sampler,
                          graft_error *error)
{
    const struct gr_sampling_options *options = &context->options.sampling;
    const int                         has_subgraphs = options->sampler != GR_SAMPLER_NEIGHBOUR && !source->neighbours;
    graft_sampler                    *s = NULL;
    int32_t                           rc = GRAFT_OK;

    GR_TRY(check_source(source, error));
    GR_TRY(GR_NEW(context, s, 1, error));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->done, NULL);
    s->context = context;
    s->graph = *source->graph;
    s->n_seeds = source->n_seeds;
    s->rule = (struct gr_draw_rule){
        .graph = &s->graph, .degree = source->degree, .name = source->name, .shift = source->shift
    };
    if (options->sampler == GR_SAMPLER_NEIGHBOUR) {
        s->rule.weights = options->weights;
        s->rule.replace = options->replace != 0;
    }
    if (s->rule.weights == GR_SAMPLE_UNIFORM && !s->rule.replace)
        s->rule.draw_rows = gr_draw_rows_for(gr_processor_isa());
    s->request.rule = &s->rule;
    s->request.extension = source->extension;
    s->request.seed = (uint64_t)context->options.train.seed;
    s->shuffle_seed = s->request.seed + 0x9E3779B97F4A7C15u * (uint64_t)source->rank;
    if (options->sampler == GR_SAMPLER_SAINT) s->request.seed = s->shuffle_seed; /* roots have numbers of this rank */
    GR_TRY(read_fanout(s, source, error));
    GR_TRY(copy_seeds(s, source->seeds, error));
    GR_TRY(read_batch_sizes(s, source, error));
    GR_TRY(check_edge_weights(s, error));
    if (has_subgraphs || source->by_parts) GR_TRY(create_subgraphs(s, source, error));
    GR_TRY(GR_NEW(context, s->slots, s->n_slots, error));
    GR_TRY(gr_sampler_begin(s, 0, 0, error));
    *sampler = s;
    s = NULL;
done:
    gr_sampler_destroy(s);
    return rc;
}

void gr_sampler_destroy(graft_sampler *s)
{
    if (s == NULL) return;
    for (int64_t i = 0; s->slots != NULL && i < s->n_slots; i++) gr_batch_fini(s->context, &s->slots[i].batch);
    while (s->idle != NULL) {
        struct work_item *item = s->idle;

        s->idle = item->next;
        gr_sample_work_fini(s->context, &item->work);
        gr_free(s->context, item);
    }
    gr_sample_work_fini(s->context, &s->team_work);
    gr_batch_fini(s->context, &s->single);
    gr_free(s->context, s->slots);
    gr_free(s->context, s->seeds);
    gr_free(s->context, s->shuffled);
    gr_free(s->context, s->first_of);
    gr_subgraphs_destroy(s->context, s->subgraphs);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    gr_free(s->context, s);
}

graft_matrix **gr_sampler_graph(graft_sampler *s)
{
    return &s->matrix;
}

int gr_sampler_reads(const graft_sampler *s, const graft_csr *graph)
{
    const graft_csr *mine = &s->graph;

    return graph->n_rows == mine->n_rows && graph->row_ptr == mine->row_ptr && graph->col_idx == mine->col_idx &&
           (graph->values == mine->values || !gr_sampler_reads_values(s));
}

int gr_sampler_reads_values(const graft_sampler *s)
{
    return s->rule.weights == GR_SAMPLE_BY_EDGE;
}

int gr_sampler_has_seeds(const graft_sampler *s, const int64_t *seeds, int64_t n_seeds)
{
    return n_seeds == s->n_seeds && (n_seeds == 0 || memcmp(seeds, s->seeds, (uint64_t)n_seeds * sizeof *seeds) == 0);
}

void gr_sampler_set_graph(graft_sampler *s, const graft_csr *graph)
{
    GR_ASSERT(s->in_making == 0 && graph->n_rows == s->graph.n_rows && graph->n_cols == s->graph.n_cols);
    s->graph = *graph;
}

/* -- an epoch ----------------------------------------------------------------------------------------------------- */

int64_t gr_sampler_batches(const graft_sampler *s)
{
    return s->n_batches;
}

int64_t gr_sampler_first_seed(const graft_sampler *s, int64_t batch)
{
    if (s->first_of != NULL) return s->first_of[batch];
    if (s->is_dealt) return (int64_t)((__int128)s->n_seeds * batch / s->n_batches);
    return batch * s->batch_size < s->n_seeds ? batch * s->batch_size : s->n_seeds;
}

const int64_t *gr_sampler_seeds(const graft_sampler *s)
{
    return s->shuffled;
}

int32_t gr_sampler_begin(graft_sampler *s, int64_t epoch, int64_t first, graft_error *error)
{
    if (epoch < 0) return gr_fail(error, GRAFT_ERR_ARG, "epoch is %lld, less than 0", (long long)epoch);
    if (first < 0 || first > s->n_batches)
        return gr_fail(error, GRAFT_ERR_ARG, "first is %lld, but an epoch has %lld batches", (long long)first,
                       (long long)s->n_batches);
    pthread_mutex_lock(&s->lock);
    s->claimed = s->n_batches; /* so that no other batch is begun */
    while (s->in_making > 0) pthread_cond_wait(&s->done, &s->lock);
    s->epoch = epoch;
    shuffle_seeds(s);
    for (int64_t i = 0; i < s->n_slots; i++) s->slots[i].state = SLOT_EMPTY;
    s->first = first;
    s->current = first - 1;
    s->claimed = first;
    s->given = NULL;
    pthread_mutex_unlock(&s->lock);
    return GRAFT_OK;
}

static struct slot *slot_of_batch(const graft_sampler *s, int64_t batch)
{
    return &s->slots[batch % s->n_slots];
}

static struct gr_batch_request request_of_batch(const graft_sampler *s, int64_t batch)
{
    struct gr_batch_request request = s->request;
    const int64_t           begin = gr_sampler_first_seed(s, batch);

    request.epoch = s->epoch;
    request.index = batch;
    request.weighs = 1;
    request.seeds = s->shuffled + begin;
    request.n_seeds = gr_sampler_first_seed(s, batch + 1) - begin;
    return request;
}

/* Space of one thread, from the list or new. */
static int32_t take_work(graft_sampler *s, struct work_item **taken, graft_error *error)
{
    struct work_item *item;
    int32_t           rc = GRAFT_OK;

    pthread_mutex_lock(&s->lock);
    item = s->idle;
    if (item != NULL) s->idle = item->next;
    pthread_mutex_unlock(&s->lock);
    if (item == NULL) {
        GR_TRY(GR_NEW(s->context, item, 1, error));
        GR_TRY(gr_sample_work_init(s->context, &item->work, s->graph.n_cols, 1, error));
        pthread_mutex_lock(&s->lock);
        s->n_items++;
        pthread_mutex_unlock(&s->lock);
    }
    *taken = item;
    item = NULL;
done:
    if (item != NULL) gr_free(s->context, item);
    return rc;
}

static void return_work(graft_sampler *s, struct work_item *item)
{
    pthread_mutex_lock(&s->lock);
    item->next = s->idle;
    s->idle = item;
    pthread_mutex_unlock(&s->lock);
}

/* Set the state of a claimed batch, after success or failure. */
static void release_claimed(graft_sampler *s, int64_t batch, int32_t rc)
{
    pthread_mutex_lock(&s->lock);
    slot_of_batch(s, batch)->state = rc == GRAFT_OK ? SLOT_READY : SLOT_FAILED;
    s->in_making--;
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
}

/* Make a claimed batch on this thread only. */
static int32_t make_alone(graft_sampler *s, int64_t batch, graft_error *error)
{
    const struct gr_batch_request request = request_of_batch(s, batch);
    struct work_item             *item = NULL;
    int32_t                       rc = take_work(s, &item, error);

    if (rc == GRAFT_OK) rc = gr_batch_make(s->context, &slot_of_batch(s, batch)->batch, &item->work, &request, error);
    if (item != NULL) return_work(s, item);
    release_claimed(s, batch, rc);
    return rc;
}

/* The work of the caller's team, for the present number of threads. */
static int32_t team_work(graft_sampler *s, graft_error *error)
{
    const int threads = gr_threads(s->context, 0);

    if (s->team_work.space != NULL && s->team_work.threads == threads) return GRAFT_OK;
    gr_sample_work_fini(s->context, &s->team_work);
    s->team_work = (struct gr_sample_work){ .threads = 0 };
    return gr_sample_work_init(s->context, &s->team_work, s->graph.n_cols, threads, error);
}

int32_t gr_sampler_prepare(graft_sampler *s, graft_error *error)
{
    return team_work(s, error);
}

/* Make a claimed batch with the team. */
static int32_t make_together(graft_sampler *s, int64_t batch, graft_error *error)
{
    const struct gr_batch_request request = request_of_batch(s, batch);
    int32_t                       rc = team_work(s, error);

    if (rc == GRAFT_OK) rc = gr_batch_make(s->context, &slot_of_batch(s, batch)->batch, &s->team_work, &request, error);
    release_claimed(s, batch, rc);
    return rc;
}

/* Claim up to `most` batches, one after the other. \return Their number; *begin is the first. */
static int64_t claim(graft_sampler *s, int64_t most, int64_t *begin)
{
    const int64_t oldest = s->current < s->first ? s->first : s->current; /* in use, or the next */
    int64_t       count = 0;

    *begin = s->claimed;
    while (count < most && s->claimed < s->n_batches && s->claimed - oldest < s->n_slots) {
        slot_of_batch(s, s->claimed)->state = SLOT_CLAIMED;
        s->claimed++;
        s->in_making++;
        count++;
    }
    return count;
}

/* Make the claimed batches begin .. begin + count-1, one on each thread if there are several. */
static void make_claimed(graft_sampler *s, int64_t begin, int64_t count, int threads)
{
    const struct gr_fp fp = gr_fp_get();
    graft_error        error = { .size = sizeof error }; /* next() repeats a failed batch, and reports its error */

    if (count == 1 || threads == 1) {
        for (int64_t i = 0; i < count; i++) (void)make_together(s, begin + i, &error);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < count; i++) {
        const struct gr_fp own = gr_fp_swap(fp);
        graft_error        mine = { .size = sizeof mine };

        (void)make_alone(s, begin + i, &mine);
        gr_fp_set(own);
    }
}

int32_t gr_sampler_next(graft_sampler *s, graft_error *error)
{
    const int    threads = gr_threads(s->context, 0);
    struct slot *slot;
    int64_t      begin, count = 0;
    int32_t      rc = GRAFT_OK;

    pthread_mutex_lock(&s->lock);
    s->given = NULL;
    if (s->current + 1 >= s->n_batches) {
        pthread_mutex_unlock(&s->lock);
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "the epoch has no more than %lld batches", (long long)s->n_batches);
    }
    s->current++;
    slot = slot_of_batch(s, s->current);
    if (s->claimed == s->current) count = claim(s, threads > 1 ? s->n_slots : 1, &begin);
    pthread_mutex_unlock(&s->lock);
    if (count > 0 && s->request.extension == NULL) make_claimed(s, begin, count, gr_pool_team(threads));
    if (count > 0 && s->request.extension != NULL) release_claimed(s, begin, GRAFT_ERR_STATE); /* it is made below */
    pthread_mutex_lock(&s->lock);
    while (slot->state == SLOT_CLAIMED) pthread_cond_wait(&s->done, &s->lock);
    if (slot->state == SLOT_FAILED) {
        slot->state = SLOT_CLAIMED;
        s->in_making++;
        pthread_mutex_unlock(&s->lock);
        rc = make_together(s, s->current, error);
        pthread_mutex_lock(&s->lock);
    }
    if (rc == GRAFT_OK) s->given = &slot->batch;
    else s->current--;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int32_t gr_sampler_prefetch(graft_sampler *s, int32_t *made, graft_error *error)
{
    int64_t batch;

    *made = 0;
    pthread_mutex_lock(&s->lock);
    *made = (int32_t)claim(s, 1, &batch);
    pthread_mutex_unlock(&s->lock);
    return *made ? make_alone(s, batch, error) : GRAFT_OK;
}

int32_t gr_sampler_sample(graft_sampler *s, const int64_t *seeds, int64_t n, int all, graft_error *error)
{
    struct gr_batch_request request = s->request;
    int32_t                 rc = team_work(s, error);

    s->given = NULL;
    if (rc < 0) return rc;
    request.epoch = s->epoch;
    request.index = -1;
    request.seeds = seeds;
    request.n_seeds = n;
    if (all) request.subgraphs = NULL;
    for (int32_t l = 0; all && l < request.n_layers; l++) request.fanout[l] = GR_ALL_NEIGHBOURS;
    rc = gr_batch_make(s->context, &s->single, &s->team_work, &request, error);
    if (rc == GRAFT_OK) s->given = &s->single;
    return rc;
}

const struct gr_batch *gr_sampler_batch(const graft_sampler *s)
{
    return s->given;
}

/* -- reports ------------------------------------------------------------------------------------------------------ */

int64_t gr_sampler_bytes(graft_sampler *s)
{
    int64_t bytes = gr_bytes(s->seeds) + gr_bytes(s->shuffled) + gr_batch_bytes(&s->single) +
                    (s->subgraphs != NULL ? gr_subgraphs_bytes(s->subgraphs) : 0) +
                    (s->team_work.space != NULL ? gr_sample_work_bytes(&s->team_work) : 0);

    pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < s->n_slots; i++)
        if (s->slots[i].state != SLOT_CLAIMED) bytes += gr_batch_bytes(&s->slots[i].batch);
    for (const struct work_item *item = s->idle; item != NULL; item = item->next)
        bytes += gr_sample_work_bytes(&item->work);
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

static void explain_draws(const graft_sampler *s, struct gr_text *out)
{
    static const char *const weights[] = { "uniform", "edge", "degree" };

    gr_text_add(out, "fanout    ");
    for (int32_t l = 0; l < s->request.n_layers; l++)
        gr_text_add(out, "%s%lld", l > 0 ? "," : "", (long long)s->request.fanout[l]);
    gr_text_add(out, ", %s, %s replacement\n", weights[s->rule.weights], s->rule.replace ? "with" : "without");
}

void gr_sampler_explain_kind(const graft_sampler *s, struct gr_text *text)
{
    if (s->subgraphs != NULL) s->subgraphs->kind->explain(s->subgraphs->state, text);
}

void gr_sampler_explain(graft_sampler *s, char *text, uint64_t capacity)
{
    struct gr_text out = { text, capacity };

    text[0] = '\0';
    gr_text_add(&out, "graph     %lld vertices, %lld edges\n", (long long)s->graph.n_rows,
                (long long)gr_csr_entries(&s->graph));
    gr_text_add(&out, "batches   %lld of %lld seeds in an epoch, at most %lld ahead\n", (long long)s->n_batches,
                (long long)s->batch_size, (long long)s->n_slots);
    gr_sampler_explain_kind(s, &out);
    if (s->request.subgraphs == NULL) explain_draws(s, &out);
    gr_text_add(&out, "memory    %.1f MB beside the graph\n", (double)gr_sampler_bytes(s) / 1e6);
}
