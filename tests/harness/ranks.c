/* Runs ranks as threads of an internal test, see harness/ranks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/ranks.h"

#include "base/clock.h"
#include "comm/threads.h"
#include "entry/entry.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int32_t this_rank = -1;

static void *rank_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    struct ranks *ranks = self;
    const int     is_mine = ranks->fail_rank < 0 || ranks->fail_rank == this_rank;
    int64_t       live, peak;

    if (is_mine && atomic_load(&ranks->fail_at) >= 0 && atomic_fetch_sub(&ranks->fail_at, 1) == 0) return NULL;
    atomic_fetch_add(&ranks->allocations, 1);
    live = atomic_fetch_add(&ranks->live_bytes, (int64_t)bytes) + (int64_t)bytes;
    peak = atomic_load(&ranks->peak_bytes);
    while (peak < live && !atomic_compare_exchange_weak(&ranks->peak_bytes, &peak, live)) continue;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void *allocate_message(void *self, uint64_t bytes, uint64_t alignment)
{
    struct ranks *ranks = self;

    atomic_fetch_sub(&ranks->allocations, 1);
    return rank_allocate(self, bytes, alignment);
}

static void rank_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    struct ranks *ranks = self;

    (void)alignment;
    atomic_fetch_sub(&ranks->live_bytes, (int64_t)bytes);
    free(memory);
}

int rank_blame(struct rank *rank, const char *format, ...)
{
    va_list list;

    if (rank->fault[0] != '\0') return 0;
    va_start(list, format);
    vsnprintf(rank->fault, sizeof rank->fault, format, list);
    va_end(list);
    return 0;
}

static void must_succeed(int32_t rc, const graft_error *error)
{
    if (rc == GRAFT_OK) return;
    printf("Bail out! %s\n", error->message);
    exit(2);
}

graft_host ranks_host(struct ranks *ranks)
{
    graft_host host = GRAFT_INIT(graft_host);

    host.self = ranks;
    host.allocate = rank_allocate;
    host.deallocate = rank_deallocate;
    return host;
}

void ranks_init(struct ranks *ranks, int32_t n_ranks, double timeout, int32_t (*body)(struct rank *rank), void *arg)
{
    graft_transport transports[RANKS_MOST];
    graft_host      host = ranks_host(ranks);
    graft_error     error = GRAFT_INIT(graft_error);

    memset(ranks, 0, sizeof *ranks);
    ranks->n_ranks = n_ranks;
    ranks->timeout = timeout;
    ranks->body = body;
    ranks->arg = arg;
    ranks->fail_rank = -1;
    atomic_store(&ranks->fail_at, -1);
    host.allocate = allocate_message;
    must_succeed(gr_comm_threads_create(&host, n_ranks, transports, &error), &error);
    host.allocate = rank_allocate;
    for (int32_t i = 0; i < n_ranks; i++) {
        struct rank *rank = &ranks->at[i];

        must_succeed(gr_context_create(&host, &gr_all_options, &rank->context, &error), &error);
        rank->all = ranks;
        rank->rank = i;
        rank->n_ranks = n_ranks;
        rank->transport = transports[i];
        rank->error.size = sizeof rank->error;
    }
}

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    const double begin = gr_seconds();

    this_rank = rank->rank;
    rank->rc = rank->all->body(rank);
    rank->seconds = gr_seconds() - begin;
    return NULL;
}

void ranks_run(struct ranks *ranks)
{
    pthread_t thread[RANKS_MOST];

    for (int32_t i = 0; i < ranks->n_ranks; i++) {
        if (pthread_create(&thread[i], NULL, run_rank, &ranks->at[i]) == 0) continue;
        printf("Bail out! no thread\n");
        exit(2);
    }
    for (int32_t i = 0; i < ranks->n_ranks; i++) pthread_join(thread[i], NULL);
}

const char *ranks_fini(struct ranks *ranks)
{
    char *const fault = ranks->fault;

    for (int32_t i = 0; i < ranks->n_ranks; i++) gr_comm_destroy(ranks->at[i].comm);
    for (int32_t i = 0; i < ranks->n_ranks; i++) {
        struct rank *rank = &ranks->at[i];

        rank->transport.close(rank->transport.self);
        gr_context_destroy(rank->context);
        if (rank->fault[0] != '\0' && fault[0] == '\0')
            snprintf(fault, sizeof ranks->fault, "rank %d of %d: %s", i, ranks->n_ranks, rank->fault);
    }
    if (fault[0] == '\0' && atomic_load(&ranks->live_bytes) != 0)
        snprintf(fault, sizeof ranks->fault, "%lld bytes are left", (long long)atomic_load(&ranks->live_bytes));
    return fault[0] != '\0' ? fault : NULL;
}

const char *ranks_fini_well(struct ranks *ranks)
{
    for (int32_t i = 0; i < ranks->n_ranks; i++)
        if (ranks->at[i].rc < 0) rank_blame(&ranks->at[i], "%s", ranks->at[i].error.message);
    return ranks_fini(ranks);
}
