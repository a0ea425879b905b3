/* Checks training by minibatch. A batch of all training vertices with all neighbours must equal a step on the whole
 * graph; sums over sampled neighbours must be unbiased; and results must be bitwise identical with any number of
 * threads, and if epochs are interrupted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_model.h"
#include "graft_report.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 400, FEATURES = 13, CLASSES = 4, EPOCHS = 4 };

static const graft_api        *api;
static const graft_train_api  *train;
static const graft_report_api *report;
static const graft_model_api  *models;
static graft_error             error;
static struct strict_host      host;
static int64_t                 cancel_at = -1; /* number of the allocation that asks to cancel the call */
static struct sample           sample = { 23 };

static void *cancelling_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    if (cancel_at >= 0 && host.calls == cancel_at) api->cancel(api->context);
    return strict_allocate(self, bytes, alignment);
}

static void reset_options(void)
{
    host_set_all(api, "model=sage aggregator=mean layers=3 hidden=16 heads=2 propagation=3 dropout=0 input_dropout=0 "
                      "norm=layer jumping=none residual=no epochs=4 eval_every=2 threads=2 order=given symmetrize=no "
                      "edge_features=none batch_size=0 fanout=-1 sampler=neighbour drop_last=no lr=0.01 loss=auto "
                      "sparse_input=auto recompute=no model.type=f32 optimizer=adam label_rate=0 "
                      "workers=no on_nonfinite=stop sample.ahead=0 sample.weights=uniform normalize_features=no "
                      "attention_dropout=0");
    host_set_all(api, "reuse_input=yes row_masks=yes");
    host_set_all(api, "history=no partition.program=auto");
    host_set_all(api, "sampler=neighbour");
}

static int64_t count_trained(const struct sample_dataset *set)
{
    int64_t count = 0;

    for (int64_t v = 0; v < set->dataset.n_vertices; v++) {
        int known = set->dataset.labels != NULL && set->labels[v] >= 0;

        known |= set->dataset.targets != NULL;
        for (int64_t j = 0; set->dataset.float_targets != NULL && j < set->dataset.n_classes; j++)
            known |= !isnan(((const float *)set->float_targets.data)[v * set->float_targets.stride + j]);
        count += known && set->split[v] == GRAFT_SPLIT_TRAIN;
    }
    return count;
}

static graft_trainer *create_trainer(const struct sample_dataset *set, const char *settings)
{
    graft_trainer *trainer = NULL;

    reset_options();
    host_set_all(api, settings);
    if (train->create(api->context, &set->dataset, &trainer, &error) == GRAFT_OK) return trainer;
    diag("%s: %s", settings, error.message);
    return NULL;
}

static double loss_of_epoch(graft_trainer *trainer)
{
    graft_epoch epoch = output_epoch();

    if (trainer == NULL) return (double)NAN;
    if (train->epoch(trainer, &epoch, &error) == GRAFT_OK) return epoch.loss;
    diag("%s", error.message);
    return (double)NAN;
}

/* -- one batch of all --------------------------------------------------------------------------------------------- */

struct results {
    double loss[EPOCHS];
    float  logits[N * CLASSES];
};

static void train_all(const struct sample_dataset *set, const char *settings, struct results *results)
{
    const graft_dense logits = graft_dense_in(GRAFT_F32, N, CLASSES, results->logits);
    graft_trainer    *trainer = create_trainer(set, settings);

    output_clear_rows(&logits);
    for (int e = 0; e < EPOCHS; e++) results->loss[e] = loss_of_epoch(trainer);
    if (trainer == NULL || train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error) != GRAFT_OK)
        output_clear(results, sizeof *results); /* otherwise two failures would pass for equal results */
    train->destroy(trainer);
}

static void test_one_batch(const struct sample_dataset *set, const char *name, const char *settings)
{
    static struct results whole, batch;
    double                first, later = 0, largest = 0, most = 0;
    char                  both[512];

    train_all(set, settings, &whole);
    snprintf(both, sizeof both, "%s batch_size=%lld", settings, (long long)count_trained(set));
    train_all(set, both, &batch);
    first = fabs(batch.loss[0] - whole.loss[0]) / fabs(whole.loss[0]);
    for (int e = 1; e < EPOCHS; e++) later = fmax(later, fabs(batch.loss[e] - whole.loss[e]) / fabs(whole.loss[e]));
    for (int i = 0; i < N * CLASSES; i++) {
        largest = fmax(largest, fabs((double)whole.logits[i]));
        most = fmax(most, fabs((double)(batch.logits[i] - whole.logits[i])));
    }
    ok(first < 2e-6 && later < 1e-3 && most / largest < 1e-2, "%s, %s: losses are %.1e and %.1e off, predictions %.1e",
       name, settings, first, later, most / largest);
}

static void test_one_batch_of_all(void)
{
    static const char *const kinds[] = { "sage", "gcn", "gin", "gat", "mlp", "sgc", "appnp" };
    struct sample_dataset    dense, sparse, several, floats;
    char                     settings[200];

    sample_dataset_init(&dense, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_init(&sparse, &sample, N, FEATURES, CLASSES, 0, 1);
    sample_dataset_init(&several, &sample, N, FEATURES, CLASSES, 1, 0);
    sample_dataset_init(&floats, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_regress(&floats, &sample);
    for (int m = 0; m < 7; m++) {
        static const char *const more[] = { "", " dropout=0.4 input_dropout=0.2 order=rcm",
                                            " norm=batch symmetrize=yes",
                                            " layers=4 hidden=20,20,8 optimizer=sgd residual=yes dropout=0.5" };

        for (int i = 0; i < 4; i++) {
            if (m == 4 && i == 2) continue; /* BatchNorm of mlp would use the training vertices, not all */
            snprintf(settings, sizeof settings, "model=%s%s", kinds[m], more[i]);
            test_one_batch(&dense, "dense", settings);
        }
        snprintf(settings, sizeof settings, "model=%s dropout=0.3", kinds[m]);
        test_one_batch(&floats, "float targets", settings);
        test_one_batch(&several, "several classes", settings);
        snprintf(settings, sizeof settings, "model=%s sparse_input=yes input_dropout=0.3", kinds[m]);
        test_one_batch(&sparse, "sparse", settings);
        snprintf(settings, sizeof settings, "model=%s sparse_input=no order=degree", kinds[m]);
        test_one_batch(&sparse, "sparse", settings);
        if (m == 4) continue; /* mlp has no graph */
        snprintf(settings, sizeof settings, "model=%s sampler=ladies dropout=0.3 order=rcm", kinds[m]);
        test_one_batch(&dense, "dense", settings);
        snprintf(settings, sizeof settings, "model=%s sampler=cluster:1 dropout=0.3 order=rcm", kinds[m]);
        test_one_batch(&dense, "dense", settings);
        test_one_batch(&several, "several classes", settings);
    }
    test_one_batch(&dense, "dense", "aggregator=max sampler=cluster:1");
    test_one_batch(&dense, "dense", "aggregator=sum hidden=40");
    test_one_batch(&dense, "dense", "aggregator=max dropout=0.3");
    test_one_batch(&dense, "dense", "aggregator=min dropout=0.3");
    test_one_batch(&dense, "dense", "aggregator=min sampler=cluster:1 recompute=yes");
    test_one_batch(&dense, "dense", "loss=softmax:balanced jumping=cat recompute=yes");
    test_one_batch(&dense, "dense", "model=gat edge_features=array attention_dropout=0.2 dropout=0.2");
    test_one_batch(&dense, "dense", "model=gat attention_input=relu edge_features=array recompute=yes");
    test_one_batch(&dense, "dense", "model=gcn jumping=max normalize_features=yes model.type=bf16");
    sample_dataset_fini(&dense);
    sample_dataset_fini(&sparse);
    sample_dataset_fini(&several);
    sample_dataset_fini(&floats);
}

/* -- sums are unbiased -------------------------------------------------------------------------------------------- */

/* A model of one layer, with targets far above all outputs, so that the loss mae is linear in the sums. Weights
 * stay. */
static void test_unbiased(const char *model, const char *sampler, int times)
{
    struct sample_dataset set;
    graft_trainer        *trainer;
    double                expected, sum = 0, squares = 0, mean, deviation;
    char                  settings[200];

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_regress(&set, &sample);
    for (int64_t i = 0; i < N * set.float_targets.stride; i++) ((float *)set.float_targets.data)[i] = 1e4f;
    snprintf(settings, sizeof settings, "%s layers=1 loss=mae lr=0 epochs=%d eval_every=0", model, times);
    trainer = create_trainer(&set, settings);
    expected = loss_of_epoch(trainer);
    train->destroy(trainer);
    snprintf(settings, sizeof settings, "%s layers=1 loss=mae lr=0 epochs=%d eval_every=0 batch_size=32 %s", model,
             times, sampler);
    trainer = create_trainer(&set, settings);
    for (int i = 0; i < times; i++) {
        const double loss = loss_of_epoch(trainer) - expected;
        sum += loss;
        squares += loss * loss;
    }
    train->destroy(trainer);
    mean = sum / times;
    deviation = sqrt((squares / times - mean * mean) / times);
    ok(deviation > 0 && fabs(mean) < 4.5 * deviation, "%s %s: losses are unbiased (%.2f deviations)", model, sampler,
       mean / deviation);
    sample_dataset_fini(&set);
}

/* -- bitwise identical --------------------------------------------------------------------------------------------- */

/* Make another trainer with the state of this one, which is destroyed. */
static graft_trainer *move_state(const struct sample_dataset *set, graft_trainer *from)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    graft_trainer   *to = NULL;

    if (train->create(api->context, &set->dataset, &to, &error) != GRAFT_OK) return NULL;
    for (int32_t i = 0; train->state_item(from, i, &item, NULL) == GRAFT_OK; i++)
        if (train->state_set(to, &item, &error) != GRAFT_OK) return NULL;
    train->destroy(from);
    return to;
}

static graft_trainer *move_file(const struct sample_dataset *set, graft_trainer *from)
{
    graft_model   *saved = NULL, *loaded = NULL;
    graft_trainer *to = NULL;
    char           path[64];
    int32_t        rc;

    snprintf(path, sizeof path, "/tmp/graft-batches-%d", (int)getpid());
    rc = models->create(from, GRAFT_MODEL_STATE, &saved, &error);
    if (rc == GRAFT_OK) rc = models->save(saved, path, &error);
    if (rc == GRAFT_OK) rc = train->create(api->context, &set->dataset, &to, &error);
    if (rc == GRAFT_OK) rc = models->load(api->context, NULL, path, &loaded, &error);
    if (rc == GRAFT_OK) rc = models->apply(loaded, to, &error);
    models->destroy(saved);
    models->destroy(loaded);
    unlink(path);
    train->destroy(from);
    if (rc == GRAFT_OK) return to;
    diag("%s", error.message);
    train->destroy(to);
    return NULL;
}

/* Train to the end. Allocations `step` apart ask to cancel, or fail. After each the trainer, or another one with its
 * state, goes on. The result is how often that was in the middle of an epoch, or -1. */
static int64_t train_interrupted(const struct sample_dataset *set, graft_trainer **trainer, int cancels, int moves,
                                 int64_t step)
{
    graft_epoch epoch = output_epoch();
    int64_t     middle = 0, times = 0;

    while (!epoch.done && times < 500) {
        const int32_t expected = cancels ? GRAFT_ERR_CANCELLED : GRAFT_ERR_NOMEM;
        int32_t       rc;

        graft_state_item item = GRAFT_INIT(graft_state_item);

        if (cancels) cancel_at = host.calls + step;
        else host.fail_at = host.calls + step;
        rc = train->epoch(*trainer, &epoch, &error);
        cancel_at = host.fail_at = -1;
        if (rc != GRAFT_OK && rc != expected) return -1;
        if (rc == GRAFT_OK) continue;
        times++;
        for (int32_t i = 0; train->state_item(*trainer, i, &item, NULL) == GRAFT_OK; i++)
            if (strcmp(item.name, "progress.batch") == 0) middle += *(const int64_t *)item.data > 0;
        if (moves) *trainer = moves == 1 ? move_state(set, *trainer) : move_file(set, *trainer);
        if (*trainer == NULL) return -1;
    }
    return times < 500 ? middle : -1;
}

static void test_bits(const char *settings, int64_t step)
{
    static const char *const threads[] = { "threads=1", "threads=2", "threads=3 sample.ahead=1",
                                           "threads=5 sample.ahead=4" };
    static const char *const how[] = { "and continued", "and continued by others", "and continued from files" };
    static struct results    results[2];
    struct sample_dataset    set;
    graft_trainer           *first, *other;
    int64_t                  middle;
    int                      same = 1;
    char                     all[300];

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    first = create_trainer(&set, settings);
    for (int e = 0; e < EPOCHS; e++) loss_of_epoch(first);
    /* Cancelled, and continued in the same trainer, in another one, or in one that reads a file. */
    for (int i = 0; i < 3; i++) {
        if (train->create(api->context, &set.dataset, &other, &error) != GRAFT_OK) break;
        middle = train_interrupted(&set, &other, 1, i, i ? step : 97);
        ok(middle > 2 && host_same_state(train, first, other),
           "%s: cancelled %lld times inside epochs, %s: bitwise identical", settings, (long long)middle, how[i]);
        train->destroy(other);
    }
    if (train->create(api->context, &set.dataset, &other, &error) == GRAFT_OK) {
        middle = train_interrupted(&set, &other, 0, 0, 97);
        ok(middle > 2 && host_same_state(train, first, other),
           "%s: %lld lacks of memory inside epochs: bitwise identical", settings, (long long)middle);
        train->destroy(other);
    }
    train->destroy(first);
    for (int t = 0; t < 4; t++) {
        snprintf(all, sizeof all, "%s %s", settings, threads[t]);
        train_all(&set, all, &results[t > 0]);
        same &= t == 0 || memcmp(&results[0], &results[1], sizeof results[0]) == 0;
    }
    ok(same, "%s: bitwise identical on 1, 2, 3 and 5 threads", settings);
    sample_dataset_fini(&set);
}

/* -- evaluation --------------------------------------------------------------------------------------------------- */

static int64_t bytes_of_layers(graft_trainer *trainer)
{
    graft_memory_item item = GRAFT_INIT(graft_memory_item);
    int64_t           bytes = 0;

    for (int32_t i = 0; report->memory_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, "activations") == 0 || strcmp(item.name, "masks") == 0) bytes += item.bytes;
    return bytes;
}

/* An evaluation between batches must be bitwise identical to that of a trainer without batches, in arrays that are
 * freed afterwards. */
static void test_evaluation_between(const char *settings)
{
    static float          logits[2][N * CLASSES];
    const graft_dense     none = GRAFT_INIT(graft_dense);
    struct sample_dataset set;
    graft_trainer        *trainer, *whole = NULL;
    graft_model          *weights = NULL;
    int64_t               before, between, after = -1;
    graft_dense           to = none;
    int32_t               rc;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    to = graft_dense_in(GRAFT_F32, N, CLASSES, logits[0]);
    trainer = create_trainer(&set, settings);
    before = bytes_of_layers(trainer);
    loss_of_epoch(trainer); /* this epoch has no evaluation, as eval_every=2 */
    between = bytes_of_layers(trainer);
    output_clear_rows(&to);
    rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &to, &error);
    if (rc == GRAFT_OK) after = bytes_of_layers(trainer);
    if (rc == GRAFT_OK) rc = models->create(trainer, 0, &weights, &error);
    train->destroy(trainer);
    /* Gives sums the order that they have with batches. */
    host_set_all(api, "batch_size=0 reuse_input=no row_masks=no");
    if (rc == GRAFT_OK) rc = train->create(api->context, &set.dataset, &whole, &error);
    if (rc == GRAFT_OK) rc = models->apply(weights, whole, &error);
    to.data = logits[1];
    output_clear_rows(&to);
    if (rc == GRAFT_OK) rc = train->predict(whole, GRAFT_WEIGHTS_LAST, NULL, &to, &error);
    ok_or(rc == GRAFT_OK && memcmp(logits[0], logits[1], sizeof logits[0]) == 0, error.message,
          "%s: an evaluation between batches has the bits of one without any", settings);
    ok(before == 0 && between > 0 && after == 0 && between < bytes_of_layers(whole),
       "%s: layers have %lld bytes before batches, %lld for them, %lld after an evaluation; %lld for whole graphs",
       settings, (long long)before, (long long)between, (long long)after, (long long)bytes_of_layers(whole));
    models->destroy(weights);
    train->destroy(whole);
    sample_dataset_fini(&set);
}

static void test_rows_read(void)
{
    static int32_t        labels[N];
    struct sample_dataset set;
    graft_trainer        *trainer;
    graft_epoch           epoch = output_epoch();
    float                *x;
    int64_t               trained = 0;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    x = (float *)set.features.data;
    while (set.split[trained] != GRAFT_SPLIT_TRAIN || set.labels[trained] < 0) trained++;
    trainer = create_trainer(&set, "model=mlp batch_size=10");
    x[trained * set.features.stride] = (float)NAN;
    ok(trainer != NULL && train->epoch(trainer, &epoch, &error) == GRAFT_ERR_FORMAT &&
           strstr(error.message, "column 0 is nan, expected a finite number") != NULL,
       "a row that is not finite is found by the batch that reads it: %s", error.message);
    train->destroy(trainer);
    trainer = create_trainer(&set, "model=mlp batch_size=10");
    ok(trainer != NULL, "create() does not read it");
    x[trained * set.features.stride] = 1;
    ok(trainer != NULL && train->epoch(trainer, &epoch, &error) == GRAFT_OK &&
           train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, NULL, &error) == GRAFT_OK,
       "and with another value in its place it trains");
    train->destroy(trainer);
    for (trained = 0; set.split[trained] != GRAFT_SPLIT_TEST; trained++) continue;
    trainer = create_trainer(&set, "batch_size=10 layers=1 fanout=1");
    x[trained * set.features.stride + 2] = (float)INFINITY;
    ok(trainer != NULL && train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, NULL, &error) == GRAFT_ERR_FORMAT &&
           strstr(error.message, "column 2 is inf, expected a finite number") != NULL,
       "and one that no batch reads by a pass over all vertices: %s", error.message);
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

/* -- updates, and what is refused --------------------------------------------------------------------------------- */

static void test_new_split(void)
{
    struct sample_dataset set;
    graft_trainer        *trainer;
    char                  text[2000];
    int                   good;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    trainer = create_trainer(&set, "batch_size=20 fanout=5");
    loss_of_epoch(trainer);
    for (int64_t v = 0; v < N; v++) set.split[v] = v < 100 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
    good = train->update(trainer, GRAFT_UPDATE_SPLIT, &set.dataset, &error) == GRAFT_OK;
    good = good && isfinite(loss_of_epoch(trainer)) && train->explain(trainer, text, sizeof text, &error) == GRAFT_OK;
    ok(good && strstr(text, "batches   4 of 20 training vertices") != NULL, "another split has other batches");
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

/* An update() that fails for lack of memory must change nothing, and one that succeeds everything, as a new trainer
 * with the same state shows. */
static void test_update_without_memory(const char *settings)
{
    const uint32_t        what = GRAFT_UPDATE_SPLIT | GRAFT_UPDATE_LABELS | GRAFT_UPDATE_FEATURES;
    struct sample_dataset set, other;
    graft_trainer        *trainers[3];
    graft_state_item      item = GRAFT_INIT(graft_state_item);
    int64_t               failures = 0;
    int                   same = 1;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_init(&other, &sample, N, FEATURES, CLASSES, 0, 0);
    other.dataset.graph = set.dataset.graph;
    for (int64_t v = 0; v < N; v++) other.split[v] = v % 3 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
    trainers[0] = create_trainer(&set, settings);
    if (train->create(api->context, &set.dataset, &trainers[1], &error) != GRAFT_OK) return;
    for (int i = 0; i < 2; i++) loss_of_epoch(trainers[i]);
    for (;; failures++) {
        host.fail_at = host.calls + failures;
        if (train->update(trainers[0], what, &other.dataset, &error) != GRAFT_ERR_NOMEM || failures == 300) break;
        if (failures % 32) continue;
        host.fail_at = -1;
        loss_of_epoch(trainers[0]);
        loss_of_epoch(trainers[1]);
        same &= host_same_state(train, trainers[0], trainers[1]);
    }
    host.fail_at = -1;
    ok(same && failures > 0 && failures < 300, "%s: %lld updates without memory change nothing", settings,
       (long long)failures);
    same = train->create(api->context, &other.dataset, &trainers[2], &error) == GRAFT_OK;
    for (int32_t i = 0; same && train->state_item(trainers[0], i, &item, NULL) == GRAFT_OK; i++)
        same = train->state_set(trainers[2], &item, &error) == GRAFT_OK;
    same = same && loss_of_epoch(trainers[0]) == loss_of_epoch(trainers[2]);
    ok(same && host_same_state(train, trainers[0], trainers[2]), "%s: then it goes on as a new trainer", settings);
    for (int i = 0; i < 3; i++) train->destroy(trainers[i]);
    sample_dataset_fini(&set);
    sample_dataset_fini(&other);
}

/* Other seeds use the same parts, which METIS has made. Its program is missing by then. */
static void test_parts_stay(void)
{
    struct sample_dataset set;
    graft_trainer        *trainer = NULL;
    char                  text[2][2000] = { "", "" }, program[1000], link[] = "parts-stay.XXXXXX", settings[200];
    int                   good;

    snprintf(program, sizeof program, "%.900s", getenv("GRAFT_LIBRARY"));
    snprintf(strrchr(program, '/') + 1, 20, "graft-metis");
    if (access(program, X_OK) != 0 || mkdtemp(link) == NULL || rmdir(link) != 0 || symlink(program, link) != 0) {
        skip(1, "there is no %s", program);
        return;
    }
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    snprintf(settings, sizeof settings, "batch_size=20 sampler=cluster:40 partition.program=./%s", link);
    trainer = create_trainer(&set, settings);
    good = unlink(link) == 0 && train->explain(trainer, text[0], sizeof text[0], &error) == GRAFT_OK;
    set.split[0] = set.split[0] == GRAFT_SPLIT_TRAIN ? GRAFT_SPLIT_TEST : GRAFT_SPLIT_TRAIN;
    good = good && train->update(trainer, GRAFT_UPDATE_SPLIT, &set.dataset, &error) == GRAFT_OK;
    good = good && isfinite(loss_of_epoch(trainer)) &&
           train->explain(trainer, text[1], sizeof text[1], &error) == GRAFT_OK;
    for (int i = 0; i < 2; i++)
        ok(good && strstr(text[i], "cluster   40 parts by metis") != NULL, "%s is of parts by METIS",
           i ? "another split" : "a trainer");
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

/* The profile of an epoch must have all of its batches, which are more than it had space for. */
static void test_all_spans(void)
{
    struct sample_dataset set;
    graft_trainer        *trainer;
    graft_span            span = GRAFT_INIT(graft_span);
    int64_t               batches, sampled = 0, forward = 0;
    double                end = 0;
    int                   is_ordered = 1;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    batches = count_trained(&set) / 2;
    trainer = create_trainer(&set, "batch_size=2 fanout=3 drop_last=yes profile=yes");
    loss_of_epoch(trainer);
    loss_of_epoch(trainer);
    for (int64_t i = 0; report->span(trainer, i, &span, &error) == GRAFT_OK; i++) {
        if (span.thread > 0 || span.part) continue;
        sampled += strcmp(span.phase, "sample") == 0;
        forward += strcmp(span.phase, "sample") == 0 && span.pass == GRAFT_PASS_FORWARD;
        is_ordered = is_ordered && span.begin >= end;
        end = span.end;
    }
    ok(sampled == batches && forward == batches && is_ordered, "the profile of an epoch has %lld of %lld batches",
       (long long)sampled, (long long)batches);
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

static void test_batch_refusals(void)
{
    static const struct {
        const char *settings, *part;
    } wrong[] = { { "batch_size=5000", "'batch_size' is 5000" },
                  { "batch_size=10 fanout=1,2", "2 numbers, but 3 layers" },
                  { "model=appnp batch_size=10 fanout=1,2", "2 numbers, but 3 layers" },
                  { "batch_size=10 label_rate=0.5", "'label_rate'" },
                  { "batch_size=10 workers=sparse:1", "'workers'" },
                  { "batch_size=10 on_nonfinite=restore", "'on_nonfinite=restore'" },
                  { "model=gat batch_size=10 fanout=3 sampler=neighbour:replace", "attention" },
                  { "batch_size=10 sample.weights=edge", "the graph has no values" } };
    struct sample_dataset set;
    graft_csr             plain;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    plain = set.graph.csr;
    plain.values = NULL;
    plain.value_type = 0;
    set.dataset.graph = &plain;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graft_trainer *trainer = NULL;
        int32_t        rc;

        reset_options();
        host_set_all(api, wrong[i].settings);
        rc = train->create(api->context, &set.dataset, &trainer, &error);
        ok(rc == GRAFT_ERR_OPTION && strstr(error.message, wrong[i].part) != NULL, "%s: %s", wrong[i].settings,
           error.message);
        train->destroy(trainer);
    }
    sample_dataset_fini(&set);
}

int main(void)
{
    static const char saint[] = "sampler=saint:2:1500";

    error = GRAFT_INIT(graft_error);
    strict_host_init(&host);
    host.table.allocate = cancelling_allocate;
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK, "the library opens: %s",
            error.message))
        return done();
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    report = graft_interface(api, GRAFT_REPORT_ID, sizeof *report);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    if (!ok(train != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    test_one_batch_of_all();
    test_unbiased("model=sage aggregator=sum", "fanout=2", 600);
    test_unbiased("model=sage aggregator=sum", saint, 120);
    test_unbiased("model=sage", "fanout=2", 600);
    test_unbiased("model=gcn", "fanout=2", 600);
    test_unbiased("model=gcn", saint, 120);
    test_unbiased("model=sgc propagation=1", "fanout=2", 600);
    test_bits("batch_size=30 fanout=3,4,-1 dropout=0.4", 150);
    test_bits("model=gat batch_size=50 fanout=5 dropout=0.2 attention_dropout=0.2", 110);
    test_bits("model=gcn batch_size=30 fanout=2 norm=batch order=rcm drop_last=yes", 150);
    test_evaluation_between("batch_size=10 fanout=2 layers=4");
    test_evaluation_between("batch_size=10 fanout=2 layers=4 residual=yes activation=elu order=rcm");
    test_evaluation_between("model=gat batch_size=10 fanout=2 layers=4 jumping=cat");
    test_evaluation_between("model=gat batch_size=10 fanout=2 layers=3");
    test_evaluation_between("model=gin batch_size=10 fanout=2 norm=batch");
    test_evaluation_between("model=appnp batch_size=10 fanout=2 norm=none");
    test_evaluation_between("model=sage aggregator=max batch_size=10 fanout=2 norm=none");
    test_evaluation_between("model=sage aggregator=min batch_size=10 fanout=2 norm=none");
    test_rows_read();
    test_bits("model=gcn batch_size=30 sampler=cluster:40 dropout=0.2 partition.program=none", 150);
    test_bits("batch_size=30 sampler=ladies fanout=20,40,60 dropout=0.4", 150);
    test_bits("model=gcn batch_size=30 sampler=ladies fanout=50 order=rcm drop_last=yes", 150);
    test_bits("model=gat batch_size=50 sampler=saint:3:5", 100);
    test_new_split();
    test_update_without_memory("epochs=99 row_masks=no batch_size=30 fanout=3");
    test_update_without_memory("epochs=99 row_masks=no batch_size=30 sampler=cluster partition.program=none");
    test_update_without_memory("epochs=99 row_masks=no batch_size=30 sampler=saint:2:2 threads=1");
    test_update_without_memory("epochs=99 row_masks=no batch_size=60 history=full hidden=8");
    test_parts_stay();
    test_all_spans();
    test_batch_refusals();
    api->close(api->context);
    ok(host.live_blocks == 0 && host.fault == NULL, "all memory was returned: %s", host.fault ? host.fault : "");
    return done();
}
