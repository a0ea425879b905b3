/* Checks the collective calls that a host makes itself (sum, maximum, gather, broadcast, agree), over transports that
 * the library uses for a graph at the same time. Sums must be bitwise those of the documented order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

enum { COUNT = 1003, MOST = 8 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        snprintf(host->error.message, sizeof host->error.message, "rank %d: not so: %s", host->rank, #condition);      \
        rc = host->error.code = GRAFT_ERR_FORMAT;                                                                      \
        goto done;                                                                                                     \
    } while (0)

/* The number of rank q at place i in a type. The sum over ranks depends on the order of addition. */
static double number_at(int32_t q, int i, graft_dtype type)
{
    struct sample sample = { (uint64_t)(7919 * q + i) };
    const double  number = sample_real(&sample, -1, 1) * ((q + i) % 3 == 0 ? 1e9 : 1e-9);

    if (type == GRAFT_I64) return 1e15 * (q + 1) + i;
    return type == GRAFT_F32 ? (double)(float)number : number;
}

/* The sum over ranks in the order of recursive halving: ranks beyond the largest power of 2 are added first, then pairs
 * of ranks at half of the distance each time. */
static double sum_at(int32_t n_ranks, int i, graft_dtype type)
{
    double  sum[MOST];
    int32_t ranks = 1;

    for (int32_t q = 0; q < n_ranks; q++) sum[q] = number_at(q, i, type);
    while (ranks <= n_ranks / 2) ranks *= 2;
    for (int32_t q = ranks; q < n_ranks; q++) sum[q - ranks] += sum[q];
    for (int32_t half = ranks / 2; half > 0; half /= 2)
        for (int32_t q = 0; q < half; q++) sum[q] += sum[q + half];
    return type == GRAFT_F32 ? (double)(float)sum[0] : sum[0];
}

/* Whether adding in the order of ranks would give another result at some place. */
static int depends_on_order(int32_t n_ranks)
{
    for (int i = 0; i < COUNT; i++) {
        double sum = 0;

        for (int32_t q = 0; q < n_ranks; q++) sum += number_at(q, i, GRAFT_F64);
        if (sum != sum_at(n_ranks, i, GRAFT_F64)) return 1;
    }
    return 0;
}

static int32_t group_sums(struct host *host, const graft_group_api *t, graft_group *group)
{
    static const graft_dtype types[] = { GRAFT_F32, GRAFT_F64, GRAFT_I64 };
    double                   values[COUNT];
    int64_t                  most[2] = { host->rank, -host->rank };
    int32_t                  rc = GRAFT_OK;

    for (int k = 0; k < 3; k++) {
        const int count = k == 2 ? COUNT : COUNT - k; /* the last ranks have shorter segments */

        for (int i = 0; i < count; i++) sample_put(values, types[k], i, number_at(host->rank, i, types[k]));
        TRY(t->sum(group, types[k], count, values, &host->error));
        for (int i = 0; i < count; i++) EXPECT(sample_at(values, types[k], i) == sum_at(host->n_ranks, i, types[k]));
    }
    TRY(t->maximum(group, 2, most, &host->error));
    EXPECT(most[0] == host->n_ranks - 1 && most[1] == 0);
done:
    return rc;
}

/* Gather 100 q bytes of the letter 'a' + q from rank q; rank 0 has none. */
static int32_t group_gathers(struct host *host, const graft_group_api *t, graft_group *group)
{
    int64_t bytes[HOSTS_MOST], total = 0;
    char    mine[1000], all[10000];
    int32_t rc = GRAFT_OK;

    for (int32_t q = 0; q < host->n_ranks; q++) total += bytes[q] = 100 * q;
    memset(mine, 'a' + host->rank, sizeof mine);
    for (int32_t root = -1; root < host->n_ranks; root++) {
        const int receives = root < 0 || root == host->rank;
        int64_t   at = 0;

        memset(all, '?', sizeof all);
        TRY(t->gather(group, root, bytes, mine, receives ? all : NULL, &host->error));
        for (int32_t q = 0; q < host->n_ranks; q++)
            for (int64_t i = 0; i < bytes[q]; i++) EXPECT(all[at++] == (receives ? 'a' + q : '?'));
        EXPECT(all[total] == '?');
    }
    for (int32_t root = 0; root < host->n_ranks; root++) {
        memset(mine, 'A' + host->rank, sizeof mine);
        TRY(t->broadcast(group, root, 999, mine, &host->error));
        for (int i = 0; i < 1000; i++) EXPECT(mine[i] == 'A' + (i < 999 ? root : host->rank));
    }
done:
    return rc;
}

/* All ranks must hear of the lowest rank that fails, and the group can be used again. */
static int32_t group_agrees(struct host *host, const graft_group_api *t, graft_group *group)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        expected[64];
    int32_t     rc = GRAFT_OK, found;

    for (int32_t first = 0; first < host->n_ranks; first++) {
        snprintf(error.message, sizeof error.message, "no disk %d", host->rank);
        snprintf(expected, sizeof expected, "%sno disk %d", host->n_ranks > 1 ? "rank 0: " : "", first);
        if (host->n_ranks > 1) expected[5] = (char)('0' + first);
        found = t->agree(group, host->rank >= first ? -1000 - host->rank : 5, &error);
        EXPECT(found == -1000 - first && error.code == found && error.rank == first);
        EXPECT(strcmp(error.message, expected) == 0);
        TRY(t->agree(group, GRAFT_OK, &host->error));
    }
done:
    return rc;
}

static int32_t group_body(struct host *host)
{
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, GRAFT_HAS(graft_group_api, destroy));
    graft_slice            nothing = GRAFT_INIT(graft_slice);
    graft_group           *group = NULL;
    graft_graph           *graph = NULL;
    int32_t                rc;

    TRY(t->create(host->api->context, &host->transport, &group, &host->error));
    TRY(group_sums(host, t, group));
    TRY(host->graphs->create(host->api->context, &host->transport, &nothing, &graph, &host->error));
    TRY(group_gathers(host, t, group));
    TRY(group_agrees(host, t, group));
    host->graphs->destroy(graph);
    graph = NULL;
    TRY(group_sums(host, t, group));
done:
    host->graphs->destroy(graph);
    t->destroy(group);
    return rc;
}

static void test_group_calls(int32_t n_ranks)
{
    static const char *const none[] = { NULL };
    static struct hosts      hosts;

    hosts_run(&hosts, n_ranks, none, group_body, NULL);
    ok(hosts_fault(&hosts) == NULL, "%d ranks sum, gather, broadcast and agree while a graph communicates: %s", n_ranks,
       hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "right");
    ok(n_ranks < 3 || depends_on_order(n_ranks), "%d ranks: sums in another order would not be bitwise identical",
       n_ranks);
}

/* Rank 1 makes a mistake in a call of the others. */
enum mistake { LEAVES, NO_MEMORY, OTHER_CALL, FEWER, OTHER_TYPE, NO_VALUES, OTHER_ROOT, OTHER_BYTES, MISTAKES };

static int32_t call_wrong(struct host *host, const graft_group_api *t, graft_group *group, enum mistake mistake,
                          double *values)
{
    const int wrong = host->rank == 1;
    int64_t   bytes[3] = { 8, wrong && mistake == OTHER_BYTES ? 16 : 8, 8 }, numbers[3] = { 0 };
    double    all[8];

    if (mistake == OTHER_ROOT) return t->broadcast(group, wrong ? 2 : 0, 8, values, &host->error);
    if (mistake == OTHER_BYTES) return t->gather(group, -1, bytes, values, all, &host->error);
    if (mistake == OTHER_CALL && wrong) return t->maximum(group, 3, numbers, &host->error);
    return t->sum(group, wrong && mistake == OTHER_TYPE ? GRAFT_I64 : GRAFT_F64, wrong && mistake == FEWER ? 2 : 3,
                  wrong && mistake == NO_VALUES ? NULL : values, &host->error);
}

static int32_t group_wrong(struct host *host)
{
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, GRAFT_HAS(graft_group_api, destroy));
    const enum mistake     mistake = *(const enum mistake *)host->all->arg;
    graft_group           *group = NULL;
    double                 values[3] = { 7, 7, 7 };
    int32_t                rc, wrong;

    TRY(t->create(host->api->context, &host->transport, &group, &host->error));
    if (host->rank == 1 && mistake == LEAVES) goto done;
    if (host->rank == 1 && mistake == NO_MEMORY) host->fail_at = 0;
    wrong = call_wrong(host, t, group, mistake, values);
    host->fail_at = -1;
    EXPECT(values[0] == 7 && values[1] == 7 && values[2] == 7);
    rc = t->sum(group, GRAFT_F64, 1, values, NULL);
    EXPECT(mistake == LEAVES ? rc == GRAFT_ERR_PEER : rc == GRAFT_OK && values[0] == 21);
    rc = wrong;
done:
    t->destroy(group);
    return rc;
}

static void test_group_mistake(enum mistake mistake, const char *what, int32_t status, const char *words)
{
    static const char *const settings[] = { "halo.timeout=2", NULL };
    static struct hosts      hosts;
    int                      right = 1;

    hosts_run(&hosts, 3, settings, group_wrong, &mistake);
    for (int32_t p = 0; p < 3; p++) {
        if (mistake == LEAVES && p == 1) continue;
        right &= hosts.at[p].rc == status && hosts.at[p].seconds < 15;
        right &= strstr(hosts.at[p].error.message, words) != NULL;
        right &= strcmp(hosts.at[p].error.message, hosts.at[0].error.message) == 0;
    }
    ok(right && hosts.error.code == 0, "on a rank %s: the statuses are %d %d %d, %s", what, hosts.at[0].rc,
       hosts.at[1].rc, hosts.at[2].rc, hosts.at[0].error.message);
}

static void test_group_mistakes(void)
{
    test_group_mistake(LEAVES, "leaves", GRAFT_ERR_PEER, "rank 1");
    test_group_mistake(NO_MEMORY, "has no memory", GRAFT_ERR_NOMEM, "rank 1: ");
    test_group_mistake(OTHER_CALL, "makes another call", GRAFT_ERR_ARG, "is sum on rank 0, maximum on rank 1");
    test_group_mistake(FEWER, "passes fewer", GRAFT_ERR_ARG, "count");
    test_group_mistake(OTHER_TYPE, "sums other types", GRAFT_ERR_ARG, "dtype");
    test_group_mistake(NO_VALUES, "passes null", GRAFT_ERR_ARG, "values is null");
    test_group_mistake(OTHER_ROOT, "has another root", GRAFT_ERR_ARG, "root is 0");
    test_group_mistake(OTHER_BYTES, "gathers other bytes", GRAFT_ERR_ARG, "bytes");
}

int main(void)
{
    alarm(300);
    for (int32_t n_ranks = 1; n_ranks <= 5; n_ranks++) test_group_calls(n_ranks);
    test_group_mistakes();
    return done();
}
