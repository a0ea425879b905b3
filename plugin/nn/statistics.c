/* Running mean and standard deviation of the columns of data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/statistics.h"

#include <math.h>
#include <string.h>

int32_t gr_nn_statistics_init(struct gr_budget *budget, int64_t columns, struct gr_statistics *s, graft_error *error)
{
    double *arrays;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_FEATURES, arrays, 1 + 4 * columns, error));
    *s = (struct gr_statistics){ .columns = columns, .count = arrays };
    s->sum = arrays + 1;
    s->squares = s->sum + columns;
    s->mean = s->squares + columns;
    s->deviation = s->mean + columns;
    gr_nn_statistics_derive(s);
    return GRAFT_OK;
}

void gr_nn_statistics_copy(struct gr_statistics *to, const struct gr_statistics *from)
{
    memcpy(to->count, from->count, (size_t)(1 + 4 * from->columns) * sizeof *to->count);
}

void gr_nn_statistics_derive(struct gr_statistics *s)
{
    const double count = *s->count;

    for (int64_t j = 0; j < s->columns; j++) {
        s->mean[j] = count > 0 ? s->sum[j] / count : 0;
        s->deviation[j] = count > 0 ? fmax(sqrt(s->squares[j] / count), GR_DEVIATION_LEAST) : 1;
    }
}

void gr_nn_statistics_sum(const struct gr_statistics_rows *rows, int64_t columns, double *sums)
{
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const double *x = rows->values + i * rows->stride, w = rows->weight != NULL ? rows->weight[i] : 1;

        if (w == 0) continue; /* values of rows without weight are not read: they may be undefined */
        sums[0] += w;
        for (int64_t j = 0; j < columns; j++) sums[1 + j] += w * x[j];
    }
}

void gr_nn_statistics_deviate(const struct gr_statistics *s, const struct gr_statistics_rows *rows, double *sums)
{
    double *first = sums + 1, *second = first + s->columns;

    for (int64_t i = 0; i < rows->n_rows; i++) {
        const double *x = rows->values + i * rows->stride, w = rows->weight != NULL ? rows->weight[i] : 1;

        if (w == 0) continue;
        sums[0] += w;
        for (int64_t j = 0; j < s->columns; j++) {
            const double d = x[j] - s->mean[j];

            first[j] += w * d;
            second[j] += w * d * d;
        }
    }
}

void gr_nn_statistics_centre(struct gr_statistics *s, const double *sums)
{
    for (int64_t j = 0; j < s->columns && *s->count == 0 && sums[0] > 0; j++) s->mean[j] = sums[1 + j] / sums[0];
}

void gr_nn_statistics_add(struct gr_statistics *s, const double *sums)
{
    const double *first = sums + 1, *second = first + s->columns;
    const double  count = *s->count + sums[0];

    if (count <= 0) return;
    for (int64_t j = 0; j < s->columns; j++) {
        const double squares = s->squares[j] + second[j] - first[j] * first[j] / count;

        s->sum[j] += first[j] + sums[0] * s->mean[j];
        s->squares[j] = squares < 0 ? 0 : squares; /* NaN remains NaN */
    }
    *s->count = count;
    gr_nn_statistics_derive(s);
}
