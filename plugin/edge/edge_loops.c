/* The vectorised loops of the edge operators, compiled once for each instruction set: ISA is part of the table's name,
 * WIDE_BYTES the size of a register.
 * SPDX-License-Identifier: Apache-2.0 */
#include "edge/edge_loops.h"

#include "base/exponential.h"
#include "base/finite.h"

#include <math.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

/* How many rows are prefetched ahead, as in the loops of products (kernel/simd/rows.c). */
enum { PREFETCH_ENTRIES = 32, SUM_REGISTERS = 8 };

INLINE int64_t place_of(const struct gr_edge_sums *s, int64_t e)
{
    if (s->place == NULL) return e;
    return s->place_is_wide ? ((const int64_t *)s->place)[e] : ((const int32_t *)s->place)[e];
}

INLINE int64_t entry_of(const struct gr_edge_sums *s, int64_t e)
{
    return s->entry != NULL ? s->entry[e] : e;
}

/* Compute e^(x - highest) for x <= highest, without overflow of the difference. */
INLINE float f32_exponential(float x, float highest)
{
    return exp8((floats8){ 0 } + gr_below(x, highest))[0];
}

INLINE double f64_exponential(double x, double highest)
{
    return x / 2 - highest / 2 < -400 ? 0 : exp(x - highest);
}

#define REAL float
#define EDGE(noun) JOIN(f32_, noun)
#include "edge/loops.h"
#undef REAL
#undef EDGE

#define REAL double
#define EDGE(noun) JOIN(f64_, noun)
#include "edge/loops.h"
#undef REAL
#undef EDGE

#include "edge/softmax.h"

const struct gr_edge_loops JOIN(gr_edge_, ISA)[2] = {
    { f32_sums, f32_dots, floats_softmax, floats_softmax_backward },
    { f64_sums, f64_dots, f64_softmax, f64_softmax_backward },
};
