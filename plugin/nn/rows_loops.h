/* The loops of rows.c, in one table for each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "nn/rows.h"

struct gr_rows_loops {
    /** Do gr_nn_rows_forward() for rows begin to end - 1. */
    void (*forward)(const struct gr_rows *rows, int64_t begin, int64_t end);
    /** Do the backward pass for rows begin to end - 1, and write their sums for bias, gain and shift to `partial`. */
    void (*backward)(const struct gr_rows *rows, float *gradient, double *partial, int64_t begin, int64_t end);
    /** Write the sums of gr_nn_rows_sum_columns() over rows begin to end - 1 to `partial`. */
    void (*sum_columns)(const struct gr_rows *rows, const double *mean, double *partial, int64_t begin, int64_t end);
    /** Do gr_nn_rows_columns_backward() for rows begin to end - 1, and write their sums for bias to `partial`. */
    void (*columns_backward)(const struct gr_rows_columns_backward *columns, double *partial, int64_t begin,
                             int64_t end);
    /** Do gr_nn_rows_dropout() for rows begin to end - 1. */
    void (*drop)(const struct gr_rows_drop *rows, int64_t begin, int64_t end);
};

extern const struct gr_rows_loops gr_rows_generic, gr_rows_avx2, gr_rows_avx512, gr_rows_sve256, gr_rows_sve512;

/** Select the loops of an instruction set, or of the widest lower set for which loops are compiled. */
const struct gr_rows_loops *gr_nn_rows_loops_for(enum gr_isa isa);
