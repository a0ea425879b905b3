/* Creates a stream, with the number of pairs that memory allows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream/stream.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "comm/compare_options.h"
#include "network/options.h"
#include "stream/options.h"

#include <math.h>

/* The bytes of a slot with its bookkeeping. */
static int64_t slot_bytes(const graft_stream *s)
{
    return gr_memory_block_bytes(s->slots.bytes, 1) + (int64_t)(sizeof *s->slots.state + 2 * sizeof *s->slots.uses);
}

static int64_t pair_bytes(const graft_stream *s)
{
    return 2 * slot_bytes(s) + (int64_t)sizeof(struct gr_stream_pair);
}

/* The number of slots in addition to those of pairs: for waiting inputs, and for the offered state and its target. */
static int64_t other_slots(const graft_stream *s)
{
    return s->waiting_most + 2;
}

/* Set the number of pairs: the minimum over ranks of what their memory allows. A part of them is for validation. */
static int32_t size_pairs(graft_stream *s, graft_error *error)
{
    const graft_network *n = s->network;
    const int64_t        columns = n->columns.in > n->columns.out ? n->columns.in : n->columns.out;
    int64_t              pairs, held = 0;
    int32_t              rc = GRAFT_OK;

    s->slots.bytes = n->mesh->n_nodes * columns * (n->parameters.dtype == GRAFT_F64 ? 8 : 4);
    s->waiting_most = (int32_t)((gr_stream_lag(s) + gr_stream_interval(s) - 1) / gr_stream_interval(s)) + 1;
    pairs = (1000000 * s->options.memory - other_slots(s) * slot_bytes(s)) / pair_bytes(s);
    if (pairs > GR_STREAM_PAIRS_MOST) pairs = GR_STREAM_PAIRS_MOST;
    if (pairs < 1)
        rc = gr_fail(error, GRAFT_ERR_OPTION,
                     "option 'stream.memory' is %lld MB, but one pair and %lld states that wait for their target need "
                     "%lld bytes",
                     (long long)s->options.memory, (long long)other_slots(s),
                     (long long)(other_slots(s) * slot_bytes(s) + pair_bytes(s)));
    GR_TRY_DONE(gr_comm_agree(n->mesh->comm, rc, error));
    GR_TRY_DONE(gr_comm_min(n->mesh->comm, &pairs, 1, error));
    if (s->options.holdout > 0 && pairs > 1) {
        held = pairs / s->options.holdout > 1 ? pairs / s->options.holdout : 1;
        if (held > GR_STREAM_HELD_MOST) held = GR_STREAM_HELD_MOST;
        if (held == pairs) held--;
    }
    s->train.capacity = (int32_t)(pairs - held);
    s->held.capacity = (int32_t)held;
    s->slots.most = (int32_t)(2 * pairs + other_slots(s));
done:
    return rc;
}

static int32_t allocate_stream(graft_stream *s, graft_error *error)
{
    const int64_t most = s->options.batch > s->held.capacity ? s->options.batch : s->held.capacity;

    GR_TRY(GR_NEW(s->context, s->train.pair, s->train.capacity, error));
    GR_TRY(GR_NEW(s->context, s->held.pair, s->held.capacity, error));
    GR_TRY(GR_NEW(s->context, s->waiting, s->waiting_most, error));
    GR_TRY(GR_NEW(s->context, s->batch, most, error));
    return gr_stream_slots_init(s->context, &s->slots, error);
}

static int32_t check_network(const graft_network *n, int32_t rc, graft_error *error)
{
    if (rc == GRAFT_OK && n->use.is_streamed)
        rc = gr_fail(error, GRAFT_ERR_STATE, "another stream trains this network; destroy it first");
    GR_TRY(gr_network_agree(n, rc, 0, error));
    return gr_comm_compare_options(n->context, n->mesh->comm,
                                   gr_options_bit(n->context, &gr_network_option_table) |
                                       gr_options_bit(n->context, &gr_stream_option_table),
                                   error);
}

int32_t gr_stream_create(graft_network *network, int32_t rc, graft_stream **stream, graft_error *error)
{
    const uint64_t seed = (uint64_t)gr_base_options(network->context)->seed;
    graft_stream  *s = NULL;

    GR_TRY_DONE(check_network(network, rc, error));
    GR_TRY_DONE(gr_comm_agree(network->mesh->comm, GR_NEW(network->context, s, 1, error), error));
    s->context = network->context;
    s->network = gr_network_use(network);
    network->use.is_streamed = 1;
    s->options = *gr_stream_options(s->context);
    s->train.policy = s->options.policy;
    s->held.policy = GR_STREAM_RESERVOIR;
    s->train.key = gr_random_key(seed, GR_RANDOM_STREAM, 0, 0);
    s->held.key = gr_random_key(seed, GR_RANDOM_STREAM, 0, 1);
    s->validation = s->best = s->loss = (double)NAN;
    s->reason = GRAFT_STREAM_NO_PAIRS;
    GR_TRY_DONE(size_pairs(s, error));
    GR_TRY_DONE(gr_comm_agree(network->mesh->comm, allocate_stream(s, error), error));
    *stream = s;
    s = NULL;
done:
    gr_stream_destroy(s);
    return rc;
}

void gr_stream_destroy(graft_stream *s)
{
    const graft_context *context;

    if (s == NULL) return;
    context = s->context;
    gr_pool_fini(context, &s->slots.pool);
    gr_free(context, s->train.pair);
    gr_free(context, s->held.pair);
    gr_free(context, s->waiting);
    gr_free(context, s->batch);
    s->network->use.is_streamed = 0;
    gr_network_destroy(s->network);
    gr_free(context, s);
}

void gr_stream_status(const graft_stream *s, graft_stream_status *status)
{
    const int64_t patience = gr_training_options(s->context)->patience;

    *status = (graft_stream_status){ .size = sizeof *status, .offered = s->counters.offered };
    status->dropped = s->counters.dropped;
    status->should_stop = patience > 0 && s->counters.since_best >= patience;
    status->pairs = s->train.seen + s->held.seen;
    status->kept = s->train.count;
    status->capacity = s->train.capacity;
    status->held_out = s->held.count;
    status->bytes = s->slots.count * slot_bytes(s);
    status->steps = s->counters.steps;
    status->steps_now = s->steps_now;
    status->reason = s->reason;
    status->seconds = s->seconds;
    status->seconds_of_step = gr_stream_seconds(s);
    status->loss = s->loss;
    status->validation = s->validation;
    status->best = s->best;
    status->time = s->time;
}
