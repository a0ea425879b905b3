/* Checks of the arguments of a product, before any kernel reads them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "kernel/kernel.h"

/* Whether the byte offset of the last of n_rows rows fits into 64 bits. `stride` is in elements of `bytes` bytes. */
static int addressable(int64_t n_rows, int64_t stride, int64_t bytes)
{
    int64_t units, total;

    return !__builtin_mul_overflow(n_rows, stride, &units) && !__builtin_mul_overflow(units, bytes, &total);
}

int32_t gr_kernel_dense_check(const graft_dense *dense, const char *name, graft_error *error)
{
    if (dense->dtype != GRAFT_F32 && dense->dtype != GRAFT_F64 && dense->dtype != GRAFT_BF16) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: dtype is %d, expected GRAFT_F32 (1), GRAFT_F64 (2) or GRAFT_BF16 (6)",
                       name, dense->dtype);
    }
    if (dense->n_rows < 0 || dense->n_cols < 0 || dense->stride < dense->n_cols ||
        !addressable(dense->n_rows, dense->stride, 8)) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "%s is %lld x %lld with stride %lld, expected sizes of at least 0, a stride of at least the "
                       "columns, and a total size that fits into 64 bits",
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
    if (args->c->dtype == GRAFT_BF16)
        return gr_fail(error, GRAFT_ERR_ARG, "C has dtype GRAFT_BF16 (6), which only B may have");
    if ((args->b->dtype != args->c->dtype && !(args->b->dtype == GRAFT_BF16 && args->c->dtype == GRAFT_F32)) ||
        (a->values != NULL && a->value_type != args->c->dtype)) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "types differ: C has dtype %d, B %d, the values of A %d, expected one dtype for all, or "
                       "GRAFT_BF16 (6) for B and GRAFT_F32 (1) for the others",
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
        return gr_fail(error, GRAFT_ERR_ARG, "mask: flags are 0x%x, which has unknown bits", mask->flags);
    }
    if (mask->kind != GRAFT_MASK_ROWS && (mask->stride < least || !addressable(n_rows, mask->stride, 1))) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "mask: stride is %lld bytes, but a row of %lld columns takes %lld, and the total size must fit into "
            "64 bits",
            (long long)mask->stride, (long long)n_cols, (long long)least);
    }
    if (mask->kind != GRAFT_MASK_BYTES && mask->present == NULL && n_rows > 0 && n_cols > 0) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: present is null, which is legal only for a mask of bytes");
    }
    if (mask->kind != GRAFT_MASK_BYTES && mask->values != NULL) {
        return gr_fail(error, GRAFT_ERR_ARG, "mask: values is not null, which is legal only for a mask of bytes");
    }
    return GRAFT_OK;
}

/* The bytes begin .. end-1 that an n_rows x n_cols array covers. */
struct byte_span {
    uintptr_t begin, end;
};

static struct byte_span span_of(const void *data, int64_t n_rows, int64_t n_cols, int64_t stride, uint64_t bytes)
{
    const uintptr_t begin = (uintptr_t)data;

    if (n_rows == 0 || n_cols == 0) return (struct byte_span){ 0, 0 };
    return (struct byte_span){ begin, begin + (uintptr_t)((n_rows - 1) * stride + n_cols) * bytes };
}

static struct byte_span span_of_dense(const graft_dense *dense)
{
    return span_of(dense->data, dense->n_rows, dense->n_cols, dense->stride, (uint64_t)gr_dtype_bytes(dense->dtype));
}

static int overlap(struct byte_span x, struct byte_span y)
{
    return x.begin < y.end && y.begin < x.end;
}

static int32_t check_winner(const graft_mxm_args *args, struct byte_span b, struct byte_span c, graft_error *error)
{
    const uint64_t   bytes = (uint64_t)gr_dtype_bytes(args->a->csr.index_type);
    struct byte_span winner;

    if (args->winner == NULL) return GRAFT_OK;
    if (gr_semiring_is_sum(args->semiring)) {
        return gr_fail(error, GRAFT_ERR_ARG, "winner is not null, but a sum has no winner; only max and min have");
    }
    if (args->winner_stride < args->c->n_cols || !addressable(args->c->n_rows, args->winner_stride, 8)) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "winner_stride is %lld, expected at least the %lld columns of C, and a total size that fits into "
            "64 bits",
            (long long)args->winner_stride, (long long)args->c->n_cols);
    }
    winner = span_of(args->winner, args->c->n_rows, args->c->n_cols, args->winner_stride, bytes);
    if (overlap(winner, b) || overlap(winner, c))
        return gr_fail(error, GRAFT_ERR_ARG, "winner overlaps B or C in memory");
    return GRAFT_OK;
}

int gr_kernel_dense_overlaps(const graft_dense *x, const graft_dense *y)
{
    return overlap(span_of_dense(x), span_of_dense(y));
}

static int32_t check_epilogue(const graft_mxm_args *args, graft_error *error)
{
    const graft_epilogue *e = args->epilogue;
    const graft_dense    *residual = e->residual;
    const int64_t         least = (args->c->n_cols + 7) / 8;

    if (e->flags & ~GRAFT_EPILOGUE_RELU) {
        return gr_fail(error, GRAFT_ERR_ARG, "epilogue: flags are 0x%x, which has unknown bits", e->flags);
    }
    if (!(e->dropout >= 0 && e->dropout < 1)) {
        return gr_fail(error, GRAFT_ERR_ARG, "epilogue: dropout is %g, expected 0 <= dropout < 1", e->dropout);
    }
    if (e->bits != NULL && (e->bits_stride < least || !addressable(args->c->n_rows, e->bits_stride, 1))) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "epilogue: bits_stride is %lld bytes, but a row of %lld columns takes %lld",
                       (long long)e->bits_stride, (long long)args->c->n_cols, (long long)least);
    }
    if (residual == NULL) return GRAFT_OK;
    GR_TRY(gr_kernel_dense_check(residual, "residual", error));
    if (residual->dtype != args->c->dtype || residual->n_rows != args->c->n_rows ||
        residual->n_cols != args->c->n_cols) {
        return gr_fail(error, GRAFT_ERR_ARG, "residual is %lld x %lld of dtype %d, but C is %lld x %lld of dtype %d",
                       (long long)residual->n_rows, (long long)residual->n_cols, residual->dtype,
                       (long long)args->c->n_rows, (long long)args->c->n_cols, args->c->dtype);
    }
    if (gr_kernel_dense_overlaps(residual, args->c) &&
        (residual->data != args->c->data || residual->stride != args->c->stride)) {
        return gr_fail(error, GRAFT_ERR_ARG, "residual overlaps C in memory, but is not C itself");
    }
    return GRAFT_OK;
}

int32_t gr_mxm_check(const graft_mxm_args *args, graft_error *error)
{
    struct byte_span b, c;

    if (args->semiring < GRAFT_PLUS_TIMES || args->semiring > GRAFT_MIN_SECOND) {
        return gr_fail(error, GRAFT_ERR_ARG, "semiring is %d, expected 1 (plus_times) to 6 (min_second)",
                       args->semiring);
    }
    if (args->flags & ~(GRAFT_MXM_ACCUMULATE | GRAFT_MXM_REPLACE)) {
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, which has unknown bits", args->flags);
    }
    if (args->times != NULL && args->threads < 1) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "times is not null, but threads is %d, expected the number of elements of times", args->threads);
    }
    if (args->rows_arg != NULL && args->rows_done == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "rows_arg is not null, but rows_done, which would receive it, is null");
    GR_TRY(gr_kernel_dense_check(args->b, "B", error));
    GR_TRY(gr_kernel_dense_check(args->c, "C", error));
    GR_TRY(check_shapes(args, error));
    if (args->mask != NULL) GR_TRY(check_mask(args->mask, args->c->n_rows, args->c->n_cols, error));
    b = span_of_dense(args->b);
    c = span_of_dense(args->c);
    if (gr_kernel_dense_overlaps(args->b, args->c)) return gr_fail(error, GRAFT_ERR_ARG, "C overlaps B in memory");
    if (args->epilogue != NULL) GR_TRY(check_epilogue(args, error));
    return check_winner(args, b, c, error);
}
