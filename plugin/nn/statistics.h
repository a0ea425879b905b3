/* Running mean and standard deviation of the columns of data. Deviations from the mean are squared and summed (Chan,
 * Golub and LeVeque 1983), because the mean of columns such as a pressure is much larger than their deviation.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"

enum { GR_STATISTICS_NODE, GR_STATISTICS_EDGE, GR_STATISTICS_OUTPUT, GR_STATISTICS };

/** The smallest deviation by which values are divided. */
#define GR_DEVIATION_LEAST 1e-8

struct gr_statistics {
    int64_t columns;
    double *count;            /* [1] sum of the weights */
    double *sum, *squares;    /* [columns] weighted sums, and sums of squared deviations from the mean */
    double *mean, *deviation; /* [columns] mean and deviation; 0 and 1 without data */
};

/** Create statistics without data. \return OK; ERR_NOMEM. */
int32_t gr_nn_statistics_init(struct gr_budget *budget, int64_t columns, struct gr_statistics *s, graft_error *error);
void    gr_nn_statistics_copy(struct gr_statistics *to, const struct gr_statistics *from);
/** Compute mean and deviation after a change of the sums. */
void    gr_nn_statistics_derive(struct gr_statistics *s);

/** Rows of data to add to statistics, each with a weight. */
struct gr_statistics_rows {
    int64_t       n_rows, stride;
    const double *values; /* [n_rows x stride] the rows, of which the first columns are read */
    const double *weight; /* [n_rows] weight of each row; NULL: 1 */
};

/** The number of elements of the array `sums` for `columns` columns. */
static inline int64_t gr_nn_statistics_sums(int64_t columns)
{
    return 1 + 2 * columns;
}

/** Add the weight of rows to sums[0], and the weighted sums of their columns to the next `columns` elements. */
void gr_nn_statistics_sum(const struct gr_statistics_rows *rows, int64_t columns, double *sums);
/** Add to sums[1 + 2 columns] the weight of rows, and for each column the weighted sums of the deviations from the mean
 *  in s, and of their squares. */
void gr_nn_statistics_deviate(const struct gr_statistics *s, const struct gr_statistics_rows *rows, double *sums);
/** Set the mean of s from sums of gr_nn_statistics_sum() if s has no data yet. */
void gr_nn_statistics_centre(struct gr_statistics *s, const double *sums);
/** Add the data whose sums gr_nn_statistics_deviate() has computed to s. */
void gr_nn_statistics_add(struct gr_statistics *s, const double *sums);
