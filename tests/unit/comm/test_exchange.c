/* Checks the transport of threads and the collective calls of ranks against plain loops over the input of all ranks. A
 * wrong sum, an item that reaches the wrong rank, or an error that not all ranks return in time fails a check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "comm/route.h"
#include "entry/entry.h"
#include "harness/lcg.h"
#include "harness/ranks.h"
#include "harness/tap.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { COUNTS = 7 };

/* Element `i` of rank `r`. The magnitudes differ so much that the order of a sum shows in its last bits. */
static float element(int32_t r, int64_t i)
{
    uint32_t    state = (uint32_t)(r * 7919 + i * 104729 + 1);
    const float mantissa = (float)lcg_next(&state) / 16777216.0f - 0.5f;

    return mantissa * (float)(1 << (lcg_next(&state) % 24));
}

static int64_t integer(int32_t r, int64_t i)
{
    uint32_t state = (uint32_t)(r * 31 + i * 17);

    return ((int64_t)lcg_next(&state) - (1 << 23)) * 1000003;
}

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) return rc;                                                                                         \
    } while (0)

/* The sum of element i in the order of the reduction tree: ranks from the largest power of 2 on are added to the first
 * ones, then the upper half of these to the lower half, and so on. */
static void sum_along_tree(int32_t n_ranks, int64_t i, float *single, double *wide)
{
    float   singles[RANKS_MOST];
    double  wides[RANKS_MOST];
    int32_t half = 1;

    for (int32_t p = 0; p < n_ranks; p++) {
        singles[p] = element(p, i);
        wides[p] = (double)element(p, i) / 3;
    }
    while (2 * half <= n_ranks) half *= 2;
    for (int32_t left = n_ranks; half > 0; left = half, half /= 2)
        for (int32_t p = half; p < left; p++) {
            singles[p - half] += singles[p];
            wides[p - half] += wides[p];
        }
    *single = singles[0];
    *wide = wides[0];
}

/* Sums of `count` elements must be bitwise those along the tree, and near a plain sum in double. */
static int32_t check_sums(struct rank *r, int64_t count)
{
    float  *single = calloc((size_t)count + 1, sizeof *single);
    double *wide = calloc((size_t)count + 1, sizeof *wide);
    int32_t rc;

    for (int64_t i = 0; i < count; i++) {
        single[i] = element(r->rank, i);
        wide[i] = (double)element(r->rank, i) / 3;
    }
    rc = gr_comm_sum_f32(r->comm, single, count, &r->error);
    if (rc == GRAFT_OK) rc = gr_comm_sum_f64(r->comm, wide, count, &r->error);
    for (int64_t i = 0; i < count && rc == GRAFT_OK; i++) {
        double total = 0, size = 0, thirds;
        float  along;

        for (int32_t p = 0; p < r->n_ranks; p++) {
            total += (double)element(p, i);
            size += fabs((double)element(p, i));
        }
        sum_along_tree(r->n_ranks, i, &along, &thirds);
        if (single[i] != along || wide[i] != thirds || fabs((double)along - total) > 4e-7 * size ||
            fabs(thirds - total / 3) > 1e-15 * size)
            rank_blame(r, "element %lld of a sum of %lld is %.9g, expected %.9g", (long long)i, (long long)count,
                       (double)single[i], (double)along);
    }
    free(single);
    free(wide);
    return rc;
}

static int32_t check_gathers(struct rank *r)
{
    int64_t mine[3], all[RANKS_MOST][3], out[RANKS_MOST], in[RANKS_MOST];
    int32_t rc;

    for (int i = 0; i < 3; i++) mine[i] = integer(r->rank, i);
    TRY(gr_comm_allgather(r->comm, mine, sizeof mine, all, &r->error));
    for (int32_t p = 0; p < r->n_ranks; p++) out[p] = integer(r->rank, p);
    TRY(gr_comm_alltoall(r->comm, out, sizeof out[0], in, &r->error));
    for (int32_t p = 0; p < r->n_ranks; p++) {
        for (int i = 0; i < 3; i++)
            if (all[p][i] != integer(p, i)) rank_blame(r, "allgather: item of rank %d", p);
        if (in[p] != integer(p, r->rank)) rank_blame(r, "alltoall: item of rank %d", p);
    }
    return rc;
}

/* Rank r sends p bytes more than r * 1000 to rank p, but rank 3 sends nothing to rank 1. */
static int64_t length(int32_t from, int32_t to)
{
    return from == 3 && to == 1 ? 0 : (int64_t)from * 1000 + to;
}

static int32_t check_alltoallv(struct rank *r)
{
    static _Thread_local unsigned char out[80000], in[80000];
    int64_t                            out_start[RANKS_MOST + 1] = { 0 }, in_start[RANKS_MOST + 1] = { 0 };
    int32_t                            rc;

    for (int32_t p = 0; p < r->n_ranks; p++) {
        out_start[p + 1] = out_start[p] + length(r->rank, p);
        in_start[p + 1] = in_start[p] + length(p, r->rank);
        for (int64_t i = out_start[p]; i < out_start[p + 1]; i++)
            out[i] = (unsigned char)(r->rank * 31 + p * 7 + (i - out_start[p]));
    }
    TRY(gr_comm_alltoallv(r->comm, out, out_start, in, in_start, 1, &r->error));
    for (int32_t p = 0; p < r->n_ranks; p++)
        for (int64_t i = in_start[p]; i < in_start[p + 1]; i++)
            if (in[i] != (unsigned char)(p * 31 + r->rank * 7 + (i - in_start[p])))
                return rank_blame(r, "alltoallv: byte %lld", (long long)i);
    return rc;
}

/* Route items to their owners. Each rank must receive its items in the order of their senders, and the answers must
 * return. */
static int32_t check_route(struct rank *r)
{
    enum { ITEMS = 300 };
    int64_t         item[ITEMS], packed[ITEMS], received[ITEMS * RANKS_MOST], back[ITEMS], place[ITEMS];
    struct gr_route route = { 0 };
    int32_t         rc = gr_comm_route_init(&route, r->comm, &r->error);

    for (int64_t i = 0; i < ITEMS && rc == GRAFT_OK; i++) {
        item[i] = r->rank * 1000000 + i;
        route.out[i * i % r->n_ranks + 1]++;
    }
    if (rc == GRAFT_OK) rc = gr_comm_route_plan(&route, &r->error);
    for (int64_t i = 0; i < ITEMS && rc == GRAFT_OK; i++) {
        place[i] = gr_comm_route_take(&route, (int32_t)(i * i % r->n_ranks), 1);
        packed[place[i]] = item[i];
    }
    if (rc == GRAFT_OK) gr_comm_route_rewind(&route);
    if (rc == GRAFT_OK) rc = gr_comm_route_send(&route, packed, received, sizeof *packed, &r->error);
    for (int32_t p = 0; p < r->n_ranks && rc == GRAFT_OK; p++) {
        int64_t next = route.in[p];

        for (int64_t i = 0; i < ITEMS; i++)
            if (i * i % r->n_ranks == r->rank && received[next++] != p * 1000000 + i)
                rank_blame(r, "route: item %lld of rank %d", (long long)i, p);
        if (next != route.in[p + 1]) rank_blame(r, "route: %lld items of rank %d", (long long)route.in[p + 1], p);
    }
    for (int64_t i = 0; rc == GRAFT_OK && i < gr_comm_route_n_in(&route); i++) received[i] = -received[i];
    if (rc == GRAFT_OK) rc = gr_comm_route_return(&route, received, back, sizeof *back, &r->error);
    for (int64_t i = 0; i < ITEMS && rc == GRAFT_OK; i++)
        if (back[place[i]] != -item[i]) rank_blame(r, "route: item %lld came back wrong", (long long)i);
    gr_comm_route_fini(&route);
    return rc;
}

/* An item for each rank. */
static void pack_receivers(void *number, struct gr_route *route)
{
    for (int32_t p = 0; p < route->comm->n_ranks; p++) {
        int32_t *item = gr_comm_route_item(route, p);

        if (item != NULL) *item = *(int32_t *)number + p;
    }
}

/* Items that do not fit the memory of one rank are sent by none, and the next exchange works. */
static int32_t check_refused_route(struct rank *r)
{
    struct gr_route route = { 0 };
    graft_error     refused = GRAFT_INIT(graft_error);
    int32_t         rc, here = GRAFT_OK, number = 7;

    if (r->rank == 0) here = gr_fail(&refused, GRAFT_ERR_NOMEM, "rank 0 has no memory");
    TRY(gr_comm_route_init(&route, r->comm, &r->error));
    TRY(gr_comm_route_count(&route, pack_receivers, &number, &r->error));
    if (gr_comm_route_deliver(&route, here, pack_receivers, &number, 4, &refused) != GRAFT_ERR_NOMEM)
        rank_blame(r, "route: a refusal became '%s'", refused.message);
    gr_comm_route_fini(&route);
    TRY(gr_comm_route_init(&route, r->comm, &r->error));
    TRY(gr_comm_route_exchange(&route, pack_receivers, &number, 4, &r->error));
    for (int32_t p = 0; p < r->n_ranks; p++)
        if (((int32_t *)route.received)[p] != 7 + r->rank) rank_blame(r, "route: the item of rank %d", p);
    gr_comm_route_fini(&route);
    return rc;
}

static int32_t check_extrema(struct rank *r)
{
    int64_t low[COUNTS], high[COUNTS];
    char    text[100];
    int32_t rc;

    for (int i = 0; i < COUNTS; i++) low[i] = high[i] = integer(r->rank, i);
    TRY(gr_comm_min(r->comm, low, COUNTS, &r->error));
    TRY(gr_comm_max(r->comm, high, COUNTS, &r->error));
    for (int i = 0; i < COUNTS; i++) {
        int64_t lowest = INT64_MAX, highest = INT64_MIN;

        for (int32_t p = 0; p < r->n_ranks; p++) {
            lowest = integer(p, i) < lowest ? integer(p, i) : lowest;
            highest = integer(p, i) > highest ? integer(p, i) : highest;
        }
        if (low[i] != lowest || high[i] != highest) rank_blame(r, "minimum or maximum %d", i);
    }
    for (int32_t root = 0; root < r->n_ranks; root++) {
        snprintf(text, sizeof text, "this is what rank %d says", r->rank == root ? root : -1);
        TRY(gr_comm_broadcast(r->comm, root, text, sizeof text, &r->error));
        if (strtol(text + 18, NULL, 10) != root) rank_blame(r, "broadcast of rank %d: %s", root, text);
    }
    return rc;
}

/* Let ranks fail. All ranks must return the error of the lowest failed rank, and the communicator remains usable. */
static int32_t check_agreement(struct rank *r)
{
    for (int32_t bad = 0; bad <= r->n_ranks; bad++) {
        const int32_t second = bad == r->n_ranks ? 0 : bad, mine = r->rank == bad || r->rank >= second ? -1 : 0;
        int32_t       rc = GRAFT_OK;

        if (mine < 0) rc = gr_fail(&r->error, GRAFT_ERR_FORMAT - r->rank, "bad line %d", r->rank);
        rc = gr_comm_agree(r->comm, rc, &r->error);
        if (rc != GRAFT_ERR_FORMAT - second || r->error.rank != (r->n_ranks > 1 ? second : 0))
            rank_blame(r, "agreed on %d of rank %d, expected rank %d", rc, r->error.rank, second);
        rc = gr_comm_agree(r->comm, GRAFT_OK, &r->error);
        if (rc != GRAFT_OK) rank_blame(r, "the comm does not go on: %s", r->error.message);
    }
    return gr_comm_barrier(r->comm, &r->error);
}

static int32_t check_comparison(struct rank *r)
{
    static const char *const names[] = { "the number of vertices", "option 'seed'", "the fingerprint of the graph" };
    static const char *const others[] = { "the number of vertices", "option 'seed'", "something else" };
    uint64_t                 values[] = { 5, 6, 0xABCDEF };
    int32_t                  rc;

    TRY(gr_comm_compare(r->comm, names, values, 3, &r->error));
    for (int32_t odd = 0; odd < r->n_ranks && r->n_ranks > 1; odd++) {
        values[1] = r->rank == odd ? 7 : 6;
        rc = gr_comm_compare(r->comm, names, values, 3, &r->error);
        if (rc != GRAFT_ERR_ARG || strstr(r->error.message, "option 'seed'") == NULL ||
            strstr(r->error.message, "7 (0x7)") == NULL || strstr(r->error.message, "6 (0x6)") == NULL)
            rank_blame(r, "a disagreement gave %d: %s", rc, r->error.message);
        values[1] = 6;
    }
    /* One rank is in another call, with as many items as the others or with none. The others must find the
     * difference. */
    for (int32_t odd = 0; odd < r->n_ranks && r->n_ranks > 1; odd++) {
        for (int32_t count = 0; count <= 3; count++) {
            const int32_t mine = r->rank == odd ? count : 3;

            values[2] = (uint64_t)r->rank;
            rc = gr_comm_compare(r->comm, r->rank == odd ? others : names, values, mine, &r->error);
            if (rc != GRAFT_ERR_ARG || strstr(r->error.message, "the ranks make different calls") == NULL ||
                (strstr(r->error.message, "nothing") != NULL) != (count == 0))
                rank_blame(r, "another call gave %d: %s", rc, r->error.message);
        }
    }
    return GRAFT_OK;
}

static int32_t everything(struct rank *r)
{
    static const int64_t counts[] = { 0, 1, 2, 5, 6, 37, 10007 };
    int32_t              rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    for (int i = 0; i < COUNTS; i++) {
        usleep((useconds_t)(lcg_next(&(uint32_t){ (uint32_t)(r->rank * 100 + i) }) % 2000));
        TRY(check_sums(r, counts[i]));
    }
    TRY(check_gathers(r));
    TRY(check_alltoallv(r));
    TRY(check_route(r));
    TRY(check_refused_route(r));
    TRY(check_extrema(r));
    TRY(check_agreement(r));
    TRY(check_comparison(r));
    return check_sums(r, 100);
}

static void test_collectives(void)
{
    static struct ranks ranks;

    for (int32_t n = 1; n <= 7; n++) {
        const char *fault;

        ranks_init(&ranks, n, 30, everything, NULL);
        ranks_run(&ranks);
        fault = ranks_fini_well(&ranks);
        ok_or(fault == NULL, fault, "%d ranks: sums, gathers, exchanges, extrema, agreement, comparison", n);
    }
}

/* Communication of a single rank, without a transport. */
static void test_alone(void)
{
    graft_context  *context = NULL;
    struct gr_comm *comm = NULL;
    graft_error     error = GRAFT_INIT(graft_error);
    float           value = 2.5f;
    int32_t         rc = gr_context_create(NULL, &gr_all_options, &context, &error);

    if (rc == GRAFT_OK) rc = gr_comm_create(context, NULL, 1, &comm, &error);
    if (rc == GRAFT_OK) rc = gr_comm_sum_f32(comm, &value, 1, &error);
    ok(rc == GRAFT_OK && value == 2.5f && comm->n_ranks == 1, "a comm of one rank works without a transport");
    rc = gr_comm_agree(comm, gr_fail(&error, GRAFT_ERR_IO, "no disk"), &error);
    ok(rc == GRAFT_ERR_IO && strcmp(error.message, "no disk") == 0, "a comm of one rank agrees on its own error");
    gr_comm_destroy(comm);
    gr_context_destroy(context);
}

/* Two objects over one transport share the communicator. After a failure the transport cannot be used again. */
static int32_t share(struct rank *r)
{
    struct gr_comm *second = NULL;
    int32_t         rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &second, &r->error));
    if (second != r->comm) rank_blame(r, "two comms over one transport");
    if (gr_comm_channel(second) == gr_comm_channel(r->comm)) rank_blame(r, "one channel for two objects");
    gr_comm_destroy(second);
    TRY(gr_comm_barrier(r->comm, &r->error));
    gr_comm_destroy(r->comm);
    r->comm = NULL;
    rc = gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error);
    if (rc == GRAFT_OK && r->rank > 0) rc = gr_comm_barrier(r->comm, &r->error);
    if (rc == GRAFT_OK) {
        gr_fail(&r->error, GRAFT_ERR_IO, "no disk");
        rc = gr_comm_fail(r->comm, &r->error);
    }
    if (rc != GRAFT_ERR_PEER || r->error.rank != 0) rank_blame(r, "the failure of rank 0 gave %d", rc);
    gr_comm_destroy(r->comm);
    r->comm = NULL;
    rc = gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error);
    return rc == GRAFT_ERR_PEER && strstr(r->error.message, "cannot be used again") != NULL
               ? GRAFT_OK
               : rank_blame(r, "it was had again");
}

static void test_share(void)
{
    static struct ranks ranks;
    const char         *fault;

    ranks_init(&ranks, 3, 5, share, NULL);
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    ok(fault == NULL, "two objects share a comm, and no comm is made after a failure%s", fault != NULL ? fault : "");
}

/* Ranks are in different calls, or in the same call with different lengths. */
static int32_t exchange_lost(struct rank *r)
{
    float   values[100] = { 0 };
    int32_t rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    if (*(int *)r->all->arg) return gr_comm_sum_f32(r->comm, values, r->rank == 1 ? 96 : 99, &r->error);
    if (r->rank == 1) return gr_comm_barrier(r->comm, &r->error);
    return gr_comm_allgather(r->comm, values, 4, values + 10, &r->error);
}

static void test_lost(int lengths, const char *words)
{
    static struct ranks ranks;
    int                 same = 1;
    const char         *fault;

    ranks_init(&ranks, 3, 5, exchange_lost, &lengths);
    ranks_run(&ranks);
    for (int i = 0; i < 3; i++)
        same &= ranks.at[i].rc == GRAFT_ERR_PEER && strstr(ranks.at[i].error.message, words) != NULL &&
                strcmp(ranks.at[i].error.message, ranks.at[0].error.message) == 0 &&
                ranks.at[i].error.rank == ranks.at[0].error.rank;
    ok(same, "after lost messages all ranks report the same error: %s", ranks.at[0].error.message);
    for (int i = 0; i < 3; i++) /* a rank that was notified while it made its communicator has none */
        if (ranks.at[i].comm != NULL && gr_comm_barrier(ranks.at[i].comm, &ranks.at[i].error) != GRAFT_ERR_PEER)
            same = 0;
    fault = ranks_fini(&ranks);
    ok(same && fault == NULL, "after lost messages later calls report the error too, and all memory is freed%s",
       fault != NULL ? fault : "");
}

/* An allocation fails on one rank while the communicator is made. All ranks must return an error. */
/* What rank 1 does alone for longer than the others wait. */
enum work { WORKS_ON, FALLS_SILENT, LOSES_A_RANK, MISSES_A_RANK };

static int32_t at_work(struct rank *r)
{
    const enum work    *work = r->all->arg;
    struct gr_heartbeat heartbeat = { 0 };
    double              end;
    int32_t             rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    if (r->rank != 1) {
        if (*work == LOSES_A_RANK && r->rank == 2) return gr_fail(&r->error, GRAFT_ERR_IO, "out of luck");
        if (*work == MISSES_A_RANK && r->rank == 3) usleep((useconds_t)(2.5e6 * r->all->timeout));
        return gr_comm_attend(r->comm, &r->error);
    }
    heartbeat.comm = r->comm;
    for (end = gr_seconds() + 3 * r->all->timeout; gr_seconds() < end; usleep(1000))
        if (*work != FALLS_SILENT) TRY(gr_comm_heartbeat(&heartbeat, &r->error));
    return gr_comm_heartbeat_end(&heartbeat, &r->error);
}

static int32_t send_heartbeats(struct rank *r)
{
    int32_t rc = at_work(r);

    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(r->comm, &r->error);
    return rc < 0 ? rc : gr_comm_agree(r->comm, rc, &r->error);
}

static void test_heartbeats(int32_t n_ranks, enum work work, const char *words)
{
    static struct ranks ranks;
    const int32_t       status = work == WORKS_ON ? GRAFT_OK : GRAFT_ERR_PEER;
    const char         *fault;
    int                 good = 1;

    ranks_init(&ranks, n_ranks, 0.5, send_heartbeats, &work);
    ranks_run(&ranks);
    for (int32_t i = 0; i < n_ranks; i++) {
        const struct rank *r = &ranks.at[i];

        good = good && r->rc == status && (work == WORKS_ON || strstr(r->error.message, words) != NULL) &&
               (work == WORKS_ON || i == (work == MISSES_A_RANK ? 3 : 1) || r->seconds < 1.4);
        if (!good) diag("rank %d: %d in %.1f s: %s", i, r->rc, r->seconds, r->error.message);
    }
    fault = ranks_fini(&ranks);
    ok(good && fault == NULL, "on %d ranks, one works three times as long as the deadline of the others, and %s %s",
       n_ranks,
       work == WORKS_ON        ? "says so"
       : work == FALLS_SILENT  ? "is silent: "
       : work == MISSES_A_RANK ? "another sleeps: "
                               : "another fails: ",
       work == WORKS_ON ? "" : ranks.at[0].error.message);
}

/* Rank 2 is silent. Rank 1 waits for rank 0, which waits for rank 2, but starts only after rank 1 has stopped to
 * wait. */
static int32_t come_late(struct rank *r)
{
    static const double begins[] = { 1.2, 0, 4 }; /* when each rank starts, in seconds */
    int32_t             rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    usleep((useconds_t)(1e6 * begins[r->rank] * r->all->timeout));
    return gr_comm_barrier(r->comm, &r->error);
}

static void test_late_wait(void)
{
    static struct ranks ranks;
    int                 good = 1;
    const char         *fault;

    ranks_init(&ranks, 3, 1, come_late, NULL);
    ranks_run(&ranks);
    for (int i = 0; i < 3; i++) {
        const struct rank *r = &ranks.at[i];

        good &= r->rc == GRAFT_ERR_PEER && r->error.rank == 2 && strstr(r->error.message, "rank 2 did not") != NULL;
        if (i < 2) good &= r->seconds < 3;
        if (!good) diag("rank %d: %d in %.1f s: %s", i, r->rc, r->seconds, r->error.message);
    }
    fault = ranks_fini(&ranks);
    ok(good && fault == NULL, "a silent rank is named in the error, also on a rank that calls late: %s",
       ranks.at[0].error.message);
}

static int32_t make_comm(struct rank *r)
{
    return gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error);
}

static void test_exchange_memory(void)
{
    static struct ranks ranks;
    int                 failed = 0, wrong = 0;
    const char         *fault = NULL;

    for (int64_t k = 0; k < 200 && fault == NULL; k++) {
        int peers = 0, made = 0;

        ranks_init(&ranks, 3, 5, make_comm, NULL);
        atomic_store(&ranks.fail_at, k);
        ranks_run(&ranks);
        for (int i = 0; i < 3; i++) {
            made += ranks.at[i].rc == GRAFT_OK; /* a rank that succeeded before it could hear of the failure */
            peers += ranks.at[i].rc == GRAFT_ERR_PEER && strstr(ranks.at[i].error.message, "no memory for") != NULL;
            wrong += ranks.at[i].seconds > 4;
        }
        failed += atomic_load(&ranks.fail_at) < 0;
        wrong += peers + made != 3 || (atomic_load(&ranks.fail_at) < 0) != (made < 3);
        if (wrong == 1) diag("allocation %lld: %s", (long long)k, ranks.at[0].error.message);
        fault = ranks_fini(&ranks);
        if (atomic_load(&ranks.fail_at) >= 0) break;
    }
    ok(failed > 10 && wrong == 0 && fault == NULL,
       "%d allocations fail in turn on one rank: the other ranks learn why %s", failed, fault != NULL ? fault : "");
}

/* A communicator is made and destroyed. For the next one a rank has no memory, while the others may still be in the
 * first call or already in the second. Then all try once more. */
static int32_t exchange_make_again(struct rank *r)
{
    const int64_t fails_at = *(int64_t *)r->all->arg;
    graft_error   again = { .size = sizeof again };
    double        begin;
    int32_t       rc;

    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    TRY(gr_comm_barrier(r->comm, &r->error));
    gr_comm_destroy(r->comm);
    r->comm = NULL;
    if (r->rank == r->all->fail_rank) atomic_store(&r->all->fail_at, fails_at);
    else if (r->rank == 0) usleep(20000);
    rc = gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(r->comm, &r->error);
    if (rc == GRAFT_OK) return rc;
    gr_comm_destroy(r->comm);
    r->comm = NULL;
    begin = gr_seconds();
    if (gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &again) != GRAFT_ERR_PEER)
        rank_blame(r, "a comm was made after a failure");
    if (strstr(again.message, "cannot be used again") == NULL) rank_blame(r, "the second try says: %s", again.message);
    if (gr_seconds() - begin > 5) rank_blame(r, "the second try took %.1f s", gr_seconds() - begin);
    return rc;
}

static void test_again(int32_t who)
{
    static struct ranks ranks;
    const char         *fault = NULL;
    int                 failed = 0, wrong = 0;
    int64_t             k = 0;

    for (; k < 200 && fault == NULL; k++) {
        int same = 0;

        ranks_init(&ranks, 3, 20, exchange_make_again, &k);
        ranks.fail_rank = who;
        ranks_run(&ranks);
        for (int i = 0; i < 3; i++) {
            same +=
                ranks.at[i].rc == ranks.at[0].rc && strcmp(ranks.at[i].error.message, ranks.at[0].error.message) == 0;
            wrong += ranks.at[i].seconds > 15;
        }
        if (same != 3 || (ranks.at[0].rc < 0 && strstr(ranks.at[0].error.message, "no memory for") == NULL)) wrong++;
        if (wrong == 1) diag("allocation %lld: %s", (long long)k, ranks.at[0].error.message);
        failed += ranks.at[0].rc < 0;
        fault = ranks_fini(&ranks);
        if (atomic_load(&ranks.fail_at) >= 0) break;
    }
    ok(failed > 5 && wrong == 0 && fault == NULL,
       "%d allocations of rank %d for a second comm fail in turn, and a third comm is refused%s%s", failed, who,
       fault != NULL ? ": " : "", fault != NULL ? fault : "");
}

int main(void)
{
    alarm(100);
    test_alone();
    test_collectives();
    test_share();
    test_lost(0, "all ranks must make the same calls");
    test_lost(1, ", expected ");
    test_heartbeats(2, WORKS_ON, "");
    test_heartbeats(7, WORKS_ON, "");
    test_heartbeats(4, FALLS_SILENT, "rank 1 did not answer");
    test_heartbeats(5, LOSES_A_RANK, "rank 2: out of luck");
    test_heartbeats(4, MISSES_A_RANK, "rank 3 did not answer");
    test_late_wait();
    test_exchange_memory();
    test_again(0);
    test_again(1);
    test_again(2);
    return done();
}
