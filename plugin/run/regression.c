/* Losses of float targets and their gradients, RMSE and R^2. Unknown targets do not count. Sums are computed over
 * chunks of rows, then over the chunks in order, then over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "model/run.h"
#include "nn/rows.h"
#include "run/loss.h"

#include <string.h>

enum { SPLITS = GR_PARTIALS };

/* Return the loss of an output that exceeds its target by d. *slope becomes the derivative with respect to d. Huber is
 * defined as in PyTorch's HuberLoss. */
static double element_loss(const struct gr_config *config, double d, double *slope)
{
    const double size = fabs(d), delta = config->loss.huber_delta;

    switch (config->loss.kind) {
    case GR_LOSS_MSE: *slope = 2 * d; return d * d;
    case GR_LOSS_MAE: *slope = (d > 0) - (d < 0); return size;
    default:
        GR_ASSERT(config->loss.kind == GR_LOSS_HUBER);
        *slope = size <= delta ? d : copysign(delta, d);
        return size <= delta ? 0.5 * d * d : delta * (size - 0.5 * delta);
    }
}

double gr_run_regression_loss(const struct gr_run *run, const float *x, int64_t v, float factor, float *gradient)
{
    const struct gr_targets *t = &run->targets;
    const float             *y = t->values + v * t->stride;
    double                   loss = 0, slope;

    for (int64_t j = 0; j < t->n_classes; j++) {
        const int known = !isnan(y[j]);

        if (known) loss += element_loss(gr_run_config(run), (double)x[j] - (double)y[j], &slope);
        if (gradient != NULL) gradient[j] = known ? (float)(factor * slope) : 0;
    }
    return loss;
}

/* Sums over the known targets of each split. A first pass over all rows counts and sums the targets of each column. A
 * second pass uses their means, so that there is no cancellation. */
struct sums {
    int64_t columns;
    double *loss;     /* [SPLITS] sums of the loss */
    double *error;    /* [SPLITS x columns] sums of (y - x)^2; in the first pass the number of known targets */
    double *variance; /* [SPLITS x columns] sums of (y - mean)^2; in the first pass the sums of y */
};

int64_t gr_run_regression_sums(int64_t columns)
{
    return 1 + 2 * columns;
}

static struct sums sums_in(double *at, int64_t columns)
{
    return (struct sums){ columns, at, at + SPLITS, at + SPLITS * (1 + columns) };
}

struct pass {
    const struct gr_run *run;
    const float         *outputs;
    const double        *mean; /* [SPLITS x columns] means of targets; NULL in the first pass */
};

static void count_vertex(const struct pass *p, int64_t v, int split, struct sums *sums)
{
    const struct gr_targets *t = &p->run->targets;

    for (int64_t j = 0; j < t->n_classes; j++) {
        const float   y = t->values[v * t->stride + j];
        const int64_t at = split * t->n_classes + j;

        if (isnan(y)) continue;
        sums->error[at]++;
        sums->variance[at] += (double)y;
    }
}

static void measure_errors(const struct pass *p, int64_t v, int split, struct sums *sums)
{
    const struct gr_targets *t = &p->run->targets;
    const float             *x = p->outputs + v * t->n_classes;

    sums->loss[split] += gr_run_regression_loss(p->run, x, v, 0, NULL);
    for (int64_t j = 0; j < t->n_classes; j++) {
        const double  y = (double)t->values[v * t->stride + j], error = y - (double)x[j];
        const int64_t at = split * t->n_classes + j;

        if (isnan(y)) continue;
        sums->error[at] += error * error;
        sums->variance[at] += (y - p->mean[at]) * (y - p->mean[at]);
    }
}

static void sum_targets(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass       *p = arg;
    const struct gr_targets *t = &p->run->targets;
    const int64_t            count = SPLITS * gr_run_regression_sums(t->n_classes);
    struct sums              sums = sums_in(p->run->space.partial + chunk * count, t->n_classes);

    memset(sums.loss, 0, (uint64_t)count * sizeof *sums.loss);
    for (int64_t v = begin; v < end; v++) {
        const int split = t->split[v] - 1;

        if (split < 0) continue;
        if (p->mean == NULL) count_vertex(p, v, split, &sums);
        else measure_errors(p, v, split, &sums);
    }
}

/* Compute total[SPLITS x gr_run_regression_sums()], sums over all rows of all ranks. */
static int32_t sum_pass(struct gr_run *run, struct pass *pass, double *total, graft_error *error)
{
    const struct gr_targets *t = &run->targets;
    const int64_t            count = SPLITS * gr_run_regression_sums(t->n_classes);

    memset(total, 0, (uint64_t)count * sizeof *total);
    gr_parallel_chunks(gr_run_team(run), t->n * t->n_classes, t->n, GR_CHUNK_ROWS, sum_targets, pass);
    for (int64_t c = 0; c < gr_chunk_count(t->n, GR_CHUNK_ROWS); c++) {
        for (int64_t i = 0; i < count; i++) total[i] += run->space.partial[c * count + i];
    }
    return gr_strategy_sum(run->strategy, total, count, error);
}

/* The mean of 1 - error / variance over columns whose targets differ. Targets that are all equal may have a variance
 * above 0, because the mean is rounded, but it is smaller than two different floats would cause. */
static double r_squared(const struct sums *sums, const double *mean, int split)
{
    double sum = 0;
    int    columns = 0;

    for (int64_t j = 0; j < sums->columns; j++) {
        const int64_t at = split * sums->columns + j;

        if (!(sums->variance[at] > 0x1p-52 * mean[at] * mean[at])) continue;
        sum += 1 - sums->error[at] / sums->variance[at];
        columns++;
    }
    return columns > 0 ? sum / columns : (double)NAN;
}

static void write_metrics(const struct sums *sums, const double *mean, const double known[SPLITS],
                          graft_metrics *metrics)
{
    double *const loss[SPLITS] = { &metrics->train_loss, &metrics->validation_loss, &metrics->test_loss };
    double *const rmse[SPLITS] = { &metrics->train_rmse, &metrics->validation_rmse, &metrics->test_rmse };
    double *const r2[SPLITS] = { &metrics->train_r2, &metrics->validation_r2, &metrics->test_r2 };

    for (int s = 0; s < SPLITS; s++) {
        double error = 0;

        if (known[s] == 0) continue;
        for (int64_t j = 0; j < sums->columns; j++) error += sums->error[s * sums->columns + j];
        *loss[s] = sums->loss[s] / known[s];
        *rmse[s] = sqrt(error / known[s]);
        *r2[s] = r_squared(sums, mean, s);
    }
}

/* In the memory for partial sums, totals and means come after the sums of the chunks. */
int32_t gr_run_regression_measure(struct gr_run *run, const float *outputs, graft_metrics *metrics, int *is_finite,
                                  graft_error *error)
{
    const struct gr_targets *t = &run->targets;
    const int64_t            columns = t->n_classes;
    double *const            total =
        run->space.partial + gr_chunk_count(t->n, GR_CHUNK_ROWS) * SPLITS * gr_run_regression_sums(columns);
    double *const     mean = total + SPLITS * gr_run_regression_sums(columns);
    const struct sums sums = sums_in(total, columns);
    struct pass       pass = { run, outputs, NULL };
    double            known[SPLITS] = { 0 };

    GR_TRY(sum_pass(run, &pass, total, error));
    for (int64_t at = 0; at < SPLITS * columns; at++) {
        known[at / columns] += sums.error[at];
        mean[at] = sums.error[at] > 0 ? sums.variance[at] / sums.error[at] : 0;
    }
    pass.mean = mean;
    GR_TRY(sum_pass(run, &pass, total, error));
    *is_finite = isfinite(sums.loss[0]) && isfinite(sums.loss[1]);
    write_metrics(&sums, mean, known, metrics);
    return GRAFT_OK;
}
