/* Runs ranks over a transport with one fault, see harness/fault_runs.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/fault_runs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 24 };
static const double DELAY = 0.1;

int run_goes_on(struct rank *r, int32_t rc)
{
    struct run *run = r->all->arg;

    if (rc < 0 && !(run->faulty.is_dead && r->rank == run->bad_rank)) atomic_fetch_add(&r->all->failed, 1);
    atomic_fetch_add(&r->all->finished, 1);
    if (rc < 0 || run->faulty.kind == FAULT_NONE) return 0;
    while (atomic_load(&r->all->finished) < r->n_ranks) usleep(1000);
    return atomic_load(&r->all->failed) > 0;
}

static void blame(struct run *run, const char *words, int32_t rank)
{
    if (run->fault[0] != '\0') return;
    snprintf(run->fault, sizeof run->fault,
             "%s at call %lld of rank %d of %d: %s (rank %d, %.1f s: %d, rank %d, %.200s)",
             fault_name[run->faulty.kind], (long long)run->faulty.at, run->bad_rank, run->n_ranks, words, rank,
             run->ranks.at[rank].seconds, run->ranks.at[rank].rc, run->ranks.at[rank].error.rank,
             run->ranks.at[rank].error.message);
}

/* Whether a rank must report the fault. A duplicated or reordered message may have no effect. A receive for a notice of
 * cancellation may stay unused, and a rank that stops after its last message disturbs no other rank. */
static int must_fail(const struct run *run)
{
    enum { END = 8 };
    const struct faulty *f = &run->faulty;

    if (!f->is_hit || f->at < run->n_ranks - 1 || f->kind == FAULT_DELAY || f->kind == FAULT_NONE) return 0;
    if (run->by_results || f->kind == FAULT_DOUBLED || f->kind == FAULT_REORDERED) return 0;
    return f->kind < FAULT_DROP || f->at < run->calls - END;
}

static void judge(struct run *run)
{
    const struct faulty *f = &run->faulty;
    int32_t              failed = 0, first = -1;

    for (int32_t i = 0; i < run->n_ranks; i++) {
        const struct rank *r = &run->ranks.at[i];
        const double       limit = RUN_TIMEOUT * 3.5 + (i == run->bad_rank ? f->seconds : 0);

        if (f->is_dead && i == run->bad_rank) continue;
        if (r->seconds > limit) blame(run, "it took too long", i);
        if (r->rc == GRAFT_OK) continue;
        failed++;
        if (first < 0) first = i;
        if (r->rc != GRAFT_ERR_PEER) blame(run, "another status", i);
        if (strcmp(r->error.message, run->ranks.at[first].error.message) != 0 ||
            r->error.rank != run->ranks.at[first].error.rank)
            blame(run, "ranks say different things", i);
        if (f->kind == FAULT_STOP && r->error.rank != run->bad_rank) blame(run, "another rank is blamed", i);
    }
    if (failed > 0 && failed < run->n_ranks - f->is_dead) blame(run, "only some ranks fail", first);
    if (f->kind == FAULT_DELAY && failed > 0) blame(run, "a delay is no failure", first);
    if (failed == 0 && must_fail(run)) blame(run, "no call failed", 0);
}

void run_one(struct run *run, int32_t (*body)(struct rank *rank))
{
    const char *fault;

    ranks_init(&run->ranks, run->n_ranks, RUN_TIMEOUT, body, run);
    run->faulty.inner = run->ranks.at[run->bad_rank].transport;
    run->ranks.at[run->bad_rank].transport = faulty_wrap(&run->faulty);
    ranks_run(&run->ranks);
    judge(run);
    fault = ranks_fini(&run->ranks);
    if (fault != NULL && run->fault[0] == '\0')
        snprintf(run->fault, sizeof run->fault, "%s at call %lld of rank %d of %d: %.400s",
                 fault_name[run->faulty.kind], (long long)run->faulty.at, run->bad_rank, run->n_ranks, fault);
}

/* All runs with one kind of fault; each run has the fault at another call of the transport. */
struct series {
    int32_t (*body)(struct rank *rank);
    enum fault      kind;
    int32_t         n_ranks, bad_rank, every;
    int64_t         calls;
    _Atomic int64_t next;
    _Atomic int32_t failures;
    char            fault[768];
};

static void *work(void *arg)
{
    struct series *series = arg;
    struct run    *run = malloc(sizeof *run);
    int64_t        at;

    while ((at = atomic_fetch_add(&series->next, 1) * series->every) < series->calls) {
        memset(run, 0, sizeof *run);
        run->n_ranks = series->n_ranks;
        run->bad_rank = series->bad_rank;
        run->faulty.kind = series->kind;
        run->faulty.at = at;
        run->faulty.seconds = series->kind == FAULT_STOP ? 2.5 * RUN_TIMEOUT : series->kind == FAULT_DELAY ? DELAY : 0;
        run->calls = series->calls;
        run_one(run, series->body);
        if (run->fault[0] != '\0' && atomic_fetch_add(&series->failures, 1) == 0)
            memcpy(series->fault, run->fault, sizeof series->fault);
    }
    free(run);
    return NULL;
}

const char *run_series(int32_t (*body)(struct rank *rank), enum fault kind, int32_t n_ranks, int32_t bad_rank,
                       int32_t every, int64_t calls)
{
    static char   words[900];
    struct series series = {
        .body = body, .kind = kind, .n_ranks = n_ranks, .bad_rank = bad_rank, .every = every, .calls = calls
    };
    pthread_t thread[WORKERS];
    int       started = 0;

    while (started < WORKERS && pthread_create(&thread[started], NULL, work, &series) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    if (started == 0) return "no thread";
    if (series.failures == 0) return NULL;
    snprintf(words, sizeof words, "%d fail, the first: %s", series.failures, series.fault);
    return words;
}

const char *run_well(int32_t (*body)(struct rank *rank), int32_t n_ranks, int32_t rank, int64_t *calls)
{
    static struct run run;

    memset(&run, 0, sizeof run);
    run.n_ranks = n_ranks;
    run.bad_rank = rank;
    run_one(&run, body);
    *calls = run.faulty.calls;
    return run.fault[0] != '\0' ? run.fault : NULL;
}
