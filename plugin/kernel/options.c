/* The options of sparse products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/options.h"

#define GR_OPTIONS_TABLE gr_kernel_option_table
#define GR_OPTIONS_STRUCT struct gr_kernel_options
static const struct gr_option_row kernel_rows[] = { GR_KERNEL_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_kernel_option_table = GR_OPTION_TABLE("sparse products", kernel_rows);
