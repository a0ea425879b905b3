/* The options that every room may read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#define GR_OPTIONS_TABLE gr_base_option_table
#define GR_OPTIONS_STRUCT struct gr_base_options
static const struct gr_option_row base_rows[] = { GR_BASE_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_base_option_table = GR_OPTION_TABLE("library", base_rows);
