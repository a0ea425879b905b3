/* Checks of the host's arrays of values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mesh/mesh.h"

/* The offset of the last element plus 1; -1: in bytes it does not fit into an int64_t. */
static int64_t field_span(const graft_field *f)
{
    int64_t rows, columns, span;

    if (f->n_rows == 0 || f->n_columns == 0) return 0;
    if (__builtin_mul_overflow(f->n_rows - 1, f->row_stride, &rows) ||
        __builtin_mul_overflow(f->n_columns - 1, f->column_stride, &columns) ||
        __builtin_add_overflow(rows, columns, &span) || span >= INT64_MAX / 8)
        return -1;
    return span + 1;
}

static int32_t check_strides(graft_field *f, const char *name, graft_error *error)
{
    if (f->row_stride == 0 && f->column_stride == 0) {
        f->row_stride = f->n_columns > 0 ? f->n_columns : 1;
        f->column_stride = 1;
    }
    if (f->row_stride < 1 || f->column_stride < 1)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "%s: row_stride is %lld and column_stride is %lld, expected at least 1, or "
                       "both 0",
                       name, (long long)f->row_stride, (long long)f->column_stride);
    if (field_span(f) < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: %lld x %lld elements with strides %lld and %lld exceed 2^63 bytes",
                       name, (long long)f->n_rows, (long long)f->n_columns, (long long)f->row_stride,
                       (long long)f->column_stride);
    if (f->row_stride <= (f->n_columns - 1) * f->column_stride && f->column_stride <= (f->n_rows - 1) * f->row_stride)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "%s: with row_stride %lld and column_stride %lld two of its %lld x %lld "
                       "elements are at one place",
                       name, (long long)f->row_stride, (long long)f->column_stride, (long long)f->n_rows,
                       (long long)f->n_columns);
    return GRAFT_OK;
}

int32_t gr_mesh_field_read(const graft_field *theirs, const char *name, int64_t n_rows, int64_t n_columns,
                           graft_field *field, graft_error *error)
{
    graft_field ours;

    GR_TRY(gr_struct_read(&ours, sizeof ours, theirs, name, error));
    if (ours.dtype != GRAFT_F32 && ours.dtype != GRAFT_F64)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", name,
                       ours.dtype);
    if (n_columns < 0 && ours.n_columns >= 0) n_columns = ours.n_columns;
    if (ours.n_rows != n_rows || ours.n_columns != n_columns)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: is %lld x %lld, expected %lld rows and %lld columns", name,
                       (long long)ours.n_rows, (long long)ours.n_columns, (long long)n_rows, (long long)n_columns);
    GR_TRY(check_strides(&ours, name, error));
    if (ours.data == NULL && n_rows > 0 && n_columns > 0)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: data is null", name);
    *field = ours;
    return GRAFT_OK;
}
