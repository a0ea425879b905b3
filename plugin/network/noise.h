/* Gaussian noise by the method of Box and Muller (1958). It depends on seed, step, pair, id of the node and column
 * alone, so it is the same on all copies of a node, and for any partition of the mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"

#include <math.h>

/** The number of draws from a block of random bits. */
enum { GR_NOISE_AT_ONCE = 4 };

static inline uint64_t gr_noise_key(int64_t seed, int64_t step, int64_t pair)
{
    return gr_random_key((uint64_t)seed, GR_RANDOM_NOISE, (uint64_t)step, (uint64_t)pair);
}

/** Compute draws of mean 0 and deviation 1, for columns 4 block to 4 block + 3 of a node. */
static inline void gr_noise(uint64_t key, int64_t node, int64_t block, double draws[GR_NOISE_AT_ONCE])
{
    const double tau = 6.28318530717958647692, unit = 1.0 / 4294967296.0;
    uint32_t     bits[4];

    gr_random_block(key, (uint64_t)node, (uint64_t)block, bits);
    for (int k = 0; k < GR_NOISE_AT_ONCE; k += 2) {
        const double radius = sqrt(-2 * log(((double)bits[k] + 1) * unit)), angle = tau * unit * (double)bits[k + 1];

        draws[k] = radius * cos(angle);
        draws[k + 1] = radius * sin(angle);
    }
}
