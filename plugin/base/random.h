/* Counter-based random bits: Philox 4x32-10 (Salmon et al., SC 2011). The bits are a function of key and counter, so
 * they are the same for any number of threads, ranks and calls, in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/** The purpose of the bits; each purpose has its own stream. */
enum gr_random_purpose {
    GR_RANDOM_INIT = 1,
    GR_RANDOM_DROPOUT = 2,
    GR_RANDOM_PARTITION = 3,
    GR_RANDOM_FINGERPRINT = 4,
    GR_RANDOM_CODEC = 5,
    GR_RANDOM_LABELS = 6,
    GR_RANDOM_ATTENTION = 7,
    GR_RANDOM_SAMPLE = 8,
    GR_RANDOM_SHUFFLE = 9,
    GR_RANDOM_PUSH = 10,
    GR_RANDOM_NOISE = 11,
    GR_RANDOM_STREAM = 12
};

/** The key of a stream (seed, purpose, epoch, layer): splitmix64 steps, each a bijection of the state. */
static inline uint64_t gr_random_key(uint64_t seed, enum gr_random_purpose purpose, uint64_t epoch, uint64_t layer)
{
    const uint64_t word[3] = { (uint64_t)purpose, epoch, layer };
    uint64_t       key = seed;

    for (int i = 0; i < 3; i++) {
        key += 0x9E3779B97F4A7C15u + word[i];
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
        key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
        key ^= key >> 31;
    }
    return key;
}

enum { GR_RANDOM_ROUNDS = 10 };

/** Apply one round to a counter, with one key. */
static inline void gr_random_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t k0, uint32_t k1)
{
    const uint64_t p0 = (uint64_t)0xD2511F53u * *c0, p1 = (uint64_t)0xCD9E8D57u * *c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ *c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ *c3 ^ k1;

    *c1 = (uint32_t)p1;
    *c3 = (uint32_t)p0;
    *c0 = n0;
    *c2 = n2;
}

static inline void gr_random_next_key(uint32_t *k0, uint32_t *k1)
{
    *k0 += 0x9E3779B9u;
    *k1 += 0xBB67AE85u;
}

/** 128 random bits for (key, vertex, block). For a matrix, a vertex is a row, and block c has the bits of columns 8c ..
 *  8c+7 if an element uses 16 bits, or 4c .. 4c+3 if it uses 32. */
static inline void gr_random_block(uint64_t key, uint64_t vertex, uint64_t block, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    out[0] = (uint32_t)block;
    out[1] = (uint32_t)(block >> 32);
    out[2] = (uint32_t)vertex;
    out[3] = (uint32_t)(vertex >> 32);
    for (int round = 0; round < GR_RANDOM_ROUNDS; round++) {
        gr_random_round(&out[0], &out[1], &out[2], &out[3], k0, k1);
        gr_random_next_key(&k0, &k1);
    }
}
