/* Checks of the operands of edge operators.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "edge/edge.h"

/* Check that a dense operand is float or double and well formed. */
static int32_t check_real(const graft_dense *dense, const char *name, graft_error *error)
{
    if (dense->dtype != GRAFT_F32 && dense->dtype != GRAFT_F64) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", name,
                       dense->dtype);
    }
    return gr_kernel_dense_check(dense, name, error);
}

/* Check as check_real(), and also that shape and type agree with the other operands. */
static int32_t check_form(const graft_dense *dense, const char *name, int64_t n_rows, int64_t n_cols, graft_dtype dtype,
                          graft_error *error)
{
    GR_TRY(check_real(dense, name, error));
    if (dense->n_rows == n_rows && dense->n_cols == n_cols && dense->dtype == dtype) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "%s is %lld x %lld of dtype %d, but the other operands require %lld x %lld of dtype %d", name,
                   (long long)dense->n_rows, (long long)dense->n_cols, dense->dtype, (long long)n_rows,
                   (long long)n_cols, dtype);
}

static int32_t check_apart(const graft_dense *out, const char *out_name, const graft_dense *in, const char *in_name,
                           graft_error *error)
{
    if (!gr_kernel_dense_overlaps(out, in)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%s overlaps %s in memory", out_name, in_name);
}

/* Check that two operands are the same array, or do not overlap. */
static int32_t check_in_place(const graft_dense *out, const char *out_name, const graft_dense *in, const char *in_name,
                              graft_error *error)
{
    if (out->data == in->data && out->stride == in->stride) return GRAFT_OK;
    return check_apart(out, out_name, in, in_name, error);
}

/* Check that every index is a row of a matrix of n_rows rows. */
static int32_t check_range(const graft_index *index, const char *name, int64_t n_rows, int threads, graft_error *error)
{
    int64_t bad = INT64_MAX;

    threads = gr_threads_worth(threads, index->count);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad) if (threads > 1)
    for (int64_t i = 0; i < index->count; i++) {
        if ((gr_edge_number(index, i) < 0 || gr_edge_number(index, i) >= n_rows) && i < bad) bad = i;
    }
    if (bad == INT64_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "index[%lld] is %lld, but %s has %lld rows, numbered from 0", (long long)bad,
                   (long long)gr_edge_number(index, bad), name, (long long)n_rows);
}

static int32_t check_index_array(const graft_index *index, graft_error *error)
{
    if (index->index_type != GRAFT_I32 && index->index_type != GRAFT_I64) {
        return gr_fail(error, GRAFT_ERR_ARG, "index_type is %d, expected GRAFT_I32 (3) or GRAFT_I64 (4)",
                       index->index_type);
    }
    if (index->count < 0 || index->count > INT64_MAX / 8) {
        return gr_fail(error, GRAFT_ERR_ARG, "index: count is %lld, expected 0 to 2^60", (long long)index->count);
    }
    if (index->data == NULL && index->count > 0) return gr_fail(error, GRAFT_ERR_ARG, "index: data is null");
    return GRAFT_OK;
}

static int32_t check_index(const graft_index *index, const graft_dense *out, graft_error *error)
{
    /* The bytes of the index, for gr_kernel_dense_overlaps(). */
    const graft_dense bytes = { .size = sizeof bytes,
                                .dtype = index->index_type == GRAFT_I32 ? GRAFT_F32 : GRAFT_F64,
                                .n_rows = index->count,
                                .n_cols = 1,
                                .stride = 1,
                                .data = (void *)(uintptr_t)index->data };

    GR_TRY(check_index_array(index, error));
    return check_apart(out, "out", &bytes, "index", error);
}

int32_t gr_edge_check_gather_rows(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads,
                                  graft_error *error)
{
    GR_TRY(check_real(x, "x", error));
    GR_TRY(check_form(out, "out", index->count, x->n_cols, x->dtype, error));
    GR_TRY(check_apart(out, "out", x, "x", error));
    GR_TRY(check_index(index, out, error));
    return check_range(index, "x", x->n_rows, threads, error);
}

int32_t gr_edge_check_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads,
                                graft_error *error)
{
    GR_TRY(check_real(out, "out", error));
    GR_TRY(check_form(x, "x", index->count, out->n_cols, out->dtype, error));
    GR_TRY(check_apart(out, "out", x, "x", error));
    GR_TRY(check_index(index, out, error));
    return check_range(index, "out", out->n_rows, threads, error);
}

int32_t gr_edge_check_index(const graft_index *index, int64_t n, int threads, graft_error *error)
{
    if (n < 0 || n >= INT64_MAX / 8) return gr_fail(error, GRAFT_ERR_ARG, "n is %lld rows", (long long)n);
    GR_TRY(check_index_array(index, error));
    return check_range(index, "the matrix", n, threads, error);
}

/* Check that `heads`, the number of columns of the matrix `name`, divides the width. */
static int32_t check_heads(int64_t heads, const char *name, int64_t width, graft_error *error)
{
    if (heads > 0 && width % heads == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%s has %lld columns, one for each head, which must divide the width of %lld",
                   name, (long long)heads, (long long)width);
}

int32_t gr_edge_check_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, const graft_dense *out,
                            graft_error *error)
{
    GR_TRY(check_real(x, "x", error));
    GR_TRY(check_form(x, "x", a->n_rows, x->n_cols, x->dtype, error));
    GR_TRY(check_form(y, "y", a->n_cols, x->n_cols, x->dtype, error));
    GR_TRY(check_form(out, "out", gr_csr_entries(a), out->n_cols, x->dtype, error));
    GR_TRY(check_heads(out->n_cols, "out", x->n_cols, error));
    GR_TRY(check_apart(out, "out", x, "x", error));
    return check_apart(out, "out", y, "y", error);
}

int32_t gr_edge_check_softmax(const graft_csr *a, const graft_dense *s, const graft_dense *p, graft_error *error)
{
    GR_TRY(check_form(s, "s", gr_csr_entries(a), s->n_cols, s->dtype, error));
    GR_TRY(check_form(p, "p", s->n_rows, s->n_cols, s->dtype, error));
    return check_in_place(p, "p", s, "s", error);
}

int32_t gr_edge_check_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp,
                                       const graft_dense *ds, graft_error *error)
{
    GR_TRY(check_form(p, "p", gr_csr_entries(a), p->n_cols, p->dtype, error));
    GR_TRY(check_form(dp, "dp", p->n_rows, p->n_cols, p->dtype, error));
    GR_TRY(check_form(ds, "ds", p->n_rows, p->n_cols, p->dtype, error));
    GR_TRY(check_in_place(ds, "ds", p, "p", error));
    return check_in_place(ds, "ds", dp, "dp", error);
}

int32_t gr_edge_check_mxm(const graft_csr *a, uint32_t flags, const graft_dense *w, const graft_dense *y,
                          const graft_dense *out, graft_error *error)
{
    const int     transposed = (flags & GRAFT_EDGE_TRANSPOSE) != 0;
    const int64_t n_out = transposed ? a->n_cols : a->n_rows, n_in = transposed ? a->n_rows : a->n_cols;

    if (flags & ~GRAFT_EDGE_TRANSPOSE) {
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, which has unknown bits", flags);
    }
    GR_TRY(check_form(w, "w", gr_csr_entries(a), w->n_cols, w->dtype, error));
    GR_TRY(check_form(out, "out", n_out, y != NULL ? out->n_cols : w->n_cols, w->dtype, error));
    GR_TRY(check_heads(w->n_cols, "w", out->n_cols, error));
    GR_TRY(check_apart(out, "out", w, "w", error));
    if (y == NULL) return GRAFT_OK;
    GR_TRY(check_form(y, "y", n_in, out->n_cols, w->dtype, error));
    return check_apart(out, "out", y, "y", error);
}
