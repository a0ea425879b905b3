/* LayerNorm of a row (Ba et al. 2016), with the biased variance and eps 1e-5, of floats and of doubles. Loops that are
 * compiled for each instruction set include it. Sums have a fixed number of lanes, so they are bitwise identical on all
 * processors.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/exponential.h"

#include <math.h>

enum { DOUBLE_LANES = 4 };

typedef double  doubles4 __attribute__((vector_size(DOUBLE_LANES * sizeof(double))));
typedef int64_t longs4 __attribute__((vector_size(DOUBLE_LANES * sizeof(int64_t))));

/* load4() and sum4() are load8() and sum8() (base/exponential.h) for doubles. */
GR_INLINE doubles4 load4(const double *from, int64_t count, double rest)
{
    double   padded[DOUBLE_LANES];
    doubles4 v;

    if (count >= DOUBLE_LANES) {
        memcpy(&v, from, sizeof v);
        return v;
    }
    for (int k = 0; k < DOUBLE_LANES; k++) padded[k] = k < count ? from[k] : rest;
    memcpy(&v, padded, sizeof v);
    return v;
}

GR_INLINE double sum4(doubles4 v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

#define T float
#define VECTOR floats8
#define LANES HEAD_LANES
#define LOAD load8
#define TOTAL sum8
#define ROOT sqrtf
#define TYPED(name) name##_f32
#include "nn/layer_norm_of_type.h"

#define T double
#define VECTOR doubles4
#define LANES DOUBLE_LANES
#define LOAD load4
#define TOTAL sum4
#define ROOT sqrt
#define TYPED(name) name##_f64
#include "nn/layer_norm_of_type.h"
