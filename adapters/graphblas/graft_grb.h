/* Graft for hosts of SuiteSparse:GraphBLAS, versions 7 to 10: lends matrices to Graft, and computes GrB_mxm with it.
 * Compiled in the host's own unit against its own GraphBLAS, so that both use the same library; with OpenMP if the host
 * uses it. See adapters/graphblas/README.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_H
#define GRAFT_GRB_H

#include "graft_grb_wide.h"

/* \return the number of rows with entries */
GRAFT_GRB_FN int64_t graft_grb_count_rows(const graft_csr *csr, int32_t threads)
{
    int64_t rows = 0;

    GRAFT_GRB_PARALLEL(graft_grb_team(threads, csr->n_rows), reduction(+ : rows))
    for (int64_t row = 0; row < csr->n_rows; row++) rows += graft_grb_row(csr, row + 1) > graft_grb_row(csr, row);
    return rows;
}

GRAFT_GRB_FN int graft_grb_is_read_only(GrB_Matrix matrix)
{
    int32_t read_only = 0;

#if GxB_IMPLEMENTATION_MAJOR >= 10
    if (GrB_Matrix_get_INT32(matrix, &read_only, GxB_IS_READONLY) != GrB_SUCCESS) return 1;
#else
    (void)matrix;
#endif
    return read_only;
}

/* Whether C can be written in place: it has an array of all elements, in the type and order of the product, and is not
 * an operand. */
GRAFT_GRB_FN int graft_grb_fits(const struct graft_grb_product *p)
{
    const graft_grb_view *old = &p->old;

    if (graft_grb_is_sparse(old) || old->iso || old->type != p->ring.type) return 0;
    return graft_grb_is_held(old, p->by_col) && p->c != p->sparse && p->c != p->dense && p->c != p->m;
}

enum { GRAFT_GRB_NAN = 1, GRAFT_GRB_INFINITY = 2, GRAFT_GRB_ZERO = 4 };

/* Search an array of rows with at most `threads` threads. The result is the flags of the special values, without
 * elements that the bitmap marks as missing. */
GRAFT_GRB_FN int graft_grb_find_special_rows(const void *array, int wide, int64_t n_rows, int64_t n_cols,
                                             const int8_t *b, int32_t threads)
{
    const int64_t infinity = graft_grb_magnitude(HUGE_VAL);
    int           found = 0;

    GRAFT_GRB_PARALLEL(graft_grb_team(threads, n_rows * n_cols), reduction(| : found))
    for (int64_t row = 0; row < n_rows; row++) {
        const int64_t end = b == NULL || b[row * n_cols] ? (row + 1) * n_cols : 0;

        for (int64_t i = row * n_cols; i < end; i++) {
            const double  x = wide ? ((const double *)array)[i] : (double)((const float *)array)[i];
            const int64_t size = graft_grb_magnitude(x);

            found |= size > infinity ? GRAFT_GRB_NAN : size == infinity ? GRAFT_GRB_INFINITY : 0;
            found |= x == 0 ? GRAFT_GRB_ZERO : 0;
        }
    }
    return found;
}

GRAFT_GRB_FN int graft_grb_find_special(const void *array, int wide, int64_t count, int32_t threads)
{
    return graft_grb_find_special_rows(array, wide, count, 1, NULL, threads);
}

/* Check whether max or min would differ. Max and min of GraphBLAS ignore NaN, those of Graft do not. Of two zeros with
 * different signs either may be the result. The operands are therefore searched for NaN, for infinities that may become
 * NaN, and for zeros if results must be bitwise identical. */
GRAFT_GRB_FN const char *graft_grb_check_values(const graft_grb *grb, const struct graft_grb_product *p)
{
    const int times = p->ring.multiply == GRAFT_GRB_TIMES && p->a.csr.values != NULL, wide = p->ring.type == GrB_FP64;
    int       found = 0;

    if (p->ring.monoid == 0) return NULL;
    if (p->ring.multiply != GRAFT_GRB_FIRST)
        found |= graft_grb_find_special_rows(p->b.dense.data, wide, p->b.dense.n_rows, p->b.dense.n_cols, p->b.view.b,
                                             p->threads);
    if (p->ring.multiply != GRAFT_GRB_SECOND && p->a.csr.values != NULL)
        found |= graft_grb_find_special(p->a.csr.values, wide, p->a.view.entries, p->threads);
    if (found & GRAFT_GRB_NAN) return "an operand has a NaN, which max and min of GraphBLAS ignore";
    if (times && found & GRAFT_GRB_INFINITY) return "an operand has an infinity, and a product with it may be NaN";
    if (grb->exact && found & GRAFT_GRB_ZERO)
        return "an operand has a zero, and max and min may take one of either sign";
    return NULL;
}

/* Check the size and the form of the product before anything is converted, because a hypersparse or iso matrix may have
 * more rows or elements than fit into memory. \return NULL, or the reason why GraphBLAS must compute the product */
GRAFT_GRB_FN const char *graft_grb_check_operands(const graft_grb *grb, const struct graft_grb_product *p)
{
    const double   largest_iso = 1 << 28;
    graft_grb_view sparse, dense;
    int64_t        rows, inner, columns;

    if (graft_grb_look(p->sparse, &sparse) != GrB_SUCCESS || graft_grb_look(p->dense, &dense) != GrB_SUCCESS)
        return "an operand cannot be used";
    if (!graft_grb_is_sparse(&sparse)) return "it has no sparse operand";
    if (sparse.value_bytes == 0 || dense.value_bytes == 0) return "an operand has a type that is not built in";
    rows = p->sparse_transpose ? sparse.n_cols : sparse.n_rows;
    inner = p->dense_transpose ? dense.n_cols : dense.n_rows;
    columns = p->dense_transpose ? dense.n_rows : dense.n_cols;
    if (dense.entries != graft_grb_elements(&dense) && (graft_grb_is_sparse(&dense) || dense.entries % columns != 0))
        return "the dense operand has rows in which elements are missing";
    if (dense.iso && (double)dense.entries > largest_iso) return "the dense operand is one value for many elements";
    if ((double)sparse.entries * (double)columns < (double)grb->least_work) return "it is small";
    if (columns < grb->least_columns) return "it has few columns";
    if (sparse.entries < rows / 8) return "the result would be sparse";
    if ((p->sparse_transpose ? sparse.n_rows : sparse.n_cols) != inner ||
        (p->by_col ? p->old.n_cols : p->old.n_rows) != rows || (p->by_col ? p->old.n_rows : p->old.n_cols) != columns)
        return "the dimensions do not match";
    return NULL;
}

GRAFT_GRB_FN const char *graft_grb_check_mask(const struct graft_grb_product *p)
{
    graft_grb_view view;

    if (p->m == NULL) return p->flags.mask & GRAFT_MASK_COMPLEMENT ? "its mask is the complement of none" : NULL;
    if (graft_grb_look(p->m, &view) != GrB_SUCCESS) return "the mask cannot be used";
    if (view.n_rows != p->old.n_rows || view.n_cols != p->old.n_cols) return "the dimensions do not match";
    if (graft_grb_is_sparse(&view) && !(p->flags.mask & GRAFT_MASK_COMPLEMENT) &&
        view.entries < graft_grb_elements(&view) / 32)
        return "the mask allows few elements";
    return NULL;
}

/* Treat missing rows of the dense operand as rows without entries. \return NULL, or the reason why GraphBLAS must
 * compute the product */
GRAFT_GRB_FN const char *graft_grb_skip_missing_rows(struct graft_grb_product *p)
{
    const graft_dense *dense = &p->b.dense;
    const int8_t      *b = p->b.view.b;

    if (p->b.view.entries == dense->n_rows * dense->n_cols) return NULL;
    if (!graft_grb_has_whole_rows(dense, b, p->threads))
        return "the dense operand has rows in which elements are missing";
    if (graft_grb_keep_columns(&p->a, dense, b, p->threads, &p->kept) != GrB_SUCCESS)
        return "there is no memory for the sparse operand";
    p->a.csr = p->kept.csr;
    p->a.view.entries = p->kept.view.entries;
    p->a.copied += p->kept.copied;
    return NULL;
}

/* Lend operands and mask to Graft. \return NULL, or the reason why GraphBLAS must compute the product */
GRAFT_GRB_FN const char *graft_grb_lend_all(graft_grb *grb, struct graft_grb_product *p)
{
    const int   ones = p->ring.multiply == GRAFT_GRB_SECOND || p->ring.multiply == GRAFT_GRB_PAIR;
    const char *why = graft_grb_check_operands(grb, p);

    if (why == NULL) why = graft_grb_check_mask(p);
    if (why != NULL) return why;
    if (p->m != NULL && graft_grb_lend_mask_by(p->threads, p->m, p->by_col, p->flags.mask, &p->mask) != GrB_SUCCESS)
        return "the mask cannot be lent";
    if (graft_grb_lend_array(p->dense, p->dense_transpose, p->ring.type, 1, &p->b) != GrB_SUCCESS)
        return "the dense operand cannot be lent";
    if (graft_grb_lend_csr(p->sparse, p->sparse_transpose, ones ? NULL : p->ring.type, &p->a) != GrB_SUCCESS)
        return "the sparse operand cannot be lent";
    if (p->ring.multiply == GRAFT_GRB_PAIR) p->ring.multiply = GRAFT_GRB_FIRST; /* a matrix of ones */
    why = graft_grb_skip_missing_rows(p);
    if (why != NULL) return why;
    grb->copied = p->a.copied + p->b.copied + p->mask.copied;
    return graft_grb_check_values(grb, p);
}

/* Compute one product of Graft with the sparse operand. Its threads also write `bitmap`, unless it is NULL. */
GRAFT_GRB_FN const char *graft_grb_run(graft_grb *grb, const struct graft_grb_product *p, graft_semiring semiring,
                                       uint32_t flags, const graft_dense *b, const graft_dense *c,
                                       graft_grb_bitmap *bitmap)
{
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    int32_t        rc;

    args.semiring = semiring;
    args.flags = flags;
    args.b = b;
    args.c = c;
    args.mask = p->m != NULL && c->n_cols == p->b.dense.n_cols ? &p->mask.mask : NULL;
    args.threads = graft_grb_team(p->threads, p->a.view.entries * c->n_cols);
    args.rows_done = bitmap != NULL ? graft_grb_find_rows : NULL;
    args.rows_arg = bitmap;
    rc = grb->mxm->matrix_create(grb->api->context, &p->a.csr, 1, &args.a, &grb->error);
    if (rc >= 0) rc = grb->mxm->run(grb->api->context, &args, &grb->error);
    grb->mxm->matrix_destroy(args.a);
    return rc >= 0 ? NULL : grb->error.message;
}

/* Compute sums or extremes of rows of A, as the product of A and a vector of ones. */
GRAFT_GRB_FN const char *graft_grb_reduce_rows(graft_grb *grb, const struct graft_grb_product *p, char *column)
{
    const int     wide = p->ring.type == GrB_FP64;
    const int64_t inner = p->a.csr.n_cols;
    char         *ones = (char *)calloc((size_t)(inner + 1), wide ? 8 : 4);
    const char   *why = "there is no memory for a column";
    graft_dense   b = graft_dense_in(p->b.dense.dtype, inner, 1, ones);
    graft_dense   c = graft_dense_in(p->b.dense.dtype, p->a.csr.n_rows, 1, column);

    for (int64_t k = 0; ones != NULL && k < inner; k++) {
        if (wide) ((double *)(void *)ones)[k] = 1;
        else ((float *)(void *)ones)[k] = 1;
    }
    if (ones != NULL) why = graft_grb_run(grb, p, GRAFT_PLUS_TIMES + 2 * p->ring.monoid, 0, &b, &c, NULL);
    free(ones);
    return why;
}

/* Compute a product with multiplication "first". All elements of a row of Z are equal: they are the sum or extreme over
 * the row of A. Without values this is the number of entries, or 1. */
GRAFT_GRB_FN const char *graft_grb_run_first(graft_grb *grb, const struct graft_grb_product *p, char *x)
{
    const int     wide = p->ring.type == GrB_FP64;
    const int64_t rows = p->a.csr.n_rows, n_cols = p->b.dense.n_cols;
    char         *column = p->a.csr.values != NULL ? (char *)malloc((size_t)(rows + 1) * (wide ? 8 : 4)) : NULL;
    const char   *why = NULL;

    if (p->a.csr.values != NULL)
        why = column != NULL ? graft_grb_reduce_rows(grb, p, column) : "there is no memory for a column";
    GRAFT_GRB_PARALLEL(graft_grb_team(p->threads, rows * n_cols), )
    for (int64_t i = 0; i < (why == NULL ? rows : 0); i++) {
        const int64_t entries = graft_grb_row(&p->a.csr, i + 1) - graft_grb_row(&p->a.csr, i);
        double        value = p->ring.monoid == 0 ? (double)entries : 1;

        if (column != NULL) value = wide ? ((double *)(void *)column)[i] : (double)((float *)(void *)column)[i];
        for (int64_t j = i * n_cols; j < (i + 1) * n_cols; j++) {
            if (wide) ((double *)(void *)x)[j] = value;
            else ((float *)(void *)x)[j] = (float)value;
        }
    }
    free(column);
    return why;
}

/* Compute Z, or with GRAFT_MXM_ACCUMULATE C (+)= Z, into an array of all its elements, and compute its bitmap, unless
 * that is NULL. A bitmap that C keeps is written after the product has succeeded. A bitmap without a mask is also
 * written afterwards, because writing C past the caches saves more time. */
GRAFT_GRB_FN const char *graft_grb_compute(graft_grb *grb, const struct graft_grb_product *p, uint32_t flags, void *x,
                                           graft_grb_bitmap *bitmap)
{
    const int            first = p->ring.multiply == GRAFT_GRB_FIRST;
    const int            later = first || (bitmap != NULL && (bitmap->mask == NULL || bitmap->keep));
    const char          *why;
    const graft_dense    c = graft_dense_in(p->b.dense.dtype, p->a.csr.n_rows, p->b.dense.n_cols, x);
    const graft_semiring semiring = GRAFT_PLUS_TIMES + 2 * p->ring.monoid + (p->ring.multiply == GRAFT_GRB_SECOND);

    if (first) why = graft_grb_run_first(grb, p, (char *)x);
    else why = graft_grb_run(grb, p, semiring, flags, &p->b.dense, &c, later ? NULL : bitmap);
    if (why == NULL && later && bitmap != NULL) graft_grb_find_entries(bitmap, p->threads);
    return why;
}

GRAFT_GRB_FN graft_grb_bitmap graft_grb_begin_bitmap(const struct graft_grb_product *p)
{
    graft_grb_bitmap bitmap;

    memset(&bitmap, 0, sizeof bitmap);
    bitmap.n_cols = p->b.dense.n_cols;
    bitmap.csr = &p->a.csr;
    bitmap.mask = p->m != NULL ? &p->mask.mask : NULL;
    return bitmap;
}

/* Compute Z in a separate object, and then assign it to C. */
GRAFT_GRB_FN const char *graft_grb_multiply_apart(graft_grb *grb, const struct graft_grb_product *p, GrB_Info *info)
{
    graft_grb_result result = { p->a.csr.n_rows, p->b.dense.n_cols, p->by_col, p->ring.type, NULL, NULL, 0 };
    graft_grb_bitmap bitmap = graft_grb_begin_bitmap(p);
    const char      *why = "GraphBLAS has no memory for the result";

    if (graft_grb_new_result(grb, &result, p->gaps || p->m != NULL) == GrB_SUCCESS) {
        bitmap.b = result.b;
        why = graft_grb_compute(grb, p, p->m != NULL ? GRAFT_MXM_REPLACE : 0, result.x,
                                result.b != NULL ? &bitmap : NULL);
    }
    result.entries = bitmap.entries;
    if (why == NULL) *info = graft_grb_finish(p, &result);
    graft_grb_drop_result(&result);
    /* The assignment was refused, and C is unchanged: GrB_mxm refuses it too, with its own message. */
    return why == NULL && *info != GrB_SUCCESS && *info != GrB_OUT_OF_MEMORY ? "its arguments are refused" : why;
}

/* Write Z into the arrays of C, and its entries into the bitmap of C. A full C gets a bitmap. */
GRAFT_GRB_FN const char *graft_grb_multiply_within(graft_grb *grb, const struct graft_grb_product *p, GrB_Info *info)
{
    graft_grb_result result = { p->a.csr.n_rows, p->b.dense.n_cols, p->by_col, p->ring.type, NULL, NULL, 0 };
    graft_grb_bitmap bitmap = graft_grb_begin_bitmap(p);
    const int        was_full = p->old.sparsity == GxB_FULL, stays = p->m != NULL && !p->flags.replace;
    const char      *why = "GraphBLAS has no memory for the result";
    void            *b = NULL;

    if (was_full && graft_grb_allocate(grb, GrB_INT8, result.n_rows, result.n_cols, &b) != GrB_SUCCESS) return why;
    *info = graft_grb_unpack(p->c, &p->old, &result);
    bitmap.b = was_full ? (int8_t *)b : result.b;
    bitmap.keep = stays && !was_full;
    bitmap.rest = stays && was_full;
    if (*info == GrB_SUCCESS) why = graft_grb_compute(grb, p, 0, result.x, &bitmap);
    if (why == NULL) result.b = bitmap.b;
    result.entries = why == NULL ? bitmap.entries : p->old.entries;
    if (*info == GrB_SUCCESS) *info = graft_grb_pack(p->c, p->old.by_col, &result);
    if (b != NULL && result.b != b && why != NULL) {
        result.x = b;
        result.b = NULL;
        result.type = GrB_INT8;
        graft_grb_drop_result(&result);
    }
    return why;
}

/* Whether C can keep its arrays and get the bitmap of the result. */
GRAFT_GRB_FN int graft_grb_may_have_gaps(const struct graft_grb_product *p)
{
    int32_t allowed = 0;

    if (p->accum != NULL || p->ring.multiply == GRAFT_GRB_FIRST) return 0;
    if (GxB_Matrix_Option_get_INT32(p->c, GxB_SPARSITY_CONTROL, &allowed) != GrB_SUCCESS) return 0;
    return (allowed & GxB_BITMAP) != 0;
}

/* Whether C (+)= Z can be computed in place. */
GRAFT_GRB_FN int graft_grb_accumulates(const struct graft_grb_product *p)
{
    const int wide = p->ring.type == GrB_FP64;

    if (p->accum != p->ring.add) return 0;
    if (p->ring.monoid == 0) return 1;
    return !(graft_grb_find_special(p->old.x, wide, p->old.entries, p->threads) & GRAFT_GRB_NAN);
}

/* Compute Z into the array of C. Afterwards GrB_error() of C must not describe an earlier call. Waiting for C, which
 * has no pending work, clears the message. */
GRAFT_GRB_FN const char *graft_grb_multiply_in_place(graft_grb *grb, const struct graft_grb_product *p, uint32_t flags)
{
    if (GrB_Matrix_wait(p->c, GrB_MATERIALIZE) != GrB_SUCCESS) return "the output cannot be used";
    return graft_grb_compute(grb, p, flags, (void *)(uintptr_t)p->old.x, NULL);
}

/* \return NULL, or the reason why GraphBLAS must compute the product; C is unchanged then */
GRAFT_GRB_FN const char *graft_grb_multiply(graft_grb *grb, struct graft_grb_product *p, GrB_Info *info)
{
    const char *why = graft_grb_lend_all(grb, p);
    const int   fits = graft_grb_fits(p), overwrites = p->m != NULL && p->flags.replace;
    const int   in_place = fits && graft_grb_is_full(&p->old) && p->ring.multiply != GRAFT_GRB_FIRST && !overwrites;
    int64_t     rows;

    if (why != NULL) return why;
    if (in_place && graft_grb_accumulates(p)) return graft_grb_multiply_in_place(grb, p, GRAFT_MXM_ACCUMULATE);
    rows = graft_grb_count_rows(&p->a.csr, p->threads);
    if (rows < p->a.csr.n_rows / 8) return "the result would be sparse";
    p->gaps = rows < p->a.csr.n_rows;
    if (in_place && p->accum == NULL && !p->gaps) return graft_grb_multiply_in_place(grb, p, 0);
    if (fits && graft_grb_may_have_gaps(p)) return graft_grb_multiply_within(grb, p, info);
    return graft_grb_multiply_apart(grb, p, info);
}

/* Try a product of mxm, mxv or vxm. \return 1 if Graft computed the product, and *info is the result */
GRAFT_GRB_FN int graft_grb_try(graft_grb *grb, GrB_Semiring semiring, struct graft_grb_product *p, GrB_Info *info)
{
    *info = GrB_SUCCESS;
    if (!graft_grb_read_ring(semiring, &p->ring)) grb->why = "Graft does not have the semiring";
    else if (grb->exact && p->ring.monoid == 0) grb->why = "sums may be rounded differently";
    else if (graft_grb_look(p->c, &p->old) != GrB_SUCCESS) grb->why = "the output cannot be used";
    else if (p->old.value_bytes == 0) grb->why = "the output has a type that is not built in";
    else if (graft_grb_is_read_only(p->c)) grb->why = "the output is read-only";
    if (grb->why == NULL) {
        if (p->flipped && (p->ring.multiply == GRAFT_GRB_FIRST || p->ring.multiply == GRAFT_GRB_SECOND))
            p->ring.multiply = GRAFT_GRB_SECOND + GRAFT_GRB_FIRST - p->ring.multiply;
        grb->why = p->wide ? graft_grb_multiply_wide(grb, p, info) : graft_grb_multiply(grb, p, info);
    }
    grb->taken = grb->why == NULL;
    graft_grb_return(&p->a);
    graft_grb_return(&p->b);
    graft_grb_return(&p->mask);
    graft_grb_return(&p->kept);
    return grb->taken;
}

/* Begin a call: check those arguments that are not checked elsewhere, and read the descriptor. Sets grb->why. */
GRAFT_GRB_FN void graft_grb_begin_call(graft_grb *grb, struct graft_grb_product *p, void *c, void *mask,
                                       GrB_BinaryOp accum, GrB_Semiring semiring, const void *left, const void *right,
                                       GrB_Descriptor descriptor)
{
    memset(p, 0, sizeof *p);
    p->c = (GrB_Matrix)c;
    p->m = (GrB_Matrix)mask;
    p->accum = accum;
    grb->taken = 0;
    grb->copied = 0;
    grb->why = NULL;
    p->threads = graft_grb_threads(descriptor);
    if (grb->threads > 0 && grb->threads < p->threads) p->threads = grb->threads;
    if (p->c == NULL || left == NULL || right == NULL || semiring == NULL) grb->why = "an argument is null";
    else if (!graft_grb_read_descriptor(descriptor, &p->flags)) grb->why = "the descriptor cannot be used";
}

/* Find the sparse and the dense operand of A B. \return NULL, or the reason why GraphBLAS must compute the product */
GRAFT_GRB_FN const char *graft_grb_choose(struct graft_grb_product *p, GrB_Matrix a, GrB_Matrix b)
{
    graft_grb_view left, right;

    if (graft_grb_look(a, &left) != GrB_SUCCESS || graft_grb_look(b, &right) != GrB_SUCCESS)
        return "an operand cannot be used";
    if (graft_grb_is_sparse(&left) == graft_grb_is_sparse(&right)) return "it has no sparse and no dense operand";
    if (graft_grb_is_sparse(&left)) {
        p->sparse = a;
        p->dense = b;
        p->sparse_transpose = p->flags.transpose0;
        p->dense_transpose = p->flags.transpose1;
        return NULL;
    }
    p->sparse = b;
    p->dense = a;
    p->sparse_transpose = p->flags.transpose1;
    p->wide = !graft_grb_is_held(&left, !p->flags.transpose0);
    if (p->wide) return NULL;
    p->sparse_transpose = !p->flags.transpose1;
    p->dense_transpose = !p->flags.transpose0;
    p->by_col = p->flipped = 1;
    return NULL;
}

/** Compute C<M> accum= A B as GrB_mxm does, with Graft if possible: one of A and B is sparse or hypersparse, the other
 *  is full or a bitmap whose rows (held by row; or columns held by column) have all their elements or none, and the
 *  semiring is plus, max or min of times, first, second or pair, in FP32 or FP64. A dense left operand is held by
 *  column, or there is no mask, and the semiring is plus of times or first in FP32. Accumulators, types of C and M, iso
 *  values, masks and descriptors are free otherwise. Other products are left to GrB_mxm, so this is always a complete
 *  GrB_mxm: the codes and GrB_error() are the same as of GraphBLAS. The fields taken, why and copied of `grb` describe
 *  the call.
 *
 *  Results follow the specification (section 4.3.1), within rounding: an element of C without a product has no entry.
 *  The product is computed before the function returns, also in non-blocking mode. Operands that graft_grb_lend_csr()
 *  and graft_grb_lend_dense() lend in place are not copied. C is written in place if it is full, of the type of the
 *  semiring and not an operand, and either accum is the operation of the monoid, or there is no accum and A has no
 *  empty row.
 *
 * \return the codes of GrB_mxm. Several threads may call it at once, each with its own graft_grb and context. Memory:
 *         for a C that is not written in place, the size of the result. */
GRAFT_GRB_FN GrB_Info graft_grb_mxm(graft_grb *grb, GrB_Matrix c, GrB_Matrix mask, GrB_BinaryOp accum,
                                    GrB_Semiring semiring, GrB_Matrix a, GrB_Matrix b, GrB_Descriptor descriptor)
{
    struct graft_grb_product p;
    GrB_Info                 info = GrB_SUCCESS;

    graft_grb_begin_call(grb, &p, c, mask, accum, semiring, a, b, descriptor);
    if (grb->why == NULL) grb->why = graft_grb_choose(&p, a, b);
    if (grb->why == NULL && graft_grb_try(grb, semiring, &p, &info)) return info;
    return GrB_mxm(c, mask, accum, semiring, a, b, descriptor);
}

/** Compute w<m> accum= A u as GrB_mxv does; see graft_grb_mxm(). */
GRAFT_GRB_FN GrB_Info graft_grb_mxv(graft_grb *grb, GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum,
                                    GrB_Semiring semiring, GrB_Matrix a, GrB_Vector u, GrB_Descriptor descriptor)
{
    struct graft_grb_product p;
    GrB_Info                 info = GrB_SUCCESS;

    graft_grb_begin_call(grb, &p, w, mask, accum, semiring, a, u, descriptor);
    p.sparse = a;
    p.dense = (GrB_Matrix)u;
    p.sparse_transpose = p.flags.transpose0;
    if (grb->why == NULL && graft_grb_try(grb, semiring, &p, &info)) return info;
    return GrB_mxv(w, mask, accum, semiring, a, u, descriptor);
}

/** Compute w'<m'> accum= u' A as GrB_vxm does; see graft_grb_mxm(). */
GRAFT_GRB_FN GrB_Info graft_grb_vxm(graft_grb *grb, GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum,
                                    GrB_Semiring semiring, GrB_Vector u, GrB_Matrix a, GrB_Descriptor descriptor)
{
    struct graft_grb_product p;
    GrB_Info                 info = GrB_SUCCESS;

    graft_grb_begin_call(grb, &p, w, mask, accum, semiring, u, a, descriptor);
    p.flipped = 1;
    p.sparse = a;
    p.dense = (GrB_Matrix)u;
    p.sparse_transpose = !p.flags.transpose1;
    if (grb->why == NULL && graft_grb_try(grb, semiring, &p, &info)) return info;
    return GrB_vxm(w, mask, accum, semiring, u, a, descriptor);
}

#endif
