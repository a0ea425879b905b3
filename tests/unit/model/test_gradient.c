/* Checks graft.train/1 against the oracle: the gradients of every weight of every model, losses, predictions and
 * metrics. The arguments name the models; none means all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/gradient.h"

#include "graft_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const graft_api *api;

static int close_to(double found, double expected, double relative)
{
    if (isnan(expected)) return isnan(found);
    return fabs(found - expected) <= relative * fmax(1, fabs(expected));
}

static void check_gradient(const struct training_case *what)
{
    gradient_check(api, what);
}

static void test_gradients(enum oracle_kind kind, int64_t heads)
{
    for (int32_t layers = 1; layers <= 3; layers++) {
        for (int which = 0; which < 32; which += case_step()) {
            const struct training_case what = { .kind = kind,
                                                .layers = layers,
                                                .heads = heads,
                                                .norm = which & 1,
                                                .several = which >> 1 & 1,
                                                .sparse = which >> 2 & 1,
                                                .growing = which >> 3 & 1,
                                                .dropout = which >> 4 ? 0.5 : 0,
                                                .input_dropout = which >> 4 ? 0.3 : 0,
                                                .optimizer = { .lr = GRADIENT_RATE } };

            /* A single layer has neither norm nor hidden width. */
            if (layers == 1 && (what.norm || what.growing)) continue;
            check_gradient(&what);
        }
    }
}

/** Options that change graph and features, edge values, losses other than the automatic one, and a graph with more rows
 *  than one chunk of any loop of the library. */
static void test_variants(enum oracle_kind kind)
{
    struct training_case what = {
        .kind = kind, .layers = 2, .prepare = 1, .norm = 1, .optimizer = { .lr = GRADIENT_RATE }
    };

    check_gradient(&what);
    what.anew = what.unmasked = 1;
    check_gradient(&what);
    what.layers = 3;
    what.recompute = 1;
    check_gradient(&what);
    what.layers = 2;
    what.recompute = what.unmasked = 0;
    what.sparse = 1;
    what.weighted = 1;
    check_gradient(&what);
    what.anew = 0;
    what.prepare = 0;
    check_gradient(&what);
    what = (struct training_case){ .kind = kind, .layers = 2, .loss = "sigmoid", .optimizer = { .lr = GRADIENT_RATE } };
    check_gradient(&what);
    what.several = 1;
    what.loss = "softmax";
    check_gradient(&what);
    what = (struct training_case){
        .kind = kind, .layers = 1, .n = 700, .sparse = 1, .optimizer = { .lr = GRADIENT_RATE }
    };
    check_gradient(&what);
}

/** Whatever order the trainer stores the vertices in, dropout must be that of the host's vertex numbers. */
static void test_orders(enum oracle_kind kind)
{
    static const char *const orders[] = { "degree", "rcm", "community" };

    for (int which = 0; which < 12; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 2,
                                            .norm = 1,
                                            .several = which / 3 & 1,
                                            .sparse = which / 6 & 1,
                                            .weighted = which / 6 & 1,
                                            .prepare = which / 3 & 1,
                                            .dropout = 0.5,
                                            .input_dropout = 0.3,
                                            .unmasked = which / 3 == 2,
                                            .order = orders[which % 3],
                                            .optimizer = { .lr = GRADIENT_RATE } };
        check_gradient(&what);
    }
}

/** Sparse features that stay sparse or are made dense, with repeated and unsorted entries. Both must give the results
 *  of the oracle. Two layers of 23 vertices need all features; larger graphs with few training vertices do not. */
static void test_sparse_input(enum oracle_kind kind)
{
    for (int which = 0; which < 24; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 1 + which / 2 % 2,
                                            .n = which / 2 % 2 ? 60 : 0,
                                            .growing = which / 4 % 2,
                                            .norm = which / 2 % 2,
                                            .sparse = 1,
                                            .sparse_input = which % 2 ? "no" : "yes",
                                            .entries = which / 2 % 3,
                                            .prepare = which / 8 == 1,
                                            .scarce = which / 4 % 2 == 0,
                                            .dropout = which / 8 > 0 ? 0.5 : 0,
                                            .input_dropout = which / 8 > 0 ? 0.3 : 0,
                                            .order = which / 8 == 2 ? "rcm" : NULL,
                                            .threads = which / 2 % 2 ? 3 : 1,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        check_gradient(&what);
    }
}

/** Labels as input, with all options that change how the first layer works. */
static void test_labels(enum oracle_kind kind)
{
    for (int which = 0; which < 24; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 1 + which % 3,
                                            .heads = 1 + (kind == ORACLE_GAT && which % 2),
                                            .n = which % 4 ? 0 : 60,
                                            .growing = which / 2 % 2,
                                            .norm = which / 6 % 2,
                                            .several = which / 3 % 2,
                                            .sparse = which / 4 % 2,
                                            .sparse_input = which / 8 % 2 ? "no" : "yes",
                                            .weighted = which / 12 % 2,
                                            .prepare = which / 8 == 1,
                                            .dropout = which / 8 % 3 == 1 ? 0.5 : 0,
                                            .input_dropout = which / 4 % 3 == 1 ? 0.3 : 0,
                                            .label_rate = which % 5 ? 0.5 : 0.62,
                                            .order = which / 9 % 2 ? "rcm" : NULL,
                                            .unmasked = which / 7 % 2,
                                            .anew = which / 5 % 2,
                                            .recompute = which / 10 % 2,
                                            .scarce = kind != ORACLE_GAT && which / 3 % 4 == 1,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        check_gradient(&what);
    }
}

/** Float targets with every loss for them, some of them unknown, and all options that change which rows a step
 *  computes. */
static void test_regression(enum oracle_kind kind)
{
    static const char *const losses[] = { NULL, "mse", "mae", "huber" };

    for (int which = 0; which < 24; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 1 + which % 3,
                                            .n = which / 4 % 3 == 2 ? 60 : 0,
                                            .growing = which / 2 % 2,
                                            .norm = which / 6 % 2,
                                            .loss = losses[which % 4],
                                            .regression = 1,
                                            .sparse = which / 3 % 2,
                                            .dropout = which / 8 == 1 ? 0.5 : 0,
                                            .input_dropout = which / 8 == 2 ? 0.3 : 0,
                                            .order = which / 5 % 3 == 1 ? "rcm" : NULL,
                                            .unmasked = which / 7 % 2,
                                            .recompute = which / 10 % 2,
                                            .scarce = kind != ORACLE_GAT && which / 4 % 3 == 2,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        check_gradient(&what);
    }
}

/** Class weights and label smoothing, with all options that change which vertices are in the loss and what is
 *  measured. */
static void test_softmax_options(enum oracle_kind kind)
{
    for (int which = 0; which < 18; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 1 + which % 2,
                                            .n = which % 5 ? 0 : 60,
                                            .balanced = which % 3 != 1,
                                            .smoothing = which % 3 == 0 ? 0
                                                         : which % 2    ? 0.1
                                                                        : 0.75,
                                            .loss = which % 4 == 3 ? "softmax" : NULL,
                                            .several = which % 4 == 3, /* labels beside targets */
                                            .dropout = which / 4 % 3 == 1 ? 0.5 : 0,
                                            .label_rate = which / 3 % 3 == 1 ? 0.5 : 0,
                                            .order = which / 6 % 3 == 1 ? "rcm" : NULL,
                                            .scarce = kind != ORACLE_GAT && which / 5 % 3 == 1,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        check_gradient(&what);
    }
}

/** The aggregators of sage other than the mean, in either order of products, with all options that change what is
 *  aggregated. */
static void test_aggregator(const char *aggregator)
{
    for (int which = 0; which < 18; which += case_step()) {
        const struct training_case what = { .kind = ORACLE_SAGE,
                                            .aggregator = aggregator,
                                            .layers = 1 + which % 3,
                                            .n = which % 7 == 6 ? 60 : 0,
                                            .growing = which / 3 % 2,
                                            .norm = which / 2 % 2,
                                            .sparse = which % 4 == 2,
                                            .weighted = which / 4 % 2,
                                            .dropout = which / 6 == 1 ? 0.5 : 0,
                                            .input_dropout = which / 6 == 2 ? 0.3 : 0,
                                            .order = which / 5 % 2 ? "rcm" : NULL,
                                            .unmasked = which / 9,
                                            .anew = which / 4 % 2,
                                            .recompute = which / 2 % 3 == 1,
                                            .scarce = which % 5 == 3,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        check_gradient(&what);
    }
}

/** Every kernel and dense module that can be used here. */
static void test_modules(enum oracle_kind kind)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++) {
        const struct training_case what = {
            .kind = kind,
            .layers = 3,
            .norm = 1,
            .dropout = 0.5,
            .optimizer = { .lr = GRADIENT_RATE },
            .kernel = strcmp(entry.kind, "kernel") == 0 ? entry.name : NULL,
            .dense = strcmp(entry.kind, "dense") == 0 ? entry.name : NULL,
        };

        struct training_case sparse = what; /* its values change, which kernels must notice */

        sparse.sparse = 1;
        sparse.entries = TRAINING_REPEATED;
        sparse.sparse_input = "yes";
        sparse.input_dropout = 0.3;
        /* This combination needs neither a kernel nor a dense module. */
        if (what.kernel == NULL && what.dense == NULL) continue;
        if (entry.state < 0) skip(2, "%s %s cannot be used: %s", entry.kind, entry.name, entry.detail);
        else check_gradient(&what);
        if (entry.state >= 0 && sparse.kernel != NULL) check_gradient(&sparse);
    }
}

static void check_metrics(struct training *training, const double *logits, const char *name)
{
    const struct oracle_model *model = &training->model;
    graft_metrics              metrics = output_metrics();
    graft_error                error = GRAFT_INIT(graft_error);
    int                        rc = training->train->evaluate(training->trainer, GRAFT_WEIGHTS_LAST, &metrics, &error);
    const double accuracy[] = { metrics.train_accuracy, metrics.validation_accuracy, metrics.test_accuracy };
    const double loss[] = { metrics.train_loss, metrics.validation_loss, metrics.test_loss };
    const double rmse[] = { metrics.train_rmse, metrics.validation_rmse, metrics.test_rmse };
    const double r2[] = { metrics.train_r2, metrics.validation_r2, metrics.test_r2 };
    const int    regression = model->options.loss >= ORACLE_MSE;

    ok_or(rc == GRAFT_OK, error.message, "%s: evaluates", name);
    for (uint8_t split = GRAFT_SPLIT_TRAIN; split <= GRAFT_SPLIT_TEST; split++) {
        const double expected = regression ? NAN : oracle_model_accuracy(model, logits, split),
                     expected_loss = oracle_model_loss(model, logits, split),
                     expected_rmse = regression ? oracle_model_rmse(model, logits, split) : NAN,
                     expected_r2 = regression ? oracle_model_r2(model, logits, split) : NAN;
        ok(close_to(rmse[split - 1], expected_rmse, 1e-5) && close_to(r2[split - 1], expected_r2, 1e-5),
           "%s: split %d has RMSE %.6f, expected %.6f, and R^2 %.6f, expected %.6f", name, split, rmse[split - 1],
           expected_rmse, r2[split - 1], expected_r2);
        ok(close_to(accuracy[split - 1], expected, 1e-12) && close_to(loss[split - 1], expected_loss, 1e-5),
           "%s: split %d has accuracy %.3f, expected %.3f, and loss %.6f, expected %.6f", name, split,
           accuracy[split - 1], expected, loss[split - 1], expected_loss);
    }
}

/** Predict into rows with a gap, which must stay unchanged. */
static void check_predictions(struct training *training, const double *logits, const char *name)
{
    const int64_t n = training->model.n, c = training->model.classes, stride = c + 2;
    float        *found = oracle_new(n * stride, sizeof *found);
    int32_t      *labels = oracle_new(n, sizeof *labels);
    double       *narrow = oracle_new(n * c, sizeof *narrow), right = 0, gaps = 0;
    graft_dense   dense = GRAFT_INIT(graft_dense);
    graft_error   error = GRAFT_INIT(graft_error);

    dense.dtype = GRAFT_F32;
    dense.n_rows = n;
    dense.n_cols = c;
    dense.stride = stride;
    dense.data = found;
    for (int64_t at = 0; at < n * stride; at++) found[at] = -77;
    if (training->train->predict(training->trainer, GRAFT_WEIGHTS_LAST, labels, &dense, &error) != GRAFT_OK)
        diag("%s", error.message);
    for (int64_t v = 0; v < n; v++) {
        int64_t best = 0;
        for (int64_t j = 0; j < c; j++) {
            narrow[v * c + j] = found[v * stride + j];
            if (logits[v * c + j] > logits[v * c + best]) best = j;
        }
        right += labels[v] == best;
        gaps += found[v * stride + c] == -77 && found[v * stride + c + 1] == -77;
    }
    ok(training_distance(narrow, logits, n * c) < 1e-5 && gaps == (double)n,
       "%s: logits are within %.1e of the oracle, and gaps between rows are unchanged", name,
       training_distance(narrow, logits, n * c));
    ok(right == (double)n, "%s: the predicted class has the largest logit", name);
    free(found);
    free(labels);
    free(narrow);
}

/** Predict the outputs of a regression, which has no labels. */
static void check_outputs(struct training *training, const double *outputs, const char *name)
{
    const int64_t     count = training->model.n * training->model.classes;
    float            *found = oracle_new(count, sizeof *found);
    int32_t          *labels = oracle_new(training->model.n, sizeof *labels);
    double           *wide = oracle_new(count, sizeof *wide);
    const graft_dense out = {
        sizeof out, GRAFT_F32, training->model.n, training->model.classes, training->model.classes, found
    };
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc = training->train->predict(training->trainer, GRAFT_WEIGHTS_LAST, labels, &out, &error);

    ok(rc == GRAFT_ERR_ARG && strstr(error.message, "labels") != NULL && found[0] == 0,
       "%s: predict() refuses to return classes: %s", name, error.message);
    output_clear_rows(&out);
    rc = training->train->predict(training->trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &error);
    for (int64_t at = 0; at < count; at++) wide[at] = (double)found[at];
    ok(rc == GRAFT_OK && training_distance(wide, outputs, count) < 1e-5, "%s: outputs are within %.1e of the oracle",
       name, training_distance(wide, outputs, count));
    free(found);
    free(labels);
    free(wide);
}

/** Check metrics and predictions of a regression. */
static void test_regression_evaluation(enum oracle_kind kind, const char *loss, const char *order)
{
    const struct training_case what = { .kind = kind,
                                        .layers = 2,
                                        .norm = 1,
                                        .loss = loss,
                                        .regression = 1,
                                        .n = 60,
                                        .dropout = 0.5,
                                        .order = order,
                                        .optimizer = { .lr = GRADIENT_RATE } };
    struct training            training;
    graft_error                error = GRAFT_INIT(graft_error);
    double                    *outputs;

    training_init(&training, &what, 1);
    outputs = oracle_new(training.model.n * training.model.classes, sizeof *outputs);
    oracle_model_forward(&training.model, 0, outputs, NULL);
    if (ok(training_open(&training, api, &what, &error) == GRAFT_OK, "%s: the data set opens", training_name(&what))) {
        check_metrics(&training, outputs, training_name(&what));
        check_outputs(&training, outputs, training_name(&what));
    } else {
        diag("%s", error.message);
    }
    free(outputs);
    training_fini(&training);
}

/** Evaluations use no dropout and all labels of training vertices, whatever the options say. `softmax` adds the options
 *  of that loss. */
static void test_evaluation(enum oracle_kind kind, int several, const char *order, double label_rate, int softmax)
{
    const struct training_case what = { .kind = kind,
                                        .layers = 3,
                                        .norm = 1,
                                        .several = several,
                                        .sparse = several,
                                        .sparse_input = "yes",
                                        .dropout = 0.5,
                                        .input_dropout = 0.3,
                                        .label_rate = label_rate,
                                        .balanced = softmax,
                                        .smoothing = softmax ? 0.2 : 0,
                                        .order = order,
                                        .optimizer = { .lr = GRADIENT_RATE } };
    struct training            training;
    graft_error                error = GRAFT_INIT(graft_error);
    double                    *logits;

    training_init(&training, &what, 1);
    logits = oracle_new(training.model.n * training.model.classes, sizeof *logits);
    oracle_model_forward(&training.model, 0, logits, NULL);
    if (ok(training_open(&training, api, &what, &error) == GRAFT_OK, "%s: the data set opens", training_name(&what))) {
        check_metrics(&training, logits, training_name(&what));
        check_predictions(&training, logits, training_name(&what));
    } else {
        diag("%s", error.message);
    }
    free(logits);
    training_fini(&training);
}

/** The bound of the initial values of a tensor by the contract; 0 if all are equal. The bound of a bias is that of its
 * weight, the tensor before it. */
static double bound_of(enum oracle_kind kind, const struct oracle_tensor *tensor)
{
    const int fan_in = tensor->layer >= 0 && kind != ORACLE_GCN && kind != ORACLE_GAT;
    const int bias = strstr(tensor->name, "bias") != NULL, norm = strstr(tensor->name, "norm") != NULL;

    if (bias || norm) return bias && fan_in && kind != ORACLE_GIN ? 1 / sqrt((double)tensor[-1].rows) : 0;
    return fan_in ? 1 / sqrt((double)tensor->rows) : sqrt(6.0 / (double)(tensor->rows + tensor->cols));
}

/** Whether a weight begins as the contract says: uniform within its bound and spread over that range, 0, or gain 1. The
 *  largest of n uniform numbers is 12/n of the range below its end with a probability of exp(-6). */
static int is_first_value(enum oracle_kind kind, const struct oracle_tensor *tensor, const double *value)
{
    const double bound = bound_of(kind, tensor);
    const int    gain = strstr(tensor->name, "gain") != NULL;
    double       low = INFINITY, high = -INFINITY;

    for (int64_t at = 0; at < training_count(tensor); at++) {
        low = fmin(low, value[at]);
        high = fmax(high, value[at]);
    }
    if (bound == 0) return low == gain && high == gain;
    if (low < -1.000001 * bound || high > 1.000001 * bound) return 0;
    return fmin(-low, high) > bound * (1 - 12.0 / (double)training_count(tensor));
}

static void test_first_values(enum oracle_kind kind)
{
    const struct training_case what = {
        .kind = kind, .layers = 3, .growing = 1, .norm = 1, .label_rate = 0.5, .optimizer = { .lr = GRADIENT_RATE }
    };
    struct training training;
    graft_trainer  *fresh = NULL;
    int             good = 1;

    training_init(&training, &what, 1);
    if (training_open(&training, api, &what, NULL) == GRAFT_OK &&
        training.train->create(api->context, &training.set.dataset, &fresh, NULL) == GRAFT_OK) {
        training.train->destroy(training.trainer);
        training.trainer = fresh;
    }
    for (int32_t t = 0; t < training.model.n_tensors && fresh != NULL; t++) {
        double *value = oracle_new(training_count(&training.model.tensor[t]), sizeof *value);

        if (!training_pull(&training, "", t, value) || !is_first_value(kind, &training.model.tensor[t], value)) {
            diag("%s", training.model.tensor[t].name);
            good = 0;
        }
        free(value);
    }
    ok(good && fresh != NULL, "%s: the initial weights have the distribution of the contract", training_name(&what));
    training_fini(&training);
}

/** Heads stand side by side in hidden layers. The last layer, which averages them, may have any width. */
static void test_heads(void)
{
    const struct training_case what = { .kind = ORACLE_GAT, .layers = 2, .optimizer = { .lr = GRADIENT_RATE } };
    struct training            training;
    graft_error                error = GRAFT_INIT(graft_error);
    int32_t                    rc;

    training_init(&training, &what, 1);
    training.model.options.heads = 3;
    rc = training_open(&training, api, &what, &error);
    ok_or(rc == GRAFT_ERR_OPTION && strstr(error.message, "'hidden'") != NULL && strstr(error.message, "11") != NULL &&
              strstr(error.message, "'heads', 3") != NULL && training.trainer == NULL,
          error.message, "gat: a hidden width of 11 and 3 heads are refused");
    training_fini(&training);
}

/** With several classes per vertex there is no softmax loss, and so no class weights. */
static void test_softmax_refused(void)
{
    const struct training_case what = {
        .layers = 1, .several = 1, .balanced = 1, .optimizer = { .lr = GRADIENT_RATE }
    };
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);

    training_init(&training, &what, 1);
    ok_or(training_open(&training, api, &what, &error) == GRAFT_ERR_OPTION &&
              strstr(error.message, "'loss' is softmax") != NULL && strstr(error.message, "several classes") != NULL,
          error.message, "class weights for several classes at once are refused");
    training_fini(&training);
}

/** Maxima and minima are not linear, so options that rely on linearity must be refused. */
static void test_extrema_refused(const char *aggregator)
{
    struct training_case what = { .kind = ORACLE_SAGE,
                                  .aggregator = aggregator,
                                  .layers = 1,
                                  .sparse = 1,
                                  .sparse_input = "yes",
                                  .optimizer = { .lr = GRADIENT_RATE } };

    for (int i = 0; i < 2; i++) {
        const char *const key = i == 0 ? "sparse_input" : "label_rate";
        struct training   training;
        graft_error       error = GRAFT_INIT(graft_error);
        char              words[100];

        snprintf(words, sizeof words, "options 'aggregator' and '%s' are %s and %s", key, aggregator,
                 i == 0 ? "yes" : "0.5");
        what.label_rate = i == 0 ? 0 : 0.5;
        training_init(&training, &what, 1);
        ok_or(training_open(&training, api, &what, &error) == GRAFT_ERR_OPTION && strstr(error.message, words) != NULL,
              error.message, "aggregator=%s and %s are refused", aggregator, key);
        training_fini(&training);
    }
}

/* Whether the arguments name this model. */
static int is_asked_for(enum oracle_kind kind, int argc, char **argv)
{
    static const char *const names[] = { "mlp", "sage", "gcn", "gin", "gat", "sgc", "appnp" };

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], names[kind]) == 0) return 1;
    return argc <= 1;
}

int main(int argc, char **argv)
{
    static const char *const aggregators[] = { "sum", "max", "min" };
    graft_error              error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    if (!ok(api->get_interface(api->context, GRAFT_TRAIN_ID) != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    for (enum oracle_kind kind = ORACLE_MLP; kind <= ORACLE_APPNP; kind++) {
        if (!is_asked_for(kind, argc, argv)) continue;
        test_first_values(kind);
        test_gradients(kind, 1);
        test_variants(kind);
        test_orders(kind);
        test_sparse_input(kind);
        test_modules(kind);
        test_labels(kind);
        test_regression(kind);
        test_regression_evaluation(kind, "mse", NULL);
        test_regression_evaluation(kind, "huber", "degree");
        test_evaluation(kind, 0, NULL, 0, 0);
        test_evaluation(kind, 1, "degree", 0, 0);
        test_evaluation(kind, 0, "degree", 0.5, 0);
        test_evaluation(kind, 1, NULL, 0.5, 0);
        if (kind == ORACLE_GCN || kind == ORACLE_SAGE) test_softmax_options(kind);
        test_evaluation(kind, 0, "degree", 0, 1);
    }
    if (is_asked_for(ORACLE_MLP, argc, argv)) test_softmax_refused();
    for (int i = 0; i < 3 && is_asked_for(ORACLE_SAGE, argc, argv); i++) {
        test_aggregator(aggregators[i]);
        if (i > 0) test_extrema_refused(aggregators[i]);
    }
    if (is_asked_for(ORACLE_GAT, argc, argv)) {
        test_gradients(ORACLE_GAT, 2);
        test_heads();
    }
    api->close(api->context);
    return done();
}
