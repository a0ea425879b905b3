/* The effort of a test. Under a sanitizer tests are many times slower, and few cases find as much as many.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EFFORT_H
#define EFFORT_H

#include <stdlib.h>

static inline int effort_fewer(void)
{
    const char *text = getenv("GRAFT_TEST_FEWER");

    return text != NULL ? atoi(text) : 1;
}

/** The step through numbers whose bits are settings: all numbers, or with GRAFT_TEST_FEWER every fifth, which still has
 *  both values of each bit, and all three values of a setting with three. */
static inline int case_step(void)
{
    return effort_fewer() > 1 ? 5 : 1;
}

/** The repetitions of a random case: `usual`, or with variable GRAFT_TEST_FEWER=N an Nth of them, at least one. */
static inline int repeats(int usual)
{
    const int fewer = effort_fewer();

    return fewer > 1 && usual > fewer ? usual / fewer : fewer > 1 ? 1 : usual;
}

/** Whether all numbers are to be finite: with variable GRAFT_TEST_FINITE, for a library that traps (lanes/traps). */
static inline int only_finite(void)
{
    return getenv("GRAFT_TEST_FINITE") != NULL;
}

#endif
