/* Checks collective calls over a transport with one fault, at each of the sends and receives of one rank in turn. In
 * every run either all results are right, or all ranks that are alive return the same error before the deadline. A
 * wrong number or a hang fails the check. Many runs are made at once, because they mostly wait.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "comm/frame.h"
#include "harness/fault_runs.h"
#include "harness/tap.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 300 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) return rc;                                                                                         \
    } while (0)

/* Sums and gathers, whose results are known. */
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

/* An exchange of rows like that of a layer's halo: it is begun, polled and completed, and messages are too large to be
 * sent before the receiver asks for them. */
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
    gr_comm_frame_seal(&out.frame, out.row);
    TRY(gr_comm_receive(r->comm, before, tag, &in, sizeof in, &requests[0], &r->error));
    TRY(gr_comm_send(r->comm, next, tag, &out, sizeof out, &requests[1], &r->error));
    TRY(gr_comm_poll(r->comm, requests, 2, &left, &r->error));
    TRY(gr_comm_wait(r->comm, requests, 2, &r->error));
    if (gr_comm_frame_check(&in.frame, &expected, &r->error) < 0) return gr_comm_fail(r->comm, &r->error);
    if (gr_comm_frame_check_payload(&in.frame, in.row, &r->error) < 0) return gr_comm_fail(r->comm, &r->error);
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

static int32_t script_and_more(struct rank *r)
{
    const int32_t rc = script(r);

    return run_goes_on(r, rc) ? gr_comm_barrier(r->comm, &r->error) : rc;
}

static void test_series(enum fault kind, int32_t n_ranks, int32_t bad_rank, int32_t every, int64_t calls)
{
    const char *fault = run_series(script_and_more, kind, n_ranks, bad_rank, every, calls);

    ok_or(fault == NULL, fault, "%s at each of %lld calls of rank %d of %d", fault_name[kind],
          (long long)(calls / every), bad_rank, n_ranks);
}

static int64_t count_calls(int32_t n_ranks, int32_t rank)
{
    int64_t     calls;
    const char *fault = run_well(script_and_more, n_ranks, rank, &calls);

    ok_or(fault == NULL && calls > 0, fault, "rank %d of %d makes %lld calls when nothing goes wrong", rank, n_ranks,
          (long long)calls);
    return calls;
}

/* All ranks of a process sleep for longer than they would wait. */
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
        run.faulty.seconds = 4.5 * RUN_TIMEOUT; /* the other ranks wait only for half a second of this time */
        run_one(&run, script_and_more);
        for (int32_t i = 0; i < run.n_ranks; i++)
            if (run.ranks.at[i].rc < 0) _exit(1);
        _exit(0);
    }
    usleep((useconds_t)(0.2e6 * RUN_TIMEOUT));
    kill(child, SIGSTOP);
    usleep((useconds_t)(4e6 * RUN_TIMEOUT));
    kill(child, SIGCONT);
    ok(waitpid(child, &status, 0) == child && status == 0, "a job that was stopped for a while continues");
}

enum { LENT = 100000 };

/* Rank 1 waits for a message that never arrives and cannot be cancelled. */
static int32_t lend(struct rank *r)
{
    struct gr_request request = { 0 };
    char             *lent = gr_new(r->context, LENT, 1, "bytes to come", &r->error), *later;
    int64_t           before;
    int32_t           rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    if (r->rank == 0) {
        gr_fail(&r->error, GRAFT_ERR_IO, "no disk");
        rc = gr_comm_fail(r->comm, &r->error);
    } else {
        rc = gr_comm_receive(r->comm, 0, gr_comm_channel(r->comm), lent, LENT, &request, &r->error);
        if (rc == GRAFT_OK) rc = gr_comm_wait(r->comm, &request, 1, &r->error);
    }
    if (rc != GRAFT_ERR_PEER) rank_blame(r, "the failure gave %d", rc);
    if (r->rank == 0) {
        gr_free(r->context, lent);
        atomic_fetch_add(&r->all->finished, 1);
        return GRAFT_OK;
    }
    /* From here on the count has the bytes of this rank alone. */
    while (atomic_load(&r->all->finished) == 0) usleep(1000);
    before = atomic_load(&r->all->live_bytes);
    gr_free(r->context, lent);
    if (atomic_load(&r->all->live_bytes) < before) rank_blame(r, "what was lent is given back");
    gr_comm_destroy(r->comm);
    r->comm = NULL;
    later = gr_new(r->context, LENT, 1, "later bytes", &r->error);
    before = atomic_load(&r->all->live_bytes);
    gr_free(r->context, later);
    if (atomic_load(&r->all->live_bytes) > before - LENT) rank_blame(r, "nothing is given back any more");
    return GRAFT_OK;
}

/* Memory that the library of a transport may still write to must not be freed; other memory must be. */
static void test_lent(void)
{
    static struct run run;
    const char       *fault;

    ranks_init(&run.ranks, 2, RUN_TIMEOUT, lend, &run);
    run.faulty = (struct faulty){ .inner = run.ranks.at[1].transport, .keeps = 1 };
    run.ranks.at[1].transport = faulty_wrap(&run.faulty);
    ranks_run(&run.ranks);
    fault = ranks_fini(&run.ranks);
    ok(fault != NULL && strstr(fault, "bytes are left") != NULL && atomic_load(&run.ranks.live_bytes) >= LENT,
       "buffers to which a transport may still write are kept allocated: %s", fault != NULL ? fault : "");
}

int main(void)
{
    const int64_t calls = count_calls(3, 1), calls_of_first = count_calls(4, 0);

    alarm(110);
    test_stopped_job();
    test_lent();
    for (enum fault kind = FAULT_ERROR; kind < FAULTS; kind++) {
        test_series(kind, 3, 1, 1, calls);
        test_series(kind, 4, 0, kind >= FAULT_DROP ? 5 : 2, calls_of_first);
    }
    return done();
}
