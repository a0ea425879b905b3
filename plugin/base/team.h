/* A team of threads, and, where somebody wants to know, when each of them worked: see `times` of graft_mxm_args.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_TEAM_H
#define GR_BASE_TEAM_H

#include "base/clock.h"

#include <omp.h>
#include <stdint.h>

/** Numbers of a thread in `times`. */
enum { GR_TIME_BEGIN, GR_TIME_END, GR_TIME_WAITED, GR_TIMES };

struct gr_team {
    int     threads; /* at most so many */
    double *times;   /* [threads x GR_TIMES], or NULL */
    void (*poll)(
        void *poll_arg); /* called now and then by the thread that called, or NULL: messages are on their way */
    void *poll_arg;
};

/** A thread begins its share; what has passed since it ended the one before it waited. Inside a parallel region. */
static inline void gr_team_begin(double *times)
{
    double *mine, now;

    if (times == NULL) return;
    mine = times + GR_TIMES * omp_get_thread_num();
    now = gr_seconds();
    if (mine[GR_TIME_BEGIN] == 0) mine[GR_TIME_BEGIN] = now;
    else mine[GR_TIME_WAITED] += now - mine[GR_TIME_END];
}

/** It has ended it, or a part of it, and does not wait for the others yet. */
static inline void gr_team_end(double *times)
{
    if (times != NULL) times[GR_TIMES * omp_get_thread_num() + GR_TIME_END] = gr_seconds();
}

/** Between two parts of a loop. */
static inline void gr_team_poll(struct gr_team team)
{
    if (team.poll != NULL && omp_get_thread_num() == 0) team.poll(team.poll_arg);
}

/** Of `threads`, how many are worth waking for so many operations on elements: a team costs some microseconds. */
static inline int gr_threads_worth(int threads, int64_t operations)
{
    const int64_t worth = 1 + operations / 65536;

    return threads < worth ? threads : (int)worth;
}

#endif
