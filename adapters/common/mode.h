/* Sets the floating-point mode of the threads of a team, as plugin/base/fp.h does. Each thread computes in the mode of
 * the caller, and has its own mode again after the parallel region.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MODE_H
#define MODE_H

#if defined(__x86_64__)

typedef unsigned mode_fp; /* MXCSR */

static inline mode_fp mode_get(void)
{
    mode_fp mode;

    __asm__ volatile("stmxcsr %0" : "=m"(mode) : : "memory");
    return mode;
}

static inline void mode_set(mode_fp mode)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(mode) : "memory");
}

#else

#include <fenv.h>

typedef fenv_t mode_fp;

static inline mode_fp mode_get(void)
{
    mode_fp mode;

    fegetenv(&mode);
    return mode;
}

static inline void mode_set(mode_fp mode)
{
    fesetenv(&mode);
}

#endif

/** Set a mode. \return the previous mode */
static inline mode_fp mode_swap(mode_fp mode)
{
    const mode_fp before = mode_get();

    mode_set(mode);
    return before;
}

#endif
