/* Many random blocks side by side, for loops that are compiled for wide registers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DRAWS_H
#define GR_DRAWS_H

#include "base/random.h"

/** Blocks of eight draws that are made at once, at most; and one more, for those who begin inside of a block. */
enum { GR_DRAW_BLOCKS = 16, GR_DRAWS = 8 * GR_DRAW_BLOCKS };

/** Draws of 16 bits: those of gr_random_block() for (key, vertex, first) and the blocks behind it, eight of each. The
 *  number of blocks is not made a constant, or gcc unrolls the loops in place of vectorising them. */
static inline void gr_draw(uint64_t key, uint64_t vertex, uint64_t first, int blocks, uint16_t *draws)
{
    uint32_t c0[GR_DRAW_BLOCKS + 1], c1[GR_DRAW_BLOCKS + 1], c2[GR_DRAW_BLOCKS + 1], c3[GR_DRAW_BLOCKS + 1];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int i = 0; i < blocks; i++) {
        c0[i] = (uint32_t)(first + (uint64_t)i);
        c1[i] = (uint32_t)((first + (uint64_t)i) >> 32);
        c2[i] = (uint32_t)vertex;
        c3[i] = (uint32_t)(vertex >> 32);
    }
    for (int round = 0; round < GR_RANDOM_ROUNDS; round++) {
        for (int i = 0; i < blocks; i++) gr_random_round(&c0[i], &c1[i], &c2[i], &c3[i], k0, k1);
        gr_random_next_key(&k0, &k1);
    }
    for (int i = 0; i < blocks; i++) {
        const uint32_t word[4] = { c0[i], c1[i], c2[i], c3[i] };

        for (int k = 0; k < 8; k++) draws[8 * i + k] = (uint16_t)(word[k / 2] >> 16 * (k & 1));
    }
}

#endif
