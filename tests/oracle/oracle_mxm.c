/* Computes the masked product of graft.mxm/1 by definition: for each element of C the entries of its row of A are
 * visited.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void *oracle_new(int64_t count, size_t element_bytes)
{
    void *memory = calloc((size_t)count + 1, element_bytes);

    if (memory == NULL) {
        printf("Bail out! no memory for %lld elements\n", (long long)count);
        exit(1);
    }
    return memory;
}

static double oracle_mxm_number_at(const void *data, graft_dtype dtype, int64_t at)
{
    return dtype == GRAFT_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static int64_t index_at(const void *data, graft_dtype dtype, int64_t at)
{
    return dtype == GRAFT_I32 ? ((const int32_t *)data)[at] : ((const int64_t *)data)[at];
}

static int mask_allows(const graft_mask *mask, int64_t i, int64_t j)
{
    int there = 1, value = 1, allows = 0;

    if (mask == NULL) return 1;
    switch (mask->kind) {
    case GRAFT_MASK_ROWS: there = mask->present[i / 8] >> i % 8 & 1; break;
    case GRAFT_MASK_BITS: there = mask->present[i * mask->stride + j / 8] >> j % 8 & 1; break;
    default:
        if (mask->present != NULL) there = mask->present[i * mask->stride + j] != 0;
        if (mask->values != NULL) value = mask->values[i * mask->stride + j] != 0;
    }
    allows = (mask->flags & GRAFT_MASK_STRUCTURE) ? there : there && value;
    return (mask->flags & GRAFT_MASK_COMPLEMENT) ? !allows : allows;
}

static int oracle_mxm_is_sum(graft_semiring semiring)
{
    return semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND;
}

static int is_max(graft_semiring semiring)
{
    return semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND;
}

/** Whether `later` replaces `former` in a maximum or minimum. An equal number does not, and a NaN always does. */
static int wins(graft_semiring semiring, double later, double former)
{
    if (isnan(former)) return 0;
    if (isnan(later)) return 1;
    return is_max(semiring) ? later > former : later < former;
}

/** An element Z(i,j) of the product: its value, the sum of the magnitudes of its terms, and the winning column. */
struct reduced {
    double  value, bound;
    int64_t winner; /* column of the winning entry; -1 if Z has no entry here */
};

static struct reduced reduce(const graft_csr *a, const graft_mxm_args *args, int64_t i, int64_t j)
{
    const int second =
        args->semiring == GRAFT_PLUS_SECOND || args->semiring == GRAFT_MAX_SECOND || args->semiring == GRAFT_MIN_SECOND;
    struct reduced z = { 0, 0, -1 };

    for (int64_t p = a->row_ptr[i]; p < a->row_ptr[i + 1]; p++) {
        const int64_t k = index_at(a->col_idx, a->index_type, p);
        const double  weight = second || a->values == NULL ? 1 : oracle_mxm_number_at(a->values, a->value_type, p);
        const double  term = weight * oracle_mxm_number_at(args->b->data, args->b->dtype, k * args->b->stride + j);

        if (oracle_mxm_is_sum(args->semiring)) {
            z = (struct reduced){ z.value + term, z.bound + fabs(term), k };
        } else if (z.winner < 0 || wins(args->semiring, term, z.value)) {
            z = (struct reduced){ term, fabs(term), k };
        }
    }
    if (args->row_scale != NULL) {
        const double scale = oracle_mxm_number_at(args->row_scale, args->c->dtype, i);
        z.value *= scale;
        z.bound *= fabs(scale);
    }
    return z;
}

/** Compute one element of C. On entry c has the old value, and winner the old winner unless it is NULL. */
static void update(const graft_mxm_args *args, struct reduced z, double *c, int64_t *winner, double *bound)
{
    const int accumulate = (args->flags & GRAFT_MXM_ACCUMULATE) != 0;

    *bound = z.bound + (accumulate ? fabs(*c) : 0);
    if (z.winner < 0) {
        if (accumulate) return;
        *c = 0;
        if (winner != NULL) *winner = -1;
    } else if (accumulate && oracle_mxm_is_sum(args->semiring)) {
        *c += z.value;
    } else if (!accumulate || wins(args->semiring, z.value, *c)) {
        *c = z.value;
        if (winner != NULL) *winner = z.winner;
    }
}

void oracle_mxm(const graft_csr *a, const graft_mxm_args *args, double *c, int64_t *winner, double *bound)
{
    const int64_t n = args->c->n_cols;

    for (int64_t i = 0; i < a->n_rows; i++) {
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * n + j;
            int64_t      *where = args->winner != NULL ? &winner[at] : NULL;

            c[at] = oracle_mxm_number_at(args->c->data, args->c->dtype, i * args->c->stride + j);
            bound[at] = 0;
            if (where != NULL) *where = index_at(args->winner, a->index_type, i * args->winner_stride + j);
            if (mask_allows(args->mask, i, j)) {
                update(args, reduce(a, args, i, j), &c[at], where, &bound[at]);
            } else if (args->flags & GRAFT_MXM_REPLACE) {
                c[at] = 0;
                if (where != NULL) *where = -1;
            }
        }
    }
}
