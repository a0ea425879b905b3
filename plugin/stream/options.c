/* The options of streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream/options.h"

#define GR_OPTIONS_TABLE gr_stream_option_table
#define GR_OPTIONS_STRUCT struct gr_stream_options
static const struct gr_option_row stream_rows[] = { GR_STREAM_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_stream_option_table = GR_OPTION_TABLE("streams", stream_rows);
