/* Rows that batches send to the caches of other ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/random.h"
#include "comm/collective.h"

#include <math.h>
#include <string.h>

/* -- received rows ------------------------------------------------------------------------------------------------ */

static int32_t receive_push(struct gr_cached *c, struct gr_cached_layer *layer, struct gr_push *push,
                            struct gr_team team, graft_error *error)
{
    push->in_flight = 0;
    GR_TRY(gr_comm_framed_wait(&push->messages.framed, team, error));
    GR_TRY(gr_halo_messages_decode(&push->messages, c->buffer, team, error));
    if (push->batch != c->batch) /* else the batch is repeated, and sends them again */
        (void)gr_sample_cache_store(&layer->cache, push->vertex, push->start[GR_RECEIVE][c->comm->n_ranks], c->buffer,
                                    push->batch, team.threads);
    return GRAFT_OK;
}

int32_t gr_parallel_cached_begin(struct gr_cached *c, int64_t batch, struct gr_team team, graft_error *error)
{
    c->batch = c->life.now = batch;
    c->is_filled = 0;
    team.poll = NULL;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *push = &c->layer[l].push[batch % c->push.delay];

        if (push->in_flight) GR_TRY(receive_push(c, &c->layer[l], push, team, error));
        push->is_sent = 0;
        gr_parallel_fetch_store(c, &c->layer[l], team.threads);
    }
    return GRAFT_OK;
}

int32_t gr_parallel_cached_settle(struct gr_cached *c, struct gr_team team, graft_error *error)
{
    c->batch++;
    team.poll = NULL;
    for (int64_t d = 0; d < c->push.delay; d++) { /* the oldest batch first */
        for (int32_t l = c->first; l < c->n_layers; l++) {
            struct gr_push *push = &c->layer[l].push[(c->batch + d) % c->push.delay];

            if (push->in_flight) GR_TRY(receive_push(c, &c->layer[l], push, team, error));
        }
    }
    for (int32_t l = c->first; l < c->n_layers; l++) gr_parallel_fetch_store(c, &c->layer[l], team.threads);
    c->is_filled = 1;
    return GRAFT_OK;
}

/* -- sent rows ---------------------------------------------------------------------------------------------------- */

/* Whether a row is worth sending along a link. */
static int is_due(const struct gr_cached *c, const struct gr_cached_layer *layer, int64_t link)
{
    const int64_t last = layer->last_sent[link];

    return last < 0 || c->batch <= last || c->batch - last >= c->push.renewed_after; /* <=: the batch is repeated */
}

/* The sources that rank q has in its halo are candidate[at[q] .. at[q + 1]-1]. */
static void find_candidates(struct gr_cached *c, const struct gr_cached_layer *layer, const int64_t *vertex,
                            int64_t n_src)
{
    const int32_t n_ranks = c->comm->n_ranks;

    memset(c->push.at, 0, (uint64_t)(n_ranks + 1) * sizeof *c->push.at);
    for (int64_t i = 0; i < n_src; i++)
        for (int64_t k = c->push.to_start[vertex[i]]; k < c->push.to_start[vertex[i] + 1]; k++)
            c->push.at[c->push.to_rank[k] + 1] += is_due(c, layer, k);
    for (int32_t q = 0; q < n_ranks; q++) c->push.at[q + 1] += c->push.at[q];
    memcpy(c->push.begin, c->push.at, (uint64_t)(n_ranks + 1) * sizeof *c->push.at);
    for (int64_t i = 0; i < n_src; i++) {
        for (int64_t k = c->push.to_start[vertex[i]]; k < c->push.to_start[vertex[i] + 1]; k++) {
            int64_t to;

            if (!is_due(c, layer, k)) continue;
            to = c->push.begin[c->push.to_rank[k]]++;
            c->push.candidate[to] = (int32_t)i;
            c->push.place[to] = c->push.to_place[k];
            c->push.link[to] = k;
        }
    }
}

static void swap_candidates(struct gr_cached *c, int64_t i, int64_t j)
{
    const double  key = c->push.key[i];
    const int32_t candidate = c->push.candidate[i], place = c->push.place[i];
    const int64_t link = c->push.link[i];

    c->push.key[i] = c->push.key[j];
    c->push.candidate[i] = c->push.candidate[j];
    c->push.place[i] = c->push.place[j];
    c->push.link[i] = c->push.link[j];
    c->push.key[j] = key;
    c->push.link[j] = link;
    c->push.candidate[j] = candidate;
    c->push.place[j] = place;
}

/* Hoare's selection: the `wanted` smallest keys of begin .. end-1 become the first ones. */
static void select_smallest(struct gr_cached *c, int64_t begin, int64_t end, int64_t wanted)
{
    const int64_t limit = begin + wanted;

    while (end - begin > 1) {
        const double pivot = c->push.key[begin + (end - begin) / 2];
        int64_t      i = begin, j = end - 1;

        while (i <= j) {
            while (c->push.key[i] < pivot) i++;
            while (c->push.key[j] > pivot) j--;
            if (i <= j) swap_candidates(c, i++, j--);
        }
        if (limit <= j) end = j + 1;
        else if (limit >= i) begin = i;
        else return;
    }
}

/* Draw the rows to send in proportion to their degrees, one after the other without replacement: the smallest -log(u) /
 * degree (Efraimidis and Spirakis 2006). */
static void draw_candidates(struct gr_cached *c, const int64_t *vertex, int32_t layer, int32_t q)
{
    const uint64_t seed = (uint64_t)gr_base_options(c->context)->seed;
    const uint64_t key = gr_random_key(seed, GR_RANDOM_PUSH, (uint64_t)c->batch,
                                       (uint64_t)layer * (uint64_t)c->comm->n_ranks + (uint64_t)q);

    for (int64_t i = c->push.at[q]; i < c->push.at[q + 1]; i++) {
        const int64_t v = vertex[c->push.candidate[i]], degree = c->graph->row_ptr[v + 1] - c->graph->row_ptr[v];
        uint32_t      word[4];

        gr_random_block(key, (uint64_t)v, (uint64_t)c->comm->rank, word);
        c->push.key[i] = -log(((double)word[0] + 1) * 0x1p-32) / (double)(degree > 0 ? degree : 1);
    }
    select_smallest(c, c->push.at[q], c->push.at[q + 1], c->push.rows_most);
}

/* Choose the rows that the layer sends in this batch, and their receivers. */
static void choose_rows(struct gr_cached *c, struct gr_cached_layer *layer, const int64_t *vertex, int64_t n_src)
{
    struct gr_push *push = &layer->push[c->batch % c->push.delay];
    int64_t         to = 0;

    find_candidates(c, layer, vertex, n_src);
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = gr_smaller(c->push.at[q + 1] - c->push.at[q], c->push.rows_most);

        if (count < c->push.at[q + 1] - c->push.at[q]) draw_candidates(c, vertex, layer->index, q);
        for (int64_t i = 0; i < count; i++) {
            push->row[to] = c->push.candidate[c->push.at[q] + i];
            layer->last_sent[c->push.link[c->push.at[q] + i]] = c->batch;
            c->push.place[to++] = c->push.place[c->push.at[q] + i];
        }
        push->start[GR_SEND][q + 1] = to;
        layer->sent.candidates += c->push.at[q + 1] - c->push.at[q];
    }
    layer->sent.rows += to;
}

/* Places for the receivers, by rank and then by layer: `taken` counts the places of each rank already in use. */
static void list_items(struct gr_cached *c, const struct gr_push *push, int32_t l, int64_t *taken)
{
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t from = push->start[GR_SEND][q], count = push->start[GR_SEND][q + 1] - from;

        c->items.count[GR_SEND][q * c->n_layers + l] = count;
        memcpy(c->items.item[GR_SEND] + taken[q], c->push.place + from, (uint64_t)count * sizeof *c->push.place);
        taken[q] += count;
    }
}

/* Where the items of each rank begin if all ranks get the most items. */
static void begin_items(struct gr_cached *c, int64_t *taken)
{
    int64_t at = 0;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        taken[q] = at;
        at += gr_smaller(c->push.rows_most, gr_rows_sent(c, q)) * (c->n_layers - c->first);
    }
}

/* Remove the gaps between the items of ranks. */
static void close_items(struct gr_cached *c, const int64_t *first, const int64_t *end)
{
    int64_t *start = c->items.start[GR_SEND];

    start[0] = 0;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = end[q] - first[q];

        memmove(c->items.item[GR_SEND] + start[q], c->items.item[GR_SEND] + first[q],
                (uint64_t)count * sizeof **c->items.item);
        start[q + 1] = start[q] + count;
    }
}

/* Find the halo vertices of received items: the halo of this rank has the vertices of rank q from halo->start[q] on. */
static int32_t take_items(struct gr_cached *c, graft_error *error)
{
    const int32_t n_ranks = c->comm->n_ranks;

    for (int32_t q = 0; q < n_ranks; q++) {
        int64_t at = c->items.start[GR_RECEIVE][q];

        for (int32_t l = c->first; l < c->n_layers; l++) {
            struct gr_push *push = &c->layer[l].push[c->batch % c->push.delay];
            const int64_t   count = c->items.count[GR_RECEIVE][q * c->n_layers + l], to = push->start[GR_RECEIVE][q];

            for (int64_t i = 0; i < count; i++) {
                const int32_t place = c->items.item[GR_RECEIVE][at + i];

                if (place < 0 || place >= gr_rows_of_halo(c, q))
                    return gr_fail(error, GRAFT_ERR_FORMAT,
                                   "rank %d sends number %d of its vertices in the halo, which has %lld", q, place,
                                   (long long)gr_rows_of_halo(c, q));
                push->vertex[to + i] = (int32_t)(c->links->halo->start[q] + place);
            }
            push->start[GR_RECEIVE][q + 1] = to + count;
            at += count;
        }
    }
    return GRAFT_OK;
}

/* Count the items from each rank. */
static int32_t count_items(struct gr_cached *c, graft_error *error)
{
    int64_t *start = c->items.start[GR_RECEIVE];

    start[0] = 0;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        start[q + 1] = start[q];
        for (int32_t l = c->first; l < c->n_layers; l++) {
            const int64_t count = c->items.count[GR_RECEIVE][q * c->n_layers + l];

            if (count < 0 || count > gr_smaller(c->push.rows_most, gr_rows_of_halo(c, q)))
                return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d sends %lld rows, more than %lld", q, (long long)count,
                               (long long)gr_smaller(c->push.rows_most, gr_rows_of_halo(c, q)));
            start[q + 1] += count;
        }
    }
    return GRAFT_OK;
}

/* Exchange counts and places. A wrong number is an error of another rank that only this rank has seen. */
static int32_t tell_receivers(struct gr_cached *c, graft_error *error)
{
    GR_TRY(gr_comm_alltoall(c->comm, c->items.count[GR_SEND], (uint64_t)c->n_layers * sizeof **c->items.count,
                            c->items.count[GR_RECEIVE], error));
    if (count_items(c, error) < 0) return gr_comm_fail(c->comm, error);
    GR_TRY(gr_comm_alltoallv(c->comm, c->items.item[GR_SEND], c->items.start[GR_SEND], c->items.item[GR_RECEIVE],
                             c->items.start[GR_RECEIVE], sizeof **c->items.item, error));
    if (take_items(c, error) < 0) return gr_comm_fail(c->comm, error);
    return GRAFT_OK;
}

static int32_t post_push(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    struct gr_push               *push = &layer->push[c->batch % c->push.delay];
    const struct gr_rank_rows     received = { push->start[GR_RECEIVE], c->buffer };
    const struct gr_exchange_args args = {
        .layer = layer->index, .direction = GR_FORWARD, .epoch = c->batch, .width = layer->width, .dtype = GRAFT_F32
    };

    push->batch = c->batch;
    return gr_halo_messages_post(&push->messages, &args, NULL, received, error);
}

int32_t gr_parallel_cached_post(struct gr_cached *c, const int64_t *vertex, const int64_t *n_src, graft_error *error)
{
    int64_t *const first = c->push.begin;
    int64_t       *taken = c->items.start[GR_RECEIVE]; /* until it is needed */

    if (c->first == c->n_layers) return GRAFT_OK;
    begin_items(c, taken);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        choose_rows(c, &c->layer[l], vertex, n_src[l]);
        list_items(c, &c->layer[l].push[c->batch % c->push.delay], l, taken);
    }
    begin_items(c, first);
    close_items(c, first, taken);
    GR_TRY(tell_receivers(c, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(post_push(c, &c->layer[l], error));
    return GRAFT_OK;
}

struct packing_rows {
    struct gr_cached  *cached;
    struct gr_push    *push;
    const graft_dense *x;
};

void gr_parallel_cached_copy_row(const graft_dense *x, int64_t row, float *to)
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
    for (int64_t i = begin; i < end; i++)
        gr_parallel_cached_copy_row(p->x, p->push->row[i], p->cached->buffer + i * p->x->n_cols);
    gr_halo_messages_encode(&p->push->messages, omp_get_thread_num(), begin, end);
}

int32_t gr_parallel_cached_push(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                                const graft_dense *x, graft_error *error)
{
    struct gr_push     *push = &layer->push[c->batch % c->push.delay];
    struct packing_rows packing = { c, push, x };
    const int64_t       count = push->start[GR_SEND][c->comm->n_ranks];
    struct gr_team      team = gr_run_team(run);
    const double        begin = gr_profile_begin(&run->profile);
    int32_t             rc = GRAFT_OK;

    GR_ASSERT(x->n_cols == layer->width);
    if (push->is_sent) return GRAFT_OK; /* the layer is recomputed */
    team.poll = NULL;
    gr_halo_messages_set_rows(&push->messages, (struct gr_rank_rows){ push->start[GR_SEND], c->buffer });
    gr_parallel_chunks(gr_halo_messages_team(&push->messages, team), count * x->n_cols, count, GR_ROWS_AT_ONCE,
                       pack_sources, &packing);
    rc = gr_halo_messages_send(&push->messages, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(c->comm, error);
    GR_TRY_DONE(rc);
    push->is_sent = push->in_flight = 1;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) layer->sent.bytes += push->messages.sent[q].bytes;
    gr_profile_end_alone(&run->profile, "push", begin);
done:
    return rc;
}

void gr_parallel_cached_poll(void *cached)
{
    struct gr_cached *c = cached;

    for (int32_t l = c->first; l < c->n_layers; l++)
        for (int64_t d = 0; d < c->push.delay; d++)
            if (c->layer[l].push[d].in_flight) gr_comm_framed_poll(&c->layer[l].push[d].messages.framed);
}
