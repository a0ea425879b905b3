/* Makes the result of a product an object of GraphBLAS. The result is written in place if possible. Otherwise it is
 * made in memory that GraphBLAS allocates, and then moved or assigned to C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_STORE_H
#define GRAFT_GRB_STORE_H

#include "graft_grb_lend.h"
#include "graft_grb_state.h"

/** A result of n_rows x n_cols elements, row by row. With `by_col` the object of GraphBLAS is held by column, and then
 * it has n_cols rows. */
typedef struct graft_grb_result {
    int64_t  n_rows, n_cols;
    int      by_col;
    GrB_Type type;
    void    *x;
    int8_t  *b; /**< bitmap of entries; NULL if every element is an entry */
    int64_t  entries;
} graft_grb_result;

/* Allocate an array that GraphBLAS may own. It comes from the function malloc with which GraphBLAS was started. If that
 * is unknown, it comes from GraphBLAS itself: a matrix that is assigned one value and then another has an array of all
 * elements, which is written once. */
GRAFT_GRB_FN GrB_Info graft_grb_allocate(const graft_grb *grb, GrB_Type type, int64_t n_rows, int64_t n_cols,
                                         void **array)
{
    GrB_Matrix      matrix = NULL;
    GrB_Index       bytes = 0;
    const GrB_Index m = (GrB_Index)n_rows, n = (GrB_Index)n_cols, needed = m * n * (GrB_Index)graft_grb_bytes_of(type);
    GrB_Info        info;

    if (grb->allocate != NULL) return (*array = grb->allocate(needed)) != NULL ? GrB_SUCCESS : GrB_OUT_OF_MEMORY;
    info = GrB_Matrix_new(&matrix, type, m, n);
    if (info == GrB_SUCCESS) info = GxB_Matrix_Option_set_INT32(matrix, GxB_FORMAT, GxB_BY_ROW);
    if (info == GrB_SUCCESS) info = GxB_Matrix_Option_set_INT32(matrix, GxB_SPARSITY_CONTROL, GxB_FULL);
    if (info == GrB_SUCCESS) info = GrB_Matrix_assign_FP64(matrix, NULL, NULL, 0, GrB_ALL, m, GrB_ALL, n, NULL);
    if (info == GrB_SUCCESS) info = GrB_Matrix_setElement_FP64(matrix, 1, 0, 0);
    if (info == GrB_SUCCESS) info = GxB_Matrix_unpack_FullR(matrix, array, &bytes, NULL, NULL);
    if (info == GrB_SUCCESS && bytes < needed) info = GrB_PANIC;
    GrB_Matrix_free(&matrix);
    return info;
}

/* Pass the arrays of a result to a matrix of its shape and type, which then owns them. */
GRAFT_GRB_FN GrB_Info graft_grb_pack(GrB_Matrix matrix, int by_col, graft_grb_result *result)
{
    const GrB_Index elements = (GrB_Index)(result->n_rows * result->n_cols);
    const GrB_Index bytes = elements * (GrB_Index)graft_grb_bytes_of(result->type);
    const GrB_Index entries = (GrB_Index)result->entries;

    if (result->b == NULL && by_col) return GxB_Matrix_pack_FullC(matrix, &result->x, bytes, 0, NULL);
    if (result->b == NULL) return GxB_Matrix_pack_FullR(matrix, &result->x, bytes, 0, NULL);
    if (by_col) return GxB_Matrix_pack_BitmapC(matrix, &result->b, &result->x, elements, bytes, 0, entries, NULL);
    return GxB_Matrix_pack_BitmapR(matrix, &result->b, &result->x, elements, bytes, 0, entries, NULL);
}

/* Make a matrix that owns the arrays of a result. */
GRAFT_GRB_FN GrB_Info graft_grb_new_matrix(graft_grb_result *result, GrB_Matrix *matrix)
{
    const GrB_Index rows = (GrB_Index)(result->by_col ? result->n_cols : result->n_rows);
    const GrB_Index columns = (GrB_Index)(result->by_col ? result->n_rows : result->n_cols);
    GrB_Info        info = GrB_Matrix_new(matrix, result->type, rows, columns);

    return info == GrB_SUCCESS ? graft_grb_pack(*matrix, result->by_col, result) : info;
}

/* Allocate the arrays of a result, including a bitmap if some elements are not entries. */
GRAFT_GRB_FN GrB_Info graft_grb_new_result(const graft_grb *grb, graft_grb_result *result, int gaps)
{
    GrB_Info info = graft_grb_allocate(grb, result->type, result->n_rows, result->n_cols, &result->x);
    void    *b = NULL;

    if (info == GrB_SUCCESS && gaps) info = graft_grb_allocate(grb, GrB_INT8, result->n_rows, result->n_cols, &b);
    result->b = (int8_t *)b;
    return info;
}

/* Return the arrays of an unused result to GraphBLAS. */
GRAFT_GRB_FN void graft_grb_drop_result(graft_grb_result *result)
{
    GrB_Matrix       matrix = NULL;
    graft_grb_result bytes = *result;

    if (result->b != NULL) {
        bytes.type = GrB_INT8;
        bytes.x = result->b;
        bytes.b = NULL;
        graft_grb_new_matrix(&bytes, &matrix);
        GrB_Matrix_free(&matrix);
    }
    result->b = NULL;
    if (result->x != NULL) graft_grb_new_matrix(result, &matrix);
    GrB_Matrix_free(&matrix);
    result->x = NULL;
}

/* Take the arrays of a full or bitmap matrix, which then has no entries. A full matrix has no bitmap. */
GRAFT_GRB_FN GrB_Info graft_grb_unpack(GrB_Matrix matrix, const graft_grb_view *view, graft_grb_result *result)
{
    GrB_Index b_bytes = 0, x_bytes = 0, entries = 0;
    bool      iso = 0;

    if (view->sparsity == GxB_FULL && view->by_col)
        return GxB_Matrix_unpack_FullC(matrix, &result->x, &x_bytes, &iso, NULL);
    if (view->sparsity == GxB_FULL) return GxB_Matrix_unpack_FullR(matrix, &result->x, &x_bytes, &iso, NULL);
    if (view->by_col)
        return GxB_Matrix_unpack_BitmapC(matrix, &result->b, &result->x, &b_bytes, &x_bytes, &iso, &entries, NULL);
    return GxB_Matrix_unpack_BitmapR(matrix, &result->b, &result->x, &b_bytes, &x_bytes, &iso, &entries, NULL);
}

/* Write 1 for each element of a row that the mask allows, and 0 for the others. */
GRAFT_GRB_FN void graft_grb_expand_row(const graft_mask *mask, int64_t row, int64_t n_cols, int8_t *allowed)
{
    const int      flip = (mask->flags & GRAFT_MASK_COMPLEMENT) != 0;
    const uint8_t *present = mask->present != NULL ? mask->present + row * mask->stride : NULL;
    const uint8_t *values = mask->values != NULL ? mask->values + row * mask->stride : NULL;

    if (mask->kind == GRAFT_MASK_BITS) {
        for (int64_t j = 0; j < n_cols; j++) allowed[j] = (int8_t)((present[j / 8] >> j % 8 & 1) ^ flip);
    } else if (present != NULL && values != NULL) {
        for (int64_t j = 0; j < n_cols; j++) allowed[j] = (int8_t)(((present[j] != 0) & (values[j] != 0)) ^ flip);
    } else if (present != NULL || values != NULL) {
        const uint8_t *only = present != NULL ? present : values;

        for (int64_t j = 0; j < n_cols; j++) allowed[j] = (int8_t)((only[j] != 0) ^ flip);
    } else {
        memset(allowed, !flip, (size_t)n_cols);
    }
}

/** The bitmap of a result while the product is computed. An element that the mask allows is an entry if its row of the
 * sparse operand is not empty. A forbidden element keeps its value in `b` with `keep`; otherwise it becomes `rest`. */
typedef struct graft_grb_bitmap {
    int8_t           *b;
    int64_t           n_cols;
    const graft_csr  *csr;
    const graft_mask *mask; /**< the mask, or NULL */
    int               keep, rest;
    int64_t           entries;
} graft_grb_bitmap;

/* The sum of bytes that are 0 or 1. */
GRAFT_GRB_FN int64_t graft_grb_count_ones(const int8_t *b, int64_t count)
{
    int64_t ones = 0, j = 0;

    for (; j + 8 <= count; j += 8) {
        uint64_t eight;

        memcpy(&eight, b + j, sizeof eight);
        ones += (int64_t)(eight * 0x0101010101010101u >> 56);
    }
    for (; j < count; j++) ones += b[j];
    return ones;
}

/* Write a row of a bitmap. Its forbidden elements stay unchanged. */
GRAFT_GRB_FN void graft_grb_merge_row(const graft_grb_bitmap *bitmap, int64_t row, int empty, int8_t *b)
{
    enum { AT_ONCE = 256 };

    for (int64_t begin = 0; begin < bitmap->n_cols; begin += AT_ONCE) {
        const int64_t left = bitmap->n_cols - begin, count = left < (int64_t)AT_ONCE ? left : (int64_t)AT_ONCE;
        graft_mask    part = *bitmap->mask;
        int8_t        allowed[AT_ONCE];

        part.present = part.present == NULL ? NULL : part.present + (part.kind == GRAFT_MASK_BITS ? begin / 8 : begin);
        part.values = part.values == NULL ? NULL : part.values + begin;
        graft_grb_expand_row(&part, row, count, allowed);
        for (int64_t j = 0; j < count; j++) b[begin + j] = allowed[j] ? (int8_t)!empty : b[begin + j];
    }
}

/* Write one row of a bitmap. \return the number of its entries */
GRAFT_GRB_FN int64_t graft_grb_find_row(const graft_grb_bitmap *bitmap, int64_t row)
{
    const int     empty = graft_grb_row(bitmap->csr, row) == graft_grb_row(bitmap->csr, row + 1);
    const int64_t n_cols = bitmap->n_cols;
    int8_t       *b = bitmap->b + row * n_cols;
    graft_mask    mask;

    if (bitmap->mask == NULL || (!bitmap->keep && bitmap->rest == !empty)) {
        memset(b, !empty, (size_t)n_cols);
        return empty ? 0 : n_cols;
    }
    if (bitmap->keep) {
        graft_grb_merge_row(bitmap, row, empty, b);
    } else {
        mask = *bitmap->mask;
        if (bitmap->rest) mask.flags ^= GRAFT_MASK_COMPLEMENT;
        graft_grb_expand_row(&mask, row, n_cols, b);
    }
    return graft_grb_count_ones(b, n_cols);
}

/* Write rows of a bitmap. This is the function rows_done of a product, whose threads have the mask in their caches. */
GRAFT_GRB_FN void graft_grb_find_rows(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    graft_grb_bitmap *bitmap = (graft_grb_bitmap *)arg;
    int64_t           entries = 0;

    (void)thread;
    for (int64_t row = begin; row < end; row++) entries += graft_grb_find_row(bitmap, row);
    __atomic_fetch_add(&bitmap->entries, entries, __ATOMIC_RELAXED);
}

/* Write a bitmap with at most `threads` threads. */
GRAFT_GRB_FN void graft_grb_find_entries(graft_grb_bitmap *bitmap, int32_t threads)
{
    const int64_t n_rows = bitmap->csr->n_rows;
    int64_t       entries = 0;

    GRAFT_GRB_PARALLEL(graft_grb_team(threads, n_rows * bitmap->n_cols), reduction(+ : entries))
    for (int64_t row = 0; row < n_rows; row++) entries += graft_grb_find_row(bitmap, row);
    bitmap->entries = entries;
}

#endif
