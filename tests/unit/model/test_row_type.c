/* Checks model.type=bf16, with which sums over neighbours read rows of bfloat16: sums computed by hand, gradients and
 * predictions of every kind near those of the oracle, which does not round, and bitwise identical results with any
 * number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/training.h"

#include "graft_load.h"
#include "graft_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERTICES = 3, WIDTH_MOST = 5, CLASSES = 2 };

static const graft_api       *api;
static const graft_train_api *train;

/** Set weights of sage that copy the first column of the neighbours into the first logit. */
static int32_t push_copy(graft_trainer *trainer, graft_error *error)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    int32_t          rc = GRAFT_OK;

    for (int32_t i = 0; rc == GRAFT_OK && train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        float value[WIDTH_MOST * CLASSES] = { strcmp(item.name, "layers.0.weight_neigh") == 0 };

        if (strncmp(item.name, "layers.", 7) != 0) continue;
        item.data = value;
        rc = train->state_set(trainer, &item, error);
    }
    return rc;
}

/** The sum of rows x and y of this width as a trainer of sage computes it. Wide rows are multiplied before they are
 *  summed. */
static float summed(float x, float y, int64_t width)
{
    const int64_t  row_ptr[] = { 0, 2, 2, 2 };
    const int32_t  col_idx[] = { 1, 2 }, labels[] = { 0, 1, 0 };
    const uint8_t  split[] = { GRAFT_SPLIT_TRAIN, GRAFT_SPLIT_TRAIN, GRAFT_SPLIT_TRAIN };
    float          rows[VERTICES * WIDTH_MOST] = { 0 }, found[VERTICES * CLASSES] = { NAN };
    graft_dense    features = { sizeof features, GRAFT_F32, VERTICES, width, width, rows };
    graft_csr      graph = GRAFT_INIT(graft_csr);
    graft_dataset  data = GRAFT_INIT(graft_dataset);
    graft_dense    logits = { sizeof logits, GRAFT_F32, VERTICES, CLASSES, CLASSES, found };
    graft_trainer *trainer = NULL;
    graft_error    error = GRAFT_INIT(graft_error);

    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = VERTICES;
    graph.row_ptr = row_ptr;
    graph.col_idx = col_idx;
    rows[width] = x;
    rows[2 * width] = y;
    data.n_vertices = VERTICES;
    data.n_features = width;
    data.n_classes = CLASSES;
    data.graph = &graph;
    data.features = &features;
    data.labels = labels;
    data.split = split;
    output_clear_rows(&logits);
    if (train->create(api->context, &data, &trainer, &error) != GRAFT_OK || push_copy(trainer, &error) != GRAFT_OK ||
        train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error) != GRAFT_OK)
        diag("%s", error.message);
    train->destroy(trainer);
    return found[0];
}

/** bfloat16 keeps 8 bits of the significand, and ties go to the even one. */
static void test_rounded_sums(void)
{
    static const float cases[][4] = { /* x, y, and their sum in f32 and in bf16 */
                                      { 1002, 1010, 2012, 2008 }, { 1006, 1006, 2012, 2016 },
                                      { 1005, 1009, 2014, 2012 }, { -1002, 3, -999, -997 },
                                      { 257, 259, 516, 516 },     { 1, 2, 3, 3 }
    };
    int wrong = 0;

    host_set_all(api, "model=sage aggregator=sum layers=1 reuse_input=no");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int half = 0; half < 2; half++) {
            api->set(api->context, "model.type", half ? "bf16" : "f32", NULL);
            for (int64_t width = 1; width <= WIDTH_MOST; width += WIDTH_MOST - 1) {
                const float sum = summed(cases[i][0], cases[i][1], width);

                if (sum != cases[i][2 + half] && wrong++ == 0)
                    diag("%g + %g, %lld columns, %s: %g, expected %g", (double)cases[i][0], (double)cases[i][1],
                         (long long)width, half ? "bf16" : "f32", (double)sum, (double)cases[i][2 + half]);
            }
        }
    }
    ok(wrong == 0, "sums of rounded rows equal those computed by hand");
    host_set_all(api, "aggregator=mean reuse_input=yes model.type=f32");
}

/** Two vertices gather from each other. For sgc without a bias the gradient of the one weight is x_1 times that of Z_0,
 *  which is -2 t_0 where weight and bias are 0, because only vertex 0 has a target. */
static float weight_after_step(float x, float target)
{
    const int64_t  row_ptr[] = { 0, 1, 2 };
    const int32_t  col_idx[] = { 1, 0 };
    const uint8_t  split[] = { GRAFT_SPLIT_TRAIN, GRAFT_SPLIT_TEST };
    float          rows[] = { 7, x }, targets[] = { target, NAN }, found = NAN, zero = 0;
    graft_csr      graph = GRAFT_INIT(graft_csr);
    graft_dense    features = { sizeof features, GRAFT_F32, 2, 1, 1, rows };
    graft_dense    wanted = { sizeof wanted, GRAFT_F32, 2, 1, 1, targets };
    graft_dataset  data = GRAFT_INIT(graft_dataset);
    graft_trainer *trainer = NULL;
    graft_epoch    epoch = output_epoch();
    graft_error    error = GRAFT_INIT(graft_error);
    int32_t        rc;

    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = 2;
    graph.row_ptr = row_ptr;
    graph.col_idx = col_idx;
    data.n_vertices = 2;
    data.n_features = data.n_classes = 1;
    data.graph = &graph;
    data.features = &features;
    data.float_targets = &wanted;
    data.split = split;
    rc = train->create(api->context, &data, &trainer, &error);
    for (int done = 0; rc == GRAFT_OK && done < 2; done++) {
        graft_state_item item = GRAFT_INIT(graft_state_item);

        for (int32_t i = 0; rc == GRAFT_OK && train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
            if (strncmp(item.name, "layers.", 7) != 0) continue;
            if (strcmp(item.name, "layers.0.weight") == 0) found = *(const float *)item.data;
            item.data = &zero;
            if (done == 0) rc = train->state_set(trainer, &item, &error);
        }
        if (rc == GRAFT_OK && done == 0) rc = train->epoch(trainer, &epoch, &error);
    }
    if (rc != GRAFT_OK) diag("%s", error.message);
    train->destroy(trainer);
    return found;
}

/** The backward pass sums the gradient of Z over neighbours, in bfloat16 too. */
static void test_rounded_gradient(void)
{
    float plain, half;

    host_set_all(api, "model=sgc layers=1 propagation=1 self_loops=no optimizer=sgd lr=1 eval_every=0");
    plain = weight_after_step(1, 501);
    api->set(api->context, "model.type", "bf16", NULL);
    half = weight_after_step(1, 501);
    if (!ok(plain == 1002 && half == 1000, "gradients are rounded too, as computed by hand"))
        diag("the weight is %g, with rounding %g; expected 1002 and 1000", (double)plain, (double)half);
    host_set_all(api, "self_loops=auto model.type=f32");
}

/** A prediction for a list computes different rows than a prediction for all vertices, and aggregates the features
 *  again, but must round in the same way. */
static void test_rounded_list(enum oracle_kind kind)
{
    const struct training_case what = { .kind = kind, .layers = 2, .n = 60, .optimizer = { .lr = 1 } };
    const int64_t              list[] = { 3, 1 };
    const graft_model_api     *models = api->get_interface(api->context, GRAFT_MODEL_ID);
    struct training            training;
    graft_model               *model = NULL;
    graft_prediction           args = GRAFT_INIT(graft_prediction);
    graft_error                error = GRAFT_INIT(graft_error);
    graft_dense                logits[2];
    double                     far = 0;
    int32_t                    rc;

    api->set(api->context, "model.type", "bf16", NULL);
    training_init(&training, &what, 1);
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i == 0 ? training.model.n : 2, columns = training.model.classes;
        float        *data = oracle_new(rows * columns, sizeof *data);

        logits[i] = (graft_dense){ sizeof *logits, GRAFT_F32, rows, columns, columns, data };
    }
    args.dataset = &training.set.dataset;
    args.vertices = list;
    args.n = 2;
    args.logits = &logits[1];
    rc = training_open(&training, api, &what, &error);
    if (rc == GRAFT_OK) rc = models->create(training.trainer, GRAFT_MODEL_LAST, &model, &error);
    if (rc == GRAFT_OK)
        rc = models->predict(model, GRAFT_WEIGHTS_LAST, &training.set.dataset, NULL, &logits[0], &error);
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &args, &error);
    for (int64_t i = 0; i < 2 * training.model.classes; i++) {
        const int64_t from = list[i / training.model.classes] * training.model.classes + i % training.model.classes;

        far = fmax(far, fabs((double)((float *)logits[0].data)[from] - (double)((float *)logits[1].data)[i]));
    }
    ok_or(rc == GRAFT_OK && far < 1e-6, error.message, "%s: a list is predicted as all vertices are, %.1e off",
          training_name(&what), far);
    models->destroy(model);
    api->set(api->context, "model.type", "f32", NULL);
    for (int i = 0; i < 2; i++) free(logits[i].data);
    training_fini(&training);
}

/** The relative distance of all weights after a step from those that the gradient of the oracle gives. */
static double gradient_far(struct training *training, double rate)
{
    double difference = 0, length = 0;

    for (int32_t t = 0; t < training->model.n_tensors; t++) {
        const struct oracle_tensor *tensor = &training->model.tensor[t];
        double                     *found = oracle_new(training_count(tensor), sizeof *found);

        if (!training_pull(training, "", t, found)) difference = INFINITY;
        for (int64_t at = 0; at < training_count(tensor); at++) {
            const double expected = training->gradient[0][t][at];

            difference += pow((tensor->value[at] - found[at]) / rate - expected, 2);
            length += expected * expected;
        }
        free(found);
    }
    return sqrt(difference / length);
}

static double predictions_far(struct training *training, graft_error *error)
{
    const int64_t     count = training->model.n * training->model.classes;
    double           *expected = oracle_new(count, sizeof *expected), *found = oracle_new(count, sizeof *found);
    float            *rows = oracle_new(count, sizeof *rows);
    const graft_dense logits = { sizeof logits,           GRAFT_F32, training->model.n, training->model.classes,
                                 training->model.classes, rows };
    double            far = INFINITY;

    oracle_model_forward(&training->model, 0, expected, NULL);
    if (train->predict(training->trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, error) == GRAFT_OK) {
        for (int64_t i = 0; i < count; i++) found[i] = (double)rows[i];
        far = training_distance(found, expected, count);
    }
    free(expected);
    free(found);
    free(rows);
    return far;
}

/** Each rounding changes an element by at most 2^-9, so results differ from the oracle by about that. mlp and gat do
 *  not round. */
static void test_near(const struct training_case *what)
{
    const int       rounds = what->kind != ORACLE_MLP && what->kind != ORACLE_GAT;
    const double    least = rounds ? 1e-4 : 0, most = rounds ? 0.02 : 1e-5;
    struct training training;
    graft_epoch     epoch = output_epoch();
    graft_error     error = GRAFT_INIT(graft_error);
    double          predicted = INFINITY, gradient = INFINITY;
    int32_t         rc;

    api->set(api->context, "model.type", "bf16", NULL);
    training_init(&training, what, 1);
    rc = training_open(&training, api, what, &error);
    if (rc == GRAFT_OK) predicted = predictions_far(&training, &error);
    oracle_model_drop(&training.model, 0);
    if (rc == GRAFT_OK) rc = train->epoch(training.trainer, &epoch, &error);
    if (rc == GRAFT_OK) gradient = gradient_far(&training, what->optimizer.lr);
    ok_or(predicted >= least && predicted < most && gradient >= least && gradient < 2 * most, error.message,
          "%s: rounded rows, predictions within %.1e, gradients %.1e", training_name(what), predicted, gradient);
    api->set(api->context, "model.type", "f32", NULL);
    training_fini(&training);
}

/** The losses of three epochs, and the logits after the last one, with so many threads. */
static void losses_with(const struct training_case *what, int threads, double loss[3])
{
    struct training_case copy = *what;
    struct training      training;
    graft_error          error = GRAFT_INIT(graft_error);

    copy.threads = threads;
    training_init(&training, &copy, 1);
    if (training_open(&training, api, &copy, &error) != GRAFT_OK) diag("%s", error.message);
    for (int i = 0; i < 3; i++) {
        graft_epoch epoch = output_epoch();

        epoch.loss = NAN;
        train->epoch(training.trainer, &epoch, &error);
        loss[i] = epoch.loss;
    }
    training_fini(&training);
}

static void test_threads(void)
{
    const struct training_case what = {
        .kind = ORACLE_SAGE, .layers = 3, .n = 60, .norm = 1, .dropout = 0.4, .optimizer = { .lr = 0.1 }
    };
    double loss[3][3], plain[3];

    api->set(api->context, "model.type", "bf16", NULL);
    for (int threads = 1; threads <= 3; threads++) losses_with(&what, threads, loss[threads - 1]);
    api->set(api->context, "model.type", "f32", NULL);
    losses_with(&what, 1, plain);
    ok(memcmp(loss[0], loss[1], sizeof plain) == 0 && memcmp(loss[0], loss[2], sizeof plain) == 0,
       "training with rounded rows is bitwise identical with 1, 2 and 3 threads");
    ok(memcmp(loss[0], plain, sizeof plain) != 0 && fabs(loss[0][2] - plain[2]) < 1e-2,
       "training with rounded rows differs from training without rounding");
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    test_rounded_sums();
    test_rounded_gradient();
    for (enum oracle_kind kind = ORACLE_SAGE; kind <= ORACLE_GIN; kind++) test_rounded_list(kind);
    for (enum oracle_kind kind = ORACLE_MLP; kind <= ORACLE_APPNP; kind++) {
        for (int which = 0; which < 4; which += case_step()) {
            const struct training_case what = { .kind = kind,
                                                .layers = 2 + which % 2,
                                                .norm = which / 2,
                                                .growing = which % 2,
                                                .weighted = which == 1 && kind != ORACLE_GAT,
                                                .dropout = which == 2 ? 0.4 : 0,
                                                .anew = which < 2,
                                                .recompute = which == 3,
                                                .unmasked = which == 1,
                                                .threads = 1 + which % 3,
                                                .optimizer = { .lr = 1024 } };

            test_near(&what);
        }
    }
    test_threads();
    api->close(api->context);
    return done();
}
