/* graft.train/1 against the oracle: gradients of every weight of every model, losses, steps of the optimisers,
 * predictions and accuracies. Arguments: the models, one to a word; none means all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/training.h"

#include "graft_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const graft_api *api;

static int64_t count_of(const struct oracle_tensor *tensor)
{
    return tensor->rows * tensor->cols;
}

static double largest(const double *value, int64_t count)
{
    double most = 0;

    for (int64_t at = 0; at < count; at++) most = fmax(most, fabs(value[at]));
    return most;
}

/** Difference of two arrays by its largest element, over that of the expected one; NaN anywhere is infinitely far. */
static double distance(const double *found, const double *expected, int64_t count)
{
    double most = 0;

    for (int64_t at = 0; at < count; at++) {
        if (isnan(found[at])) return INFINITY;
        most = fmax(most, fabs(found[at] - expected[at]));
    }
    return most == 0 ? 0 : most / largest(expected, count);
}

static int close_to(double found, double expected, double relative)
{
    if (isnan(expected)) return isnan(found);
    return fabs(found - expected) <= relative * fmax(1, fabs(expected));
}

/* The contract has no call for gradients, but SGD without momentum shows them: w' = w - lr g, so g = (w - w') / lr. The
 * float w' is rounded by at most 2^-24 of |w| + |lr g|. With lr = 1024 and |w| < 2, that is an error of g below
 * 2^-24 |g| + 2^-33, while the largest gradient of every tensor is above 1e-3, for training_init() looks for such: an
 * error below 2e-7 of it. A power of two adds no rounding of its own. */
static const struct oracle_optimizer revealing = { .lr = 1024 };

/** The largest distance between the gradients of both sides over all tensors, named in `worst`. */
static double gradient_distance(struct training *training, int number, char worst[48])
{
    double most = 0;

    for (int32_t t = 0; t < training->model.n_tensors; t++) {
        const struct oracle_tensor *tensor = &training->model.tensor[t];
        double                     *found = oracle_new(count_of(tensor), sizeof *found), far = INFINITY;

        if (training_pull(training, "", t, found)) {
            for (int64_t at = 0; at < count_of(tensor); at++)
                found[at] = (tensor->value[at] - found[at]) / revealing.lr;
            far = distance(found, training->gradient[number][t], count_of(tensor));
        }
        if (far >= most) snprintf(worst, 48, "%s", tensor->name);
        most = fmax(most, far);
        free(found);
    }
    return most;
}

/** Epoch `number` from the weights of the oracle. */
static void check_epoch(struct training *training, const char *name, int number)
{
    double     *logits = oracle_new(training->model.n * training->model.classes, sizeof *logits), expected, far;
    char        worst[48] = "";
    graft_epoch epoch = GRAFT_INIT(graft_epoch);
    graft_error error = GRAFT_INIT(graft_error);

    oracle_model_drop(&training->model, number);
    oracle_model_forward(&training->model, 1, logits, NULL);
    expected = oracle_model_training_loss(&training->model, logits);
    if (training->train->epoch(training->trainer, &epoch, &error) != GRAFT_OK) {
        ok(0, "%s: epoch %d", name, number);
        diag("%s", error.message);
    } else {
        far = gradient_distance(training, number, worst);
        ok(far <= 1e-4 && close_to(epoch.loss, expected, 1e-5) && epoch.epoch == number + 1,
           "%s: gradients of epoch %d within %.1e", name, number, far);
        if (far > 1e-4) diag("farthest is %s", worst);
        if (!close_to(epoch.loss, expected, 1e-5)) diag("loss is %.9g, expected %.9g", epoch.loss, expected);
    }
    free(logits);
}

/** Whether sparse features stay sparse as the case asks, and whether steps use some rows only: explain() tells. */
static void check_gradient_explained(struct training *training, const struct training_case *what)
{
    const int stays = strcmp(what->sparse_input, "yes") == 0;
    char      text[2048] = "";

    training->train->explain(training->trainer, text, sizeof text, NULL);
    if (!ok((strstr(text, "multiplied as they are") != NULL) == stays &&
                (strstr(text, "made dense") != NULL) == !stays &&
                (!what->scarce || what->kind == ORACLE_GAT || what->unmasked || strstr(text, "a step needs") != NULL),
            "%s: explained", training_name(what)))
        diag("%s", text);
}

/** With dropout or labels a second epoch too, from the same weights: it must draw others. */
static void check_gradient(const struct training_case *what)
{
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);

    training_init(&training, what, 1);
    if (training_open(&training, api, what, &error) != GRAFT_OK) {
        ok(0, "%s", training_name(what));
        diag("%s", error.message);
    } else {
        if (what->sparse && what->sparse_input != NULL) check_gradient_explained(&training, what);
        check_epoch(&training, training_name(what), 0);
        if (training_is_drawn(what) && ok(training_push(&training, NULL) == GRAFT_OK, "the same weights again"))
            check_epoch(&training, training_name(what), 1);
    }
    training_fini(&training);
}

static void test_gradients(enum oracle_kind kind, int64_t heads)
{
    for (int32_t layers = 1; layers <= 3; layers++) {
        for (int which = 0; which < 32; which++) {
            const struct training_case what = { .kind = kind,
                                                .layers = layers,
                                                .heads = heads,
                                                .norm = which & 1,
                                                .several = which >> 1 & 1,
                                                .sparse = which >> 2 & 1,
                                                .growing = which >> 3 & 1,
                                                .dropout = which >> 4 ? 0.5 : 0,
                                                .input_dropout = which >> 4 ? 0.3 : 0,
                                                .optimizer = revealing };

            if (layers == 1 && (what.norm || what.growing)) continue; /* one layer has no norm and no hidden width */
            check_gradient(&what);
        }
    }
}

/** Options that change graph and features, weights of edges, the loss that is not the automatic one, and a graph of
 *  more rows than one chunk of any loop of the library. */
static void test_variants(enum oracle_kind kind)
{
    struct training_case what = { .kind = kind, .layers = 2, .prepare = 1, .norm = 1, .optimizer = revealing };

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
    what = (struct training_case){ .kind = kind, .layers = 2, .loss = "sigmoid", .optimizer = revealing };
    check_gradient(&what);
    what.several = 1;
    what.loss = "softmax";
    check_gradient(&what);
    what = (struct training_case){ .kind = kind, .layers = 1, .n = 700, .sparse = 1, .optimizer = revealing };
    check_gradient(&what);
}

/** Whatever order the trainer keeps the vertices in, dropout is that of the host's vertices. */
static void test_orders(enum oracle_kind kind)
{
    static const char *const orders[] = { "degree", "rcm", "community" };

    for (int which = 0; which < 12; which++) {
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
                                            .optimizer = revealing };
        check_gradient(&what);
    }
}

/** Sparse features that stay sparse or are made dense, with repeated and unsorted entries: both give the oracle's
 *  results. Two layers of 23 vertices need all features; those of more vertices, few of which are trained, do not. */
static void test_sparse_input(enum oracle_kind kind)
{
    for (int which = 0; which < 24; which++) {
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
                                            .optimizer = revealing };

        check_gradient(&what);
    }
}

/** Labels as input, with all that changes how the first layer works. */
static void test_labels(enum oracle_kind kind)
{
    for (int which = 0; which < 24; which++) {
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
                                            .optimizer = revealing };

        check_gradient(&what);
    }
}

/** Every usable kernel and dense module. */
static void test_modules(enum oracle_kind kind)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++) {
        const struct training_case what = {
            .kind = kind,
            .layers = 3,
            .norm = 1,
            .dropout = 0.5,
            .optimizer = revealing,
            .kernel = strcmp(entry.kind, "kernel") == 0 ? entry.name : NULL,
            .dense = strcmp(entry.kind, "dense") == 0 ? entry.name : NULL,
        };

        struct training_case sparse = what; /* whose values change, which kernels must see */

        sparse.sparse = 1;
        sparse.entries = TRAINING_REPEATED;
        sparse.sparse_input = "yes";
        sparse.input_dropout = 0.3;
        if (what.kernel == NULL && what.dense == NULL) continue; /* of no part in this */
        if (entry.state < 0) skip(2, "%s %s cannot be used: %s", entry.kind, entry.name, entry.detail);
        else check_gradient(&what);
        if (entry.state >= 0 && sparse.kernel != NULL) check_gradient(&sparse);
    }
}

/** Weights after a step: how far they may be off. Adam divides by the root of the second moment, so that an error of g,
 *  1e-5 of the largest in the tensor, becomes lr times that over the root. */
static double allowance(const struct oracle_optimizer *optimizer, int64_t step, double largest_g, double w, double v)
{
    const double error = 1e-5 * largest_g;
    const double root = optimizer->adam ? sqrt(v / (1 - pow(0.999, (double)step))) + 1e-8 : 1;

    return 4 * optimizer->lr * fmin(error / root, 1) + 1e-6 * fabs(w) + 1e-7;
}

/** Weights and moments after step `step`, one tensor. */
static int check_tensor(struct training *training, const struct oracle_optimizer *optimizer, int64_t step, int32_t t)
{
    const struct oracle_tensor *tensor = &training->model.tensor[t];
    const int64_t               count = count_of(tensor);
    const double                largest_g = largest(training->gradient[step - 1][t], count);
    double                     *w = oracle_new(count, sizeof *w), *m = oracle_new(count, sizeof *m);
    double                     *v = oracle_new(count, sizeof *v), over = 0;
    int                         good = training_pull(training, "", t, w);

    for (int64_t at = 0; at < count; at++)
        over = fmax(over, fabs(w[at] - tensor->value[at]) /
                              allowance(optimizer, step, largest_g, tensor->value[at], training->v[t][at]));
    good = good && over <= 1;
    if (optimizer->adam) {
        good = good && training_pull(training, "optimizer.m.", t, m) && training_pull(training, "optimizer.v.", t, v) &&
               distance(m, training->m[t], count) < 1e-4 && distance(v, training->v[t], count) < 2e-4;
    } else if (optimizer->momentum > 0) {
        good = good && training_pull(training, "optimizer.m.", t, m) && distance(m, training->m[t], count) < 1e-4;
    }
    if (!good)
        diag("%s: weights are %.2g times as far off as they may be, first moment %.1e, second %.1e", tensor->name, over,
             distance(m, training->m[t], count), distance(v, training->v[t], count));
    free(w);
    free(m);
    free(v);
    return good;
}

/** Step `step` of the oracle, from its gradient for it. */
static void step_oracle(struct training *training, const struct oracle_optimizer *optimizer, int64_t step)
{
    for (int32_t t = 0; t < training->model.n_tensors; t++)
        oracle_optimizer_step(optimizer, step, &training->model.tensor[t], training->gradient[step - 1][t],
                              training->m[t], training->v[t]);
}

/** training_init() from a seed for which the gradient after the first step of the oracle is clear of kinks too. */
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

/** Two steps of an optimiser, the oracle following its own weights. */
static void check_steps(const struct training_case *what, const char *name)
{
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);
    graft_epoch     epoch = GRAFT_INIT(graft_epoch);
    int32_t         rc;

    init_for_steps(&training, what);
    rc = training_open(&training, api, what, &error);
    for (int step = 1; step <= 2; step++) {
        int good = 1;

        if (rc == GRAFT_OK) rc = training.train->epoch(training.trainer, &epoch, &error);
        if (rc != GRAFT_OK) diag("%s", error.message);
        training_differentiate(&training, step - 1);
        step_oracle(&training, &what->optimizer, step);
        for (int32_t t = 0; good && t < training.model.n_tensors; t++)
            good = check_tensor(&training, &what->optimizer, step, t);
        ok(good && rc == GRAFT_OK, "%s: step %d", name, step);
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
    what.kind = ORACLE_GIN;
    check_steps(&what, "SGD on gin, weight decay on the first layer");
    what.kind = ORACLE_GAT;
    what.heads = 2;
    what.layers = 2;
    what.optimizer.decay_first_only = 0;
    check_steps(&what, "SGD on gat, weight decay on all layers");
}

static void check_metrics(struct training *training, const double *logits, const char *name)
{
    const struct oracle_model *model = &training->model;
    graft_metrics              metrics = GRAFT_INIT(graft_metrics);
    graft_error                error = GRAFT_INIT(graft_error);
    int                        rc = training->train->evaluate(training->trainer, GRAFT_WEIGHTS_LAST, &metrics, &error);
    const double accuracy[] = { metrics.train_accuracy, metrics.validation_accuracy, metrics.test_accuracy };
    const double loss[] = { metrics.train_loss, metrics.validation_loss, metrics.test_loss };

    if (!ok(rc == GRAFT_OK, "%s: evaluates", name)) diag("%s", error.message);
    for (uint8_t split = GRAFT_SPLIT_TRAIN; split <= GRAFT_SPLIT_TEST; split++) {
        const double expected = oracle_model_accuracy(model, logits, split),
                     expected_loss = oracle_model_loss(model, logits, split);
        ok(close_to(accuracy[split - 1], expected, 1e-12) && close_to(loss[split - 1], expected_loss, 1e-5),
           "%s: split %d has accuracy %.3f, expected %.3f, and loss %.6f, expected %.6f", name, split,
           accuracy[split - 1], expected, loss[split - 1], expected_loss);
    }
}

/** Predictions into rows with a gap, which must stay as it is. */
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
    ok(distance(narrow, logits, n * c) < 1e-5 && gaps == (double)n, "%s: logits within %.1e, gaps of rows as they were",
       name, distance(narrow, logits, n * c));
    ok(right == (double)n, "%s: the label is the largest logit", name);
    free(found);
    free(labels);
    free(narrow);
}

/** Without dropout and with all labels of training vertices, whatever the options say. */
static void test_evaluation(enum oracle_kind kind, int several, const char *order, double label_rate)
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
                                        .order = order,
                                        .optimizer = revealing };
    struct training            training;
    graft_error                error = GRAFT_INIT(graft_error);
    double                    *logits;

    training_init(&training, &what, 1);
    logits = oracle_new(training.model.n * training.model.classes, sizeof *logits);
    oracle_model_forward(&training.model, 0, logits, NULL);
    if (ok(training_open(&training, api, &what, &error) == GRAFT_OK, "%s: opens", training_name(&what))) {
        check_metrics(&training, logits, training_name(&what));
        check_predictions(&training, logits, training_name(&what));
    } else {
        diag("%s", error.message);
    }
    free(logits);
    training_fini(&training);
}

/** The bound of the first values of a tensor, from the contract; 0 if all are equal. A bias follows its weight. */
static double bound_of(enum oracle_kind kind, const struct oracle_tensor *tensor)
{
    const int fan_in = tensor->layer >= 0 && kind != ORACLE_GCN && kind != ORACLE_GAT;
    const int bias = strstr(tensor->name, "bias") != NULL, norm = strstr(tensor->name, "norm") != NULL;

    if (bias || norm) return bias && fan_in && kind != ORACLE_GIN ? 1 / sqrt((double)tensor[-1].rows) : 0;
    return fan_in ? 1 / sqrt((double)tensor->rows) : sqrt(6.0 / (double)(tensor->rows + tensor->cols));
}

/** 1 if a weight begins as the contract says: uniform within its bound and spread over that range, 0, or gain 1. Of n
 *  uniform numbers, all stay 12/n of the half range below its end with a chance of exp(-6). */
static int is_first_value(enum oracle_kind kind, const struct oracle_tensor *tensor, const double *value)
{
    const double bound = bound_of(kind, tensor);
    const int    gain = strstr(tensor->name, "gain") != NULL;
    double       low = INFINITY, high = -INFINITY;

    for (int64_t at = 0; at < count_of(tensor); at++) {
        low = fmin(low, value[at]);
        high = fmax(high, value[at]);
    }
    if (bound == 0) return low == gain && high == gain;
    if (low < -1.000001 * bound || high > 1.000001 * bound) return 0;
    return fmin(-low, high) > bound * (1 - 12.0 / (double)count_of(tensor));
}

static void test_first_values(enum oracle_kind kind)
{
    const struct training_case what = {
        .kind = kind, .layers = 3, .growing = 1, .norm = 1, .label_rate = 0.5, .optimizer = revealing
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
        double *value = oracle_new(count_of(&training.model.tensor[t]), sizeof *value);

        if (!training_pull(&training, "", t, value) || !is_first_value(kind, &training.model.tensor[t], value)) {
            diag("%s", training.model.tensor[t].name);
            good = 0;
        }
        free(value);
    }
    ok(good && fresh != NULL, "%s: weights begin as the contract says", training_name(&what));
    training_fini(&training);
}

/** Heads stand side by side in hidden layers; the last layer, which averages them, may have any width. */
static void test_heads(void)
{
    const struct training_case what = { .kind = ORACLE_GAT, .layers = 2, .optimizer = revealing };
    struct training            training;
    graft_error                error = GRAFT_INIT(graft_error);
    int32_t                    rc;

    training_init(&training, &what, 1);
    training.model.options.heads = 3;
    rc = training_open(&training, api, &what, &error);
    if (!ok(rc == GRAFT_ERR_OPTION && strstr(error.message, "'hidden'") != NULL &&
                strstr(error.message, "11") != NULL && strstr(error.message, "'heads', 3") != NULL &&
                training.trainer == NULL,
            "gat: a hidden width of 11 and 3 heads are refused"))
        diag("%s", error.message);
    training_fini(&training);
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
    graft_error error = GRAFT_INIT(graft_error);

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
        test_evaluation(kind, 0, NULL, 0);
        test_evaluation(kind, 1, "degree", 0);
        test_evaluation(kind, 0, "degree", 0.5);
        test_evaluation(kind, 1, NULL, 0.5);
    }
    if (is_asked_for(ORACLE_GAT, argc, argv)) {
        test_gradients(ORACLE_GAT, 2);
        test_heads();
    }
    test_optimizers();
    api->close(api->context);
    return done();
}
