/* The codec converts one row of numbers to a record of fixed size in a message, and back.
 *
 * The record of a row of D elements in b < 16 bits has 4 bytes of parameters, then m = ceil(b D / 8) bytes of levels.
 * With p = 8 / b elements in a byte, byte k holds elements k, k + m, k + 2 m, ..., the first in its lowest bits: so
 * neighbouring elements of the row are neighbours in a register, and every row begins at a byte boundary.
 *
 * The parameters of MINMAX are zero and step, both bfloat16: x' = zero + q step. Zero is rounded down and the step up,
 * and the row is quantized with the rounded values: so no element lies outside the levels, and decoding is unbiased.
 * The parameter of ROTATED is the scale, a float. Neither code ever sets the sign of the second half, or has a NaN in
 * the first half: with these, record.h marks a row of equal elements, which is exact, and a row that is not encoded.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "graft_codec.h"

/** How rows are encoded. */
struct gr_codec {
    int64_t     width;
    graft_dtype dtype; /* F32, F64 */
    int32_t     bits, code, rounding;
    uint64_t    key; /* key of the random bits, which are a function of key and row number */
    enum gr_isa isa;
    int narrows; /* a row of equal doubles that floats cannot represent is rounded to float; else it is not encoded */
};

/** The result for one row. UNENCODED: the row cannot be encoded, and its record says so. INVALID: no encoder writes
 *  such a record. */
enum gr_codec_result { GR_CODEC_DONE, GR_CODEC_UNENCODED, GR_CODEC_INVALID };

/** One code, compiled for one instruction set. To add a code, write its file and add its name to the table of codec.c.
 *  Records have gr_codec_row_bytes(). */
struct gr_codec_code {
    int32_t code, bits; /* GRAFT_CODEC_...; all its numbers of bits, combined by | */

    /** Encode one row of floats. `work` is scratch memory for one row, and may be x. \return DONE or UNENCODED */
    enum gr_codec_result (*encode)(const struct gr_codec *codec, uint64_t row, const float *x, float *work,
                                   uint8_t *record);
    enum gr_codec_result (*decode)(const struct gr_codec *codec, uint64_t row, const uint8_t *record, float *x);

    /** The expected |x - x'|^2 / |x|^2 of the row of this record, where |x|^2 is `squares` > 0. NULL: 0. */
    double (*expected_error)(const struct gr_codec *codec, const uint8_t *record, double squares);
};

/** The name of the struct of a code for the instruction set that a file is compiled for. */
#define GR_CODEC_CODE(name) GR_CODEC_JOIN(name, ISA)
#define GR_CODEC_JOIN(name, isa) GR_CODEC_PASTE(name, isa)
#define GR_CODEC_PASTE(name, isa) gr_codec_##name##_##isa

/** Check bits, code, rounding, dtype and width. \return OK; ERR_ARG with a message */
int32_t gr_codec_check(const struct gr_codec *codec, graft_error *error);

/** The bytes of a record, which depend only on bits, width and dtype. */
int64_t gr_codec_row_bytes(const struct gr_codec *codec);

/** The number of floats of scratch memory that one thread needs for each element of a row. */
enum { GR_CODEC_WORK = 2 };

/** Encode row number `row`; x has elements of codec->dtype. \return DONE; UNENCODED, and the record is marked so */
enum gr_codec_result gr_codec_encode_row(const struct gr_codec *codec, int64_t row, const void *x, float *work,
                                         uint8_t *record);

/** Encode a row as gr_codec_encode_row(), and add its quantization error, if it is encoded, to `error`, unless that is
 *  NULL. */
enum gr_codec_result gr_codec_encode_measured(const struct gr_codec *codec, int64_t row, const void *x, float *work,
                                              uint8_t *record, graft_codec_error *error);

/** Decode one record. \return DONE; UNENCODED, and x is unchanged; INVALID, and x is undefined */
enum gr_codec_result gr_codec_decode_row(const struct gr_codec *codec, int64_t row, const uint8_t *record, void *x,
                                         float *work);

/** The greatest element of a row minus the least, from the parameters of its MINMAX record (8 bits and fewer). Rounding
 *  makes it a little larger than the true range. */
float gr_codec_range(const struct gr_codec *codec, const uint8_t *record);

/** Encode or decode a message, as graft_codec_api.encode() and decode(), with args and codec that have been checked;
 *  fields of args that are also in codec are ignored.
 *  \return OK; ERR_FORMAT (a row that is not encoded, and args->unencoded is NULL; an invalid record); ERR_NOMEM.
 *  [starts-openmp] */
int32_t gr_codec_encode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error);
int32_t gr_codec_decode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error);
