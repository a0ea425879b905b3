/* Vector registers for the loops over one row: loads and stores that stop at its end, and the range of its elements.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/shuffle.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { LANES = WIDE_BYTES / 4 };

typedef float    vector __attribute__((vector_size(WIDE_BYTES)));
typedef int32_t  lanes __attribute__((vector_size(WIDE_BYTES)));
typedef uint32_t words __attribute__((vector_size(WIDE_BYTES)));
typedef uint8_t  octets __attribute__((vector_size(16)));
typedef uint64_t pair __attribute__((vector_size(16)));

/* The same types in unaligned memory. gcc 12 compiles memcpy() of a register to two halves, which stalls the next
 * load. */
typedef float    vector_at __attribute__((vector_size(WIDE_BYTES), aligned(4), may_alias));
typedef uint32_t words_at __attribute__((vector_size(WIDE_BYTES), aligned(4), may_alias));

/** A register in which each lane has its own index. */
static inline lanes lane_numbers(void)
{
    lanes lane;

    for (int32_t k = 0; k < LANES; k++) lane[k] = k;
    return lane;
}

/* Load or store only the first `left` elements of a register; `left` may be 0 or negative. */
#if WIDE_BYTES == 64
static inline __mmask16 mask_of(int64_t left)
{
    return (__mmask16)(left > 0 ? (1u << left) - 1 : 0);
}

static inline vector load_few_floats(const float *x, int64_t left, float rest)
{
    return (vector)_mm512_mask_loadu_ps((__m512)((vector){ 0 } + rest), mask_of(left), x);
}

static inline void store_few_floats(float *x, int64_t left, vector v)
{
    _mm512_mask_storeu_ps(x, mask_of(left), (__m512)v);
}

static inline octets load_few_bytes(const uint8_t *in, int64_t left)
{
    return (octets)_mm_maskz_loadu_epi8(mask_of(left), in);
}

static inline void store_few_bytes(uint8_t *out, int64_t left, octets b)
{
    _mm_mask_storeu_epi8(out, mask_of(left), (__m128i)b);
}
#else
/* Not inlined: a call of memcpy() inside a loop would make the compiler spill its registers. */
#define FAR static __attribute__((noinline))

FAR vector load_few_floats(const float *x, int64_t left, float rest)
{
    vector v = (vector){ 0 } + rest;

    if (left > 0) memcpy(&v, x, (size_t)left * sizeof *x);
    return v;
}

FAR void store_few_floats(float *x, int64_t left, vector v)
{
    if (left > 0) memcpy(x, &v, (size_t)left * sizeof *x);
}

FAR octets load_few_bytes(const uint8_t *in, int64_t left)
{
    octets b = { 0 };

    memcpy(&b, in, (size_t)left);
    return b;
}

FAR void store_few_bytes(uint8_t *out, int64_t left, octets b)
{
    memcpy(out, &b, (size_t)left);
}
#endif

/** Load a register of floats. If fewer than LANES are left, the other lanes are `rest`. */
static inline vector load_floats(const float *x, int64_t left, float rest)
{
    if (left < LANES) return load_few_floats(x, left, rest);
    return *(const vector_at *)x;
}

static inline void store_lane_floats(float *x, int64_t left, vector v)
{
    if (left < LANES) store_few_floats(x, left, v);
    else *(vector_at *)x = v;
}

/* Convert the first LANES bytes to lanes, and back; narrow() takes lanes below 256. */
static inline words widen(octets b)
{
#if WIDE_BYTES == 64
    return (words)_mm512_cvtepu8_epi32((__m128i)b);
#elif WIDE_BYTES == 32
    return (words)_mm256_cvtepu8_epi32((__m128i)b);
#elif defined(__SSE2__)
    return (words)_mm_unpacklo_epi16(_mm_unpacklo_epi8((__m128i)b, (__m128i){ 0 }), (__m128i){ 0 });
#else
    const octets from = { 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 3, 16, 16, 16 };

    return (words)GR_SHUFFLE_TWO(b, (octets){ 0 }, from);
#endif
}

static inline octets narrow(words w)
{
#if WIDE_BYTES == 64
    return (octets)_mm512_cvtepi32_epi8((__m512i)w);
#elif WIDE_BYTES == 32
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)w), _mm256_extracti128_si256((__m256i)w, 1));

    return (octets)_mm_packus_epi16(half, half);
#elif defined(__SSE2__)
    const __m128i half = _mm_packs_epi32((__m128i)w, (__m128i)w);

    return (octets)_mm_packus_epi16(half, half);
#else
    const octets from = { 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12 };

    return GR_SHUFFLE((octets)w, from);
#endif
}

static inline words load_bytes(const uint8_t *in, int64_t left)
{
    pair p = { 0 };

    if (left < LANES) return widen(load_few_bytes(in, left));
    for (int k = 0; k < (LANES + 7) / 8; k++) {
        uint64_t some = 0;

        memcpy(&some, in + 8 * k, LANES < 8 ? LANES : 8);
        p[k] = some;
    }
    return widen((octets)p);
}

static inline void store_lane_bytes(uint8_t *out, int64_t left, words w)
{
    const octets b = narrow(w);

    if (left < LANES) store_few_bytes(out, left, b);
    else memcpy(out, &b, LANES);
}

/** Compute a < b ? a : b in each lane. gcc 12 does not compile that expression to one instruction. */
static inline vector least(vector a, vector b)
{
#if WIDE_BYTES == 64
    return (vector)_mm512_min_ps((__m512)a, (__m512)b);
#elif WIDE_BYTES == 32
    return (vector)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vector)_mm_min_ps((__m128)a, (__m128)b);
#else
    const lanes which = a < b;

    return (vector)(((lanes)a & which) | ((lanes)b & ~which));
#endif
}

/** Returns a negative number in each lane whose float is not finite, else 0 or more. */
static inline lanes infinite(vector v)
{
    return 0x7F7FFFFF - ((lanes)v & INT32_MAX);
}

/** The least (never -0) and the greatest element of a row, in all lanes, and whether all elements are finite. */
struct range {
    vector low, high;
    int    finite;
};

static inline struct range range_of(const float *x, int64_t n)
{
    const lanes lane = lane_numbers();
    vector      low = load_floats(x, n, x[0]), minus_high = -low;
    lanes       bad = infinite(low);

    for (int64_t at = LANES; at < n; at += LANES) {
        const vector v = load_floats(x + at, n - at, x[0]);

        low = least(v, low);
        minus_high = least(-v, minus_high);
        bad |= infinite(v);
    }
    for (int32_t h = LANES / 2; h > 0; h /= 2) {
        low = least(GR_SHUFFLE(low, lane ^ h), low);
        minus_high = least(GR_SHUFFLE(minus_high, lane ^ h), minus_high);
        bad |= GR_SHUFFLE(bad, lane ^ h);
    }
    return (struct range){ low + 0.0f, -minus_high, bad[0] >= 0 };
}
