/* bfloat16: the upper half of a float.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t gr_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float gr_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float gr_bfloat_widen(uint16_t half)
{
    return gr_float_of_bits((uint32_t)half << 16);
}

/** The number to add to the bits of a float before its lower half is cut off, so that the result is the nearest
 *  bfloat16, ties to even. */
static inline uint32_t gr_bfloat_half(uint32_t bits)
{
    return 0x7FFF + (bits >> 16 & 1);
}

/** Return the upper half of the bits after adding `more`, at most 65535. An infinity stays one. A NaN is not rounded,
 *  but a bit of its upper half is set so that it stays a NaN. */
static inline uint16_t gr_bfloat_narrow(uint32_t bits, uint32_t more)
{
    const int is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;

    return (uint16_t)(is_nan ? bits >> 16 | 0x40 : (bits + more) >> 16);
}
