/* The options of models, of their training, and of the data that they are trained on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/options.h"

#define GR_OPTIONS_TABLE gr_model_option_table
#define GR_OPTIONS_STRUCT struct gr_model_options
static const struct gr_option_row model_rows[] = { GR_MODEL_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_model_option_table = GR_OPTION_TABLE("model", model_rows);
#undef GR_OPTIONS_TABLE
#undef GR_OPTIONS_STRUCT

#define GR_OPTIONS_TABLE gr_loss_option_table
#define GR_OPTIONS_STRUCT struct gr_loss_options
static const struct gr_option_row loss_rows[] = { GR_LOSS_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_loss_option_table = GR_OPTION_TABLE("training", loss_rows);
#undef GR_OPTIONS_TABLE
#undef GR_OPTIONS_STRUCT

#define GR_OPTIONS_TABLE gr_data_option_table
#define GR_OPTIONS_STRUCT struct gr_data_options
static const struct gr_option_row data_rows[] = { GR_DATA_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_data_option_table = GR_OPTION_TABLE("data set", data_rows);
#undef GR_OPTIONS_TABLE
#undef GR_OPTIONS_STRUCT

#define GR_OPTIONS_TABLE gr_resource_option_table
#define GR_OPTIONS_STRUCT struct gr_resource_options
static const struct gr_option_row resource_rows[] = { GR_RESOURCE_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_resource_option_table = GR_OPTION_TABLE("memory and speed", resource_rows);
