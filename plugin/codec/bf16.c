/* bfloat16: 16 bits an element, no parameters. Compiled once for each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/bfloat.h"
#include "base/draws.h"
#include "codec/codec.h"

/* A finite element stays finite: where rounding would give an infinity it is rounded towards 0. */
static enum gr_codec_result encode_bf16(const struct gr_codec *c, uint64_t row, const float *x, float *work,
                                        uint8_t *record)
{
    const uint32_t infinite = 0x7F80;

    GR_ASSERT(c->bits == 16 && c->width > 0);
    (void)work;
    for (int64_t at = 0; at < c->width; at += GR_DRAWS) {
        const int count = (int)(c->width - at < GR_DRAWS ? c->width - at : GR_DRAWS);
        uint16_t  draws[GR_DRAWS], out[GR_DRAWS];

        if (c->rounding == GRAFT_ROUND_STOCHASTIC) gr_draw(c->key, row, (uint64_t)(at / 8), (count + 7) / 8, draws);
        for (int k = 0; k < count; k++) {
            const uint32_t bits = gr_float_bits(x[at + k]), cut = bits >> 16;
            const uint32_t more = c->rounding == GRAFT_ROUND_STOCHASTIC ? draws[k] : gr_bfloat_half(bits);
            const uint32_t half = gr_bfloat_narrow(bits, more);

            out[k] = (uint16_t)((half & infinite) == infinite && (cut & infinite) != infinite ? cut : half);
        }
        memcpy(record + 2 * at, out, (size_t)count * sizeof *out);
    }
    return GR_CODEC_DONE;
}

static enum gr_codec_result decode_bf16(const struct gr_codec *c, uint64_t row, const uint8_t *record, float *x)
{
    (void)row;
    for (int64_t j = 0; j < c->width; j++) {
        uint16_t half;

        memcpy(&half, record + 2 * j, sizeof half);
        x[j] = gr_bfloat_widen(half);
    }
    return GR_CODEC_DONE;
}

const struct gr_codec_code GR_CODEC_CODE(bf16) = { GRAFT_CODEC_MINMAX, 16, encode_bf16, decode_bf16, NULL };
