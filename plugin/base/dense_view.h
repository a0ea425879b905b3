/* Describes arrays as matrices of the ABI.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_matrix.h"

/** Describe data[n_rows x stride], of which the first n_cols columns are the matrix. If `data` is const, the result
 *  must only be read. */
static inline graft_dense gr_dense_view(const void *data, graft_dtype dtype, int64_t n_rows, int64_t n_cols,
                                        int64_t stride)
{
    return (graft_dense){ .size = sizeof(graft_dense),
                          .dtype = dtype,
                          .n_rows = n_rows,
                          .n_cols = n_cols,
                          .stride = stride,
                          .data = (void *)(uintptr_t)data };
}
