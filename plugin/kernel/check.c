/* The checks that every product passes before a kernel sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

/* Whether n_rows rows of `stride` units of `bytes` can be addressed at all. */
static int addressable(int64_t n_rows, int64_t stride, int64_t bytes)
{
    int64_t units, total;

    return !__builtin_mul_overflow(n_rows, stride, &units) && !__builtin_mul_overflow(units, bytes, &total);
}

int32_t gr_dense_check(const graft_dense *dense, const char *name, graft_error *error)
{
    if (dense->dtype != GRAFT_F32 && dense->dtype != GRAFT_F64) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", name,
                       dense->dtype);
    }
    if (dense->n_rows < 0 || dense->n_cols < 0 || dense->stride < dense->n_cols ||
        !addressable(dense->n_rows, dense->stride, 8)) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "%s is %lld x %lld with stride %lld; sizes cannot be negative, the stride not less than a row, "
                       "and all of it not more than memory can be",
                       name, (long long)dense->n_rows, (long long)dense->n_cols, (long long)dense->stride);
    }
    if (dense->data == NULL && dense->n_rows > 0 && dense->n_cols > 0) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: data is null", name);
    }
    return GRAFT_OK;
}

static int32_t check_shapes(const graft_mxm_args *args, graft_error *error)
{
    const graft_csr *a = &args->a->csr;

    if (args->b->n_rows != a->n_cols || args->c->n_rows != a->n_rows || args->c->n_cols != args->b->n_cols) {
        return gr_fail(error, GRAFT_ERR_ARG, "shapes do not fit: C is %lld x %lld, A %lld x %lld, B %lld x %lld",
                       (long long)args->c->n_rows, (long long)args->c->n_cols, (long long)a->n_rows,
                       (long long)a->n_cols, (long long)args->b->n_rows, (long long)args->b->n_cols);
    }
    if (args->b->dtype != args->c->dtype || (a->values != NULL && a->value_type != args->c->dtype)) {
        return gr_fail(error, GRAFT_ERR_ARG, "types differ: C has dtype %d, B %d, the values of A %d; all must be one",
                       args->c->dtype, args->b->dtype, a->values != NULL ? a->value_type : args->c->dtype);
    }
    return GRAFT_OK;
}

static int32_t check_mask(const graft_mask *mask, int64_t n_rows, int64_t n_cols, graft_error *error)
{
    const int64_t least = mask->kind == GRAFT_MASK_BITS ? (n_cols + 7) / 8 : n_cols;

    if (mask->kind < GRAFT_MASK_ROWS || mask->kind > GRAFT_MASK_BYTES) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: kind is %d, expected 1 (rows), 2 (bits) or 3 (bytes)", mask->kind);
    }
    if (mask->flags & ~(GRAFT_MASK_STRUCTURE | GRAFT_MASK_COMPLEMENT)) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: flags are 0x%x, of which some are unknown", mask->flags);
    }
    if (mask->kind != GRAFT_MASK_ROWS && (mask->stride < least || !addressable(n_rows, mask->stride, 1))) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "mask: stride is %lld bytes, but a row of %lld columns takes %lld, and all rows not more than memory "
            "can be",
            (long long)mask->stride, (long long)n_cols, (long long)least);
    }
    if (mask->kind != GRAFT_MASK_BYTES && mask->present == NULL && n_rows > 0 && n_cols > 0) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: present is null, which only masks of bytes may have");
    }
    if (mask->kind != GRAFT_MASK_BYTES && mask->values != NULL) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: values are given, which only masks of bytes may have");
    }
    return GRAFT_OK;
}

/* First byte and the byte after the last of an n_rows x n_cols array. */
struct span {
    uintptr_t begin, end;
};

static struct span span_of(const void *data, int64_t n_rows, int64_t n_cols, int64_t stride, uint64_t bytes)
{
    const uintptr_t begin = (uintptr_t)data;

    if (n_rows == 0 || n_cols == 0) return (struct span){ 0, 0 };
    return (struct span){ begin, begin + (uintptr_t)((n_rows - 1) * stride + n_cols) * bytes };
}

static int overlap(struct span x, struct span y)
{
    return x.begin < y.end && y.begin < x.end;
}

static int32_t check_winner(const graft_mxm_args *args, struct span b, struct span c, graft_error *error)
{
    const uint64_t bytes = args->a->csr.index_type == GRAFT_I32 ? 4 : 8;
    struct span    winner;

    if (args->winner == NULL) return GRAFT_OK;
    if (args->semiring == GRAFT_PLUS_TIMES || args->semiring == GRAFT_PLUS_SECOND) {
        return gr_fail(error, GRAFT_ERR_ARG, "a sum has no winner; winner is for max and min");
    }
    if (args->winner_stride < args->c->n_cols || !addressable(args->c->n_rows, args->winner_stride, 8)) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "winner_stride is %lld, less than the %lld columns of C, or more than memory can be",
                       (long long)args->winner_stride, (long long)args->c->n_cols);
    }
    winner = span_of(args->winner, args->c->n_rows, args->c->n_cols, args->winner_stride, bytes);
    if (overlap(winner, b) || overlap(winner, c))
        return gr_fail(error, GRAFT_ERR_ARG, "winner overlaps B or C in memory");
    return GRAFT_OK;
}

int32_t gr_mxm_check(const graft_mxm_args *args, graft_error *error)
{
    const uint64_t bytes = args->c->dtype == GRAFT_F32 ? 4 : 8;
    struct span    b, c;
    int32_t        rc = GRAFT_OK;

    if (args->semiring < GRAFT_PLUS_TIMES || args->semiring > GRAFT_MIN_SECOND) {
        return gr_fail(error, GRAFT_ERR_ARG, "semiring is %d, expected 1 (plus_times) to 6 (min_second)",
                       args->semiring);
    }
    if (args->flags & ~(GRAFT_MXM_ACCUMULATE | GRAFT_MXM_REPLACE)) {
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, of which some are unknown", args->flags);
    }
    GR_TRY(gr_dense_check(args->b, "B", error));
    GR_TRY(gr_dense_check(args->c, "C", error));
    GR_TRY(check_shapes(args, error));
    if (args->mask != NULL) GR_TRY(check_mask(args->mask, args->c->n_rows, args->c->n_cols, error));
    b = span_of(args->b->data, args->b->n_rows, args->b->n_cols, args->b->stride, bytes);
    c = span_of(args->c->data, args->c->n_rows, args->c->n_cols, args->c->stride, bytes);
    if (overlap(b, c)) return gr_fail(error, GRAFT_ERR_ARG, "C overlaps B in memory");
    rc = check_winner(args, b, c, error);
done:
    return rc;
}
