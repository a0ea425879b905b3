/* Checks each job of harness/jobs.h over a transport with one fault, with ranks that are threads. The fault strikes at
 * TRIES of the sends and receives of a rank, evenly spread over all of them; a fault that ranks wait for strikes at
 * SLOW of them. Either all ranks return the same error before the deadline, or all have the results of a run without a
 * fault. "test_jobs_faults PARTITIONER [TRIES SLOW [JOB]]"; with 1000000 tries there is one at each send and receive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_files.h"
#include "graft_load.h"
#include "harness/fault_runs.h"
#include "harness/jobs.h"
#include "harness/tap.h"

enum { RANKS = 3 };

/* The job that is played; it has many runs at once. */
static const struct job *playing;
static struct job_input  input;
static uint64_t          well[RANKS];
static int               is_well; /* the run without a fault, which has the right results */

static int others_failed(void *arg, int32_t rc)
{
    return run_goes_on(arg, rc);
}

static int32_t jobs_faults_body(struct rank *r)
{
    struct run    *faults = r->all->arg;
    graft_host     host = ranks_host(r->all);
    struct job_run run = { .in = &input, .others_failed = others_failed, .arg = r };
    char           tag[32];
    int32_t        rc;

    snprintf(tag, sizeof tag, "%p", (void *)r->all);
    faults->by_results = 1;
    run.tag = tag;
    run.host.rank = r->rank;
    run.host.n_ranks = r->n_ranks;
    run.host.transport = r->transport;
    run.host.error = GRAFT_INIT(graft_error);
    if (graft_load(getenv("GRAFT_LIBRARY"), &host, &run.host.api, &r->error) < 0) return rank_blame(r, "no library");
    host_set(run.host.api, is_well ? "halo.timeout=60" : "halo.timeout=1");
    job_configure(playing, &run);
    rc = job_play(playing, &run);
    run.host.api->close(run.host.api->context);
    r->error = run.host.error;
    if (is_well) well[r->rank] = run.digest;
    else if (rc == GRAFT_OK && run.digest != well[r->rank]) rank_blame(r, "other results, and no error");
    return rc;
}

static void test_faults_of(const struct job *job, int32_t bad_rank, int64_t tries, int64_t slow)
{
    int64_t     calls;
    const char *fault;

    playing = job;
    is_well = 1;
    fault = run_well(jobs_faults_body, RANKS, bad_rank, &calls);
    is_well = 0;
    if (!ok(fault == NULL && calls > 50, "%s: rank %d sends and receives %lld times", job->name, bad_rank,
            (long long)calls))
        diag("%s", fault != NULL ? fault : "");
    for (enum fault kind = FAULT_ERROR; kind < FAULTS; kind++) {
        const int64_t wanted = kind >= FAULT_DROP ? slow : tries, every = wanted < calls ? calls / wanted : 1;

        fault = run_series(jobs_faults_body, kind, RANKS, bad_rank, (int32_t)every, calls);
        ok_or(fault == NULL, fault, "%s: %s at %lld of them", job->name, fault_name[kind], (long long)(calls / every));
    }
}

int main(int count, char **words)
{
    const int64_t      tries = count > 3 ? atoll(words[2]) : 4, slow = count > 3 ? atoll(words[3]) : 1;
    struct data_folder folder;

    if (count < 2 || tries < 1 || slow < 1) return 2;
    folders_in_memory();
    folder_create(&folder);
    job_input_init(&input, folder.path, 1);
    input.partitioner = words[1];
    for (int i = 0; i < n_jobs; i++)
        if (count < 5 || atoi(words[4]) == i) test_faults_of(&jobs[i], i % RANKS, tries, slow);
    job_input_fini(&input);
    folder_destroy(&folder);
    return done();
}
