/* How much a test does. Under a sanitizer everything is many times slower, and few cases find what many would.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EFFORT_H
#define EFFORT_H

#include <stdlib.h>

static inline int effort_fewer(void)
{
    const char *text = getenv("GRAFT_TEST_FEWER");

    return text != NULL ? atoi(text) : 1;
}

/** The step through numbers whose bits are settings: all of them, or with GRAFT_TEST_FEWER every fifth, which still
 *  has both values of each bit, and all of a setting with three. */
static inline int case_step(void)
{
    return effort_fewer() > 1 ? 5 : 1;
}

/** How often a random case is repeated: `usual` times, or with variable GRAFT_TEST_FEWER=N an Nth of that, but once. */
static inline int repeats(int usual)
{
    const int fewer = effort_fewer();

    return fewer > 1 && usual > fewer ? usual / fewer : fewer > 1 ? 1 : usual;
}

#endif
