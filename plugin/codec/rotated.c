/* ROTATED: 1 bit, the signs of a randomly rotated row, and one scale (DRIVE, Vargaftik et al., arXiv 2105.08339).
 * With a uniformly random rotation decoding is unbiased: the expectation of the decoded row is the row. This rotation
 * consists of random signs and Walsh-Hadamard transforms, which is uniform enough for rows of 32 elements and more.
 * Compiled once for each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "codec/levels.h"
#include "codec/record.h"

/* The random signs of a row, some blocks of them at a time. */
struct signs {
    uint64_t key, row, first;
    _Alignas(WIDE_BYTES) uint32_t words[4 * GR_DRAW_GROUP];
};

/* Get block i of the signs, the four words of gr_random_block(). */
static inline const uint32_t *sign_block(struct signs *s, uint64_t i)
{
    const uint64_t first = i / GR_DRAW_GROUP * GR_DRAW_GROUP;

    if (first != s->first) gr_draw(s->key, s->row, first, GR_DRAW_GROUP, s->words);
    s->first = first;
    return s->words + 4 * (i - first);
}

/* Do one step of the transform within a register: lane k is combined with lane k ^ h. */
static inline vector butterfly(vector v, lanes lane, int32_t h)
{
    const words negated = (words)v ^ ((words)((lane & h) != 0) & SIGN_BIT);

    return GR_SHUFFLE(v, lane ^ h) + (vector)negated;
}

/* When the random signs are applied: before the transform, after it, or by the caller. */
enum flip { BEFORE, AFTER, ELSEWHERE };

/* Compute factor * v, negated in lanes where the highest bit of `bits` is set. */
static inline vector flipped(vector v, words bits, float factor)
{
    return (vector)((words)((vector){ 0 } + factor) ^ (bits & SIGN_BIT)) * v;
}

/* Transform n elements in `count` registers, and apply the signs. count and flip are compile-time constants in every
 * call. */
static inline void transform_registers(const float *x, words bits, enum flip flip, float factor, float *y, int64_t n,
                                       int count)
{
    const lanes lane = lane_numbers();
    vector      v[8];

#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        v[i] = load_floats(x + i * LANES, n - i * LANES, 0);
        if (flip == BEFORE) v[i] = flipped(v[i], bits << (i * LANES / 4), factor);
        for (int32_t h = 1; h < LANES && h < n; h *= 2) v[i] = butterfly(v[i], lane, h);
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
    for (int i = 0; i < count; i++) {
        if (flip == AFTER) v[i] = flipped(v[i], bits << (i * LANES / 4), factor);
        store_lane_floats(y + i * LANES, n - i * LANES, v[i]);
    }
}

/* Get the signs of elements at, at + 1, ...: that of element 128 i + j is bit 31 - j / 4 of word j % 4 of block i. */
static inline words sign_bits(struct signs *signs, uint64_t block, int64_t at)
{
    const lanes     lane = lane_numbers();
    const uint32_t *word = sign_block(signs, block + (uint64_t)(at / 128));
    words           bits = { word[0], word[1], word[2], word[3] };

    return GR_SHUFFLE(bits, lane & 3) << ((lane >> 2) + (int32_t)(at % 128 / 4));
}

/* Do the steps of the transform within each 8 registers, or of all n elements if they are fewer. */
static inline void transform_near(const float *x, struct signs *signs, uint64_t block, enum flip flip, float factor,
                                  float *y, int64_t n)
{
    for (int64_t at = 0; at < n; at += 8 * LANES) {
        const words bits = flip == ELSEWHERE ? (words){ 0 } : sign_bits(signs, block, at);

        switch (n / LANES) {
        case 0: transform_registers(x + at, bits, flip, factor, y + at, n, 1); break;
        case 1: transform_registers(x + at, bits, flip, factor, y + at, LANES, 1); break;
        case 2: transform_registers(x + at, bits, flip, factor, y + at, 2 * LANES, 2); break;
        case 4: transform_registers(x + at, bits, flip, factor, y + at, 4 * LANES, 4); break;
        default: transform_registers(x + at, bits, flip, factor, y + at, 8 * LANES, 8); break;
        }
    }
}

/* Do the steps of the transform between elements that are at least 8 registers apart. */
static void transform_far(float *y, int64_t n)
{
    for (int64_t h = 8 * LANES; h < n; h *= 2) {
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

/* The rotation of rows of n elements. A round has two steps: random signs and a Walsh-Hadamard transform of the first p
 * elements, p the largest power of two, and of the last p; if p = n, it has one step. With one round elements that are
 * small compared with a large one are lost in every decoding. With two the mean of many decodings still has an error of
 * 1 % of the norm for some rows of 127 elements. */
enum { ROUNDS = 3 };

struct rotation {
    int64_t      n, p;
    float        factor; /* by which a step multiplies all elements */
    struct signs signs;
};

static void rotation_init(struct rotation *r, const struct gr_codec *c, uint64_t row)
{
    r->n = c->width;
    r->p = (int64_t)1 << (63 - __builtin_clzll((uint64_t)r->n));
    r->factor = 1 / sqrtf((float)r->p);
    r->signs.key = c->key;
    r->signs.row = row;
    r->signs.first = UINT64_MAX;
}

/* The index of the first block of signs of a step. */
static uint64_t signs_of_step(const struct rotation *r, int round, int is_last)
{
    const int steps = r->p < r->n ? 2 : 1;

    return (uint64_t)(steps * round + is_last) * (uint64_t)((r->p + 127) / 128);
}

static void step(struct rotation *r, int round, int is_last, const float *x, float *y)
{
    const int64_t at = is_last ? r->n - r->p : 0;

    transform_near(x + at, &r->signs, signs_of_step(r, round, is_last), BEFORE, r->factor, y + at, r->p);
    transform_far(y + at, r->p);
}

/* Undo step(). As in step(), sums are added in the same order with registers of any size. */
static void step_back(struct rotation *r, int round, int is_last, float *y)
{
    const int64_t  at = is_last ? r->n - r->p : 0;
    const uint64_t block = signs_of_step(r, round, is_last);

    if (r->p <= 8 * LANES) {
        transform_near(y + at, &r->signs, block, AFTER, r->factor, y + at, r->p);
        return;
    }
    transform_near(y + at, &r->signs, block, ELSEWHERE, 1, y + at, r->p);
    transform_far(y + at, r->p);
    for (int64_t j = 0; j < r->p; j += 8 * LANES) {
        const words bits = sign_bits(&r->signs, block, j);

        for (int i = 0; i < 8; i++) {
            vector_at *const v = (vector_at *)(y + at + j + i * LANES);

            *v = flipped(*v, bits << (i * LANES / 4), r->factor);
        }
    }
}

/* Between two rounds, rotate each pair of an element of the first half and one of the second by 45 degrees. This mixes
 * all elements, even if the first p and the last p have few in common. */
static void mix_halves(float *y, int64_t n)
{
    const float factor = sqrtf(0.5f);
    float      *second = y + n - n / 2;

#pragma omp simd
    for (int64_t i = 0; i < n / 2; i++) {
        const float sum = y[i] + second[i], difference = y[i] - second[i];

        y[i] = factor * sum;
        second[i] = factor * difference;
    }
}

static void rotate(struct rotation *r, const float *x, float *y)
{
    for (int round = 0; round < ROUNDS; round++) {
        step(r, round, 0, round == 0 ? x : y, y);
        if (r->p == r->n) continue;
        if (round == 0 && x != y) memcpy(y + r->p, x + r->p, (size_t)(r->n - r->p) * sizeof *y);
        step(r, round, 1, y, y);
        if (round + 1 < ROUNDS) mix_halves(y, r->n);
    }
}

static void rotate_back(struct rotation *r, float *y)
{
    for (int round = ROUNDS - 1; round >= 0; round--) {
        if (r->p < r->n) {
            if (round + 1 < ROUNDS) mix_halves(y, r->n);
            step_back(r, round, 1, y);
        }
        step_back(r, round, 0, y);
    }
}

/* Use a factor that is a power of two. It keeps exact zeros, which are frequent in sums of rows of whole numbers, so
 * that no rounding error chooses their sign. \return the resulting factor of the rotated row */
static float use_exact_factor(struct rotation *r)
{
    const int log = 63 - __builtin_clzll((uint64_t)r->p);

    if (r->p < r->n || log % 2 == 0) return 1;
    r->factor = gr_float_of_bits((uint32_t)(127 - (log + 1) / 2) << 23);
    return sqrtf(0.125f); /* 1 / sqrt(2) in each round */
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
    struct rotation           rotation;
    float                     change, scale;

    GR_ASSERT(c->bits == 1 && c->width > 0);
    if (!range.finite) return write_unencoded(c, record);
    if (range.low[0] == range.high[0]) return write_constant(c, range.low[0], record);
    rotation_init(&rotation, c, row);
    change = use_exact_factor(&rotation);
    rotate(&rotation, x, work);
    scale = scale_of(work, c->width) / change;
    if (!isfinite(scale)) return write_unencoded(c, record);
    if (scale < 0x1p-126f) scale = 0;
    memcpy(record, &scale, sizeof scale);
    write_levels(&none, SIGNS, work, c->width, 1, record + sizeof scale);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_rotated(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    enum gr_codec_result result;
    struct rotation      rotation;
    float                scale;

    if (read_special(c, record, x, &result)) return result;
    memcpy(&scale, record, sizeof scale);
    if (!(scale < 1e20f)) return GR_CODEC_INVALID; /* the square of such a scale overflows a float */
    read_levels(record + sizeof scale, c->width, 1, -scale, 2 * scale, x);
    rotation_init(&rotation, c, row);
    rotate_back(&rotation, x);
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
