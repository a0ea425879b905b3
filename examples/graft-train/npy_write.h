/* Writing one column of numbers in the .npy format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NPY_WRITE_H
#define NPY_WRITE_H

#include "problem.h"

/** Write `values` as .npy version 1: int32, shape (count,). */
int32_t npy_write(const char *path, const int32_t *values, int64_t count, graft_error *error);

#endif
