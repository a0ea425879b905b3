/* Checks training with adaptive bit widths. With an unlimited budget it must be bitwise identical to training with 8
 * bits, and with a smaller one the loss must fall nearly as far. All ranks must have identical weights. The bytes that
 * the transport is given in an epoch must keep the budget. A budget that cannot be met is an error on all ranks, after
 * which they can go on. Evaluations and predictions are not quantized.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 12, CLASSES = 4, FEATURES = 13, TAG_FIRST = 16, FRAME = 64 };

/* The results of a rank. */
struct outcome {
    double  loss[EPOCHS], accuracy;
    int64_t stale;
};

struct job {
    const graft_dataset *set;
    enum slices          way;
    /* Number of epochs; whether another epoch follows one that failed, which must fail again. */
    int                  epochs, goes_on;
    int                  updates; /* whether update() sets the same features before each epoch */
    struct outcome       at[HOSTS_MOST];
    int64_t              sent; /* bytes of rows that all ranks sent in the last epoch but one */
};

static int32_t (*inner_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);
static _Atomic int64_t   sent;
static _Thread_local int counts; /* a rank is a thread */

static int32_t train_adapt_counted_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                                        graft_request **request, graft_error *error)
{
    if (counts && tag >= TAG_FIRST && bytes != FRAME) atomic_fetch_add(&sent, (int64_t)bytes);
    return inner_send(self, to, tag, data, bytes, request, error);
}

static int32_t train_adapt_train(struct host *host, const struct host_trainer *t)
{
    struct job     *job = host->all->arg;
    graft_trainer  *trainer = t->trainer;
    struct outcome *o = &job->at[host->rank];
    graft_metrics   metrics = output_metrics();
    graft_traffic   traffic = GRAFT_INIT(graft_traffic);
    int32_t         rc = GRAFT_OK, failed = GRAFT_OK;

    for (int i = 0; i < job->epochs && rc == GRAFT_OK; i++) {
        graft_epoch epoch = output_epoch();

        counts = i == job->epochs - 2; /* the last epoch evaluates */
        if (job->updates) {
            rc = host->train->update(trainer, GRAFT_UPDATE_FEATURES, &t->slice.dataset, &host->error);
            if (rc < 0) break;
        }
        rc = failed = host->train->epoch(trainer, &epoch, &host->error);
        if (rc != GRAFT_OK && job->goes_on && host->train->epoch(trainer, &epoch, &host->error) == rc) rc = GRAFT_OK;
        if (failed != GRAFT_OK) break;
        if (i < EPOCHS) o->loss[i] = epoch.loss;
    }
    counts = 0;
    if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
    if (rc == GRAFT_OK) rc = host->report->traffic(trainer, -1, &traffic, &host->error);
    o->accuracy = metrics.test_accuracy;
    o->stale = traffic.staleness_max;
    return rc == GRAFT_OK ? failed : rc;
}

static int32_t adapt_body(struct host *host)
{
    struct job         *job = host->all->arg;
    struct host_trainer t;
    int32_t             rc;

    host->transport.send = train_adapt_counted_send;
    rc = host_trainer_create(host, job->set, job->way, &t);
    if (rc == GRAFT_OK) rc = train_adapt_train(host, &t);
    host_trainer_destroy(host, &t);
    return rc;
}

/* Run a body with options separated by blanks, of which the last ones count. The return value is NULL or an error in
 * words. */
static const char *train_adapt_play(int32_t n_ranks, const char *settings, int32_t (*what)(struct host *), void *arg)
{
    static struct hosts hosts;
    static char         text[600], kept[700];
    const char         *at[HOST_SETTINGS];
    int                 count = 0;

    snprintf(text, sizeof text, "threads=1 halo.timeout=60 eval_every=0 %s", settings);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL && count + 1 < HOST_SETTINGS;)
        at[count++] = word;
    at[count] = NULL;
    if (!hosts_run(&hosts, n_ranks, at, what, arg)) return hosts.error.message;
    for (int32_t i = 0; i < n_ranks; i++)
        if (hosts.at[i].rc != hosts.at[0].rc || strcmp(hosts.at[i].error.message, hosts.at[0].error.message) != 0)
            return "ranks say different things";
    snprintf(kept, sizeof kept, "%s", hosts.at[0].error.message);
    return hosts.at[0].rc == GRAFT_OK ? NULL : kept;
}

/* Train. The return value is NULL or an error in words. */
static const char *adapt_run(struct job *job, int32_t n_ranks, const char *first, const char *more)
{
    char        settings[512];
    const char *words;

    snprintf(settings, sizeof settings, "epochs=%d %s %s", job->epochs, first, more);
    memset(job->at, 0, sizeof job->at);
    atomic_store(&sent, 0);
    words = train_adapt_play(n_ranks, settings, adapt_body, job);
    job->sent = atomic_load(&sent);
    for (int32_t i = 0; i < n_ranks; i++)
        if (memcmp(&job->at[i], &job->at[0], sizeof job->at[0]) != 0) return "ranks come to different things";
    return words;
}

/* Find the send function of the transport of threads, which is the same for all ranks. */
static void find_send(void)
{
    const graft_api           *api;
    const graft_transport_api *transports;
    graft_transport            transport = GRAFT_INIT(graft_transport);
    graft_error                error = GRAFT_INIT(graft_error);

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) exit(2);
    transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    if (transports->threads(api->context, 1, &transport, &error) < 0) exit(2);
    inner_send = transport.send;
    transport.close(transport.self);
    api->close(api->context);
}

/* -- tests -------------------------------------------------------------------------------------------------------- */

/* A budget that is never reached must give 8 bits everywhere. */
static void test_same(struct job *job, const char *model, int32_t n_ranks, const char *more)
{
    struct outcome eight;
    char           adaptive[300], plain[300];
    const char    *words;

    snprintf(adaptive, sizeof adaptive, "model=%s layers=3 hidden=16 halo.codec=adaptive", model);
    snprintf(plain, sizeof plain, "model=%s layers=3 hidden=16 halo.codec=q8", model);
    job->epochs = EPOCHS;
    words = adapt_run(job, n_ranks, plain, more);
    eight = job->at[0];
    if (words == NULL) {
        snprintf(plain, sizeof plain, "halo.budget=bytes:1000000000:3 %s", more);
        words = adapt_run(job, n_ranks, adaptive, plain);
    }
    ok(words == NULL && memcmp(&eight, &job->at[0], sizeof eight) == 0 && job->at[0].loss[EPOCHS - 1] > 0,
       "%s on %d ranks, slices %s, %s: in any number of bytes as with 8 bits, a loss of %.4f%s%s", model, n_ranks,
       slices_name[job->way], more, job->at[0].loss[EPOCHS - 1], words != NULL ? ": " : "", words != NULL ? words : "");
}

/* The statistics from which widths are chosen must survive updates between epochs. */
static void test_updated(struct job *job, const char *model, int32_t n_ranks)
{
    struct outcome without;
    char           settings[300];
    const char    *words;

    snprintf(settings, sizeof settings, "model=%s layers=3 hidden=16 halo.codec=adaptive halo.budget=error:0.02:3",
             model);
    job->epochs = EPOCHS;
    words = adapt_run(job, n_ranks, settings, "partition=hash");
    without = job->at[0];
    job->updates = 1;
    if (words == NULL) words = adapt_run(job, n_ranks, settings, "partition=hash");
    job->updates = 0;
    ok(words == NULL && memcmp(&without, &job->at[0], sizeof without) == 0,
       "%s on %d ranks: the same widths with an update of the same features before each epoch%s%s", model, n_ranks,
       words != NULL ? ": " : "", words != NULL ? words : "");
}

/* With a part of the bytes the loss must be nearly the same. */
static void test_less(struct job *job, const char *model, int32_t n_ranks, const char *more)
{
    char        first[300], limited[400];
    double      loss;
    int64_t     many;
    const char *words;

    snprintf(first, sizeof first, "model=%s layers=3 hidden=16 dropout=0 optimizer=sgd lr=0.05", model);
    snprintf(limited, sizeof limited, "halo.codec=q8 %s", more);
    job->epochs = EPOCHS;
    words = adapt_run(job, n_ranks, first, limited);
    many = job->sent;
    loss = job->at[0].loss[EPOCHS - 1];
    snprintf(limited, sizeof limited, "halo.codec=adaptive halo.budget=bytes:%lld:3 %s", (long long)(many / 2), more);
    if (words == NULL) words = adapt_run(job, n_ranks, first, limited);
    ok(words == NULL && job->sent <= many / 2 && job->sent > many * 4 / 10 &&
           fabs(job->at[0].loss[EPOCHS - 1] / loss - 1) < 0.05,
       "%s on %d ranks, %s: half of %lld bytes may be sent in an epoch, and %lld are: a loss of %.4f after %.4f%s%s",
       model, n_ranks, more, (long long)many, (long long)job->sent, job->at[0].loss[EPOCHS - 1], loss,
       words != NULL ? ": " : "", words != NULL ? words : "");
}

static void test_train_adapt_refused(struct job *job)
{
    static const char *const cases[][2] = {
        { "halo.codec=adaptive halo.budget=bytes:5", "with 2 bits everywhere it is" },
        { "halo.codec=adaptive halo.budget=error:1e-9", "with 8 bits everywhere it is" },
    };
    static const char *const models[] = { "model=sage", "model=gat heads=2" };

    job->epochs = EPOCHS;
    job->goes_on = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int m = 0; m < 2; m++) {
            const char *words = adapt_run(job, 3, models[m], cases[i][0]);

            ok(words != NULL && strstr(words, cases[i][1]) != NULL && job->at[0].accuracy > 0, "%s, %s: %s", models[m],
               cases[i][0], words != NULL ? words : "nothing");
        }
    job->goes_on = 0;
}

/* Models that take maxima over neighbours must learn nearly the same from rows and gradients of 8 bits: losses fall as
 * with 32 bits. */
static void test_largest_quantized(struct job *job, int32_t n_ranks, const char *more)
{
    struct outcome exact;
    char           settings[300];
    const char    *words;
    double         apart = 0;

    snprintf(settings, sizeof settings,
             "model=sage aggregator=max layers=3 hidden=16 optimizer=sgd lr=0.3 dropout=0 reuse_input=no "
             "partition=hash %s",
             more);
    words = adapt_run(job, n_ranks, settings, "halo.codec=f32");
    exact = job->at[0];
    if (words == NULL) words = adapt_run(job, n_ranks, settings, "halo.codec=q8");
    for (int i = 0; i < EPOCHS; i++)
        apart = fmax(apart, fabs(job->at[0].loss[i] - exact.loss[i]) / (exact.loss[0] - exact.loss[EPOCHS - 1]));
    ok(words == NULL && exact.loss[0] > exact.loss[EPOCHS - 1] && apart > 0 && apart < 0.003,
       "maxima on %d ranks, %s: a loss falls from %.3f to %.3f, and with 8 bits is off by %.2g of that%s%s", n_ranks,
       more, exact.loss[0], exact.loss[EPOCHS - 1], apart, words != NULL ? ": " : "", words != NULL ? words : "");
}

/* -- evaluation --------------------------------------------------------------------------------------------------- */

enum { N = 300 };

/* Trainers with the same weights: one whose training is quantized, and one with 32 bits. */
enum { USUAL, EXACT, TRAINERS };

struct views {
    const graft_dataset *set;
    const char          *bits; /* option halo.codec and its value */
    float                logits[TRAINERS][N * CLASSES];
    double               loss[TRAINERS];
};

static int32_t train_adapt_look(struct host *host, graft_trainer *trainer, const struct host_slice *s, int number)
{
    struct views     *views = host->all->arg;
    float            *rows = views->logits[number] + s->first * CLASSES;
    const graft_dense logits = { sizeof logits, GRAFT_F32, s->end - s->first, CLASSES, CLASSES, rows };
    graft_metrics     metrics = output_metrics();
    int32_t           rc;

    output_clear_rows(&logits);
    rc = host->train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &host->error);
    if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
    if (host->rank == 0) views->loss[number] = metrics.test_loss;
    return rc;
}

static int32_t views_body(struct host *host)
{
    const struct views    *views = host->all->arg;
    const graft_model_api *models = host->api->get_interface(host->api->context, GRAFT_MODEL_ID);
    graft_graph           *graph = NULL;
    graft_model           *state = NULL;
    struct host_slice      s;
    int32_t                rc;

    host_slice_init(&s, views->set, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    for (int i = 0; i < TRAINERS && rc == GRAFT_OK; i++) {
        graft_trainer *trainer = NULL;

        host_set(host->api, i == EXACT ? "halo.codec=f32" : views->bits);
        rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
        for (int e = 0; i == USUAL && e < EPOCHS && rc == GRAFT_OK; e++) {
            graft_epoch epoch = output_epoch();

            rc = host->train->epoch(trainer, &epoch, &host->error);
        }
        if (rc == GRAFT_OK && i == USUAL) rc = models->create(trainer, GRAFT_MODEL_STATE, &state, &host->error);
        if (rc == GRAFT_OK && i > USUAL) rc = models->apply(state, trainer, &host->error);
        if (rc == GRAFT_OK) rc = train_adapt_look(host, trainer, &s, i);
        host->train->destroy(trainer);
    }
    models->destroy(state);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

/* The distance of the logits from those with 32 bits, relative to the norm of the latter. */
static double train_adapt_apart(const struct views *views, int number)
{
    double off = 0, length = 0;

    for (int i = 0; i < N * CLASSES; i++) {
        const double exact = (double)views->logits[EXACT][i];

        off += pow((double)views->logits[number][i] - exact, 2);
        length += exact * exact;
    }
    return sqrt(off / length);
}

/* Training steps are quantized, but predictions and evaluations are not. */
static void test_views(const graft_dataset *set, const char *model, int32_t n_ranks, const char *bits)
{
    struct views *views = calloc(1, sizeof *views);
    char          settings[200];
    const char   *words;

    views->set = set;
    views->bits = bits;
    snprintf(settings, sizeof settings, "model=%s layers=3 hidden=16 epochs=%d partition=hash", model, EPOCHS);
    words = train_adapt_play(n_ranks, settings, views_body, views);
    ok(words == NULL && train_adapt_apart(views, USUAL) < 1e-5 &&
           fabs(views->loss[USUAL] / views->loss[EXACT] - 1) < 1e-5,
       "%s on %d ranks, %s: logits are %.2g off those of 32 bits%s%s", model, n_ranks, bits,
       train_adapt_apart(views, USUAL), words != NULL ? ": " : "", words != NULL ? words : "");
    free(views);
}

/* The mean test accuracy over a few seeds. */
static double mean_of(struct job *job, const char *more, const char **words)
{
    enum { SEEDS = 3 };
    double sum = 0;

    for (int seed = 0; seed < SEEDS && *words == NULL; seed++) {
        char settings[200];

        snprintf(settings, sizeof settings, "seed=%d %s", seed, more);
        *words = adapt_run(job, 4,
                           "model=gcn layers=2 hidden=16 lr=0.01 weight_decay=5e-4:first norm=none "
                           "dropout=0.5 input_dropout=0.5 normalize_features=yes symmetrize=yes partition=hash",
                           settings);
        sum += job->at[0].accuracy / SEEDS;
    }
    return sum;
}

static void test_cora(void)
{
    const char           *base = getenv("GRAFT_TEST_DATA"), *words = NULL;
    const graft_api      *api;
    const graft_data_api *data;
    graft_data           *cora = NULL;
    graft_error           error = GRAFT_INIT(graft_error);
    struct job            job = { .epochs = 100 };
    double                eight, adaptive;
    char                  path[PATH_MAX];

    snprintf(path, sizeof path, "%s/cora", base != NULL ? base : "");
    if (base == NULL || access(path, F_OK) != 0) {
        skip(1, "Cora: GRAFT_TEST_DATA names no folder that has it");
        return;
    }
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) exit(2);
    data = graft_interface(api, GRAFT_DATA_ID, sizeof *data);
    if (data->open(api->context, path, &cora, &error) < 0) exit(2);
    job.set = data->view(cora);
    eight = mean_of(&job, "halo.codec=q8", &words);
    adaptive = mean_of(&job, "halo.codec=adaptive", &words);
    ok(words == NULL && eight > 0.78 && fabs(adaptive - eight) < 0.015,
       "Cora on 4 ranks, 3 seeds: %.2f %% with adaptive bits, %.2f %% with 8%s%s", 100 * adaptive, 100 * eight,
       words != NULL ? ": " : "", words != NULL ? words : "");
    data->close(cora);
    api->close(api->context);
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat" };
    static const char *const ways[] = {
        "seed=3",
        "halo.staleness=1",
        "halo.staleness=1:2 partition=hash",
        "label_rate=0.5 partition=hash",
        "recompute=yes reuse_input=no partition=hash",
    };
    static const int32_t  ranks[] = { 1, 2, 3, 4, 7 };
    struct sample_dataset set;
    struct sample         sample = { 31 };
    struct job            job = { .epochs = EPOCHS };

    alarm(300);
    find_send();
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    job.set = &set.dataset;
    for (int m = 0; m < 4; m++)
        for (int r = 0; r < 5; r++) {
            job.way = (enum slices)((m + r) % SLICES);
            test_same(&job, models[m], ranks[r], ways[(m + r) % 5]);
        }
    job.way = SLICES_EVEN;
    for (int m = 0; m < 4; m++) test_updated(&job, models[m], 2 + m);
    for (int m = 0; m < 4; m++) {
        test_less(&job, models[m], 2 + m, "partition=hash");
        test_less(&job, models[m], 4, "partition=hash halo.staleness=1");
        test_less(&job, models[m], 3, "partition=hash recompute=yes reuse_input=no row_masks=no");
    }
    for (int r = 2; r < 5; r++) test_largest_quantized(&job, r, r % 2 ? "halo.staleness=1" : "norm=none");
    test_train_adapt_refused(&job);
    for (int m = 0; m < 4; m++) {
        test_views(&set.dataset, models[m], 2 + m, "halo.codec=q2");
        test_views(&set.dataset, models[m], 5 - m, "halo.codec=adaptive");
    }
    sample_dataset_fini(&set);
    test_cora();
    return done();
}
