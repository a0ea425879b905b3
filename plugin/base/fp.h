/* The floating-point environment of a thread: how it rounds, whether it flushes denormals, which exceptions trap, and
 * the flags of the exceptions it has seen. A public call runs with all traps masked (base/call.c). The environment
 * belongs to the thread, and the threads of a team keep the environment with which they started. So each parallel
 * region that computes with floats begins with gr_fp_swap() and ends with gr_fp_set().
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#if defined(__x86_64__)

/** The control register of SSE. Saving the environment of x87 would take fifty times as long; no code of the library
 *  uses it (abi/check_symbols tests this). */
struct gr_fp {
    unsigned mxcsr;
};

static inline struct gr_fp gr_fp_get(void)
{
    struct gr_fp fp;

    __asm__ volatile("stmxcsr %0" : "=m"(fp.mxcsr) : : "memory");
    return fp;
}

/** Set the environment. Being volatile, it stays in its place between the floating-point operations before and after
 *  it. */
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
    return 1; /* it may trap */
}

#endif

/** Set an environment. \return the previous one */
static inline struct gr_fp gr_fp_swap(struct gr_fp fp)
{
    const struct gr_fp before = gr_fp_get();

    gr_fp_set(fp);
    return before;
}

/** Mask all traps. \return the previous environment; gr_fp_set() of it also clears exception flags raised in between */
struct gr_fp gr_fp_hold(void);
