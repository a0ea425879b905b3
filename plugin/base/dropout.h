/* Dropout with a counter-based generator: whether an element is kept is a function of (key, vertex, column), and is
 * stored nowhere.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"

/** The threshold of 16-bit draws: elements with a smaller draw are dropped. */
static inline uint32_t gr_dropout_threshold(double share)
{
    const double threshold = share * 65536 + 0.5;

    return threshold > 65535 ? 65535 : (uint32_t)threshold;
}

/** The factor of kept elements, which leaves the expected value unchanged. */
static inline double gr_dropout_scale(uint32_t threshold)
{
    return 65536.0 / (65536 - threshold);
}

/** Draw which of the columns 8*block .. 8*block+7 are kept, as one bit each. */
static inline unsigned gr_dropout_kept(uint64_t key, int64_t vertex, int64_t block, uint32_t threshold)
{
    uint32_t draw[4];
    unsigned kept = 0;

    if (threshold == 0) return 255;
    gr_random_block(key, (uint64_t)vertex, (uint64_t)block, draw);
    for (unsigned k = 0; k < 8; k++) kept |= (unsigned)((draw[k / 2] >> 16 * (k & 1) & 65535) >= threshold) << k;
    return kept;
}
