/* "graft.codec/1": quantization of rows of numbers for messages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_CODEC_H
#define GRAFT_CODEC_H

#include "graft_host.h"
#include "graft_matrix.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_CODEC_ID "graft.codec/1"

/** The code of a quantized row. */
enum {
    GRAFT_CODEC_MINMAX =
        1, /**< equidistant levels from the least to the greatest element of the row (Sylvie, SuperGCN, AdaQP) */
    GRAFT_CODEC_ROTATED = 2 /**< 1 bit: the signs of the row after a random rotation, and one scale (DRIVE, Vargaftik et
                                 al., arXiv 2105.08339); a tenth of the error of MINMAX with 1 bit. Unbiased for rows
                                 of 32 elements and more: the mean of many decodings, each with another rotation, is
                                 the row within about 0.3 % of its norm. Narrower rows have a systematic error, because
                                 a rotation of few elements is not random enough; option "halo.codec" = q1 uses MINMAX
                                 for narrower rows */
};

/** The rounding of an element between two levels. */
enum {
    GRAFT_ROUND_NEAREST = 1,   /**< round to the nearer level: half of the squared error of STOCHASTIC, but biased */
    GRAFT_ROUND_STOCHASTIC = 2 /**< round to either level at random, unbiased: the expectation is the row */
};

/** Quantization error, summed over the encoded rows. */
typedef struct graft_codec_error {
    uint32_t size;
    uint32_t reserved;
    int64_t  rows;
    double   nmse;     /**< sum of |x - x'|^2 / |x|^2 for rows x decoded as x'; rows of zeros count as 0 */
    double   expected; /**< the theoretical expectation of nmse, with elements uniform between levels: for D elements
                         and step S, |x - x'|^2 is D S^2 / 6 with MINMAX and stochastic rounding, D S^2 / 12 with
                         nearest rounding (1.5 and 3 times as much for elements half way between levels), and (pi / 2 -
                         1) |x|^2 with ROTATED, for long rows */
} graft_codec_error;

/** Rows and their encoded message. Row i of the message begins at byte i * row_bytes(). With 8 bits and fewer it begins
 *  with 4 bytes of parameters, which are rounded before they are used, so both sides use the same values. */
typedef struct graft_codec_args {
    uint32_t           size;
    int32_t            bits;     /**< bits of an element: 32 (unchanged), 16 (bfloat16), 8, 4, 2 or 1 */
    int32_t            code;     /**< GRAFT_CODEC_...; ROTATED needs 1 bit */
    int32_t            rounding; /**< GRAFT_ROUND_...; used by encode() with MINMAX, and with 16 bits */
    int32_t            threads;  /**< 0: option "threads" */
    int32_t            reserved;
    uint64_t           seed; /**< seed of the random bits, with epoch and layer; ROTATED needs the same on both sides */
    int64_t            epoch;
    int64_t            layer;
    int64_t            first;         /**< number of the first row: random bits depend on (seed, epoch, layer, row) */
    const graft_dense *rows;          /**< [n x width] F32 or F64. encode() reads it, decode() writes it */
    void              *message;       /**< [message_bytes] encode() writes it, decode() reads it */
    uint64_t           message_bytes; /**< at least n * row_bytes() */
    int64_t           *unencoded;     /**< out, [n] indices of the rows that cannot be encoded, ascending: see encode().
                                       NULL: such a row is an error */
    int64_t           *n_unencoded;   /**< out, how many indices are stored; NULL if unencoded is NULL */
    graft_codec_error *error;         /**< out of encode(), or NULL: the quantization error of the encoded rows */
} graft_codec_args;

typedef struct graft_codec_api {
    uint32_t size;
    uint32_t reserved;

    /** Compute the bytes of an encoded row: ceil(bits * width / 8) + 4 for 8 bits and fewer, without the 4 for 16 and
     *  32 bits; with 32 bits an F64 element has 8 bytes.
     * \return OK; ERR_ARG (null; a negative width; bits other than 32, 16, 8, 4, 2, 1; another type).
     * [one-caller] Not collective. Memory: none. Since 0.1. */
    int32_t (*row_bytes)(graft_context *context, int32_t bits, int64_t width, graft_dtype dtype, int64_t *bytes,
                         graft_error *error);

    /** Encode rows into a message. A row whose elements are all equal floats is decoded exactly, except for the sign of
     *  0. A row with a NaN or an infinity, or whose range exceeds that of a float, cannot be encoded: its index is
     *  written to args->unencoded, decode() does not write it, and the sender must send it separately. With 16 bits
     *  every row can be encoded: non-finite elements stay non-finite, and finite ones stay finite.
     * \return OK; ERR_ARG (null, shapes, an unknown bits, code or rounding, a message that is too short or overlaps the
     *         rows); ERR_FORMAT (a row cannot be encoded and args->unencoded is NULL: the text has its index);
     *         ERR_NOMEM. After ERR_FORMAT the contents of the message are undefined.
     * [one-caller] [starts-openmp] Not collective. Bitwise identical for any number of threads. Memory during the call:
     * two rows for each thread. Since 0.1. */
    int32_t (*encode)(graft_context *context, const graft_codec_args *args, graft_error *error);

    /** Decode a message into rows. Rows that are not encoded stay unchanged; their indices are written to
     *  args->unencoded.
     * \return as encode(); ERR_FORMAT also for parameters that encode() never writes (a scale that is not finite),
     *         after which some rows may have been written.
     * [one-caller] [starts-openmp] Not collective. Memory: as encode(). Since 0.1. */
    int32_t (*decode)(graft_context *context, const graft_codec_args *args, graft_error *error);
} graft_codec_api;

GRAFT_EXTERN_C_END
#endif
