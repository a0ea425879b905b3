/* The framed messages of one exchange: their requests, frames and CRCs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/framed.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/parallel.h"

#include <stdatomic.h>

/* The parts of a message, each with a request. */
enum { PART_FRAME, PART_PAYLOAD, PART_SUBSTITUTE, PARTS };

static int32_t side_init(struct gr_framed *f, struct gr_framed_side *side, graft_error *error)
{
    const graft_context *context = f->comm->context;
    const int64_t        n_ranks = f->comm->n_ranks;

    GR_TRY(GR_POOL_NEW(context, &f->pool, side->peer, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &f->pool, side->frame, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &f->pool, side->rows, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &f->pool, side->payload, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &f->pool, side->substitute, n_ranks, error));
    return GR_POOL_NEW(context, &f->pool, side->is_substituted, n_ranks, error);
}

int32_t gr_comm_framed_init(struct gr_framed *f, struct gr_comm *comm, graft_error *error)
{
    *f = (struct gr_framed){ .comm = comm, .channel = gr_comm_channel(comm) };
    for (int s = 0; s < GR_SIDES; s++) GR_TRY(side_init(f, &f->side[s], error));
    GR_TRY(GR_POOL_NEW(comm->context, &f->pool, f->crc, comm->n_ranks, error));
    return GR_POOL_NEW(comm->context, &f->pool, f->requests, (int64_t)GR_SIDES * PARTS * comm->n_ranks, error);
}

void gr_comm_framed_fini(struct gr_framed *f)
{
    if (f->comm != NULL) gr_pool_fini(f->comm->context, &f->pool);
    *f = (struct gr_framed){ 0 };
}

/* The payload that the receiver uses, of which the CRC is computed. */
static struct gr_payload valid_payload(const struct gr_framed_side *side, int32_t q)
{
    return side->is_substituted[q] ? side->substitute[q] : side->payload[q];
}

static struct gr_frame frame_of(const struct gr_framed *f, enum gr_side s, int32_t q)
{
    const struct gr_framed_side *side = &f->side[s];
    struct gr_frame              frame = f->begun.head;

    frame.channel = (uint32_t)f->channel;
    frame.from = s == GR_SEND ? f->comm->rank : q;
    frame.rows = side->rows[q];
    frame.bytes = valid_payload(side, q).bytes;
    if (side->is_substituted[q]) frame.bits = f->substitute_bits;
    return frame;
}

/* Find a request. Those of receives come first. On each side, requests are ordered by part and then by message. */
static struct gr_request *request_of(const struct gr_framed *f, enum gr_side side, int part, int32_t i)
{
    const int32_t first = side == GR_SEND ? PARTS * f->side[GR_RECEIVE].n : 0;

    return &f->requests[first + part * f->side[side].n + i];
}

static int64_t request_count(const struct gr_framed *f)
{
    return PARTS * ((int64_t)f->side[GR_SEND].n + f->side[GR_RECEIVE].n);
}

static int32_t receive_part(struct gr_framed *f, int32_t i, int part, struct gr_payload to, graft_error *error)
{
    if (to.bytes == 0) return GRAFT_OK;
    return gr_comm_receive(f->comm, f->side[GR_RECEIVE].peer[i], f->channel, to.data, to.bytes,
                           request_of(f, GR_RECEIVE, part, i), error);
}

static int32_t send_part(struct gr_framed *f, int32_t i, int part, struct gr_payload from, graft_error *error)
{
    if (from.bytes == 0) return GRAFT_OK;
    return gr_comm_send(f->comm, f->side[GR_SEND].peer[i], f->channel, from.data, from.bytes,
                        request_of(f, GR_SEND, part, i), error);
}

static struct gr_payload frame_part(const struct gr_framed_side *side, int32_t i)
{
    return (struct gr_payload){ (char *)&side->frame[i], sizeof side->frame[i] };
}

int32_t gr_comm_framed_receive(struct gr_framed *f, const struct gr_frame *head, graft_error *error)
{
    const struct gr_framed_side *side = &f->side[GR_RECEIVE];

    f->begun = (struct gr_framed_state){ .head = *head, .error = { .size = sizeof f->begun.error } };
    f->side[GR_SEND].n = 0;
    for (int32_t i = 0; i < side->n; i++) {
        GR_TRY(receive_part(f, i, PART_FRAME, frame_part(side, i), error));
        GR_TRY(receive_part(f, i, PART_PAYLOAD, side->payload[side->peer[i]], error));
    }
    return GRAFT_OK;
}

struct crc_job {
    struct gr_framed            *framed;
    const struct gr_framed_side *side;
    int32_t                      first, end; /* range of messages */
};

/* Update the CRCs of messages of the job with bytes begin to end - 1 of their valid payloads, regarded as one array.
 * The CRCs of pieces are combined by exclusive or, in any order. */
static void add_crcs(void *arg, int64_t begin, int64_t end)
{
    const struct crc_job *job = arg;
    int64_t               first = 0, last;

    for (int32_t i = job->first; i < job->end; i++, first = last) {
        const struct gr_payload valid = valid_payload(job->side, job->side->peer[i]);
        int64_t                 from, to;
        uint32_t                crc;

        last = first + (int64_t)valid.bytes;
        from = begin > first ? begin : first;
        to = end < last ? end : last;
        if (from >= to) continue;
        crc = gr_crc(0, valid.data + (from - first), (uint64_t)(to - from));
        atomic_fetch_xor_explicit(&job->framed->crc[i], gr_crc_join(crc, 0, (uint64_t)(last - to)),
                                  memory_order_relaxed);
    }
}

/* Compute the CRCs of messages first to end - 1 of a side. Messages are not polled meanwhile, because some requests are
 * not posted yet. */
static void compute_crcs(struct gr_framed *f, const struct gr_framed_side *side, int32_t first, int32_t end,
                         struct gr_team team)
{
    struct crc_job job = { f, side, first, end };
    int64_t        bytes = 0;

    team.poll = NULL;
    for (int32_t i = first; i < end; i++) {
        atomic_store_explicit(&f->crc[i], 0, memory_order_relaxed);
        bytes += (int64_t)valid_payload(side, side->peer[i]).bytes;
    }
    gr_parallel_rows(team, bytes / 8, bytes, GR_CRC_PIECE, add_crcs, &job);
}

static int32_t send_message(struct gr_framed *f, int32_t i, graft_error *error)
{
    const struct gr_framed_side *side = &f->side[GR_SEND];
    const int32_t                q = side->peer[i];

    side->frame[i] = frame_of(f, GR_SEND, q);
    gr_comm_frame_seal_crc(&side->frame[i], f->crc[i]);
    GR_TRY(send_part(f, i, PART_FRAME, frame_part(side, i), error));
    GR_TRY(send_part(f, i, PART_PAYLOAD, side->payload[q], error));
    return side->is_substituted[q] ? send_part(f, i, PART_SUBSTITUTE, side->substitute[q], error) : GRAFT_OK;
}

/* The distance from this rank to rank `rank`, cyclically; n_ranks if it is this rank. */
static int32_t places_behind(const struct gr_comm *comm, int32_t rank)
{
    return rank > comm->rank ? rank - comm->rank : rank - comm->rank + comm->n_ranks;
}

int32_t gr_comm_framed_send_until(struct gr_framed *f, int32_t peer, struct gr_team team, graft_error *error)
{
    const struct gr_framed_side *side = &f->side[GR_SEND];
    const int32_t                places = places_behind(f->comm, peer);
    int32_t                      last = f->begun.n_sent;

    while (last < side->n && places_behind(f->comm, side->peer[last]) <= places) last++;
    compute_crcs(f, side, f->begun.n_sent, last, team);
    if (f->begun.send_began_at == 0) f->begun.send_began_at = gr_seconds();
    for (; f->begun.n_sent < last; f->begun.n_sent++) GR_TRY(send_message(f, f->begun.n_sent, error));
    if (peer != f->comm->rank) return GRAFT_OK;
    f->begun.is_sent = 1;
    f->begun.sent_at = gr_seconds();
    return GRAFT_OK;
}

/* Compare received frames with the expected ones, before payloads are read. A frame states whether a substitute
 * follows; then its receive is posted. */
static int32_t check_frames(struct gr_framed *f, graft_error *error)
{
    const struct gr_framed_side *side = &f->side[GR_RECEIVE];

    for (int32_t i = 0; i < side->n; i++) {
        const int32_t   q = side->peer[i];
        struct gr_frame expected;

        side->is_substituted[q] = f->substitute_bits != 0 && side->frame[i].bits == f->substitute_bits;
        expected = frame_of(f, GR_RECEIVE, q);
        if (gr_comm_frame_check(&side->frame[i], &expected, error) < 0) return gr_comm_fail(f->comm, error);
        if (side->is_substituted[q]) GR_TRY(receive_part(f, i, PART_SUBSTITUTE, side->substitute[q], error));
    }
    f->begun.frames_checked = 1;
    return GRAFT_OK;
}

static int32_t check_crcs(struct gr_framed *f, struct gr_team team, graft_error *error)
{
    const struct gr_framed_side *side = &f->side[GR_RECEIVE];

    compute_crcs(f, side, 0, side->n, team);
    for (int32_t i = 0; i < side->n; i++)
        if (gr_comm_frame_check_crc(&side->frame[i], f->crc[i], error) < 0) return gr_comm_fail(f->comm, error);
    return GRAFT_OK;
}

/* Record that the last message has arrived. `idle_since` is the time when this rank began to wait; 0: it did not
 * wait. */
static void note_arrival(struct gr_framed *f, double idle_since)
{
    const double now = gr_seconds();

    f->begun.arrived = 1;
    if (request_count(f) == 0) return;
    f->exchange_seconds += now - f->begun.send_began_at;
    if (idle_since > 0) f->wait_seconds += now - idle_since;
}

void gr_comm_framed_poll(void *framed)
{
    struct gr_framed *f = framed;
    int64_t           left = 0;

    gr_comm_outcome_poll(f->outcome);
    if (f->begun.rc < 0 || f->begun.arrived) return;
    if (!f->begun.frames_checked) {
        f->begun.rc = gr_comm_poll(f->comm, f->requests, f->side[GR_RECEIVE].n, &left, &f->begun.error);
        if (f->begun.rc == GRAFT_OK && left == 0) f->begun.rc = check_frames(f, &f->begun.error);
    }
    if (f->begun.rc < 0 || !f->begun.frames_checked) return;
    f->begun.rc = gr_comm_poll(f->comm, f->requests, request_count(f), &left, &f->begun.error);
    if (f->begun.rc == GRAFT_OK && left == 0 && f->begun.is_sent) note_arrival(f, 0);
}

static int32_t wait_for_arrival(struct gr_framed *f, graft_error *error)
{
    const double begin = gr_seconds();

    if (f->begun.rc < 0) *error = f->begun.error;
    if (f->begun.rc < 0 || f->begun.arrived) return f->begun.rc;
    if (!f->begun.frames_checked) {
        GR_TRY(gr_comm_wait(f->comm, f->requests, f->side[GR_RECEIVE].n, error));
        GR_TRY(check_frames(f, error));
    }
    GR_TRY(gr_comm_wait(f->comm, f->requests, request_count(f), error));
    note_arrival(f, begin);
    return GRAFT_OK;
}

int32_t gr_comm_framed_wait(struct gr_framed *f, struct gr_team team, graft_error *error)
{
    const int32_t rc = wait_for_arrival(f, error);

    f->begun.received_at = gr_seconds();
    return rc < 0 ? rc : check_crcs(f, team, error);
}

void gr_comm_framed_drain(struct gr_framed *f)
{
    graft_error error = { .size = sizeof error };

    wait_for_arrival(f, &error);
}
