/* The batches of an epoch, some of them made ahead of the batch in use. The kind of the sampler makes them.
 *
 * Batch b of an epoch is in slot b % n_slots. Batches are claimed in order, by next() or prefetch(), made without the
 * lock, and marked as ready. After a failure, next() makes the batch again, and returns the error if it fails again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/assert.h"
#include "base/fp.h"
#include "base/handle.h"
#include "base/options.h"
#include "base/random.h"
#include "base/team.h"
#include "sample/options.h"

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

/* The seeds, and the batches of an epoch to which they are dealt. */
struct deal {
    uint64_t key_seed; /* random seed of the order of an epoch */
    int64_t  n_seeds, batch_size, n_batches;
    int      is_even;  /* sizes of batches differ by at most one seed; else all but the last have batch_size seeds */
    int64_t *seeds;    /* [n_seeds] in the order of the caller of create() */
    int64_t *shuffled; /* [n_seeds] in the order of the epoch */
    int64_t *first;    /* [n_batches + 1] index in `shuffled` of the first seed of each batch */
};

/* Batches that are made, or were made ahead. */
struct queue {
    pthread_mutex_t   lock; /* protects all other fields */
    pthread_cond_t    done; /* signals that a claimed batch is ready or failed */
    struct slot      *slots;
    int64_t           n_slots;
    int64_t           epoch, first; /* arguments of begin() */
    int64_t           current;      /* the last batch of next(), or first - 1 */
    int64_t           claimed;      /* the next batch to claim */
    int64_t           in_making;
    struct work_item *idle; /* unused work spaces, each for one thread */
};

struct graft_sampler {
    struct gr_handle              handle;
    graft_context                *context;
    struct gr_pool                pool; /* owns all that create() makes */
    graft_matrix                 *matrix;
    graft_csr                     graph;
    struct gr_draw_rule           rule;
    const struct gr_sampler_kind *kind;    /* the kind that deals the seeds */
    void                         *state;   /* the state of this kind; or NULL */
    struct gr_batch_request       request; /* the request for a batch of the epoch, without its seeds */
    struct deal                   deal;
    struct queue                  queue;
    struct gr_sample_work         team_work; /* work space of the caller's team */
    struct gr_batch               single;    /* the batch of sample() */
    const struct gr_batch        *given;     /* the last batch of next() or sample(); or NULL */
};

#define KIND(constant, word, numbers) [GR_SAMPLER_##constant] = &gr_sample_##word,
static const struct gr_sampler_kind *const kinds[] = { GR_SAMPLER_MAP(KIND) };
#undef KIND

const struct gr_sampler_kind *gr_sample_kind(const graft_context *context)
{
    return kinds[gr_sample_options(context)->sampler.word];
}

int gr_sample_replaces(const graft_context *context)
{
    const struct gr_form *sampler = &gr_sample_options(context)->sampler;

    return sampler->word == GR_SAMPLER_NEIGHBOUR && sampler->number[0] != 0;
}

/* -- creation ----------------------------------------------------------------------------------------------------- */

static int32_t read_fanout(graft_sampler *s, const struct gr_sampler_source *source, graft_error *error)
{
    const struct gr_widths *list = &gr_sample_options(s->context)->fanout;

    s->request.n_layers = source->n_layers;
    for (int32_t l = 0; l < source->n_layers && source->fanout != NULL; l++) s->request.fanout[l] = source->fanout[l];
    if (source->fanout != NULL || !s->request.kind->has_fanout) return GRAFT_OK;
    return gr_option_spread_widths(list, s->request.n_layers, "option 'fanout'", "layers", s->request.fanout, error);
}

/* Compute the size and the number of batches. A kind that deals parts may lower the number in its create(). */
static int32_t read_batch_sizes(graft_sampler *s, const struct gr_sampler_source *source, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(s->context);
    struct deal                    *d = &s->deal;
    const int64_t                   n = d->n_seeds;

    s->queue.n_slots = source->extension != NULL ? 1
                       : options->ahead > 0      ? options->ahead
                                                 : gr_context_threads(s->context, 0);
    d->is_even = source->n_batches > 0 || s->kind->deals_evenly;
    d->n_batches = source->n_batches;
    if (source->n_batches > 0) return GRAFT_OK;
    d->batch_size = options->batch_size > 0 ? options->batch_size : n;
    if (n > 0 && d->batch_size > n)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'batch_size' is %lld, expected at most %lld, the number of seeds",
                       (long long)d->batch_size, (long long)n);
    if (n > 0) d->n_batches = (options->drop_last && !d->is_even ? n : n + d->batch_size - 1) / d->batch_size;
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

    GR_TRY_DONE(GR_NEW(s->context, seen, n / 8 + 1, error));
    GR_TRY_DONE(GR_POOL_NEW(s->context, &s->pool, s->deal.seeds, s->deal.n_seeds, error));
    GR_TRY_DONE(GR_POOL_NEW(s->context, &s->pool, s->deal.shuffled, s->deal.n_seeds, error));
    for (int64_t i = 0; i < s->deal.n_seeds && rc == GRAFT_OK; i++) {
        const int64_t v = seeds[i];

        if (v < 0 || v >= n)
            rc = gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, but the graph has %lld vertices", (long long)i,
                         (long long)v, (long long)n);
        else if (seen[v / 8] >> v % 8 & 1)
            rc = gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, which is a seed already", (long long)i,
                         (long long)v);
        else seen[v / 8] |= (uint8_t)(1u << v % 8);
        s->deal.seeds[i] = v;
    }
done:
    gr_free(s->context, seen);
    return rc;
}

static void deal_seeds(struct deal *d, const struct gr_sampler_kind *kind, const void *state, int64_t epoch)
{
    for (int64_t i = 0; i < d->n_seeds; i++) d->shuffled[i] = d->seeds[i];
    if (kind->order != NULL) {
        kind->order(state, d->key_seed, epoch, d->shuffled, d->first);
        return;
    }
    gr_sample_shuffle(d->shuffled, d->n_seeds, gr_random_key(d->key_seed, GR_RANDOM_SHUFFLE, (uint64_t)epoch, 0));
    for (int64_t b = 0; b <= d->n_batches; b++) {
        if (d->is_even) d->first[b] = gr_sample_deal(d->n_seeds, d->n_batches, b);
        else d->first[b] = b * d->batch_size < d->n_seeds ? b * d->batch_size : d->n_seeds;
    }
}

static int32_t create_state(graft_sampler *s, const struct gr_sampler_source *from, graft_error *error)
{
    const int64_t asked = gr_sample_options(s->context)->batch_size;
    const int64_t n = s->deal.n_seeds > 0 ? s->deal.n_seeds : s->graph.n_rows;

    const struct gr_kind_source source = { .context = s->context,
                                           .pool = &s->pool,
                                           .graph = &s->graph,
                                           .seeds = s->deal.seeds,
                                           .n_seeds = s->deal.n_seeds,
                                           .seed = s->request.seed,
                                           .n_batches = asked > 0 && n > 0 ? (n + asked - 1) / asked : 1,
                                           .like = from->like != NULL ? from->like->state : NULL };

    if (s->kind->create == NULL) return GRAFT_OK;
    return s->kind->create(&source, &s->state, &s->deal.n_batches, error);
}

static int32_t check_source(const struct gr_sampler_source *source, graft_error *error)
{
    const graft_csr *graph = source->graph;

    if (source->fanout == NULL && graph->n_rows != graph->n_cols)
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

/* Choose the kind that makes batches, the kind that deals the seeds, and how neighbours are drawn. */
static void choose_kind(graft_sampler *s, const struct gr_sampler_source *source)
{
    const struct gr_sample_options *options = gr_sample_options(s->context);
    const struct gr_sampler_kind   *kind = gr_sample_kind(s->context);

    s->request.kind = source->neighbours ? &gr_sample_neighbour : kind;
    s->kind = source->by_parts ? kind : s->request.kind;
    s->rule = (struct gr_draw_rule){
        .graph = &s->graph, .degree = source->degree, .name = source->name, .shift = source->shift
    };
    if (kind->draws) s->rule.weights = options->weights;
    s->rule.replace = gr_sample_replaces(s->context);
    if (s->rule.weights == GR_SAMPLE_UNIFORM && !s->rule.replace)
        s->rule.draw_rows = gr_sample_draw_rows_for(gr_processor_isa());
    s->request.rule = &s->rule;
}

int32_t gr_sampler_create(graft_context *context, const struct gr_sampler_source *source, graft_sampler **sampler,
                          graft_error *error)
{
    graft_sampler *s = NULL;
    int32_t        rc = GRAFT_OK;

    GR_TRY_DONE(check_source(source, error));
    GR_TRY_DONE(GR_NEW(context, s, 1, error));
    pthread_mutex_init(&s->queue.lock, NULL);
    pthread_cond_init(&s->queue.done, NULL);
    s->context = context;
    s->graph = *source->graph;
    choose_kind(s, source);
    s->request.extension = source->extension;
    s->request.seed = (uint64_t)gr_base_options(context)->seed;
    s->deal.key_seed = s->request.seed + 0x9E3779B97F4A7C15u * (uint64_t)source->rank;
    s->deal.n_seeds = source->n_seeds;
    GR_TRY_DONE(read_fanout(s, source, error));
    GR_TRY_DONE(copy_seeds(s, source->seeds, error));
    GR_TRY_DONE(read_batch_sizes(s, source, error));
    GR_TRY_DONE(check_edge_weights(s, error));
    GR_TRY_DONE(create_state(s, source, error));
    s->request.state = s->state;
    GR_TRY_DONE(GR_POOL_NEW(context, &s->pool, s->deal.first, s->deal.n_batches + 1, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &s->pool, s->queue.slots, s->queue.n_slots, error));
    GR_TRY_DONE(gr_sampler_begin(s, 0, 0, error));
    *sampler = s;
    s = NULL;
done:
    gr_sampler_destroy(s);
    return rc;
}

void gr_sampler_destroy(graft_sampler *s)
{
    if (s == NULL) return;
    for (int64_t i = 0; s->queue.slots != NULL && i < s->queue.n_slots; i++)
        gr_sample_batch_fini(s->context, &s->queue.slots[i].batch);
    while (s->queue.idle != NULL) {
        struct work_item *item = s->queue.idle;

        s->queue.idle = item->next;
        gr_sample_work_fini(s->context, &item->work);
        gr_free(s->context, item);
    }
    gr_sample_work_fini(s->context, &s->team_work);
    gr_sample_batch_fini(s->context, &s->single);
    gr_pool_fini(s->context, &s->pool);
    pthread_cond_destroy(&s->queue.done);
    pthread_mutex_destroy(&s->queue.lock);
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
    return n_seeds == s->deal.n_seeds &&
           (n_seeds == 0 || memcmp(seeds, s->deal.seeds, (uint64_t)n_seeds * sizeof *seeds) == 0);
}

void gr_sampler_set_graph(graft_sampler *s, const graft_csr *graph)
{
    GR_ASSERT(s->queue.in_making == 0 && graph->n_rows == s->graph.n_rows && graph->n_cols == s->graph.n_cols);
    s->graph = *graph;
}

/* -- an epoch ----------------------------------------------------------------------------------------------------- */

int64_t gr_sampler_batches(const graft_sampler *s)
{
    return s->deal.n_batches;
}

int64_t gr_sampler_first_seed(const graft_sampler *s, int64_t batch)
{
    return s->deal.first[batch];
}

const int64_t *gr_sampler_seeds(const graft_sampler *s)
{
    return s->deal.shuffled;
}

int32_t gr_sampler_begin(graft_sampler *s, int64_t epoch, int64_t first, graft_error *error)
{
    if (epoch < 0) return gr_fail(error, GRAFT_ERR_ARG, "epoch is %lld, less than 0", (long long)epoch);
    if (first < 0 || first > s->deal.n_batches)
        return gr_fail(error, GRAFT_ERR_ARG, "first is %lld, but an epoch has %lld batches", (long long)first,
                       (long long)s->deal.n_batches);
    pthread_mutex_lock(&s->queue.lock);
    s->queue.claimed = s->deal.n_batches; /* so that no other batch is begun */
    while (s->queue.in_making > 0) pthread_cond_wait(&s->queue.done, &s->queue.lock);
    s->queue.epoch = epoch;
    deal_seeds(&s->deal, s->kind, s->state, epoch);
    for (int64_t i = 0; i < s->queue.n_slots; i++) s->queue.slots[i].state = SLOT_EMPTY;
    s->queue.first = first;
    s->queue.current = first - 1;
    s->queue.claimed = first;
    s->given = NULL;
    pthread_mutex_unlock(&s->queue.lock);
    return GRAFT_OK;
}

static struct slot *slot_of_batch(const graft_sampler *s, int64_t batch)
{
    return &s->queue.slots[batch % s->queue.n_slots];
}

/* Take a work space for one thread from the list, or make one. */
static int32_t take_work(graft_sampler *s, struct work_item **taken, graft_error *error)
{
    struct work_item *item;
    int32_t           rc = GRAFT_OK;

    pthread_mutex_lock(&s->queue.lock);
    item = s->queue.idle;
    if (item != NULL) s->queue.idle = item->next;
    pthread_mutex_unlock(&s->queue.lock);
    if (item == NULL) {
        GR_TRY_DONE(GR_NEW(s->context, item, 1, error));
        GR_TRY_DONE(gr_sample_work_init(s->context, &item->work, s->graph.n_cols, 1, error));
    }
    *taken = item;
    item = NULL;
done:
    if (item != NULL) gr_free(s->context, item);
    return rc;
}

static void return_work(graft_sampler *s, struct work_item *item)
{
    pthread_mutex_lock(&s->queue.lock);
    item->next = s->queue.idle;
    s->queue.idle = item;
    pthread_mutex_unlock(&s->queue.lock);
}

/* Set the state of a claimed batch, after success or failure. */
static void release_claimed(graft_sampler *s, int64_t batch, int32_t rc)
{
    pthread_mutex_lock(&s->queue.lock);
    slot_of_batch(s, batch)->state = rc == GRAFT_OK ? SLOT_READY : SLOT_FAILED;
    s->queue.in_making--;
    pthread_cond_broadcast(&s->queue.done);
    pthread_mutex_unlock(&s->queue.lock);
}

/* Make a claimed batch, unless rc, the status of its work space, is an error; then mark it as ready or failed. */
static int32_t make_claimed_batch(graft_sampler *s, int64_t batch, struct gr_sample_work *work, int32_t rc,
                                  graft_error *error)
{
    struct gr_batch_request request = s->request;
    const int64_t          *first = &s->deal.first[batch];

    request.epoch = s->queue.epoch;
    request.index = batch;
    request.seeds = s->deal.shuffled + first[0];
    request.n_seeds = first[1] - first[0];
    if (rc == GRAFT_OK) rc = gr_sample_batch_make(s->context, &slot_of_batch(s, batch)->batch, work, &request, error);
    release_claimed(s, batch, rc);
    return rc;
}

/* Make a claimed batch on this thread only. */
static int32_t make_alone(graft_sampler *s, int64_t batch, graft_error *error)
{
    struct work_item *item = NULL;
    int32_t           rc = take_work(s, &item, error);

    rc = make_claimed_batch(s, batch, item != NULL ? &item->work : NULL, rc, error);
    if (item != NULL) return_work(s, item);
    return rc;
}

int32_t gr_sampler_prepare(graft_sampler *s, graft_error *error)
{
    const int threads = gr_context_threads(s->context, 0);

    if (s->team_work.space != NULL && s->team_work.threads == threads) return GRAFT_OK;
    gr_sample_work_fini(s->context, &s->team_work);
    s->team_work = (struct gr_sample_work){ .threads = 0 };
    return gr_sample_work_init(s->context, &s->team_work, s->graph.n_cols, threads, error);
}

/* Make a claimed batch with the team of the caller. */
static int32_t make_together(graft_sampler *s, int64_t batch, graft_error *error)
{
    return make_claimed_batch(s, batch, &s->team_work, gr_sampler_prepare(s, error), error);
}

/* Claim up to `most` batches, one after the other. \return Their number; *begin is the first. */
static int64_t claim(graft_sampler *s, int64_t most, int64_t *begin)
{
    const int64_t oldest =
        s->queue.current < s->queue.first ? s->queue.first : s->queue.current; /* the batch in use, or the next one */
    int64_t count = 0;

    *begin = s->queue.claimed;
    while (count < most && s->queue.claimed < s->deal.n_batches && s->queue.claimed - oldest < s->queue.n_slots) {
        slot_of_batch(s, s->queue.claimed)->state = SLOT_CLAIMED;
        s->queue.claimed++;
        s->queue.in_making++;
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
    const int    threads = gr_context_threads(s->context, 0);
    struct slot *slot;
    int64_t      begin, count = 0;
    int32_t      rc = GRAFT_OK;

    pthread_mutex_lock(&s->queue.lock);
    s->given = NULL;
    if (s->queue.current + 1 >= s->deal.n_batches) {
        pthread_mutex_unlock(&s->queue.lock);
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "the epoch has no more than %lld batches",
                       (long long)s->deal.n_batches);
    }
    s->queue.current++;
    slot = slot_of_batch(s, s->queue.current);
    if (s->queue.claimed == s->queue.current) count = claim(s, threads > 1 ? s->queue.n_slots : 1, &begin);
    pthread_mutex_unlock(&s->queue.lock);
    if (count > 0 && s->request.extension == NULL) make_claimed(s, begin, count, gr_pool_team(threads));
    if (count > 0 && s->request.extension != NULL) release_claimed(s, begin, GRAFT_ERR_STATE); /* it is made below */
    pthread_mutex_lock(&s->queue.lock);
    while (slot->state == SLOT_CLAIMED) pthread_cond_wait(&s->queue.done, &s->queue.lock);
    if (slot->state == SLOT_FAILED) {
        slot->state = SLOT_CLAIMED;
        s->queue.in_making++;
        pthread_mutex_unlock(&s->queue.lock);
        rc = make_together(s, s->queue.current, error);
        pthread_mutex_lock(&s->queue.lock);
    }
    if (rc == GRAFT_OK) s->given = &slot->batch;
    else s->queue.current--;
    pthread_mutex_unlock(&s->queue.lock);
    return rc;
}

int32_t gr_sampler_prefetch(graft_sampler *s, int32_t *made, graft_error *error)
{
    int64_t batch;

    *made = 0;
    pthread_mutex_lock(&s->queue.lock);
    *made = (int32_t)claim(s, 1, &batch);
    pthread_mutex_unlock(&s->queue.lock);
    return *made ? make_alone(s, batch, error) : GRAFT_OK;
}

int32_t gr_sampler_sample(graft_sampler *s, const int64_t *seeds, int64_t n, int all, graft_error *error)
{
    struct gr_batch_request request = s->request;
    int32_t                 rc;

    s->given = NULL;
    GR_TRY(gr_sampler_prepare(s, error));
    request.epoch = s->queue.epoch;
    request.index = -1;
    request.seeds = seeds;
    request.n_seeds = n;
    if (all) request.kind = &gr_sample_neighbour;
    for (int32_t l = 0; all && l < request.n_layers; l++) request.fanout[l] = GR_ALL_NEIGHBOURS;
    rc = gr_sample_batch_make(s->context, &s->single, &s->team_work, &request, error);
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
    int64_t bytes = s->pool.bytes + gr_sample_batch_bytes(&s->single) + gr_sample_work_bytes(&s->team_work);

    pthread_mutex_lock(&s->queue.lock);
    for (int64_t i = 0; i < s->queue.n_slots; i++)
        if (s->queue.slots[i].state != SLOT_CLAIMED) bytes += gr_sample_batch_bytes(&s->queue.slots[i].batch);
    for (const struct work_item *item = s->queue.idle; item != NULL; item = item->next)
        bytes += gr_sample_work_bytes(&item->work);
    pthread_mutex_unlock(&s->queue.lock);
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
    if (s->kind->explain != NULL) s->kind->explain(&s->request, text);
}

void gr_sampler_explain(graft_sampler *s, char *text, uint64_t capacity)
{
    struct gr_text out = { text, capacity };

    text[0] = '\0';
    gr_text_add(&out, "graph     %lld vertices, %lld edges\n", (long long)s->graph.n_rows,
                (long long)gr_csr_entries(&s->graph));
    gr_text_add(&out, "batches   %lld of %lld seeds in an epoch, at most %lld ahead\n", (long long)s->deal.n_batches,
                (long long)s->deal.batch_size, (long long)s->queue.n_slots);
    gr_sampler_explain_kind(s, &out);
    if (s->request.kind->draws) explain_draws(s, &out);
    gr_text_add(&out, "memory    %.1f MB beside the graph\n", (double)gr_sampler_bytes(s) / 1e6);
}
