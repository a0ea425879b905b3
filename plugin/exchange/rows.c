/* Rows to and from other ranks while there is other work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "exchange/rows.h"

#include "base/crc.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <stdatomic.h>

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
    GR_TRY(GR_NEW(context, x->requests, 4 * n, error));
done:
    return rc;
}

void gr_exchange_fini(const graft_context *context, struct gr_exchange *x)
{
    if (x->comm == NULL) return;
    gr_comm_free(x->comm, x->frame_in);
    gr_comm_free(x->comm, x->frame_out);
    gr_free(context, x->from);
    gr_free(context, x->to);
    gr_free(context, x->crc);
    gr_free(context, x->requests);
    *x = (struct gr_exchange){ 0 };
}

int64_t gr_exchange_bytes(int32_t n_ranks)
{
    const struct gr_exchange *x = NULL;

    return (int64_t)n_ranks *
           (int64_t)(2 * sizeof *x->frame_in + 2 * sizeof *x->from + sizeof *x->crc + 4 * sizeof *x->requests);
}

static int64_t row_bytes(const struct gr_exchange *x)
{
    return x->head.width * x->head.bits / 8;
}

/* The rows to or from rank `q`, and the frame of their message. */
static char *rows_of(const struct gr_exchange *x, const struct gr_exchange_side *side, int32_t q, int32_t sender,
                     struct gr_frame *frame)
{
    *frame = x->head;
    frame->channel = (uint32_t)x->channel;
    frame->from = sender;
    frame->rows = side->start[q + 1] - side->start[q];
    frame->bytes = (uint64_t)(frame->rows * row_bytes(x));
    return side->rows + side->start[q] * row_bytes(x);
}

/* List the ranks that have rows on this side, and return how many there are. */
static int32_t list_peers(const struct gr_exchange *x, const struct gr_exchange_side *side, int32_t *peers)
{
    int32_t count = 0;

    for (int32_t q = 0; q < x->comm->n_ranks; q++)
        if (side->start[q] < side->start[q + 1]) peers[count++] = q;
    return count;
}

int32_t gr_exchange_receive(struct gr_exchange *x, const struct gr_frame *head, struct gr_exchange_side in,
                            graft_error *error)
{
    int32_t rc = GRAFT_OK;

    x->head = *head;
    x->in = in;
    x->n_in = list_peers(x, &x->in, x->from);
    x->n_out = x->checked = x->arrived = 0;
    x->rc = GRAFT_OK;
    x->error = (graft_error){ .size = sizeof x->error };
    for (int32_t i = 0; i < x->n_in; i++) {
        const int32_t   q = x->from[i];
        struct gr_frame expected;
        char           *rows = rows_of(x, &x->in, q, q, &expected);

        GR_TRY(gr_comm_receive(x->comm, q, x->channel, &x->frame_in[i], sizeof *x->frame_in, &x->requests[i], error));
        if (expected.bytes > 0)
            GR_TRY(gr_comm_receive(x->comm, q, x->channel, rows, expected.bytes, &x->requests[x->n_in + i], error));
    }
done:
    return rc;
}

/* One side, while threads go through its bytes. */
struct crcs {
    const struct gr_exchange      *x;
    const struct gr_exchange_side *side;
    const int32_t                 *peers;
    int32_t                        count;
};

/* Bytes begin to end - 1 of all rows: what each message has of them is moved to its place in the CRC of the message.
 * CRCs of such parts add up, in any order. */
static void add_crcs(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct crcs *c = arg;
    const int64_t      bytes = row_bytes(c->x);

    (void)chunk;
    for (int32_t i = 0; i < c->count; i++) {
        const int64_t first = c->side->start[c->peers[i]] * bytes, last = c->side->start[c->peers[i] + 1] * bytes;
        const int64_t from = begin > first ? begin : first, to = end < last ? end : last;

        if (from >= to) continue;
        atomic_fetch_xor_explicit(
            &c->x->crc[i],
            gr_crc_join(gr_crc(0, c->side->rows + from, (uint64_t)(to - from)), 0, (uint64_t)(last - to)),
            memory_order_relaxed);
    }
}

/* x->crc of the rows of all messages of a side. */
static void find_crcs(struct gr_exchange *x, const struct gr_exchange_side *side, const int32_t *peers, int32_t count,
                      struct gr_team team)
{
    struct crcs   crcs = { x, side, peers, count };
    const int64_t bytes = side->start[x->comm->n_ranks] * row_bytes(x);

    team.poll = NULL; /* what is being posted is in no state to be asked for */
    for (int32_t i = 0; i < count; i++) atomic_store_explicit(&x->crc[i], 0, memory_order_relaxed);
    gr_parallel_chunks(team, bytes / 8, bytes, PIECE, add_crcs, &crcs);
}

static int64_t request_count(const struct gr_exchange *x)
{
    return 2 * (int64_t)x->n_in + 2 * (int64_t)x->n_out;
}

int32_t gr_exchange_send(struct gr_exchange *x, struct gr_exchange_side out, struct gr_team team, graft_error *error)
{
    struct gr_request *request = &x->requests[2 * x->n_in];
    int32_t            rc = GRAFT_OK;

    x->began = gr_seconds();
    x->out = out;
    x->n_out = list_peers(x, &x->out, x->to);
    find_crcs(x, &x->out, x->to, x->n_out, team);
    for (int32_t i = 0; i < x->n_out; i++, request++) {
        struct gr_frame *frame = &x->frame_out[i];
        const int32_t    q = x->to[i];
        const char      *rows = rows_of(x, &x->out, q, x->comm->rank, frame);

        gr_frame_seal_crc(frame, x->crc[i]);
        GR_TRY(gr_comm_send(x->comm, q, x->channel, frame, sizeof *frame, request, error));
        if (frame->bytes > 0)
            GR_TRY(gr_comm_send(x->comm, q, x->channel, rows, frame->bytes, request + x->n_out, error));
    }
    x->packed = gr_seconds();
done:
    return rc;
}

/* What came must be what this rank is waiting for; looked at before the rows behind it, whose length it tells. */
static int32_t check_frames(struct gr_exchange *x, graft_error *error)
{
    for (int32_t i = 0; i < x->n_in; i++) {
        struct gr_frame expected;

        rows_of(x, &x->in, x->from[i], x->from[i], &expected);
        if (gr_frame_check(&x->frame_in[i], &expected, error) < 0) return gr_comm_fail(x->comm, error);
    }
    x->checked = 1;
    return GRAFT_OK;
}

static int32_t check_rows(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    find_crcs(x, &x->in, x->from, x->n_in, team);
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
