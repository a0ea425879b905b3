/* The options of minibatches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/options.h"

#define GR_OPTIONS_TABLE gr_sample_option_table
#define GR_OPTIONS_STRUCT struct gr_sample_options
static const struct gr_option_row sample_rows[] = { GR_SAMPLE_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_sample_option_table = GR_OPTION_TABLE("minibatches", sample_rows);
