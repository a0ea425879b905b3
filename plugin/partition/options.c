/* The options of partitions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/options.h"

#define GR_OPTIONS_TABLE gr_partition_option_table
#define GR_OPTIONS_STRUCT struct gr_partition_options
static const struct gr_option_row partition_rows[] = { GR_PARTITION_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_partition_option_table = GR_OPTION_TABLE("partition", partition_rows);
