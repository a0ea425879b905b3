/* The options of sparse products.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

/* clang-format off */
#define GR_KERNEL_OPTIONS(X)                                                                                           \
    X(TEXT(), mxm, "mxm.kernel", "auto", SAME, GR_USUAL | GR_LIVE, "",                                                 \
      "kernel of the sparse products: auto, or a name")                                                                \
    X(INTEGER("0..1000000"), verify, "mxm.verify", "0", EACH, GR_LIVE, "",                                             \
      "rows of every sparse product to compare with the reference kernel")                                             \
    X(TEXT(), graphblas_path, "graphblas.path", "", EACH, GR_EXPERT, "mxm.kernel=graphblas",                           \
      "file of the GraphBLAS that kernel graphblas uses; empty: the one of the process, else the newest")
/* clang-format on */

struct gr_kernel_options {
    GR_KERNEL_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_kernel_option_table;

static inline const struct gr_kernel_options *gr_kernel_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_kernel_option_table);
}
