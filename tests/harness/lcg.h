/* A linear congruential generator, for tests that need no random numbers of good quality.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LCG_H
#define LCG_H

#include <stdint.h>

/** The next pseudo-random number, which has 24 bits. */
static inline uint32_t lcg_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#endif
