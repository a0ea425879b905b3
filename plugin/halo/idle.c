/* Options that say something which nothing asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/format.h"

struct idle {
    enum gr_option_id option;
    int               works; /* as the other options are */
    const char       *because;
};

/* Whether rows of 1 bit go in a direction for which the option of both directions is asked. */
static int uses_code(const graft_context *context, const struct gr_wire_format *f)
{
    return f->bits[GR_FORWARD] == 1 ||
           (f->bits[GR_BACKWARD] == 1 && gr_option_is(context, GR_OPTION_HALO_CODE_BACKWARD, "same"));
}

/* Whether a level is chosen for elements that go in this direction: not where they are signs. */
static int rounds(const struct gr_wire_format *f, int32_t direction)
{
    return f->bits[direction] <= 16 && !(f->bits[direction] == 1 && f->code[direction] == GRAFT_CODEC_ROTATED);
}

static int uses_rounding(const graft_context *context, const struct gr_wire_format *f)
{
    return rounds(f, GR_FORWARD) ||
           (rounds(f, GR_BACKWARD) && gr_option_is(context, GR_OPTION_HALO_ROUNDING_BACKWARD, "same"));
}

void gr_wire_tell_idle(const graft_context *context)
{
    const struct gr_wire_format f = gr_wire_format(context);
    const int fewest = f.bits[GR_FORWARD] < f.bits[GR_BACKWARD] ? f.bits[GR_FORWARD] : f.bits[GR_BACKWARD];
    const int is_adaptive = f.adaptive[GR_FORWARD] || f.adaptive[GR_BACKWARD];
    const int is_async = gr_option_is(context, GR_OPTION_HALO_ASYNC, "yes");
    const int has_limit = gr_option_integer(context, GR_OPTION_HALO_BYTES_LIMIT) > 0 ||
                          gr_option_number(context, GR_OPTION_HALO_ERROR_LIMIT) > 0;
    const struct idle options[] = {
        { GR_OPTION_HALO_CODE, uses_code(context, &f), "nothing that it is for has 1 bit" },
        { GR_OPTION_HALO_CODE_BACKWARD, f.bits[GR_BACKWARD] == 1, "gradients have not 1 bit" },
        { GR_OPTION_HALO_ROUNDING, uses_rounding(context, &f), "nothing that it is for is rounded" },
        { GR_OPTION_HALO_ROUNDING_BACKWARD, rounds(&f, GR_BACKWARD), "gradients are not rounded" },
        { GR_OPTION_HALO_BITS_EVALUATION, f.bits[GR_FORWARD] < 32, "halo.bits is 32" },
        { GR_OPTION_HALO_NONFINITE, fewest <= 8, "all messages have 16 bits or more" },
        { GR_OPTION_HALO_ERROR, fewest <= 16, "all messages have 32 bits" },
        { GR_OPTION_HALO_ADAPT_EVERY, is_adaptive, "neither halo.bits nor halo.bits_backward is adaptive" },
        { GR_OPTION_HALO_ADAPT_LAMBDA, is_adaptive && !has_limit,
          is_adaptive ? "a limit decides on bits" : "neither halo.bits nor halo.bits_backward is adaptive" },
        { GR_OPTION_HALO_SYNC_EVERY, is_async, "halo.async is no" },
        { GR_OPTION_HALO_SMOOTHING, is_async, "halo.async is no" },
        { GR_OPTION_HALO_DRIFT_LIMIT, is_async, "halo.async is no" },
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        graft_option option = { .size = sizeof option };

        if (options[i].works || gr_option_is_initial(context, options[i].option)) continue;
        gr_option_describe(context, (int32_t)options[i].option, &option, NULL);
        gr_log(context, GRAFT_LOG_WARNING, "option '%s' is %s, which has no effect: %s", option.key, option.value,
               options[i].because);
    }
}
