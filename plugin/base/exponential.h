/* Eight floats at a time, with the same bits on all processors: exponentials and sums. For loops that are compiled for
 * wide registers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_EXPONENTIAL_H
#define GR_BASE_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

#define GR_INLINE static inline __attribute__((always_inline))

enum { HEAD_LANES = 8 };

typedef float    floats8 __attribute__((vector_size(HEAD_LANES * sizeof(float))));
typedef uint32_t words8 __attribute__((vector_size(HEAD_LANES * sizeof(float))));
typedef double   doubles8 __attribute__((vector_size(HEAD_LANES * sizeof(double))));

/* Eight numbers, or the rest of `count` followed by `rest`. */
GR_INLINE floats8 load8(const float *from, int64_t count, float rest)
{
    float   padded[HEAD_LANES];
    floats8 v;

    if (count >= HEAD_LANES) {
        memcpy(&v, from, sizeof v);
        return v;
    }
    for (int k = 0; k < HEAD_LANES; k++) padded[k] = k < count ? from[k] : rest;
    memcpy(&v, padded, sizeof v);
    return v;
}

/* The sum of eight numbers, in a fixed order. */
GR_INLINE float sum8(floats8 v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* e^x of x <= 0, within 1e-7 of it; 0 below -87, where it is hardly a normal float. It raises no exception at -infinity
 * or above -2e38, where the product with log2(e) is finite; a NaN stays one. With x = n ln 2 + r it is 2^n e^r; the
 * polynomial is from Cephes (Moshier); the sum with 1.5 * 2^23 leaves n in the lowest bits. */
GR_INLINE floats8 exp8(floats8 x)
{
    const words8  vanishes = (words8)(x < -87.0f);
    const float   magic = 12582912;
    const floats8 shifted = (floats8)((words8)(x * 1.44269504f + magic) & ~vanishes), n = shifted - magic;
    const floats8 r = (floats8)((words8)(x - n * 0.693359375f + n * 2.12194440e-4f) & ~vanishes);
    const words8  power = ((words8)shifted + (127u - 0x4B400000u)) << 23;
    floats8       p = r * 1.9875691500e-4f + 1.3981999507e-3f;

    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r * r + r + 1) * (floats8)power;
    return (floats8)((words8)p & ~vanishes);
}

#endif
