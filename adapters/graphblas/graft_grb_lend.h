/* Lends objects of GraphBLAS to Graft as operands. Arrays that Graft can read in place are not copied.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_LEND_H
#define GRAFT_GRB_LEND_H

#include "graft_grb_view.h"

#include <stdlib.h>

/** A lent object of GraphBLAS. The arrays of `csr`, `dense` or `mask` belong to the object, which must not change, or
 *  to the loan. Ends with graft_grb_return(). */
typedef struct graft_grb_loan {
    graft_csr      csr;
    graft_dense    dense;
    graft_mask     mask;
    graft_grb_view view;
    int64_t        copied; /** number of bytes that were copied or expanded */
    GrB_Matrix     made;   /**< a copy of the matrix in a form that Graft reads, or NULL */
    void          *owned[2];
} graft_grb_loan;

/** End a loan. A loan of zeros, which was never made, is legal. */
GRAFT_GRB_FN void graft_grb_return(graft_grb_loan *loan)
{
    if (loan->made != NULL) GrB_Matrix_free(&loan->made);
    free(loan->owned[0]);
    free(loan->owned[1]);
    memset(loan, 0, sizeof *loan);
}

GRAFT_GRB_FN void *graft_grb_new_array(graft_grb_loan *loan, int which, int64_t count, int64_t bytes)
{
    loan->owned[which] = calloc((size_t)(count > 0 ? count : 1), (size_t)bytes);
    loan->copied += count * bytes;
    return loan->owned[which];
}

GRAFT_GRB_FN int graft_grb_is_real(GrB_Type type)
{
    return type == GrB_FP32 || type == GrB_FP64;
}

GRAFT_GRB_FN int64_t graft_grb_row(const graft_csr *csr, int64_t row)
{
    return csr->row_ptr != NULL ? csr->row_ptr[row] : csr->row_ptr_32[row];
}

/* Let GraphBLAS make a copy of the required type and form. It transposes and converts in the same way as in GrB_mxm. */
GRAFT_GRB_FN GrB_Info graft_grb_convert(graft_grb_loan *loan, GrB_Matrix matrix, GrB_Type type, int sparsity,
                                        int by_col, int transpose)
{
    const graft_grb_view *from = &loan->view;
    const GrB_Index       n_rows = (GrB_Index)(transpose ? from->n_cols : from->n_rows);
    const GrB_Index       n_cols = (GrB_Index)(transpose ? from->n_rows : from->n_cols);
    GrB_Info              info = GrB_Matrix_new(&loan->made, type, n_rows, n_cols);

    if (info == GrB_SUCCESS)
        info = GxB_Matrix_Option_set_INT32(loan->made, GxB_FORMAT, by_col ? GxB_BY_COL : GxB_BY_ROW);
    if (info == GrB_SUCCESS) info = GxB_Matrix_Option_set_INT32(loan->made, GxB_SPARSITY_CONTROL, sparsity);
    if (info == GrB_SUCCESS && transpose) info = GrB_transpose(loan->made, NULL, NULL, matrix, NULL);
    else if (info == GrB_SUCCESS)
        info = GrB_Matrix_assign(loan->made, NULL, NULL, matrix, GrB_ALL, n_rows, GrB_ALL, n_cols, NULL);
    if (info == GrB_SUCCESS) info = graft_grb_look(loan->made, &loan->view);
    return info;
}

/* Make row pointers of all rows from the row pointers of a hypersparse matrix. */
GRAFT_GRB_FN const int64_t *graft_grb_all_rows(graft_grb_loan *loan, int64_t n_rows)
{
    const graft_grb_view *view = &loan->view;
    int64_t              *row_ptr = NULL, row = 0;

    if (n_rows < INT64_MAX / 8) row_ptr = (int64_t *)graft_grb_new_array(loan, 0, n_rows + 1, sizeof *row_ptr);
    if (row_ptr == NULL) return NULL;
    for (int64_t k = 0; k < view->n_vectors; k++) {
        const int64_t vector = view->h != NULL ? graft_grb_at(view->h, view->wide_h, k) : k;

        while (row <= vector) row_ptr[row++] = graft_grb_at(view->p, view->wide_p, k);
    }
    while (row <= n_rows) row_ptr[row++] = graft_grb_at(view->p, view->wide_p, view->n_vectors);
    return row_ptr;
}

/* Lend the values in the type of the product. An iso value is expanded, unless it is 1. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_values(graft_grb_loan *loan, GrB_Type type)
{
    const graft_grb_view *view = &loan->view;
    const int             wide = type == GrB_FP64;
    void                 *values;

    loan->csr.values = view->x;
    if (view->iso && view->entries > 0) {
        if (wide ? *(const double *)view->x == 1 : *(const float *)view->x == 1) {
            loan->csr.values = NULL;
            return GrB_SUCCESS;
        }
        values = graft_grb_new_array(loan, 1, view->entries, wide ? 8 : 4);
        if (values == NULL) return GrB_OUT_OF_MEMORY;
        for (int64_t e = 0; e < view->entries; e++) {
            if (wide) ((double *)values)[e] = *(const double *)view->x;
            else ((float *)values)[e] = *(const float *)view->x;
        }
        loan->csr.values = values;
    }
    if (view->entries > 0) loan->csr.value_type = wide ? GRAFT_F64 : GRAFT_F32;
    else loan->csr.values = NULL;
    return GrB_SUCCESS;
}

/** Lend a matrix as graft_csr, whose rows are the rows of `matrix`, or with `transpose` its columns.
 *
 *  A sparse matrix is not copied if it is held by row (by column with `transpose`), of type `type`, and with a value
 *  for each entry, or the value 1 for all entries. The row pointers of a hypersparse matrix are expanded; row pointers
 *  of 32 bits are lent unchanged. Otherwise GraphBLAS makes a copy in this form.
 *
 * \param[in]  type   GrB_FP32 or GrB_FP64; NULL: values are not needed, and `csr` has none
 * \param[out] loan   ends with graft_grb_return(), on failure too
 * \return GrB_SUCCESS; GrB_OUT_OF_MEMORY; GrB_DOMAIN_MISMATCH (`type` is another); the code of GraphBLAS for an
 *         unusable matrix, or a type that is not built in. [any-thread] Not collective. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_csr(GrB_Matrix matrix, int transpose, GrB_Type type, graft_grb_loan *loan)
{
    GrB_Info        info;
    graft_grb_view *view = &loan->view;

    memset(loan, 0, sizeof *loan);
    info = graft_grb_look(matrix, view);
    if (info == GrB_SUCCESS && type != NULL && !graft_grb_is_real(type)) info = GrB_DOMAIN_MISMATCH;
    if (info == GrB_SUCCESS &&
        (!graft_grb_is_sparse(view) || view->by_col != (transpose != 0) || (type != NULL && view->type != type))) {
        const int turn = view->by_col != (transpose != 0) && transpose;

        info = graft_grb_convert(loan, matrix, type != NULL ? type : GrB_BOOL, GxB_SPARSE, transpose && !turn, turn);
        if (info == GrB_SUCCESS) loan->copied += view->entries * (8 + view->value_bytes);
    }
    if (info != GrB_SUCCESS) return info;
    loan->csr = GRAFT_INIT(graft_csr);
    loan->csr.n_rows = view->by_col ? view->n_cols : view->n_rows;
    loan->csr.n_cols = view->length;
    loan->csr.index_type = view->wide_i ? GRAFT_I64 : GRAFT_I32;
    loan->csr.col_idx = view->i;
    if (view->sparsity == GxB_HYPERSPARSE) loan->csr.row_ptr = graft_grb_all_rows(loan, loan->csr.n_rows);
    else if (view->wide_p) loan->csr.row_ptr = (const int64_t *)view->p;
    else if (view->entries > INT32_MAX) loan->csr.row_ptr = graft_grb_all_rows(loan, loan->csr.n_rows);
    else loan->csr.row_ptr_32 = (const int32_t *)view->p;
    if (loan->csr.row_ptr == NULL && loan->csr.row_ptr_32 == NULL) return GrB_OUT_OF_MEMORY;
    return type != NULL ? graft_grb_lend_values(loan, type) : GrB_SUCCESS;
}

/* Does the same as graft_grb_lend_dense(). With `gaps` it also lends a bitmap, whose rows may be missing. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_array(GrB_Matrix matrix, int transpose, GrB_Type type, int gaps,
                                           graft_grb_loan *loan)
{
    GrB_Info        info;
    graft_grb_view *view = &loan->view;
    int64_t         elements;

    memset(loan, 0, sizeof *loan);
    info = graft_grb_look(matrix, view);
    elements = graft_grb_elements(view);
    if (info == GrB_SUCCESS && !graft_grb_is_real(type)) info = GrB_DOMAIN_MISMATCH;
    if (info == GrB_SUCCESS && view->entries != elements && (!gaps || graft_grb_is_sparse(view))) info = GrB_NO_VALUE;
    if (info == GrB_SUCCESS &&
        (graft_grb_is_sparse(view) || !graft_grb_is_held(view, transpose != 0) || view->type != type || view->iso)) {
        const int64_t bytes = graft_grb_bytes_of(type);
        const int     form = view->entries != elements ? GxB_BITMAP : GxB_FULL;

        info = graft_grb_convert(loan, matrix, type, form, transpose != 0, 0);
        if (info == GrB_SUCCESS && !view->iso) loan->copied += elements * bytes;
        if (info == GrB_SUCCESS && view->iso) {
            char *values = (char *)graft_grb_new_array(loan, 0, elements, bytes);

            if (values == NULL) return GrB_OUT_OF_MEMORY;
            for (int64_t i = 0; i < elements; i++) memcpy(values + i * bytes, view->x, (size_t)bytes);
            view->x = values;
        }
    }
    if (info != GrB_SUCCESS) return info;
    loan->dense = graft_dense_in(type == GrB_FP64 ? GRAFT_F64 : GRAFT_F32, transpose ? view->n_cols : view->n_rows,
                                 transpose ? view->n_rows : view->n_cols, view->x);
    return GrB_SUCCESS;
}

/** Lend a matrix, or a vector that was cast to one, as graft_dense, row by row, or with `transpose` column by column.
 *
 *  A full matrix, or a bitmap without gaps, is not copied if it is of type `type`, held in this order and not iso.
 *  Otherwise GraphBLAS makes a full copy.
 *
 * \param[in]  type  GrB_FP32 or GrB_FP64
 * \param[out] loan  ends with graft_grb_return(), on failure too
 * \return GrB_SUCCESS; GrB_OUT_OF_MEMORY; GrB_DOMAIN_MISMATCH (`type` is another); GrB_NO_VALUE (an element has no
 *         entry); the code of GraphBLAS. [any-thread] */
GRAFT_GRB_FN GrB_Info graft_grb_lend_dense(GrB_Matrix matrix, int transpose, GrB_Type type, graft_grb_loan *loan)
{
    return graft_grb_lend_array(matrix, transpose, type, 0, loan);
}

/* Whether each row of an array with a bitmap has all its elements or none. */
GRAFT_GRB_FN int graft_grb_has_whole_rows(const graft_dense *dense, const int8_t *b, int32_t threads)
{
    const int64_t n_cols = dense->n_cols;
    int64_t       mixed = 0;

    GRAFT_GRB_PARALLEL(graft_grb_team(threads, dense->n_rows * n_cols), reduction(+ : mixed))
    for (int64_t row = 0; row < dense->n_rows; row++)
        mixed += memcmp(b + row * n_cols, b + row * n_cols + 1, (size_t)(n_cols - 1)) != 0;
    return mixed == 0;
}

/* Copy the entries of row `row` whose columns are set in `has`, unless `to` is NULL. \return the number of these
 * entries */
GRAFT_GRB_FN int64_t graft_grb_keep_row(const graft_csr *from, int64_t row, const int8_t *has, graft_csr *to)
{
    const int64_t end = graft_grb_row(from, row + 1);
    const int     wide = from->index_type == GRAFT_I64;
    int64_t       at = to != NULL ? to->row_ptr[row] : 0, kept = 0;

    for (int64_t e = graft_grb_row(from, row); e < end; e++) {
        const int64_t column = graft_grb_at(from->col_idx, wide, e);

        if (to != NULL && has[column]) {
            if (wide) ((int64_t *)(uintptr_t)to->col_idx)[at] = column;
            else ((int32_t *)(uintptr_t)to->col_idx)[at] = (int32_t)column;
            if (from->value_type == GRAFT_F64)
                ((double *)(uintptr_t)to->values)[at] = ((const double *)from->values)[e];
            else if (from->value_type == GRAFT_F32)
                ((float *)(uintptr_t)to->values)[at] = ((const float *)from->values)[e];
            at++;
        }
        kept += has[column];
    }
    return kept;
}

/* Lend a lent sparse matrix again, without the entries in those columns k for which row k of an array with a bitmap is
 * missing. If there are no such entries, only row pointers are copied. */
GRAFT_GRB_FN GrB_Info graft_grb_keep_columns(const graft_grb_loan *from, const graft_dense *dense, const int8_t *b,
                                             int32_t threads, graft_grb_loan *kept)
{
    const graft_csr *csr = &from->csr;
    const int64_t    n_rows = csr->n_rows, entries = from->view.entries, bytes = csr->index_type == GRAFT_I64 ? 8 : 4;
    const int64_t    value_bytes = csr->values == NULL ? 0 : csr->value_type == GRAFT_F64 ? 8 : 4;
    const int32_t    team = graft_grb_team(threads, entries);
    int64_t         *row_ptr = (int64_t *)graft_grb_new_array(kept, 0, n_rows + 1, sizeof *row_ptr);
    int8_t          *has = (int8_t *)malloc((size_t)csr->n_cols + 1);
    char            *arrays = NULL;

    kept->csr = *csr;
    for (int64_t k = 0; has != NULL && k < csr->n_cols; k++) has[k] = b[k * dense->n_cols];
    if (row_ptr != NULL && has != NULL) {
        GRAFT_GRB_PARALLEL(team, )
        for (int64_t row = 0; row < n_rows; row++) row_ptr[row + 1] = graft_grb_keep_row(csr, row, has, NULL);
        for (int64_t row = 0; row < n_rows; row++) row_ptr[row + 1] += row_ptr[row];
        kept->view.entries = row_ptr[n_rows];
        if (row_ptr[n_rows] < entries)
            arrays = (char *)graft_grb_new_array(kept, 1, row_ptr[n_rows] + 1, bytes + value_bytes);
    }
    if (arrays != NULL) {
        kept->csr.row_ptr = row_ptr;
        kept->csr.row_ptr_32 = NULL;
        kept->csr.values = value_bytes > 0 ? arrays : NULL;
        kept->csr.col_idx = arrays + (row_ptr[n_rows] * value_bytes + 7) / 8 * 8;
        GRAFT_GRB_PARALLEL(team, )
        for (int64_t row = 0; row < n_rows; row++) graft_grb_keep_row(csr, row, has, &kept->csr);
    }
    free(has);
    return row_ptr != NULL && has != NULL && (arrays != NULL || kept->view.entries == entries) ? GrB_SUCCESS
                                                                                               : GrB_OUT_OF_MEMORY;
}

/* Set the bits of entries `begin` to `end` - 1 in one vector of a sparse mask. */
GRAFT_GRB_FN void graft_grb_set_bits(const graft_grb_view *view, int structural, int by_col, int64_t k, uint8_t *bits,
                                     int64_t stride)
{
    const int64_t vector = view->h != NULL ? graft_grb_at(view->h, view->wide_h, k) : k;
    const int64_t end = graft_grb_at(view->p, view->wide_p, k + 1);

    for (int64_t e = graft_grb_at(view->p, view->wide_p, k); e < end; e++) {
        const int64_t index = graft_grb_at(view->i, view->wide_i, e);
        const int64_t row = view->by_col == by_col ? vector : index, column = view->by_col == by_col ? index : vector;

        if (structural || graft_grb_is_true(view, e)) bits[row * stride + column / 8] |= (uint8_t)(1 << column % 8);
    }
}

/* Make a bit mask of a mask whose values Graft cannot read, with at most `threads` threads. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_bits(graft_grb_loan *loan, int structural, int by_col, int64_t n_rows,
                                          int64_t n_cols, int32_t threads)
{
    const graft_grb_view *view = &loan->view;
    const int             sparse = graft_grb_is_sparse(view);
    const int64_t         stride = (n_cols + 7) / 8, n_vectors = sparse ? view->n_vectors : 0;
    const int32_t         team = graft_grb_team(threads, sparse ? view->entries : n_rows * n_cols);
    uint8_t              *bits = (uint8_t *)graft_grb_new_array(loan, 0, n_rows * stride, 1);

    if (bits == NULL) return GrB_OUT_OF_MEMORY;
    GRAFT_GRB_PARALLEL(team, if (view->by_col == by_col)) /* otherwise vectors share bytes, and threads would
                                                           * conflict */
    for (int64_t k = 0; k < n_vectors; k++) graft_grb_set_bits(view, structural, by_col, k, bits, stride);
    GRAFT_GRB_PARALLEL(team, )
    for (int64_t row = 0; row < (sparse ? 0 : n_rows); row++) {
        for (int64_t j = 0, at = row * n_cols; j < n_cols; j++, at++) {
            if ((view->b == NULL || view->b[at]) && (structural || graft_grb_is_true(view, at)))
                bits[row * stride + j / 8] |= (uint8_t)(1 << j % 8);
        }
    }
    loan->mask.kind = GRAFT_MASK_BITS;
    loan->mask.stride = stride;
    loan->mask.present = bits;
    return GrB_SUCCESS;
}

/* Does the same as graft_grb_lend_mask(), with at most `threads` threads. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_mask_by(int32_t threads, GrB_Matrix matrix, int by_col, uint32_t flags,
                                             graft_grb_loan *loan)
{
    graft_grb_view *view = &loan->view;
    GrB_Info        info;
    int64_t         n_rows, n_cols;
    int             structural = (flags & GRAFT_MASK_STRUCTURE) != 0;

    memset(loan, 0, sizeof *loan);
    info = graft_grb_look(matrix, view);
    if (info != GrB_SUCCESS) return info;
    if (!graft_grb_is_sparse(view) && !graft_grb_is_held(view, by_col)) return GrB_NO_VALUE;
    if (!structural && view->value_bytes == 0) return GrB_NO_VALUE;
    n_rows = by_col ? view->n_cols : view->n_rows;
    n_cols = by_col ? view->n_rows : view->n_cols;
    structural = structural || (view->iso && view->entries > 0 && graft_grb_is_true(view, 0));
    loan->mask = GRAFT_INIT(graft_mask);
    loan->mask.flags = (flags & GRAFT_MASK_COMPLEMENT) | (structural ? GRAFT_MASK_STRUCTURE : 0);
    if (graft_grb_is_sparse(view) || (!structural && (view->iso || view->value_bytes != 1)))
        return graft_grb_lend_bits(loan, structural, by_col, n_rows, n_cols, threads);
    loan->mask.kind = GRAFT_MASK_BYTES;
    loan->mask.stride = n_cols;
    loan->mask.present = (const uint8_t *)view->b;
    loan->mask.values = structural ? NULL : (const uint8_t *)view->x;
    return GrB_SUCCESS;
}

/** Lend a mask as graft_mask, row by row, or with `by_col` column by column. `flags` has GRAFT_MASK_STRUCTURE and
 *  GRAFT_MASK_COMPLEMENT as in the descriptor. A full or bitmap mask is not copied if it is held in this order and is
 *  structural, iso, or of a type of one byte, such as bool; for other masks, an array with one bit for each element is
 *  made.
 * \return GrB_SUCCESS; GrB_OUT_OF_MEMORY; GrB_NO_VALUE (it is dense and held in the other order, or its type is not
 *         built in); the code of GraphBLAS. [any-thread] */
GRAFT_GRB_FN GrB_Info graft_grb_lend_mask(GrB_Matrix matrix, int by_col, uint32_t flags, graft_grb_loan *loan)
{
    return graft_grb_lend_mask_by(graft_grb_threads(NULL), matrix, by_col, flags, loan);
}

#endif
