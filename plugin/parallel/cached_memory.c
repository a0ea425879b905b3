/* Creates and destroys the caches of layers, and the messages that fill them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/options.h"
#include "model/kind.h"
#include "sample/options.h"

#include <math.h>

/* List the ranks that have each owned vertex in their halo (gr_pushing.to_rank). */
static int32_t turn_links(struct gr_cached *c, graft_error *error)
{
    const struct gr_links *links = c->links;
    const int32_t          n_ranks = c->comm->n_ranks;
    const int64_t          owned = c->graph->n_rows, count = links->send_start[n_ranks];
    struct gr_budget      *budget = c->wish.lasting;

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

static int32_t make_route(struct gr_cached *c, struct gr_route *route, graft_error *error)
{
    const int32_t rc = gr_comm_route_init(route, c->comm, error);

    gr_budget_charge(c->wish.lasting, GR_USE_MESSAGES,
                     gr_memory_bytes(route->out) + gr_memory_bytes(route->in) + gr_memory_bytes(route->counts));
    return rc;
}

static int32_t make_lists(struct gr_cached *c, graft_error *error)
{
    const int64_t n_ranks = c->comm->n_ranks, count = c->links->send_start[n_ranks];
    const int64_t layers = c->n_layers - c->first;
    const int64_t most =
        c->push.most[GR_SEND] > c->push.most[GR_RECEIVE] ? c->push.most[GR_SEND] : c->push.most[GR_RECEIVE];
    struct gr_budget *budget = c->wish.lasting;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.candidate, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.at, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->push.begin, n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.mine, c->n_layers, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.all, n_ranks * c->n_layers, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->buffer, (most > 0 ? most : 1) * c->widest, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->items.place, layers * c->push.most[GR_SEND], error));
    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->items.item[side], layers * (n_ranks + c->push.most[side]),
                             error));
    return make_route(c, &c->items.route, error);
}

static int32_t make_push(struct gr_cached *c, const struct gr_cached_layer *layer, struct gr_push *push,
                         graft_error *error)
{
    struct gr_budget *budget = c->wish.lasting;
    const int64_t     n_ranks = c->comm->n_ranks;
    int32_t           rc;

    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->start[side], n_ranks + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->row, c->push.most[GR_SEND], error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, push->vertex, c->push.most[GR_RECEIVE], error));
    GR_TRY(gr_budget_check(budget,
                           (double)gr_halo_messages_need(&push->messages, c->push.most, layer->width, GRAFT_F32),
                           "messages (rows of batches)", error));
    rc = gr_halo_messages_reserve(&push->messages, c->push.most, layer->width, GRAFT_F32, error);
    gr_budget_charge(budget, GR_USE_MESSAGES, gr_halo_messages_bytes(&push->messages));
    return rc;
}

static void forget_sent(const struct gr_cached *c, struct gr_cached_layer *layer)
{
    for (int64_t i = 0; i < c->links->send_start[c->comm->n_ranks]; i++) layer->last_sent[i] = -1;
}

const int32_t gr_cache_bits[] = { 32, 16, 8, 4 };

static int32_t make_cached_layer(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(c->context);
    struct gr_budget               *budget = c->wish.lasting;
    const int64_t halo = c->links->halo->count, received = c->push.most[GR_RECEIVE]; /* most rows stored at once */

    GR_TRY(gr_sample_cache_init(&layer->cache, budget, halo, (int64_t)options->cache.number[0], layer->width,
                                gr_cache_bits[options->cache_codec], c->fetching.keeps ? halo : received, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, layer->last_sent, c->links->send_start[c->comm->n_ranks], error));
    forget_sent(c, layer);
    for (int64_t d = 0; d < c->push.delay; d++) GR_TRY(make_push(c, layer, &layer->push[d], error));
    if (c->fetching.is_on) GR_TRY(make_route(c, &layer->fetch.route, error));
    if (layer->cache.capacity >= gr_smaller(received, halo)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION,
                   "up to %lld rows of a layer can arrive here with one batch (option 'aep.rows' is %lld), but option "
                   "'hec.rows' is %lld",
                   (long long)received, (long long)c->push.rows_most, (long long)options->cache.number[0]);
}

/* Create the messages of all pushes. All take their channels, even after a failure on this rank. Rows that the codec
 * cannot represent are received as NaN, and count as missing. */
static int32_t make_messages(struct gr_cached *c, graft_error *error)
{
    struct gr_budget          *budget = c->wish.lasting;
    int32_t                    rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->layer, c->n_layers, error);
    const struct gr_row_format format = { .bits[GR_FORWARD] = gr_cache_bits[gr_sample_options(c->context)->push_codec],
                                          .bits[GR_BACKWARD] = 32,
                                          .seed = (uint64_t)gr_base_options(c->context)->seed };

    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_push *made = NULL;

        if (rc == GRAFT_OK) rc = GR_BUDGET_NEW(budget, GR_USE_MESSAGES, made, c->push.delay, error);
        for (int64_t d = 0; d < c->push.delay; d++) {
            struct gr_messages none, *messages = made != NULL ? &made[d].messages : &none;
            const int32_t      here = gr_halo_messages_init(c->context, c->comm, 1, messages, error);

            if (rc == GRAFT_OK) rc = here;
            messages->format = format;
            if (made == NULL) gr_halo_messages_fini(&none);
        }
        if (made != NULL) c->layer[l].push = made;
    }
    return rc;
}

void gr_parallel_cached_set_widths(struct gr_cached *c)
{
    const struct gr_run    *run = c->wish.run;
    const struct gr_config *config = gr_run_config(run);

    for (int32_t l = c->first; l < c->n_layers; l++) {
        c->layer[l].index = l;
        c->layer[l].width =
            config->kind->attends ? gr_model_config_wide(config, l) : gr_summed_columns(&run->layers[l]);
        if (c->layer[l].width > c->widest) c->widest = c->layer[l].width;
    }
}

static int32_t init_over_ranks(struct gr_cached *c, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(c->context);

    c->push.delay = (int64_t)options->push.number[1];
    c->push.rows_most = options->push.number[0] >= 0 ? (int64_t)options->push.number[0] : options->batch_size;
    c->life.life = (int64_t)options->cache.number[1];
    c->life.takes_expired = options->cache_miss == GR_MISS_LAST;
    c->fetching.is_on = options->cache_miss >= GR_MISS_FETCH && c->first < c->n_layers;
    c->fetching.keeps = c->fetching.is_on && options->cache_miss == GR_MISS_FETCH_KEEP;
    c->fetching.extension = (struct gr_extension){ gr_parallel_fetch_extend, c, c->first - 1 };
    if (c->fetching.is_on) c->base.extension = &c->fetching.extension;
    /* A row is sent again after half of its life, or earlier, so that it arrives before the previous one is too old. */
    c->push.renewed_after = gr_smaller((c->life.life + 1) / 2, c->life.life - c->push.delay + 1);
    GR_TRY(make_messages(c, error));
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        c->push.most[GR_SEND] += gr_smaller(c->push.rows_most, gr_rows_sent(c, q));
        c->push.most[GR_RECEIVE] += gr_smaller(c->push.rows_most, gr_rows_of_halo(c, q));
    }
    gr_parallel_cached_set_widths(c);
    GR_TRY(turn_links(c, error));
    GR_TRY(make_lists(c, error));
    for (int32_t l = c->first; l < c->n_layers; l++) GR_TRY(make_cached_layer(c, &c->layer[l], error));
    return GRAFT_OK;
}

int32_t gr_parallel_create_batches(const struct gr_batch_wish *wish, struct gr_batch_strategy **strategy,
                                   graft_error *error)
{
    const struct gr_config *config = gr_run_config(wish->run);
    struct gr_strategy     *ranks = wish->run->strategy;
    struct gr_cached       *c;
    int32_t                 rc = GR_NEW(wish->run->context, c, 1, error);

    if (c != NULL) { /* the caller destroys it, even if another rank has no memory */
        c->context = wish->run->context;
        c->base.base.ops = &gr_cached_ops;
        *strategy = &c->base;
    }
    GR_TRY(gr_strategy_agree(ranks, rc, error));
    c->base.ops = wish->comm != NULL ? &gr_cached_batches : &gr_history_batches;
    c->wish = *wish;
    c->ranks = ranks;
    c->comm = wish->comm;
    c->links = wish->links;
    c->graph = wish->graph;
    c->n_layers = config->n_layers;
    c->first = config->gathers_from + 1 < c->n_layers ? config->gathers_from + 1 : c->n_layers;
    c->base.is_filled = c->first == c->n_layers;
    rc = c->comm != NULL ? init_over_ranks(c, error) : gr_parallel_history_init(c, error);
    if (rc == GRAFT_OK) rc = gr_parallel_cached_list_tables(c, error);
    GR_TRY(gr_strategy_agree(ranks, rc, error));
    return gr_parallel_cached_gather(&c->base, error); /* so that reports contain the capacities */
}

static void drop_push(struct gr_push *push)
{
    if (push->in_flight) gr_comm_framed_drain(&push->messages.framed);
    push->in_flight = 0;
}

void gr_parallel_cached_destroy(struct gr_strategy *strategy)
{
    struct gr_cached *c = gr_cached_of(strategy);

    for (int32_t l = c->first; c->layer != NULL && l < c->n_layers; l++) {
        for (int64_t d = 0; c->layer[l].push != NULL && d < c->push.delay; d++) {
            drop_push(&c->layer[l].push[d]);
            gr_halo_messages_fini(&c->layer[l].push[d].messages);
        }
        gr_comm_route_fini(&c->layer[l].fetch.route);
        gr_parallel_fetched_fini(c, &c->layer[l].fetched);
    }
    gr_comm_route_fini(&c->items.route);
    gr_free(c->context, c);
}

void gr_parallel_cached_forget(struct gr_strategy *strategy, int undoes)
{
    struct gr_cached *c = gr_cached_of(strategy);

    (void)undoes;
    c->base.is_filled = c->first == c->n_layers;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        gr_sample_cache_forget(&c->layer[l].cache);
        c->layer[l].fetched.count = 0;
        if (c->comm != NULL) forget_sent(c, &c->layer[l]);
        for (int64_t d = 0; d < c->push.delay; d++) drop_push(&c->layer[l].push[d]);
    }
}
