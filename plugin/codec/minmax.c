/* MINMAX: 2^bits levels from the least to the greatest element of a row (Sylvie; SuperGCN, AdaQP). Compiled once for
 * each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "codec/levels.h"
#include "codec/record.h"

/* Round to bfloat16: away from 0 where `away` is -1, else towards 0. Out of range it is infinite. */
static inline vector round_to_bfloat(vector v, lanes away)
{
    return (vector)(((words)v + ((words)away & 0xFFFF)) & 0xFFFF0000);
}

static inline void write_minmax(const struct scale *s, enum rounding rounding, const float *x, const struct gr_codec *c,
                                uint8_t *out)
{
    switch (c->bits) {
    case 8: write_levels(s, rounding, x, c->width, 8, out); break;
    case 4: write_levels(s, rounding, x, c->width, 4, out); break;
    case 2: write_levels(s, rounding, x, c->width, 2, out); break;
    default: write_levels(s, rounding, x, c->width, 1, out); break;
    }
}

/* The distance of levels: at least the smallest normal float. */
static inline vector step_between(vector low, vector high, float levels)
{
    const vector exact = (high - low) * (1 / levels), smallest = (vector){ 0 } + 0x1p-126f;

    return round_to_bfloat(-least(-exact, -smallest), ~(lanes){ 0 });
}

/* Whether the range and the last level are finite floats. Their halves are computed, because these do not overflow. */
static int fits(vector low, vector high, float levels)
{
    if (!(high[0] / 2 - low[0] / 2 < 0x1p127f)) return 0;
    return low[0] / 2 + step_between(low, high, levels)[0] * (levels / 2) < 0x1p127f;
}

/* Encode one row. zero, step and its inverse stay in registers, because the loops wait for them and storing them takes
 * longer than a step of the computation. */
static enum gr_codec_result encode_minmax(const struct gr_codec *c, uint64_t row, const float *x, float *work,
                                          uint8_t *record)
{
    const struct range range = range_of(x, c->width);
    const float        levels = (float)((1 << c->bits) - 1), large = 0x1p125f;
    const vector       zero = round_to_bfloat(range.low, (lanes)range.low >> 31);
    uint8_t           *out = record + sizeof(struct params);
    struct scale       s = { .zero = zero, .last = (vector){ 0 } + levels, .key = c->key, .row = row };
    struct params      params;
    vector             step;

    GR_ASSERT(c->width > 0);
    (void)work;
    if (!range.finite) return write_unencoded(c, record);
    if (range.low[0] == range.high[0]) return write_constant(c, range.low[0], record);
    if ((range.high[0] > large || zero[0] < -large) && !fits(zero, range.high, levels))
        return write_unencoded(c, record);
    step = step_between(zero, range.high, levels);
    s.inverse = 1 / step;
    params = (struct params){ (uint16_t)(gr_float_bits(zero[0]) >> 16), (uint16_t)(gr_float_bits(step[0]) >> 16) };
    memcpy(record, &params, sizeof params);
    if (c->rounding == GRAFT_ROUND_STOCHASTIC) write_minmax(&s, STOCHASTIC, x, c, out);
    else write_minmax(&s, NEAREST, x, c, out);
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_minmax(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    const uint8_t       *in = record + sizeof(struct params);
    struct params        params;
    enum gr_codec_result result;
    float                zero, step;

    (void)row;
    if (read_special(c, record, x, &result)) return result;
    memcpy(&params, record, sizeof params);
    zero = gr_bfloat_widen(params.zero);
    step = gr_bfloat_widen(params.step);
    if (!isfinite(zero + step * (float)((1 << c->bits) - 1))) return GR_CODEC_INVALID;
    switch (c->bits) {
    case 8: read_levels(in, c->width, 8, zero, step, x); break;
    case 4: read_levels(in, c->width, 4, zero, step, x); break;
    case 2: read_levels(in, c->width, 2, zero, step, x); break;
    default: read_levels(in, c->width, 1, zero, step, x); break;
    }
    return GR_CODEC_DONE;
}

static double expected_minmax(const struct gr_codec *c, const uint8_t *record, double squares)
{
    const double step = (double)step_of(record);

    return (double)c->width * step * step / (c->rounding == GRAFT_ROUND_STOCHASTIC ? 6 : 12) / squares;
}

const struct gr_codec_code GR_CODEC_CODE(minmax) = { GRAFT_CODEC_MINMAX, 8 | 4 | 2 | 1, encode_minmax, decode_minmax,
                                                     expected_minmax };
