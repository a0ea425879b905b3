/* The floating-point environment of a thread: how it rounds, whether it flushes denormals, which exceptions trap, and
 * the flags of the exceptions it has seen. A public call runs with all traps masked (base/call.c). The environment
 * belongs to the thread, and threads of a team keep what they had when they started. So each parallel region that
 * computes with floats begins with gr_fp_swap() and ends with gr_fp_set().
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#if defined(__x86_64__)

/** The register of SSE. No code of the library uses x87 (abi/check_symbols tests it), whose environment takes fifty
 *  times as long to save. */
struct gr_fp {
    unsigned mxcsr;
};

static inline struct gr_fp gr_fp_get(void)
{
    struct gr_fp fp;

    __asm__ volatile("stmxcsr %0" : "=m"(fp.mxcsr) : : "memory");
    return fp;
}

/** All floating-point operations of the program before this call precede it, all others follow it. */
static inline void gr_fp_set(struct gr_fp fp)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(fp.mxcsr) : "memory");
}

/** Whether any exception traps. */
static inline int gr_fp_traps(struct gr_fp fp)
{
    return (fp.mxcsr & 0x1F80) != 0x1F80;
}

#else

#include <fenv.h>

struct gr_fp {
    fenv_t environment;
};

static inline struct gr_fp gr_fp_get(void)
{
    struct gr_fp fp;

    fegetenv(&fp.environment);
    return fp;
}

static inline void gr_fp_set(struct gr_fp fp)
{
    fesetenv(&fp.environment);
}

static inline int gr_fp_traps(struct gr_fp fp)
{
    (void)fp;
    return 1; /* it may */
}

#endif

/** Set an environment. \return the one before */
static inline struct gr_fp gr_fp_swap(struct gr_fp fp)
{
    const struct gr_fp before = gr_fp_get();

    gr_fp_set(fp);
    return before;
}

/** Mask all traps. \return the environment before; gr_fp_set() of it also drops the flags that were raised since */
struct gr_fp gr_fp_hold(void);
