/* Checks api->cancel() at random moments of create() and epoch(), in one process and over ranks: test_cancel
 * PARTITIONER. All ranks must return the same status, nothing may leak, and training must go on to the weights that it
 * has without a request.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 3000, FEATURES = 40, CLASSES = 5, EPOCHS = 6, CREATES = 8, TRIES_MOST = 60 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* What every rank of a run knows, and what each has seen. */
struct cancel_job {
    const graft_dataset *data;
    int                  serial;
    int32_t              who; /* the rank that cancels */
    double               create_seconds, epoch_seconds;
    _Atomic int32_t      cancelled;             /* calls that returned ERR_CANCELLED on rank 0 */
    double               latency;               /* longest time from a request to the return */
    char                 told[HOSTS_MOST][448]; /* messages of the last cancelled call */
    int32_t              rank[HOSTS_MOST];
};

/* A request that another thread makes later. */
struct request_later {
    const graft_api *api;
    double           delay, at;
    int              is_made; /* 0 if this rank makes none */
    pthread_t        thread;
};

static double cancel_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *cancel_later(void *arg)
{
    struct request_later *r = arg;
    const struct timespec rest = { (time_t)r->delay, (long)(1e9 * (r->delay - (double)(time_t)r->delay)) };

    nanosleep(&rest, NULL);
    r->at = cancel_clock();
    r->api->cancel(r->api->context);
    return NULL;
}

/* Start the thread. A negative delay means no request. */
static void request_begin(struct host *host, struct request_later *r, double delay)
{
    const struct cancel_job *job = host->all->arg;

    *r = (struct request_later){ .api = host->api, .delay = delay, .is_made = host->rank == job->who && delay >= 0 };
    if (r->is_made && pthread_create(&r->thread, NULL, cancel_later, r) != 0) abort();
}

/* After the call, keep its message if it was cancelled. */
static void request_end(struct host *host, struct request_later *r, int32_t rc)
{
    struct cancel_job *job = host->all->arg;
    const double       now = cancel_clock();

    if (r->is_made) pthread_join(r->thread, NULL);
    if (rc != GRAFT_ERR_CANCELLED) return;
    snprintf(job->told[host->rank], sizeof job->told[0], "%s", host->error.message);
    job->rank[host->rank] = host->error.rank;
    if (host->rank == 0) job->cancelled++;
    if (r->is_made && r->at < now && now - r->at > job->latency) job->latency = now - r->at;
}

static int32_t open_one(struct host *host, struct host_trainer *t)
{
    const struct cancel_job *job = host->all->arg;

    if (!job->serial) return host_trainer_create(host, job->data, SLICES_EVEN, t);
    memset(t, 0, sizeof *t);
    t->slice.dataset = *job->data;
    return host->train->create(host->api->context, job->data, &t->trainer, &host->error);
}

static void close_one(struct host *host, struct host_trainer *t)
{
    const struct cancel_job *job = host->all->arg;

    if (!job->serial) host_trainer_destroy(host, t);
    else host->train->destroy(t->trainer);
    memset(t, 0, sizeof *t);
}

static int32_t epochs_without(struct host *host, struct host_trainer *t)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    while (rc == GRAFT_OK && epoch.epoch < EPOCHS) rc = host->train->epoch(t->trainer, &epoch, &host->error);
    return rc;
}

/* Run until EPOCHS epochs are completed, each call with a request at a random time. */
static int32_t epochs_with(struct host *host, struct host_trainer *t, struct sample *sample)
{
    const struct cancel_job *job = host->all->arg;
    graft_epoch              epoch = output_epoch();
    int32_t                  rc = GRAFT_OK;

    for (int i = 0; epoch.epoch < EPOCHS; i++) {
        struct request_later r;
        const double         delay = sample_real(sample, 0, 1.3 * job->epoch_seconds);

        if (i >= TRIES_MOST) return epochs_without(host, t);
        request_begin(host, &r, i % 2 ? -1 : delay);
        rc = host->train->epoch(t->trainer, &epoch, &host->error);
        request_end(host, &r, rc);
        if (rc < 0 && rc != GRAFT_ERR_CANCELLED) return rc;
    }
    return GRAFT_OK;
}

static int32_t cancel_body(struct host *host)
{
    struct cancel_job  *job = host->all->arg;
    struct sample       sample = { 31 };
    struct host_trainer first = { .trainer = NULL }, t = { .trainer = NULL };
    double              begin = cancel_clock();
    int32_t             rc;

    TRY(open_one(host, &first));
    if (host->rank == 0) job->create_seconds = cancel_clock() - begin;
    begin = cancel_clock();
    TRY(epochs_without(host, &first));
    if (host->rank == 0) job->epoch_seconds = (cancel_clock() - begin) / EPOCHS;
    for (int i = 0; i < CREATES; i++) {
        struct request_later r;

        request_begin(host, &r, sample_real(&sample, 0, job->create_seconds));
        rc = open_one(host, &t);
        request_end(host, &r, rc);
        if (rc == GRAFT_ERR_CANCELLED && t.trainer != NULL) rc = host->error.code = GRAFT_ERR_FORMAT;
        close_one(host, &t);
        if (rc != GRAFT_ERR_CANCELLED) TRY(rc);
    }
    rc = open_one(host, &t); /* the next call notices a late request */
    if (rc == GRAFT_ERR_CANCELLED) {
        close_one(host, &t);
        rc = open_one(host, &t);
    }
    TRY(rc);
    TRY(epochs_with(host, &t, &sample));
    if (!host_same_state(host->train, first.trainer, t.trainer)) {
        snprintf(host->error.message, sizeof host->error.message, "cancelled epochs have left something");
        rc = host->error.code = GRAFT_ERR_FORMAT;
    }
done:
    close_one(host, &t);
    close_one(host, &first);
    return rc;
}

/* All ranks must have the same message, which names the rank that was asked. */
static int cancel_was_agreed(const struct cancel_job *job, int32_t n_ranks)
{
    int same = 1;

    for (int32_t p = 0; p < n_ranks; p++)
        same &= strcmp(job->told[p], job->told[0]) == 0 && job->rank[p] == (job->serial ? 0 : job->who);
    return same;
}

static void test_cancels(const graft_dataset *data, int32_t n_ranks, const char *const *settings)
{
    static struct hosts hosts;
    struct cancel_job   job = { .data = data, .serial = n_ranks == 0, .who = n_ranks > 1 ? 1 : 0 };
    const int32_t       n = n_ranks > 0 ? n_ranks : 1;

    hosts_run(&hosts, n, settings, cancel_body, &job);
    ok(hosts_fault(&hosts) == NULL && job.cancelled >= 2 && cancel_was_agreed(&job, n),
       "%d ranks: %d calls are cancelled, and the next calls succeed: %s", n_ranks, job.cancelled,
       hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : job.told[0]);
    diag("create() takes %.3f s, epoch() %.3f s; a request was heard after %.3f s at most", job.create_seconds,
         job.epoch_seconds, job.latency);
}

/* -- each epoch is cancelled once, over ranks that keep rows and counts from step to step -- */

struct repeat_job {
    const graft_dataset *data;
    const char          *more;             /* options */
    double               drift[2][EPOCHS]; /* drift in runs without and with requests */
    int32_t              synchronous[2][EPOCHS];
    int32_t              cancelled;
};

static int32_t repeat_epochs(struct host *host, struct host_trainer *t, struct repeat_job *job, int cancels)
{
    int32_t rc = GRAFT_OK;

    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        graft_epoch epoch = output_epoch();

        if (cancels && host->rank == 1) host->api->cancel(host->api->context);
        if (cancels && host->train->epoch(t->trainer, &epoch, &host->error) == GRAFT_ERR_CANCELLED && host->rank == 0)
            job->cancelled++;
        rc = host->train->epoch(t->trainer, &epoch, &host->error);
        if (host->rank > 0) continue;
        job->drift[cancels][i] = epoch.drift;
        job->synchronous[cancels][i] = epoch.synchronous;
    }
    return rc;
}

static int32_t repeat_body(struct host *host)
{
    struct repeat_job  *job = host->all->arg;
    struct host_trainer with = { .trainer = NULL }, without = { .trainer = NULL };
    int32_t             rc;

    host_set_all(host->api, job->more);
    TRY(host_trainer_create(host, job->data, SLICES_EVEN, &without));
    TRY(repeat_epochs(host, &without, job, 0));
    TRY(host_trainer_create(host, job->data, SLICES_EVEN, &with));
    TRY(repeat_epochs(host, &with, job, 1));
    if (!host_same_state(host->train, without.trainer, with.trainer)) {
        snprintf(host->error.message, sizeof host->error.message, "cancelled epochs have changed the weights");
        rc = host->error.code = GRAFT_ERR_FORMAT;
    }
done:
    host_trainer_destroy(host, &with);
    host_trainer_destroy(host, &without);
    return rc;
}

static void test_repeated(const graft_dataset *data, const char *more)
{
    static struct hosts hosts;
    const char *const   settings[] = { "model=sage", "layers=3",       "hidden=32", "epochs=100", "dropout=0.3",
                                       "threads=1",  "partition=hash", "lr=0.05",   NULL };
    struct repeat_job   job = { .data = data, .more = more };
    int                 same;

    hosts_run(&hosts, 3, settings, repeat_body, &job);
    same = memcmp(job.drift[0], job.drift[1], sizeof job.drift[0]) == 0 &&
           memcmp(job.synchronous[0], job.synchronous[1], sizeof job.synchronous[0]) == 0;
    ok(hosts_fault(&hosts) == NULL && same && job.cancelled == EPOCHS,
       "%s: %d epochs are cancelled, and the next epochs have the weights, drift and "
       "synchronous steps of a run without: %s",
       more, job.cancelled, hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "");
    for (int i = 0; i < EPOCHS; i++)
        diag("epoch %d: drift %.4f, %.4f%s", i + 1, job.drift[0][i], job.drift[1][i],
             job.synchronous[0][i] ? ", synchronous" : "");
}

/* Cancel create() of a graph whose partitioning program would never answer. */
static int32_t cancel_partition(struct host *host)
{
    struct request_later r;
    struct host_trainer  t = { .trainer = NULL };
    int32_t              rc;

    request_begin(host, &r, 0.3);
    rc = open_one(host, &t);
    request_end(host, &r, rc);
    close_one(host, &t);
    return rc;
}

static void test_cancelled_partition(const graft_dataset *data, const char *program, int32_t who)
{
    static struct hosts hosts;
    char                setting[512];
    const char *const   settings[] = { "partition=metis:0:60", setting, NULL };
    struct cancel_job   job = { .data = data, .who = who };
    int                 right = 1;

    snprintf(setting, sizeof setting, "partition.program=%s", program);
    setenv("GRAFT_TEST_BEHAVIOUR", "asleep", 1);
    hosts_run(&hosts, 3, settings, cancel_partition, &job);
    for (int32_t p = 0; p < 3; p++) right &= hosts.at[p].rc == GRAFT_ERR_CANCELLED && hosts.at[p].seconds < 10;
    ok(right && cancel_was_agreed(&job, 3) && hosts.error.code == 0,
       "rank %d cancels while METIS runs, and all ranks return that after %.2f s: %d %d %d, "
       "rank %d, %s",
       who, job.latency, hosts.at[0].rc, hosts.at[1].rc, hosts.at[2].rc, job.rank[0], hosts.at[0].error.message);
}

int main(int count, char **arguments)
{
    static const char *const settings[] = { "model=sage",  "layers=3",  "hidden=32",      "epochs=100",
                                            "dropout=0.3", "threads=1", "partition=hash", NULL };
    struct sample            sample = { 3 };
    struct sample_dataset    set;

    if (count != 2) return 2;
    alarm(600);
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    test_cancels(&set.dataset, 0, settings);
    test_cancels(&set.dataset, 1, settings);
    test_cancels(&set.dataset, 3, settings);
    test_repeated(&set.dataset, "halo.staleness=1:3");
    test_repeated(&set.dataset, "halo.codec=adaptive halo.budget=balance:0.5:2");
    test_repeated(&set.dataset, "halo.codec=adaptive halo.budget=balance:0.5:2 halo.staleness=1");
    test_cancelled_partition(&set.dataset, arguments[1], 0);
    test_cancelled_partition(&set.dataset, arguments[1], 2);
    sample_dataset_fini(&set);
    return done();
}
