/* Computes the epilogue in strips of a row, by loops without branches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

#include "common/mode.h"

#include <omp.h>
#include <string.h>

enum { STRIP = 256 }; /* length of a strip: a multiple of 8, so that it begins with a whole byte of a bit mask */

enum { ROWS_AT_ONCE = 32 }; /* number of rows for one call of rows_done, which are then still in the cache */

/* Expand the mask of n elements of a row, from column j0 on, to one byte 0 or 1 for each element. */
static void look_up(const graft_mask *mask, int64_t row, int64_t j0, int64_t n, uint8_t *allowed)
{
    const int      structure = mask != NULL && (mask->flags & GRAFT_MASK_STRUCTURE);
    const uint8_t *present, *values;

    memset(allowed, 1, (size_t)n);
    if (mask == NULL) return;
    if (mask->kind == GRAFT_MASK_ROWS) {
        memset(allowed, mask->present[row / 8] >> row % 8 & 1, (size_t)n);
    } else if (mask->kind == GRAFT_MASK_BITS) {
        present = mask->present + row * mask->stride + j0 / 8;
        for (int64_t j = 0; j < n; j++) allowed[j] = present[j / 8] >> j % 8 & 1;
    } else {
        present = mask->present != NULL ? mask->present + row * mask->stride + j0 : NULL;
        values = mask->values != NULL && !structure ? mask->values + row * mask->stride + j0 : NULL;
        for (int64_t j = 0; present != NULL && j < n; j++) allowed[j] = present[j] != 0;
        for (int64_t j = 0; values != NULL && j < n; j++) allowed[j] &= values[j] != 0;
    }
    if (mask->flags & GRAFT_MASK_COMPLEMENT) {
        for (int64_t j = 0; j < n; j++) allowed[j] ^= 1;
    }
}

#define REAL float
#define NAME(noun) f32_##noun
#include "epilogue_row.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(noun) f64_##noun
#include "epilogue_row.h"
#undef REAL
#undef NAME

static void apply_row(const graft_csr *a, const graft_mxm_args *args, const void *z, int64_t row)
{
    const int64_t at = row * args->c->n_cols;
    const int     empty = z == NULL || a->row_ptr[row] == a->row_ptr[row + 1];

    if (args->c->dtype == GRAFT_F32) f32_row(args, empty, row, empty ? NULL : (const float *)z + at);
    else f64_row(args, empty, row, empty ? NULL : (const double *)z + at);
}

void epilogue_apply(const graft_csr *a, const graft_mxm_args *args, const void *z)
{
    const mode_fp mode = mode_get();
    const int64_t n_rows = args->c->n_rows, blocks = (n_rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;

#pragma omp parallel for num_threads(args->threads) schedule(static) if (args->threads > 1)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t begin = i * ROWS_AT_ONCE, end = n_rows - begin > ROWS_AT_ONCE ? begin + ROWS_AT_ONCE : n_rows;
        const mode_fp own = mode_swap(mode);

        for (int64_t row = begin; row < end; row++) apply_row(a, args, z, row);
        if (args->rows_done != NULL) args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
        mode_set(own);
    }
}
