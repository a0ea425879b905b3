/* Rows to and from other ranks while there is other work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/exchange.h"

#include "base/crc.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Bytes of which one thread finds the CRC at a time: some tens of microseconds, beside which moving it is little. */
enum { PIECE = 1024 * 1024 };

int32_t gr_exchange_init(const graft_context *context, struct gr_comm *comm, struct gr_exchange *x, graft_error *error)
{
    const int64_t n = comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    x->comm = comm;
    x->channel = gr_comm_channel(comm);
    GR_TRY(GR_NEW(context, x->frame_in, n, error));
    GR_TRY(GR_NEW(context, x->frame_out, n, error));
    GR_TRY(GR_NEW(context, x->from, n, error));
    GR_TRY(GR_NEW(context, x->to, n, error));
    GR_TRY(GR_NEW(context, x->crc, n, error));
    GR_TRY(GR_NEW(context, x->plain_in, n, error));
    GR_TRY(GR_NEW(context, x->plain_out, n, error));
    GR_TRY(GR_NEW(context, x->requests, 6 * n, error));
done:
    return rc;
}

void gr_exchange_fini(const graft_context *context, struct gr_exchange *x)
{
    if (x->comm == NULL) return;
    gr_free(context, x->frame_in);
    gr_free(context, x->frame_out);
    gr_free(context, x->from);
    gr_free(context, x->to);
    gr_free(context, x->crc);
    gr_free(context, x->plain_in);
    gr_free(context, x->plain_out);
    gr_free(context, x->requests);
    *x = (struct gr_exchange){ 0 };
}

int64_t gr_exchange_bytes(int32_t n_ranks)
{
    const struct gr_exchange *x = NULL;

    return (int64_t)n_ranks * (int64_t)(2 * sizeof *x->frame_in + 2 * sizeof *x->from + sizeof *x->crc +
                                        2 * sizeof *x->plain_in + 6 * sizeof *x->requests);
}

/* What follows the frame of a message. */
struct part {
    char    *data;
    uint64_t bytes;
};

static struct part part_of(const struct gr_exchange_side *side, int32_t q)
{
    return (struct part){ side->rows + side->at[q], (uint64_t)(side->at[q + 1] - side->at[q]) };
}

/* The frame of the message to or from rank `q`, whose rows are in a code, or plain. */
static struct gr_frame frame_of(const struct gr_exchange *x, const struct gr_exchange_side *side, int32_t q,
                                int32_t sender, int plain)
{
    struct gr_frame frame = x->head;

    frame.channel = (uint32_t)x->channel;
    frame.from = sender;
    frame.rows = side->start[q + 1] - side->start[q];
    frame.bytes = part_of(side, q).bytes;
    if (plain) frame.bits = (int16_t)x->spare_bits;
    return frame;
}

/* Requests are in six rows: frames, rows and spare rows of messages that come, and the same of those that go. */
enum { FRAMES, ROWS, SPARES, PARTS };

static struct gr_request *request_in(const struct gr_exchange *x, int part, int32_t i)
{
    return &x->requests[part * x->n_in + i];
}

static struct gr_request *request_out(const struct gr_exchange *x, int part, int32_t i)
{
    return &x->requests[PARTS * x->n_in + part * x->n_out + i];
}

/* List the ranks that have rows on this side, and return how many there are. */
static int32_t list_peers(const struct gr_exchange *x, const struct gr_exchange_side *side, int32_t *peers)
{
    int32_t count = 0;

    for (int32_t q = 0; q < x->comm->n_ranks; q++)
        if (side->start[q] < side->start[q + 1]) peers[count++] = q;
    return count;
}

static int32_t receive(struct gr_exchange *x, int32_t q, struct part part, struct gr_request *request,
                       graft_error *error)
{
    return part.bytes > 0 ? gr_comm_receive(x->comm, q, x->channel, part.data, part.bytes, request, error) : GRAFT_OK;
}

static int32_t send(struct gr_exchange *x, int32_t q, struct part part, struct gr_request *request, graft_error *error)
{
    return part.bytes > 0 ? gr_comm_send(x->comm, q, x->channel, part.data, part.bytes, request, error) : GRAFT_OK;
}

int32_t gr_exchange_receive(struct gr_exchange *x, const struct gr_frame *head, struct gr_exchange_side in,
                            graft_error *error)
{
    const uint64_t n_ranks = (uint64_t)x->comm->n_ranks;
    int32_t        rc = GRAFT_OK;

    x->head = *head;
    x->in = in;
    x->n_in = list_peers(x, &x->in, x->from);
    x->n_out = x->checked = x->arrived = 0;
    x->spare_bits = 0;
    x->rc = GRAFT_OK;
    x->error = (graft_error){ .size = sizeof x->error };
    memset(x->plain_in, 0, n_ranks * sizeof *x->plain_in);
    memset(x->plain_out, 0, n_ranks * sizeof *x->plain_out);
    for (int32_t i = 0; i < x->n_in; i++) {
        const int32_t     q = x->from[i];
        const struct part frame = { (char *)&x->frame_in[i], sizeof *x->frame_in };

        GR_TRY(receive(x, q, frame, request_in(x, FRAMES, i), error));
        GR_TRY(receive(x, q, part_of(&x->in, q), request_in(x, ROWS, i), error));
    }
done:
    return rc;
}

void gr_exchange_spare(struct gr_exchange *x, int32_t bits, struct gr_exchange_side in, struct gr_exchange_side out)
{
    x->spare_bits = bits;
    x->spare_in = in;
    x->spare_out = out;
}

/* The rows of messages that come, or go, while threads go through their bytes. */
struct crcs {
    struct gr_exchange            *x;
    const struct gr_exchange_side *side, *spare;
    const int32_t                 *peers;
    const uint8_t                 *plain;
    int32_t                        count;
};

/* What the CRC of message i is about. */
static struct part covered(const struct crcs *c, int32_t i)
{
    return part_of(c->plain[i] ? c->spare : c->side, c->peers[i]);
}

/* Bytes begin to end - 1 of all messages, one behind the other: what each has of them is moved to its place in its
 * CRC. CRCs of such parts add up, in any order. */
static void add_crcs(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct crcs *c = arg;
    int64_t            first = 0, last;

    (void)chunk;
    for (int32_t i = 0; i < c->count; i++, first = last) {
        const struct part part = covered(c, i);
        int64_t           from, to;

        last = first + (int64_t)part.bytes;
        from = begin > first ? begin : first;
        to = end < last ? end : last;
        if (from >= to) continue;
        atomic_fetch_xor_explicit(
            &c->x->crc[i],
            gr_crc_join(gr_crc(0, part.data + (from - first), (uint64_t)(to - from)), 0, (uint64_t)(last - to)),
            memory_order_relaxed);
    }
}

/* x->crc of the rows of all messages that come, or go. */
static void find_crcs(struct crcs crcs, struct gr_team team)
{
    int64_t bytes = 0;

    team.poll = NULL; /* what is being posted is in no state to be asked for */
    for (int32_t i = 0; i < crcs.count; i++) {
        atomic_store_explicit(&crcs.x->crc[i], 0, memory_order_relaxed);
        bytes += (int64_t)covered(&crcs, i).bytes;
    }
    gr_parallel_chunks(team, bytes / 8, bytes, PIECE, add_crcs, &crcs);
}

static int32_t send_message(struct gr_exchange *x, int32_t i, graft_error *error)
{
    const int32_t     q = x->to[i];
    const int         plain = x->plain_out[i];
    const struct part frame = { (char *)&x->frame_out[i], sizeof *x->frame_out };
    int32_t           rc = GRAFT_OK;

    x->frame_out[i] = frame_of(x, plain ? &x->spare_out : &x->out, q, x->comm->rank, plain);
    gr_frame_seal_crc(&x->frame_out[i], x->crc[i]);
    GR_TRY(send(x, q, frame, request_out(x, FRAMES, i), error));
    GR_TRY(send(x, q, part_of(&x->out, q), request_out(x, ROWS, i), error));
    if (plain) rc = send(x, q, part_of(&x->spare_out, q), request_out(x, SPARES, i), error);
done:
    return rc;
}

static int64_t request_count(const struct gr_exchange *x)
{
    return PARTS * ((int64_t)x->n_in + x->n_out);
}

void gr_exchange_out(struct gr_exchange *x, struct gr_exchange_side out)
{
    x->out = out;
    x->n_out = list_peers(x, &x->out, x->to);
}

int32_t gr_exchange_send(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    find_crcs((struct crcs){ x, &x->out, &x->spare_out, x->to, x->plain_out, x->n_out }, team);
    x->began = gr_seconds();
    for (int32_t i = 0; i < x->n_out; i++) GR_TRY(send_message(x, i, error));
    x->packed = gr_seconds();
done:
    return rc;
}

/* What came must be what this rank is waiting for; looked at before the rows behind it, whose length it tells. */
static int32_t check_frames(struct gr_exchange *x, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t i = 0; i < x->n_in; i++) {
        const int32_t   q = x->from[i];
        const int       plain = x->spare_bits > 0 && x->frame_in[i].bits == x->spare_bits;
        struct gr_frame expected = frame_of(x, plain ? &x->spare_in : &x->in, q, q, plain);

        if (gr_frame_check(&x->frame_in[i], &expected, error) < 0) return gr_comm_fail(x->comm, error);
        x->plain_in[i] = (uint8_t)plain;
        if (plain) GR_TRY(receive(x, q, part_of(&x->spare_in, q), request_in(x, SPARES, i), error));
    }
    x->checked = 1;
done:
    return rc;
}

static int32_t check_rows(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    find_crcs((struct crcs){ x, &x->in, &x->spare_in, x->from, x->plain_in, x->n_in }, team);
    for (int32_t i = 0; i < x->n_in; i++)
        if (gr_frame_check_crc(&x->frame_in[i], x->crc[i], error) < 0) return gr_comm_fail(x->comm, error);
    return GRAFT_OK;
}

/* All has arrived now; `waited` is when this rank began to do nothing else, 0 if it never did. */
static void note_arrival(struct gr_exchange *x, double waited)
{
    const double now = gr_seconds();

    x->arrived = 1;
    if (request_count(x) == 0) return;
    x->exchange_seconds += now - x->began;
    if (waited > 0) x->wait_seconds += now - waited;
}

void gr_exchange_poll(void *exchange)
{
    struct gr_exchange *x = exchange;
    int64_t             left = 0;

    if (x->rc < 0 || x->arrived) return;
    if (!x->checked) {
        x->rc = gr_comm_poll(x->comm, x->requests, x->n_in, &left, &x->error);
        if (x->rc == GRAFT_OK && left == 0) x->rc = check_frames(x, &x->error);
    }
    if (x->rc < 0 || !x->checked) return;
    x->rc = gr_comm_poll(x->comm, x->requests, request_count(x), &left, &x->error);
    if (x->rc == GRAFT_OK && left == 0) note_arrival(x, 0);
}

static int32_t wait_for_all(struct gr_exchange *x, graft_error *error)
{
    const double begin = gr_seconds();
    int32_t      rc = x->rc;

    if (rc < 0) *error = x->error;
    if (rc < 0 || x->arrived) return rc;
    if (!x->checked) {
        GR_TRY(gr_comm_wait(x->comm, x->requests, x->n_in, error));
        GR_TRY(check_frames(x, error));
    }
    GR_TRY(gr_comm_wait(x->comm, x->requests, request_count(x), error));
    note_arrival(x, begin);
done:
    return rc;
}

int32_t gr_exchange_end(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    const int32_t rc = wait_for_all(x, error);

    x->came = gr_seconds();
    return rc < 0 ? rc : check_rows(x, team, error);
}

void gr_exchange_drain(struct gr_exchange *x)
{
    graft_error error = { .size = sizeof error };

    wait_for_all(x, &error);
}
