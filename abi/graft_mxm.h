/* "graft.mxm/1": masked product of a sparse and a dense matrix on one process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MXM_H
#define GRAFT_MXM_H

#include "graft_host.h"
#include "graft_matrix.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_MXM_ID "graft.mxm/1"

/** A sparse matrix created from a graft_csr, with the data that kernels prepare for it. */
typedef struct graft_matrix graft_matrix;

enum {
    GRAFT_MXM_ACCUMULATE = 1u, /**< C (+)= Z with the first operation of the semiring; else C = Z */
    GRAFT_MXM_REPLACE = 2u     /**< elements that the mask forbids become 0; else they keep their value ("merge") */
};

enum {
    GRAFT_EPILOGUE_RELU = 1u /**< max(z, 0); a NaN stays one */
};

/** Operations on each row of Z while it is in cache, in this order: times row_scale, + bias, + residual, ReLU, dropout.
 *  With an epilogue Z has every element: the sum, maximum or minimum over an empty row of A is 0.
 *
 *  Dropout uses a counter-based generator, so no bits need to be stored or sent. With p = round(65536 * dropout), at
 *  most 65535, element (v, j) of vertex v stays if its draw is p or more, and is multiplied by 65536 / (65536 - p). The
 *  draws of columns 8b .. 8b+7 are the 16-bit halves, low half first, of the four words of Philox 4x32-10 (Salmon et
 *  al., SC 2011) with key dropout_key and counter (b, b >> 32, v, v >> 32), each as 32 bits. */
typedef struct graft_epilogue {
    uint32_t           size;
    uint32_t           flags;    /**< GRAFT_EPILOGUE_... */
    const void        *bias;     /**< [n] bias of each column, of the type of C; or NULL */
    const graft_dense *residual; /**< [m x n] of the type of C, or NULL; may be C itself */
    double             dropout;  /**< probability of dropping an element, 0 <= dropout < 1 */
    uint64_t           dropout_key;
    const int64_t     *vertex; /**< [m] vertex of each row, for dropout; NULL: the row itself */
    uint8_t           *bits;   /**< out, or NULL: bit j%8 of bits[i*bits_stride + j/8] is 1 if (i,j) passed ReLU and
                                    dropout */
    int64_t            bits_stride; /**< bytes of a row, at least (n + 7) / 8. Unused and forbidden bits are 0 */
} graft_epilogue;

/** One product; see run(). */
typedef struct graft_mxm_args {
    uint32_t              size;
    graft_semiring        semiring;
    uint32_t              flags;         /**< GRAFT_MXM_... */
    int32_t               threads;       /**< at most this many; 0: option "threads" */
    graft_matrix         *a;             /**< [m x k] */
    const graft_dense    *b;             /**< [k x n] of the type of C; or GRAFT_BF16 where C is float */
    const graft_dense    *c;             /**< [m x n] written; must not overlap b */
    const graft_mask     *mask;          /**< over [m x n], or NULL: all elements */
    const void           *row_scale;     /**< [m] of the type of C, or NULL: factor of each row of Z */
    void                 *winner;        /**< [m x n] of the index type of A, or NULL; max and min only */
    int64_t               winner_stride; /**< elements from one row of winner to the next, at least n */
    const graft_epilogue *epilogue;      /**< operations on finished rows, or NULL */
    double               *times;         /**< out, [threads x 3], or NULL; needs `threads` of at least 1; see below */
    void (*poll)(void *arg); /**< NULL, or called with poll_arg by the calling thread, from time to time while it works,
                                  so that messages progress. A kernel that does not know this field never calls it */
    void *poll_arg;
    void (*rows_done)(void *arg, int32_t thread, int64_t begin, int64_t end); /**< NULL, or called as below */
    void *rows_arg;                                                           /**< arg of rows_done; else NULL */
} graft_mxm_args;

/* Processing of finished rows while they are in cache. rows_done(rows_arg, thread, begin, end) means that rows begin to
 * end - 1 of C, winner and bits have their final values. It is called exactly once for every row, also for rows that
 * are empty or masked, in any order and in blocks of any size, by the thread that computed them. Several threads call
 * it at once, each with a different number from 0 to threads - 1 (option "threads" if args->threads is 0), so the
 * number may index memory for each thread. It may read the operands and results, must not change them, and must not
 * call the library with this context. If a product fails, it may have been called for some rows; option mxm.verify
 * compares after it was called. For kernels that do not know it the library calls it in blocks after the product. */

/* Times of threads, to find imbalance. Thread i of the team writes in seconds of CLOCK_MONOTONIC times[3*i], when it
 * began its share, and times[3*i + 1], when it finished it, before waiting for other threads; and to times[3*i + 2] the
 * seconds of waiting between begin and end. The caller sets all to 0 before. They stay 0 for a thread without work, and
 * for kernels that do not report times. If times are not 0, the product extends an earlier one: the begin stays, and
 * the time since the earlier end counts as waiting. */

typedef struct graft_mxm_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a matrix from a graft_csr.
     *
     * \param[in]  csr    Its arrays are borrowed until matrix_destroy(), and values may change only with
     *                    matrix_update_values().
     * \param[in]  trust  0: check every row pointer, column and value, O(m + entries). 1: check nothing.
     * \param[out] matrix Unchanged on failure.
     * \return OK; ERR_ARG (null, an illegal type, a negative size); ERR_FORMAT (row pointers that do not begin at 0 or
     *         decrease, a column out of range, a value that is not finite: the message has the row); ERR_NOMEM.
     * [one-caller] [starts-openmp]. Not collective. Memory: none now; kernels prepare their own arrays at first use,
     * see matrix_bytes(). Since 0.1. */
    int32_t (*matrix_create)(graft_context *context, const graft_csr *csr, int32_t trust, graft_matrix **matrix,
                             graft_error *error);

    /** Create the transpose of a matrix, for the backward pass. It owns its arrays and does not need the original. Rows
     * are sorted by column. It has the index type and the values of the original.
     * \return OK; ERR_ARG (null; more rows than the index type can represent); ERR_NOMEM.
     * [one-caller]. Not collective. Memory: 8 (k + 1) + entries * (index + value bytes). Since 0.1. */
    int32_t (*matrix_transpose)(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                graft_error *error);

    /** Count the bytes of arrays that kernels prepared for the matrix and that it owns, in blocks of 64, without
     * borrowed arrays and without scratch memory between runs.
     * \return the number, 0 for NULL. [one-caller] Not collective. Since 0.1. */
    int64_t (*matrix_bytes)(const graft_matrix *matrix);

    /** Free the matrix. NULL is legal. [one-caller] Not collective. Since 0.1. */
    void (*matrix_destroy)(graft_matrix *matrix);

    /** Compute
     *
     *      C<M> (+)= diag(row_scale) (A (+.x) B)
     *
     * Let Z(i,j) be the sum, maximum or minimum over the entries of row i of A (see graft_semiring), times
     * row_scale[i]. Where row i of A is empty, Z has no entry. Then for every element of C:
     *
     *      allowed by the mask    ACCUMULATE      C(i,j) (+) Z(i,j); as it was if Z has no entry
     *                             else            Z(i,j); 0 if Z has no entry
     *      forbidden              REPLACE         0
     *                             else            as it was
     *
     * This is GrB_mxm of the GraphBLAS C specification with C, a full matrix, showing 0 where GrB_mxm leaves no entry.
     * With an epilogue, Z passes through it first; see graft_epilogue. B in bfloat16 is converted to float when read.
     *
     * Masks save work as follows. Rows that GRAFT_MASK_ROWS forbids are not gathered (a mask of a tenth of the rows
     * costs about a fifth). The same holds for rows, and for blocks of 256 columns that begin at multiples of 256, in
     * which GRAFT_MASK_BITS or GRAFT_MASK_BYTES allows no element. Every mask saves a separate pass over C. Single
     * elements save nothing more, because their cache lines are read for their neighbours anyway.
     *
     * With `winner` (max and min), winner(i,j) becomes the column of A that gave C(i,j), the first one if several are
     * equal. With ACCUMULATE it changes only where Z wins over the old C (a NaN wins over any number). It becomes -1
     * where C becomes 0 because Z has no entry, or because the mask forbids the element.
     *
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap of C or winner with B or each other, unknown semiring
     *         or flags, winner with a sum, times without a number of threads, rows_arg without rows_done; other
     *         overlaps with outputs are not checked); ERR_UNSUPPORTED (the kernel chosen by name and all that may
     *         replace it refuse); ERR_OPTION (no kernel has the chosen name); ERR_NOMEM; ERR_MODULE (a kernel failed,
     *         or option mxm.verify found a difference: the message has the element and both values). C is unchanged
     *         except after ERR_MODULE and after ERR_NOMEM inside a foreign library.
     * [one-caller] [starts-openmp]. Not collective. Memory: what the kernel prepares at its first run of this matrix; a
     * kernel may keep scratch memory for C on the matrix. Numerics: bitwise identical for any number of threads with
     * the same kernel. Source: GraphBLAS C API 2.0, section 4.3.1; masks as in S-SpMM, MixGCN 3.2.1. Since 0.1. */
    int32_t (*run)(graft_context *context, const graft_mxm_args *args, graft_error *error);

    /** Explain in a few lines which kernel runs `args`, why, and why preferred kernels do not; for args = NULL, which
     * kernel ran last. \param[out] text [capacity] terminated, truncated if too long.
     * \return OK; ERR_ARG (null); the codes of run() for arguments that it would refuse.
     * [one-caller] Not collective. Since 0.1. */
    int32_t (*explain)(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error);

    /** Convert a dense matrix from float to bfloat16 (rounded to nearest, ties to even, NaN to NaN), or back.
     * \param[out] to  Same shape, GRAFT_BF16 from GRAFT_F32 or the reverse; must not overlap `from`.
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap). [one-caller] [starts-openmp]. Not collective.
     * Memory: none. Since 0.1. */
    int32_t (*convert)(graft_context *context, const graft_dense *from, const graft_dense *to, graft_error *error);

    /** Compute an order of the vertices of a square matrix with better locality. A host that renumbers its data once
     * according to it has faster products afterwards.
     *
     * \param[in]  method  "degree": descending number of entries. "rcm": reverse Cuthill-McKee (1969). "community": the
     *                     groups of label propagation (Raghavan et al. 2007), larger ones first.
     * \param[out] order   [m] order[i] is the vertex at position i.
     * \return OK; ERR_ARG (null, not square); ERR_OPTION (another method); ERR_NOMEM.
     * [one-caller]. Not collective. Deterministic. Memory: 32 m bytes during the call. Since 0.1. */
    int32_t (*matrix_order)(graft_context *context, const graft_matrix *matrix, const char *method, int64_t *order,
                            graft_error *error);

    /** Create P A P^T: row i is row order[i] of A with its entries in their order, and columns renumbered, so that sums
     * are bitwise identical. It owns its arrays.
     * \return OK; ERR_ARG (null, not square, `order` not a permutation); ERR_NOMEM.
     * [one-caller]. Not collective. Memory: as matrix_transpose(), and 8 m bytes during the call. Since 0.1. */
    int32_t (*matrix_permute)(graft_context *context, const graft_matrix *matrix, const int64_t *order,
                              graft_matrix **permuted, graft_error *error);

    /** Replace the values of a matrix by values of the same type, or declare that its borrowed values were changed in
     * place. Without this call a kernel may use copies of the old values.
     *
     * \param[in] values    [entries] in the order of the entries of the matrix. Borrowed as in matrix_create(); copied
     *                      for a matrix of matrix_transpose() or matrix_permute(). NULL with `original`.
     * \param[in] original  NULL, or for a matrix of matrix_transpose() its original matrix, whose current values are
     *                      copied.
     * \return OK; ERR_ARG (null, a matrix without values, or that is not the transpose of `original`);
     *         ERR_FORMAT (a value that is not finite); ERR_NOMEM. After a failure the values are as they were.
     * [one-caller] [starts-openmp]. Not collective. Cost: a check of the values; the next product prepares the arrays
     * of its kernel again. Memory: with `original` 8 bytes a row during the call. Since 0.1. */
    int32_t (*matrix_update_values)(graft_context *context, graft_matrix *matrix, const void *values,
                                    const graft_matrix *original, graft_error *error);
} graft_mxm_api;

/* Kernels are listed by graft_api.module_info (kind "kernel") and chosen by the option "mxm.kernel": "auto", or a name.
 * The option is live: it may change between two calls on the same matrix. A kernel that cannot do a product is replaced
 * by the next one; with option "strict" a kernel chosen by name is not replaced, and run() returns ERR_UNSUPPORTED. */

GRAFT_EXTERN_C_END
#endif
