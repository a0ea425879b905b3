/* Measures the collective calls of a host: the microseconds of agree(), of the maximum of one number, and of gathers
 * of two sizes, whose results all ranks receive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "harness/hosts.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: bench_calls [RANKS [CALLS]]\n"
    "2 RANKS (1 to 8), which are threads of this process; under mpiexec its processes are the ranks. 2000 CALLS of\n"
    "each kind.";

enum { AGREE, MAXIMUM, GATHER_SMALL, GATHER_LARGE, KINDS };
static const char *const kind_name[KINDS] = { "agree", "maximum", "gather, 64 bytes", "gather, 64 KiB" };
static const int64_t     kind_bytes[KINDS] = { 0, 8, 64, 65536 };

struct bench {
    int     calls;
    double *seconds; /* [calls] times of the calls of one kind, on rank 0 */
    double  median[KINDS], worst[KINDS];
};

static int32_t call(const graft_group_api *t, graft_group *group, struct host *host, int kind, char *all)
{
    int64_t bytes[HOSTS_MOST], most = host->rank;

    for (int32_t q = 0; q < host->n_ranks; q++) bytes[q] = kind_bytes[kind];
    if (kind == AGREE) return t->agree(group, GRAFT_OK, &host->error);
    if (kind == MAXIMUM) return t->maximum(group, 1, &most, &host->error);
    return t->gather(group, -1, bytes, all, all + kind_bytes[kind], &host->error);
}

static int32_t measure(struct host *host)
{
    struct bench          *b = host->all->arg;
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, sizeof *t);
    graft_group           *group = NULL;
    char                  *all = bench_new((size_t)(host->n_ranks + 1), (size_t)kind_bytes[GATHER_LARGE], 1);
    int32_t                rc = t->create(host->api->context, &host->transport, &group, &host->error);

    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = -b->calls / 10; i < b->calls && rc == GRAFT_OK; i++) {
            const double begin = bench_seconds();

            rc = call(t, group, host, kind, all);
            if (host->rank == 0 && i >= 0) b->seconds[i] = bench_seconds() - begin;
        }
        if (host->rank > 0 || rc < 0) continue;
        b->median[kind] = bench_median(b->seconds, b->calls);
        b->worst[kind] = b->seconds[b->calls * 99 / 100]; /* bench_median() has sorted the times */
    }
    t->destroy(group);
    free(all);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const settings[] = { "threads=1", NULL };
    static struct hosts      hosts;
    const int32_t            n_ranks = argc > 1 ? atoi(argv[1]) : 2;
    struct bench             b = { .calls = argc > 2 ? atoi(argv[2]) : 2000 };

    if (argc > 3 || n_ranks < 1 || n_ranks > HOSTS_MOST || b.calls < 1) bench_die("%s", usage);
    b.seconds = bench_new((size_t)b.calls, sizeof *b.seconds, 1);
    if (hosts_are_launched()) hosts_run_launched(&hosts, settings, measure, &b);
    else hosts_run(&hosts, n_ranks, settings, measure, &b);
    if (hosts_fault(&hosts) != NULL) bench_die("%s", hosts_fault(&hosts));
    if (hosts.at[0].rank == 0) {
        printf("%d ranks, transport %s, %d calls of each kind\n", hosts.at[0].n_ranks, hosts.at[0].transport.name,
               b.calls);
        for (int kind = 0; kind < KINDS; kind++)
            printf("  %-18s %8.1f us (median), 99 of 100 below %.1f\n", kind_name[kind], 1e6 * b.median[kind],
                   1e6 * b.worst[kind]);
    }
    free(b.seconds);
    return 0;
}
