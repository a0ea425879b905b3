/* Checks each job of harness/jobs.h when an allocation of one rank fails. Either all ranks return the same error, or
 * all have the results of a run with enough memory. No memory may leak, and no rank may wait for its deadline.
 * "test_jobs_memory STRIDE [JOB]" lets every STRIDE-th allocation fail.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_files.h"
#include "harness/jobs.h"
#include "harness/tap.h"

enum { RANKS = 3, MOST = 20000 };

/* Shorter than the deadline of the ranks, for which none may wait. */
static const double LONGEST = 40;

static struct job_input input;
static uint64_t         well[RANKS]; /* results with enough memory */

struct scarcity {
    const struct job *job;
    int32_t           guilty;
    int64_t           fail_at;
    uint64_t          digest[RANKS];
    _Atomic int32_t   finished, failed;
};

/* Wait for all other ranks, one of which may have failed. */
static int scarce_others(void *arg, int32_t rc)
{
    struct scarcity *s = arg;

    if (rc < 0) atomic_fetch_add(&s->failed, 1);
    atomic_fetch_add(&s->finished, 1);
    while (atomic_load(&s->finished) < RANKS) usleep(100);
    return atomic_load(&s->failed) > 0;
}

static int32_t scarce_body(struct host *host)
{
    struct scarcity *s = host->all->arg;
    struct job_run   run = { .in = &input, .tag = "memory", .others_failed = scarce_others, .arg = s };
    int32_t          rc;

    run.host.api = host->api;
    run.host.transport = host->transport;
    run.host.rank = host->rank;
    run.host.n_ranks = host->n_ranks;
    run.host.error = GRAFT_INIT(graft_error);
    job_configure(s->job, &run);
    if (host->rank == s->guilty) atomic_store(&host->fail_at, s->fail_at);
    rc = job_play(s->job, &run);
    if (host->rank == s->guilty) atomic_store(&host->fail_at, -1);
    s->digest[host->rank] = run.digest;
    host->error = run.host.error;
    return rc;
}

/* Compare the results of the ranks. The return value is NULL or an error in words. */
static const char *judge_scarce(const struct hosts *hosts, const struct scarcity *s, int clean)
{
    const struct host *first = &hosts->at[0];

    if (!clean) return hosts->error.message;
    for (int32_t i = 0; i < RANKS; i++) {
        const struct host *host = &hosts->at[i];

        if (host->seconds > LONGEST) return "it took too long";
        if (host->rc != first->rc) return "only some ranks fail";
        if (host->rc < 0 && strcmp(host->error.message, first->error.message) != 0) return "ranks say different things";
        if (host->rc < 0 && host->rc != GRAFT_ERR_NOMEM && host->rc != GRAFT_ERR_PEER) return host->error.message;
        if (host->rc == GRAFT_OK && s->digest[i] != well[i]) return "other results, and no error";
    }
    return first->rc < 0 && !hosts->at[s->guilty].ran_out ? "an error, and there was memory" : NULL;
}

static void test_scarcity(const struct job *job, int32_t guilty, int64_t stride)
{
    static const char *const settings[] = { "halo.timeout=60", NULL };
    static struct hosts      hosts;
    int64_t                  tries = 0, agreed = 0, ended = 0, k = stride > 1 ? guilty : 0;
    const char              *wrong = NULL;

    for (; k < MOST && wrong == NULL; k += stride, tries++) {
        struct scarcity s = { .job = job, .guilty = guilty, .fail_at = k };

        wrong = judge_scarce(&hosts, &s, hosts_run(&hosts, RANKS, settings, scarce_body, &s));
        if (!hosts.at[guilty].ran_out) break;
        agreed += hosts.at[0].rc == GRAFT_ERR_NOMEM;
        ended += hosts.at[0].rc == GRAFT_ERR_PEER;
    }
    if (ok(wrong == NULL && tries > 2 && k < MOST,
           "%s: %lld of about %lld allocations of rank %d fail: %lld errors of all ranks, of which they recover, and "
           "%lld that end the comm",
           job->name, (long long)tries, (long long)k, guilty, (long long)agreed, (long long)ended))
        return;
    diag("allocation %lld: %s", (long long)k - stride, wrong != NULL ? wrong : "none fails");
    for (int32_t i = 0; i < RANKS; i++)
        diag("rank %d: %d after %.1f s: %s", i, hosts.at[i].rc, hosts.at[i].seconds, hosts.at[i].error.message);
}

static void test_well(const struct job *job)
{
    static const char *const settings[] = { "halo.timeout=60", NULL };
    static struct hosts      hosts;
    struct scarcity          s = { .job = job, .guilty = -1, .fail_at = -1 };

    hosts_run(&hosts, RANKS, settings, scarce_body, &s);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s: with memory", job->name);
    memcpy(well, s.digest, sizeof well);
}

int main(int count, char **words)
{
    const int64_t      stride = count > 1 ? atoll(words[1]) : 6;
    struct data_folder folder;

    if (stride < 1) return 2;
    folders_in_memory();
    folder_create(&folder);
    job_input_init(&input, folder.path, 1);
    for (int i = 0; i < n_jobs; i++) {
        if (!job_is_possible(&jobs[i], &input) || (count > 2 && atoi(words[2]) != i)) continue;
        test_well(&jobs[i]);
        test_scarcity(&jobs[i], RANKS - 1, stride);
        test_scarcity(&jobs[i], 0, stride);
    }
    job_input_fini(&input);
    folder_destroy(&folder);
    return done();
}
