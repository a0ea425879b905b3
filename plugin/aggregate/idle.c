/* Options that say something which nothing asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/wire.h"

#include <string.h>

struct idle {
    enum gr_option_id option;
    int               works; /* as the other options are */
    const char       *because;
};

static int is_at_most(const struct gr_wire_format *f, int32_t bits)
{
    return f->bits[GR_FORWARD] <= bits || f->bits[GR_BACKWARD] <= bits;
}

void gr_wire_tell_idle(const graft_context *context)
{
    const struct gr_wire_format f = gr_wire_format(context);
    const int                   is_adaptive = f.adaptive[GR_FORWARD] || f.adaptive[GR_BACKWARD];
    const int                   is_async = gr_option_is(context, GR_OPTION_HALO_ASYNC, "yes");
    const int                   is_weighted = gr_option_is(context, GR_OPTION_HALO_COVER, "weighted");
    const int                   has_limit = gr_option_integer(context, GR_OPTION_HALO_BYTES_LIMIT) > 0 ||
                          gr_option_number(context, GR_OPTION_HALO_ERROR_LIMIT) > 0;
    const char *const never = "no message has few bits (halo.bits)", *late = "halo.async is no";
    const struct idle options[] = {
        { GR_OPTION_HALO_CODE, is_at_most(&f, 1), "no message has 1 bit (halo.bits)" },
        { GR_OPTION_HALO_CODE_BACKWARD, f.bits[GR_BACKWARD] == 1, "no gradient has 1 bit (halo.bits_backward)" },
        { GR_OPTION_HALO_ROUNDING, is_at_most(&f, 8), never },
        { GR_OPTION_HALO_ROUNDING_BACKWARD, f.bits[GR_BACKWARD] <= 8, "no gradient has few bits (halo.bits_backward)" },
        { GR_OPTION_HALO_NONFINITE, is_at_most(&f, 8), never },
        { GR_OPTION_HALO_ERROR, is_at_most(&f, 16), never },
        { GR_OPTION_HALO_ADAPT_EVERY, is_adaptive, "neither halo.bits nor halo.bits_backward is adaptive" },
        { GR_OPTION_HALO_ADAPT_LAMBDA, is_adaptive && !has_limit,
          "no bits are decided on by time (halo.bits=adaptive)" },
        { GR_OPTION_HALO_COVER_LAMBDA, is_weighted, "halo.cover is not weighted" },
        { GR_OPTION_HALO_SYNC_EVERY, is_async, late },
        { GR_OPTION_HALO_SMOOTHING, is_async, late },
        { GR_OPTION_HALO_DRIFT_LIMIT, is_async, late },
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        graft_option option = { .size = sizeof option };

        gr_option_describe(context, (int32_t)options[i].option, &option, NULL);
        if (options[i].works || strcmp(option.value, option.initial) == 0) continue;
        gr_log(context, GRAFT_LOG_WARNING, "option '%s' is %s, which has no effect: %s", option.key, option.value,
               options[i].because);
    }
}
