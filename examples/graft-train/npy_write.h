/* Writes arrays of numbers in the .npy format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NPY_WRITE_H
#define NPY_WRITE_H

#include "problem.h"

/** Write `values` as .npy version 1: int32 of shape (count,), or if `columns` > 0 float32 of shape (count, columns). */
int32_t npy_write(const char *path, const void *values, int64_t count, int64_t columns, graft_error *error);

#endif
