/* The options of networks on meshes.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "mgn/mgn.h"

/** The values of option mgn.statistics: train:FREEZE or gather:STEPS:FREEZE, see its text. */
/* clang-format off */
#define GR_GATHERING_LIST(X)                                                                                           \
    X(GR_GATHERS_IN_TRAINING, "train:1..=1000000")                                                                     \
    X(GR_GATHERS_FIRST, "gather:0..:1..=1000000")
/* clang-format on */
enum gr_gathering { GR_GATHERING_LIST(GR_CHOICE_CONSTANT) };

/** The values of option mgn.schedule: constant:WARMUP or cosine:STEPS:LAST:WARMUP, see its text. */
/* clang-format off */
#define GR_MGN_SCHEDULE_LIST(X)                                                                                        \
    X(GR_MGN_SCHEDULE_CONSTANT, "constant:0..=100")                                                                    \
    X(GR_MGN_SCHEDULE_COSINE, "cosine:1..:[0..)=0.00001:0..=100")
/* clang-format on */
enum gr_mgn_schedule { GR_MGN_SCHEDULE_LIST(GR_CHOICE_CONSTANT) };

#define GR_EDGE_SCALE_LIST(X) X(GR_EDGE_SCALE_STATISTICS, "statistics") X(GR_EDGE_SCALE_LONGEST, "longest")
enum gr_edge_scale { GR_EDGE_SCALE_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_NETWORK_OPTIONS(X)                                                                                          \
    X(INTEGER("1..16"), linear, "mgn.linear", "3", SAME, GR_USUAL, "",                                                 \
      "linear layers of each MLP")                                                                                     \
    X(CHOICE(gr_mgn_sum, GR_MGN_SUM_LIST), sum, "mgn.sum", "update", SAME, GR_USUAL, "",                               \
      "values of edges that a node sums: the output of their MLP (update), their new values, or their old values")     \
    X(CHOICE(gr_mgn_edges, GR_MGN_EDGES_LIST), edges, "mgn.edges", "carried", SAME, GR_USUAL, "layers!=1",         \
      "edges that a layer reads: the output of the layer before it, or the encoded edges")                             \
    X(CHOICE(gr_edge_scale, GR_EDGE_SCALE_LIST), edge_scale, "mgn.edge_scale", "statistics", SAME, GR_USUAL, "",       \
      "relative positions and lengths are standardised, or divided by the longest edge")                               \
    X(NUMBER("0.."), noise, "mgn.noise", "0", SAME, GR_USUAL | GR_LIVE, "",                                            \
      "standard deviation of the noise in inputs of training, in the units of the data; for stable rollouts")          \
    X(FORM(GR_GATHERING_LIST), statistics, "mgn.statistics", "train", SAME, GR_EXPERT, "",                             \
      "statistics of the data are gathered in FREEZE steps; gather:STEPS:FREEZE: the first steps do nothing else")     \
    X(FORM(GR_MGN_SCHEDULE_LIST), schedule, "mgn.schedule", "constant", SAME, GR_USUAL | GR_LIVE, "",                  \
      "learning rate by steps: constant:WARMUP, or cosine:STEPS:LAST:WARMUP, half a cosine to the last rate")
/* clang-format on */

struct gr_network_options {
    GR_NETWORK_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_network_option_table;

static inline const struct gr_network_options *gr_network_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_network_option_table);
}
