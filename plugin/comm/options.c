/* The options of connections between ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/options.h"

#define GR_OPTIONS_TABLE gr_comm_option_table
#define GR_OPTIONS_STRUCT struct gr_comm_options
static const struct gr_option_row comm_rows[] = { GR_COMM_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_comm_option_table = GR_OPTION_TABLE("ranks", comm_rows);
