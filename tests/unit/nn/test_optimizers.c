/* Checks the steps of the optimisers against the oracle: weights, moments, and clipping of gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/training.h"

#include "graft_load.h"

#include <math.h>
#include <stdlib.h>

static const graft_api *api;

/** How far a weight may be off after a step. Adam divides by the root of the second moment, so that an error of the
 *  gradient, which is 1e-5 of the largest element in its tensor, becomes lr times that over the root. */
static double allowance(const struct oracle_optimizer *optimizer, int64_t step, double largest_g, double w, double v)
{
    const double error = 1e-5 * largest_g;
    const double root = optimizer->adam ? sqrt(v / (1 - pow(0.999, (double)step))) + 1e-8 : 1;

    return 4 * optimizer->lr * fmin(error / root, 1) + 1e-6 * fabs(w) + 1e-7;
}

/** Compare weights and moments of one tensor after step `step`. */
static int check_tensor(struct training *training, const struct oracle_optimizer *optimizer, int64_t step, int32_t t)
{
    const struct oracle_tensor *tensor = &training->model.tensor[t];
    const int64_t               count = training_count(tensor);
    const double                largest_g = training_largest(training->gradient[step - 1][t], count);
    double                     *w = oracle_new(count, sizeof *w), *m = oracle_new(count, sizeof *m);
    double                     *v = oracle_new(count, sizeof *v), over = 0;
    int                         good = training_pull(training, "", t, w);

    for (int64_t at = 0; at < count; at++)
        over = fmax(over, fabs(w[at] - tensor->value[at]) /
                              allowance(optimizer, step, largest_g, tensor->value[at], training->v[t][at]));
    good = good && over <= 1;
    if (optimizer->adam) {
        good = good && training_pull(training, "optimizer.m.", t, m) && training_pull(training, "optimizer.v.", t, v) &&
               training_distance(m, training->m[t], count) < 1e-4 && training_distance(v, training->v[t], count) < 2e-4;
    } else if (optimizer->momentum > 0) {
        good =
            good && training_pull(training, "optimizer.m.", t, m) && training_distance(m, training->m[t], count) < 1e-4;
    }
    if (!good)
        diag("%s: weights are %.2g times as far off as they may be, first moment %.1e, second %.1e", tensor->name, over,
             training_distance(m, training->m[t], count), training_distance(v, training->v[t], count));
    free(w);
    free(m);
    free(v);
    return good;
}

/** Make step `step` of the oracle from its own gradient. The result is the norm of the gradient before it was
 *  clipped. */
static double step_oracle(struct training *training, const struct oracle_optimizer *optimizer, int64_t step)
{
    const double length =
        oracle_clip(optimizer, training->model.tensor, training->model.n_tensors, training->gradient[step - 1]);

    for (int32_t t = 0; t < training->model.n_tensors; t++)
        oracle_optimizer_step(optimizer, step, &training->model.tensor[t], training->gradient[step - 1][t],
                              training->m[t], training->v[t]);
    return length;
}

/** Whether an epoch reports the norm of the gradient, which it does with option clip_norm only. */
static int tells_length(const struct oracle_optimizer *optimizer, double told, double length)
{
    if (optimizer->clip_norm == 0) return isnan(told);
    return fabs(told - length) <= 1e-4 * length;
}

/** Call training_init() with a seed for which the gradient after the first step is far from points where the derivative
 *  jumps, too. */
static void init_for_steps(struct training *training, const struct training_case *what)
{
    int      smooth = 0;
    uint64_t seed = 0;

    while (!smooth) {
        training_init(training, what, seed + 1);
        seed = training->model.options.seed;
        step_oracle(training, &what->optimizer, 1);
        smooth = training_differentiate(training, 1);
        training_fini(training);
    }
    training_init(training, what, seed);
}

/** Make two steps of an optimiser. The oracle follows its own weights. */
static void check_steps(const struct training_case *what, const char *name)
{
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);
    graft_epoch     epoch = output_epoch();
    int32_t         rc;

    init_for_steps(&training, what);
    rc = training_open(&training, api, what, &error);
    for (int step = 1; step <= 2; step++) {
        double length;
        int    good = 1;

        if (rc == GRAFT_OK) rc = training.train->epoch(training.trainer, &epoch, &error);
        if (rc != GRAFT_OK) diag("%s", error.message);
        training_differentiate(&training, step - 1);
        length = step_oracle(&training, &what->optimizer, step);
        good = tells_length(&what->optimizer, epoch.gradient_norm, length);
        if (!good) diag("the gradient is %.9g long, expected %.9g", epoch.gradient_norm, length);
        for (int32_t t = 0; good && t < training.model.n_tensors; t++)
            good = check_tensor(&training, &what->optimizer, step, t);
        ok(good && rc == GRAFT_OK, "%s: step %d is right", name, step);
    }
    training_fini(&training);
}

static void test_optimizers(void)
{
    struct training_case what = { .kind = ORACLE_SAGE, .layers = 3, .norm = 1, .dropout = 0.25 };

    what.optimizer = (struct oracle_optimizer){ .adam = 1, .lr = 0.01 };
    check_steps(&what, "Adam");
    what.optimizer.weight_decay = 0.25;
    check_steps(&what, "Adam, weight decay on all layers");
    what.optimizer.decay_first_only = 1;
    check_steps(&what, "Adam, weight decay on the first layer");
    what.label_rate = 0.5;
    check_steps(&what, "Adam on labels too, weight decay on the first layer");
    what.label_rate = 0;
    what.optimizer = (struct oracle_optimizer){ .lr = 0.125, .momentum = 0.5 };
    check_steps(&what, "SGD with momentum");
    what.optimizer.weight_decay = 0.25;
    check_steps(&what, "SGD with momentum, weight decay on all layers");
    what.optimizer.decay_first_only = 1;
    check_steps(&what, "SGD with momentum, weight decay on the first layer");
    what.optimizer.clip_norm = 0.03125;
    check_steps(&what, "SGD with momentum, clipped, weight decay on the first layer");
    what.optimizer.clip_norm = 1024;
    check_steps(&what, "SGD with momentum, a gradient shorter than clip_norm");
    what.optimizer = (struct oracle_optimizer){ .adam = 1, .lr = 0.01, .weight_decay = 0.25, .clip_norm = 0.0625 };
    check_steps(&what, "Adam, clipped, weight decay on all layers");
    what.optimizer =
        (struct oracle_optimizer){ .lr = 0.125, .momentum = 0.5, .weight_decay = 0.25, .decay_first_only = 1 };
    what.kind = ORACLE_GIN;
    check_steps(&what, "SGD on gin, weight decay on the first layer");
    what.kind = ORACLE_GAT;
    what.heads = 2;
    what.layers = 2;
    what.optimizer.decay_first_only = 0;
    check_steps(&what, "SGD on gat, weight decay on all layers");
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    test_optimizers();
    api->close(api->context);
    return done();
}
