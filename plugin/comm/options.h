/* The options of connections between ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

/* clang-format off */
#define GR_COMM_OPTIONS(X)                                                                                             \
    X(NUMBER("1..1000000000"), timeout, "halo.timeout", "600", EACH, GR_EXPERT, GR_NEEDS_RANKS,                        \
      "seconds that a rank waits for another before all cancel")
/* clang-format on */

struct gr_comm_options {
    GR_COMM_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_comm_option_table;

static inline const struct gr_comm_options *gr_comm_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_comm_option_table);
}
