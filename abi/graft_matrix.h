/* Graft matrices: borrowed views of arrays of the host, semirings, and masks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MATRIX_H
#define GRAFT_MATRIX_H

#include "graft_base.h"

GRAFT_EXTERN_C_BEGIN

typedef int32_t graft_dtype;
enum { GRAFT_F32 = 1, GRAFT_F64 = 2, GRAFT_I32 = 3, GRAFT_I64 = 4, GRAFT_U8 = 5, GRAFT_BF16 = 6, GRAFT_F16 = 7 };

/** A semiring: the operations that combine row i of A with column j of B.
 *
 *     plus_times   Z(i,j) = sum of A(i,k) * B(k,j)         plus_second  Z(i,j) = sum of B(k,j)
 *     max_times    Z(i,j) = max of A(i,k) * B(k,j)         max_second   Z(i,j) = max of B(k,j)
 *     min_times    Z(i,j) = min of A(i,k) * B(k,j)         min_second   Z(i,j) = min of B(k,j)
 *
 * over the entries k stored in row i of A. A stored zero is an entry. If A has no values, each value is 1. A NaN
 * operand makes the result NaN, also for max and min. Sums are formed in the order of the entries. */
typedef int32_t graft_semiring;
enum {
    GRAFT_PLUS_TIMES = 1,
    GRAFT_PLUS_SECOND = 2,
    GRAFT_MAX_TIMES = 3,
    GRAFT_MAX_SECOND = 4,
    GRAFT_MIN_TIMES = 5,
    GRAFT_MIN_SECOND = 6
};

/** A sparse matrix in CSR format, borrowed. For a graph, row v holds the neighbours from which vertex v gathers, so an
 *  edge u -> v is the entry (v, u). Columns of a row may be in any order and may repeat; each occurrence counts. */
typedef struct graft_csr {
    uint32_t       size;
    graft_dtype    index_type; /**< type of col_idx: GRAFT_I32 or GRAFT_I64 */
    graft_dtype    value_type; /**< type of values: GRAFT_F32 or GRAFT_F64; 0 without values */
    uint32_t       reserved;
    int64_t        n_rows, n_cols;
    const int64_t *row_ptr; /**< [n_rows + 1] nondecreasing, from 0 to the number of entries */
    const void    *col_idx; /**< [row_ptr[n_rows]] each in 0 .. n_cols-1 */
    const void    *values;  /**< [row_ptr[n_rows]] finite, or NULL: every value is 1 */

    const int32_t *row_ptr_32; /**< 32-bit row pointers, as in scipy, PETSc and MKL; row_ptr is then NULL. The library
                                    copies them to 64 bits, 8 bytes a row; entries stay borrowed. Kernels always get
                                    row_ptr, and NULL here */
} graft_csr;

/** A dense row-major matrix, borrowed. */
typedef struct graft_dense {
    uint32_t    size;
    graft_dtype dtype; /**< GRAFT_F32 or GRAFT_F64; where a call allows it GRAFT_BF16 (the upper half of a
                            float), GRAFT_F16 (IEEE 754 binary16) or GRAFT_U8 */
    int64_t     n_rows, n_cols;
    int64_t     stride; /**< elements from one row to the next, at least n_cols */
    void       *data;   /**< written only where a comment says "out" or "written" */
} graft_dense;

/** Return a view of an array that calls only read, without gaps between its rows; the caller keeps the array.
 *  [any-thread] Not collective. Memory: none. Since 0.2. */
static inline __attribute__((unused)) graft_dense graft_dense_in(graft_dtype dtype, int64_t n_rows, int64_t n_cols,
                                                                 const void *data)
{
    graft_dense view = GRAFT_INIT(graft_dense);

    view.dtype = dtype;
    view.n_rows = n_rows;
    view.n_cols = view.stride = n_cols;
    view.data = (void *)(uintptr_t)data;
    return view;
}

/** The elements of C that may be written, as in the GraphBLAS C specification (2.0, section 3.5): M(i,j) is an entry
 *  that is present or not, and has a value. The mask allows an element
 *
 *      valued (no flag)         if the entry is present and its value is not zero,
 *      GRAFT_MASK_STRUCTURE     if the entry is present, whatever its value,
 *      GRAFT_MASK_COMPLEMENT    if the above is false.
 *
 *  kind ROWS   bit i%8 of present[i/8] means that all of row i is present; there are no values.
 *       BITS   bit j%8 of present[i*stride + j/8] means that (i,j) is present; there are no values.
 *       BYTES  present[i*stride + j] != 0 means that (i,j) is present (NULL: all are); its value is
 *              values[i*stride + j] (NULL: all are 1). These are the arrays Ab and Ax of a bitmap GrB_Matrix of
 *              type bool. */
typedef int32_t graft_mask_kind;
enum { GRAFT_MASK_ROWS = 1, GRAFT_MASK_BITS = 2, GRAFT_MASK_BYTES = 3 };
enum { GRAFT_MASK_STRUCTURE = 1u, GRAFT_MASK_COMPLEMENT = 2u };

typedef struct graft_mask {
    uint32_t        size;
    graft_mask_kind kind;
    uint32_t        flags;
    uint32_t        reserved;
    int64_t         stride; /**< bytes from one row to the next; ignored for ROWS */
    const uint8_t  *present;
    const uint8_t  *values; /**< BYTES only */
} graft_mask;

GRAFT_EXTERN_C_END
#endif
