/* How much a test does. Under a sanitizer everything is many times slower, and few repeats find what many would.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EFFORT_H
#define EFFORT_H

#include <stdlib.h>

/** How often a random case is repeated: `usual` times, or with variable GRAFT_TEST_FEWER=N an Nth of that, but once. */
static inline int repeats(int usual)
{
    const char *text = getenv("GRAFT_TEST_FEWER");
    const int   fewer = text != NULL ? atoi(text) : 1;

    return fewer > 1 && usual > fewer ? usual / fewer : fewer > 1 ? 1 : usual;
}

#endif
