/* The loops over the elements of a row, compiled once for each instruction set: ISA names the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include "base/draws.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* Bytes of a record that are made at once, and columns of a row that is made in one go. */
enum { PIECE = GR_DRAWS, SHORT = 1024 };

/* What stands before the bytes of a row. */
struct params {
    uint16_t zero, step;
};

enum { IS_NAN = 0x7FC0, SIGN = 0x8000, EXPONENT = 0x7F80 };

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static float wide(uint16_t bfloat)
{
    return float_of((uint32_t)bfloat << 16);
}

/* The nearest bfloat16 that is not greater, or not less; infinite where that is out of range. */
static uint16_t round_down(float x)
{
    const uint32_t bits = bits_of(x);

    return (uint16_t)((bits >> 16) + ((bits >> 31) != 0 && (bits & 65535) != 0));
}

static uint16_t round_up(float x)
{
    return (uint16_t)(round_down(-x) ^ SIGN);
}

/* Least and greatest element, and whether all are finite. */
static int range_of(const float *x, int64_t n, float *low, float *high)
{
    float    lo = x[0], hi = x[0];
    uint32_t most = 0;

#pragma omp simd reduction(min : lo) reduction(max : hi, most)
    for (int64_t j = 0; j < n; j++) {
        uint32_t size;

        memcpy(&size, x + j, sizeof size);
        size &= 0x7FFFFFFF;
        lo = x[j] < lo ? x[j] : lo;
        hi = x[j] > hi ? x[j] : hi;
        most = size > most ? size : most;
    }
    *low = lo;
    *high = hi;
    return most < 0x7F800000;
}

/* How a row is quantised: q = (x - zero) / step, rounded, from 0 to levels. */
struct scale {
    float    zero, inverse;
    int32_t  levels;
    uint64_t key, row;
    int      stochastic;
};

/* Elements first .. first+count-1, count being at most PIECE. Random bits are those of (key, row, column). What the
 * loops read is copied, or the compiler sees bytes written that might be part of it. */
static inline void quantise_piece(const struct scale *s, const float *x, int64_t first, int count, uint8_t *q)
{
    const float   zero = s->zero, inverse = s->inverse;
    const int32_t levels = s->levels;
    const int     skip = (int)(first % 8);
    uint16_t      draws[GR_DRAWS + 8];
    int32_t       level[PIECE];

    x += first;
    if (s->stochastic) {
        gr_draw(s->key, s->row, (uint64_t)first / 8, (skip + count + 7) / 8, draws);
        for (int k = 0; k < count; k++)
            level[k] = (int32_t)((x[k] - zero) * inverse + ((float)draws[skip + k] + 0.5f) * (1 / 65536.0f));
    } else {
        for (int k = 0; k < count; k++) level[k] = (int32_t)((x[k] - zero) * inverse + 0.5f);
    }
    for (int k = 0; k < count; k++) q[k] = (uint8_t)(level[k] < levels ? level[k] : levels);
}

static inline void quantise(const struct scale *s, const float *x, int64_t first, int64_t count, uint8_t *q)
{
    for (int64_t at = 0; at < count; at += PIECE)
        quantise_piece(s, x, first + at, (int)(count - at < PIECE ? count - at : PIECE), q + at);
}

/* Eight bytes at once: no level reaches into the byte above. */
static inline void add_levels(uint8_t *out, const uint8_t *q, int64_t count, int shift)
{
    int64_t k = 0;

    for (; k + 8 <= count; k += 8) {
        uint64_t word, more;

        memcpy(&word, out + k, sizeof word);
        memcpy(&more, q + k, sizeof more);
        word |= more << shift;
        memcpy(out + k, &word, sizeof word);
    }
    for (; k < count; k++) out[k] = (uint8_t)(out[k] | q[k] << shift);
}

/* The bytes of a row with `bits` bits, which is a constant where this is called. A short row is quantised in one go. */
static inline void write_levels(const struct scale *s, const float *x, int64_t width, int bits, uint8_t *out)
{
    const int64_t bytes = (width * bits + 7) / 8;
    uint8_t       q[SHORT];

    if (width <= SHORT) quantise(s, x, 0, width, q);
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const int64_t count = bytes - at < PIECE ? bytes - at : PIECE;

        memset(out + at, 0, (size_t)count);
        for (int i = 0; i < 8 / bits; i++) {
            const int64_t first = i * bytes + at, here = width - first < count ? width - first : count;

            if (here <= 0) break;
            if (width > SHORT) quantise(s, x, first, here, q);
            add_levels(out + at, width > SHORT ? q : q + first, here, i * bits);
        }
    }
}

static inline void read_levels(const uint8_t *in, int64_t bytes, int64_t width, int bits, float zero, float step,
                               float *x)
{
    for (int i = 0; i < 8 / bits; i++) {
        const int64_t first = i * bytes, here = width - first < bytes ? width - first : bytes;

        for (int64_t k = 0; k < here; k++)
            x[first + k] = zero + step * (float)(int32_t)(in[k] >> i * bits & ((1 << bits) - 1));
    }
}

static int64_t bytes_of(const struct gr_codec *c)
{
    return (c->width * c->bits + 7) / 8;
}

/* A row whose elements are all the same and no bfloat16: 16 bits as zero, 15 as step, and one in the first byte. */
static void write_constant(float x, struct params *params, uint8_t *bytes)
{
    const uint32_t bits = bits_of(x);

    *params = (struct params){ (uint16_t)(bits >> 16), (uint16_t)(SIGN | (bits & 0x7FFF)) };
    bytes[0] = bits >> 15 & 1;
}

static float read_constant(const struct params *params, const uint8_t *bytes)
{
    return float_of((uint32_t)params->zero << 16 | (uint32_t)(bytes[0] & 1) << 15 | (params->step & 0x7FFF));
}

static enum gr_codec_result write_raw(struct params params, uint8_t *record, int64_t bytes)
{
    memcpy(record, &params, sizeof params);
    memset(record + sizeof params, 0, (size_t)bytes);
    return GR_CODEC_IS_RAW;
}

static enum gr_codec_result encode_minmax(const struct gr_codec *c, uint64_t row, const float *x, uint8_t *record)
{
    const float  smallest = 0x1p-126f;
    struct scale s = {
        .levels = (1 << c->bits) - 1, .key = c->key, .row = row, .stochastic = c->rounding == GRAFT_ROUND_STOCHASTIC
    };
    struct params params = { IS_NAN, 0 };
    uint8_t      *bytes = record + sizeof params;
    float         low, high, step;

    if (!range_of(x, c->width, &low, &high)) return write_raw(params, record, bytes_of(c));
    params.zero = round_down(low);
    s.zero = wide(params.zero);
    if (low == high && s.zero != low) {
        memset(bytes, 0, (size_t)bytes_of(c));
        write_constant(low, &params, bytes);
    } else {
        step = (high - s.zero) / (float)s.levels;
        if (low == high) step = 0;
        else if (step < smallest) step = smallest;
        params.step = round_up(step);
        step = wide(params.step);
        if (!isfinite(s.zero + step * (float)s.levels))
            return write_raw((struct params){ IS_NAN, 0 }, record, bytes_of(c));
        s.inverse = step > 0 ? 1 / step : 0;
        switch (c->bits) {
        case 8: write_levels(&s, x, c->width, 8, bytes); break;
        case 4: write_levels(&s, x, c->width, 4, bytes); break;
        case 2: write_levels(&s, x, c->width, 2, bytes); break;
        default: write_levels(&s, x, c->width, 1, bytes); break;
        }
    }
    memcpy(record, &params, sizeof params);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_minmax(const struct gr_codec *c, const uint8_t *record, float *x)
{
    const int64_t  bytes = bytes_of(c);
    const uint8_t *in = record + sizeof(struct params);
    struct params  params;
    float          zero, step;

    memcpy(&params, record, sizeof params);
    if (params.zero == IS_NAN && params.step == 0) return GR_CODEC_IS_RAW;
    zero = wide(params.zero);
    step = wide(params.step);
    if (params.step & SIGN) {
        const float constant = read_constant(&params, in);

        for (int64_t j = 0; j < c->width; j++) x[j] = constant;
        return isfinite(constant) ? GR_CODEC_DONE : GR_CODEC_IS_WRONG;
    }
    if (!isfinite(zero + step * (float)((1 << c->bits) - 1))) return GR_CODEC_IS_WRONG;
    switch (c->bits) {
    case 8: read_levels(in, bytes, c->width, 8, zero, step, x); break;
    case 4: read_levels(in, bytes, c->width, 4, zero, step, x); break;
    case 2: read_levels(in, bytes, c->width, 2, zero, step, x); break;
    default: read_levels(in, bytes, c->width, 1, zero, step, x); break;
    }
    return GR_CODEC_DONE;
}

/* Change the signs of elements by chance: bit j of the random bits of the row, from block `block` on. */
static void flip(uint64_t key, uint64_t row, uint64_t block, int64_t n, float *y)
{
    for (int64_t at = 0; at < n; at += 128) {
        const int count = (int)(n - at < 128 ? n - at : 128);
        uint32_t  word[4], size[128];

        gr_random_block(key, row, block + (uint64_t)(at / 128), word);
        memcpy(size, y + at, (size_t)count * sizeof *size);
        for (int k = 0; k < count; k++) size[k] ^= word[k / 32] >> k % 32 << 31;
        memcpy(y + at, size, (size_t)count * sizeof *size);
    }
}

/* Registers, read and written where floats are. */
typedef float   vector __attribute__((vector_size(WIDE_BYTES), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(WIDE_BYTES)));
enum { LANES = WIDE_BYTES / 4 };

/* The steps of the transform inside of one register: with lane k stands lane k ^ h. */
static inline vector butterfly(vector v, lanes lane, int32_t h)
{
    const lanes minus = (lane & h) != 0;
    const lanes negated = (lanes)v ^ (minus & INT32_MIN);

    return __builtin_shuffle(v, lane ^ h) + (vector)negated;
}

static void hadamard_inside(float *y, int64_t n)
{
    lanes lane;

    for (int32_t k = 0; k < LANES; k++) lane[k] = k;
    for (int64_t at = 0; at < n; at += LANES) {
        vector v = *(vector *)(y + at);

        for (int32_t h = 1; h < LANES; h *= 2) v = butterfly(v, lane, h);
        *(vector *)(y + at) = v;
    }
}

/* The transform of Walsh and Hadamard of n elements, a power of two, without its factor. */
static void hadamard(float *y, int64_t n)
{
    if (n >= LANES) hadamard_inside(y, n);
    for (int64_t h = n >= LANES ? LANES : 1; h < n; h *= 2) {
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

static void multiply(float *y, int64_t n, float factor)
{
    for (int64_t j = 0; j < n; j++) y[j] *= factor;
}

/* The largest power of two that is not greater. */
static int64_t power_of_two(int64_t n)
{
    int64_t p = 1;

    while (p * 2 <= n) p *= 2;
    return p;
}

/* A random rotation: signs and a transform of the first elements, as many as there is a transform for, and if these are
 * not all, of the last ones. */
static void rotate(const struct gr_codec *c, uint64_t row, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    flip(c->key, row, 0, n, y);
    hadamard(y, p);
    multiply(y, p, factor);
    if (p == n) return;
    flip(c->key, row, (uint64_t)(n + 127) / 128, n, y);
    hadamard(y + n - p, p);
    multiply(y + n - p, p, factor);
}

static void rotate_back(const struct gr_codec *c, uint64_t row, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    if (p < n) {
        hadamard(y + n - p, p);
        multiply(y + n - p, p, factor);
        flip(c->key, row, (uint64_t)(n + 127) / 128, n, y);
    }
    hadamard(y, p);
    multiply(y, p, factor);
    flip(c->key, row, 0, n, y);
}

/* The scale with which the signs of y come back as y on average: |y|^2 over the sum of |y|. */
static float scale_of(const float *y, int64_t n)
{
    float squares = 0, sum = 0;

#pragma omp simd reduction(+ : squares, sum)
    for (int64_t j = 0; j < n; j++) {
        squares += y[j] * y[j];
        sum += fabsf(y[j]);
    }
    return sum == 0 ? 0 : squares / sum;
}

static enum gr_codec_result encode_rotated(const struct gr_codec *c, uint64_t row, const float *x, float *work,
                                           uint8_t *record)
{
    static const struct scale signs = { .zero = 0, .inverse = 1, .levels = 1 };
    const int64_t             m = bytes_of(c);
    struct params             params = { IS_NAN, 0 };
    uint8_t                  *bytes = record + sizeof params;
    float                     low, high, scale;

    if (!range_of(x, c->width, &low, &high)) return write_raw(params, record, m);
    if (low == high) {
        memset(bytes, 0, (size_t)m);
        write_constant(low, &params, bytes);
    } else {
        if (work != x) memcpy(work, x, (size_t)c->width * sizeof *work);
        rotate(c, row, work);
        scale = scale_of(work, c->width);
        if (!isfinite(scale)) return write_raw(params, record, m);
        if (scale < 0x1p-126f) scale = 0;
        for (int64_t j = 0; j < c->width; j++) work[j] = work[j] >= 0;
        write_levels(&signs, work, c->width, 1, bytes);
        memcpy(&params, &scale, sizeof params);
    }
    memcpy(record, &params, sizeof params);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_rotated(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    struct params params;
    float         scale;

    memcpy(&params, record, sizeof params);
    memcpy(&scale, record, sizeof scale);
    if (params.zero == IS_NAN && params.step == 0) return GR_CODEC_IS_RAW;
    if (params.step & SIGN) {
        scale = read_constant(&params, record + sizeof params);
        for (int64_t j = 0; j < c->width; j++) x[j] = scale;
        return isfinite(scale) ? GR_CODEC_DONE : GR_CODEC_IS_WRONG;
    }
    if (!(scale < 1e20f)) return GR_CODEC_IS_WRONG; /* its square would have been no float */
    read_levels(record + sizeof params, bytes_of(c), c->width, 1, -scale, 2 * scale, x);
    rotate_back(c, row, x);
    return GR_CODEC_DONE;
}

static enum gr_codec_result encode(const struct gr_codec *c, uint64_t row, const float *x, float *work, uint8_t *record)
{
    return c->code == GRAFT_CODEC_ROTATED ? encode_rotated(c, row, x, work, record) : encode_minmax(c, row, x, record);
}

static enum gr_codec_result decode(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    return c->code == GRAFT_CODEC_ROTATED ? decode_rotated(c, row, record, x) : decode_minmax(c, record, x);
}

/* To bfloat16. What is finite stays so, what is not stays that: adding half of the last place would carry a NaN over
 * into the sign. */
static void shorten(const struct gr_codec *c, uint64_t row, const float *x, uint8_t *record)
{
    for (int64_t at = 0; at < c->width; at += GR_DRAWS) {
        const int count = (int)(c->width - at < GR_DRAWS ? c->width - at : GR_DRAWS);
        uint16_t  draws[GR_DRAWS], out[GR_DRAWS];

        if (c->rounding == GRAFT_ROUND_STOCHASTIC) gr_draw(c->key, row, (uint64_t)(at / 8), (count + 7) / 8, draws);
        for (int k = 0; k < count; k++) {
            const uint32_t bits = bits_of(x[at + k]), half = 0x7FFF + (bits >> 16 & 1);
            const uint32_t up = bits + (c->rounding == GRAFT_ROUND_STOCHASTIC ? draws[k] : half);
            const uint32_t is_finite = (bits & 0x7F800000) != 0x7F800000, fits = (up & 0x7F800000) != 0x7F800000;
            const uint32_t quiet = (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x40 : 0;

            out[k] = (uint16_t)(is_finite && fits ? up >> 16 : bits >> 16 | quiet);
        }
        memcpy(record + 2 * at, out, (size_t)count * sizeof *out);
    }
}

static void lengthen(const struct gr_codec *c, const uint8_t *record, float *x)
{
    for (int64_t j = 0; j < c->width; j++) {
        uint16_t half;

        memcpy(&half, record + 2 * j, sizeof half);
        x[j] = wide(half);
    }
}

const struct gr_codec_loops JOIN(gr_codec_, ISA) = { encode, decode, shorten, lengthen };
