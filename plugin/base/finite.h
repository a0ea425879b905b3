/* Checks that floats are finite, in a loop that compilers vectorise and that reads at the speed of memory; and
 * subtracts without overflow.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int gr_all_finite(const float *x, int64_t count)
{
    const uint32_t exponent = 0x7f800000u; /* all ones in infinities and NaNs */
    uint32_t       found = 0;

#pragma omp simd reduction(| : found)
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0;
}

/** The index of the first value that is not finite, or count. */
static inline int64_t gr_first_not_finite(const float *x, int64_t count)
{
    int64_t i = 0;

    if (gr_all_finite(x, count)) return count;
    while (isfinite(x[i])) i++;
    return i;
}

/** The index of the first double that is not finite, or count. */
static inline int64_t gr_first_not_finite_double(const double *x, int64_t count)
{
    const uint64_t exponent = 0x7ff0000000000000u;
    uint64_t       found = 0;
    int64_t        i = 0;

#pragma omp simd reduction(| : found)
    for (int64_t k = 0; k < count; k++) {
        uint64_t bits;

        memcpy(&bits, x + k, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    if (found == 0) return count;
    while (isfinite(x[i])) i++;
    return i;
}

/** x - highest for finite x <= highest, but at least -200, so that it does not overflow. As floats, exponentials of
 *  such numbers are 0. */
static inline float gr_below(float x, float highest)
{
    return x / 2 - highest / 2 < -100 ? -200 : x - highest;
}
