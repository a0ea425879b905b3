/* "graft.codec/1": reads the host's structs, checks them, and calls codec/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/random.h"
#include "codec/codec.h"
#include "kernel/kernel.h"

static int32_t codec_row_bytes(graft_context *context, int32_t bits, int64_t width, graft_dtype dtype, int64_t *bytes,
                               graft_error *error)
{
    const struct gr_codec codec = {
        .width = width, .dtype = dtype, .bits = bits, .code = GRAFT_CODEC_MINMAX, .rounding = GRAFT_ROUND_NEAREST
    };
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_CODEC_ID " row_bytes", error);

    if (rc == GRAFT_OK && bytes == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "bytes is null");
    if (rc == GRAFT_OK) rc = gr_codec_check(&codec, &call.error);
    if (rc == GRAFT_OK) *bytes = gr_codec_row_bytes(&codec);
    return gr_call_end(&call, rc);
}

/* Copies of the host's structs. */
struct codec_operands {
    graft_codec_args  args;
    graft_dense       rows;
    graft_codec_error error;
    struct gr_codec   codec;
};

static int32_t check_message(const struct codec_operands *o, graft_error *error)
{
    const graft_codec_args *a = &o->args;
    const int64_t           row_bytes = gr_codec_row_bytes(&o->codec), n = o->rows.n_rows;
    graft_dense             message = { .size = sizeof message, .dtype = GRAFT_BF16, .n_rows = 1, .data = a->message };

    if (row_bytes > 0 && n > INT64_MAX / 2 / row_bytes)
        return gr_fail(error, GRAFT_ERR_ARG, "a message of %lld rows is too long", (long long)n);
    if (a->message == NULL && n * row_bytes > 0) return gr_fail(error, GRAFT_ERR_ARG, "message is null");
    if (a->message_bytes < (uint64_t)(n * row_bytes))
        return gr_fail(error, GRAFT_ERR_ARG, "message_bytes is %llu, and %lld rows of %lld bytes take %lld",
                       (unsigned long long)a->message_bytes, (long long)n, (long long)row_bytes,
                       (long long)(n * row_bytes));
    message.n_cols = (n * row_bytes + 1) / 2;
    if (gr_kernel_dense_overlaps(&o->rows, &message))
        return gr_fail(error, GRAFT_ERR_ARG, "message overlaps rows in memory");
    if ((a->unencoded == NULL) != (a->n_unencoded == NULL))
        return gr_fail(error, GRAFT_ERR_ARG, "one of unencoded and n_unencoded is null, and the other is not");
    return GRAFT_OK;
}

static int32_t read_codec_args(const graft_codec_args *theirs, struct codec_operands *o, graft_error *error)
{
    GR_TRY(gr_struct_read(&o->args, sizeof o->args, theirs, "args", error));
    GR_TRY(gr_struct_read(&o->rows, sizeof o->rows, o->args.rows, "args.rows", error));
    GR_TRY(gr_kernel_dense_check(&o->rows, "rows", error));
    o->codec = (struct gr_codec){ .width = o->rows.n_cols,
                                  .dtype = o->rows.dtype,
                                  .bits = o->args.bits,
                                  .code = o->args.code,
                                  .rounding = o->args.rounding,
                                  .key = gr_random_key(o->args.seed, GR_RANDOM_CODEC, (uint64_t)o->args.epoch,
                                                       (uint64_t)o->args.layer),
                                  .isa = gr_processor_isa() };
    GR_TRY(gr_codec_check(&o->codec, error));
    GR_TRY(check_message(o, error));
    o->error = (graft_codec_error){ .size = sizeof o->error };
    o->args.rows = &o->rows;
    return GRAFT_OK;
}

static int32_t codec_encode(graft_context *context, const graft_codec_args *args, graft_error *error)
{
    struct gr_call        call;
    struct codec_operands o;
    graft_codec_error    *wanted;
    int32_t               rc = gr_call_begin(&call, context, GRAFT_CODEC_ID " encode", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(read_codec_args(args, &o, &call.error));
    wanted = o.args.error;
    if (wanted != NULL) {
        GR_TRY_DONE(gr_struct_check_out(wanted, "args.error", &call.error));
        o.args.error = &o.error;
    }
    GR_TRY_DONE(gr_codec_encode(context, &o.codec, &o.args, &call.error));
    if (wanted != NULL) rc = gr_struct_write(wanted, &o.error, sizeof o.error, "args.error", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t codec_decode(graft_context *context, const graft_codec_args *args, graft_error *error)
{
    struct gr_call        call;
    struct codec_operands o;
    int32_t               rc = gr_call_begin(&call, context, GRAFT_CODEC_ID " decode", error);

    if (rc == GRAFT_OK) rc = read_codec_args(args, &o, &call.error);
    if (rc == GRAFT_OK) rc = gr_codec_decode(context, &o.codec, &o.args, &call.error);
    return gr_call_end(&call, rc);
}

const graft_codec_api gr_interface_codec = {
    .size = sizeof(graft_codec_api),
    .row_bytes = codec_row_bytes,
    .encode = codec_encode,
    .decode = codec_decode,
};
