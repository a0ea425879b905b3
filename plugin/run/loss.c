/* Cross-entropy with its gradient, and accuracy. regression.c does the same for float targets. Sums are computed over
 * chunks of rows, then over the chunks in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/loss.h"
#include "base/assert.h"
#include "base/finite.h"
#include "base/parallel.h"
#include "model/labels.h"

#include <math.h>
#include <string.h>

static int has_class(const struct gr_targets *t, int64_t v, int64_t class)
{
    return t->targets != NULL ? t->targets[v * t->n_classes + class] != 0 : t->labels[v] == class;
}

/* Return -log softmax(x)[label]. If `gradient` is not NULL, it becomes factor * (softmax(x) - onehot). */
static double softmax_loss(const float *x, int64_t n, int64_t label, float factor, float *gradient)
{
    const float highest = x[gr_argmax(x, n)];
    float       sum = 0;

    for (int64_t j = 0; j < n; j++) {
        const float e = expf(gr_below(x[j], highest));

        sum += e;
        if (gradient != NULL) gradient[j] = e;
    }
    for (int64_t j = 0; j < n && gradient != NULL; j++) {
        gradient[j] = factor * (gradient[j] / sum - (j == label ? 1.0f : 0.0f));
    }
    return (double)logf(sum) + ((double)highest - (double)x[label]);
}

/* The share of class j in the target of a vertex of class `label`: e/n for every class, plus 1 - e for `label`, times
 * the weight of class j; n is the number of classes, and e is label_smoothing. */
static double target_share(const struct gr_run *run, int64_t label, int64_t j)
{
    const double e = gr_run_config(run)->loss.label_smoothing, *weight = run->targets.class_weight;

    return (weight != NULL ? weight[j] : 1) * (e / (double)run->targets.n_classes + (j == label ? 1 - e : 0));
}

/* Return the sum over classes of -share log softmax(x). `gradient`, if not NULL, becomes factor * (softmax(x) sum of
 * shares - share). */
static double shared_softmax_loss(const struct gr_run *run, const float *x, int64_t label, float factor,
                                  float *gradient)
{
    const int64_t n = run->targets.n_classes;
    const float   highest = x[gr_argmax(x, n)];
    double        sum = 0, shares = 0, loss = 0;

    for (int64_t j = 0; j < n; j++) sum += (double)expf(gr_below(x[j], highest));
    for (int64_t j = 0; j < n; j++) {
        const double share = target_share(run, label, j);

        shares += share;
        if (share > 0) loss += share * (log(sum) + ((double)highest - (double)x[j]));
    }
    for (int64_t j = 0; j < n && gradient != NULL; j++) {
        const double p = (double)expf(gr_below(x[j], highest)) / sum;

        gradient[j] = (float)((double)factor * (p * shares - target_share(run, label, j)));
    }
    return loss;
}

/* Return the sum over classes of -log sigmoid(x) for classes of the vertex, and of -log sigmoid(-x) for other
 * classes. */
static double sigmoid_loss(const struct gr_targets *t, const float *x, int64_t v, float factor, float *gradient)
{
    double loss = 0;

    for (int64_t j = 0; j < t->n_classes; j++) {
        const float y = (float)has_class(t, v, j), e = expf(-fabsf(x[j]));

        loss += (double)((x[j] > 0 ? x[j] : 0) - x[j] * y + log1pf(e));
        if (gradient != NULL) gradient[j] = factor * ((x[j] >= 0 ? 1 / (1 + e) : e / (1 + e)) - y);
    }
    return loss;
}

static double vertex_loss(const struct gr_run *run, const float *x, int64_t v, float factor, float *gradient)
{
    const struct gr_targets *t = &run->targets;

    if (gr_is_regression(gr_run_config(run))) return gr_run_regression_loss(run, x, v, factor, gradient);
    if (gr_run_config(run)->loss.kind == GR_LOSS_SIGMOID) return sigmoid_loss(t, x, v, factor, gradient);
    if (t->class_weight != NULL || gr_run_config(run)->loss.label_smoothing > 0)
        return shared_softmax_loss(run, x, t->labels[v], factor, gradient);
    return softmax_loss(x, t->n_classes, t->labels[v], factor, gradient);
}

int32_t gr_run_loss_init(struct gr_run *run, struct gr_budget *budget, graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);

    if (!config->loss.balances) return GRAFT_OK;
    return GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->targets.class_weight, run->targets.n_classes, error);
}

double gr_run_loss_bytes(const struct gr_run *run)
{
    return run->targets.class_weight != NULL ? (double)run->targets.n_classes * sizeof(double) : 0;
}

/* Set class weights to n_train / (number of classes * training vertices of the class). A class without training
 * vertices has weight 0. */
static int32_t balance_classes(struct gr_targets *targets, struct gr_strategy *strategy, graft_error *error)
{
    const int64_t n = targets->n_classes;
    double *const weight = targets->class_weight;

    memset(weight, 0, (uint64_t)n * sizeof *weight);
    for (int64_t v = 0; v < targets->n; v++)
        if (gr_is_trained(targets, v)) weight[targets->labels[v]]++;
    GR_TRY(gr_strategy_sum(strategy, weight, n, error));
    targets->loss_weight = 0;
    for (int64_t c = 0; c < n; c++) {
        const double count = weight[c];

        if (count > 0) weight[c] = (double)targets->n_train / ((double)n * count);
        targets->loss_weight += weight[c] * count;
    }
    return GRAFT_OK;
}

int32_t gr_run_targets_count(struct gr_targets *targets, struct gr_strategy *strategy, graft_error *error)
{
    double counts[2] = { 0 }; /* counts are exact to 2^53 */

    for (int64_t v = 0; v < targets->n; v++) {
        if (!gr_is_trained(targets, v)) continue;
        counts[0]++;
        counts[1] += targets->values != NULL ? (double)gr_known_values(targets, v) : 1;
    }
    GR_TRY(gr_strategy_sum(strategy, counts, 2, error));
    targets->n_train = (int64_t)counts[0];
    targets->loss_weight = counts[1];
    if (targets->class_weight != NULL) return balance_classes(targets, strategy, error);
    return GRAFT_OK;
}

void gr_run_metrics_clear(graft_metrics *m)
{
    m->train_accuracy = m->validation_accuracy = m->test_accuracy = (double)NAN;
    m->train_loss = m->validation_loss = m->test_loss = (double)NAN;
    m->train_rmse = m->validation_rmse = m->test_rmse = (double)NAN;
    m->train_r2 = m->validation_r2 = m->test_r2 = (double)NAN;
}

struct pass {
    const struct gr_run *run;
    const float         *logits;
    float               *gradient;
};

static void gradient_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass   *p = arg;
    const struct gr_run *run = p->run;
    const int64_t        classes = run->targets.n_classes;
    const double         weight = run->targets.loss_weight;
    const float          factor = weight > 0 ? 1 / (float)weight : 0;
    double               loss = 0;

    for (int64_t v = begin; v < end; v++) {
        float *g = p->gradient + v * classes;

        if (!gr_is_in_loss(run, v)) memset(g, 0, (uint64_t)classes * sizeof *g);
        else {
            const float share = run->targets.vertex_weight != NULL ? run->targets.vertex_weight[v] : 1;
            loss += (double)share * vertex_loss(run, p->logits + v * classes, v, factor * share, g);
        }
    }
    run->space.partial[chunk] = loss;
}

double gr_run_loss_gradient(const struct gr_run *run, int64_t rows, const float *logits, float *gradient)
{
    struct pass  pass = { run, logits, gradient };
    const double weight = run->targets.loss_weight;
    double       loss = 0;

    GR_ASSERT(rows <= run->targets.n);
    gr_parallel_chunks(gr_run_team(run), rows * run->targets.n_classes, rows, GR_CHUNK_ROWS, gradient_chunk, &pass);
    for (int64_t c = 0; c < gr_chunk_count(rows, GR_CHUNK_ROWS); c++) loss += run->space.partial[c];
    return weight > 0 ? loss / weight : 0;
}

/* The sums of each split: weights of vertices, loss, number of right and of all predictions. If a vertex may have
 * several classes, RIGHT counts true positives, and OF_ALL half of positives plus predictions: the ratio is F1. */
enum { WEIGHT, LOSS, RIGHT, OF_ALL, COUNTS };

static void measure_vertex(const struct gr_run *run, const float *x, int64_t v, double *counts)
{
    const struct gr_targets *t = &run->targets;

    counts[WEIGHT] += gr_vertex_weight(t, v);
    counts[LOSS] += vertex_loss(run, x, v, 0, NULL);
    if (t->targets == NULL) {
        counts[RIGHT] += gr_argmax(x, t->n_classes) == t->labels[v];
        counts[OF_ALL]++;
        return;
    }
    for (int64_t j = 0; j < t->n_classes; j++) {
        counts[RIGHT] += x[j] > 0 && has_class(t, v, j);
        counts[OF_ALL] += 0.5 * ((x[j] > 0) + has_class(t, v, j));
    }
}

static void measure_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass       *p = arg;
    const struct gr_targets *t = &p->run->targets;
    double                  *counts = p->run->space.partial + chunk * 3 * COUNTS;

    memset(counts, 0, 3 * COUNTS * sizeof *counts);
    for (int64_t v = begin; v < end; v++) {
        const int split = t->split[v];

        if (split == GRAFT_SPLIT_NONE || !gr_has_target(t, v)) continue;
        measure_vertex(p->run, p->logits + v * t->n_classes, v, counts + (split - 1) * COUNTS);
    }
}

int32_t gr_run_loss_measure(struct gr_run *run, const float *logits, graft_metrics *metrics, int *is_finite,
                            graft_error *error)
{
    const struct gr_targets *t = &run->targets;
    struct pass              pass = { run, logits, NULL };
    double                   counts[3][COUNTS] = { { 0 } };
    double *accuracy[3] = { &metrics->train_accuracy, &metrics->validation_accuracy, &metrics->test_accuracy };
    double *loss[3] = { &metrics->train_loss, &metrics->validation_loss, &metrics->test_loss };

    gr_run_metrics_clear(metrics);
    if (gr_is_regression(gr_run_config(run))) return gr_run_regression_measure(run, logits, metrics, is_finite, error);
    gr_parallel_chunks(gr_run_team(run), t->n * t->n_classes, t->n, GR_CHUNK_ROWS, measure_chunk, &pass);
    for (int64_t c = 0; c < gr_chunk_count(t->n, GR_CHUNK_ROWS); c++) {
        for (int i = 0; i < 3 * COUNTS; i++) counts[i / COUNTS][i % COUNTS] += run->space.partial[c * 3 * COUNTS + i];
    }
    GR_TRY(gr_strategy_sum(run->strategy, counts[0], 3 * COUNTS, error));
    *is_finite = isfinite(counts[0][LOSS]) && isfinite(counts[1][LOSS]);
    for (int s = 0; s < 3; s++) {
        *accuracy[s] = counts[s][OF_ALL] > 0 ? counts[s][RIGHT] / counts[s][OF_ALL] : (double)NAN;
        *loss[s] = counts[s][WEIGHT] > 0 ? counts[s][LOSS] / counts[s][WEIGHT] : (double)NAN;
    }
    return GRAFT_OK;
}
