/* BatchNorm (Ioffe and Szegedy 2015) as in PyTorch's BatchNorm1d, with eps 1e-5. Statistics of each column are over all
 * rows that the layer computes, on all ranks. Evaluations use running statistics, which the optimiser updates. Sums
 * over rows are in double and have a fixed order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/rows.h"
#include "run/pass.h"

#include <math.h>
#include <string.h>

static const double EPSILON = 1e-5;

static float reciprocal_deviation(double variance)
{
    return (float)(1 / sqrt(variance + EPSILON));
}

/* Sum over all ranks, and record this as a phase of the profile. */
static int32_t sum_ranks(struct gr_run *run, double *values, int64_t count, graft_error *error)
{
    const double  begin = gr_profile_begin(&run->profile);
    const int32_t rc = gr_strategy_sum(run->strategy, values, count, error);

    if (run->strategy->ops->sum != NULL) gr_profile_end_alone(&run->profile, "reduce", begin);
    return rc;
}

static void sum_columns(struct gr_run *run, const struct gr_rows *rows, const double *mean, double *sum)
{
    const double                 begin = gr_profile_begin(&run->profile);
    const struct gr_rows_columns columns = { .rows = rows, .mean = mean, .partial = run->space.partial, .sum = sum };

    gr_nn_rows_sum_columns(&columns);
    gr_profile_end(&run->profile, "rows", begin, 4 * (double)rows->n * (double)rows->width, 0);
}

/* Find *n, the number of rows of all ranks and, in run->space.column_sums, the mean of each column and then the sums of
 * squared deviations from it. Each rank computes means and deviations of its own rows, in two passes. One sum over
 * ranks joins them (Chan et al. 1979): to the squared deviations from the mean of a rank it adds n times the squared
 * difference between this mean and the mean of all rows. Means are summed as differences from the running mean, which
 * is similar and is equal on all ranks, so that cancellation is small. */
static int32_t find_statistics(struct gr_run *run, const struct gr_activations *a, const struct gr_rows *rows,
                               double *n, graft_error *error)
{
    const int64_t      width = rows->width;
    const double       here = (double)rows->n;
    const float *const near = a->layer->running_mean->value;
    double *const mean = run->space.column_sums, *const squares = mean + width;

    sum_columns(run, rows, NULL, mean);
    for (int64_t j = 0; j < width; j++) mean[j] /= fmax(here, 1);
    sum_columns(run, rows, mean, squares);
    for (int64_t j = 0; j < width; j++) {
        const double far = mean[j] - (double)near[j];

        mean[j] = here * far;
        squares[j] += here * far * far;
    }
    mean[2 * width] = here;
    GR_TRY(sum_ranks(run, mean, 2 * width + 1, error));
    *n = fmax(mean[2 * width], 1);
    for (int64_t j = 0; j < width; j++) {
        const double far = mean[j] / *n;

        mean[j] = (double)near[j] + far;
        squares[j] -= *n * far * far;
        if (squares[j] < 0) squares[j] = 0; /* rounding may make it negative */
    }
    return GRAFT_OK;
}

int32_t gr_run_batch_norm_forward(struct gr_run *run, const struct gr_activations *a, struct gr_rows *rows,
                                  graft_error *error)
{
    const int64_t       width = rows->width;
    const double *const mean = run->space.column_sums, *const squares = mean + width;
    double n = 1;

    GR_TRY(find_statistics(run, a, rows, &n, error));
    for (int64_t j = 0; j < width; j++) {
        a->mean[j] = (float)mean[j];
        a->rstd[j] = reciprocal_deviation(squares[j] / n);
        a->layer->running_mean->gradient[j] = (float)mean[j];
        a->layer->running_variance->gradient[j] = (float)(squares[j] / fmax(n - 1, 1));
    }
    rows->has_z = 1;
    gr_model_layer_rows_forward(run, rows);
    return GRAFT_OK;
}

void gr_run_batch_norm_take_running(const struct gr_activations *a)
{
    for (int64_t j = 0; j < a->layer->out; j++) {
        a->mean[j] = a->layer->running_mean->value[j];
        a->rstd[j] = reciprocal_deviation((double)a->layer->running_variance->value[j]);
    }
}

int32_t gr_run_batch_norm_backward(struct gr_run *run, struct gr_rows_backward *pass, graft_error *error)
{
    const struct gr_rows           *rows = &pass->rows;
    const struct gr_rows_gradient  *gradient = &pass->gradient;
    const int64_t                   width = rows->width;
    double *const                   sums = run->space.column_sums;
    struct gr_rows_columns_backward columns = {
        .rows = rows, .mean_g = sums + width, .mean_gx = sums, .g = gradient->g
    };
    double begin;

    /* The partial sums of gain and shift come after those of the bias. */
    gr_nn_rows_total_chunks(gradient->partial + width, GR_PARTIALS * width, rows->n, 2 * width, sums);
    sums[2 * width] = (double)rows->n;
    GR_TRY(sum_ranks(run, sums, 2 * width + 1, error));
    for (int64_t j = 0; j < 2 * width; j++) sums[j] /= fmax(sums[2 * width], 1);
    /* Subtracting the mean removes the bias, so its gradient is 0 up to rounding errors, which Adam would turn into
     * steps. This does not hold with dropout before the normalisation. */
    if (rows->drops_first && rows->threshold > 0) columns.bias = gradient->bias;
    else memset(gradient->bias, 0, (uint64_t)width * sizeof *gradient->bias);
    columns.partial = run->space.partial;
    begin = gr_profile_begin(&run->profile);
    gr_nn_rows_columns_backward(&columns);
    gr_profile_end(&run->profile, "rows", begin, 12 * (double)rows->n * (double)width, 0);
    return GRAFT_OK;
}
