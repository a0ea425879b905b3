/* All options: the tables of the rooms, in the order in which lists show them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/options.h"
#include "comm/options.h"
#include "dense/options.h"
#include "dgraph/options.h"
#include "halo/options.h"
#include "kernel/options.h"
#include "model/options.h"
#include "network/options.h"
#include "nn/options.h"
#include "partition/options.h"
#include "sample/options.h"
#include "stream/options.h"

#define KEPT_BY(kind) (1u << GR_HANDLE_##kind)

enum { KEPT_BY_USERS_OF_HALOS = KEPT_BY(TRAINER) | KEPT_BY(PLAN) | KEPT_BY(HALO) };

static const struct gr_option_entry tables[] = {
    { &gr_model_option_table, KEPT_BY(TRAINER) },
    { &gr_shape_option_table, KEPT_BY(TRAINER) },
    { &gr_training_option_table, KEPT_BY(TRAINER) },
    { &gr_loss_option_table, KEPT_BY(TRAINER) },
    { &gr_data_option_table, KEPT_BY(TRAINER) },
    { &gr_resource_option_table, KEPT_BY(TRAINER) },
    { &gr_kernel_option_table, KEPT_BY(TRAINER) },
    { &gr_dense_option_table, KEPT_BY(TRAINER) },
    { &gr_partition_option_table, KEPT_BY(GRAPH) },
    { &gr_dgraph_option_table, KEPT_BY(GRAPH) },
    { &gr_comm_option_table, KEPT_BY(GRAPH) }, /* a group reads it in each call */
    { &gr_halo_option_table, KEPT_BY_USERS_OF_HALOS },
    { &gr_sample_option_table, KEPT_BY(SAMPLER) | KEPT_BY(TRAINER) },
    { &gr_network_option_table, 0 },
    { &gr_stream_option_table, 0 },
    { &gr_base_option_table, KEPT_BY(TRAINER) },
};

static const struct gr_removed_option removed[] = {
    { NULL, NULL, NULL },
};

const struct gr_option_list gr_all_options = {
    .tables = tables,
    .n_tables = (int32_t)(sizeof tables / sizeof *tables),
    .keepers_everywhere = KEPT_BY_USERS_OF_HALOS,
    .removed = removed,
};
