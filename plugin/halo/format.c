/* The format of rows in messages, chosen by options halo.*.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/format.h"

#include "base/options.h"
#include "halo/options.h"

/* Rows of at least this many elements have the rotated code, if their elements have 1 bit. */
enum { ROTATED_LEAST = 32 };

struct gr_row_format gr_halo_row_format(const graft_context *context)
{
    const struct gr_halo_options *halo = gr_halo_options(context);
    static const int32_t          rounding[] = {
        [GR_HALO_ROUND_NEAREST] = GRAFT_ROUND_NEAREST, [GR_HALO_ROUND_STOCHASTIC] = GRAFT_ROUND_STOCHASTIC
    };
    struct gr_row_format f = { .refuses = halo->nonfinite == GR_HALO_NONFINITE_REFUSE,
                               .measuring = halo->statistics,
                               .seed = (uint64_t)gr_base_options(context)->seed };

    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        const struct gr_halo_codec codec = gr_halo_codec_of(halo, (enum gr_direction)d);

        f.bits[d] = codec.bits;
        f.adaptive[d] = codec.adaptive;
        f.code[d] = codec.code;
        f.rounding[d] = rounding[halo->rounding];
    }
    return f;
}

/* Rotate only long rows. Random signs and Hadamard transforms of few elements are not a uniformly random rotation, so
 * decoded rows are biased: by up to 8 % of the norm with 16 elements, 29 % with 8. */
int32_t gr_halo_row_format_code(const struct gr_row_format *f, enum gr_direction direction, int32_t bits, int64_t width)
{
    if (bits == f->bits[direction] && f->code[direction] != 0) return f->code[direction];
    if (bits != 1) return GRAFT_CODEC_MINMAX;
    return width < ROTATED_LEAST ? GRAFT_CODEC_MINMAX : GRAFT_CODEC_ROTATED;
}

/* Round to the nearest level where possible, because that halves the error. But errors of equal sign add up in
 * gradients, where most elements are much smaller than the largest, and with one bit all elements in the middle of a
 * row would be rounded to its ends. */
int32_t gr_halo_row_format_rounding(const struct gr_row_format *f, enum gr_direction direction, int32_t bits)
{
    if (f->rounding[direction] != 0) return f->rounding[direction];
    return bits == 1 || direction == GR_BACKWARD ? GRAFT_ROUND_STOCHASTIC : GRAFT_ROUND_NEAREST;
}
