/* The threads that OpenMP keeps between parallel loops for the calling thread, including that thread.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fp.h"

/** Mark the begin and the end of a host's call in this thread. Threads that OpenMP starts in between get the
 *  floating-point environment *host, as if the host had started them. In a call that the host makes in a callback, both
 *  functions do nothing. */
void gr_pool_enter(const struct gr_fp *host);
void gr_pool_leave(const struct gr_fp *host);

/** Make OpenMP keep at least `wanted` threads, or as many as the system can start. Not for parallel regions.
 *  \return `wanted`, or the number of threads that exist if that is less; at least 1 */
int gr_pool_reach(int wanted);

/** The number of threads in the last team of the calling thread, which OpenMP keeps; 1 before the first team. */
int gr_pool_size(void);

/** As gr_pool_reach(). Call it just before a loop that runs in the returned number of threads, or in one: OpenMP ends
 *  threads that a team does not use. */
int gr_pool_team(int wanted);
