/* The record of one quantized row: 4 bytes of parameters, then the packed levels. codec.h documents the layout. This
 * header has the two records that all codes of 8 bits and fewer share: of a row of equal elements, and of a row that is
 * not encoded.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bfloat.h"
#include "codec/codec.h"

#include <math.h>
#include <string.h>

/** The parameters as MINMAX reads them. */
struct params {
    uint16_t zero, step;
};

/** The `zero` of a row that is not encoded, and the bit of `step` that marks a row of equal elements. */
enum { RAW_ZERO = 0x7FC0, CONSTANT_STEP = 0x8000 };

static inline size_t level_bytes(const struct gr_codec *c)
{
    return (size_t)(c->width * c->bits + 7) / 8;
}

static inline enum gr_codec_result write_unencoded(const struct gr_codec *c, uint8_t *record)
{
    const struct params params = { RAW_ZERO, 0 };

    memcpy(record, &params, sizeof params);
    memset(record + sizeof params, 0, level_bytes(c));
    return GR_CODEC_UNENCODED;
}

/** Write a row of elements equal to x: 16 bits of x in zero, 15 in step below the mark, one in the first level byte. */
static inline enum gr_codec_result write_constant(const struct gr_codec *c, float x, uint8_t *record)
{
    const uint32_t      bits = gr_float_bits(x);
    const struct params params = { (uint16_t)(bits >> 16), (uint16_t)(CONSTANT_STEP | (bits & 0x7FFF)) };

    memcpy(record, &params, sizeof params);
    memset(record + sizeof params, 0, level_bytes(c));
    record[sizeof params] = bits >> 15 & 1;
    return GR_CODEC_DONE;
}

/** Read a record that has no levels: of a row of equal elements, or of a row that is not encoded.
 *  \return 1 and *result if the record has no levels, else 0. */
static inline int read_special(const struct gr_codec *c, const uint8_t *record, float *x, enum gr_codec_result *result)
{
    struct params params;
    float         constant;

    memcpy(&params, record, sizeof params);
    if (params.zero == RAW_ZERO && params.step == 0) {
        *result = GR_CODEC_UNENCODED;
        return 1;
    }
    if (!(params.step & CONSTANT_STEP)) return 0;
    constant = gr_float_of_bits((uint32_t)params.zero << 16 | (uint32_t)(record[sizeof params] & 1) << 15 |
                                (params.step & 0x7FFF));
    for (int64_t j = 0; j < c->width; j++) x[j] = constant;
    *result = isfinite(constant) ? GR_CODEC_DONE : GR_CODEC_INVALID;
    return 1;
}

/** The step of a MINMAX record; 0 for a row of equal elements. A ROTATED record gives a value above 0 for any scale
 *  above 0. */
static inline float step_of(const uint8_t *record)
{
    struct params params;

    memcpy(&params, record, sizeof params);
    return params.step & CONSTANT_STEP ? 0 : gr_bfloat_widen(params.step);
}
