/* What goes wrong between ranks: one rank runs over a transport with one fault, at each of its sends and receives in
 * turn. Either all results are right, or all ranks that live return the same error within the deadline; never a wrong
 * number, never a hang. Many such runs go on at once, for most of their time they wait.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../exchange/faulty.h"
#include "../exchange/ranks.h"
#include "../tap.h"
#include "exchange/frame.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 24, ROWS = 300 };
static const double TIMEOUT = 1.0, DELAY = 0.1;

/* One run. */
struct run {
    struct ranks  ranks;
    struct faulty faulty;
    int32_t       n_ranks, bad_rank;
    int64_t       calls; /* of the bad rank when nothing goes wrong */
    char          fault[768];
};

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) return rc;                                                                                         \
    } while (0)

/* Sums and gathers, each with its own right answer. */
static int32_t small_calls(struct rank *r)
{
    float   sum[37];
    int32_t all[RANKS_MOST], rc;
    int64_t most = r->rank;

    for (int i = 0; i < 37; i++) sum[i] = (float)(i * (r->rank + 1));
    TRY(gr_comm_sum_f32(r->comm, sum, 37, &r->error));
    for (int i = 0; i < 37; i++)
        if (sum[i] != (float)(i * r->n_ranks * (r->n_ranks + 1) / 2)) rank_blame(r, "sum %d is %g", i, (double)sum[i]);
    TRY(gr_comm_allgather(r->comm, &r->rank, sizeof r->rank, all, &r->error));
    for (int32_t p = 0; p < r->n_ranks; p++)
        if (all[p] != p) rank_blame(r, "rank %d gathered %d", p, all[p]);
    TRY(gr_comm_max(r->comm, &most, 1, &r->error));
    if (most != r->n_ranks - 1) rank_blame(r, "the maximum is %lld", (long long)most);
    return rc;
}

/* An exchange of rows as the halo of a layer is: begun, polled for, waited for; too large to leave without the
 * receiver. */
static int32_t rows(struct rank *r)
{
    struct message {
        struct gr_frame frame;
        float           row[ROWS];
    } out, in;
    struct gr_request     requests[2] = { { 0 }, { 0 } };
    const int32_t         next = (r->rank + 1) % r->n_ranks, before = (r->rank + r->n_ranks - 1) % r->n_ranks;
    const int32_t         tag = gr_comm_channel(r->comm);
    int64_t               left;
    const struct gr_frame expected = { .channel = (uint32_t)tag, .from = before, .rows = ROWS, .bytes = sizeof in.row };
    int32_t               rc;

    for (int i = 0; i < ROWS; i++) out.row[i] = (float)(r->rank * ROWS + i);
    out.frame = expected;
    out.frame.from = r->rank;
    gr_frame_seal(&out.frame, out.row);
    TRY(gr_comm_receive(r->comm, before, tag, &in, sizeof in, &requests[0], &r->error));
    TRY(gr_comm_send(r->comm, next, tag, &out, sizeof out, &requests[1], &r->error));
    TRY(gr_comm_poll(r->comm, requests, 2, &left, &r->error));
    TRY(gr_comm_wait(r->comm, requests, 2, &r->error));
    if (gr_frame_check(&in.frame, &expected, &r->error) < 0) return gr_comm_fail(r->comm, &r->error);
    if (gr_frame_check_payload(&in.frame, in.row, &r->error) < 0) return gr_comm_fail(r->comm, &r->error);
    for (int i = 0; i < ROWS; i++)
        if (in.row[i] != (float)(before * ROWS + i)) rank_blame(r, "row %d is %g", i, (double)in.row[i]);
    return rc;
}

static int32_t script(struct rank *r)
{
    char    text[16] = "no";
    int32_t rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    TRY(small_calls(r));
    TRY(rows(r));
    if (r->rank == 1) snprintf(text, sizeof text, "yes");
    TRY(gr_comm_broadcast(r->comm, 1, text, sizeof text, &r->error));
    if (strcmp(text, "yes") != 0) rank_blame(r, "the broadcast says '%s'", text);
    TRY(gr_comm_agree(r->comm, GRAFT_OK, &r->error));
    return rc;
}

/* The script; a rank that came to its end before another failed must hear of it in its next call. */
static int32_t script_and_more(struct rank *r)
{
    struct run *run = r->all->arg;
    int32_t     rc = script(r);

    if (rc < 0 && !(run->faulty.is_dead && r->rank == run->bad_rank)) atomic_fetch_add(&r->all->failed, 1);
    atomic_fetch_add(&r->all->finished, 1);
    if (rc < 0 || run->faulty.kind == FAULT_NONE) return rc;
    while (atomic_load(&r->all->finished) < r->n_ranks) usleep(1000);
    if (atomic_load(&r->all->failed) > 0) rc = gr_comm_barrier(r->comm, &r->error);
    return rc;
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

/* Whether the fault must be noticed by somebody: the receives for complaints may stay unused, and who stops at the very
 * end may be missed by nobody. */
static int must_fail(const struct run *run)
{
    enum { END = 8 };
    const struct faulty *f = &run->faulty;

    if (!f->is_hit || f->at < run->n_ranks - 1 || f->kind == FAULT_DELAY || f->kind == FAULT_NONE) return 0;
    return f->kind < FAULT_DROP || f->at < run->calls - END;
}

static void judge(struct run *run)
{
    const struct faulty *f = &run->faulty;
    int32_t              failed = 0, first = -1;

    for (int32_t i = 0; i < run->n_ranks; i++) {
        const struct rank *r = &run->ranks.at[i];
        const double       limit = TIMEOUT * 3.5 + (i == run->bad_rank ? f->seconds : 0);

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
    if (failed == 0 && must_fail(run)) blame(run, "nobody noticed", 0);
}

static void run_one(struct run *run)
{
    const char *fault;

    ranks_init(&run->ranks, run->n_ranks, TIMEOUT, script_and_more, run);
    run->faulty.inner = run->ranks.at[run->bad_rank].transport;
    run->ranks.at[run->bad_rank].transport = faulty_wrap(&run->faulty);
    ranks_run(&run->ranks);
    judge(run);
    fault = ranks_fini(&run->ranks);
    if (fault != NULL && run->fault[0] == '\0')
        snprintf(run->fault, sizeof run->fault, "%s at call %lld of rank %d of %d: %.400s",
                 fault_name[run->faulty.kind], (long long)run->faulty.at, run->bad_rank, run->n_ranks, fault);
}

/* All runs with one kind of fault: one for each call. */
struct series {
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
        run->faulty.seconds = series->kind == FAULT_STOP ? 2.5 * TIMEOUT : series->kind == FAULT_DELAY ? DELAY : 0;
        run->calls = series->calls;
        run_one(run);
        if (run->fault[0] != '\0' && atomic_fetch_add(&series->failures, 1) == 0)
            memcpy(series->fault, run->fault, sizeof series->fault);
    }
    free(run);
    return NULL;
}

static void test_series(enum fault kind, int32_t n_ranks, int32_t bad_rank, int32_t every, int64_t calls)
{
    struct series series = { .kind = kind, .n_ranks = n_ranks, .bad_rank = bad_rank, .every = every, .calls = calls };
    pthread_t     thread[WORKERS];
    int           started = 0;

    while (started < WORKERS && pthread_create(&thread[started], NULL, work, &series) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    if (!ok(started > 0 && series.failures == 0, "%s at each of %lld calls of rank %d of %d", fault_name[kind],
            (long long)(calls / every), bad_rank, n_ranks))
        diag("%d fail, the first: %s", series.failures, series.fault);
}

/* How many calls a rank makes when nothing goes wrong. */
static int64_t count_calls(int32_t n_ranks, int32_t rank)
{
    static struct run run;

    memset(&run, 0, sizeof run);
    run.n_ranks = n_ranks;
    run.bad_rank = rank;
    run_one(&run);
    if (!ok(run.fault[0] == '\0', "rank %d of %d makes %lld calls when nothing goes wrong", rank, n_ranks,
            (long long)run.faulty.calls))
        diag("%s", run.fault);
    return run.faulty.calls;
}

/* A process whose ranks all sleep for longer than they would wait. */
static void test_stopped_job(void)
{
    static struct run run;
    int               status = -1;
    pid_t             child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        run.n_ranks = 3;
        run.bad_rank = 1;
        run.faulty.kind = FAULT_DELAY;
        run.faulty.at = 20;
        run.faulty.seconds = 4.5 * TIMEOUT; /* of which the others wait half a second */
        run_one(&run);
        for (int32_t i = 0; i < run.n_ranks; i++)
            if (run.ranks.at[i].rc < 0) _exit(1);
        _exit(0);
    }
    usleep((useconds_t)(0.2e6 * TIMEOUT));
    kill(child, SIGSTOP);
    usleep((useconds_t)(4e6 * TIMEOUT));
    kill(child, SIGCONT);
    ok(waitpid(child, &status, 0) == child && status == 0, "a job that was stopped for a while goes on");
}

int main(void)
{
    const int64_t calls = count_calls(3, 1), calls_of_first = count_calls(4, 0);

    alarm(110);
    test_stopped_job();
    for (enum fault kind = FAULT_ERROR; kind < FAULTS; kind++) {
        test_series(kind, 3, 1, 1, calls);
        test_series(kind, 4, 0, kind >= FAULT_DROP ? 5 : 2, calls_of_first);
    }
    return done();
}
