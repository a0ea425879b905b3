/* Measures the times of each thread of a team, as graft_mxm.h describes them. The functions are called inside a
 * parallel region. If `times` is NULL, nothing is measured.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TIMES_H
#define TIMES_H

#include <omp.h>
#include <stddef.h>
#include <time.h>

static inline double times_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Record that the thread begins or continues its share. */
static inline void times_begin(double *times)
{
    double *mine, now;

    if (times == NULL) return;
    mine = times + 3 * omp_get_thread_num();
    now = times_now();
    if (mine[0] == 0) mine[0] = now;
    else mine[2] += now - mine[1];
}

/** Record that the thread has finished its share, or a part of it. */
static inline void times_end(double *times)
{
    if (times != NULL) times[3 * omp_get_thread_num() + 1] = times_now();
}

#endif
