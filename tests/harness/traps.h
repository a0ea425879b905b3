/* The traps of floating-point exceptions that a thread has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAPS_H
#define TRAPS_H

#include <fenv.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/** Those of SSE, which fegetexcept() does not ask: it reads the register of x87. */
static inline int traps_of_thread(void)
{
#ifdef __x86_64__
    return (int)(~_mm_getcsr() >> 7) & FE_ALL_EXCEPT;
#else
    return fegetexcept();
#endif
}

#endif
