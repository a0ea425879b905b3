/* The options of graphs over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/options.h"

#define GR_OPTIONS_TABLE gr_dgraph_option_table
#define GR_OPTIONS_STRUCT struct gr_dgraph_options
static const struct gr_option_row dgraph_rows[] = { GR_DGRAPH_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_dgraph_option_table = GR_OPTION_TABLE("parallel", dgraph_rows);
