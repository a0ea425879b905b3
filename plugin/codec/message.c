/* Encodes and decodes all rows of a message with a team of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"

/* The encoding or decoding of a message, which the threads share. */
struct message_job {
    const struct gr_codec  *codec;
    const graft_codec_args *args;
    float                  *work;    /* [threads x GR_CODEC_WORK x width] */
    uint8_t                *odd;     /* [rows] enum gr_codec_result of each row */
    graft_codec_error      *partial; /* [chunks] errors of each chunk of rows, or NULL */
    int64_t                 row_bytes, n_odd;
};

static void *row_of(const struct message_job *job, int64_t row)
{
    const graft_dense *rows = job->args->rows;

    return (char *)rows->data + row * rows->stride * gr_dtype_bytes(rows->dtype);
}

/* The number of a row that random bits depend on, which starts again at 0 after the largest. */
static int64_t row_number(const struct message_job *job, int64_t row)
{
    return (int64_t)((uint64_t)job->args->first + (uint64_t)row);
}

static void note_result(struct message_job *job, int64_t row, enum gr_codec_result result)
{
    job->odd[row] = (uint8_t)result;
    if (result == GR_CODEC_DONE) return;
#pragma omp atomic
    job->n_odd++;
}

static void encode_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct message_job *job = arg;
    float              *work = job->work + omp_get_thread_num() * GR_CODEC_WORK * job->codec->width;

    for (int64_t i = begin; i < end; i++)
        note_result(job, i,
                    gr_codec_encode_measured(job->codec, row_number(job, i), row_of(job, i), work,
                                             (uint8_t *)job->args->message + i * job->row_bytes,
                                             job->partial != NULL ? &job->partial[chunk] : NULL));
}

static void decode_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct message_job *job = arg;
    float              *work = job->work + omp_get_thread_num() * GR_CODEC_WORK * job->codec->width;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        const uint8_t *record = (const uint8_t *)job->args->message + i * job->row_bytes;

        note_result(job, i, gr_codec_decode_row(job->codec, row_number(job, i), record, row_of(job, i), work));
    }
}

/* List the rows that are not encoded in args->unencoded. Without that array they are an error; so is an invalid
 * record. */
static int32_t list_odd(const struct message_job *job, graft_error *error)
{
    const graft_codec_args *args = job->args;
    int64_t                 n_unencoded = 0;

    for (int64_t i = 0; i < args->rows->n_rows && job->n_odd > 0; i++) {
        if (job->odd[i] == GR_CODEC_INVALID)
            return gr_fail(error, GRAFT_ERR_FORMAT, "row %lld of the message is no record of this code", (long long)i);
        if (job->odd[i] == GR_CODEC_UNENCODED && args->unencoded == NULL)
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "row %lld cannot be encoded in %d bits: an element, or the range of the row, is not finite",
                           (long long)i, job->codec->bits);
        if (job->odd[i] == GR_CODEC_UNENCODED) args->unencoded[n_unencoded++] = i;
    }
    if (args->unencoded != NULL) *args->n_unencoded = n_unencoded;
    return GRAFT_OK;
}

static int32_t run_message(const graft_context *context, struct message_job *job, gr_chunk_fn body, graft_error *error)
{
    const graft_dense   *rows = job->args->rows;
    const struct gr_team team = { .threads = gr_context_threads(context, job->args->threads) };
    int32_t              rc = GRAFT_OK;

    GR_ASSERT(rows->n_cols == job->codec->width && rows->dtype == job->codec->dtype);
    job->row_bytes = gr_codec_row_bytes(job->codec);
    GR_TRY_DONE(GR_NEW(context, job->work, team.threads * GR_CODEC_WORK * job->codec->width, error));
    GR_TRY_DONE(GR_NEW(context, job->odd, rows->n_rows, error));
    gr_parallel_chunks(team, rows->n_rows * rows->n_cols, rows->n_rows, GR_ROWS_AT_ONCE, body, job);
    rc = list_odd(job, error);
done:
    gr_free(context, job->work);
    gr_free(context, job->odd);
    return rc;
}

int32_t gr_codec_encode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error)
{
    struct message_job job = { .codec = codec, .args = args };
    graft_codec_error *sum = args->error;
    const int64_t      chunks = gr_chunk_count(args->rows->n_rows, GR_ROWS_AT_ONCE);
    int32_t            rc = GRAFT_OK;

    if (sum != NULL) GR_TRY_DONE(GR_NEW(context, job.partial, chunks, error));
    GR_TRY_DONE(run_message(context, &job, encode_chunk, error));
    for (int64_t c = 0; sum != NULL && c < chunks; c++) {
        sum->rows += job.partial[c].rows;
        sum->nmse += job.partial[c].nmse;
        sum->expected += job.partial[c].expected;
    }
done:
    gr_free(context, job.partial);
    return rc;
}

int32_t gr_codec_decode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error)
{
    struct message_job job = { .codec = codec, .args = args };

    return run_message(context, &job, decode_chunk, error);
}
