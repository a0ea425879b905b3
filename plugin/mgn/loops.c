/* The passes of loops.h, compiled once for each instruction set: ISA is part of the table's name. Sums over a row have
 * lanes of a fixed number, so that their bits are the same on all processors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/loops.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define GR_INLINE static inline __attribute__((always_inline))

enum { VECTOR_BYTES = 32 };

typedef float   floats __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef double  doubles __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t longs __attribute__((vector_size(VECTOR_BYTES)));

/* expm1(r) / r - 1 for |r| <= ln(2) / 2 to the last bits: the series up to r^7 / 8! and r^13 / 14!. */
GR_INLINE floats series_f32(floats r)
{
    floats p = r * (1.0f / 40320) + 1.0f / 5040;

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    return (p * r + 0.5f) * r;
}

GR_INLINE doubles series_f64(doubles r)
{
    doubles p = r * (1.0 / 87178291200) + 1.0 / 6227020800;

    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    return (p * r + 0.5) * r;
}

#define T float
#define VECTOR floats
#define MASK words
#define OF(name) JOIN(name, _f32)
#define MAGIC 12582912.0f /* 1.5 * 2^23: a sum with it has an integer in its lowest bits */
#define MAGIC_BITS 0x4B400000
#define EXPONENT_BIAS 127
#define EXPONENT_SHIFT 23
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define LEAST -87.0f
#define ROOT sqrtf
#include "mgn/loops_of_type.h"

#define T double
#define VECTOR doubles
#define MASK longs
#define OF(name) JOIN(name, _f64)
#define MAGIC 6755399441055744.0 /* 1.5 * 2^52 */
#define MAGIC_BITS 0x4338000000000000
#define EXPONENT_BIAS 1023
#define EXPONENT_SHIFT 52
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define LEAST -700.0
#define ROOT sqrt
#include "mgn/loops_of_type.h"

const struct gr_mgn_loops_of_types JOIN(gr_mgn_loops_, ISA) = { LOOPS(f32), LOOPS(f64) };
