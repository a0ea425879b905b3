/* Exponentials and sums of eight floats at a time, bitwise identical on all processors. For loops that are compiled for
 * wide registers.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define GR_INLINE static inline __attribute__((always_inline))

enum { HEAD_LANES = 8 };

typedef float    floats8 __attribute__((vector_size(HEAD_LANES * sizeof(float))));
typedef uint32_t words8 __attribute__((vector_size(HEAD_LANES * sizeof(float))));
typedef double   doubles8 __attribute__((vector_size(HEAD_LANES * sizeof(double))));

/* Load eight numbers; if `count` is less, load `count` numbers and set the other lanes to `rest`. */
GR_INLINE floats8 load8(const float *from, int64_t count, float rest)
{
    float   padded[HEAD_LANES];
    floats8 v;

    if (count >= HEAD_LANES) {
        memcpy(&v, from, sizeof v);
        return v;
    }
#if defined(__AVX2__)
    const __m256i in = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));

    return (floats8)_mm256_blendv_ps(_mm256_set1_ps(rest), _mm256_maskload_ps(from, in), (__m256)in);
#endif
    for (int k = 0; k < HEAD_LANES; k++) padded[k] = k < count ? from[k] : rest;
    memcpy(&v, padded, sizeof v);
    return v;
}

/* Sum eight numbers, in a fixed order. */
GR_INLINE float sum8(floats8 v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* The larger of v and w in each lane; w if one of them is a NaN. So a NaN in w stays. */
GR_INLINE floats8 max8(floats8 v, floats8 w)
{
#if defined(__AVX__)
    return (floats8)_mm256_max_ps((__m256)v, (__m256)w);
#elif defined(__SSE2__)
    __m128 halves[2], others[2];

    memcpy(halves, &v, sizeof v);
    memcpy(others, &w, sizeof w);
    for (int k = 0; k < 2; k++) halves[k] = _mm_max_ps(halves[k], others[k]);
    memcpy(&v, halves, sizeof v);
    return v;
#else
    const words8 wins = (words8)(v > w);

    return (floats8)((wins & (words8)v) | (~wins & (words8)w));
#endif
}

/* e^x for -1e4 <= x <= 0, with an error of at most 1e-7 and without floating-point exceptions. Below -87, where e^x is
 * hardly a normal float, the result is 0; a NaN stays one. With x = n ln 2 + r, e^x = 2^n e^r. The polynomial for e^r
 * is from Cephes (Moshier). Adding 1.5 * 2^23 leaves n in the lowest bits. */
GR_INLINE floats8 exp8(floats8 x)
{
    const words8  vanishes = (words8)(x < -87.0f);
    const float   magic = 12582912;
    const floats8 shifted = x * 1.44269504f + magic, n = shifted - magic;
    const floats8 r = x - n * 0.693359375f + n * 2.12194440e-4f;
    const words8  power = ((words8)shifted + (127u - 0x4B400000u)) << 23;
    floats8       p = r * 1.9875691500e-4f + 1.3981999507e-3f;

    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r * r + r + 1) * (floats8)power;
    return (floats8)((words8)p & ~vanishes);
}
