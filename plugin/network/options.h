/* The options of networks on meshes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_NETWORK_OPTIONS_H
#define GR_NETWORK_OPTIONS_H

#include "base/option_row.h"
#include "mgn/mgn.h"

#define GR_MESH_ACTIVATION_LIST(X) X(GR_MESH_RELU, "relu") X(GR_MESH_ELU, "elu")
enum gr_mesh_activation { GR_MESH_ACTIVATION_LIST(GR_CHOICE_CONSTANT) };

#define GR_EDGE_SCALE_LIST(X) X(GR_EDGE_SCALE_STATISTICS, "statistics") X(GR_EDGE_SCALE_LONGEST, "longest")
enum gr_edge_scale { GR_EDGE_SCALE_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_NETWORK_OPTIONS(X)                                                                                          \
    X(INTEGER("1..65536"), width, "mgn.width", "128", SAME, GR_USUAL, "",                                              \
      "width of the layers of a network")                                                                              \
    X(INTEGER("1..64"), layers, "mgn.layers", "15", SAME, GR_USUAL, "",                                                \
      "layers of message passing: number of edges that information travels in a step")                                 \
    X(INTEGER("1..16"), linear, "mgn.linear", "3", SAME, GR_USUAL, "",                                                 \
      "linear layers of each MLP")                                                                                     \
    X(CHOICE(gr_mesh_activation, GR_MESH_ACTIVATION_LIST), activation, "mgn.activation", "relu", SAME, GR_USUAL,       \
      "mgn.linear!=1",                                                                                                 \
      "activation between the linear layers")                                                                          \
    X(SWITCH(), has_norm, "mgn.norm", "yes", SAME, GR_USUAL, "",                                                       \
      "LayerNorm at the end of each MLP except the output MLP")                                                        \
    X(CHOICE(gr_mgn_sum, GR_MGN_SUM_LIST), sum, "mgn.sum", "update", SAME, GR_USUAL, "",                               \
      "values of edges that a node sums: the output of their MLP (update), their new values, or their old values")     \
    X(CHOICE(gr_mgn_edges, GR_MGN_EDGES_LIST), edges, "mgn.edges", "carried", SAME, GR_USUAL, "mgn.layers!=1",         \
      "edges that a layer reads: the output of the layer before it, or the encoded edges")                             \
    X(CHOICE(gr_edge_scale, GR_EDGE_SCALE_LIST), edge_scale, "mgn.edge_scale", "statistics", SAME, GR_USUAL, "",       \
      "relative positions and lengths are standardised, or divided by the longest edge")                               \
    X(SWITCH(), adds_input, "mgn.residual", "no", SAME, GR_USUAL, "",                                                  \
      "add the standardised first inputs to the standardised outputs (nekRS-ML); for networks that predict values")    \
    X(NUMBER("0.."), noise, "mgn.noise", "0", SAME, GR_USUAL | GR_LIVE, "",                                            \
      "standard deviation of the noise in inputs of training, in the units of the data; for stable rollouts")          \
    X(NUMBER("0..1"), noise_correction, "mgn.noise_correction", "1", SAME, GR_LIVE, "mgn.noise!=0",                    \
      "share of the noise that the target of a step corrects")                                                         \
    X(INTEGER("0.."), gather, "mgn.gather", "0", SAME, GR_EXPERT, "",                                                  \
      "first steps, which only gather statistics of the data")                                                         \
    X(INTEGER("1.."), freeze, "mgn.freeze", "1000000", SAME, GR_EXPERT, "",                                            \
      "steps after which these statistics no longer change")                                                           \
    X(NUMBER("0.."), lr, "mgn.lr", "0.001", SAME, GR_USUAL | GR_LIVE, "",                                              \
      "learning rate of AdamW")                                                                                        \
    X(INTEGER("0.."), warmup, "mgn.warmup", "100", SAME, GR_USUAL | GR_LIVE, "",                                       \
      "steps in which the learning rate rises linearly")                                                               \
    X(INTEGER("0.."), steps, "mgn.steps", "0", SAME, GR_USUAL | GR_LIVE, "",                                           \
      "steps after which the learning rate has fallen to mgn.lr_end, along half a cosine; 0: it stays")                \
    X(NUMBER("0.."), lr_end, "mgn.lr_end", "0.00001", SAME, GR_USUAL | GR_LIVE, "mgn.steps!=0",                        \
      "last learning rate")                                                                                            \
    X(NUMBER("[0..1)"), beta1, "mgn.beta1", "0.9", SAME, GR_LIVE, "",                                                  \
      "decay of the first moment of AdamW")                                                                            \
    X(NUMBER("[0..1)"), beta2, "mgn.beta2", "0.999", SAME, GR_LIVE, "",                                                \
      "decay of the second moment of AdamW")                                                                           \
    X(NUMBER("0.."), weight_decay, "mgn.weight_decay", "0", SAME, GR_USUAL | GR_LIVE, "",                              \
      "decoupled decay of all weights (AdamW)")
/* clang-format on */

struct gr_network_options {
    GR_NETWORK_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_network_option_table;

static inline const struct gr_network_options *gr_network_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_network_option_table);
}

#endif
