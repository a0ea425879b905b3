/* The options of dense products.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

#define GR_DENSE_TYPE_LIST(X) X(GR_DENSE_F32, "f32") X(GR_DENSE_BF16, "bf16")
enum gr_dense_type { GR_DENSE_TYPE_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_DENSE_OPTIONS(X)                                                                                            \
    X(TEXT(), module, "dense.module", "auto", SAME, GR_USUAL, "",                                                      \
      "module of the dense products: auto, or a name")                                                                 \
    X(CHOICE(gr_dense_type, GR_DENSE_TYPE_LIST), type, "dense.type", "f32", SAME, GR_USUAL, "",                        \
      "type that dense products multiply; sums are in f32")
/* clang-format on */

struct gr_dense_options {
    GR_DENSE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_dense_option_table;

static inline const struct gr_dense_options *gr_dense_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_dense_option_table);
}
