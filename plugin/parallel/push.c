/* Sends rows of batches to the caches of other ranks.
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

/* Return the rows of a layer that the current batch sends. */
static struct gr_push *push_of(const struct gr_cached *c, int32_t l)
{
    return &c->layer[l].push[c->batch % c->push.delay];
}

/* Return the indices of these rows in the halos of the receivers (gr_candidate.place). */
static int32_t *places_of(const struct gr_cached *c, int32_t l)
{
    return c->items.place + (l - c->first) * c->push.most[GR_SEND];
}

/* -- received rows ------------------------------------------------------------------------------------------------ */

static int32_t receive_push(struct gr_cached *c, struct gr_cached_layer *layer, struct gr_push *push,
                            struct gr_team team, graft_error *error)
{
    push->in_flight = 0;
    GR_TRY(gr_comm_framed_wait(&push->messages.framed, team, error));
    GR_TRY(gr_halo_messages_decode(&push->messages, c->buffer, team, error));
    if (push->batch != c->batch) /* a repeated batch sends its rows again */
        (void)gr_sample_cache_store(&layer->cache, push->vertex, push->start[GR_RECEIVE][c->comm->n_ranks], c->buffer,
                                    push->batch, team.threads);
    return GRAFT_OK;
}

int32_t gr_parallel_cached_begin(struct gr_batch_strategy *strategy, int64_t number, graft_error *error)
{
    struct gr_cached    *c = gr_cached_of(strategy);
    struct gr_run       *run = c->wish.run;
    const struct gr_team team = { .threads = run->threads };
    const double         begin = gr_profile_begin(&run->profile);

    c->batch = c->life.now = number;
    c->base.is_filled = 0;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *push = &c->layer[l].push[number % c->push.delay];

        if (push->in_flight) GR_TRY(receive_push(c, &c->layer[l], push, team, error));
        push->is_sent = 0;
        gr_parallel_fetch_store(c, &c->layer[l], team.threads);
    }
    gr_profile_end_alone(&run->profile, "receive", begin);
    return GRAFT_OK;
}

int32_t gr_parallel_cached_settle(struct gr_batch_strategy *strategy, graft_error *error)
{
    struct gr_cached    *c = gr_cached_of(strategy);
    struct gr_run       *run = c->wish.run;
    const struct gr_team team = { .threads = run->threads };
    const double         begin = gr_profile_begin(&run->profile);

    run->profile.pass = GRAFT_PASS_FORWARD;
    run->profile.layer = -1;
    c->batch++;
    for (int64_t d = 0; d < c->push.delay; d++) { /* the oldest batch first */
        for (int32_t l = c->first; l < c->n_layers; l++) {
            struct gr_push *push = &c->layer[l].push[(c->batch + d) % c->push.delay];

            if (push->in_flight) GR_TRY(receive_push(c, &c->layer[l], push, team, error));
        }
    }
    for (int32_t l = c->first; l < c->n_layers; l++) gr_parallel_fetch_store(c, &c->layer[l], team.threads);
    c->base.is_filled = 1;
    gr_profile_end_alone(&run->profile, "receive", begin);
    return gr_parallel_cached_gather(strategy, error);
}

/* -- sent rows ---------------------------------------------------------------------------------------------------- */

/* Whether a row should be sent along a link (to a rank): it was not sent yet, or not recently. */
static int is_due(const struct gr_cached *c, const struct gr_cached_layer *layer, int64_t link)
{
    const int64_t last = layer->last_sent[link];

    return last < 0 || c->batch <= last || c->batch - last >= c->push.renewed_after; /* <=: a repeated batch */
}

/* List the sources that should be sent to rank q, which has them in its halo, in candidate[at[q]] to candidate[at[q +
 * 1] - 1]. */
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
            c->push.candidate[to] = (struct gr_candidate){ .link = k, .row = (int32_t)i, .place = c->push.to_place[k] };
        }
    }
}

/* Move the `wanted` smallest keys of n candidates to the front (Hoare's selection). */
static void select_smallest(struct gr_candidate *list, int64_t n, int64_t wanted)
{
    int64_t begin = 0, end = n;

    while (end - begin > 1) {
        const double pivot = list[begin + (end - begin) / 2].key;
        int64_t      i = begin, j = end - 1;

        while (i <= j) {
            while (list[i].key < pivot) i++;
            while (list[j].key > pivot) j--;
            if (i <= j) {
                const struct gr_candidate one = list[i];

                list[i++] = list[j];
                list[j--] = one;
            }
        }
        if (wanted <= j) end = j + 1;
        else if (wanted >= i) begin = i;
        else return;
    }
}

/* Draw the rows to send in proportion to their degrees, one after the other without replacement: the smallest -log(u) /
 * degree (Efraimidis and Spirakis 2006). */
static void draw_candidates(struct gr_cached *c, const int64_t *vertex, int32_t layer, int32_t q)
{
    const uint64_t       seed = (uint64_t)gr_base_options(c->context)->seed;
    const uint64_t       key = gr_random_key(seed, GR_RANDOM_PUSH, (uint64_t)c->batch,
                                             (uint64_t)layer * (uint64_t)c->comm->n_ranks + (uint64_t)q);
    struct gr_candidate *list = c->push.candidate + c->push.at[q];
    const int64_t        n = c->push.at[q + 1] - c->push.at[q];

    for (int64_t i = 0; i < n; i++) {
        const int64_t v = vertex[list[i].row], degree = c->graph->row_ptr[v + 1] - c->graph->row_ptr[v];
        uint32_t      word[4];

        gr_random_block(key, (uint64_t)v, (uint64_t)c->comm->rank, word);
        list[i].key = -log(((double)word[0] + 1) * 0x1p-32) / (double)(degree > 0 ? degree : 1);
    }
    select_smallest(list, n, c->push.rows_most);
}

/* Choose the rows that the layer sends in this batch, and their receivers. */
static void choose_rows(struct gr_cached *c, struct gr_cached_layer *layer, const int64_t *vertex, int64_t n_src)
{
    struct gr_push *push = push_of(c, layer->index);
    int32_t        *place = places_of(c, layer->index);
    int64_t         to = 0;

    find_candidates(c, layer, vertex, n_src);
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const struct gr_candidate *list = c->push.candidate + c->push.at[q];
        const int64_t              n = c->push.at[q + 1] - c->push.at[q], count = gr_smaller(n, c->push.rows_most);

        if (count < n) draw_candidates(c, vertex, layer->index, q);
        for (int64_t i = 0; i < count; i++) {
            push->row[to] = list[i].row;
            place[to++] = list[i].place;
            layer->last_sent[list[i].link] = c->batch;
        }
        push->start[GR_SEND][q + 1] = to;
        layer->sent.candidates += n;
    }
    layer->sent.rows += to;
}

/* Pack the announcement of sent rows: for each rank and layer, the number of rows and their places. */
static void pack_items(struct gr_cached *c)
{
    const int64_t *out = c->items.route.out;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        int32_t *item = c->items.item[GR_SEND] + out[q];

        for (int32_t l = c->first; out[q] < out[q + 1] && l < c->n_layers; l++) {
            const int64_t *start = push_of(c, l)->start[GR_SEND], count = start[q + 1] - start[q];

            *item++ = (int32_t)count;
            memcpy(item, places_of(c, l) + start[q], (uint64_t)count * sizeof *item);
            item += count;
        }
    }
}

static void count_items(struct gr_cached *c)
{
    int64_t *out = c->items.route.out;

    memset(out, 0, ((uint64_t)c->comm->n_ranks + 1) * sizeof *out);
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        for (int32_t l = c->first; l < c->n_layers; l++)
            out[q + 1] += push_of(c, l)->start[GR_SEND][q + 1] - push_of(c, l)->start[GR_SEND][q];
        if (out[q + 1] > 0) out[q + 1] += c->n_layers - c->first;
    }
}

/* Read the announcement of the rows that rank q sends in layer l, find their vertices in the halo, and advance *item.
 * The vertices of rank q begin at halo->start[q]. */
static int32_t take_rows(struct gr_cached *c, int32_t q, int32_t l, const int32_t **item, const int32_t *end,
                         graft_error *error)
{
    struct gr_push *push = push_of(c, l);
    const int64_t   halo = gr_rows_of_halo(c, q), most = gr_smaller(c->push.rows_most, halo);
    const int64_t   to = push->start[GR_RECEIVE][q], count = *item < end ? *(*item)++ : 0;

    if (count < 0 || count > most || count > end - *item)
        return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d sends %lld rows, more than %lld", q, (long long)count,
                       (long long)most);
    for (int64_t i = 0; i < count; i++) {
        const int32_t place = *(*item)++;

        if (place < 0 || place >= halo)
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "rank %d sends number %d of its vertices in the halo, which has %lld", q, place,
                           (long long)halo);
        push->vertex[to + i] = (int32_t)(c->links->halo->start[q] + place);
    }
    push->start[GR_RECEIVE][q + 1] = to + count;
    return GRAFT_OK;
}

static int32_t take_items(struct gr_cached *c, graft_error *error)
{
    const int64_t *in = c->items.route.in;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int32_t *item = c->items.item[GR_RECEIVE] + in[q], *end = c->items.item[GR_RECEIVE] + in[q + 1];

        for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(take_rows(c, q, l, &item, end, error));
    }
    return GRAFT_OK;
}

/* Check that no rank announces more rows than it may send. */
static int32_t check_items(struct gr_cached *c, graft_error *error)
{
    const int64_t *in = c->items.route.in;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = in[q + 1] - in[q], most = gr_smaller(c->push.rows_most, gr_rows_of_halo(c, q));

        if (count < 0 || count > (c->n_layers - c->first) * (1 + most))
            return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d sends %lld numbers for %lld rows in each of %d layers", q,
                           (long long)count, (long long)most, c->n_layers - c->first);
    }
    return GRAFT_OK;
}

/* Announce sent rows to their receivers. After a wrong number, which only this rank has seen, the comm fails. */
static int32_t tell_receivers(struct gr_cached *c, graft_error *error)
{
    count_items(c);
    GR_TRY(gr_comm_route_plan(&c->items.route, error));
    if (check_items(c, error) < 0) return gr_comm_fail(c->comm, error);
    pack_items(c);
    GR_TRY(gr_comm_route_send(&c->items.route, c->items.item[GR_SEND], c->items.item[GR_RECEIVE],
                              sizeof **c->items.item, error));
    if (take_items(c, error) < 0) return gr_comm_fail(c->comm, error);
    return GRAFT_OK;
}

static int32_t post_push(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    struct gr_push               *push = push_of(c, layer->index);
    const struct gr_rank_rows     received = { push->start[GR_RECEIVE], c->buffer };
    const struct gr_exchange_args args = {
        .layer = layer->index, .direction = GR_FORWARD, .epoch = c->batch, .width = layer->width, .dtype = GRAFT_F32
    };

    push->batch = c->batch;
    return gr_halo_messages_post(&push->messages, &args, NULL, received, error);
}

int32_t gr_parallel_cached_post(struct gr_batch_strategy *strategy, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    if (c->first == c->n_layers) return GRAFT_OK;
    for (int32_t l = c->first; l < c->n_layers; l++) choose_rows(c, &c->layer[l], c->now.vertex, c->now.owned[l]);
    GR_TRY(tell_receivers(c, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(post_push(c, &c->layer[l], error));
    return GRAFT_OK;
}

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

struct copying {
    const graft_dense  *x;
    const int32_t      *row;
    struct gr_messages *messages; /* messages that encode the rows, or NULL */
    float              *to;
};

static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    const struct copying *p = arg;

    for (int64_t i = begin; i < end; i++) gr_parallel_cached_copy_row(p->x, p->row[i], p->to + i * p->x->n_cols);
    if (p->messages != NULL) gr_halo_messages_encode(p->messages, omp_get_thread_num(), begin, end);
}

void gr_parallel_cached_copy_rows(const struct gr_run *run, const graft_dense *x, const int32_t *row, int64_t count,
                                  struct gr_messages *messages, float *to)
{
    struct copying copying = { x, row, messages, to };
    struct gr_team team = gr_run_team(run);

    team.poll = NULL;
    if (messages != NULL) team = gr_halo_messages_team(messages, team);
    gr_parallel_rows(team, count * x->n_cols, count, GR_ROWS_AT_ONCE, copy_rows, &copying);
}

int32_t gr_parallel_cached_push(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                                const graft_dense *x, graft_error *error)
{
    struct gr_push *push = push_of(c, layer->index);
    struct gr_team  team = gr_run_team(run);
    const double    begin = gr_profile_begin(&run->profile);
    int32_t         rc = GRAFT_OK;

    GR_ASSERT(x->n_cols == layer->width);
    if (push->is_sent) return GRAFT_OK; /* the layer is recomputed */
    team.poll = NULL;
    gr_halo_messages_set_rows(&push->messages, (struct gr_rank_rows){ push->start[GR_SEND], c->buffer });
    gr_parallel_cached_copy_rows(run, x, push->row, push->start[GR_SEND][c->comm->n_ranks], &push->messages, c->buffer);
    rc = gr_halo_messages_send(&push->messages, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(c->comm, error);
    GR_TRY(rc);
    push->is_sent = push->in_flight = 1;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) layer->sent.bytes += push->messages.sent[q].bytes;
    gr_profile_end_alone(&run->profile, "push", begin);
    return GRAFT_OK;
}

void gr_parallel_cached_poll(void *cached)
{
    struct gr_cached *c = cached;

    for (int32_t l = c->first; l < c->n_layers; l++)
        for (int64_t d = 0; d < c->push.delay; d++)
            if (c->layer[l].push[d].in_flight) gr_comm_framed_poll(&c->layer[l].push[d].messages.framed);
}
