/* Time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_CLOCK_H
#define GR_BASE_CLOCK_H

#include <time.h>

/** Seconds since some moment in the past, by a clock that nobody sets. */
static inline double gr_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
