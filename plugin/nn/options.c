/* The options that all networks share, of graphs and of meshes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/options.h"

#define GR_OPTIONS_TABLE gr_shape_option_table
#define GR_OPTIONS_STRUCT struct gr_shape_options
static const struct gr_option_row shape_rows[] = { GR_SHAPE_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_shape_option_table = GR_OPTION_TABLE("model", shape_rows);
#undef GR_OPTIONS_TABLE
#undef GR_OPTIONS_STRUCT

#define GR_OPTIONS_TABLE gr_training_option_table
#define GR_OPTIONS_STRUCT struct gr_training_options
static const struct gr_option_row training_rows[] = { GR_TRAINING_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_training_option_table = GR_OPTION_TABLE("training", training_rows);
