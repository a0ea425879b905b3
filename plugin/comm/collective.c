/* Collective calls: agreement, gathers, exchanges, minima and maxima, heartbeats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/clock.h"
#include "comm/calls.h"

#include <stdio.h>
#include <string.h>

struct status {
    int32_t code;
    int32_t native_code;
    int32_t rank;
    int32_t reserved;
    char    message[448];
};

_Static_assert(2 * sizeof(struct status) <= GR_SCRATCH_LEAST, "gr_comm_agree() allocates nothing");

static void take_lowest_failure(void *value, const void *incoming, uint64_t bytes)
{
    struct status       *mine = value;
    const struct status *other = incoming;

    (void)bytes;
    if (other->code < 0 && (mine->code >= 0 || other->rank < mine->rank)) *mine = *other;
}

int32_t gr_comm_agree(struct gr_comm *comm, int32_t status, graft_error *error)
{
    if (status >= 0) status = gr_context_check_cancel(comm->context, error);
    return gr_comm_agree_on(comm, status, error);
}

int32_t gr_comm_agree_on(struct gr_comm *comm, int32_t status, graft_error *error)
{
    struct status *mine, *incoming;
    int32_t        rc = GRAFT_OK;

    if (comm->n_ranks == 1) return status;
    GR_TRY_DONE(gr_comm_calls_begin(comm, error));
    mine = comm->calls->scratch;
    incoming = mine + 1;
    memset(mine, 0, sizeof *mine);
    mine->rank = comm->rank;
    if (status < 0) {
        mine->code = status;
        mine->native_code = error->native_code;
        snprintf(mine->message, sizeof mine->message, "rank %d: %.430s", comm->rank, error->message);
    }
    GR_TRY_DONE(gr_comm_calls_reduce(comm, GR_CALL_AGREE, mine, incoming, sizeof *mine, take_lowest_failure, error));
    GR_TRY_DONE(gr_comm_calls_spread(comm, GR_CALL_AGREE, 0, mine, sizeof *mine, error));
    if (mine->code < 0) {
        mine->message[sizeof mine->message - 1] = '\0';
        if (mine->message[0] == '\0') snprintf(mine->message, sizeof mine->message, "a rank failed without a reason");
        rc = gr_fail_native(error, mine->code, mine->native_code, "%s", mine->message);
        error->rank = mine->rank;
    }
done:
    return rc;
}

int32_t gr_comm_barrier(struct gr_comm *comm, graft_error *error)
{
    return gr_comm_agree_on(comm, GRAFT_OK, error);
}

/* The messages of a call, which gr_comm_calls_begin() has begun. */
struct messages {
    struct gr_comm *comm;
    int32_t         n_out, n_in;
};

/* Add the messages to and from rank p. If p is this rank, copy the data instead. */
static void add_rank(struct messages *m, int32_t p, const void *from, uint64_t out_bytes, void *to, uint64_t in_bytes)
{
    if (p == m->comm->rank && in_bytes > 0) memmove(to, from, in_bytes);
    if (p == m->comm->rank) return;
    gr_comm_calls_add(m->comm->calls->out, &m->n_out, p, from, out_bytes);
    gr_comm_calls_add(m->comm->calls->in, &m->n_in, p, to, in_bytes);
}

int32_t gr_comm_allgather(struct gr_comm *comm, const void *mine, uint64_t bytes, void *all, graft_error *error)
{
    struct messages m = { .comm = comm };

    GR_TRY(gr_comm_calls_begin(comm, error));
    for (int32_t p = 0; p < comm->n_ranks; p++) add_rank(&m, p, mine, bytes, (char *)all + (uint64_t)p * bytes, bytes);
    return gr_comm_calls_exchange(comm, GR_CALL_ALLGATHER, m.n_out, m.n_in, error);
}

int32_t gr_comm_gather(struct gr_comm *comm, int32_t root, const void *mine, const int64_t *bytes, void *all,
                       graft_error *error)
{
    const int       receives = root < 0 || root == comm->rank;
    struct messages m = { .comm = comm };
    char           *to = all;

    GR_TRY(gr_comm_calls_begin(comm, error));
    for (int32_t p = 0; p < comm->n_ranks; p++) {
        add_rank(&m, p, mine, root < 0 || root == p ? (uint64_t)bytes[comm->rank] : 0, to,
                 receives ? (uint64_t)bytes[p] : 0);
        if (receives) to += bytes[p];
    }
    return gr_comm_calls_exchange(comm, GR_CALL_GATHER, m.n_out, m.n_in, error);
}

int32_t gr_comm_gather_among(struct gr_comm *comm, int32_t first, int32_t end, const void *mine, const int64_t *count,
                             int64_t item_bytes, void *all, graft_error *error)
{
    struct messages m = { .comm = comm };
    char           *to = all;

    GR_ASSERT(comm->rank >= first && comm->rank < end);
    GR_TRY(gr_comm_calls_begin(comm, error));
    for (int32_t p = first; p < end; to += count[p++] * item_bytes)
        add_rank(&m, p, mine, (uint64_t)(count[comm->rank] * item_bytes), to, (uint64_t)(count[p] * item_bytes));
    return gr_comm_calls_exchange(comm, GR_CALL_GATHER, m.n_out, m.n_in, error);
}

int32_t gr_comm_alltoall(struct gr_comm *comm, const void *out, uint64_t bytes, void *in, graft_error *error)
{
    struct messages m = { .comm = comm };

    GR_TRY(gr_comm_calls_begin(comm, error));
    for (int32_t p = 0; p < comm->n_ranks; p++)
        add_rank(&m, p, (const char *)out + (uint64_t)p * bytes, bytes, (char *)in + (uint64_t)p * bytes, bytes);
    return gr_comm_calls_exchange(comm, GR_CALL_ALLTOALL, m.n_out, m.n_in, error);
}

int32_t gr_comm_alltoallv(struct gr_comm *comm, const void *out, const int64_t *out_start, void *in,
                          const int64_t *in_start, int64_t item_bytes, graft_error *error)
{
    struct messages m = { .comm = comm };

    GR_ASSERT(item_bytes >= 0 && out_start[0] == 0 && in_start[0] == 0);
    GR_TRY(gr_comm_calls_begin(comm, error));
    for (int32_t p = 0; p < comm->n_ranks; p++)
        add_rank(&m, p, (const char *)out + out_start[p] * item_bytes,
                 (uint64_t)((out_start[p + 1] - out_start[p]) * item_bytes), (char *)in + in_start[p] * item_bytes,
                 (uint64_t)((in_start[p + 1] - in_start[p]) * item_bytes));
    return gr_comm_calls_exchange(comm, GR_CALL_ALLTOALLV, m.n_out, m.n_in, error);
}

int32_t gr_comm_broadcast(struct gr_comm *comm, int32_t root, void *data, uint64_t bytes, graft_error *error)
{
    GR_ASSERT(root >= 0 && root < comm->n_ranks);
    GR_TRY(gr_comm_calls_begin(comm, error));
    return gr_comm_calls_spread(comm, GR_CALL_BROADCAST, root, data, bytes, error);
}

static void take_min(void *value, const void *incoming, uint64_t bytes)
{
    int64_t       *mine = value;
    const int64_t *other = incoming;

    for (uint64_t i = 0; i < bytes / sizeof *mine; i++)
        if (other[i] < mine[i]) mine[i] = other[i];
}

static void take_max(void *value, const void *incoming, uint64_t bytes)
{
    int64_t       *mine = value;
    const int64_t *other = incoming;

    for (uint64_t i = 0; i < bytes / sizeof *mine; i++)
        if (other[i] > mine[i]) mine[i] = other[i];
}

static int32_t extremum(struct gr_comm *comm, enum gr_call_kind kind, int64_t *values, int64_t count,
                        void (*combine)(void *, const void *, uint64_t), graft_error *error)
{
    const uint64_t bytes = (uint64_t)count * sizeof *values;
    int32_t        rc = GRAFT_OK;

    GR_ASSERT(count >= 0);
    GR_TRY_DONE(gr_comm_calls_begin(comm, error));
    if (comm->n_ranks == 1) goto done;
    GR_TRY_DONE(gr_comm_calls_scratch(comm, bytes, error));
    GR_TRY_DONE(gr_comm_calls_reduce(comm, kind, values, comm->calls->scratch, bytes, combine, error));
    GR_TRY_DONE(gr_comm_calls_spread(comm, kind, 0, values, bytes, error));
done:
    return rc;
}

int32_t gr_comm_min(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error)
{
    return extremum(comm, GR_CALL_MINIMUM, values, count, take_min, error);
}

int32_t gr_comm_max(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error)
{
    return extremum(comm, GR_CALL_MAXIMUM, values, count, take_max, error);
}

/* The states of ranks, whose maximum over all ranks is a heartbeat. Waiting ranks pass WAITING, or CANCELS, which ends
 * the heartbeats. */
enum { WAITING, STILL_WORKS, IS_DONE, CANCELS };

static int32_t send_heartbeat(struct gr_heartbeat *heartbeat, int64_t state, graft_error *error)
{
    const int32_t rc = gr_comm_max(heartbeat->comm, &state, 1, error);

    heartbeat->last = gr_seconds();
    if (rc < 0 || state != CANCELS) return rc;
    heartbeat->is_cancelled = 1;
    return gr_fail(error, GRAFT_ERR_CANCELLED, "another rank cancels the call");
}

/* Heartbeats are sent four times within the deadline, but at most once in a second. */
int32_t gr_comm_heartbeat(struct gr_heartbeat *heartbeat, graft_error *error)
{
    const double timeout = heartbeat->comm->timeout, period = timeout < 4 ? timeout / 4 : 1;

    if (gr_seconds() - heartbeat->last < period) return GRAFT_OK;
    return send_heartbeat(heartbeat, STILL_WORKS, error);
}

int32_t gr_comm_heartbeat_end(struct gr_heartbeat *heartbeat, graft_error *error)
{
    int32_t rc;

    if (heartbeat->is_cancelled) return GRAFT_OK;
    rc = send_heartbeat(heartbeat, IS_DONE, error);
    return rc == GRAFT_ERR_CANCELLED ? GRAFT_OK : rc; /* the caller's next agreement returns ERR_CANCELLED */
}

int32_t gr_comm_attend(struct gr_comm *comm, graft_error *error)
{
    int64_t state = WAITING;
    int32_t rc = GRAFT_OK;

    while (rc == GRAFT_OK && state != IS_DONE && state != CANCELS) {
        state = gr_context_check_cancel(comm->context, error) < 0 ? CANCELS : WAITING;
        rc = gr_comm_max(comm, &state, 1, error);
    }
    return rc;
}
