/* Rows in few bits on their way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/wire.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/random.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows that a thread does at a time, and of how many one is looked at when the error is sampled. */
enum { CHUNK = 64, SAMPLE = 64 };

/* Elements of a row, from which on 1 bit is that of a rotation. */
enum { ROTATED_LEAST = 32 };

enum { OUT, IN };
enum { CODED, PLAIN };

/* What frames say of rows that have bits of their own. */
enum { MIXED_BITS = 0 };

/* The option that holds in a direction, of one that may be another backward. */
static enum gr_option_id option_of(const graft_context *context, int32_t direction, enum gr_option_id forward,
                                   enum gr_option_id backward)
{
    return direction == GR_BACKWARD && !gr_option_is(context, backward, "same") ? backward : forward;
}

static void read_direction(const graft_context *context, int32_t direction, struct gr_wire_format *f)
{
    const enum gr_option_id bits = option_of(context, direction, GR_OPTION_HALO_BITS, GR_OPTION_HALO_BITS_BACKWARD);
    const enum gr_option_id code = option_of(context, direction, GR_OPTION_HALO_CODE, GR_OPTION_HALO_CODE_BACKWARD);
    const enum gr_option_id rounding =
        option_of(context, direction, GR_OPTION_HALO_ROUNDING, GR_OPTION_HALO_ROUNDING_BACKWARD);

    f->adaptive[direction] = gr_option_is(context, bits, "adaptive");
    f->bits[direction] = f->adaptive[direction] ? 8 : (int32_t)strtol(gr_option_text(context, bits), NULL, 10);
    if (gr_option_is(context, code, "minmax")) f->code[direction] = GRAFT_CODEC_MINMAX;
    if (gr_option_is(context, code, "rotated")) f->code[direction] = GRAFT_CODEC_ROTATED;
    if (gr_option_is(context, rounding, "nearest")) f->rounding[direction] = GRAFT_ROUND_NEAREST;
    if (gr_option_is(context, rounding, "stochastic")) f->rounding[direction] = GRAFT_ROUND_STOCHASTIC;
}

struct gr_wire_format gr_wire_format(const graft_context *context)
{
    struct gr_wire_format f = { .measuring = GR_MEASURE_NONE };

    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) read_direction(context, d, &f);
    f.refuses = gr_option_is(context, GR_OPTION_HALO_NONFINITE, "refuse");
    if (gr_option_is(context, GR_OPTION_HALO_ERROR, "sample")) f.measuring = GR_MEASURE_SAMPLE;
    if (gr_option_is(context, GR_OPTION_HALO_ERROR, "exact")) f.measuring = GR_MEASURE_ALL;
    f.seed = (uint64_t)gr_option_integer(context, GR_OPTION_SEED);
    return f;
}

int32_t gr_wire_compare(const graft_context *context, struct gr_comm *comm, graft_error *error)
{
    static const char *const    names[] = { "option halo.bits (0: adaptive)",
                                            "option halo.bits_backward (0: adaptive)",
                                            "option halo.code (0 auto, 1 minmax, 2 rotated)",
                                            "option halo.code_backward (0 auto, 1 minmax, 2 rotated)",
                                            "option halo.rounding (0 auto, 1 nearest, 2 stochastic)",
                                            "option halo.rounding_backward (0 auto, 1 nearest, 2 stochastic)",
                                            "option halo.nonfinite (0 send, 1 refuse)",
                                            "option seed" };
    const struct gr_wire_format f = gr_wire_format(context);
    const uint64_t              values[] = { (uint64_t)(f.adaptive[GR_FORWARD] ? 0 : f.bits[GR_FORWARD]),
                                             (uint64_t)(f.adaptive[GR_BACKWARD] ? 0 : f.bits[GR_BACKWARD]),
                                             (uint64_t)f.code[GR_FORWARD],
                                             (uint64_t)f.code[GR_BACKWARD],
                                             (uint64_t)f.rounding[GR_FORWARD],
                                             (uint64_t)f.rounding[GR_BACKWARD],
                                             (uint64_t)f.refuses,
                                             f.seed };

    return gr_comm_compare(comm, names, values, 8, error);
}

/* A rotation by signs and a Hadamard transform of few elements is no random one: what is small beside the largest
 * element is lost each time, and not by chance. */
int32_t gr_wire_code(const struct gr_wire_format *f, int32_t direction, int32_t bits, int64_t width)
{
    if (bits != 1) return GRAFT_CODEC_MINMAX;
    if (f->code[direction] != 0) return f->code[direction];
    return width < ROTATED_LEAST ? GRAFT_CODEC_MINMAX : GRAFT_CODEC_ROTATED;
}

/* The nearest level has half the error, but errors of the same sign each time add up in gradients, of which most
 * elements are small beside the largest; and with one bit all elements in the middle of a row would go to its ends. */
int32_t gr_wire_rounding(const struct gr_wire_format *f, int32_t direction, int32_t bits)
{
    if (f->rounding[direction] != 0) return f->rounding[direction];
    return bits == 1 || direction == GR_BACKWARD ? GRAFT_ROUND_STOCHASTIC : GRAFT_ROUND_NEAREST;
}

/* How rows of a pass are written. */
static struct gr_codec codec_of(const struct gr_wire *w, const struct gr_wire_pass *pass)
{
    struct gr_codec c = { .width = pass->width, .dtype = pass->dtype, .bits = w->format.bits[pass->direction] };

    if (pass->exact || c.bits == 0) c.bits = 32;
    c.code = gr_wire_code(&w->format, pass->direction, c.bits, pass->width);
    c.rounding = gr_wire_rounding(&w->format, pass->direction, c.bits);
    c.key = gr_random_key(w->format.seed, GR_RANDOM_CODEC, (uint64_t)pass->epoch,
                          2 * (uint64_t)pass->layer + (uint64_t)pass->direction);
    c.isa = w->codec.isa;
    c.narrows = w->copies;
    return c;
}

int64_t gr_wire_row_bytes(const struct gr_wire *w, const struct gr_wire_pass *pass)
{
    const struct gr_codec codec = codec_of(w, pass);

    return gr_codec_row_bytes(&codec);
}

int32_t gr_wire_init(const graft_context *context, struct gr_comm *comm, int32_t copies, struct gr_wire *w,
                     graft_error *error)
{
    const int64_t n = comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    *w = (struct gr_wire){ .context = context, .format = gr_wire_format(context), .copies = copies };
    w->format.refuses |= copies;
    w->codec.isa = gr_processor_isa();
    GR_TRY(gr_exchange_init(context, comm, &w->exchange, error));
    GR_TRY(GR_NEW(context, w->sent, n, error));
    for (int i = 0; i < 4; i++) GR_TRY(GR_NEW(context, w->at[i / 2][i % 2], n + 1, error));
done:
    return rc;
}

void gr_wire_fini(struct gr_wire *w)
{
    const graft_context *context = w->context;

    if (context == NULL) return;
    for (int i = 0; i < 4; i++) gr_free(context, w->at[i / 2][i % 2]);
    gr_free(context, w->packed[OUT]);
    gr_free(context, w->packed[IN]);
    gr_free(context, w->sent);
    gr_free(context, w->work);
    gr_free(context, w->lost);
    gr_exchange_fini(context, &w->exchange);
    *w = (struct gr_wire){ 0 };
}

/* Have a block of so many bytes at least, whose contents do not matter. */
static int32_t grow(const struct gr_wire *w, void **block, int64_t *room, int64_t bytes, graft_error *error)
{
    void *larger;

    if (bytes <= *room) return GRAFT_OK;
    larger = gr_new(w->context, bytes, 1, "messages in few bits", error);
    if (larger == NULL) return GRAFT_ERR_NOMEM;
    gr_free(w->context, *block);
    *block = larger;
    *room = bytes;
    return GRAFT_OK;
}

static int64_t longest_row(const struct gr_wire *w, int64_t width, graft_dtype dtype)
{
    int64_t most = 0;

    for (int32_t direction = GR_FORWARD; direction <= GR_BACKWARD; direction++) {
        const struct gr_wire_pass pass = { .direction = direction, .width = width, .dtype = dtype };
        const int64_t             bytes = gr_wire_row_bytes(w, &pass);

        if ((w->format.bits[direction] < 32 || w->copies) && bytes > most) most = bytes;
    }
    return most;
}

/* Bytes of messages of one side, of scratch memory, and of what is lost, for passes of so many rows. */
struct need {
    int64_t packed, work, lost;
};

static struct need need_of(const struct gr_wire *w, const int64_t rows[2], int64_t width, graft_dtype dtype)
{
    const int64_t most = rows[0] > rows[1] ? rows[0] : rows[1], bytes = longest_row(w, width, dtype);

    if (bytes == 0) return (struct need){ 0 };
    return (struct need){ .packed = most * bytes,
                          .work = gr_threads(w->context, 0) * 2 * width * (int64_t)sizeof *w->work,
                          .lost = w->format.measuring != GR_MEASURE_NONE ? most * 2 * (int64_t)sizeof *w->lost : 0 };
}

int64_t gr_wire_room(const struct gr_wire *w, const int64_t rows[2], int64_t width, graft_dtype dtype)
{
    const struct need need = need_of(w, rows, width, dtype);

    return 2 * need.packed + need.work + need.lost;
}

int32_t gr_wire_reserve(struct gr_wire *w, const int64_t rows[2], int64_t width, graft_dtype dtype, graft_error *error)
{
    const struct need need = need_of(w, rows, width, dtype);
    int64_t work = w->work_floats * (int64_t)sizeof *w->work, lost = 2 * w->lost_rows * (int64_t)sizeof *w->lost;
    int32_t rc = GRAFT_OK;

    for (int side = OUT; side <= IN; side++)
        GR_TRY(grow(w, (void **)&w->packed[side], &w->room[side], need.packed, error));
    GR_TRY(grow(w, (void **)&w->work, &work, need.work, error));
    w->work_floats = work / (int64_t)sizeof *w->work;
    GR_TRY(grow(w, (void **)&w->lost, &lost, need.lost, error));
    w->lost_rows = lost / (2 * (int64_t)sizeof *w->lost);
done:
    return rc;
}

int64_t gr_wire_bytes(const struct gr_wire *w)
{
    const int64_t n = w->context != NULL ? w->exchange.comm->n_ranks : 0;

    return gr_exchange_bytes((int32_t)n) + n * (int64_t)sizeof *w->sent + 32 * (n + 1) + w->room[OUT] + w->room[IN] +
           w->work_floats * (int64_t)sizeof *w->work + 2 * w->lost_rows * (int64_t)sizeof *w->lost;
}

void gr_wire_seconds(const struct gr_wire *w, double *wait, double *exchange)
{
    *wait += w->exchange.wait_seconds;
    *exchange += w->exchange.exchange_seconds;
}

/* -- one pass ----------------------------------------------------------------------------------------------------- */

static int64_t plain_row_bytes(const struct gr_wire *w)
{
    return w->codec.width * (w->codec.dtype == GRAFT_F64 ? 8 : 4);
}

/* How one row is written, and where. */
static struct gr_codec row_codec(const struct gr_wire *w, int side, int64_t row)
{
    struct gr_codec codec = w->codec;

    if (w->widths != NULL) codec.bits = w->widths->bits[side][row];
    return codec;
}

static int64_t row_at(const struct gr_wire *w, int side, int64_t row)
{
    return w->widths != NULL ? w->widths->at[side][row] : row * gr_codec_row_bytes(&w->codec);
}

void gr_wire_lay_out(const struct gr_wire_widths *widths, const int64_t rows[2], int64_t width)
{
    struct gr_codec codec = { .width = width };

    for (int side = OUT; side <= IN; side++) {
        int64_t at = 0;

        for (int64_t row = 0; row < rows[side]; row++) {
            widths->at[side][row] = at;
            codec.bits = widths->bits[side][row];
            at += gr_codec_row_bytes(&codec);
        }
        widths->at[side][rows[side]] = at;
    }
}

static struct gr_exchange_side side_of(struct gr_wire *w, int side, int kind)
{
    int64_t *at = w->at[side][kind];

    for (int32_t q = 0; q <= w->exchange.comm->n_ranks; q++) {
        const int64_t row = w->rows[side].start[q];

        at[q] = kind == PLAIN ? row * plain_row_bytes(w) : row_at(w, side, row);
    }
    return (struct gr_exchange_side){ w->rows[side].start, at, kind == PLAIN ? w->rows[side].rows : w->packed[side] };
}

static int is_coded(const struct gr_wire *w)
{
    return w->codec.bits < 32 || w->copies;
}

int32_t gr_wire_receive(struct gr_wire *w, const struct gr_wire_pass *pass, struct gr_wire_rows in, graft_error *error)
{
    const int32_t   plain_bits = pass->dtype == GRAFT_F64 ? 64 : 32;
    struct gr_frame head = { .layer = pass->layer,
                             .direction = (int16_t)pass->direction,
                             .semiring = (int16_t)pass->semiring,
                             .flags = (int16_t)pass->flags,
                             .epoch = pass->epoch,
                             .width = pass->width };

    w->codec = codec_of(w, pass);
    w->widths = pass->widths;
    w->rows[IN] = in;
    head.bits = (int16_t)(w->widths != NULL ? MIXED_BITS : w->codec.bits < 32 ? w->codec.bits : plain_bits);
    return gr_exchange_receive(&w->exchange, &head, side_of(w, IN, is_coded(w) ? CODED : PLAIN), error);
}

/* The rank that row `row` of a side goes to or comes from. */
static int32_t rank_of(const struct gr_wire *w, int side, int64_t row)
{
    const int64_t *start = w->rows[side].start;
    int32_t        low = 0, high = w->exchange.comm->n_ranks;

    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;

        if (start[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

/* What a row is known by to both sides: sender, receiver, and its number among those between them. */
static int64_t number_of(const struct gr_wire *w, int side, int32_t q, int64_t row)
{
    const int64_t n = w->exchange.comm->n_ranks, mine = w->exchange.comm->rank;
    const int64_t pair = side == OUT ? mine * n + q : q * n + mine;

    return pair << 32 | (row - w->rows[side].start[q]);
}

struct gr_team gr_wire_team(const struct gr_wire *w, struct gr_team team)
{
    const int64_t each = gr_codec_work(&w->codec), room = each > 0 ? w->work_floats / each : 1;

    if (is_coded(w) && team.threads > room) team.threads = (int)room;
    return team;
}

static char *plain_row(const struct gr_wire *w, int side, int64_t row)
{
    return (char *)w->rows[side].rows + row * plain_row_bytes(w);
}

static void look_at(struct gr_wire *w, const struct gr_codec *codec, int64_t row, int64_t number, const uint8_t *record,
                    float *work)
{
    graft_codec_error error = { 0 };

    w->lost[2 * row] = -1;
    if (codec->bits == 32) return;
    /* Others in each epoch, so that no pair of ranks is too small to be seen. */
    if (w->format.measuring == GR_MEASURE_SAMPLE && ((uint64_t)row + (uint64_t)w->exchange.head.epoch) % SAMPLE != 0)
        return;
    gr_codec_measure(codec, number, plain_row(w, OUT, row), record, work, &error);
    w->lost[2 * row] = (float)error.nmse;
    w->lost[2 * row + 1] = (float)error.expected;
}

/* What adaptive bits are decided by; no codec: no code fits the row. */
static void trace(const struct gr_wire *w, const struct gr_codec *codec, int64_t row, const uint8_t *record)
{
    double squares = 0;
    float  sum = 0;

    if (w->widths == NULL) return;
    w->widths->range[row] = w->widths->squares[row] = 0;
    if (codec == NULL) return;
    if (codec->dtype == GRAFT_F64) {
        const double *x = (const double *)(const void *)plain_row(w, OUT, row);

        for (int64_t j = 0; j < codec->width; j++) squares += x[j] * x[j];
    } else {
        const float *x = (const float *)(const void *)plain_row(w, OUT, row);

#pragma omp simd simdlen(16) reduction(+ : sum)
        for (int64_t j = 0; j < codec->width; j++) sum += x[j] * x[j];
        squares = (double)sum;
    }
    w->widths->range[row] = gr_codec_range(codec, record);
    w->widths->squares[row] = (float)fmin(squares, (double)FLT_MAX);
}

/* exchange.plain_out[q] becomes not 0 where a row for rank q fits no code. */
static void encode(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct gr_wire *w = arg;
    float          *work = w->work + thread * gr_codec_work(&w->codec);
    int32_t         q = rank_of(w, OUT, begin);

    for (int64_t row = begin; row < end; row++) {
        const struct gr_codec codec = row_codec(w, OUT, row);
        uint8_t              *record = (uint8_t *)w->packed[OUT] + row_at(w, OUT, row);
        int64_t               number;

        while (row >= w->rows[OUT].start[q + 1]) q++;
        number = number_of(w, OUT, q, row);
        if (gr_codec_encode_row(&codec, number, plain_row(w, OUT, row), work, record) != GR_CODEC_DONE) {
#pragma omp atomic write
            w->exchange.plain_out[q] = 1;
            if (w->format.measuring != GR_MEASURE_NONE) w->lost[2 * row] = -1;
            trace(w, NULL, row, record);
            continue;
        }
        if (w->format.measuring != GR_MEASURE_NONE) look_at(w, &codec, row, number, record, work);
        trace(w, &codec, row, record);
    }
}

/* Rows that were looked at, by the rank that they go to; where some fit no code, they go as they are besides. */
static void sum_losses(const struct gr_wire *w, int32_t q, struct gr_wire_sent *sent)
{
    if (!is_coded(w)) return;
    if (w->exchange.plain_out[q]) sent->raw = sent->rows;
    sent->raw_bytes = sent->raw * plain_row_bytes(w);
    if (sent->raw > 0) return; /* nothing is lost of them */
    for (int64_t row = w->rows[OUT].start[q]; row < w->rows[OUT].start[q + 1]; row++) {
        if (w->format.measuring == GR_MEASURE_NONE || w->lost[2 * row] < 0) continue;
        sent->looked_at++;
        sent->nmse += (double)w->lost[2 * row];
        sent->expected += (double)w->lost[2 * row + 1];
    }
}

/* exchange.plain_out is by rank still. */
static void count_sent(struct gr_wire *w)
{
    const struct gr_exchange_side *out = &w->exchange.out;

    for (int32_t q = 0; q < w->exchange.comm->n_ranks; q++) {
        w->sent[q] =
            (struct gr_wire_sent){ .rows = out->start[q + 1] - out->start[q], .bytes = out->at[q + 1] - out->at[q] };
        sum_losses(w, q, &w->sent[q]);
    }
}

void gr_wire_sent_add(struct gr_wire_sent *sum, const struct gr_wire_sent *sent)
{
    sum->rows += sent->rows;
    sum->bytes += sent->bytes;
    sum->raw += sent->raw;
    sum->raw_bytes += sent->raw_bytes;
    sum->looked_at += sent->looked_at;
    sum->nmse += sent->nmse;
    sum->expected += sent->expected;
}

/* Messages with rows that fit no code go as they are, or not at all. */
static int32_t look_at_plain(const struct gr_wire *w, graft_error *error)
{
    for (int32_t q = 0; q < w->exchange.comm->n_ranks && w->format.refuses; q++)
        if (w->exchange.plain_out[q])
            return gr_fail(
                error, GRAFT_ERR_FORMAT,
                "a row for rank %d has an element that is not finite, or a range that is no float, and does "
                "not fit into %d bits (epoch %lld, layer %d, %s; halo.nonfinite is refuse, or halo.async is yes)",
                q, w->codec.bits, (long long)w->exchange.head.epoch, w->exchange.head.layer,
                w->exchange.head.direction == GR_FORWARD ? "forward" : "backward");
    return GRAFT_OK;
}

/* From flags by rank to flags by message. */
static void flag_messages(struct gr_exchange *x)
{
    for (int32_t i = 0; i < x->n_out; i++) x->plain_out[i] = x->plain_out[x->to[i]];
}

void gr_wire_out(struct gr_wire *w, struct gr_wire_rows out)
{
    w->rows[OUT] = out;
}

gr_wire_encoder gr_wire_encoder_of(const struct gr_wire *w)
{
    return is_coded(w) ? encode : NULL;
}

int32_t gr_wire_send(struct gr_wire *w, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (is_coded(w)) {
        if (!w->copies)
            gr_exchange_spare(&w->exchange, w->codec.dtype == GRAFT_F64 ? 64 : 32, side_of(w, IN, PLAIN),
                              side_of(w, OUT, PLAIN));
        GR_TRY(look_at_plain(w, error));
    }
    gr_exchange_out(&w->exchange, side_of(w, OUT, is_coded(w) ? CODED : PLAIN));
    count_sent(w);
    flag_messages(&w->exchange);
    rc = gr_exchange_send(&w->exchange, team, error);
done:
    return rc;
}

/* What the threads find in what came. */
struct job {
    struct gr_wire *wire;
    uint8_t        *plain; /* [n_ranks] not 0: rows from it are as they are */
    int64_t         wrong; /* a row that no encoder wrote, or -1 */
};

static void decode_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct job     *job = arg;
    struct gr_wire *w = job->wire;
    float          *work = w->work + omp_get_thread_num() * gr_codec_work(&w->codec);
    int32_t         q = rank_of(w, IN, begin);

    (void)chunk;
    for (int64_t row = begin; row < end; row++) {
        const struct gr_codec codec = row_codec(w, IN, row);
        const uint8_t        *record = (const uint8_t *)w->packed[IN] + row_at(w, IN, row);

        while (row >= w->rows[IN].start[q + 1]) q++;
        if (job->plain[q]) continue;
        if (gr_codec_decode_row(&codec, number_of(w, IN, q, row), record, plain_row(w, IN, row), work) == GR_CODEC_DONE)
            continue;
#pragma omp atomic write
        job->wrong = row;
    }
}

static int32_t decode(struct gr_wire *w, struct gr_team team, graft_error *error)
{
    const int64_t rows = w->rows[IN].start[w->exchange.comm->n_ranks];
    struct job    job = { .wire = w, .plain = w->exchange.plain_out, .wrong = -1 };

    memset(job.plain, 0, (uint64_t)w->exchange.comm->n_ranks);
    for (int32_t i = 0; i < w->exchange.n_in; i++) job.plain[w->exchange.from[i]] = w->exchange.plain_in[i];
    gr_parallel_chunks(gr_wire_team(w, team), rows * w->codec.width, rows, CHUNK, decode_rows, &job);
    if (job.wrong < 0) return GRAFT_OK;
    gr_fail(error, GRAFT_ERR_FORMAT, "row %lld of the message from rank %d has a scale that no row has",
            (long long)number_of(w, IN, rank_of(w, IN, job.wrong), job.wrong) & 0xFFFFFFFF, rank_of(w, IN, job.wrong));
    return gr_comm_fail(w->exchange.comm, error);
}

int32_t gr_wire_end(struct gr_wire *w, struct gr_team team, graft_error *error)
{
    const int32_t rc = gr_exchange_end(&w->exchange, team, error);

    return rc < 0 || !is_coded(w) ? rc : decode(w, team, error);
}
