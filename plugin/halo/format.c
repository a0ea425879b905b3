/* How rows are written in messages, as the options say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/format.h"

#include <stdlib.h>

/* From so many elements of a row on, its code of 1 bit is that of a rotation. */
enum { ROTATED_LEAST = 32 };

/* The option that holds in a direction, of one that may be another backward. */
static enum gr_option_id option_of(const graft_context *context, int32_t direction, enum gr_option_id forward,
                                   enum gr_option_id backward)
{
    return direction == GR_BACKWARD && !gr_option_is(context, backward, "same") ? backward : forward;
}

static void read_direction(const graft_context *context, int32_t direction, struct gr_wire_format *f)
{
    const enum gr_option_id bits = option_of(context, direction, GR_OPTION_HALO_BITS, GR_OPTION_HALO_BITS_BACKWARD);
    const enum gr_option_id code = option_of(context, direction, GR_OPTION_HALO_CODE, GR_OPTION_HALO_CODE_BACKWARD);
    const enum gr_option_id rounding =
        option_of(context, direction, GR_OPTION_HALO_ROUNDING, GR_OPTION_HALO_ROUNDING_BACKWARD);

    f->adaptive[direction] = gr_option_is(context, bits, "adaptive");
    f->bits[direction] = f->adaptive[direction] ? 8 : (int32_t)strtol(gr_option_text(context, bits), NULL, 10);
    if (gr_option_is(context, code, "minmax")) f->code[direction] = GRAFT_CODEC_MINMAX;
    if (gr_option_is(context, code, "rotated")) f->code[direction] = GRAFT_CODEC_ROTATED;
    if (gr_option_is(context, rounding, "nearest")) f->rounding[direction] = GRAFT_ROUND_NEAREST;
    if (gr_option_is(context, rounding, "stochastic")) f->rounding[direction] = GRAFT_ROUND_STOCHASTIC;
}

struct gr_wire_format gr_wire_format(const graft_context *context)
{
    struct gr_wire_format f = { .measuring = GR_MEASURE_NONE };

    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) read_direction(context, d, &f);
    f.refuses = gr_option_is(context, GR_OPTION_HALO_NONFINITE, "refuse");
    if (gr_option_is(context, GR_OPTION_HALO_ERROR, "sample")) f.measuring = GR_MEASURE_SAMPLE;
    if (gr_option_is(context, GR_OPTION_HALO_ERROR, "exact")) f.measuring = GR_MEASURE_ALL;
    f.seed = (uint64_t)gr_option_integer(context, GR_OPTION_SEED);
    return f;
}

int32_t gr_wire_compare(const graft_context *context, struct gr_comm *comm, graft_error *error)
{
    static const char *const    names[] = { "option halo.bits (0: adaptive)",
                                            "option halo.bits_backward (0: adaptive)",
                                            "option halo.code (0 auto, 1 minmax, 2 rotated)",
                                            "option halo.code_backward (0 auto, 1 minmax, 2 rotated)",
                                            "option halo.rounding (0 auto, 1 nearest, 2 stochastic)",
                                            "option halo.rounding_backward (0 auto, 1 nearest, 2 stochastic)",
                                            "option halo.nonfinite (0 send, 1 refuse)",
                                            "option seed" };
    const struct gr_wire_format f = gr_wire_format(context);
    const uint64_t              values[] = { (uint64_t)(f.adaptive[GR_FORWARD] ? 0 : f.bits[GR_FORWARD]),
                                             (uint64_t)(f.adaptive[GR_BACKWARD] ? 0 : f.bits[GR_BACKWARD]),
                                             (uint64_t)f.code[GR_FORWARD],
                                             (uint64_t)f.code[GR_BACKWARD],
                                             (uint64_t)f.rounding[GR_FORWARD],
                                             (uint64_t)f.rounding[GR_BACKWARD],
                                             (uint64_t)f.refuses,
                                             f.seed };

    return gr_comm_compare(comm, names, values, 8, error);
}

/* Signs and a Hadamard transform of few elements are no random rotation: elements that are small beside the largest one
 * are lost each time, and not by chance. */
int32_t gr_wire_code(const struct gr_wire_format *f, enum gr_direction direction, int32_t bits, int64_t width)
{
    if (bits != 1) return GRAFT_CODEC_MINMAX;
    if (f->code[direction] != 0) return f->code[direction];
    return width < ROTATED_LEAST ? GRAFT_CODEC_MINMAX : GRAFT_CODEC_ROTATED;
}

/* The nearest level has half the error, but errors of the same sign each time add up in gradients, of which most
 * elements are small beside the largest; and with one bit all elements in the middle of a row would go to its ends. */
int32_t gr_wire_rounding(const struct gr_wire_format *f, enum gr_direction direction, int32_t bits)
{
    if (f->rounding[direction] != 0) return f->rounding[direction];
    return bits == 1 || direction == GR_BACKWARD ? GRAFT_ROUND_STOCHASTIC : GRAFT_ROUND_NEAREST;
}
