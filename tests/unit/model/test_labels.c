/* Checks labels as input (label propagation): which labels are input of a step, that none of these is in its loss, and
 * the results of training. Gradients are checked by test_gradient, and ranks by test_train_ranks. What no public
 * function returns is read from the trainer itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

enum { N = 1500, FEATURES = 11, CLASSES = 4, EPOCHS = 6, SEED = 7 };

static const double RATE = 0.62;

static const graft_api       *api;
static const graft_train_api *train;
static graft_error            error = GRAFT_INIT(graft_error);

static const char *const usual =
    "layers=2 hidden=12 heads=2 epochs=50 eval_every=0 threads=2 seed=7 order=given row_masks=yes norm=layer "
    "dropout=0.3 input_dropout=0 label_rate=0.62 optimizer=adam lr=0.01 recompute=no";

static void labels_configure(const char *settings)
{
    host_set_all(api, usual);
    host_set_all(api, settings);
}

static graft_trainer *create_configured(const graft_dataset *dataset)
{
    graft_trainer *t = NULL;

    if (train->create(api->context, dataset, &t, &error) != GRAFT_OK) {
        printf("Bail out! %s\n", error.message);
        exit(2);
    }
    return t;
}

static graft_trainer *create(const graft_dataset *dataset, const char *settings)
{
    labels_configure(settings);
    return create_configured(dataset);
}

static double epoch_loss(graft_trainer *t)
{
    graft_epoch epoch = output_epoch();

    if (train->epoch(t, &epoch, &error) == GRAFT_OK) return epoch.loss;
    diag("%s", error.message);
    return (double)NAN;
}

/* --- which labels are input --- */

/* Compare with the definition, by the host's vertex numbers. The result is the number of differences. */
static int64_t count_wrong(const graft_trainer *t, const struct sample_dataset *set, int64_t epoch, int64_t *taken)
{
    const int64_t rows = t->setup.derived.reach[t->setup.model.config.n_layers];
    int64_t       wrong = 0, seen = 0;

    for (int64_t row = 0; row < t->setup.data.n; row++) {
        const int64_t v = t->setup.derived.whole.vertex != NULL ? t->setup.derived.whole.vertex[row] : row;
        const int     trained = set->split[v] == GRAFT_SPLIT_TRAIN && set->labels[v] >= 0;
        const int     gives = trained && (epoch < 0 || oracle_gives_label(RATE, SEED, epoch, v));

        wrong += (row < rows && t->setup.run.labels.taken[row]) != gives;
        *taken += gives;
        seen += trained && !gives;
    }
    return wrong + (t->setup.data.over == NULL && epoch >= 0 && t->setup.run.targets.loss_weight != (double)seen);
}

static void test_labels_draws(const struct sample_dataset *set, const char *settings)
{
    graft_trainer *t = create(&set->dataset, settings);
    graft_metrics  metrics = output_metrics();
    uint8_t        before[N] = { 0 };
    int64_t        wrong = 0, far = 0, stays = 0, all = 0;
    int32_t        rc;
    const int64_t  rows = t->setup.derived.reach[t->setup.model.config.n_layers];
    const double   mean = RATE * (double)t->setup.run.targets.n_train, deviation = sqrt(mean * (1 - RATE));

    for (int e = 0; e < EPOCHS; e++) {
        int64_t taken = 0;

        epoch_loss(t);
        wrong += count_wrong(t, set, e, &taken);
        far += fabs((double)taken - mean) > 5 * deviation;
        stays += memcmp(before, t->setup.run.labels.taken, (size_t)rows) == 0;
        memcpy(before, t->setup.run.labels.taken, (size_t)rows);
    }
    ok(wrong == 0 && far == 0 && stays == 0,
       "%s: each epoch draws another set of input labels, by the definition, about %.0f of %lld", settings, mean,
       (long long)t->setup.run.targets.n_train);
    rc = train->evaluate(t, GRAFT_WEIGHTS_LAST, &metrics, &error);
    wrong = count_wrong(t, set, -1, &all);
    ok(rc == GRAFT_OK && wrong == 0 && all == t->setup.run.targets.n_train,
       "%s: in evaluation the labels of all %lld training vertices are inputs", settings, (long long)all);
    train->destroy(t);
}

struct job {
    struct sample_dataset set;
    int64_t               wrong[HOSTS_MOST], taken[HOSTS_MOST];
};

static int32_t labels_body(struct host *host)
{
    struct job         *job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    struct host_trainer t;
    int32_t             rc = host_trainer_create(host, &job->set.dataset, SLICES_ODD, &t);

    job->wrong[host->rank] = job->taken[host->rank] = 0;
    for (int e = 0; e < 2 && rc == GRAFT_OK; e++) {
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        job->wrong[host->rank] += count_wrong(t.trainer, &job->set, e, &job->taken[host->rank]);
    }
    host_trainer_destroy(host, &t);
    return rc;
}

static void test_draws_of_ranks(struct job *job, int32_t n_ranks)
{
    static const char *const settings[] = {
        "label_rate=0.62", "seed=7",       "epochs=9",        "eval_every=0", "layers=2", "hidden=12",
        "partition=hash",  "order=degree", "halo.timeout=60", "threads=1",    NULL
    };
    static struct hosts hosts;
    int64_t             wrong = 0, taken = 0, expected = 0;
    const int           clean = hosts_run(&hosts, n_ranks, settings, labels_body, job);

    for (int32_t i = 0; i < n_ranks; i++) {
        wrong += job->wrong[i] + (hosts.at[i].rc != GRAFT_OK);
        taken += job->taken[i];
    }
    for (int64_t v = 0; v < 2 * N; v++)
        expected += job->set.split[v % N] == GRAFT_SPLIT_TRAIN && job->set.labels[v % N] >= 0 &&
                    oracle_gives_label(RATE, SEED, v / N, v % N);
    ok(clean && wrong == 0 && taken == expected,
       "on %d ranks the same labels are inputs as in one process, %lld vertices in two epochs", n_ranks,
       (long long)taken);
}

/* --- where labels go --- */

/* The logits of the first step by the host's vertex numbers; 0 for vertices that are not trained. `taken` receives
 * whose labels were input. */
static float *first_logits(const graft_dataset *dataset, const char *settings, uint8_t *taken)
{
    graft_trainer *t = create(dataset, settings);
    float         *logits = calloc((size_t)N * CLASSES, sizeof *logits);

    epoch_loss(t);
    for (int64_t row = 0; row < t->setup.derived.reach[t->setup.model.config.n_layers]; row++) {
        const int64_t v = t->setup.derived.whole.vertex != NULL ? t->setup.derived.whole.vertex[row] : row;
        const float  *z = t->setup.run.layers[t->setup.model.config.n_layers - 1].z + row * CLASSES;

        taken[v] = t->setup.run.labels.taken[row];
        if (gr_is_trained(&t->setup.run.targets, row)) memcpy(logits + v * CLASSES, z, CLASSES * sizeof *logits);
    }
    train->destroy(t);
    return logits;
}

/* Change the classes of the training vertices whose label was input, or of those whose label was not. */
static void change_labels(struct sample_dataset *set, const uint8_t *taken, int those)
{
    for (int64_t v = 0; v < N; v++) {
        if (set->split[v] != GRAFT_SPLIT_TRAIN || taken[v] != those) continue;
        if (set->dataset.targets != NULL) set->targets[v * CLASSES + v % CLASSES] ^= 1;
        else if (set->labels[v] >= 0) set->labels[v] = (set->labels[v] + 1) % CLASSES;
    }
}

static void test_leak(const char *settings, int several)
{
    uint8_t taken[3][N] = { { 0 } };
    float  *logits[3];
    int     same, moved;

    for (int i = 0; i < 3; i++) { /* labels as they are; others in the loss; others as input */
        struct sample         sample = { 21 };
        struct sample_dataset set;

        sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, several, 0);
        if (i > 0) change_labels(&set, taken[0], i == 2);
        logits[i] = first_logits(&set.dataset, settings, taken[i]);
        sample_dataset_fini(&set);
    }
    same = memcmp(logits[0], logits[1], sizeof(float) * N * CLASSES) == 0;
    moved = memcmp(logits[0], logits[2], sizeof(float) * N * CLASSES) != 0;
    ok(same && moved && memcmp(taken[0], taken[1], N) == 0 && memcmp(taken[0], taken[2], N) == 0,
       "%s%s: logits of a step depend on labels that are inputs, and not on labels in its loss", settings,
       several ? ", several classes at once" : "");
    for (int i = 0; i < 3; i++) free(logits[i]);
}

/* --- results of training --- */

/* Copy the state of `from` to `to`. */
static void labels_move_state(graft_trainer *from, graft_trainer *to)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; train->state_item(from, i, &item, NULL) == GRAFT_OK; i++) {
        if (train->state_set(to, &item, &error) != GRAFT_OK) diag("%s", error.message);
    }
}

static void test_resumed(const graft_dataset *dataset, const char *settings)
{
    graft_trainer *whole = create(dataset, settings), *half = create_configured(dataset);
    graft_trainer *rest = create_configured(dataset);

    for (int e = 0; e < 6; e++) epoch_loss(whole);
    for (int e = 0; e < 3; e++) epoch_loss(half);
    labels_move_state(half, rest);
    ok(host_same_state(train, half, rest), "%s: the state is copied completely", settings);
    for (int e = 0; e < 3; e++) epoch_loss(rest);
    ok(host_same_state(train, whole, rest), "%s: resumed training is bitwise identical", settings);
    train->destroy(whole);
    train->destroy(half);
    train->destroy(rest);
}

static void test_labels_threads(const char *model)
{
    static const char *const threads[] = { "threads=1", "threads=2", "threads=5" };
    struct sample            sample = { 9 };
    struct sample_dataset    set;
    graft_trainer           *t[3];
    char                     settings[64];

    sample_dataset_init(&set, &sample, 6000, FEATURES, CLASSES, 0, 0);
    snprintf(settings, sizeof settings, "hidden=64 model=%s", model);
    labels_configure(settings);
    for (int i = 0; i < 3; i++) {
        host_set(api, threads[i]);
        t[i] = create_configured(&set.dataset);
        for (int e = 0; e < 2; e++) epoch_loss(t[i]);
    }
    ok(host_same_state(train, t[0], t[1]) && host_same_state(train, t[0], t[2]),
       "%s: training is bitwise identical with 1, 2 and 5 threads", model);
    for (int i = 0; i < 3; i++) train->destroy(t[i]);
    sample_dataset_fini(&set);
}

/* The shape of the label embedding, [rows x cols], or 0 x 0. */
static void find_embedding(graft_trainer *t, int64_t shape[2])
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    shape[0] = shape[1] = 0;
    for (int32_t i = 0; train->state_item(t, i, &item, NULL) == GRAFT_OK; i++) {
        if (strcmp(item.name, "label_embedding") == 0) memcpy(shape, item.shape, 2 * sizeof *shape);
    }
}

static void test_state(const graft_dataset *dataset)
{
    static const char *const settings[] = { "label_rate=0.5", "label_rate=0" };
    int64_t                  shape[2], none[2];
    char                     text[4096] = "", plain[4096] = "";

    for (int i = 0; i < 2; i++) {
        graft_trainer *t = create(dataset, settings[i]);

        find_embedding(t, i == 0 ? shape : none);
        train->explain(t, i == 0 ? text : plain, sizeof text, NULL);
        train->destroy(t);
    }
    ok(shape[0] == CLASSES && shape[1] == FEATURES && none[0] == 0,
       "the label embedding is in the state only if labels are inputs");
    ok(strstr(text, "labels    of 50 %") != NULL && strstr(plain, "labels ") == NULL,
       "explain() reports the share of labels that are inputs");
}

/* If all labels are input nothing can be learnt, but nothing may fail. */
static void test_none_left(const graft_dataset *dataset, const char *settings)
{
    graft_trainer *t = create(dataset, settings), *fresh = create_configured(dataset);
    const double   loss = epoch_loss(t);

    ok(t->setup.run.targets.loss_weight == 0 && loss == 0,
       "%s: if all labels are inputs, no vertex is left for the loss, which is %g", settings, loss);
    fresh->progress.epoch = 1;
    ok(host_same_state(train, t, fresh), "%s: if all labels are inputs, weights and moments do not change", settings);
    train->destroy(t);
    train->destroy(fresh);
}

/* All features are equal, and eight of ten neighbours have the same class, so that only labels help. */
static double planted_accuracy(const char *settings)
{
    struct sample         sample = { 33 };
    struct sample_dataset set;
    graft_trainer        *t;
    graft_metrics         metrics = output_metrics();
    int64_t               to = 0;
    int32_t              *columns = oracle_new(N * 10, sizeof *columns);

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int64_t v = 0; v < N; v++) {
        for (int64_t j = 0; j < FEATURES; j++) ((float *)set.features.data)[v * set.features.stride + j] = 0.125f;
        set.labels[v] = (int32_t)(v % CLASSES);
        set.split[v] = sample_below(&sample, 2) ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
        for (int i = 0; i < 10; i++) {
            const int64_t u = sample_below(&sample, N / CLASSES) * CLASSES;

            columns[to++] = (int32_t)(u + (i < 8 ? v % CLASSES : sample_below(&sample, CLASSES)));
        }
        set.graph.row_ptr[v + 1] = to;
    }
    set.graph.csr.col_idx = columns;
    t = create(&set.dataset, settings);
    for (int e = 0; e < 50; e++) epoch_loss(t);
    if (train->evaluate(t, GRAFT_WEIGHTS_LAST, &metrics, &error) != GRAFT_OK) diag("%s", error.message);
    train->destroy(t);
    set.graph.csr.col_idx = set.graph.col_idx;
    sample_dataset_fini(&set);
    free(columns);
    return metrics.test_accuracy;
}

static void test_planted(const char *model)
{
    char   with[64], without[64];
    double accuracy[2];

    snprintf(with, sizeof with, "model=%s hidden=32 propagation=2 label_rate=0.62", model);
    snprintf(without, sizeof without, "model=%s hidden=32 propagation=2 label_rate=0", model);
    accuracy[0] = planted_accuracy(without);
    accuracy[1] = planted_accuracy(with);
    ok(accuracy[1] > 0.8 && accuracy[0] < 0.5,
       "%s learns from labels what features do not tell: accuracy %.3f, and %.3f without labels", model, accuracy[1],
       accuracy[0]);
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "sgc", "appnp" };
    struct job              *job = calloc(1, sizeof *job);
    struct sample            sample = { 21 };
    char                     settings[64];

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) return done();
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    test_labels_draws(&job->set, "order=given");
    test_labels_draws(&job->set, "order=rcm row_masks=no threads=3");
    test_labels_draws(&job->set, "model=mlp input_dropout=0.3");
    for (int32_t n_ranks = 1; n_ranks <= 7; n_ranks += 2) test_draws_of_ranks(job, n_ranks);
    for (int m = 0; m < 6; m++) {
        snprintf(settings, sizeof settings, "model=%s", models[m]);
        test_leak(settings, m % 2);
        test_resumed(&job->set.dataset, settings);
        test_labels_threads(models[m]);
        test_planted(models[m]);
    }
    test_leak("model=sage hidden=2 reuse_input=no", 0);
    test_state(&job->set.dataset);
    test_none_left(&job->set.dataset, "label_rate=0.999999 optimizer=sgd");
    sample_dataset_fini(&job->set);
    free(job);
    api->close(api->context);
    return done();
}
