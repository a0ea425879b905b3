/* Tells which floating-point exceptions the calling thread traps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAPS_H
#define TRAPS_H

#include <fenv.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/** The traps of the SSE unit. fegetexcept() does not report them, because it reads the control word of the x87 unit. */
static inline int traps_of_thread(void)
{
#ifdef __x86_64__
    return (int)(~_mm_getcsr() >> 7) & FE_ALL_EXCEPT;
#else
    return fegetexcept();
#endif
}

#endif
