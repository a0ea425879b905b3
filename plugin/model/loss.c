/* Cross-entropy, its gradient, and accuracy. Sums are taken over chunks of rows, then over the chunks in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "model/labels.h"

#include <math.h>
#include <string.h>

int64_t gr_argmax(const float *row, int64_t n)
{
    int64_t best = 0;

    for (int64_t j = 1; j < n; j++) {
        if (row[j] > row[best]) best = j;
    }
    return best;
}

static int target(const graft_trainer *t, int64_t v, int64_t class)
{
    return t->data.targets != NULL ? t->data.targets[v * t->data.n_classes + class] != 0 : t->data.labels[v] == class;
}

/* -log softmax(x)[label]. With gradient: factor * (softmax(x) - onehot). */
static double softmax_loss(const float *x, int64_t n, int64_t label, float factor, float *gradient)
{
    const float highest = x[gr_argmax(x, n)];
    float       sum = 0;

    for (int64_t j = 0; j < n; j++) {
        const float e = expf(x[j] - highest);

        sum += e;
        if (gradient != NULL) gradient[j] = e;
    }
    for (int64_t j = 0; j < n && gradient != NULL; j++) {
        gradient[j] = factor * (gradient[j] / sum - (j == label ? 1.0f : 0.0f));
    }
    return (double)logf(sum) + (double)(highest - x[label]);
}

/* Sum over classes of -log sigmoid(x) for those of the vertex, -log sigmoid(-x) for the others. */
static double sigmoid_loss(const graft_trainer *t, const float *x, int64_t v, float factor, float *gradient)
{
    double loss = 0;

    for (int64_t j = 0; j < t->data.n_classes; j++) {
        const float y = (float)target(t, v, j), e = expf(-fabsf(x[j]));

        loss += (double)((x[j] > 0 ? x[j] : 0) - x[j] * y + log1pf(e));
        if (gradient != NULL) gradient[j] = factor * ((x[j] >= 0 ? 1 / (1 + e) : e / (1 + e)) - y);
    }
    return loss;
}

static double vertex_loss(const graft_trainer *t, const float *x, int64_t v, float factor, float *gradient)
{
    if (t->config.sigmoid) return sigmoid_loss(t, x, v, factor, gradient);
    return softmax_loss(x, t->data.n_classes, t->data.labels[v], factor, gradient);
}

struct pass {
    const graft_trainer *t;
    const float         *logits;
    float               *gradient;
};

static void gradient_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass   *p = arg;
    const graft_trainer *t = p->t;
    const int64_t        classes = t->data.n_classes;
    const float          factor = t->n_loss > 0 ? 1 / (float)t->n_loss : 0;
    double               loss = 0;

    for (int64_t v = begin; v < end; v++) {
        float *g = p->gradient + v * classes;

        if (!gr_is_in_loss(t, v)) memset(g, 0, (uint64_t)classes * sizeof *g);
        else loss += vertex_loss(t, p->logits + v * classes, v, factor, g);
    }
    t->partial[chunk] = loss;
}

double gr_loss_gradient(const graft_trainer *t, const float *logits, float *gradient)
{
    struct pass   pass = { t, logits, gradient };
    const int64_t rows = t->reach[t->config.n_layers];
    double        loss = 0;

    gr_parallel_chunks(gr_profile_team(t), rows * t->data.n_classes, rows, GR_CHUNK_ROWS, gradient_chunk, &pass);
    for (int64_t c = 0; c < gr_chunk_count(rows, GR_CHUNK_ROWS); c++) loss += t->partial[c];
    return t->n_loss > 0 ? loss / (double)t->n_loss : 0;
}

/* What is counted for each split: vertices, loss, and right ones of all; or, with several classes at once, true
 * positives and half of all positives and predictions, whose ratio is F1. */
enum { VERTICES, LOSS, RIGHT, OF_ALL, COUNTS };

static void measure_vertex(const graft_trainer *t, const float *x, int64_t v, double *counts)
{
    counts[VERTICES]++;
    counts[LOSS] += vertex_loss(t, x, v, 0, NULL);
    if (t->data.targets == NULL) {
        counts[RIGHT] += gr_argmax(x, t->data.n_classes) == t->data.labels[v];
        counts[OF_ALL]++;
        return;
    }
    for (int64_t j = 0; j < t->data.n_classes; j++) {
        counts[RIGHT] += x[j] > 0 && target(t, v, j);
        counts[OF_ALL] += 0.5 * ((x[j] > 0) + target(t, v, j));
    }
}

static void measure_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass   *p = arg;
    const graft_trainer *t = p->t;
    double              *counts = t->partial + chunk * 3 * COUNTS;

    memset(counts, 0, 3 * COUNTS * sizeof *counts);
    for (int64_t v = begin; v < end; v++) {
        const int split = t->data.split[v];

        if (split == GRAFT_SPLIT_NONE || !gr_has_target(t, v)) continue;
        measure_vertex(t, p->logits + v * t->data.n_classes, v, counts + (split - 1) * COUNTS);
    }
}

int32_t gr_loss_measure(const graft_trainer *t, const float *logits, graft_metrics *metrics, graft_error *error)
{
    struct pass pass = { t, logits, NULL };
    double      counts[3][COUNTS] = { { 0 } };
    double     *accuracy[3] = { &metrics->train_accuracy, &metrics->validation_accuracy, &metrics->test_accuracy };
    double     *loss[3] = { &metrics->train_loss, &metrics->validation_loss, &metrics->test_loss };
    int32_t     rc = GRAFT_OK;

    gr_parallel_chunks(gr_profile_team(t), t->n * t->data.n_classes, t->n, GR_CHUNK_ROWS, measure_chunk, &pass);
    for (int64_t c = 0; c < gr_chunk_count(t->n, GR_CHUNK_ROWS); c++) {
        for (int i = 0; i < 3 * COUNTS; i++) counts[i / COUNTS][i % COUNTS] += t->partial[c * 3 * COUNTS + i];
    }
    GR_TRY(gr_ranks_sum(t, counts[0], 3 * COUNTS, error));
    for (int s = 0; s < 3; s++) {
        *accuracy[s] = counts[s][OF_ALL] > 0 ? counts[s][RIGHT] / counts[s][OF_ALL] : (double)NAN;
        *loss[s] = counts[s][VERTICES] > 0 ? counts[s][LOSS] / counts[s][VERTICES] : (double)NAN;
    }
done:
    return rc;
}
