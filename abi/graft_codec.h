/* "graft.codec/1": rows of numbers as messages of few bits, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_CODEC_H
#define GRAFT_CODEC_H

#include "graft_host.h"
#include "graft_matrix.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_CODEC_ID "graft.codec/1"

/** How the elements of a row become few bits. */
enum {
    GRAFT_CODEC_MINMAX =
        1, /**< levels between the least and the greatest element of the row (Sylvie; SuperGCN, AdaQP) */
    GRAFT_CODEC_ROTATED = 2 /**< 1 bit: the signs of the row after a random rotation, and one scale (DRIVE, Vargaftik et
                                 al., arXiv 2105.08339); of the bits of MINMAX, a tenth of the error. In rows of fewer
                                 than some 32 elements what is small beside the largest is lost each time, not by
                                 chance: option "halo.code" takes MINMAX for these */
};

/** Which of two levels an element between them goes to. */
enum {
    GRAFT_ROUND_NEAREST =
        1, /**< the nearer one: half of the error of the other, of which a part is the same each time */
    GRAFT_ROUND_STOCHASTIC = 2 /**< either, by chance, so that the mean of many decodings is the row */
};

/** What was lost; sums over the rows that were looked at. */
typedef struct graft_codec_error {
    uint32_t size;
    uint32_t reserved;
    int64_t  rows;
    double   nmse;   /**< sum of |x - x'|^2 / |x|^2; rows of zeros count as 0 */
    double expected; /**< what the theory expects of elements anywhere between two levels: of |x - x'|^2, D S^2 / 6 for
                         step S and D elements with MINMAX stochastic, D S^2 / 12 nearest, where rows that lie half way
                         lose 1.5 or 3 times that; (pi / 2 - 1) |x|^2 with ROTATED, for long rows */
} graft_codec_error;

/** Rows and their message. Row i of the message begins at byte i * row_bytes(); for 8 bits and fewer with 4 bytes of
 *  parameters, which are rounded before they are used, so that both sides have the same. */
typedef struct graft_codec_args {
    uint32_t           size;
    int32_t            bits;     /**< of an element: 32 (as they are), 16 (bfloat16), 8, 4, 2, 1 */
    int32_t            code;     /**< GRAFT_CODEC_...; what is not 1 bit is MINMAX */
    int32_t            rounding; /**< GRAFT_ROUND_...; looked at by encode() with MINMAX, and with 16 bits */
    int32_t            threads;  /**< 0: as option "threads" says */
    int32_t            reserved;
    uint64_t           seed; /**< of the random bits, with epoch and layer. Rotations need the same on both sides. */
    int64_t            epoch;
    int64_t            layer;
    int64_t            first;   /**< number of the first row: random bits are those of (seed, epoch, layer, row) */
    const graft_dense *rows;    /**< [n x width] F32 or F64. encode() reads it, decode() writes it */
    void              *message; /**< [message_bytes] encode() writes it, decode() reads it */
    uint64_t           message_bytes; /**< at least n * row_bytes() */
    int64_t           *raw;   /**< [n] rows that fit no code, rising: see encode(). NULL: such a row is an error */
    int64_t           *n_raw; /**< written with raw: how many they are; NULL with it */
    graft_codec_error *error; /**< of encode(): what is lost by the message; or NULL. Rows that are raw do not count. */
} graft_codec_args;

typedef struct graft_codec {
    uint32_t size;
    uint32_t reserved;

    /** Bytes of a row: ceil(bits * width / 8) + 4, and without the 4 for bits of 16 and more; F64 has 8 bytes for each
     *  element where bits are 32.
     * \return OK; ERR_ARG (null; a negative width; bits that are none of 32, 16, 8, 4, 2, 1; another type).
     * [one-caller] Not collective. Since 1. */
    int32_t (*row_bytes)(graft_context *context, int32_t bits, int64_t width, graft_dtype dtype, int64_t *bytes,
                         graft_error *error);

    /** Write rows into a message. A row whose elements are all the same, and floats, comes back exactly, but for the
     *  sign of 0. A row with a NaN or an infinity, or whose range is no float, is raw: decode() leaves it alone, and
     *  who sends the message sends such rows beside it. With 16 bits no row is raw: what is not finite stays so, and
     *  the rest stays finite.
     * \return OK; ERR_ARG (null, shapes, a value that is none of the enumeration, a message that is too short or
     *         overlaps the rows); ERR_FORMAT (a row is raw and args->raw is NULL; its number is in the message);
     *         ERR_NOMEM. After ERR_FORMAT the message is of no use.
     * [one-caller] [starts-openmp] Not collective. The same bits for any number of threads. Memory while it runs: two
     * rows for each thread. Since 1. */
    int32_t (*encode)(graft_context *context, const graft_codec_args *args, graft_error *error);

    /** Write a message back into rows. Rows that are raw stay as they were; they are in args->raw, or an error without.
     * \return as encode(); ERR_FORMAT also for parameters that no encode() writes (a scale that is not finite), after
     *         which some rows are written.
     * [one-caller] [starts-openmp] Not collective. Memory as encode(). Since 1. */
    int32_t (*decode)(graft_context *context, const graft_codec_args *args, graft_error *error);
} graft_codec;

GRAFT_EXTERN_C_END
#endif
