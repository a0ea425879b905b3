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
    { &gr_comm_option_table, KEPT_BY(GRAPH) }, /* groups read it in each call instead */
    { &gr_halo_option_table, KEPT_BY_USERS_OF_HALOS },
    { &gr_sample_option_table, KEPT_BY(SAMPLER) | KEPT_BY(TRAINER) },
    { &gr_network_option_table, 0 },
    { &gr_stream_option_table, 0 },
    { &gr_base_option_table, KEPT_BY(TRAINER) },
};

static const struct gr_removed_option removed[] = {
    { "schedule_every", "write schedule=step:30:0.1", NULL },
    { "schedule_factor", "write schedule=step:30:0.1", NULL },
    { "momentum", "write optimizer=sgd:0.9", NULL },
    { "huber_delta", "write loss=huber:1", NULL },
    { "halo.drift_limit", "write halo.staleness=1:N for a wait every N epochs", NULL },
    { "mgn.width", "write hidden=128", NULL },
    { "mgn.layers", "write layers=15", NULL },
    { "mgn.activation", "write activation=elu", NULL },
    { "mgn.norm", "write norm=none or norm=layer", NULL },
    { "mgn.residual", "write residual=yes", NULL },
    { "mgn.lr", "write lr=0.001", NULL },
    { "mgn.weight_decay", "write weight_decay=0.01", NULL },
    { "mgn.warmup", "write mgn.schedule=constant:100, or cosine:STEPS:LAST:WARMUP", NULL },
    { "mgn.steps", "write mgn.schedule=cosine:10000", NULL },
    { "mgn.lr_end", "write mgn.schedule=cosine:10000:0.00001", NULL },
    { "mgn.beta1", "write optimizer=adam:0.9:0.999", NULL },
    { "mgn.beta2", "write optimizer=adam:0.9:0.999", NULL },
    { "mgn.gather", "write mgn.statistics=gather:100", NULL },
    { "mgn.freeze", "write mgn.statistics=train:1000000", NULL },
    { "stream.patience", "write patience=10", NULL },
    { "cluster.parts", "write sampler=cluster:40", NULL },
    { "saint.walk", "write sampler=saint:2", NULL },
    { "saint.coverage", "write sampler=saint:2:20", NULL },
    { "hec.keep", "write hec.miss=fetch_keep", NULL },
    { "halo.refresh", "write halo.staleness=1:5 for a wait every 5 epochs", NULL },
    { "halo.smoothing", "write halo.staleness=1:0:0.8", NULL },
    { "halo.reassign_every", "write halo.budget=balance:0.5:20", NULL },
    { "gin_eps", "epsilon is 0", "0" },
    { "mgn.noise_correction", "the target of a step corrects all noise", NULL },
    { "halo.codec_evaluation", "evaluations and predictions receive rows in f32", NULL },
    { "eval.folder", "write eval.blocks=FOLDER", NULL },
    { "parallel.columns", "write parallel=grid:2", NULL },
    { "workers.sparse", "write workers=sparse:1", NULL },
    { "workers.stages", "write workers=sparse:1:16", NULL },
    { "weight_decay_layers", "write weight_decay=0.0005:first", NULL },
    { "class_weights", "write loss=softmax:balanced", NULL },
    { "label_smoothing", "write loss=softmax:0.1", NULL },
    { "sample.replace", "write sampler=neighbour:replace", NULL },
    { "hec.life", "write hec.rows=1000000:10", NULL },
    { "aep.delay", "write aep.rows=-1:2", NULL },
    { "partition.refine", "write partition=given:20, or another method", NULL },
    { "partition.timeout", "write partition=metis:0:600", NULL },
    { "stream.interval", "write stream.lag=1:2", NULL },
    { NULL, NULL, NULL },
};

const struct gr_option_list gr_all_options = {
    .tables = tables,
    .n_tables = (int32_t)(sizeof tables / sizeof *tables),
    .keepers_everywhere = KEPT_BY_USERS_OF_HALOS,
    .removed = removed,
};
