/* How much work a test does. Under a sanitizer or an emulator tests are many times slower, and a few cases find as much
 * as many, so variable GRAFT_TEST_FEWER reduces the number of cases.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EFFORT_H
#define EFFORT_H

#include <stdlib.h>

static inline int effort_fewer(void)
{
    const char *text = getenv("GRAFT_TEST_FEWER");

    return text != NULL ? atoi(text) : 1;
}

/** Tests number their cases so that each bit of the number is one setting. This is the step between the numbers of two
 * cases: 1, or 5 with GRAFT_TEST_FEWER. With step 5 each bit still has both values in some case, and each setting with
 * three values has all three. */
static inline int case_step(void)
{
    return effort_fewer() > 1 ? 5 : 1;
}

/** The number of repetitions of a random case: `usual`, or with GRAFT_TEST_FEWER=N an Nth of that, but at least 1. */
static inline int repeats(int usual)
{
    const int fewer = effort_fewer();

    return fewer > 1 && usual > fewer ? usual / fewer : fewer > 1 ? 1 : usual;
}

/** Whether the test may use finite numbers only. Variable GRAFT_TEST_FINITE asks for that, because lanes/traps runs
 *  tests with a library in which floating-point exceptions are trapped. */
static inline int only_finite(void)
{
    return getenv("GRAFT_TEST_FINITE") != NULL;
}

#endif
