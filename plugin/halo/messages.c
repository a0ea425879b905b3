/* Frames, requests and CRCs of the messages of one exchange.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/encode.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* The value in frames for rows with individual widths. */
enum { MIXED_BITS = 0 };

/* The parts of a message, each with a request: its frame, its rows, and raw rows if a row has no code. */
enum { PART_FRAME, PART_ROWS, PART_RAW, PARTS };

/* -- memory ------------------------------------------------------------------------------------------------------- */

static int32_t side_init(const graft_context *context, int64_t n_ranks, struct gr_message_side *side,
                         graft_error *error)
{
    GR_TRY(GR_NEW(context, side->encoded_at, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, side->raw_at, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, side->peer, n_ranks, error));
    GR_TRY(GR_NEW(context, side->frame, n_ranks, error));
    return GR_NEW(context, side->has_raw, n_ranks, error);
}

static void side_fini(const graft_context *context, const struct gr_message_side *side)
{
    void *const blocks[] = { side->encoded, side->encoded_at, side->raw_at, side->peer, side->frame, side->has_raw };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(context, blocks[i]);
}

int32_t gr_halo_messages_init(const graft_context *context, struct gr_comm *comm, int is_detached,
                              struct gr_messages *m, graft_error *error)
{
    const int64_t n_ranks = comm->n_ranks;

    *m = (struct gr_messages){ .context = context, .comm = comm, .channel = gr_comm_channel(comm) };
    m->format = gr_halo_row_format(context);
    m->is_detached = is_detached;
    m->begun.codec.isa = gr_processor_isa();
    for (int s = 0; s < GR_SIDES; s++) GR_TRY(side_init(context, n_ranks, &m->side[s], error));
    GR_TRY(GR_NEW(context, m->crc, n_ranks, error));
    GR_TRY(GR_NEW(context, m->requests, GR_SIDES * PARTS * n_ranks, error));
    return GR_NEW(context, m->sent, n_ranks, error);
}

void gr_halo_messages_fini(struct gr_messages *m)
{
    const graft_context *context = m->context;

    if (context == NULL) return;
    for (int s = 0; s < GR_SIDES; s++) side_fini(context, &m->side[s]);
    gr_free(context, m->crc);
    gr_free(context, m->requests);
    gr_free(context, m->sent);
    gr_free(context, m->work.floats);
    gr_free(context, m->work.row_error);
    *m = (struct gr_messages){ 0 };
}

/* Ensure a block of at least this many bytes, whose contents need not be kept. */
static int32_t grow(const struct gr_messages *m, void **block, int64_t *capacity, int64_t bytes, graft_error *error)
{
    void *larger;

    if (bytes <= *capacity) return GRAFT_OK;
    larger = gr_new(m->context, bytes, 1, "quantized rows of messages", error);
    if (larger == NULL) return GRAFT_ERR_NOMEM;
    gr_free(m->context, *block);
    *block = larger;
    *capacity = bytes;
    return GRAFT_OK;
}

/* Bytes of the longest encoded row; 0: no rows are encoded. */
static int64_t longest_row(const struct gr_messages *m, int64_t width, graft_dtype dtype)
{
    int64_t longest = 0;

    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        const struct gr_exchange_args args = { .direction = (enum gr_direction)d, .width = width, .dtype = dtype };
        const int64_t                 bytes = gr_halo_messages_row_bytes(m, &args);

        if ((m->format.bits[d] < 32 || m->is_detached) && bytes > longest) longest = bytes;
    }
    return longest;
}

/* Bytes of the encoded rows of one side, of scratch memory, and of the errors of rows. */
struct need {
    int64_t encoded, work, errors;
};

static int64_t error_bytes(const struct gr_messages *m, int64_t rows)
{
    return rows * 2 * (int64_t)sizeof *m->work.row_error;
}

static struct need need_of(const struct gr_messages *m, const int64_t rows[GR_SIDES], int64_t width, graft_dtype dtype)
{
    const int64_t         most = rows[GR_SEND] > rows[GR_RECEIVE] ? rows[GR_SEND] : rows[GR_RECEIVE];
    const int64_t         bytes = longest_row(m, width, dtype);
    const struct gr_codec codec = { .width = width };

    if (bytes == 0) return (struct need){ 0 };
    return (struct need){ .encoded = most * bytes,
                          .work = gr_context_threads(m->context, 0) * gr_codec_work(&codec) *
                                  (int64_t)sizeof *m->work.floats,
                          .errors = m->format.measuring != GR_STATISTICS_NO ? error_bytes(m, most) : 0 };
}

int64_t gr_halo_messages_need(const struct gr_messages *m, const int64_t rows[GR_SIDES], int64_t width,
                              graft_dtype dtype)
{
    const struct need need = need_of(m, rows, width, dtype);

    return GR_SIDES * need.encoded + need.work + need.errors;
}

int32_t gr_halo_messages_reserve(struct gr_messages *m, const int64_t rows[GR_SIDES], int64_t width, graft_dtype dtype,
                                 graft_error *error)
{
    const struct need need = need_of(m, rows, width, dtype);
    int64_t work = m->work.n_floats * (int64_t)sizeof *m->work.floats, errors = error_bytes(m, m->work.row_errors);

    GR_ASSERT(rows[GR_SEND] >= 0 && rows[GR_RECEIVE] >= 0 && width >= 0);
    for (int s = 0; s < GR_SIDES; s++)
        GR_TRY(grow(m, (void **)&m->side[s].encoded, &m->side[s].capacity, need.encoded, error));
    GR_TRY(grow(m, (void **)&m->work.floats, &work, need.work, error));
    m->work.n_floats = work / (int64_t)sizeof *m->work.floats;
    GR_TRY(grow(m, (void **)&m->work.row_error, &errors, need.errors, error));
    m->work.row_errors = errors / error_bytes(m, 1);
    return GRAFT_OK;
}

int64_t gr_halo_messages_bytes(const struct gr_messages *m)
{
    const struct gr_message_side *side = m->side;
    const int64_t                 n_ranks = m->context != NULL ? m->comm->n_ranks : 0;
    const uint64_t                per_side = sizeof *side->encoded_at + sizeof *side->raw_at + sizeof *side->peer +
                              sizeof *side->frame + sizeof *side->has_raw + PARTS * sizeof *m->requests;
    const uint64_t per_rank = GR_SIDES * per_side + sizeof *m->crc + sizeof *m->sent;

    return n_ranks * (int64_t)per_rank + side[GR_SEND].capacity + side[GR_RECEIVE].capacity +
           m->work.n_floats * (int64_t)sizeof *m->work.floats + error_bytes(m, m->work.row_errors);
}

void gr_halo_messages_add_seconds(const struct gr_messages *m, double *wait, double *exchange)
{
    *wait += m->wait_seconds;
    *exchange += m->exchange_seconds;
}

/* -- frames and requests ------------------------------------------------------------------------------------------ */

/* The parts after the frame of a message. */
struct part {
    char    *data;
    uint64_t bytes;
};

static struct part raw_part(const struct gr_message_side *side, int32_t q)
{
    return (struct part){ (char *)side->rows.data + side->raw_at[q], (uint64_t)gr_halo_message_raw_bytes(side, q) };
}

/* The rows of the message to or from rank q, in the form of the exchange. */
static struct part rows_part(const struct gr_messages *m, const struct gr_message_side *side, int32_t q)
{
    if (!gr_halo_messages_are_encoded(m)) return raw_part(side, q);
    return (struct part){ side->encoded + side->encoded_at[q],
                          (uint64_t)(side->encoded_at[q + 1] - side->encoded_at[q]) };
}

/* The rows that the receiver uses, over which the CRC is computed. */
static struct part valid_part(const struct gr_messages *m, const struct gr_message_side *side, int32_t q)
{
    return side->has_raw[q] ? raw_part(side, q) : rows_part(m, side, q);
}

static int16_t raw_bits(const struct gr_messages *m)
{
    return m->begun.codec.dtype == GRAFT_F64 ? 64 : 32;
}

/* Whether a message may have raw rows besides the encoded ones. */
static int may_have_raw(const struct gr_messages *m)
{
    return gr_halo_messages_are_encoded(m) && !m->is_detached;
}

static struct gr_frame frame_of(const struct gr_messages *m, const struct gr_message_side *side, int32_t q,
                                int32_t sender)
{
    struct gr_frame frame = m->begun.head;

    frame.channel = (uint32_t)m->channel;
    frame.from = sender;
    frame.rows = side->rows.start[q + 1] - side->rows.start[q];
    frame.bytes = valid_part(m, side, q).bytes;
    if (side->has_raw[q]) frame.bits = raw_bits(m);
    return frame;
}

/* Requests of messages to receive come first, part by part: the first n belong to frames. */
static struct gr_request *request_of(const struct gr_messages *m, enum gr_side side, int part, int32_t i)
{
    const int32_t first = side == GR_SEND ? PARTS * m->side[GR_RECEIVE].n : 0;

    return &m->requests[first + part * m->side[side].n + i];
}

static int64_t request_count(const struct gr_messages *m)
{
    return PARTS * ((int64_t)m->side[GR_SEND].n + m->side[GR_RECEIVE].n);
}

/* Set the rows of a side, and list the ranks that have some of these rows. The list begins after this rank, so that not
 * all ranks send to rank 0 first. */
static void set_side(struct gr_messages *m, enum gr_side s, struct gr_rank_rows rows)
{
    const int32_t           n = m->comm->n_ranks;
    struct gr_message_side *side = &m->side[s];

    side->rows = rows;
    side->n = 0;
    for (int32_t i = 1; i <= n; i++) {
        const int32_t q = (m->comm->rank + i) % n;

        side->has_raw[q] = 0;
        if (rows.start[q] < rows.start[q + 1]) side->peer[side->n++] = q;
    }
    gr_halo_messages_lay_out(m, s);
    GR_ASSERT(!gr_halo_messages_are_encoded(m) || side->encoded_at[m->comm->n_ranks] <= side->capacity);
}

static int32_t receive_part(struct gr_messages *m, int32_t q, struct part part, struct gr_request *request,
                            graft_error *error)
{
    return part.bytes > 0 ? gr_comm_receive(m->comm, q, m->channel, part.data, part.bytes, request, error) : GRAFT_OK;
}

static int32_t send_part(struct gr_messages *m, int32_t q, struct part part, struct gr_request *request,
                         graft_error *error)
{
    return part.bytes > 0 ? gr_comm_send(m->comm, q, m->channel, part.data, part.bytes, request, error) : GRAFT_OK;
}

static struct part frame_part(const struct gr_message_side *side, int32_t i)
{
    return (struct part){ (char *)&side->frame[i], sizeof side->frame[i] };
}

/* -- CRCs --------------------------------------------------------------------------------------------------------- */

struct crc_job {
    struct gr_messages           *m;
    const struct gr_message_side *side;
    int32_t                       first, end; /* messages */
};

/* Add bytes begin to end - 1 of the valid parts of these messages, laid end to end, to their CRCs. CRCs
 * of pieces add up in any order. */
static void add_crcs(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct crc_job *job = arg;
    int64_t               first = 0, last;

    (void)chunk;
    for (int32_t i = job->first; i < job->end; i++, first = last) {
        const struct part part = valid_part(job->m, job->side, job->side->peer[i]);
        int64_t           from, to;
        uint32_t          crc;

        last = first + (int64_t)part.bytes;
        from = begin > first ? begin : first;
        to = end < last ? end : last;
        if (from >= to) continue;
        crc = gr_crc(0, part.data + (from - first), (uint64_t)(to - from));
        atomic_fetch_xor_explicit(&job->m->crc[i], gr_crc_join(crc, 0, (uint64_t)(last - to)), memory_order_relaxed);
    }
}

/* m->crc of messages first to end - 1 of a side. No message is polled meanwhile: some requests are not posted yet. */
static void compute_crcs(struct gr_messages *m, const struct gr_message_side *side, int32_t first, int32_t end,
                         struct gr_team team)
{
    struct crc_job job = { m, side, first, end };
    int64_t        bytes = 0;

    team.poll = NULL;
    for (int32_t i = first; i < end; i++) {
        atomic_store_explicit(&m->crc[i], 0, memory_order_relaxed);
        bytes += (int64_t)valid_part(m, side, side->peer[i]).bytes;
    }
    gr_parallel_chunks(team, bytes / 8, bytes, GR_CRC_PIECE, add_crcs, &job);
}

/* -- one exchange ------------------------------------------------------------------------------------------------- */

int32_t gr_halo_messages_post(struct gr_messages *m, const struct gr_exchange_args *args,
                              const struct gr_row_widths *widths, struct gr_rank_rows received, graft_error *error)
{
    const struct gr_message_side *side = &m->side[GR_RECEIVE];
    int32_t                       rc = GRAFT_OK;

    m->begun.codec = gr_halo_messages_codec(m, args);
    m->begun.widths = widths;
    m->begun.head = (struct gr_frame){ .layer = args->layer,
                                       .direction = (int16_t)args->direction,
                                       .semiring = (int16_t)args->semiring,
                                       .flags = (int16_t)args->flags,
                                       .epoch = args->call != 0 ? args->call : args->epoch,
                                       .width = args->width };
    if (args->call != 0) m->begun.head.flags |= GR_FRAME_OF_CALL;
    m->begun.head.bits = (int16_t)(widths != NULL             ? MIXED_BITS
                                   : m->begun.codec.bits < 32 ? m->begun.codec.bits
                                                              : raw_bits(m));
    m->begun.frames_checked = m->begun.arrived = 0;
    m->begun.n_sent = m->begun.is_sent = 0;
    m->begun.send_began_at = 0;
    m->begun.rc = GRAFT_OK;
    m->begun.error = (graft_error){ .size = sizeof m->begun.error };
    m->side[GR_SEND].n = 0;
    set_side(m, GR_RECEIVE, received);
    for (int32_t i = 0; i < side->n; i++) {
        const int32_t q = side->peer[i];

        GR_TRY_DONE(receive_part(m, q, frame_part(side, i), request_of(m, GR_RECEIVE, PART_FRAME, i), error));
        GR_TRY_DONE(receive_part(m, q, rows_part(m, side, q), request_of(m, GR_RECEIVE, PART_ROWS, i), error));
    }
done:
    return rc;
}

void gr_halo_messages_set_rows(struct gr_messages *m, struct gr_rank_rows sent)
{
    set_side(m, GR_SEND, sent);
}

/* Whether rows without a code are refused. */
static int32_t check_raw(const struct gr_messages *m, graft_error *error)
{
    for (int32_t q = 0; q < m->comm->n_ranks && m->format.refuses; q++)
        if (m->side[GR_SEND].has_raw[q])
            return gr_fail(error, GRAFT_ERR_NONFINITE,
                           "a row for rank %d has an element that is not finite, or a range that is no float, and does "
                           "not fit into %d bits (%s %lld, layer %d, %s; halo.nonfinite is refuse)",
                           q, m->begun.codec.bits, gr_comm_frame_epoch_name(&m->begun.head),
                           (long long)m->begun.head.epoch, m->begun.head.layer,
                           m->begun.head.direction == GR_FORWARD ? "forward" : "backward");
    return GRAFT_OK;
}

static int32_t send_message(struct gr_messages *m, int32_t i, graft_error *error)
{
    const struct gr_message_side *side = &m->side[GR_SEND];
    const int32_t                 q = side->peer[i];

    side->frame[i] = frame_of(m, side, q, m->comm->rank);
    gr_comm_frame_seal_crc(&side->frame[i], m->crc[i]);
    GR_TRY(send_part(m, q, frame_part(side, i), request_of(m, GR_SEND, PART_FRAME, i), error));
    GR_TRY(send_part(m, q, rows_part(m, side, q), request_of(m, GR_SEND, PART_ROWS, i), error));
    if (side->has_raw[q]) return send_part(m, q, raw_part(side, q), request_of(m, GR_SEND, PART_RAW, i), error);
    return GRAFT_OK;
}

/* The distance of a rank after this rank, cyclically; n_ranks for this rank itself. */
static int32_t places_behind(const struct gr_messages *m, int32_t rank)
{
    return rank > m->comm->rank ? rank - m->comm->rank : rank - m->comm->rank + m->comm->n_ranks;
}

int32_t gr_halo_messages_send_until(struct gr_messages *m, int32_t peer, struct gr_team team, graft_error *error)
{
    const struct gr_message_side *side = &m->side[GR_SEND];
    int32_t                       last = m->begun.n_sent;

    while (last < side->n && places_behind(m, side->peer[last]) <= places_behind(m, peer)) last++;
    if (m->is_detached) GR_TRY(check_raw(m, error)); /* there is no space for raw rows */
    compute_crcs(m, side, m->begun.n_sent, last, team);
    if (m->begun.send_began_at == 0) m->begun.send_began_at = gr_seconds();
    for (; m->begun.n_sent < last; m->begun.n_sent++) GR_TRY(send_message(m, m->begun.n_sent, error));
    return GRAFT_OK;
}

int32_t gr_halo_messages_send(struct gr_messages *m, struct gr_team team, graft_error *error)
{
    int32_t rc = gr_halo_messages_send_until(m, m->comm->rank, team, error);

    GR_TRY_DONE(rc);
    gr_halo_messages_count_sent(m);
    m->begun.is_sent = 1;
    m->begun.sent_at = gr_seconds();
    if (!m->is_detached) rc = check_raw(m, error);
done:
    return rc;
}

/* Compare the received frames with the expected frames, before the rows are read. A frame states whether raw rows
 * follow. */
static int32_t check_frames(struct gr_messages *m, graft_error *error)
{
    const struct gr_message_side *side = &m->side[GR_RECEIVE];

    for (int32_t i = 0; i < side->n; i++) {
        const int32_t   q = side->peer[i];
        struct gr_frame expected;

        side->has_raw[q] = may_have_raw(m) && side->frame[i].bits == raw_bits(m);
        expected = frame_of(m, side, q, q);
        if (gr_comm_frame_check(&side->frame[i], &expected, error) < 0) return gr_comm_fail(m->comm, error);
        if (side->has_raw[q])
            GR_TRY(receive_part(m, q, raw_part(side, q), request_of(m, GR_RECEIVE, PART_RAW, i), error));
    }
    m->begun.frames_checked = 1;
    return GRAFT_OK;
}

static int32_t check_crcs(struct gr_messages *m, struct gr_team team, graft_error *error)
{
    const struct gr_message_side *side = &m->side[GR_RECEIVE];

    compute_crcs(m, side, 0, side->n, team);
    for (int32_t i = 0; i < side->n; i++)
        if (gr_comm_frame_check_crc(&side->frame[i], m->crc[i], error) < 0) return gr_comm_fail(m->comm, error);
    return GRAFT_OK;
}

/* The last message has arrived; `idle_since` is when this rank began to wait, 0 if it did not. */
static void note_arrival(struct gr_messages *m, double idle_since)
{
    const double now = gr_seconds();

    m->begun.arrived = 1;
    if (request_count(m) == 0) return;
    m->exchange_seconds += now - m->begun.send_began_at;
    if (idle_since > 0) m->wait_seconds += now - idle_since;
}

void gr_halo_messages_poll(void *messages)
{
    struct gr_messages *m = messages;
    int64_t             left = 0;

    gr_comm_outcome_poll(m->outcome);
    if (m->begun.rc < 0 || m->begun.arrived) return;
    if (!m->begun.frames_checked) {
        m->begun.rc = gr_comm_poll(m->comm, m->requests, m->side[GR_RECEIVE].n, &left, &m->begun.error);
        if (m->begun.rc == GRAFT_OK && left == 0) m->begun.rc = check_frames(m, &m->begun.error);
    }
    if (m->begun.rc < 0 || !m->begun.frames_checked) return;
    m->begun.rc = gr_comm_poll(m->comm, m->requests, request_count(m), &left, &m->begun.error);
    if (m->begun.rc == GRAFT_OK && left == 0 && m->begun.is_sent) note_arrival(m, 0);
}

static int32_t wait_for_arrival(struct gr_messages *m, graft_error *error)
{
    const double begin = gr_seconds();
    int32_t      rc = m->begun.rc;

    if (rc < 0) *error = m->begun.error;
    if (rc < 0 || m->begun.arrived) return rc;
    if (!m->begun.frames_checked) {
        GR_TRY_DONE(gr_comm_wait(m->comm, m->requests, m->side[GR_RECEIVE].n, error));
        GR_TRY_DONE(check_frames(m, error));
    }
    GR_TRY_DONE(gr_comm_wait(m->comm, m->requests, request_count(m), error));
    note_arrival(m, begin);
done:
    return rc;
}

int32_t gr_halo_messages_wait(struct gr_messages *m, struct gr_team team, graft_error *error)
{
    const int32_t rc = wait_for_arrival(m, error);

    m->begun.received_at = gr_seconds();
    return rc < 0 ? rc : check_crcs(m, team, error);
}

void gr_halo_messages_drain(struct gr_messages *m)
{
    graft_error error = { .size = sizeof error };

    wait_for_arrival(m, &error);
}
