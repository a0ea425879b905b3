/* The loops over the elements of a row, compiled once for each instruction set: ISA names the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include "base/bfloat.h"
#include "base/draws.h"
#include "codec/lanes.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* What stands before the bytes of a row. */
struct params {
    uint16_t zero, step;
};

enum { IS_NAN = 0x7FC0, SIGN = 0x8000 };

static const uint32_t SIGN_BIT = UINT32_C(1) << 31;

/* As bfloat16: further from 0 where `away` is -1, else nearer; infinite where that is out of range. */
static inline vector rounded(vector v, lanes away)
{
    return (vector)(((words)v + ((words)away & 0xFFFF)) & 0xFFFF0000);
}

/* How a row is quantised: to the nearest of the levels zero + q step, or to one of the two next to an element by the
 * random bits of (key, row), or to 0 and 1 by its sign. */
enum way { NEAREST, STOCHASTIC, SIGNS };

struct scale {
    vector   zero, inverse, last;
    uint64_t key, row;
};

/* Bytes that are made with the draws of one call. */
enum { PIECE = 64 };

/* Draws of elements that share a word begin with another of its bytes each. So the upper byte of every draw is its own,
 * and what lies below, on which a level hardly ever depends, is that of its neighbours. */
static inline words turn(words w, int byte)
{
    return byte == 0 ? w : w << 8 * byte | w >> (32 - 8 * byte);
}

/* Levels of a register; of draws 22 bits count, so that there are 255 levels above them. Rounding may put the greatest
 * element a little above the last level, from which a draw would take it higher. */
static inline words levels_of(const struct scale *s, enum way way, vector v, words draw)
{
    const vector place = (v - s->zero) * s->inverse;

    if (way == SIGNS) return (words)(v >= 0) & 1;
    if (way == NEAREST) return (words) __builtin_convertvector(place + 0.5f, lanes);
    return ((words) __builtin_convertvector(least(place, s->last) * 0x1p22f, lanes) + (draw >> 10)) >> 22;
}

/* Bytes begin .. end-1 of a row, and their random bits: element i of byte begin + k has word k + i / 4 * next, turned
 * to its byte first + i % 4. */
struct part {
    int64_t         begin, end, next;
    const uint32_t *draws;
    int             first;
};

static inline void write_part(const struct scale *s, enum way way, const float *x, int64_t width, int bits,
                              struct part part, uint8_t *out)
{
    const int64_t m = (width * bits + 7) / 8;

    for (int64_t at = part.begin; at < part.end; at += LANES) {
        words byte = { 0 }, draw = { 0 };

        for (int i = 0; i < 8 / bits; i++) {
            const int64_t j = i * m + at;
            const vector  v = load_floats(x + j, width - j, s->zero[0]);

            if (way == STOCHASTIC && i % 4 == 0)
                draw = *(const words_at *)(part.draws + i / 4 * part.next + at - part.begin);
            byte |= levels_of(s, way, v, turn(draw, (part.first + i) % 4)) << i * bits;
        }
        store_bytes(out + at, part.end - at, byte);
    }
}

/* The bytes of a row with `bits` bits, which is a constant where this is called. Four elements share a word of random
 * bits: those of one byte, or of bytes that stand a part of the row apart; a byte of eight elements has two words. */
static inline void write_levels(const struct scale *s, enum way way, const float *x, int64_t width, int bits,
                                uint8_t *out)
{
    const int64_t                 m = (width * bits + 7) / 8;
    const int                     parts = bits == 1 ? 1 : bits / 2, sets = bits == 1 ? 2 : 1;
    const int64_t                 length = (m + parts - 1) / parts;
    _Alignas(WIDE_BYTES) uint32_t draws[2 * PIECE + LANES];

    if (way != STOCHASTIC) {
        write_part(s, way, x, width, bits, (struct part){ .end = m }, out);
        return;
    }
    for (int64_t at = 0; at < length; at += PIECE) {
        const int64_t count = length - at < PIECE ? length - at : PIECE;

        gr_draw(s->key, s->row, (uint64_t)(sets * at / 4), (int)(sets * count + 3) / 4, draws);
        for (int p = 0; p < parts; p++) {
            const int64_t begin = p * length + at, end = begin + count < m ? begin + count : m;

            write_part(s, way, x, width, bits, (struct part){ begin, end, count, draws, p * 8 / bits }, out);
        }
    }
}

/* A register may be written beyond the elements of its bytes: those behind them come later. */
static inline void read_levels(const uint8_t *in, int64_t width, int bits, float zero, float step, float *x)
{
    const int64_t m = (width * bits + 7) / 8, whole = m / LANES * LANES;
    const words   rest = whole < m ? load_bytes(in + whole, m - whole) : (words){ 0 };

    for (int i = 0; i < 8 / bits; i++) {
        for (int64_t at = 0; at < m; at += LANES) {
            const words   byte = at < whole ? load_bytes(in + at, LANES) : rest;
            const words   level = byte >> i * bits & ((1 << bits) - 1);
            const int64_t j = i * m + at;

            store_floats(x + j, width - j, zero + step * __builtin_convertvector((lanes)level, vector));
        }
    }
}

static int64_t bytes_of(const struct gr_codec *c)
{
    return (c->width * c->bits + 7) / 8;
}

/* A row whose elements are all the same: 16 bits as zero, 15 as step, whose sign says so, and one in the first byte. */
static enum gr_codec_result write_constant(float x, uint8_t *record, int64_t count)
{
    const uint32_t      bits = gr_float_bits(x);
    const struct params params = { (uint16_t)(bits >> 16), (uint16_t)(SIGN | (bits & 0x7FFF)) };

    memcpy(record, &params, sizeof params);
    memset(record + sizeof params, 0, (size_t)count);
    record[sizeof params] = bits >> 15 & 1;
    return GR_CODEC_DONE;
}

static float read_constant(const struct params *params, const uint8_t *bytes)
{
    return gr_float_of_bits((uint32_t)params->zero << 16 | (uint32_t)(bytes[0] & 1) << 15 | (params->step & 0x7FFF));
}

static enum gr_codec_result write_raw(uint8_t *record, int64_t count)
{
    const struct params params = { IS_NAN, 0 };

    memcpy(record, &params, sizeof params);
    memset(record + sizeof params, 0, (size_t)count);
    return GR_CODEC_IS_RAW;
}

static inline void write_minmax(const struct scale *s, enum way way, const float *x, const struct gr_codec *c,
                                uint8_t *out)
{
    switch (c->bits) {
    case 8: write_levels(s, way, x, c->width, 8, out); break;
    case 4: write_levels(s, way, x, c->width, 4, out); break;
    case 2: write_levels(s, way, x, c->width, 2, out); break;
    default: write_levels(s, way, x, c->width, 1, out); break;
    }
}

/* Parameters stay in registers: what is found of a row is waited for, and each way out of one and back in takes longer
 * than a step of that. */
static enum gr_codec_result encode_minmax(const struct gr_codec *c, uint64_t row, const float *x, uint8_t *record)
{
    const struct range range = range_of(x, c->width);
    const float        levels = (float)((1 << c->bits) - 1);
    const vector       zero = rounded(range.low, (lanes)range.low >> 31);
    const vector       exact = (range.high - zero) * (1 / levels), smallest = (vector){ 0 } + 0x1p-126f;
    const vector       step = rounded(-least(-exact, -smallest), ~(lanes){ 0 }), inverse = 1 / step;
    const struct scale s = { zero, inverse, (vector){ 0 } + levels, c->key, row };
    uint8_t           *out = record + sizeof(struct params);
    struct params      params;

    if (!range.finite) return write_raw(record, bytes_of(c));
    if (range.low[0] == range.high[0]) return write_constant(range.low[0], record, bytes_of(c));
    if (!isfinite(zero[0] + step[0] * levels)) return write_raw(record, bytes_of(c));
    params = (struct params){ (uint16_t)(gr_float_bits(zero[0]) >> 16), (uint16_t)(gr_float_bits(step[0]) >> 16) };
    memcpy(record, &params, sizeof params);
    if (c->rounding == GRAFT_ROUND_STOCHASTIC) write_minmax(&s, STOCHASTIC, x, c, out);
    else write_minmax(&s, NEAREST, x, c, out);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_minmax(const struct gr_codec *c, const uint8_t *record, float *x)
{
    const uint8_t *in = record + sizeof(struct params);
    struct params  params;
    float          zero, step;

    memcpy(&params, record, sizeof params);
    if (params.zero == IS_NAN && params.step == 0) return GR_CODEC_IS_RAW;
    zero = gr_bfloat_widen(params.zero);
    step = gr_bfloat_widen(params.step);
    if (params.step & SIGN) {
        const float constant = read_constant(&params, in);

        for (int64_t j = 0; j < c->width; j++) x[j] = constant;
        return isfinite(constant) ? GR_CODEC_DONE : GR_CODEC_IS_WRONG;
    }
    if (!isfinite(zero + step * (float)((1 << c->bits) - 1))) return GR_CODEC_IS_WRONG;
    switch (c->bits) {
    case 8: read_levels(in, c->width, 8, zero, step, x); break;
    case 4: read_levels(in, c->width, 4, zero, step, x); break;
    case 2: read_levels(in, c->width, 2, zero, step, x); break;
    default: read_levels(in, c->width, 1, zero, step, x); break;
    }
    return GR_CODEC_DONE;
}

/* y = x times the factor, and by chance times -1: element 128 i + j by bit 31 - j / 4 of word j % 4 of block i. */
static void flip(const float *x, uint64_t key, uint64_t row, uint64_t block, int64_t n, float factor, float *y)
{
    const lanes lane = lane_numbers();

    for (int64_t at = 0; at < n; at += 128) {
        const int64_t end = n - at < 128 ? n : at + 128;
        uint32_t      word[4];
        words         bits;

        gr_random_block(key, row, block + (uint64_t)(at / 128), word);
        bits = __builtin_shuffle((words){ word[0], word[1], word[2], word[3] }, lane & 3) << (lane >> 2);
        for (int64_t j = at; j < end; j += LANES) {
            const vector signed_factor = (vector)((words)((vector){ 0 } + factor) ^ (bits & SIGN_BIT));

            store_floats(y + j, n - j, load_floats(x + j, n - j, 0) * signed_factor);
            bits <<= LANES / 4;
        }
    }
}

/* The steps of the transform inside of one register: with lane k stands lane k ^ h. */
static inline vector butterfly(vector v, lanes lane, int32_t h)
{
    const words negated = (words)v ^ ((words)((lane & h) != 0) & SIGN_BIT);

    return __builtin_shuffle(v, lane ^ h) + (vector)negated;
}

/* The transform of `count` registers, a power of two which is a constant where this is called. */
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

/* The transform of Walsh and Hadamard of n elements, a power of two, without its factor. */
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

/* The largest power of two that is not greater. */
static int64_t power_of_two(int64_t n)
{
    int64_t p = 1;

    while (p * 2 <= n) p *= 2;
    return p;
}

/* A random rotation: signs and a transform of the first elements, as many as there is a transform for, and if these are
 * not all, of the last ones. */
static void rotate(const struct gr_codec *c, uint64_t row, const float *x, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    flip(x, c->key, row, 0, p, factor, y);
    hadamard(y, p);
    if (p == n) return;
    if (x != y) memcpy(y + p, x + p, (size_t)(n - p) * sizeof *y);
    flip(y + n - p, c->key, row, (uint64_t)(p + 127) / 128, p, factor, y + n - p);
    hadamard(y + n - p, p);
}

static void rotate_back(const struct gr_codec *c, uint64_t row, float *y)
{
    const int64_t n = c->width, p = power_of_two(n);
    const float   factor = 1 / sqrtf((float)p);

    if (p < n) {
        hadamard(y + n - p, p);
        flip(y + n - p, c->key, row, (uint64_t)(p + 127) / 128, p, factor, y + n - p);
    }
    hadamard(y, p);
    flip(y, c->key, row, 0, p, factor, y);
}

/* The scale with which the signs of y come back as y on average: |y|^2 over the sum of |y|. */
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
        squares += __builtin_shuffle(squares, lane ^ h);
        sum += __builtin_shuffle(sum, lane ^ h);
    }
    return sum[0] == 0 ? 0 : squares[0] / sum[0];
}

static enum gr_codec_result encode_rotated(const struct gr_codec *c, uint64_t row, const float *x, float *work,
                                           uint8_t *record)
{
    static const struct scale none = { 0 };
    const struct range        range = range_of(x, c->width);
    float                     scale;

    if (!range.finite) return write_raw(record, bytes_of(c));
    if (range.low[0] == range.high[0]) return write_constant(range.low[0], record, bytes_of(c));
    rotate(c, row, x, work);
    scale = scale_of(work, c->width);
    if (!isfinite(scale)) return write_raw(record, bytes_of(c));
    if (scale < 0x1p-126f) scale = 0;
    memcpy(record, &scale, sizeof scale);
    write_levels(&none, SIGNS, work, c->width, 1, record + sizeof scale);
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
    read_levels(record + sizeof params, c->width, 1, -scale, 2 * scale, x);
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

/* To bfloat16. What is finite stays so: where rounding ends at infinity it goes the other way. */
static void shorten(const struct gr_codec *c, uint64_t row, const float *x, uint8_t *record)
{
    const uint32_t infinite = 0x7F80;

    for (int64_t at = 0; at < c->width; at += GR_DRAWS) {
        const int count = (int)(c->width - at < GR_DRAWS ? c->width - at : GR_DRAWS);
        uint16_t  draws[GR_DRAWS], out[GR_DRAWS];

        if (c->rounding == GRAFT_ROUND_STOCHASTIC) gr_draw(c->key, row, (uint64_t)(at / 8), (count + 7) / 8, draws);
        for (int k = 0; k < count; k++) {
            const uint32_t bits = gr_float_bits(x[at + k]), cut = bits >> 16;
            const uint32_t more = c->rounding == GRAFT_ROUND_STOCHASTIC ? draws[k] : gr_bfloat_half(bits);
            const uint32_t half = gr_bfloat_narrow(bits, more);

            out[k] = (uint16_t)((half & infinite) == infinite && (cut & infinite) != infinite ? cut : half);
        }
        memcpy(record + 2 * at, out, (size_t)count * sizeof *out);
    }
}

static void lengthen(const struct gr_codec *c, const uint8_t *record, float *x)
{
    for (int64_t j = 0; j < c->width; j++) {
        uint16_t half;

        memcpy(&half, record + 2 * j, sizeof half);
        x[j] = gr_bfloat_widen(half);
    }
}

const struct gr_codec_loops JOIN(gr_codec_, ISA) = { encode, decode, shorten, lengthen };
