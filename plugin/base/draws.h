/* Compute many random blocks at once, for loops that are compiled for wide registers.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "base/shuffle.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first draw of a word is its lower half");

/** GR_DRAWS: the number of 16-bit draws that loops over columns request at once. GR_DRAW_GROUP: the number of blocks
 *  that are computed at once. */
enum { GR_DRAWS = 128, GR_DRAW_GROUP = WIDE_BYTES / 8 };

/** A word in the lower half of each lane; the upper half is undefined. */
typedef uint64_t gr_draw_lanes __attribute__((vector_size(WIDE_BYTES)));
typedef int64_t  gr_draw_signed __attribute__((vector_size(WIDE_BYTES)));

/** Multiply the lower words of the lanes of two registers. Intrinsics are used because gcc 12 does not compile the
 *  plain expression to one instruction. */
static inline gr_draw_lanes gr_draw_products(gr_draw_lanes a, gr_draw_lanes factor)
{
#if !defined(__SSE2__)
    return (a & UINT32_MAX) * (factor & UINT32_MAX);
#elif WIDE_BYTES == 64
    return (gr_draw_lanes)_mm512_mul_epu32((__m512i)a, (__m512i)factor);
#elif WIDE_BYTES == 32
    return (gr_draw_lanes)_mm256_mul_epu32((__m256i)a, (__m256i)factor);
#else
    return (gr_draw_lanes)_mm_mul_epu32((__m128i)a, (__m128i)factor);
#endif
}

static inline gr_draw_lanes gr_draw_product(gr_draw_lanes a, uint32_t b)
{
    return gr_draw_products(a, (gr_draw_lanes){ 0 } + b);
}

/** Compute gr_random_round() in all lanes. */
static inline void gr_draw_round(gr_draw_lanes c[4], uint32_t k0, uint32_t k1)
{
    const gr_draw_lanes p0 = gr_draw_product(c[0], 0xD2511F53u), p1 = gr_draw_product(c[2], 0xCD9E8D57u);

    c[0] = p1 >> 32 ^ c[1] ^ k0;
    c[2] = p0 >> 32 ^ c[3] ^ k1;
    c[1] = p1;
    c[3] = p0;
}

/* The block of a group that lane k computes: even lanes have the lower half of the blocks, odd lanes the upper half. So
 * pairs of words in a register are neighbours in memory. */
static inline uint64_t gr_draw_lane(uint64_t k)
{
    return k / 2 + k % 2 * (GR_DRAW_GROUP / 2);
}

/* Write the words of the blocks of one group. Lanes have blocks as gr_draw_lane() says. */
static inline __attribute__((always_inline)) void gr_draw_group(uint64_t key, uint64_t vertex, gr_draw_lanes block,
                                                                void *draws)
{
    uint32_t      k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    gr_draw_lanes even, odd, c[4];

    for (uint64_t k = 0; k < GR_DRAW_GROUP; k++) {
        even[k] = k / 2 * 2 + k % 2 * GR_DRAW_GROUP;
        odd[k] = even[k] + 1;
    }
    c[0] = block;
    c[1] = c[0] >> 32;
    c[2] = (gr_draw_lanes){ 0 } + (uint32_t)vertex;
    c[3] = (gr_draw_lanes){ 0 } + (vertex >> 32);
    for (int round = 0; round < GR_RANDOM_ROUNDS; round++) {
        gr_draw_round(c, k0, k1);
        gr_random_next_key(&k0, &k1);
    }
    for (int k = 0; k < 2; k++) c[2 * k] = (c[2 * k] & UINT32_MAX) | c[2 * k + 1] << 32;
    c[1] = GR_SHUFFLE_TWO(c[0], c[2], even);
    c[3] = GR_SHUFFLE_TWO(c[0], c[2], odd);
    memcpy(draws, &c[1], sizeof c[1]);
    memcpy((char *)draws + WIDE_BYTES, &c[3], sizeof c[3]);
}

/** Write the words of gr_random_block() for (key, vertex, first) and the following blocks. Each block has four words,
 *  or eight 16-bit draws. `draws` has space for a multiple of GR_DRAW_GROUP blocks. This function is not inlined,
 *  because the keys of all rounds would occupy the registers of the caller. */
static __attribute__((noinline, unused)) void gr_draw(uint64_t key, uint64_t vertex, uint64_t first, int blocks,
                                                      void *draws)
{
    gr_draw_lanes lane;

    for (uint64_t k = 0; k < GR_DRAW_GROUP; k++) lane[k] = gr_draw_lane(k);
    for (int at = 0; at < blocks; at += GR_DRAW_GROUP)
        gr_draw_group(key, vertex, lane + (first + (uint64_t)at), (char *)draws + 16 * at);
}
