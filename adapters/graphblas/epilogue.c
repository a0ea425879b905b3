/* The epilogue by definition. Elements pass through double, in which a product or sum of two floats rounds to the same
 * float as in float arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

static double get(const void *array, graft_dtype dtype, int64_t at)
{
    return dtype == GRAFT_F32 ? (double)((const float *)array)[at] : ((const double *)array)[at];
}

static void put(void *array, graft_dtype dtype, int64_t at, double value)
{
    if (dtype == GRAFT_F32) ((float *)array)[at] = (float)value;
    else ((double *)array)[at] = value;
}

static int allows(const graft_mask *mask, int64_t row, int64_t column)
{
    int64_t at;
    int     allowed;

    if (mask == NULL) return 1;
    at = row * mask->stride;
    if (mask->kind == GRAFT_MASK_ROWS) {
        allowed = mask->present[row / 8] >> row % 8 & 1;
    } else if (mask->kind == GRAFT_MASK_BITS) {
        allowed = mask->present[at + column / 8] >> column % 8 & 1;
    } else {
        const int valued = !(mask->flags & GRAFT_MASK_STRUCTURE) && mask->values != NULL;

        at += column;
        allowed = (mask->present == NULL || mask->present[at] != 0) && (!valued || mask->values[at] != 0);
    }
    return mask->flags & GRAFT_MASK_COMPLEMENT ? !allowed : allowed;
}

static double accumulated(graft_semiring semiring, graft_dtype dtype, double c, double z)
{
    const int larger = semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND;

    if (semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND)
        return dtype == GRAFT_F32 ? (float)c + (float)z : c + z;
    if (c != c || z != z) return c != c ? c : z;
    return (larger ? z > c : z < c) ? z : c;
}

static void element(const graft_mxm_args *args, int empty, int64_t row, int64_t column, double z)
{
    const graft_dtype dtype = args->c->dtype;
    const int64_t     at = row * args->c->stride + column;

    if (!allows(args->mask, row, column)) {
        if (args->flags & GRAFT_MXM_REPLACE) put(args->c->data, dtype, at, 0);
    } else if (!(args->flags & GRAFT_MXM_ACCUMULATE)) {
        put(args->c->data, dtype, at, empty ? 0 : z);
    } else if (!empty) {
        put(args->c->data, dtype, at, accumulated(args->semiring, dtype, get(args->c->data, dtype, at), z));
    }
}

void epilogue_apply(const graft_csr *a, const graft_mxm_args *args, const void *z)
{
    const int64_t     width = args->c->n_cols;
    const graft_dtype dtype = args->c->dtype;

#pragma omp parallel for num_threads(args->threads) schedule(static) if (args->threads > 1)
    for (int64_t row = 0; row < args->c->n_rows; row++) {
        const int    empty = a->row_ptr[row] == a->row_ptr[row + 1];
        const double scale = args->row_scale != NULL ? get(args->row_scale, dtype, row) : 1;

        for (int64_t j = 0; j < width; j++) {
            const double value = empty ? 0 : scale * get(z, dtype, row * width + j);

            element(args, empty, row, j, dtype == GRAFT_F32 ? (double)(float)value : value);
        }
    }
}
