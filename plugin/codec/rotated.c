/* ROTATED: 1 bit, the signs of a randomly rotated row, and one scale (DRIVE, Vargaftik et al., arXiv 2105.08339).
 * Compiled once for each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "codec/levels.h"
#include "codec/record.h"

/* y = factor * x with random signs: that of element 128 i + j is bit 31 - j / 4 of word j % 4 of block i. */
static void flip_signs(const float *x, uint64_t key, uint64_t row, uint64_t block, int64_t n, float factor, float *y)
{
    const lanes lane = lane_numbers();

    for (int64_t at = 0; at < n; at += 128) {
        const int64_t end = n - at < 128 ? n : at + 128;
        uint32_t      word[4];
        words         bits;

        gr_random_block(key, row, block + (uint64_t)(at / 128), word);
        bits = (words){ word[0], word[1], word[2], word[3] };
        bits = GR_SHUFFLE(bits, lane & 3) << (lane >> 2);
        for (int64_t j = at; j < end; j += LANES) {
            const vector signed_factor = (vector)((words)((vector){ 0 } + factor) ^ (bits & SIGN_BIT));

            store_lane_floats(y + j, n - j, load_floats(x + j, n - j, 0) * signed_factor);
            bits <<= LANES / 4;
        }
    }
}

/* One step of the transform within a register: lane k is combined with lane k ^ h. */
static inline vector butterfly(vector v, lanes lane, int32_t h)
{
    const words negated = (words)v ^ ((words)((lane & h) != 0) & SIGN_BIT);

    return GR_SHUFFLE(v, lane ^ h) + (vector)negated;
}

/* The transform of `count` registers: a power of two, and a compile-time constant in every call. */
static inline void hadamard_registers(float *y, int count)
{
    const lanes lane = lane_numbers();
    vector      v[8];

#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        v[i] = *(const vector_at *)(y + i * LANES);
        for (int32_t h = 1; h < LANES; h *= 2) v[i] = butterfly(v[i], lane, h);
    }
#pragma GCC unroll 3
    for (int h = 1; h < count; h *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const vector a = v[i], b = v[i | h];

            if (i & h) continue;
            v[i] = a + b;
            v[i | h] = a - b;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) *(vector_at *)(y + i * LANES) = v[i];
}

/* The unnormalized Walsh-Hadamard transform of n elements, n a power of two. */
static void hadamard(float *y, int64_t n)
{
    const int64_t done = n < LANES ? 1 : n < 8 * LANES ? n : 8 * LANES;

    for (int64_t at = 0; at < n && done > 1; at += done) {
        switch (done / LANES) {
        case 1: hadamard_registers(y + at, 1); break;
        case 2: hadamard_registers(y + at, 2); break;
        case 4: hadamard_registers(y + at, 4); break;
        default: hadamard_registers(y + at, 8); break;
        }
    }
    for (int64_t h = done; h < n; h *= 2) {
        for (int64_t at = 0; at < n; at += 2 * h) {
            float *a = y + at, *b = a + h;

#pragma omp simd
            for (int64_t k = 0; k < h; k++) {
                const float sum = a[k] + b[k], difference = a[k] - b[k];

                a[k] = sum;
                b[k] = difference;
            }
        }
    }
}

/* The largest power of two that is at most n. */
static int64_t power_of_two(int64_t n)
{
    int64_t p = 1;

    while (p * 2 <= n) p *= 2;
    return p;
}

/* A random rotation: random signs and a transform of the first p elements, p the largest power of two; then, if p < n,
 * of the last p. */
static void rotate(const struct gr_codec *c, uint64_t row, const float *x, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    flip_signs(x, c->key, row, 0, p, factor, y);
    hadamard(y, p);
    if (p == n) return;
    if (x != y) memcpy(y + p, x + p, (size_t)(n - p) * sizeof *y);
    flip_signs(y + n - p, c->key, row, (uint64_t)(p + 127) / 128, p, factor, y + n - p);
    hadamard(y + n - p, p);
}

static void rotate_back(const struct gr_codec *c, uint64_t row, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    if (p < n) {
        hadamard(y + n - p, p);
        flip_signs(y + n - p, c->key, row, (uint64_t)(p + 127) / 128, p, factor, y + n - p);
    }
    hadamard(y, p);
    flip_signs(y, c->key, row, 0, p, factor, y);
}

/* The scale for which scale * sign(y) is an unbiased estimate of y: |y|^2 / sum |y|. */
static float scale_of(const float *y, int64_t n)
{
    const lanes lane = lane_numbers();
    vector      squares = { 0 }, sum = { 0 };

    for (int64_t at = 0; at < n; at += LANES) {
        const vector v = load_floats(y + at, n - at, 0);

        squares += v * v;
        sum += (vector)((words)v & ~SIGN_BIT);
    }
    for (int32_t h = LANES / 2; h > 0; h /= 2) {
        squares += GR_SHUFFLE(squares, lane ^ h);
        sum += GR_SHUFFLE(sum, lane ^ h);
    }
    return sum[0] == 0 ? 0 : squares[0] / sum[0];
}

static enum gr_codec_result encode_rotated(const struct gr_codec *c, uint64_t row, const float *x, float *work,
                                           uint8_t *record)
{
    static const struct scale none = { 0 };
    const struct range        range = range_of(x, c->width);
    float                     scale;

    GR_ASSERT(c->bits == 1 && c->width > 0);
    if (!range.finite) return write_unencoded(c, record);
    if (range.low[0] == range.high[0]) return write_constant(c, range.low[0], record);
    rotate(c, row, x, work);
    scale = scale_of(work, c->width);
    if (!isfinite(scale)) return write_unencoded(c, record);
    if (scale < 0x1p-126f) scale = 0;
    memcpy(record, &scale, sizeof scale);
    write_levels(&none, SIGNS, work, c->width, 1, record + sizeof scale);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_rotated(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    enum gr_codec_result result;
    float                scale;

    if (read_special(c, record, x, &result)) return result;
    memcpy(&scale, record, sizeof scale);
    if (!(scale < 1e20f)) return GR_CODEC_INVALID; /* the square of such a scale is no float */
    read_levels(record + sizeof scale, c->width, 1, -scale, 2 * scale, x);
    rotate_back(c, row, x);
    return GR_CODEC_DONE;
}

static double expected_rotated(const struct gr_codec *c, const uint8_t *record, double squares)
{
    (void)c;
    (void)squares;
    return step_of(record) == 0 ? 0 : 1.5707963267948966 - 1;
}

const struct gr_codec_code GR_CODEC_CODE(rotated) = { GRAFT_CODEC_ROTATED, 1, encode_rotated, decode_rotated,
                                                      expected_rotated };
