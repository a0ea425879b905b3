/* Allocates the memory of messages, and sets the rows of each message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/encode.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"

/* The value of field `bits` in frames whose rows have individual widths. */
enum { MIXED_BITS = 0 };

/* -- memory ------------------------------------------------------------------------------------------------------- */

int32_t gr_halo_messages_init(const graft_context *context, struct gr_comm *comm, int is_detached,
                              struct gr_messages *m, graft_error *error)
{
    *m = (struct gr_messages){ .context = context, .comm = comm, .is_detached = is_detached };
    m->format = gr_halo_row_format(context);
    m->begun.codec.isa = gr_processor_isa();
    GR_TRY(gr_comm_framed_init(&m->framed, comm, error));
    return GR_NEW(context, m->sent, comm->n_ranks, error);
}

void gr_halo_messages_fini(struct gr_messages *m)
{
    const graft_context *context = m->context;

    if (context == NULL) return;
    gr_comm_framed_fini(&m->framed);
    for (int s = 0; s < GR_SIDES; s++) gr_free(context, m->side[s].encoded);
    gr_free(context, m->sent);
    gr_free(context, m->work.floats);
    gr_free(context, m->work.row_error);
    *m = (struct gr_messages){ 0 };
}

/* Ensure that a block has at least this many bytes. Its contents are lost. */
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

/* Return the bytes of the longest encoded row; 0: no rows are encoded. */
static int64_t longest_row(const struct gr_messages *m, int64_t width, graft_dtype dtype)
{
    int64_t longest = 0;

    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        const struct gr_exchange_args args = { .direction = (enum gr_direction)d, .width = width, .dtype = dtype };

        int64_t bytes;

        if (m->format.bits[d] == 32 && !m->is_detached) continue;
        bytes = gr_halo_messages_row_bytes(m, &args);
        if (bytes > longest) longest = bytes;
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
    const int64_t most = rows[GR_SEND] > rows[GR_RECEIVE] ? rows[GR_SEND] : rows[GR_RECEIVE];
    const int64_t bytes = longest_row(m, width, dtype);

    if (bytes == 0) return (struct need){ 0 };
    return (struct need){ .encoded = most * bytes,
                          .work = gr_context_threads(m->context, 0) * GR_CODEC_WORK * width *
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
    return m->framed.pool.bytes + gr_memory_bytes(m->sent) + gr_memory_bytes(m->side[GR_SEND].encoded) +
           gr_memory_bytes(m->side[GR_RECEIVE].encoded) + gr_memory_bytes(m->work.floats) +
           gr_memory_bytes(m->work.row_error);
}

void gr_halo_messages_add_seconds(const struct gr_messages *m, double *wait, double *exchange)
{
    *wait += m->framed.wait_seconds;
    *exchange += m->framed.exchange_seconds;
}

/* -- one exchange ------------------------------------------------------------------------------------------------- */

static int16_t raw_bits(const struct gr_messages *m)
{
    return m->begun.codec.dtype == GRAFT_F64 ? 64 : 32;
}

/* Set the rows of a side, and list the ranks that have some of these rows. The list begins after this rank, so that not
 * all ranks send to rank 0 first. */
static void set_side(struct gr_messages *m, enum gr_side s, struct gr_rank_rows rows)
{
    const int32_t           n = m->comm->n_ranks;
    const int64_t           raw_bytes = m->begun.codec.width * gr_dtype_bytes(m->begun.codec.dtype);
    struct gr_message_side *side = &m->side[s];
    struct gr_framed_side  *framed = &m->framed.side[s];

    side->rows = rows;
    framed->n = 0;
    for (int32_t i = 1; i <= n; i++) {
        const int32_t q = (m->comm->rank + i) % n;
        const int64_t begin = rows.start[q], end = rows.start[q + 1], spare = side->spare != NULL ? side->spare[q] : 0;
        struct gr_payload raw = { end > begin ? (char *)rows.data + begin * raw_bytes : NULL,
                                  (uint64_t)((end - begin) * raw_bytes - spare) };

        framed->rows[q] = end - begin;
        framed->is_substituted[q] = 0;
        framed->payload[q] = m->begun.encodes ? gr_halo_messages_encoded(m, s, begin, end) : raw;
        framed->substitute[q] = raw;
        if (begin < end) framed->peer[framed->n++] = q;
    }
    GR_ASSERT(!m->begun.encodes || gr_halo_messages_encoded(m, s, 0, rows.start[n]).bytes <= (uint64_t)side->capacity);
}

int32_t gr_halo_messages_post(struct gr_messages *m, const struct gr_exchange_args *args,
                              const struct gr_row_widths *widths, struct gr_rank_rows received, graft_error *error)
{
    struct gr_frame head = { .layer = args->layer,
                             .direction = (int16_t)args->direction,
                             .semiring = (int16_t)args->semiring,
                             .flags = (int16_t)args->flags,
                             .epoch = args->call != 0 ? args->call : args->epoch,
                             .width = args->width };

    if (args->call != 0) head.flags |= GR_FRAME_OF_CALL;
    m->begun.codec = gr_halo_messages_codec(m, args);
    m->begun.widths = widths;
    m->begun.encodes = m->begun.codec.bits < 32 || m->is_detached;
    m->begun.row_bytes = m->begun.encodes ? gr_codec_row_bytes(&m->begun.codec) : 0;
    head.bits = (int16_t)(widths != NULL ? MIXED_BITS : m->begun.codec.bits < 32 ? m->begun.codec.bits : raw_bits(m));
    m->framed.substitute_bits = m->begun.encodes && !m->is_detached ? raw_bits(m) : 0;
    set_side(m, GR_RECEIVE, received);
    return gr_comm_framed_receive(&m->framed, &head, error);
}

void gr_halo_messages_set_rows(struct gr_messages *m, struct gr_rank_rows sent)
{
    set_side(m, GR_SEND, sent);
}

/* Return ERR_NONFINITE if a row that the code cannot represent is refused. */
static int32_t check_raw(const struct gr_messages *m, graft_error *error)
{
    const struct gr_frame *head = &m->framed.begun.head;

    for (int32_t q = 0; q < m->comm->n_ranks && m->format.refuses; q++)
        if (m->framed.side[GR_SEND].is_substituted[q])
            return gr_fail(error, GRAFT_ERR_NONFINITE,
                           "a row for rank %d has an element that is not finite, or a range that is no float, and does "
                           "not fit into %d bits (%s %lld, layer %d, %s; halo.nonfinite is refuse)",
                           q, m->begun.codec.bits, gr_comm_frame_epoch_name(head), (long long)head->epoch, head->layer,
                           head->direction == GR_FORWARD ? "forward" : "backward");
    return GRAFT_OK;
}

int32_t gr_halo_messages_send_until(struct gr_messages *m, int32_t peer, struct gr_team team, graft_error *error)
{
    if (m->is_detached) GR_TRY(check_raw(m, error)); /* there is no space for raw rows */
    return gr_comm_framed_send_until(&m->framed, peer, team, error);
}

int32_t gr_halo_messages_send(struct gr_messages *m, struct gr_team team, graft_error *error)
{
    GR_TRY(gr_halo_messages_send_until(m, m->comm->rank, team, error));
    gr_halo_messages_count_sent(m);
    return m->is_detached ? GRAFT_OK : check_raw(m, error);
}
