/* The passes of mlp_loops.h, compiled once for each instruction set: ISA is part of the table's name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/mlp_loops.h"

#include "nn/layer_norm.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

typedef int32_t signs8 __attribute__((vector_size(HEAD_LANES * sizeof(int32_t))));

/* Compute expm1(r) / r - 1 for |r| <= ln(2) / 2, accurate to the last bits: the Taylor series up to r^7 / 8! for
 * floats, and up to r^13 / 14! for doubles. */
GR_INLINE floats8 series_f32(floats8 r)
{
    floats8 p = r * (1.0f / 40320) + 1.0f / 5040;

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    return (p * r + 0.5f) * r;
}

GR_INLINE doubles4 series_f64(doubles4 r)
{
    doubles4 p = r * (1.0 / 87178291200) + 1.0 / 6227020800;

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
#define VECTOR floats8
#define MASK signs8
#define LANES HEAD_LANES
#define LOAD load8
#define TYPED(name) name##_f32
#define MAGIC 12582912.0f /* 1.5 * 2^23: added to x, it leaves round(x) in the lowest bits */
#define MAGIC_BITS 0x4B400000
#define EXPONENT_BIAS 127
#define EXPONENT_SHIFT 23
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define LEAST -87.0f
#include "nn/mlp_loops_of_type.h"

#define T double
#define VECTOR doubles4
#define MASK longs4
#define LANES DOUBLE_LANES
#define LOAD load4
#define TYPED(name) name##_f64
#define MAGIC 6755399441055744.0 /* 1.5 * 2^52 */
#define MAGIC_BITS 0x4338000000000000
#define EXPONENT_BIAS 1023
#define EXPONENT_SHIFT 52
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define LEAST -700.0
#include "nn/mlp_loops_of_type.h"

const struct gr_mlp_loops JOIN(gr_mlp_loops_, ISA)[2] = {
    { activate_f32, end_f32, normalise_f32, end_back_f32, activate_back_f32 },
    { activate_f64, end_f64, normalise_f64, end_back_f64, activate_back_f64 },
};
