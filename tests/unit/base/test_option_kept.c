/* Checks that an option which an object has read and keeps cannot be changed while the object exists: set() must return
 * ERR_STATE and leave the value. The library lists all options; which of them an object keeps follows from their
 * groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_aggregate.h"
#include "graft_halo.h"
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

enum { RANKS = 2, OPTIONS_MOST = 200 };
enum kind { SERIAL_TRAINER, TRAINER, GRAPH, PLAN, HALO, KINDS };

static const char *const kind_names[KINDS] = { "trainer", "trainer", "graph", "plan", "halo" };

#define GROUPS_OF_GRAPHS "partition, parallel, ranks"
#define GROUPS_OF_TRAINERS                                                                                             \
    "model, training, data set, memory and speed, sparse products, dense products, halo exchange, minibatches, library"

/* The groups of options that each kind of object reads. */
static const char *const kind_groups[KINDS] = { GROUPS_OF_TRAINERS, GROUPS_OF_TRAINERS, GROUPS_OF_GRAPHS,
                                                "halo exchange", "halo exchange" };

struct job {
    const struct sample_dataset *set;
    enum kind                    kind;
    char                         values[OPTIONS_MOST][2][32];
    int                          kept; /* number of options that were refused */
};

static int32_t kept_blame(struct host *host, const char *key, const char *what)
{
    host->error.code = GRAFT_ERR_FORMAT;
    snprintf(host->error.message, sizeof host->error.message, "%s: %.300s", key, what);
    return GRAFT_ERR_FORMAT;
}

/* An object of the kind, and the objects that it needs. */
struct objects {
    struct host_slice slice;
    graft_graph      *graph;
    graft_trainer    *trainer;
    graft_plan       *plan;
    graft_halo       *halo;
};

static int32_t objects_create(struct host *host, struct objects *o)
{
    const struct job          *job = host->all->arg;
    const graft_api           *api = host->api;
    const graft_halo_api      *halos = graft_interface(api, GRAFT_HALO_ID, sizeof *halos);
    const graft_aggregate_api *plans = graft_interface(api, GRAFT_AGGREGATE_ID, sizeof *plans);
    int32_t                    rc;

    *o = (struct objects){ .graph = NULL };
    if (job->kind == SERIAL_TRAINER)
        return host->train->create(api->context, &job->set->dataset, &o->trainer, &host->error);
    host_slice_init(&o->slice, &job->set->dataset, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(api->context, &host->transport, &o->slice.slice, &o->graph, &host->error);
    o->slice.dataset.over = o->graph;
    if (rc < 0) return rc;
    if (job->kind == TRAINER) rc = host->train->create(api->context, &o->slice.dataset, &o->trainer, &host->error);
    if (job->kind == PLAN) rc = plans->create(o->graph, NULL, &o->plan, &host->error);
    if (job->kind == HALO) rc = halos->create(o->graph, &o->halo, &host->error);
    return rc;
}

static void objects_destroy(struct host *host, struct objects *o)
{
    const graft_halo_api      *halos = graft_interface(host->api, GRAFT_HALO_ID, sizeof *halos);
    const graft_aggregate_api *plans = graft_interface(host->api, GRAFT_AGGREGATE_ID, sizeof *plans);

    plans->destroy(o->plan);
    halos->destroy(o->halo);
    host->train->destroy(o->trainer);
    host->graphs->destroy(o->graph);
    if (o->slice.row_ends != NULL) host_slice_fini(&o->slice);
}

/* Whether an object keeps the option. With a trainer, a plan or a halo its graph exists as well. */
static int is_kept(const struct job *job, const graft_option *option)
{
    const int has_graph = job->kind != SERIAL_TRAINER;

    if (option->live) return 0;
    if (strcmp(option->key, "seed") == 0) return job->kind != GRAPH;
    if (has_graph && strstr(GROUPS_OF_GRAPHS, option->group) != NULL) return 1;
    return strstr(kind_groups[job->kind], option->group) != NULL;
}

static const char *kept_by(const struct job *job, const graft_option *option)
{
    return strstr(GROUPS_OF_GRAPHS, option->group) != NULL ? "graph" : kind_names[job->kind];
}

/* Set an option to another value than that of the object, and back. */
static int32_t change_kept(struct host *host, const graft_option *option, const char (*values)[32])
{
    struct job  *job = host->all->arg;
    const int    other = strcmp(option->value, values[0]) == 0;
    char         expected[128], before[64], source[16];
    graft_option now = GRAFT_INIT(graft_option);
    graft_error  error = GRAFT_INIT(graft_error);
    int32_t      rc, index = 0;

    snprintf(before, sizeof before, "%s", option->value);
    snprintf(source, sizeof source, "%s", option->source);
    snprintf(expected, sizeof expected, "option '%s' is read when a %s is created", option->key, kept_by(job, option));
    rc = host->api->set(host->api->context, option->key, values[other], &error);
    if (rc != (is_kept(job, option) ? GRAFT_ERR_STATE : GRAFT_OK))
        return kept_blame(host, option->key, rc == GRAFT_OK ? "another value is taken" : error.message);
    if (rc == GRAFT_ERR_STATE) {
        if (strstr(error.message, expected) == NULL || strstr(error.message, before) == NULL)
            return kept_blame(host, option->key, error.message);
        while (host->api->option_info(host->api->context, index++, &now, &host->error) == GRAFT_OK)
            if (strcmp(now.key, option->key) == 0) break;
        if (strcmp(now.value, before) != 0 || strcmp(now.source, source) != 0)
            return kept_blame(host, option->key, "the refused value stays");
        if (host->rank == 0) job->kept++;
    }
    rc = host->api->set(host->api->context, option->key, before, &error);
    return rc < 0 ? kept_blame(host, option->key, error.message) : GRAFT_OK;
}

static int32_t change_all(struct host *host)
{
    struct job    *job = host->all->arg;
    graft_option   option = GRAFT_INIT(graft_option);
    struct objects o;
    int32_t        rc = objects_create(host, &o);

    for (int32_t i = 0; rc == GRAFT_OK && host->api->option_info(host->api->context, i, &option, NULL) == GRAFT_OK; i++)
        rc = change_kept(host, &option, job->values[i]);
    objects_destroy(host, &o);
    /* No object keeps them any more. */
    for (int32_t i = 0; rc == GRAFT_OK && host->api->option_info(host->api->context, i, &option, NULL) == GRAFT_OK; i++)
        rc = host->api->set(host->api->context, option.key, job->values[i][0], &host->error);
    return rc;
}

/* Find two values of each option. */
static int32_t list_values(struct host *host)
{
    struct job  *job = host->all->arg;
    graft_option option = GRAFT_INIT(graft_option);

    for (int32_t i = 0; host->api->option_info(host->api->context, i, &option, NULL) == GRAFT_OK; i++)
        if (i >= OPTIONS_MOST || !host_option_values(host->api, &option, job->values[i]))
            return kept_blame(host, option.key, "two values are not found");
    return GRAFT_OK;
}

/* Set values that are written in another way but mean the same, which must be accepted. */
static int32_t set_the_same(struct host *host)
{
    struct objects o;
    int32_t        rc = objects_create(host, &o);

    if (rc == GRAFT_OK) rc = host->api->set(host->api->context, "hidden", "0128", &host->error);
    if (rc == GRAFT_OK) rc = host->api->set(host->api->context, "dropout", "5e-1", &host->error);
    if (rc == GRAFT_OK) rc = host->api->set(host->api->context, "dense.module", "auto", &host->error);
    if (rc == GRAFT_OK && host->api->set(host->api->context, "hidden", "0", &host->error) != GRAFT_ERR_OPTION)
        rc = kept_blame(host, "hidden", "an illegal value is no ERR_OPTION");
    objects_destroy(host, &o);
    return rc;
}

static void kept_run(struct job *job, int32_t (*body)(struct host *host), const char *what)
{
    static const char *const settings[] = { "threads=1", "layers=2", NULL };
    static struct hosts      hosts;
    const int                alone = job->kind == SERIAL_TRAINER;

    job->kept = 0;
    hosts_run(&hosts, alone ? 1 : RANKS, settings, body, job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s, %d ranks: %s", kind_names[job->kind],
          alone ? 1 : RANKS, what);
}

int main(void)
{
    struct sample         sample = { 5 };
    struct sample_dataset set;
    struct job            job = { .set = &set, .kind = SERIAL_TRAINER };
    int                   kept = 0;

    alarm(100);
    sample_dataset_init(&set, &sample, 30, 5, 3, 0, 0);
    kept_run(&job, list_values, "each option has two values");
    for (int kind = 0; kind < KINDS; kind++) {
        job.kind = (enum kind)kind;
        kept_run(&job, change_all, "options that it keeps cannot be set, and the others can");
        kept += job.kept;
    }
    ok(kept > 60, "%d illegal values of options were refused", kept);
    job.kind = SERIAL_TRAINER;
    kept_run(&job, set_the_same, "a value that means the same can be set");
    sample_dataset_fini(&set);
    return done();
}
