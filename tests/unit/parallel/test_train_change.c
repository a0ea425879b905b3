/* Checks message options that change between epochs. A trainer that changes them must go on, in results, bytes and
 * memory, exactly like one that is made with them and given the same state. A change that fails, or that ranks disagree
 * on, must leave the messages as they are. Plans of hosts keep the options that they were made with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_aggregate.h"
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 90, FEATURES = 6, CLASSES = 3, FIRST = 3, REST = 3, ALLOCATIONS_MOST = 600 };

struct change {
    const char *before, *after;
};

/* Each set of options sets everything that another one changes. */
#define FLOATS "halo.codec=f32 halo.staleness=0 halo.rounding=auto halo.nonfinite=send halo.budget=balance:0.5"

static const struct change changes[] = {
    { FLOATS, "halo.codec=q4" },
    { "halo.codec=q4", FLOATS },
    { FLOATS " halo.codec=q2/q8", "halo.codec=q1" },
    { FLOATS " halo.codec=bf16", "halo.codec=adaptive halo.budget=bytes:6000" },
    { "halo.codec=adaptive", "halo.codec=q2" },
    { FLOATS, "halo.staleness=1" },
    { "halo.codec=f32 halo.staleness=1", "halo.staleness=0" },
    { FLOATS " halo.staleness=1 halo.codec=q8", "halo.codec=q4/adaptive" },
    { FLOATS " halo.codec=q4", "halo.rounding=stochastic halo.nonfinite=refuse" },
    { FLOATS, "halo.codec=q4 halo.staleness=1:0:0.5" },
};

/* Changes for ranks that share columns. */
static const struct change shared[] = { { "halo.codec=f32", "halo.codec=q4" },
                                        { "halo.codec=q4", "halo.codec=f32" },
                                        { "halo.codec=q2/q8", "halo.codec=q1" },
                                        { FLOATS, "halo.codec=q4 halo.staleness=1:0:0.5" },
                                        { "halo.staleness=1", "halo.staleness=0" } };

struct job {
    const struct sample_dataset *set;
    const struct change         *change;
    int64_t                      fail_at; /* number of the allocation of rank 1 that fails */
    /* Numbers of changes that ran out of memory, of changes that ended the communicator, and of all other changes. */
    int32_t                      failed[3];
};

/* A graph, and a trainer on it. */
struct session {
    struct host           *host;
    const graft_model_api *models;
    struct host_trainer    t;
};

static int32_t change_blame(struct host *host, const char *words)
{
    host->error.code = GRAFT_ERR_FORMAT;
    snprintf(host->error.message, sizeof host->error.message, "%.400s", words);
    return GRAFT_ERR_FORMAT;
}

static int32_t change_epochs(struct session *s, int32_t count)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int32_t i = 0; i < count && rc == GRAFT_OK; i++)
        rc = s->host->train->epoch(s->t.trainer, &epoch, &s->host->error);
    return rc;
}

static int32_t session_begin(struct session *s, struct host *host)
{
    const struct job *job = host->all->arg;

    *s = (struct session){ .host = host, .models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *s->models) };
    return host_trainer_create(host, &job->set->dataset, SLICES_EVEN, &s->t);
}

static void session_end(struct session *s)
{
    host_trainer_destroy(s->host, &s->t);
}

/* Replace the trainer by a new one with this state. */
static int32_t session_anew(struct session *s, graft_model *state)
{
    int32_t rc;

    s->host->train->destroy(s->t.trainer);
    s->t.trainer = NULL;
    rc = s->host->train->create(s->host->api->context, &s->t.slice.dataset, &s->t.trainer, &s->host->error);
    return rc < 0 ? rc : s->models->apply(state, s->t.trainer, &s->host->error);
}

/* The state of a trainer after some epochs. */
struct result {
    graft_model  *state;
    graft_traffic traffic;
    int64_t       messages; /* bytes of messages */
};

static int32_t result_take(struct session *s, struct result *result)
{
    struct host *const host = s->host;
    graft_memory_item  item = GRAFT_INIT(graft_memory_item);
    int32_t            rc = s->models->create(s->t.trainer, GRAFT_MODEL_STATE, &result->state, &host->error);

    result->traffic = GRAFT_INIT(graft_traffic);
    if (rc == GRAFT_OK) rc = host->report->traffic(s->t.trainer, -1, &result->traffic, &host->error);
    for (int32_t i = 0; host->report->memory_item(s->t.trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, "messages") == 0) result->messages = item.bytes;
    return rc;
}

static int same_model(const graft_model_api *models, graft_model *a, graft_model *b)
{
    graft_state_item left = GRAFT_INIT(graft_state_item), right = left;
    int32_t          i;

    for (i = 0; models->item(a, i, &left, NULL) == GRAFT_OK; i++) {
        const int64_t count = left.shape[0] * (left.n_dims == 2 ? left.shape[1] : 1);

        if (models->item(b, i, &right, NULL) != GRAFT_OK) return 0;
        if (memcmp(left.data, right.data, (size_t)count * (left.dtype == GRAFT_F32 ? 4 : 8)) != 0) return 0;
    }
    return i > 0;
}

/* Train on in this trainer, and in a new one from the same state, and compare them bitwise. */
static int32_t compare_with_anew(struct session *s, graft_model *from)
{
    struct result changed = { .state = NULL }, anew = { .state = NULL };
    int32_t       rc = change_epochs(s, REST);

    if (rc == GRAFT_OK) rc = result_take(s, &changed);
    if (rc == GRAFT_OK) rc = session_anew(s, from);
    if (rc == GRAFT_OK) rc = change_epochs(s, REST);
    if (rc == GRAFT_OK) rc = result_take(s, &anew);
    if (rc == GRAFT_OK && !same_model(s->models, changed.state, anew.state))
        rc = change_blame(s->host, "it has other bits than a new trainer");
    if (rc == GRAFT_OK && changed.traffic.halo_bytes_per_epoch != anew.traffic.halo_bytes_per_epoch)
        rc = change_blame(s->host, "it sends other bytes than a new trainer");
    if (rc == GRAFT_OK && changed.messages != anew.messages) rc = change_blame(s->host, "it has other memory");
    s->models->destroy(changed.state);
    s->models->destroy(anew.state);
    return rc;
}

/* Train FIRST epochs with some options, and REST epochs with others. */
static int32_t change_body(struct host *host)
{
    const struct job *job = host->all->arg;
    struct session    s;
    graft_model      *middle = NULL;
    int32_t           rc;

    host_set_all(host->api, job->change->before);
    rc = session_begin(&s, host);
    if (rc == GRAFT_OK) rc = change_epochs(&s, FIRST);
    if (rc == GRAFT_OK) rc = s.models->create(s.t.trainer, GRAFT_MODEL_STATE, &middle, &host->error);
    if (rc == GRAFT_OK) host_set_all(host->api, job->change->after);
    if (rc == GRAFT_OK) rc = compare_with_anew(&s, middle);
    s.models->destroy(middle);
    session_end(&s);
    return rc;
}

/* The next epochs must be synchronous as `expected` says, one character for each of three. */
static int32_t expect_synchronous(struct session *s, const char *settings, const char *expected)
{
    graft_epoch epoch = output_epoch();
    char        found[8] = "";
    int32_t     rc = GRAFT_OK;

    host_set_all(s->host->api, settings);
    for (size_t i = 0; i < strlen(expected) && rc == GRAFT_OK; i++) {
        rc = s->host->train->epoch(s->t.trainer, &epoch, &s->host->error);
        found[i] = epoch.synchronous ? 'w' : '-';
    }
    if (rc < 0 || strcmp(found, expected) == 0) return rc;
    snprintf(s->host->error.message, sizeof s->host->error.message, "after %s it waits '%s', expected '%s'", settings,
             found, expected);
    return GRAFT_ERR_FORMAT;
}

/* Check which epochs wait for fresh rows. Options that need no other messages must keep the stale rows. */
static int32_t waits_body(struct host *host)
{
    struct session s;
    graft_traffic  traffic = GRAFT_INIT(graft_traffic);
    int32_t        rc = session_begin(&s, host);

    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.staleness=0", "--");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.staleness=1", "w--");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.staleness=1:1", "ww");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.staleness=1:0:0.5", "--");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.codec=q4", "w-");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.codec=q4 lr=0.003", "--");
    if (rc == GRAFT_OK) rc = expect_synchronous(&s, "halo.staleness=0", "--");
    if (rc == GRAFT_OK) rc = host->report->traffic(s.t.trainer, -1, &traffic, &host->error);
    if (rc == GRAFT_OK && traffic.staleness_max != 1) rc = change_blame(host, "the largest staleness is forgotten");
    if (rc == GRAFT_OK && traffic.epochs_synchronous != 4) rc = change_blame(host, "synchronous epochs are forgotten");
    session_end(&s);
    return rc;
}

/* Ranks with different options must get one error, and go on when they agree. */
static int32_t disagree_body(struct host *host)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_epoch    epoch = output_epoch();
    struct session s;
    int32_t        rc = session_begin(&s, host);

    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    host_set(host->api, host->rank == 1 ? "halo.codec=q4" : "halo.codec=q2");
    if (rc == GRAFT_OK && (host->train->epoch(s.t.trainer, &epoch, &error) != GRAFT_ERR_ARG ||
                           strstr(error.message, "halo.codec") == NULL))
        rc = change_blame(host, "codecs that differ are no such error");
    host_set(host->api, "halo.codec=q2");
    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    session_end(&s);
    return rc;
}

/* One allocation of a change fails on one rank. Unless it was one of the transport, which ends the communicator,
 * training continues as if the change had not been attempted. */
static int32_t no_memory_body(struct host *host)
{
    struct job    *job = host->all->arg;
    struct session s;
    struct result  tried = { .state = NULL }, plain = { .state = NULL };
    graft_model   *middle = NULL;
    graft_error    error = GRAFT_INIT(graft_error);
    graft_epoch    epoch = output_epoch();
    int32_t        rc, failed = GRAFT_OK;

    host_set_all(host->api, job->change->before);
    rc = session_begin(&s, host);
    if (rc == GRAFT_OK) rc = change_epochs(&s, FIRST);
    if (rc == GRAFT_OK) rc = s.models->create(s.t.trainer, GRAFT_MODEL_STATE, &middle, &host->error);
    host_set_all(host->api, job->change->after);
    if (host->rank == 1) atomic_store(&host->fail_at, job->fail_at);
    if (rc == GRAFT_OK) failed = host->train->epoch(s.t.trainer, &epoch, &error);
    atomic_store(&host->fail_at, -1);
    if (host->rank == 1) job->failed[failed == GRAFT_ERR_NOMEM ? 0 : failed == GRAFT_ERR_PEER ? 1 : 2]++;
    if (rc == GRAFT_OK && failed == GRAFT_ERR_NOMEM) {
        host_set_all(host->api, job->change->before);
        rc = change_epochs(&s, 1);
        if (rc == GRAFT_OK) rc = result_take(&s, &tried);
        if (rc == GRAFT_OK) rc = session_anew(&s, middle);
        if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
        if (rc == GRAFT_OK) rc = result_take(&s, &plain);
        if (rc == GRAFT_OK && !same_model(s.models, tried.state, plain.state))
            rc = change_blame(host, "a change that failed left something");
        if (rc == GRAFT_OK && tried.messages != plain.messages)
            rc = change_blame(host, "a change that failed left memory");
    } else if (rc == GRAFT_OK && failed != GRAFT_OK && failed != GRAFT_ERR_PEER) {
        rc = change_blame(host, error.message);
    }
    s.models->destroy(middle);
    s.models->destroy(tried.state);
    s.models->destroy(plain.state);
    session_end(&s);
    return rc;
}

/* A memory limit does not allow stale rows on one rank. */
static int32_t limit_body(struct host *host)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_epoch    epoch = output_epoch();
    char           setting[64];
    struct session s;
    int32_t        rc = GRAFT_ERR_NOMEM;

    for (int32_t limit = 2; rc == GRAFT_ERR_NOMEM && limit < 100; limit++) {
        if (limit > 2) session_end(&s);
        snprintf(setting, sizeof setting, "memory.limit=%d", host->rank == 1 ? limit : 1000);
        host_set(host->api, setting);
        rc = session_begin(&s, host);
    }
    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    host_set(host->api, "halo.staleness=1");
    if (rc == GRAFT_OK && (host->train->epoch(s.t.trainer, &epoch, &error) != GRAFT_ERR_NOMEM || error.rank != 1 ||
                           strstr(error.message, "memory.limit") == NULL))
        rc = change_blame(host, "stale rows that exceed the budget are no such error");
    host_set(host->api, "halo.staleness=0");
    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    session_end(&s);
    return rc;
}

static int32_t plan_pass(struct host *host, const graft_aggregate_api *plans, graft_plan *plan, const graft_dense *x,
                         const graft_dense *out)
{
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    args.semiring = GRAFT_PLUS_TIMES;
    args.x = x;
    args.out = out;
    rc = plans->begin(plan, &args, &host->error);
    return rc < 0 ? rc : plans->end(plan, &host->error);
}

/* The plan of a host keeps its codec. */
static int32_t own_plan_body(struct host *host)
{
    const graft_aggregate_api *plans = graft_interface(host->api, GRAFT_AGGREGATE_ID, sizeof *plans);
    graft_graph_info           info = GRAFT_INIT(graft_graph_info);
    graft_plan                *plan = NULL;
    float                      rows[3][N];
    graft_dense                x, out[2];
    struct session             s;
    int32_t                    rc = session_begin(&s, host);

    for (int i = 0; i < N; i++) rows[0][i] = (float)(i % 7) - 2.3f;
    if (rc == GRAFT_OK) rc = host->graphs->info(s.t.graph, host->rank, &info, &host->error);
    x = (graft_dense){ sizeof x, GRAFT_F32, info.n_owned, 1, 1, rows[0] };
    for (int i = 0; i < 2; i++) out[i] = (graft_dense){ sizeof x, GRAFT_F32, info.n_owned, 1, 1, rows[i + 1] };
    if (rc == GRAFT_OK) rc = plans->create(s.t.graph, NULL, &plan, &host->error);
    if (rc == GRAFT_OK) rc = plan_pass(host, plans, plan, &x, &out[0]);
    host_set_all(host->api, "halo.codec=q1:minmax halo.staleness=1");
    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    if (rc == GRAFT_OK) rc = plan_pass(host, plans, plan, &x, &out[1]);
    if (rc == GRAFT_OK && memcmp(rows[1], rows[2], (size_t)info.n_owned * 4) != 0)
        rc = change_blame(host, "a plan of the host changes");
    plans->destroy(plan);
    session_end(&s);
    return rc;
}

/* Rank 0 must warn exactly once about an option that was set and has no effect. */
static int32_t told_body(struct host *host)
{
    static const char idle[] =
        "option 'halo.budget' is error:0.1, which has no effect because option 'halo.codec' is f32 and "
        "not adaptive\n";
    struct session s;
    int32_t        rc = session_begin(&s, host);

    if (rc == GRAFT_OK) rc = change_epochs(&s, 1);
    host_set(host->api, "halo.budget=error:0.1");
    if (rc == GRAFT_OK) rc = change_epochs(&s, 2);
    if (rc == GRAFT_OK && strcmp(host->warnings, host->rank == 0 ? idle : "") != 0)
        rc = change_blame(host, host->warnings);
    session_end(&s);
    return rc;
}

static void change_run(struct job *job, int32_t n_ranks, int32_t (*body)(struct host *host), const char *settings,
                       const char *what)
{
    static struct hosts hosts;
    char                text[512], *rest = text;
    const char         *list[HOST_SETTINGS] = { "layers=3",       "hidden=8,5", "epochs=1000",    "dropout=0.2",
                                                "partition=hash", "threads=1",  "halo.timeout=60" };
    int                 n = 7;

    snprintf(text, sizeof text, "%s", settings);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL && n < HOST_SETTINGS - 1;) list[n++] = word;
    hosts_run(&hosts, n_ranks, list, body, job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%d ranks, %s: %s", n_ranks, settings, what);
}

static void test_no_memory(struct job *job, const char *settings, int32_t n_ranks)
{
    for (job->fail_at = 0; job->failed[2] == 0 && job->fail_at < ALLOCATIONS_MOST; job->fail_at += 3)
        change_run(job, n_ranks, no_memory_body, settings, "memory fails in a change");
    ok(job->failed[0] > 4 && job->failed[2] == 1, "%d changes had no memory, and %d ended the comm", job->failed[0],
       job->failed[1]);
    memset(job->failed, 0, sizeof job->failed);
}

static void test_changes(struct job *job, const char *settings, int32_t n_ranks)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char what[300];

        job->change = &changes[i];
        snprintf(what, sizeof what, "from %s to %s", changes[i].before, changes[i].after);
        change_run(job, n_ranks, change_body, settings, what);
    }
}

int main(void)
{
    struct sample         sample = { 8 };
    struct sample_dataset set, large;
    struct job            job = { .set = &set };

    alarm(200);
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_init(&large, &sample, 3000, 8, CLASSES, 0, 0);
    test_changes(&job, "model=sage", 2);
    test_changes(&job, "model=sage label_rate=0.3 recompute=yes", 3);
    test_changes(&job, "model=gcn reuse_input=no row_masks=no", 3);
    test_changes(&job, "model=gat hidden=8,4 heads=2", 3);
    test_changes(&job, "model=appnp propagation=3", 2);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        job.change = &shared[i];
        change_run(&job, 4, change_body, "model=sage parallel=grid", shared[i].after);
        change_run(&job, 3, change_body, "model=gin parallel=feature", shared[i].after);
        change_run(&job, 4, change_body, "model=sage parallel=grid aggregator=max", shared[i].after);
        change_run(&job, 3, change_body, "model=sage parallel=feature aggregator=min", shared[i].after);
    }
    change_run(&job, 2, waits_body, "model=sage", "which epochs wait");
    change_run(&job, 3, waits_body, "model=gat hidden=8,4 heads=2", "which epochs wait");
    change_run(&job, 3, waits_body, "model=sage parallel=feature", "which epochs wait");
    change_run(&job, 4, waits_body, "model=gcn parallel=grid", "which epochs wait");
    change_run(&job, 2, told_body, "model=sage", "an option without effect");
    change_run(&job, 3, disagree_body, "model=gin", "ranks that disagree");
    job.change = &(struct change){ FLOATS, "halo.codec=q4 halo.staleness=1" };
    test_no_memory(&job, "model=sage", 2);
    test_no_memory(&job, "model=sage parallel=feature", 2);
    job.change = &(struct change){ FLOATS, "halo.codec=adaptive" };
    test_no_memory(&job, "model=gat hidden=8,4 heads=2", 3);
    change_run(&job, 2, own_plan_body, "model=sage", "plans of the host");
    job.set = &large;
    change_run(&job, 2, limit_body, "model=sage hidden=64", "a budget without a place for stale rows");
    change_run(&job, 3, limit_body, "model=gcn hidden=64 parallel=feature", "a budget without a place for stale rows");
    sample_dataset_fini(&set);
    sample_dataset_fini(&large);
    return done();
}
