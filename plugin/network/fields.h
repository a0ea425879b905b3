/* Access to fields, the host's arrays of values on its rows, of any type and strides. gr_mesh_field_read() has checked
 * them. Loops go over chunks of rows, so that row-major and column-major arrays are both read from the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "mesh/mesh.h"

/** The number of rows of a chunk. */
enum { GR_FIELD_ROWS = GR_LIMIT(256, 4) };

/** Read one column of rows row[0] to row[count - 1] into `values`. */
static inline void gr_network_field_read_column(const graft_field *f, const int32_t *row, int64_t count, int64_t column,
                                                double *values)
{
    const int64_t first = column * f->column_stride, stride = f->row_stride;

    if (f->dtype == GRAFT_F64) {
        const double *data = (const double *)f->data + first;

        for (int64_t i = 0; i < count; i++) values[i] = data[row[i] * stride];
    } else {
        const float *data = (const float *)f->data + first;

        for (int64_t i = 0; i < count; i++) values[i] = (double)data[row[i] * stride];
    }
}

/** Write an element of a field. */
static inline void gr_network_field_put(const graft_field *f, int64_t row, int64_t column, double value)
{
    const int64_t at = row * f->row_stride + column * f->column_stride;

    if (f->dtype == GRAFT_F64) ((double *)f->data)[at] = value;
    else ((float *)f->data)[at] = (float)value;
}
