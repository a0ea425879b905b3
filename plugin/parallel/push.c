/* Rows that batches send to the caches of other ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/random.h"
#include "comm/collective.h"

#include <math.h>
#include <string.h>

/* -- memory ------------------------------------------------------------------------------------------------------- */

static int64_t rows_sent(const struct gr_cached *c, int32_t q)
{
    return c->links->send_start[q + 1] - c->links->send_start[q];
}

static int64_t rows_of_halo(const struct gr_cached *c, int32_t q)
{
    return c->halo->start[q + 1] - c->halo->start[q];
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The ranks that have each owned vertex in their halo. */
static int32_t turn_links(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    const struct gr_links *links = c->links;
    const int32_t          n_ranks = c->comm->n_ranks;
    const int64_t          owned = c->graph->n_rows, count = links->send_start[n_ranks];
    int32_t                rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->to_start, owned + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->to_rank, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->to_place, count, error));
    for (int64_t i = 0; i < count; i++) c->to_start[links->place[i] + 1]++;
    for (int64_t v = 0; v < owned; v++) c->to_start[v + 1] += c->to_start[v];
    for (int32_t q = n_ranks - 1; q >= 0; q--) {
        for (int64_t i = links->send_start[q]; i < links->send_start[q + 1]; i++) {
            const int64_t at = --c->to_start[links->place[i] + 1];

            c->to_rank[at] = q;
            c->to_place[at] = (int32_t)(i - links->send_start[q]);
        }
    }
    for (int64_t v = 0; v < owned; v++) c->to_start[v] = c->to_start[v + 1];
    c->to_start[owned] = count;
done:
    return rc;
}

static int32_t make_lists(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    const int64_t n_ranks = c->comm->n_ranks, count = c->links->send_start[n_ranks];
    const int64_t widest = c->most[GR_SEND] > c->most[GR_RECEIVE] ? c->most[GR_SEND] : c->most[GR_RECEIVE];
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->link, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->candidate, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->place, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->key, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->at, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->begin, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->mine, (int64_t)c->n_layers * GR_CACHE_NUMBERS, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->numbers, n_ranks * c->n_layers * GR_CACHE_NUMBERS, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->buffer, widest * c->widest, error));
    for (int side = 0; side < GR_SIDES; side++) {
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->count[side], n_ranks * c->n_layers, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->item_start[side], n_ranks + 1, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->item[side], c->most[side] * c->n_layers, error));
    }
done:
    return rc;
}

static int32_t make_push(struct gr_cached *c, struct gr_budget *budget, const struct gr_cached_layer *layer,
                         struct gr_push *push, graft_error *error)
{
    const int64_t n_ranks = c->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->start[side], n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->row, c->most[GR_SEND], error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->vertex, c->most[GR_RECEIVE], error));
    GR_TRY(gr_budget_check(budget, (double)gr_messages_need(&push->messages, c->most, layer->width, GRAFT_F32),
                           "messages (rows of batches)", error));
    rc = gr_messages_reserve(&push->messages, c->most, layer->width, GRAFT_F32, error);
    gr_budget_charge(budget, GR_USE_MESSAGES, gr_messages_bytes(&push->messages));
done:
    return rc;
}

static void forget_sent(const struct gr_cached *c, struct gr_cached_layer *layer)
{
    for (int64_t i = 0; i < c->links->send_start[c->comm->n_ranks]; i++) layer->last_sent[i] = -1;
}

/* By enum gr_cache_codec. */
static const int32_t cache_bits[] = { 32, 16, 8, 4 };

static int32_t make_cached_layer(struct gr_cached *c, struct gr_budget *budget, struct gr_cached_layer *layer,
                                 graft_error *error)
{
    const struct gr_sampling_options *options = &c->context->options.sampling;
    int32_t rc = gr_cache_init(&layer->cache, budget, c->halo->count, options->cache_rows, layer->width,
                               cache_bits[options->cache_codec], c->most[GR_RECEIVE], error);

    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, layer->last_sent, c->links->send_start[c->comm->n_ranks], error);
    if (rc == GRAFT_OK) forget_sent(c, layer);
    for (int64_t d = 0; d < c->delay && rc == GRAFT_OK; d++) rc = make_push(c, budget, layer, &layer->push[d], error);
    if (rc == GRAFT_OK && layer->cache.capacity < smaller_of(c->most[GR_RECEIVE], c->halo->count))
        rc = gr_fail(error, GRAFT_ERR_OPTION,
                     "option 'hec.rows' is %lld, but up to %lld rows of a layer can arrive with one batch (option "
                     "'aep.rows' is %lld)",
                     (long long)options->cache_rows, (long long)c->most[GR_RECEIVE], (long long)c->rows_most);
    return rc;
}

/* All messages take their channels, whatever has failed on this rank. */
static int32_t make_messages(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->layer, c->n_layers, error);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *made = NULL;

        if (rc == GRAFT_OK) rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, made, c->delay, error);
        for (int64_t d = 0; d < c->delay; d++) {
            struct gr_messages none, *messages = made != NULL ? &made[d].messages : &none;
            const int32_t      here = gr_messages_init(c->context, c->comm, 1, messages, error);

            if (rc == GRAFT_OK) rc = here;
            if (made == NULL) gr_messages_fini(&none);
        }
        if (made != NULL) c->layer[l].push = made;
    }
    return rc;
}

int32_t gr_cached_init(struct gr_cached *c, graft_context *context, const struct gr_cached_wish *wish,
                       struct gr_budget *budget, graft_error *error)
{
    const struct gr_sampling_options *options = &context->options.sampling;
    int32_t                           rc = GRAFT_OK;

    *c = (struct gr_cached){ .base = { &gr_cached_ops },
                             .budget = budget,
                             .ranks = wish->ranks,
                             .context = context,
                             .comm = wish->comm,
                             .halo = wish->halo,
                             .graph = wish->graph,
                             .links = wish->links,
                             .delay = options->push_delay,
                             .rows_most = options->push_rows,
                             .life = { .life = options->cache_life,
                                       .takes_expired = options->cache_miss == GR_MISS_LAST },
                             .feature_width = wish->feature_width,
                             .first = wish->first,
                             .n_layers = wish->n_layers };
    /* Half of its life; but the next row must be there before the last one is too old. */
    c->renewed_after = smaller_of((c->life.life + 1) / 2, c->life.life - c->delay + 1);
    GR_TRY(make_messages(c, budget, error));
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        c->most[GR_SEND] += smaller_of(c->rows_most, rows_sent(c, q));
        c->most[GR_RECEIVE] += smaller_of(c->rows_most, rows_of_halo(c, q));
    }
    for (int32_t l = c->first; l < c->n_layers; l++) {
        c->layer[l].index = l;
        c->layer[l].width = wish->width[l];
        if (c->layer[l].width > c->widest) c->widest = c->layer[l].width;
    }
    GR_TRY(turn_links(c, budget, error));
    GR_TRY(make_lists(c, budget, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(make_cached_layer(c, budget, &c->layer[l], error));
done:
    return rc;
}

static void drop_push(struct gr_push *push)
{
    if (push->in_flight) gr_messages_drain(&push->messages);
    push->in_flight = 0;
}

void gr_cached_fini(struct gr_cached *c)
{
    for (int32_t l = c->first; c->layer != NULL && l < c->n_layers; l++) {
        for (int64_t d = 0; c->layer[l].push != NULL && d < c->delay; d++) {
            drop_push(&c->layer[l].push[d]);
            gr_messages_fini(&c->layer[l].push[d].messages);
        }
    }
    *c = (struct gr_cached){ 0 };
}

void gr_cached_forget(struct gr_cached *c)
{
    for (int32_t l = c->first; l < c->n_layers; l++) {
        gr_cache_forget(&c->layer[l].cache);
        forget_sent(c, &c->layer[l]);
        for (int64_t d = 0; d < c->delay; d++) drop_push(&c->layer[l].push[d]);
    }
}

static int is_same_format(const struct gr_row_format *a, const struct gr_row_format *b)
{
    return a->bits[GR_FORWARD] == b->bits[GR_FORWARD] && a->code[GR_FORWARD] == b->code[GR_FORWARD] &&
           a->rounding[GR_FORWARD] == b->rounding[GR_FORWARD] && a->measuring == b->measuring &&
           a->refuses == b->refuses;
}

/* Have memory for messages of this format, which is theirs then. */
static int32_t take_format(struct gr_cached *c, struct gr_messages *messages, int64_t width,
                           const struct gr_row_format *format, graft_error *error)
{
    const struct gr_row_format old = messages->format;
    const int64_t              before = gr_messages_bytes(messages);
    int32_t                    rc;

    messages->format = *format;
    rc = gr_budget_check(c->budget, fmax(0, (double)(gr_messages_need(messages, c->most, width, GRAFT_F32) - before)),
                         "messages (rows of batches)", error);
    if (rc == GRAFT_OK) rc = gr_messages_reserve(messages, c->most, width, GRAFT_F32, error);
    gr_budget_charge(c->budget, GR_USE_MESSAGES, gr_messages_bytes(messages) - before);
    if (rc < 0) messages->format = old;
    return rc;
}

/* After a failure some have the new format already: all go back to the old one, for which there is memory. */
static void set_formats(struct gr_cached *c, const struct gr_row_format *format)
{
    for (int32_t l = c->first; l < c->n_layers; l++)
        for (int64_t d = 0; d < c->delay; d++) c->layer[l].push[d].messages.format = *format;
}

int32_t gr_cached_renew(struct gr_cached *c, graft_error *error)
{
    const struct gr_row_format format = gr_row_format_of(c->context);
    struct gr_row_format       old;
    int32_t                    rc = GRAFT_OK;

    if (c->first == c->n_layers) return GRAFT_OK;
    old = c->layer[c->first].push[0].messages.format;
    if (is_same_format(&old, &format)) return GRAFT_OK;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        forget_sent(c, &c->layer[l]);
        for (int64_t d = 0; d < c->delay; d++) {
            drop_push(&c->layer[l].push[d]);
            if (rc == GRAFT_OK) rc = take_format(c, &c->layer[l].push[d].messages, c->layer[l].width, &format, error);
        }
    }
    if (rc < 0) set_formats(c, &old);
    return rc;
}

/* -- what other ranks sent ---------------------------------------------------------------------------------------- */

static int32_t receive_push(struct gr_cached *c, struct gr_cached_layer *layer, struct gr_push *push,
                            struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    push->in_flight = 0;
    GR_TRY(gr_messages_wait(&push->messages, team, error));
    GR_TRY(gr_messages_decode(&push->messages, c->buffer, team, error));
    if (push->batch != c->batch) /* else the batch is repeated, and sends them again */
        gr_cache_store(&layer->cache, push->vertex, push->start[GR_RECEIVE][c->comm->n_ranks], c->buffer, push->batch,
                       team.threads);
done:
    return rc;
}

int32_t gr_cached_begin(struct gr_cached *c, int64_t batch, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    c->batch = c->life.now = batch;
    team.poll = NULL;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *push = &c->layer[l].push[batch % c->delay];

        if (push->in_flight) GR_TRY(receive_push(c, &c->layer[l], push, team, error));
        push->is_sent = 0;
    }
done:
    return rc;
}

/* -- what this rank sends ----------------------------------------------------------------------------------------- */

/* Whether a row is worth sending along a link. */
static int is_due(const struct gr_cached *c, const struct gr_cached_layer *layer, int64_t link)
{
    const int64_t last = layer->last_sent[link];

    return last < 0 || c->batch <= last || c->batch - last >= c->renewed_after; /* <=: the batch is repeated */
}

/* The sources that rank q has in its halo are candidate[at[q] .. at[q + 1]-1]. */
static void find_candidates(struct gr_cached *c, const struct gr_cached_layer *layer, const int64_t *vertex,
                            int64_t n_src)
{
    const int32_t n_ranks = c->comm->n_ranks;

    memset(c->at, 0, (uint64_t)(n_ranks + 1) * sizeof *c->at);
    for (int64_t i = 0; i < n_src; i++)
        for (int64_t k = c->to_start[vertex[i]]; k < c->to_start[vertex[i] + 1]; k++)
            c->at[c->to_rank[k] + 1] += is_due(c, layer, k);
    for (int32_t q = 0; q < n_ranks; q++) c->at[q + 1] += c->at[q];
    memcpy(c->begin, c->at, (uint64_t)(n_ranks + 1) * sizeof *c->at);
    for (int64_t i = 0; i < n_src; i++) {
        for (int64_t k = c->to_start[vertex[i]]; k < c->to_start[vertex[i] + 1]; k++) {
            int64_t to;

            if (!is_due(c, layer, k)) continue;
            to = c->begin[c->to_rank[k]]++;
            c->candidate[to] = (int32_t)i;
            c->place[to] = c->to_place[k];
            c->link[to] = k;
        }
    }
}

static void swap_candidates(struct gr_cached *c, int64_t i, int64_t j)
{
    const double  key = c->key[i];
    const int32_t candidate = c->candidate[i], place = c->place[i];
    const int64_t link = c->link[i];

    c->key[i] = c->key[j];
    c->candidate[i] = c->candidate[j];
    c->place[i] = c->place[j];
    c->link[i] = c->link[j];
    c->key[j] = key;
    c->link[j] = link;
    c->candidate[j] = candidate;
    c->place[j] = place;
}

/* Hoare's selection: the `wanted` smallest keys of begin .. end-1 become the first ones. */
static void select_smallest(struct gr_cached *c, int64_t begin, int64_t end, int64_t wanted)
{
    const int64_t limit = begin + wanted;

    while (end - begin > 1) {
        const double pivot = c->key[begin + (end - begin) / 2];
        int64_t      i = begin, j = end - 1;

        while (i <= j) {
            while (c->key[i] < pivot) i++;
            while (c->key[j] > pivot) j--;
            if (i <= j) swap_candidates(c, i++, j--);
        }
        if (limit <= j) end = j + 1;
        else if (limit >= i) begin = i;
        else return;
    }
}

/* Draw those to send in proportion to their degrees, one after the other among those that are left: the smallest
 * -log(u) / degree (Efraimidis and Spirakis 2006). */
static void draw_candidates(struct gr_cached *c, const int64_t *vertex, int32_t layer, int32_t q)
{
    const uint64_t seed = (uint64_t)c->context->options.train.seed;
    const uint64_t key = gr_random_key(seed, GR_RANDOM_PUSH, (uint64_t)c->batch,
                                       (uint64_t)layer * (uint64_t)c->comm->n_ranks + (uint64_t)q);

    for (int64_t i = c->at[q]; i < c->at[q + 1]; i++) {
        const int64_t v = vertex[c->candidate[i]], degree = c->graph->row_ptr[v + 1] - c->graph->row_ptr[v];
        uint32_t      word[4];

        gr_random_block(key, (uint64_t)v, (uint64_t)c->comm->rank, word);
        c->key[i] = -log(((double)word[0] + 1) * 0x1p-32) / (double)(degree > 0 ? degree : 1);
    }
    select_smallest(c, c->at[q], c->at[q + 1], c->rows_most);
}

/* What the layer sends in this batch, and to whom. */
static void choose_rows(struct gr_cached *c, struct gr_cached_layer *layer, const int64_t *vertex, int64_t n_src)
{
    struct gr_push *push = &layer->push[c->batch % c->delay];
    int64_t         to = 0;

    find_candidates(c, layer, vertex, n_src);
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = smaller_of(c->at[q + 1] - c->at[q], c->rows_most);

        if (count < c->at[q + 1] - c->at[q]) draw_candidates(c, vertex, layer->index, q);
        for (int64_t i = 0; i < count; i++) {
            push->row[to] = c->candidate[c->at[q] + i];
            layer->last_sent[c->link[c->at[q] + i]] = c->batch;
            c->place[to++] = c->place[c->at[q] + i];
        }
        push->start[GR_SEND][q + 1] = to;
        layer->sent.candidates += c->at[q + 1] - c->at[q];
    }
    layer->sent.rows += to;
}

/* Places for the receivers, by rank and then by layer: `taken` has so many of each rank already. */
static void list_items(struct gr_cached *c, const struct gr_push *push, int32_t l, int64_t *taken)
{
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t from = push->start[GR_SEND][q], count = push->start[GR_SEND][q + 1] - from;

        c->count[GR_SEND][q * c->n_layers + l] = count;
        memcpy(c->item[GR_SEND] + taken[q], c->place + from, (uint64_t)count * sizeof *c->place);
        taken[q] += count;
    }
}

/* Where the items of each rank begin if all get as many as they can. */
static void begin_items(struct gr_cached *c, int64_t *taken)
{
    int64_t at = 0;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        taken[q] = at;
        at += smaller_of(c->rows_most, rows_sent(c, q)) * (c->n_layers - c->first);
    }
}

/* Remove the gaps between the items of ranks. */
static void close_items(struct gr_cached *c, const int64_t *first, const int64_t *end)
{
    int64_t *start = c->item_start[GR_SEND];

    start[0] = 0;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = end[q] - first[q];

        memmove(c->item[GR_SEND] + start[q], c->item[GR_SEND] + first[q], (uint64_t)count * sizeof **c->item);
        start[q + 1] = start[q] + count;
    }
}

/* Where what was received belongs: the halo of this rank has the vertices of rank q from halo->start[q] on. */
static int32_t take_items(struct gr_cached *c, graft_error *error)
{
    const int32_t n_ranks = c->comm->n_ranks;

    for (int32_t q = 0; q < n_ranks; q++) {
        int64_t at = c->item_start[GR_RECEIVE][q];

        for (int32_t l = c->first; l < c->n_layers; l++) {
            struct gr_push *push = &c->layer[l].push[c->batch % c->delay];
            const int64_t   count = c->count[GR_RECEIVE][q * c->n_layers + l], to = push->start[GR_RECEIVE][q];

            for (int64_t i = 0; i < count; i++) {
                const int32_t place = c->item[GR_RECEIVE][at + i];

                if (place < 0 || place >= rows_of_halo(c, q))
                    return gr_fail(error, GRAFT_ERR_FORMAT,
                                   "rank %d sends vertex %d of those in the halo, which has %lld of it", q, place,
                                   (long long)rows_of_halo(c, q));
                push->vertex[to + i] = (int32_t)(c->halo->start[q] + place);
            }
            push->start[GR_RECEIVE][q + 1] = to + count;
            at += count;
        }
    }
    return GRAFT_OK;
}

/* How many items each rank sends. */
static int32_t count_items(struct gr_cached *c, graft_error *error)
{
    int64_t *start = c->item_start[GR_RECEIVE];

    start[0] = 0;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        start[q + 1] = start[q];
        for (int32_t l = c->first; l < c->n_layers; l++) {
            const int64_t count = c->count[GR_RECEIVE][q * c->n_layers + l];

            if (count < 0 || count > smaller_of(c->rows_most, rows_of_halo(c, q)))
                return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d sends %lld rows, more than %lld", q, (long long)count,
                               (long long)smaller_of(c->rows_most, rows_of_halo(c, q)));
            start[q + 1] += count;
        }
    }
    return GRAFT_OK;
}

/* Exchange counts and places. What is wrong with them is of another rank, and this rank alone has seen it. */
static int32_t tell_receivers(struct gr_cached *c, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_comm_alltoall(c->comm, c->count[GR_SEND], (uint64_t)c->n_layers * sizeof **c->count, c->count[GR_RECEIVE],
                            error));
    if (count_items(c, error) < 0) return gr_comm_fail(c->comm, error);
    GR_TRY(gr_comm_alltoallv(c->comm, c->item[GR_SEND], c->item_start[GR_SEND], c->item[GR_RECEIVE],
                             c->item_start[GR_RECEIVE], sizeof **c->item, error));
    if (take_items(c, error) < 0) return gr_comm_fail(c->comm, error);
done:
    return rc;
}

static int32_t post_push(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    struct gr_push               *push = &layer->push[c->batch % c->delay];
    const struct gr_rank_rows     received = { push->start[GR_RECEIVE], c->buffer };
    const struct gr_exchange_args args = {
        .layer = layer->index, .direction = GR_FORWARD, .epoch = c->batch, .width = layer->width, .dtype = GRAFT_F32
    };

    push->batch = c->batch;
    return gr_messages_post(&push->messages, &args, NULL, received, error);
}

int32_t gr_cached_post(struct gr_cached *c, const int64_t *vertex, const int64_t *n_src, graft_error *error)
{
    int64_t *const first = c->begin;
    int64_t       *taken = c->item_start[GR_RECEIVE]; /* until it is needed */
    int32_t        rc = GRAFT_OK;

    if (c->first == c->n_layers) return GRAFT_OK;
    begin_items(c, taken);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        choose_rows(c, &c->layer[l], vertex, n_src[l]);
        list_items(c, &c->layer[l].push[c->batch % c->delay], l, taken);
    }
    begin_items(c, first);
    close_items(c, first, taken);
    GR_TRY(tell_receivers(c, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(post_push(c, &c->layer[l], error));
done:
    return rc;
}

struct packing_rows {
    struct gr_cached  *cached;
    struct gr_push    *push;
    const graft_dense *x;
};

static void copy_source_row(const graft_dense *x, int64_t row, float *to)
{
    const int64_t at = row * x->stride;

    if (x->dtype == GRAFT_F32) {
        memcpy(to, (const float *)x->data + at, (uint64_t)x->n_cols * sizeof *to);
        return;
    }
    for (int64_t j = 0; j < x->n_cols; j++) {
        const uint32_t bits = (uint32_t)((const uint16_t *)x->data)[at + j] << 16; /* bfloat16 */

        memcpy(to + j, &bits, sizeof bits);
    }
}

static void pack_sources(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct packing_rows *p = arg;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) copy_source_row(p->x, p->push->row[i], p->cached->buffer + i * p->x->n_cols);
    gr_messages_encode(&p->push->messages, omp_get_thread_num(), begin, end);
}

int32_t gr_cached_push(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer, const graft_dense *x,
                       graft_error *error)
{
    struct gr_push     *push = &layer->push[c->batch % c->delay];
    struct packing_rows packing = { c, push, x };
    const int64_t       count = push->start[GR_SEND][c->comm->n_ranks];
    struct gr_team      team = gr_run_team(run);
    const double        begin = gr_profile_begin(&run->profile);
    int32_t             rc = GRAFT_OK;

    GR_ASSERT(x->n_cols == layer->width);
    if (push->is_sent) return GRAFT_OK; /* a layer that is recomputed */
    team.poll = NULL;
    gr_messages_set_rows(&push->messages, (struct gr_rank_rows){ push->start[GR_SEND], c->buffer });
    gr_parallel_chunks(gr_messages_team(&push->messages, team), count * x->n_cols, count, GR_ROWS_AT_ONCE, pack_sources,
                       &packing);
    rc = gr_messages_send(&push->messages, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(c->comm, error);
    GR_TRY(rc);
    push->is_sent = push->in_flight = 1;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) layer->sent.bytes += push->messages.sent[q].bytes;
    gr_profile_end_alone(&run->profile, "push", begin);
done:
    return rc;
}

void gr_cached_poll(void *cached)
{
    struct gr_cached *c = cached;

    for (int32_t l = c->first; l < c->n_layers; l++)
        for (int64_t d = 0; d < c->delay; d++)
            if (c->layer[l].push[d].in_flight) gr_messages_poll(&c->layer[l].push[d].messages);
}
