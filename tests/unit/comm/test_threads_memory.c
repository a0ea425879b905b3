/* Checks that the memory of the transport of threads does not grow with the number of messages. The memory after a
 * tenth of 2000 rounds is compared with the memory at the end. "test_threads_memory ROUNDS" makes another number of
 * rounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, N = 60, FEATURES = 7, CLASSES = 3, BURST = 16, TAG = 5 };

/* Bytes by which memory may grow, because a queue may by chance become longest late in a run. */
static const int64_t SLACK = 32768;

struct patience {
    int64_t               rounds;
    struct sample_dataset set;
    int64_t               bytes[2]; /* bytes after a tenth of the rounds, and at the end */
};

/* Record the memory, which belongs to the context of rank 0. Both records of a run follow the same steps. */
static void weigh(struct host *host, int64_t round)
{
    struct patience *p = host->all->arg;
    const int64_t    bytes = atomic_load(&host->live_bytes);

    if (host->rank != 0) return;
    if (round == p->rounds / 10) p->bytes[0] = bytes;
    if (round == p->rounds) p->bytes[1] = bytes;
}

static int32_t finish_message(const graft_transport *t, graft_request *request, graft_error *error)
{
    int32_t done = 0, rc = GRAFT_OK;

    while (rc == GRAFT_OK && !done) {
        rc = t->test(t->self, request, &done, error);
        if (rc == GRAFT_OK && !done) sched_yield();
    }
    return rc;
}

static int32_t pass_one(struct host *host, int32_t from, int32_t to, char *data, uint64_t bytes)
{
    const graft_transport *t = &host->transport;
    graft_request         *request = NULL;
    int32_t                rc = GRAFT_OK;

    if (host->rank == from) rc = t->send(t->self, to, TAG, data, bytes, &request, &host->error);
    else if (host->rank == to) rc = t->receive(t->self, from, TAG, data, bytes, &request, &host->error);
    return rc < 0 || request == NULL ? rc : finish_message(t, request, &host->error);
}

/* Send small messages in one direction. The message back is large, so that it is not copied. */
static int32_t one_way(struct host *host)
{
    const struct patience *p = host->all->arg;
    char                   data[4096] = "";
    int32_t                rc = GRAFT_OK;

    for (int64_t round = 1; round <= p->rounds && rc == GRAFT_OK; round++) {
        if (host->rank == 0) data[0] = (char)round;
        for (int i = 0; i < BURST && rc == GRAFT_OK; i++) rc = pass_one(host, 0, RANKS - 1, data, 100);
        if (rc == GRAFT_OK && host->rank != 1 && data[0] != (char)round) rc = GRAFT_ERR_STATE;
        if (rc == GRAFT_OK) rc = pass_one(host, RANKS - 1, 0, data, sizeof data);
        weigh(host, round);
    }
    return rc;
}

/* Make collective calls of the host, most of which go from one rank to the others. */
static int32_t broadcasts(struct host *host)
{
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, sizeof *t);
    const struct patience *p = host->all->arg;
    graft_group           *group = NULL;
    char                   data[64] = "";
    int32_t                rc = t->create(host->api->context, &host->transport, &group, &host->error);

    for (int64_t round = 1; round <= p->rounds && rc == GRAFT_OK; round++) {
        for (int i = 0; i < BURST / 4 && rc == GRAFT_OK; i++) {
            data[0] = host->rank == 0 ? (char)(round + i) : 0;
            rc = t->broadcast(group, 0, sizeof data, data, &host->error);
            if (rc == GRAFT_OK && data[0] != (char)(round + i)) rc = GRAFT_ERR_STATE;
        }
        if (rc == GRAFT_OK) rc = t->agree(group, GRAFT_OK, &host->error);
        weigh(host, round);
    }
    t->destroy(group);
    return rc;
}

static int32_t train_rounds(struct host *host)
{
    const struct patience *p = host->all->arg;
    struct host_trainer    t;
    int32_t                rc = host_trainer_create(host, &p->set.dataset, SLICES_EVEN, &t);

    for (int64_t round = 1; round <= p->rounds && rc == GRAFT_OK; round++) {
        graft_epoch epoch = output_epoch();

        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && !(epoch.loss > 0)) rc = GRAFT_ERR_STATE;
        weigh(host, round);
    }
    host_trainer_destroy(host, &t);
    return rc;
}

static void test_growth(const char *what, int32_t (*body)(struct host *host), int64_t rounds)
{
    static const char *const settings[] = { "layers=2",   "hidden=8",  "epochs=1000000000",
                                            "model=sage", "threads=1", "halo.timeout=60",
                                            NULL };
    static struct hosts      hosts;
    static struct patience   p;
    struct sample            sample = { 5 };
    const char              *fault;

    p = (struct patience){ .rounds = rounds };
    sample_dataset_init(&p.set, &sample, N, FEATURES, CLASSES, 0, 0);
    hosts_run(&hosts, RANKS, settings, body, &p);
    fault = hosts_fault(&hosts);
    if (!ok(fault == NULL && p.bytes[0] > 0 && p.bytes[1] <= p.bytes[0] + SLACK,
            "transport, %s: %lld bytes after %lld rounds, %lld bytes after %lld rounds", what, (long long)p.bytes[0],
            (long long)rounds / 10, (long long)p.bytes[1], (long long)rounds))
        diag("%s", fault != NULL ? fault : "memory grows");
    sample_dataset_fini(&p.set);
}

static void test_growth_of_all(const char *where, int64_t rounds)
{
    char name[64];

    snprintf(name, sizeof name, "messages one way%s", where);
    test_growth(name, one_way, rounds);
    snprintf(name, sizeof name, "broadcasts%s", where);
    test_growth(name, broadcasts, rounds);
    snprintf(name, sizeof name, "training%s", where);
    test_growth(name, train_rounds, rounds);
}

/* Bind all threads of this process to one processor, where a rank runs until it waits. */
static int pin(void)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all) != 0) return 0;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

int main(int n_args, char **args)
{
    const int64_t rounds = n_args > 1 ? atoll(args[1]) : 2000;

    if (rounds < 10) return 2;
    test_growth_of_all("", rounds);
    if (pin()) test_growth_of_all(", on one processor", rounds);
    return done();
}
