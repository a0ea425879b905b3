/* The threads that OpenMP keeps for the calling thread, which is one of them, between its parallel loops.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fp.h"

/** A call of the host begins and ends in this thread. Threads that are started in it have environment *host outside of
 *  the library's loops, as if the host had started them. A call that the host makes in a callback changes nothing. */
void gr_pool_enter(const struct gr_fp *host);
void gr_pool_leave(const struct gr_fp *host);

/** Let OpenMP keep `wanted` threads or more, or as many as the system starts. Not in a parallel region. \return
 *  `wanted`, or the number of threads, at least 1 */
int gr_pool_reach(int wanted);

/** The threads of the last team of the calling thread, which OpenMP keeps; 1 before the first one. */
int gr_pool_size(void);

/** As gr_pool_reach(), just before a loop that runs in the returned number of threads or in one, because OpenMP ends
 *  the other threads. */
int gr_pool_team(int wanted);
