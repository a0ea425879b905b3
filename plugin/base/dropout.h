/* Dropout by a counter-based generator: the choice of kept elements is a function of (key, vertex, column), and takes
 * no memory.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"

/** Elements with a 16-bit draw below this threshold are dropped. */
static inline uint32_t gr_dropout_threshold(double share)
{
    const double threshold = share * 65536 + 0.5;

    return threshold > 65535 ? 65535 : (uint32_t)threshold;
}

/** Kept elements are multiplied by this, so that the expected value is unchanged. */
static inline double gr_dropout_scale(uint32_t threshold)
{
    return 65536.0 / (65536 - threshold);
}

/** The kept elements of columns 8*block .. 8*block+7, one bit each. */
static inline unsigned gr_dropout_kept(uint64_t key, int64_t vertex, int64_t block, uint32_t threshold)
{
    uint32_t draw[4];
    unsigned kept = 0;

    if (threshold == 0) return 255;
    gr_random_block(key, (uint64_t)vertex, (uint64_t)block, draw);
    for (unsigned k = 0; k < 8; k++) kept |= (unsigned)((draw[k / 2] >> 16 * (k & 1) & 65535) >= threshold) << k;
    return kept;
}
