/* Running mean and standard deviation of the columns of data. Sums of squares are of deviations from the mean (Chan,
 * Golub and LeVeque 1983), because columns such as a pressure have a mean much larger than their deviation.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"

enum { GR_STATISTICS_NODE, GR_STATISTICS_EDGE, GR_STATISTICS_OUTPUT, GR_STATISTICS };

/** The smallest deviation by which values are divided. */
#define GR_DEVIATION_LEAST 1e-8

struct gr_statistics {
    int64_t columns;
    double *count;            /* [1] sum of the weights */
    double *sum, *squares;    /* [columns] */
    double *mean, *deviation; /* [columns] mean and deviation; 0 and 1 without data */
};

/** Make statistics of no data. */
int32_t gr_nn_statistics_init(struct gr_budget *budget, int64_t columns, struct gr_statistics *s, graft_error *error);
void    gr_nn_statistics_copy(struct gr_statistics *to, const struct gr_statistics *from);
/** Compute mean and deviation after a change of the sums. */
void    gr_nn_statistics_derive(struct gr_statistics *s);

/** Data to add: rows of columns, with a weight each. */
struct gr_statistics_rows {
    int64_t       n_rows, stride;
    const double *values; /* [n_rows x stride] */
    const double *weight; /* [n_rows]; NULL: 1 */
};

/** Elements of the sums of `columns` columns. */
static inline int64_t gr_nn_statistics_sums(int64_t columns)
{
    return 1 + 2 * columns;
}

/** The weight of rows, and the sums of their columns: added to sums[1 + 2 columns]. */
void gr_nn_statistics_sum(const struct gr_statistics_rows *rows, int64_t columns, double *sums);
/** The same about the mean of s: the weight, the sums of deviations, and the sums of their squares. */
void gr_nn_statistics_deviate(const struct gr_statistics *s, const struct gr_statistics_rows *rows, double *sums);
/** If s has no data yet, take the mean from sums made by gr_nn_statistics_sum(). */
void gr_nn_statistics_centre(struct gr_statistics *s, const double *sums);
/** Add sums that gr_nn_statistics_deviate() has made. */
void gr_nn_statistics_add(struct gr_statistics *s, const double *sums);
