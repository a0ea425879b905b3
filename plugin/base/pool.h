/* The threads that OpenMP keeps for the calling thread, which is one of them, between its parallel loops.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_POOL_H
#define GR_BASE_POOL_H

/** Have OpenMP keep `wanted` threads or more, or as many as the system starts. Not in a parallel region.
 *  \return `wanted`, or how many there are, at least 1 */
int gr_pool_reach(int wanted);

/** The threads of the last team of the calling thread, which OpenMP keeps; 1 before the first one. */
int gr_pool_size(void);

/** The same as gr_pool_reach() just before a loop, which runs in as many threads as returned, or in one: OpenMP ends
 *  the others. */
int gr_pool_team(int wanted);

#endif
