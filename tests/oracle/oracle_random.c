/* Makes the random draws of the oracle, by the definition of Philox and the documented keys and counters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>

static uint32_t high_half(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b / 4294967296u);
}

void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    const uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u; /* multipliers and Weyl constants from the paper */
    const uint32_t w0 = 0x9E3779B9u, w1 = 0xBB67AE85u;
    uint32_t       x[4] = { counter[0], counter[1], counter[2], counter[3] };

    for (uint32_t round = 0; round < 10; round++) {
        const uint32_t y[4] = { high_half(m1, x[2]) ^ x[1] ^ (key[0] + round * w0), m1 * x[2],
                                high_half(m0, x[0]) ^ x[3] ^ (key[1] + round * w1), m0 * x[0] };
        for (int i = 0; i < 4; i++) x[i] = y[i];
    }
    for (int i = 0; i < 4; i++) out[i] = x[i];
}

/** The number that splitmix64 returns in state `state` (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t splitmix(uint64_t state)
{
    uint64_t z = state + 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/** The key of a stream of random numbers: purpose (2 dropout, 6 labels, 7 attention), epoch and layer are mixed into
 * the seed one after the other. */
static uint64_t key_of(uint64_t seed, uint64_t purpose, uint64_t epoch, uint64_t layer)
{
    return splitmix(splitmix(splitmix(seed + purpose) + epoch) + layer);
}

/** Draw the four random words of one block of a vertex. */
static void draw_block(uint64_t key, uint64_t vertex, uint64_t block, uint32_t out[4])
{
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)vertex,
                                  (uint32_t)(vertex >> 32) };
    const uint32_t half_key[2] = { (uint32_t)key, (uint32_t)(key >> 32) };

    oracle_philox(counter, half_key, out);
}

/** The 16 random bits of one element. Block number column / 8 has four words, whose halves belong to eight columns. */
static uint32_t oracle_random_draw(uint64_t key, uint64_t vertex, uint64_t column)
{
    uint32_t out[4];

    draw_block(key, vertex, column / 8, out);
    return column % 2 == 0 ? out[column % 8 / 2] & 0xFFFFu : out[column % 8 / 2] >> 16;
}

void oracle_dropout(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t n, int64_t width, double *factor)
{
    const uint64_t key = key_of(seed, 2, (uint64_t)epoch, (uint64_t)layer);
    const double   threshold = fmin(round(p * 65536), 65535);

    for (int64_t v = 0; v < n; v++)
        for (int64_t j = 0; j < width; j++)
            factor[v * width + j] =
                oracle_random_draw(key, (uint64_t)v, (uint64_t)j) >= threshold ? 65536 / (65536 - threshold) : 0;
}

double oracle_attention_factor(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t v, int64_t u, int64_t k)
{
    const double   threshold = fmin(round(p * 65536), 65535);
    const uint32_t draw = oracle_random_draw(key_of(seed, 7, (uint64_t)epoch, (uint64_t)layer), (uint64_t)v,
                                             64 * (uint64_t)u + (uint64_t)k);

    return draw >= threshold ? 65536 / (65536 - threshold) : 0;
}

int oracle_gives_label(double rate, uint64_t seed, int64_t epoch, int64_t v)
{
    uint32_t out[4];

    draw_block(key_of(seed, 6, (uint64_t)epoch, 0), (uint64_t)v, 0, out);
    return out[0] / 4294967296.0 < rate;
}
