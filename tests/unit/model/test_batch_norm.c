/* Checks BatchNorm: running statistics and predictions with them against the oracle; that they are saved, restored and
 * undone with the weights; and that they are bitwise identical for any number of threads. Gradients are checked by
 * test_layer_options, ranks by test_train_ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const graft_api       *api;
static const graft_train_api *train;
static const graft_model_api *models;

enum { RUNNING_MOST = 4096 };

/* The state item with this name, or NULL. */
static const float *find_running(graft_trainer *trainer, const char *prefix, int32_t layer, const char *what)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    char             name[64];

    snprintf(name, sizeof name, "%slayers.%d.norm.%s", prefix, layer, what);
    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, name) == 0) return item.data;
    return NULL;
}

/* Copy all running statistics, one after the other. The result is their number. */
static int64_t copy_running(graft_trainer *trainer, const struct oracle_model *model, const char *prefix, float *copy)
{
    int64_t count = 0;

    for (int32_t l = 0; l + 1 < model->options.layers; l++)
        for (int which = 0; which < 2; which++) {
            const float *found = find_running(trainer, prefix, l, which ? "variance" : "mean");

            for (int64_t j = 0; found != NULL && j < model->width[l + 1]; j++) copy[count++] = found[j];
        }
    return count;
}

/* The distance of the running statistics from those of the oracle, after steps whose batch statistics are `batch`. */
static double distance_of_running(struct training *training)
{
    struct oracle_model *model = &training->model;
    double               most = 0;

    for (int32_t l = 0; l + 1 < model->options.layers; l++)
        for (int which = 0; which < 2; which++) {
            const float *found = find_running(training->trainer, "", l, which ? "variance" : "mean");

            for (int64_t j = 0; j < model->width[l + 1]; j++) {
                double *running = &model->running[which][l][j];

                *running = 0.9 * *running + 0.1 * model->batch[which][l][j];
                if (found == NULL) return INFINITY;
                most = fmax(most, fabs((double)found[j] - *running) / fmax(1, fabs(*running)));
            }
        }
    return most;
}

/* Run an epoch of the trainer and a pass of the oracle with the same weights, and copy the new weights to the
 * oracle. */
static double step_both(struct training *training, int64_t epoch, graft_error *error)
{
    struct oracle_model *model = &training->model;
    double              *logits = oracle_new(model->n * model->classes, sizeof *logits), far;
    graft_epoch          result = output_epoch();

    oracle_model_drop(model, epoch);
    oracle_model_forward(model, 1, logits, NULL);
    far = train->epoch(training->trainer, &result, error) == GRAFT_OK ? distance_of_running(training) : INFINITY;
    for (int32_t t = 0; t < model->n_tensors; t++) training_pull(training, "", t, model->tensor[t].value);
    free(logits);
    return far;
}

static double distance_of_logits(const struct oracle_model *model, const float *found)
{
    const int64_t count = model->n * model->classes;
    double       *expected = oracle_new(count, sizeof *expected), *given = oracle_new(count, sizeof *given), far;

    oracle_model_forward(model, 0, expected, NULL);
    for (int64_t at = 0; at < count; at++) given[at] = (double)found[at];
    far = training_distance(given, expected, count);
    free(expected);
    free(given);
    return far;
}

/* Predict with the model from a file, for all vertices and for a list of two. */
static int32_t predict_saved(struct training *training, graft_dense *logits, graft_dense *few, graft_error *error)
{
    static const int64_t two[] = { 5, 2 };
    graft_prediction     prediction = GRAFT_INIT(graft_prediction);
    graft_model         *model = NULL;
    char                 path[64];
    int32_t              rc = models->create(training->trainer, GRAFT_MODEL_STATE, &model, error);

    snprintf(path, sizeof path, "/tmp/test_batch_norm_%d", (int)getpid());
    if (rc == GRAFT_OK) rc = models->save(model, path, error);
    models->destroy(model);
    model = NULL;
    if (rc == GRAFT_OK) rc = models->load(api->context, NULL, path, &model, error);
    unlink(path);
    output_clear_rows(logits);
    if (rc == GRAFT_OK) rc = models->predict(model, GRAFT_WEIGHTS_LAST, &training->set.dataset, NULL, logits, error);
    prediction.dataset = &training->set.dataset;
    prediction.vertices = two;
    prediction.n = 2;
    prediction.logits = few;
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &prediction, error);
    models->destroy(model);
    return rc;
}

/* With few training vertices the layers after the last BatchNorm compute only the rows that these need. */
static void check_masked(struct training *training, const struct training_case *what)
{
    char text[2048] = "";

    train->explain(training->trainer, text, sizeof text, NULL);
    ok_or((strstr(text, "a step needs") != NULL) == (what->kind != ORACLE_GAT), text, "%s: a step needs fewer rows",
          training_name(what));
}

/* Make two steps, and predict with the running statistics. */
static void test_running(const struct training_case *what)
{
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);
    graft_dense     logits = GRAFT_INIT(graft_dense), few;
    float          *rows, pair[2 * 8];
    double          far[2] = { INFINITY, INFINITY };
    int64_t         classes;
    int32_t         rc;

    training_init(&training, what, 1);
    classes = training.model.classes;
    rows = oracle_new(training.model.n * classes, sizeof *rows);
    logits = (graft_dense){ sizeof logits, GRAFT_F32, training.model.n, classes, classes, rows };
    few = (graft_dense){ sizeof few, GRAFT_F32, 2, classes, classes, pair };
    rc = training_open(&training, api, what, &error);
    if (rc == GRAFT_OK) check_masked(&training, what);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) far[i] = step_both(&training, i, &error);
    ok(far[0] < 1e-5 && far[1] < 1e-5, "%s: running statistics of two steps within %.1e and %.1e", training_name(what),
       far[0], far[1]);
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = train->predict(training.trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error);
    far[0] = rc == GRAFT_OK ? distance_of_logits(&training.model, rows) : INFINITY;
    if (rc == GRAFT_OK) rc = predict_saved(&training, &logits, &few, &error);
    far[1] = rc == GRAFT_OK ? distance_of_logits(&training.model, rows) : INFINITY;
    for (int64_t j = 0; j < 2 * classes && rc == GRAFT_OK; j++)
        far[1] = fmax(far[1], fabs((double)pair[j] - (double)rows[(j < classes ? 5 : 2) * classes + j % classes]) /
                                  fmax(1, fabs((double)pair[j])));
    ok_or(far[0] < 2e-5 && far[1] < 2e-5, error.message, "%s: predictions within %.1e, from a file %.1e",
          training_name(what), far[0], far[1]);
    free(rows);
    training_fini(&training);
}

/* A step that diverges must be undone with its statistics, a state must restore them, and a state without them must be
 * refused. */
static void test_undone(void)
{
    const struct training_case what = {
        .kind = ORACLE_SAGE, .layers = 3, .norm = ORACLE_BATCH_NORM, .optimizer = { .lr = 0.01, .adam = 1 }
    };
    static float     before[RUNNING_MOST], after[RUNNING_MOST];
    struct training  training;
    graft_error      error = GRAFT_INIT(graft_error);
    graft_epoch      epoch = output_epoch();
    graft_state_item item = GRAFT_INIT(graft_state_item);
    graft_model     *state = NULL;
    int64_t          count;
    float            negative[64];

    training_init(&training, &what, 1);
    if (training_open(&training, api, &what, &error) < 0) diag("%s", error.message);
    host_set_all(api, "epochs=20 eval_every=1");
    train->epoch(training.trainer, &epoch, &error);
    models->create(training.trainer, GRAFT_MODEL_STATE, &state, &error);
    count = copy_running(training.trainer, &training.model, "", before);
    host_set_all(api, "lr=1e38");
    ok(train->epoch(training.trainer, &epoch, &error) == GRAFT_ERR_NONFINITE, "a step diverges: %s", error.message);
    copy_running(training.trainer, &training.model, "", after);
    ok(count > 0 && memcmp(before, after, (size_t)count * sizeof *before) == 0,
       "after a step that diverged the running statistics are those before it");
    host_set_all(api, "lr=0.01");
    ok(train->epoch(training.trainer, &epoch, &error) == GRAFT_OK, "the step after one that diverged succeeds");
    copy_running(training.trainer, &training.model, "", after);
    ok(memcmp(before, after, (size_t)count * sizeof *before) != 0,
       "a step that succeeds changes the running statistics");
    ok(models->apply(state, training.trainer, &error) == GRAFT_OK, "a saved state is applied to the trainer");
    copy_running(training.trainer, &training.model, "", after);
    ok(memcmp(before, after, (size_t)count * sizeof *before) == 0,
       "after a saved state was applied the trainer has its running statistics");
    for (int32_t i = 0; train->state_item(training.trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, "layers.0.norm.variance") == 0) break;
    for (int j = 0; j < 64; j++) negative[j] = j == 1 ? -1.0f : 1.0f;
    item.data = negative;
    ok(train->state_set(training.trainer, &item, &error) == GRAFT_ERR_FORMAT,
       "running statistics with a negative variance are refused: %s", error.message);
    host_set_all(api, "eval_every=0");
    models->destroy(state);
    training_fini(&training);
}

/* The best weights come with the running statistics of their epoch, and predict with them. Statistics have no
 * moments. */
static void test_best_running(void)
{
    const struct training_case what = {
        .kind = ORACLE_SAGE, .layers = 3, .norm = ORACLE_BATCH_NORM, .optimizer = { .lr = 0.3, .adam = 1 }
    };
    static float    now[RUNNING_MOST], then[RUNNING_MOST], best[RUNNING_MOST];
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);
    graft_metrics   metrics = output_metrics();
    double          loss = NAN;
    int64_t         count = 0, at = 0;
    int32_t         rc;

    training_init(&training, &what, 1);
    if (training_open(&training, api, &what, &error) < 0) diag("%s", error.message);
    host_set_all(api, "epochs=20 eval_every=1");
    for (int i = 1; i <= 20; i++) {
        graft_epoch epoch = output_epoch();

        train->epoch(training.trainer, &epoch, &error);
        count = copy_running(training.trainer, &training.model, "", now);
        if (!epoch.best) continue;
        memcpy(then, now, sizeof now);
        loss = epoch.validation_loss;
        at = i;
    }
    copy_running(training.trainer, &training.model, "best.", best);
    ok(count > 0 && at > 1 && at < 20 && memcmp(then, best, (size_t)count * sizeof *best) == 0 &&
           memcmp(now, best, (size_t)count * sizeof *best) != 0,
       "the best running statistics are those of epoch %lld of 20", (long long)at);
    rc = train->evaluate(training.trainer, GRAFT_WEIGHTS_BEST, &metrics, &error);
    ok(rc == GRAFT_OK && fabs(metrics.validation_loss - loss) < 1e-12,
       "evaluated again, the best weights have a validation loss of %.6f, and had %.6f", metrics.validation_loss, loss);
    ok(find_running(training.trainer, "optimizer.v.", 0, "gain") != NULL &&
           find_running(training.trainer, "optimizer.v.", 0, "variance") == NULL &&
           find_running(training.trainer, "optimizer.m.", 0, "mean") == NULL,
       "the state has no moments of running statistics");
    host_set_all(api, "eval_every=0");
    training_fini(&training);
}

/* The statistics of some thousand rows after three steps. The result is their number. */
static int64_t run_threads(const struct sample_dataset *set, const char *threads, float *found)
{
    graft_error         error = GRAFT_INIT(graft_error);
    graft_epoch         epoch = output_epoch();
    graft_trainer      *trainer = NULL;
    struct oracle_model shape = { .options = { .layers = 3 }, .width = { 5, 24, 24, 3 } };
    int64_t             count = 0;

    host_set_all(api, "model=gcn layers=3 hidden=24 norm=batch dropout=0.5 epochs=3 optimizer=adam lr=0.01 loss=auto");
    host_set_all(api, threads);
    if (train->create(api->context, &set->dataset, &trainer, &error) < 0) diag("%s", error.message);
    for (int i = 0; i < 3 && trainer != NULL; i++) train->epoch(trainer, &epoch, &error);
    if (trainer != NULL) count = copy_running(trainer, &shape, "", found);
    train->destroy(trainer);
    return count;
}

static void test_batch_norm_threads(void)
{
    static float          found[2][RUNNING_MOST];
    struct sample         sample = { 6 };
    struct sample_dataset set;

    sample_dataset_init(&set, &sample, 3001, 5, 3, 0, 0);
    run_threads(&set, "threads=1", found[0]);
    for (int i = 0; i < 2; i++) {
        const int64_t count = run_threads(&set, i ? "threads=3" : "threads=2", found[1]);

        ok(count == 96 && memcmp(found[0], found[1], (size_t)count * sizeof **found) == 0,
           "training with %d threads is bitwise identical to one thread", 2 + i);
    }
    sample_dataset_fini(&set);
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    alarm(100);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    models = api->get_interface(api->context, GRAFT_MODEL_ID);
    for (enum oracle_kind kind = ORACLE_MLP; kind <= ORACLE_APPNP; kind++) {
        const struct training_case what = { .kind = kind,
                                            .layers = 2 + (int)kind % 2,
                                            .norm = ORACLE_BATCH_NORM,
                                            .dropout = kind % 3 ? 0.4 : 0,
                                            .drops_first = kind % 3 == 1,
                                            .elu = kind % 2,
                                            .scarce = 1,
                                            .optimizer = { .lr = 0.01, .adam = 1 } };

        test_running(&what);
    }
    test_undone();
    test_best_running();
    test_batch_norm_threads();
    api->close(api->context);
    return done();
}
