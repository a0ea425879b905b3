/* Multiplies a dense matrix held by row by a sparse one. Each block of rows takes one pass over the sparse matrix.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_WIDE_H
#define GRAFT_GRB_WIDE_H

#include "graft_grb_product.h"

#include <fenv.h>

enum { GRAFT_GRB_BLOCK = 16 }; /* number of rows in a block: a cache line for each column of the result */

/* The floating-point mode of a thread: rounding, flushing of denormals, and traps. */
#if defined(__x86_64__)
typedef unsigned graft_grb_mode; /* MXCSR */
#else
typedef fenv_t graft_grb_mode;
#endif

/* Set the mode of this thread, unless it is NULL. \return the previous mode */
GRAFT_GRB_FN graft_grb_mode graft_grb_swap_mode(const graft_grb_mode *mode)
{
#if defined(__x86_64__)
    const unsigned before = __builtin_ia32_stmxcsr();

    if (mode != NULL) __builtin_ia32_ldmxcsr(*mode);
#else
    fenv_t before;

    fegetenv(&before);
    if (mode != NULL) fesetenv(mode);
#endif
    return before;
}

/* Compute `count` rows of D A. The result is stored by columns: sums[column x GRAFT_GRB_BLOCK + row]. */
GRAFT_GRB_FN void graft_grb_sum_block(const graft_csr *a, const float *d, int64_t count, float *sums)
{
    const int    wide = a->index_type == GRAFT_I64;
    const float *values = (const float *)a->values;

    memset(sums, 0, (size_t)a->n_cols * GRAFT_GRB_BLOCK * sizeof *sums);
    for (int64_t k = 0; k < a->n_rows; k++) {
        const int64_t begin = graft_grb_row(a, k), end = graft_grb_row(a, k + 1);
        float         x[GRAFT_GRB_BLOCK] = { 0 };

        /* Lanes beyond the block repeat its last row, so they raise no other exceptions than this row does. */
        for (int64_t i = 0; i < GRAFT_GRB_BLOCK && begin < end; i++)
            x[i] = d[(i < count ? i : count - 1) * a->n_rows + k];
        for (int64_t e = begin; e < end; e++) {
            const float value = values != NULL ? values[e] : 1;
            float      *to = sums + graft_grb_at(a->col_idx, wide, e) * GRAFT_GRB_BLOCK;

            for (int i = 0; i < GRAFT_GRB_BLOCK; i++) to[i] += value * x[i];
        }
    }
}

/* Compute Z = D A, with D [m x k] and Z [m x n] stored row by row. The sums of an element follow the order of rows of
 * A, for any number of threads. \return whether there was enough memory */
GRAFT_GRB_FN int graft_grb_multiply_blocks(const graft_csr *a, const float *d, int64_t m, int32_t threads, float *z)
{
    const int64_t n = a->n_cols, blocks = (m + GRAFT_GRB_BLOCK - 1) / GRAFT_GRB_BLOCK;
    int           failed = 0;

    const graft_grb_mode caller = graft_grb_swap_mode(NULL);

    threads = blocks < threads ? (int32_t)blocks : threads;
    GRAFT_GRB_PARALLEL(threads, schedule(static, 1) reduction(| : failed))
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t        first = block * GRAFT_GRB_BLOCK, left = m - first;
        const int64_t        count = left < (int64_t)GRAFT_GRB_BLOCK ? left : (int64_t)GRAFT_GRB_BLOCK;
        const graft_grb_mode own = graft_grb_swap_mode(&caller);
        float               *sums = (float *)malloc((size_t)(n + 1) * GRAFT_GRB_BLOCK * sizeof *sums);

        failed |= sums == NULL;
        if (sums != NULL) graft_grb_sum_block(a, d + first * a->n_rows, count, sums);
        for (int64_t j = 0; sums != NULL && j < n; j++) {
            for (int64_t i = 0; i < count; i++) z[(first + i) * n + j] = sums[j * GRAFT_GRB_BLOCK + i];
        }
        free(sums);
        graft_grb_swap_mode(&own);
    }
    return !failed;
}

/* Write a row of the bitmap of Z, which marks the columns of A that have entries. \return the number of these
 * columns */
GRAFT_GRB_FN int64_t graft_grb_find_columns(const graft_csr *a, int8_t *row)
{
    const int64_t entries = graft_grb_row(a, a->n_rows);
    int64_t       found = 0;

    memset(row, 0, (size_t)a->n_cols);
    for (int64_t e = 0; e < entries; e++) row[graft_grb_at(a->col_idx, a->index_type == GRAFT_I64, e)] = 1;
    for (int64_t j = 0; j < a->n_cols; j++) found += row[j];
    return found;
}

/* Lend D and P of Z = D P. \return NULL, or the reason why GraphBLAS must compute the product */
GRAFT_GRB_FN const char *graft_grb_lend_wide(graft_grb *grb, struct graft_grb_product *p)
{
    const int      first = p->ring.multiply == GRAFT_GRB_FIRST;
    graft_grb_view sparse, dense;
    int64_t        rows;

    if (p->ring.monoid != 0 || p->ring.type != GrB_FP32 || (p->ring.multiply != GRAFT_GRB_TIMES && !first) ||
        p->m != NULL)
        return "its left operand is dense and held by row";
    if (graft_grb_look(p->sparse, &sparse) != GrB_SUCCESS || graft_grb_look(p->dense, &dense) != GrB_SUCCESS)
        return "an operand cannot be used";
    if (sparse.value_bytes == 0 || dense.value_bytes == 0) return "an operand has a type that is not built in";
    rows = p->flags.transpose0 ? dense.n_cols : dense.n_rows;
    if (dense.entries != graft_grb_elements(&dense)) return "the dense operand has elements without entries";
    if (dense.iso) return "the dense operand is one value for many elements";
    if ((double)sparse.entries * (double)rows < (double)grb->least_work) return "it is small";
    if (rows < grb->least_columns) return "it has few rows";
    if (sparse.entries < (p->sparse_transpose ? sparse.n_rows : sparse.n_cols) / 8) return "the result would be sparse";
    if (graft_grb_lend_csr(p->sparse, p->sparse_transpose, first ? NULL : p->ring.type, &p->a) != GrB_SUCCESS ||
        graft_grb_lend_dense(p->dense, p->flags.transpose0, p->ring.type, &p->b) != GrB_SUCCESS)
        return "an operand cannot be lent";
    if (p->b.dense.n_cols != p->a.csr.n_rows || p->b.dense.n_rows != p->old.n_rows || p->a.csr.n_cols != p->old.n_cols)
        return "the dimensions do not match";
    grb->copied = p->a.copied + p->b.copied;
    return NULL;
}

/* Compute Z = D P in a separate object, and then assign it to C. */
GRAFT_GRB_FN const char *graft_grb_multiply_wide(graft_grb *grb, struct graft_grb_product *p, GrB_Info *info)
{
    const char      *why = graft_grb_lend_wide(grb, p);
    const int64_t    m = p->b.dense.n_rows, n = p->a.csr.n_cols;
    graft_grb_result result = { m, n, 0, p->ring.type, NULL, NULL, 0 };
    int8_t          *row = why == NULL ? (int8_t *)malloc((size_t)n + 1) : NULL;
    const int64_t    columns = row != NULL ? graft_grb_find_columns(&p->a.csr, row) : 0;

    if (why == NULL && row != NULL && columns < n / 8) why = "the result would be sparse";
    if (why == NULL &&
        (row == NULL || graft_grb_new_result(grb, &result, columns < n) != GrB_SUCCESS ||
         !graft_grb_multiply_blocks(&p->a.csr, (const float *)p->b.dense.data, m, p->threads, (float *)result.x)))
        why = "there is no memory for the result";
    for (int64_t i = 0; why == NULL && result.b != NULL && i < m; i++) memcpy(result.b + i * n, row, (size_t)n);
    free(row);
    result.entries = m * columns;
    if (why == NULL) *info = graft_grb_finish(p, &result);
    graft_grb_drop_result(&result);
    return why == NULL && *info != GrB_SUCCESS && *info != GrB_OUT_OF_MEMORY ? "its arguments are refused" : why;
}

#endif
