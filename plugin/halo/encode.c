/* Encodes and decodes the rows of messages, and measures the quantization error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/encode.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/sort.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Option halo.error_statistics=sample measures the error of one of this many rows. */
enum { SAMPLE = 64 };

/* -- codecs and places of rows ------------------------------------------------------------------------------------- */

struct gr_codec gr_halo_messages_codec(const struct gr_messages *m, const struct gr_exchange_args *args)
{
    struct gr_codec c = { .width = args->width, .dtype = args->dtype, .bits = m->format.bits[args->direction] };

    if (args->exact || c.bits == 0) c.bits = 32;
    c.code = gr_halo_row_format_code(&m->format, args->direction, c.bits, args->width);
    c.rounding = gr_halo_row_format_rounding(&m->format, args->direction, c.bits);
    c.key = gr_random_key(m->format.seed, GR_RANDOM_CODEC, (uint64_t)args->epoch,
                          GR_DIRECTIONS * (uint64_t)args->layer + (uint64_t)args->direction +
                              (args->second ? UINT64_C(1) << 32 : 0));
    c.isa = m->begun.codec.isa;
    c.narrows = m->is_detached;
    return c;
}

int64_t gr_halo_messages_row_bytes(const struct gr_messages *m, const struct gr_exchange_args *args)
{
    const struct gr_codec codec = gr_halo_messages_codec(m, args);

    return gr_codec_row_bytes(&codec);
}

static int64_t raw_row_bytes(const struct gr_messages *m)
{
    return m->begun.codec.width * gr_dtype_bytes(m->begun.codec.dtype);
}

static struct gr_codec row_codec(const struct gr_messages *m, enum gr_side side, int64_t row)
{
    struct gr_codec codec = m->begun.codec;

    if (m->begun.widths != NULL) codec.bits = m->begun.widths->bits[side][row];
    return codec;
}

static int64_t encoded_row_at(const struct gr_messages *m, enum gr_side side, int64_t row)
{
    return m->begun.widths != NULL ? m->begun.widths->at[side][row] : row * m->begun.row_bytes;
}

static uint8_t *encoded_row(const struct gr_messages *m, enum gr_side side, int64_t row)
{
    return (uint8_t *)m->side[side].encoded + encoded_row_at(m, side, row);
}

struct gr_payload gr_halo_messages_encoded(const struct gr_messages *m, enum gr_side side, int64_t begin, int64_t end)
{
    const int64_t at = encoded_row_at(m, side, begin), bytes = encoded_row_at(m, side, end) - at;

    /* Without rows the buffer is NULL. */
    return (struct gr_payload){ bytes > 0 ? m->side[side].encoded + at : NULL, (uint64_t)bytes };
}

static char *raw_row(const struct gr_messages *m, enum gr_side side, int64_t row)
{
    return (char *)m->side[side].rows.data + row * raw_row_bytes(m);
}

void gr_halo_row_widths_lay_out(const struct gr_row_widths *widths, const int64_t rows[GR_SIDES], int64_t width)
{
    struct gr_codec codec = { .width = width };

    GR_ASSERT(width >= 0);
    for (int side = 0; side < GR_SIDES; side++) {
        int64_t at = 0;

        for (int64_t row = 0; row < rows[side]; row++) {
            widths->at[side][row] = at;
            codec.bits = widths->bits[side][row];
            at += gr_codec_row_bytes(&codec);
        }
        widths->at[side][rows[side]] = at;
    }
}

/* Return the rank to which row `row` is sent, or from which it is received. */
static int32_t rank_of(const struct gr_messages *m, enum gr_side side, int64_t row)
{
    return (int32_t)gr_sorted_last(m->side[side].rows.start, m->comm->n_ranks, row);
}

/* Return the key of a row's random numbers, the same on both sides: sender, receiver, and the row's index among the
 * rows between them. */
static int64_t number_of(const struct gr_messages *m, enum gr_side side, int32_t q, int64_t row)
{
    const int64_t n_ranks = m->comm->n_ranks, rank = m->comm->rank;
    const int64_t pair = side == GR_SEND ? rank * n_ranks + q : q * n_ranks + rank;

    return pair << 32 | (row - m->side[side].rows.start[q]);
}

struct gr_team gr_halo_messages_team(const struct gr_messages *m, struct gr_team team)
{
    const int64_t each = GR_CODEC_WORK * m->begun.codec.width, most = each > 0 ? m->work.n_floats / each : 1;

    if (m->begun.encodes && team.threads > most) team.threads = (int)most;
    return team;
}

/* -- encoding ----------------------------------------------------------------------------------------------------- */

/* Whether the error of an encoded row is measured. The sampled rows change with each epoch, so that messages with few
 * rows are sampled too. */
static int is_measured(const struct gr_messages *m, int32_t bits, int64_t row)
{
    if (bits == 32 || m->format.measuring == GR_STATISTICS_NO) return 0;
    return m->format.measuring != GR_STATISTICS_SAMPLE ||
           ((uint64_t)row + (uint64_t)m->framed.begun.head.epoch) % SAMPLE == 0;
}

/* Store the measured error of a row; -1 if `error` is NULL. */
static void note_error(const struct gr_messages *m, int64_t row, const graft_codec_error *error)
{
    if (m->format.measuring == GR_STATISTICS_NO) return;
    m->work.row_error[2 * row] = error != NULL ? (float)error->nmse : -1;
    if (error != NULL) m->work.row_error[2 * row + 1] = (float)error->expected;
}

static double squares_of(const struct gr_messages *m, int64_t row)
{
    double squares = 0;
    float  sum = 0;

    if (m->begun.codec.dtype == GRAFT_F64) {
        const double *x = (const double *)(const void *)raw_row(m, GR_SEND, row);

        for (int64_t j = 0; j < m->begun.codec.width; j++) squares += x[j] * x[j];
        return squares;
    } else {
        const float *x = (const float *)(const void *)raw_row(m, GR_SEND, row);

#pragma omp simd simdlen(16) reduction(+ : sum)
        for (int64_t j = 0; j < m->begun.codec.width; j++) sum += x[j] * x[j];
        return (double)sum;
    }
}

/* Add the range and the squares of an encoded row to the sums for adaptive widths. */
static void trace_row(const struct gr_messages *m, const struct gr_codec *codec, int64_t row, const uint8_t *record)
{
    const struct gr_row_widths *widths = m->begun.widths;
    double                      range;

    if (widths == NULL) return;
    range = (double)gr_codec_range(codec, record);
    widths->spread[row] += (double)codec->width * range * range;
    widths->squares[row] += fmin(squares_of(m, row), (double)FLT_MAX);
}

void gr_halo_messages_encode(void *messages, int32_t thread, int64_t begin, int64_t end)
{
    struct gr_messages    *m = messages;
    const int64_t         *start = m->side[GR_SEND].rows.start;
    struct gr_framed_side *framed = &m->framed.side[GR_SEND];
    float                 *work = m->work.floats + thread * GR_CODEC_WORK * m->begun.codec.width;
    int32_t                q = rank_of(m, GR_SEND, begin);

    GR_ASSERT(begin >= 0 && end <= start[m->comm->n_ranks]);
    for (int64_t row = begin; row < end; row++) {
        const struct gr_codec codec = row_codec(m, GR_SEND, row);
        uint8_t              *record = encoded_row(m, GR_SEND, row);
        graft_codec_error     found = { 0 }, *error = is_measured(m, codec.bits, row) ? &found : NULL;

        while (row >= start[q + 1]) q++;
        if (gr_codec_encode_measured(&codec, number_of(m, GR_SEND, q, row), raw_row(m, GR_SEND, row), work, record,
                                     error) == GR_CODEC_DONE) {
            trace_row(m, &codec, row, record);
        } else {
            error = NULL;
            if (!m->is_detached || m->format.refuses) {
#pragma omp atomic write
                framed->is_substituted[q] = 1;
            }
        }
        note_error(m, row, error);
    }
}

/* Add the measured errors of the rows to rank q. They are not counted if the rows are also sent raw. */
static void add_errors(const struct gr_messages *m, int32_t q, struct gr_send_stats *sent)
{
    const int64_t *start = m->side[GR_SEND].rows.start;

    if (!m->begun.encodes) return;
    if (m->framed.side[GR_SEND].is_substituted[q]) {
        sent->raw = sent->rows;
        sent->raw_bytes = (int64_t)m->framed.side[GR_SEND].substitute[q].bytes;
    }
    if (sent->raw > 0 || m->format.measuring == GR_STATISTICS_NO) return;
    for (int64_t row = start[q]; row < start[q + 1]; row++) {
        if (m->work.row_error[2 * row] < 0) continue;
        sent->sampled_rows++;
        sent->nmse += (double)m->work.row_error[2 * row];
        sent->expected += (double)m->work.row_error[2 * row + 1];
    }
}

void gr_halo_messages_count_sent(struct gr_messages *m)
{
    const struct gr_framed_side *framed = &m->framed.side[GR_SEND];

    for (int32_t q = 0; q < m->comm->n_ranks; q++) {
        m->sent[q] = (struct gr_send_stats){ .rows = framed->rows[q], .bytes = (int64_t)framed->payload[q].bytes };
        add_errors(m, q, &m->sent[q]);
    }
}

void gr_halo_send_stats_add(struct gr_send_stats *sum, const struct gr_send_stats *sent)
{
    sum->rows += sent->rows;
    sum->bytes += sent->bytes;
    sum->raw += sent->raw;
    sum->raw_bytes += sent->raw_bytes;
    sum->sampled_rows += sent->sampled_rows;
    sum->nmse += sent->nmse;
    sum->expected += sent->expected;
}

/* -- decoding ----------------------------------------------------------------------------------------------------- */

struct decode_job {
    struct gr_messages *m;
    int64_t             wrong; /* index of an invalid row, or -1 */
};

static void decode_rows(void *arg, int64_t begin, int64_t end)
{
    struct decode_job            *job = arg;
    struct gr_messages           *m = job->m;
    const struct gr_message_side *side = &m->side[GR_RECEIVE];
    float                        *work = m->work.floats + omp_get_thread_num() * GR_CODEC_WORK * m->begun.codec.width;
    int32_t                       q = rank_of(m, GR_RECEIVE, begin);

    for (int64_t row = begin; row < end; row++) {
        const struct gr_codec codec = row_codec(m, GR_RECEIVE, row);
        void *const           to = raw_row(m, GR_RECEIVE, row);
        enum gr_codec_result  result;

        while (row >= side->rows.start[q + 1]) q++;
        if (m->framed.side[GR_RECEIVE].is_substituted[q]) continue;
        result =
            gr_codec_decode_row(&codec, number_of(m, GR_RECEIVE, q, row), encoded_row(m, GR_RECEIVE, row), to, work);
        if (result == GR_CODEC_DONE) continue;
        if (result == GR_CODEC_UNENCODED && m->is_detached) {
            memset(to, 0xff, (size_t)raw_row_bytes(m)); /* NaN */
            continue;
        }
#pragma omp atomic write
        job->wrong = row;
    }
}

int32_t gr_halo_messages_decode(struct gr_messages *m, void *rows, struct gr_team team, graft_error *error)
{
    const int64_t     n = m->side[GR_RECEIVE].rows.start[m->comm->n_ranks];
    struct decode_job job = { .m = m, .wrong = -1 };
    int32_t           q;

    if (!m->begun.encodes) return GRAFT_OK;
    m->side[GR_RECEIVE].rows.data = rows;
    gr_parallel_rows(gr_halo_messages_team(m, team), n * m->begun.codec.width, n, GR_ROWS_AT_ONCE, decode_rows, &job);
    if (job.wrong < 0) return GRAFT_OK;
    q = rank_of(m, GR_RECEIVE, job.wrong);
    gr_fail(error, GRAFT_ERR_FORMAT, "row %lld of the message from rank %d has a scale that no row has",
            (long long)(job.wrong - m->side[GR_RECEIVE].rows.start[q]), q);
    return gr_comm_fail(m->comm, error);
}
