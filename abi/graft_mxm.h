/* "graft.mxm/1": masked product of a sparse and a dense matrix on one process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MXM_H
#define GRAFT_MXM_H

#include "graft_host.h"
#include "graft_matrix.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_MXM_ID "graft.mxm/1"

/** A sparse matrix that kernels have prepared for, made from a graft_csr. */
typedef struct graft_matrix graft_matrix;

enum {
    GRAFT_MXM_ACCUMULATE = 1u, /**< C (+)= Z with the first operation of the semiring; else C = Z */
    GRAFT_MXM_REPLACE = 2u     /**< elements that the mask forbids become 0; else they stay ("merge") */
};

enum {
    GRAFT_EPILOGUE_RELU = 1u /**< max(z, 0); a NaN stays one */
};

/** What becomes of Z while its row is at hand, in this order: z times row_scale, + bias, + residual, ReLU, dropout.
 *  With an epilogue Z has every element: the sum, maximum or minimum over an empty row of A is 0 there.
 *
 *  Dropout is by counter, so that no bits need be kept or sent: with p = round(65536 * dropout), at most 65535, element
 *  (v, j) of vertex v stays if its draw is p or more, and is then multiplied by 65536 / (65536 - p). The draws of
 *  columns 8b .. 8b+7 are the halves, low half first, of the four words of Philox 4x32-10 (Salmon et al., SC 2011)
 *  with key dropout_key and counter (b, b >> 32, v, v >> 32), each as 32 bits. */
typedef struct graft_epilogue {
    uint32_t           size;
    uint32_t           flags;    /**< GRAFT_EPILOGUE_... */
    const void        *bias;     /**< [n] of the type of C, or NULL */
    const graft_dense *residual; /**< [m x n] of the type of C, or NULL; may be C itself */
    double             dropout;  /**< share that is dropped, 0 <= dropout < 1 */
    uint64_t           dropout_key;
    const int64_t     *vertex; /**< [m] vertex of each row, for dropout; NULL: the row itself */
    uint8_t           *bits;   /**< out, or NULL: bit j%8 of bits[i*bits_stride + j/8] says that (i,j) got through */
    int64_t            bits_stride; /**< bytes, at least (n + 7) / 8. Forbidden elements, and bits beyond n, are 0. */
} graft_epilogue;

/** One product; see run(). */
typedef struct graft_mxm_args {
    uint32_t              size;
    graft_semiring        semiring;
    uint32_t              flags;         /**< GRAFT_MXM_... */
    int32_t               threads;       /**< at most so many; 0: as the option "threads" says */
    graft_matrix         *a;             /**< [m x k] */
    const graft_dense    *b;             /**< [k x n] of the type of C; or GRAFT_BF16 where C is float */
    const graft_dense    *c;             /**< [m x n] written; must not overlap b */
    const graft_mask     *mask;          /**< over [m x n], or NULL: all elements */
    const void           *row_scale;     /**< [m] of the type of C, or NULL: factor of each row of Z */
    void                 *winner;        /**< [m x n] of the index type of A, or NULL; max and min only */
    int64_t               winner_stride; /**< elements from one row of winner to the next, at least n */
    const graft_epilogue *epilogue;      /**< or NULL */
    double               *times;         /**< out, or NULL: [threads x 3], threads being at least 1; see below */
    void (*poll)(void *arg); /**< or NULL: called with poll_arg by the calling thread, from time to time while it works,
                                  so that messages move on. A kernel that does not know it does without. */
    void *poll_arg;
    void (*rows_done)(void *arg, int32_t thread, int64_t begin, int64_t end); /**< or NULL; see below */
    void *rows_arg;                                                           /**< for it; NULL without it */
} graft_mxm_args;

/* What is done with rows of C while they are in the caches. rows_done(rows_arg, thread, begin, end) is told that rows
 * begin to end - 1 of C, and of winner and bits, are as the product leaves them: every row once, also where it is empty
 * or the mask forbids it, in any order, in blocks of any size, and by the thread that made them. Several threads call
 * it at once, each with a number of its own from 0 to threads - 1, where threads is what the option "threads" says if
 * args say 0; so the number may index memory for each thread. It may read all that the product has, and change none
 * of it; it must not call the library with this context. Where a product fails it may have been called for some rows,
 * and where option mxm.verify looks at the product it has been called before. A kernel that does not know it leaves
 * that to the library, which calls it in blocks when the product is done. */

/* When each thread worked, for those who look for imbalance. Thread i of the team writes times[3*i], when it began its
 * share, and times[3*i + 1], when it had done it, before it waited for the others, in seconds of CLOCK_MONOTONIC; and
 * times[3*i + 2], the seconds between these two in which it waited. The caller makes all of them 0 before. They stay 0
 * for a thread that was not needed, and for all where the kernel does not know. Where they are not 0, another product
 * is added: begin stays, and the thread waited since its end. */

typedef struct graft_mxm {
    uint32_t size;
    uint32_t reserved;

    /** Make a matrix from a graft_csr.
     *
     * \param[in]  csr    Its arrays are borrowed until matrix_destroy(): neither freed nor changed before.
     * \param[in]  trust  0: every row pointer, column and value is checked, O(m + entries). 1: the host vouches.
     * \param[out] matrix Untouched on failure.
     * \return OK; ERR_ARG (null, a type not allowed, a negative size); ERR_FORMAT (row pointers that do not begin at 0
     *         or fall, a column out of range, a value that is not finite: the message names the row); ERR_NOMEM.
     * [one-caller] [starts-openmp]. Not collective. Memory: none now; kernels prepare their own arrays at first use,
     * see matrix_bytes(). Since 1. */
    int32_t (*matrix_create)(graft_context *context, const graft_csr *csr, int32_t trust, graft_matrix **matrix,
                             graft_error *error);

    /** Make the transpose of a matrix, for the backward pass. It owns its arrays and does not need the original.
     * Entries of a row come in the order of their columns. Index type and values as in the original.
     * \return OK; ERR_ARG (null; more rows than the index type can name); ERR_NOMEM.
     * [one-caller]. Not collective. Memory: 8 (k + 1) + entries * (index + value bytes). Since 1. */
    int32_t (*matrix_transpose)(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                graft_error *error);

    /** Bytes that the kernels hold for the matrix, and that it owns itself, in whole blocks of 64, beside the borrowed
     * arrays; without the scratch that a run may keep for the next one.
     * \return the number, 0 for NULL. [one-caller] Not collective. Since 1. */
    int64_t (*matrix_bytes)(const graft_matrix *matrix);

    /** Free the matrix. NULL is legal. [one-caller] Not collective. Since 1. */
    void (*matrix_destroy)(graft_context *context, graft_matrix *matrix);

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
     * With an epilogue, Z passes through it first; see graft_epilogue. B in bfloat16 is widened to float as it is read.
     *
     * Where masks save work on a CPU: rows that GRAFT_MASK_ROWS forbids are not gathered (a mask of a tenth of the rows
     * costs about a fifth), nor are rows, or blocks of 256 columns that begin at multiples of 256, of which
     * GRAFT_MASK_BITS forbids every bit; and every mask saves the pass over C that would apply it. Single elements save
     * nothing, for their cache lines are read for their neighbours anyway; nor does GRAFT_MASK_BYTES.
     *
     * With `winner` (max and min), winner(i,j) becomes the column of A that gave C(i,j), the first one of equal ones;
     * with ACCUMULATE it changes only where Z wins over the old C, a NaN over any number; where C becomes 0 for want of
     * an entry, or because it is forbidden, -1.
     *
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap of C or winner with B or each other, unknown semiring
     *         or flags, winner with a sum, times for no number of threads, rows_arg without rows_done; that nothing
     *         else of args overlaps what is written is not checked);
     *         ERR_UNSUPPORTED (the kernel chosen by name, and every one it may fall to, refuse); ERR_OPTION (no kernel
     *         has the chosen name); ERR_NOMEM; ERR_MODULE, also when option mxm.verify finds a difference: it names
     *         element and both values. C is untouched after all but ERR_MODULE and an ERR_NOMEM from inside a foreign
     * library. [one-caller] [starts-openmp]. Not collective. Memory: what the kernel prepares at its first run of this
     * matrix; a kernel may keep scratch for C on the matrix. Numerics: the same bits for any number of threads with
     * the same kernel. Source: GraphBLAS C API 2.0, section 4.3.1; mask as in S-SpMM, MixGCN 3.2.1. Since 1. */
    int32_t (*run)(graft_context *context, const graft_mxm_args *args, graft_error *error);

    /** Say in a few lines which kernel runs `args`, why, and why the ones before it do not; for args = NULL, which one
     * ran last. \param[out] text [capacity] terminated, cut if too short.
     * \return OK; ERR_ARG; the codes of run() for arguments it would refuse. [one-caller] Not collective. Since 1. */
    int32_t (*explain)(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error);

    /** Copy a dense matrix into another type: float to bfloat16, to the nearest, ties to even (a NaN stays one), or
     *  back.
     * \param[out] to  Same shape, GRAFT_BF16 from GRAFT_F32 or the reverse; must not overlap `from`.
     * \return OK; ERR_ARG. [one-caller] [starts-openmp]. Not collective. Memory: none. Since 1. */
    int32_t (*convert)(graft_context *context, const graft_dense *from, const graft_dense *to, graft_error *error);

    /** An order of the vertices of a square matrix, in which what is read together lies closer together. A host that
     * renumbers its data by it once, when it loads them, gets faster products for all time after.
     *
     * \param[in]  method  "degree": by falling number of entries. "rcm": reverse Cuthill-McKee (1969). "community": the
     *                     groups of label propagation (Raghavan et al. 2007), the larger first.
     * \param[out] order   [m] order[i] is the vertex that comes at place i.
     * \return OK; ERR_ARG (null, not square); ERR_OPTION (another method); ERR_NOMEM.
     * [one-caller]. Not collective. Deterministic. Memory: 32 m bytes while it works. Since 1. */
    int32_t (*matrix_order)(graft_context *context, const graft_matrix *matrix, const char *method, int64_t *order,
                            graft_error *error);

    /** Make P A P^T: row i is row order[i] of A with its entries in the order they had, columns renamed likewise, so
     * that sums have the same bits as before. It owns its arrays.
     * \return OK; ERR_ARG (null, not square, `order` not a permutation); ERR_NOMEM.
     * [one-caller]. Not collective. Memory: as matrix_transpose(), and 8 m bytes while it works. Since 1. */
    int32_t (*matrix_permute)(graft_context *context, const graft_matrix *matrix, const int64_t *order,
                              graft_matrix **permuted, graft_error *error);
} graft_mxm;

/* Kernels are listed by graft_api.module_info (kind "kernel") and chosen by the option "mxm.kernel": "auto", or a name.
 * The option is live: it may change between two calls on the same matrix. A kernel that cannot do a product is stood in
 * for by the next one; with option "strict", one that was chosen by name is not: ERR_UNSUPPORTED, and why. */

GRAFT_EXTERN_C_END
#endif
