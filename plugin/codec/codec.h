/* Rows of numbers as few bits, and back: what a row of a message is made of.
 *
 * A row of width D in b bits has 4 bytes of parameters and then m = ceil(b D / 8) bytes. With p = 8 / b elements in a
 * byte, byte k holds elements k, k + m, k + 2 m, ..., the first in its lowest bits: so neighbours lie in neighbouring
 * lanes of a register, and every row begins with a byte of its own.
 *
 * Parameters of MINMAX are zero and step, both bfloat16: x' = zero + q step. Zero is rounded down and the step up, and
 * the row is quantised with the rounded ones, so no element lies outside of the levels and decoding is unbiased. That
 * of ROTATED is the scale, a float. What else there is has a sign that neither can have: a row whose elements are all
 * the same keeps the upper half of it as zero, 15 bits of the lower half below the sign of the step, and the last bit
 * in the first byte; a row that is raw has a NaN for zero.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_CODEC_CODEC_H
#define GR_CODEC_CODEC_H

#include "base/processor.h"
#include "graft_codec.h"

/** How rows are written. */
struct gr_codec {
    int64_t     width;
    graft_dtype dtype; /* F32, F64 */
    int32_t     bits, code, rounding;
    uint64_t    key; /* of random bits, with the number of the row */
    enum gr_isa isa;
    int         narrows; /* a row that is one double, and no float, may be the float next to it; else it is raw */
};

enum gr_codec_result { GR_CODEC_DONE, GR_CODEC_IS_RAW, GR_CODEC_IS_WRONG };

/** The loops over the elements of one row of floats, by instruction set. */
struct gr_codec_loops {
    /** Bits of 8 and fewer. `work` has room for a row; it may be x. \return DONE or IS_RAW */
    enum gr_codec_result (*encode)(const struct gr_codec *codec, uint64_t row, const float *x, float *work,
                                   uint8_t *record);
    enum gr_codec_result (*decode)(const struct gr_codec *codec, uint64_t row, const uint8_t *record, float *x);
    /** To bfloat16, and back. */
    void (*shorten)(const struct gr_codec *codec, uint64_t row, const float *x, uint8_t *record);
    void (*lengthen)(const struct gr_codec *codec, const uint8_t *record, float *x);
};

extern const struct gr_codec_loops gr_codec_generic, gr_codec_avx2, gr_codec_avx512;

/** Whether there is such a code: bits, code and rounding of it, and a width that is not negative. */
int32_t gr_codec_check(const struct gr_codec *codec, graft_error *error);

/** Bytes of a row in a message. */
int64_t gr_codec_row_bytes(const struct gr_codec *codec);

/** Floats of scratch memory that one thread needs. */
static inline int64_t gr_codec_work(const struct gr_codec *codec)
{
    return 2 * codec->width;
}

/** Write one row, whose number is `row`; `x` has elements of codec->dtype. \return DONE; IS_RAW: the record says so */
enum gr_codec_result gr_codec_encode_row(const struct gr_codec *codec, int64_t row, const void *x, float *work,
                                         uint8_t *record);

/** Read one. \return DONE; IS_RAW, and x is as it was; IS_WRONG: no encoder wrote that, and x may be anything */
enum gr_codec_result gr_codec_decode_row(const struct gr_codec *codec, int64_t row, const uint8_t *record, void *x,
                                         float *work);

/** Add to `error` what a record lost of the row that it was made of. */
void gr_codec_measure(const struct gr_codec *codec, int64_t row, const void *x, const uint8_t *record, float *work,
                      graft_codec_error *error);

/** The largest element of the row that a record was made of less the smallest, by its parameters, for MINMAX of 8 bits
 *  and fewer: a little more than it was. */
float gr_codec_range(const struct gr_codec *codec, const uint8_t *record);

/** graft_codec.encode() and decode(); args are complete and checked but for what codec says. */
int32_t gr_codec_encode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error);
int32_t gr_codec_decode(const graft_context *context, const struct gr_codec *codec, const graft_codec_args *args,
                        graft_error *error);

#endif
