/* The options of dense products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/options.h"

#define GR_OPTIONS_TABLE gr_dense_option_table
#define GR_OPTIONS_STRUCT struct gr_dense_options
static const struct gr_option_row dense_rows[] = { GR_DENSE_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_dense_option_table = GR_OPTION_TABLE("dense products", dense_rows);
