/* The threads that OpenMP keeps for the calling thread, which is one of them, between its parallel loops.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_POOL_H
#define GR_BASE_POOL_H

/** Have OpenMP keep `wanted` threads, or as many as the system starts. A loop of the calling thread may use as many, or
 *  only the calling one. Not in a parallel region. \return how many there are, at least 1 */
int gr_pool_of(int wanted);

#endif
