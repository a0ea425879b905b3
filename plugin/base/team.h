/* A team of threads, and optionally the times at which each thread worked (see `times` of graft_mxm_args).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "base/fp.h"
#include "base/limits.h"
#include "base/pool.h"

#include <omp.h>
#include <stdint.h>

/** What `times` has for each thread: the time of its first begin, of its last end, and the seconds it waited. */
enum { GR_TIME_BEGIN, GR_TIME_END, GR_TIME_WAITED, GR_TIMES };

struct gr_team {
    int     threads;              /* largest number of threads */
    double *times;                /* [threads x GR_TIMES], or NULL */
    void (*poll)(void *poll_arg); /* NULL, or called now and then by the calling thread to poll messages */
    void *poll_arg;
};

/** Record that a thread begins its share of a loop. The time since the end of its last share is waiting time. Called in
 *  a parallel region. */
static inline void gr_team_begin(double *times)
{
    double *mine, now;

    if (times == NULL) return;
    mine = times + GR_TIMES * omp_get_thread_num();
    now = gr_seconds();
    if (mine[GR_TIME_BEGIN] == 0) mine[GR_TIME_BEGIN] = now;
    else mine[GR_TIME_WAITED] += now - mine[GR_TIME_END];
}

/** Record that a thread has ended its share of a loop, before it waits for other threads. */
static inline void gr_team_end(double *times)
{
    if (times != NULL) times[GR_TIMES * omp_get_thread_num() + GR_TIME_END] = gr_seconds();
}

/** Call poll() in the calling thread of the team; for the time between two chunks of a loop. */
static inline void gr_team_poll(struct gr_team team)
{
    if (team.poll != NULL && omp_get_thread_num() == 0) team.poll(team.poll_arg);
}

/** The number of threads for a loop: `threads` if it has enough operations on elements to justify a team, which costs
 *  some microseconds, else 1. Any other number would cost more, because OpenMP would end threads and start them
 *  again. */
static inline int gr_threads_worth(int threads, int64_t operations)
{
    return threads > 1 && operations >= GR_OPERATIONS_OF_THREAD ? gr_pool_team(threads) : 1;
}
