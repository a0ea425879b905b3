/* Caches of layers and messages to fill them: from creation to destruction.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/options.h"
#include "sample/options.h"

#include <math.h>

/* The ranks that have each owned vertex in their halo. */
static int32_t turn_links(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    const struct gr_links *links = c->links;
    const int32_t          n_ranks = c->comm->n_ranks;
    const int64_t          owned = c->graph->n_rows, count = links->send_start[n_ranks];

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.to_start, owned + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.to_rank, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.to_place, count, error));
    for (int64_t i = 0; i < count; i++) c->push.to_start[links->place[i] + 1]++;
    for (int64_t v = 0; v < owned; v++) c->push.to_start[v + 1] += c->push.to_start[v];
    for (int32_t q = n_ranks - 1; q >= 0; q--) {
        for (int64_t i = links->send_start[q]; i < links->send_start[q + 1]; i++) {
            const int64_t at = --c->push.to_start[links->place[i] + 1];

            c->push.to_rank[at] = q;
            c->push.to_place[at] = (int32_t)(i - links->send_start[q]);
        }
    }
    for (int64_t v = 0; v < owned; v++) c->push.to_start[v] = c->push.to_start[v + 1];
    c->push.to_start[owned] = count;
    return GRAFT_OK;
}

static int32_t make_lists(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    const int64_t n_ranks = c->comm->n_ranks, count = c->links->send_start[n_ranks];
    const int64_t most =
        c->push.most[GR_SEND] > c->push.most[GR_RECEIVE] ? c->push.most[GR_SEND] : c->push.most[GR_RECEIVE];

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.link, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.candidate, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.place, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.key, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.at, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.begin, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.mine, (int64_t)c->n_layers * GR_CACHE_NUMBERS, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.numbers, n_ranks * c->n_layers * GR_CACHE_NUMBERS, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->buffer, (most > 0 ? most : 1) * c->widest, error));
    for (int side = 0; side < GR_SIDES; side++) {
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->items.count[side], n_ranks * c->n_layers, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->items.start[side], n_ranks + 1, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->items.item[side], c->push.most[side] * c->n_layers, error));
    }
    return GRAFT_OK;
}

static int32_t make_push(struct gr_cached *c, struct gr_budget *budget, const struct gr_cached_layer *layer,
                         struct gr_push *push, graft_error *error)
{
    const int64_t n_ranks = c->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY_DONE(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->start[side], n_ranks + 1, error));
    GR_TRY_DONE(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->row, c->push.most[GR_SEND], error));
    GR_TRY_DONE(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->vertex, c->push.most[GR_RECEIVE], error));
    GR_TRY_DONE(gr_budget_check(budget,
                                (double)gr_halo_messages_need(&push->messages, c->push.most, layer->width, GRAFT_F32),
                                "messages (rows of batches)", error));
    rc = gr_halo_messages_reserve(&push->messages, c->push.most, layer->width, GRAFT_F32, error);
    gr_budget_charge(budget, GR_USE_MESSAGES, gr_halo_messages_bytes(&push->messages));
done:
    return rc;
}

static void forget_sent(const struct gr_cached *c, struct gr_cached_layer *layer)
{
    for (int64_t i = 0; i < c->links->send_start[c->comm->n_ranks]; i++) layer->last_sent[i] = -1;
}

const int32_t gr_cache_bits[] = { 32, 16, 8, 4 };

static int32_t make_cached_layer(struct gr_cached *c, struct gr_budget *budget, struct gr_cached_layer *layer,
                                 graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(c->context);
    const int64_t stored = c->fetching.keeps ? c->links->halo->count : c->push.most[GR_RECEIVE]; /* at once */
    int32_t rc = gr_sample_cache_init(&layer->cache, budget, c->links->halo->count, options->cache_rows, layer->width,
                                      gr_cache_bits[options->cache_codec], stored, error);

    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, layer->last_sent, c->links->send_start[c->comm->n_ranks], error);
    if (rc == GRAFT_OK) forget_sent(c, layer);
    for (int64_t d = 0; d < c->push.delay && rc == GRAFT_OK; d++)
        rc = make_push(c, budget, layer, &layer->push[d], error);
    if (rc == GRAFT_OK && layer->cache.capacity < gr_smaller(c->push.most[GR_RECEIVE], c->links->halo->count))
        rc =
            gr_fail(error, GRAFT_ERR_OPTION,
                    "up to %lld rows of a layer can arrive here with one batch (option 'aep.rows' is %lld), but option "
                    "'hec.rows' is %lld",
                    (long long)c->push.most[GR_RECEIVE], (long long)c->push.rows_most, (long long)options->cache_rows);
    return rc;
}

/* Rows that no code can encode are received as NaN, and count as missing. */
static struct gr_row_format push_format(const graft_context *context)
{
    return (struct gr_row_format){ .bits[GR_FORWARD] = gr_cache_bits[gr_sample_options(context)->push_codec],
                                   .bits[GR_BACKWARD] = 32,
                                   .seed = (uint64_t)gr_base_options(context)->seed };
}

/* All messages take their channels, even after a failure on this rank. */
static int32_t make_messages(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->layer, c->n_layers, error);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *made = NULL;

        if (rc == GRAFT_OK) rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, made, c->push.delay, error);
        for (int64_t d = 0; d < c->push.delay; d++) {
            struct gr_messages none, *messages = made != NULL ? &made[d].messages : &none;
            const int32_t      here = gr_halo_messages_init(c->context, c->comm, 1, messages, error);

            if (rc == GRAFT_OK) rc = here;
            messages->format = push_format(c->context);
            if (made == NULL) gr_halo_messages_fini(&none);
        }
        if (made != NULL) c->layer[l].push = made;
    }
    return rc;
}

int32_t gr_parallel_cached_init(struct gr_cached *c, graft_context *context, const struct gr_cached_wish *wish,
                                struct gr_budget *budget, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(context);

    *c = (struct gr_cached){ .base = { &gr_cached_ops },
                             .budget = budget,
                             .ranks = wish->ranks,
                             .context = context,
                             .comm = wish->comm,
                             .graph = wish->graph,
                             .links = wish->links,
                             .push.delay = options->push_delay,
                             .push.rows_most = options->push_rows >= 0 ? options->push_rows : options->batch_size,
                             .life = { .life = options->cache_life,
                                       .takes_expired = options->cache_miss == GR_MISS_LAST },
                             .counts.feature_width = wish->feature_width,
                             .counts.feature_bytes = wish->feature_bytes,
                             .fetching.is_on = options->cache_miss >= GR_MISS_FETCH && wish->first < wish->n_layers,
                             .first = wish->first,
                             .n_layers = wish->n_layers };
    c->fetching.keeps = c->fetching.is_on && options->cache_miss == GR_MISS_FETCH_KEEP;
    /* Half of its life; but the next row must arrive before the last row is too old. */
    c->push.renewed_after = gr_smaller((c->life.life + 1) / 2, c->life.life - c->push.delay + 1);
    GR_TRY(make_messages(c, budget, error));
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        c->push.most[GR_SEND] += gr_smaller(c->push.rows_most, gr_rows_sent(c, q));
        c->push.most[GR_RECEIVE] += gr_smaller(c->push.rows_most, gr_rows_of_halo(c, q));
    }
    for (int32_t l = c->first; l < c->n_layers; l++) {
        c->layer[l].index = l;
        c->layer[l].width = wish->width[l];
        if (c->layer[l].width > c->widest) c->widest = c->layer[l].width;
    }
    GR_TRY(turn_links(c, budget, error));
    GR_TRY(make_lists(c, budget, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(make_cached_layer(c, budget, &c->layer[l], error));
    return GRAFT_OK;
}

static void drop_push(struct gr_push *push)
{
    if (push->in_flight) gr_comm_framed_drain(&push->messages.framed);
    push->in_flight = 0;
}

void gr_parallel_cached_fini(struct gr_cached *c)
{
    for (int32_t l = c->first; c->layer != NULL && l < c->n_layers; l++) {
        for (int64_t d = 0; c->layer[l].push != NULL && d < c->push.delay; d++) {
            drop_push(&c->layer[l].push[d]);
            gr_halo_messages_fini(&c->layer[l].push[d].messages);
        }
        gr_parallel_fetched_fini(c, &c->layer[l].fetched);
    }
    *c = (struct gr_cached){ 0 };
}

void gr_parallel_cached_forget(struct gr_cached *c)
{
    c->is_filled = 0;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        gr_sample_cache_forget(&c->layer[l].cache);
        c->layer[l].fetched.count = 0;
        if (c->comm != NULL) forget_sent(c, &c->layer[l]);
        for (int64_t d = 0; d < c->push.delay; d++) drop_push(&c->layer[l].push[d]);
    }
}
