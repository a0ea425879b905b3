/* The options of graphs over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/options.h"

/* clang-format off */
#define GR_PARALLEL_LIST(X)                                                                                            \
    X(GR_PARALLEL_PARTITION, "partition")                                                                              \
    X(GR_PARALLEL_FEATURE, "feature")                                                                                  \
    X(GR_PARALLEL_GRID, "grid:0..=0")                                                                                  \
    X(GR_PARALLEL_AUTO, "auto")
/* clang-format on */
enum gr_parallel { GR_PARALLEL_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_FEATURE_GRAPH_LIST(X)                                                                                       \
    X(GR_FEATURE_GRAPH_AUTO, "auto")                                                                                   \
    X(GR_FEATURE_GRAPH_REPLICATE, "replicate")                                                                         \
    X(GR_FEATURE_GRAPH_STREAM, "stream")
/* clang-format on */
enum gr_feature_graph { GR_FEATURE_GRAPH_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_DGRAPH_OPTIONS(X)                                                                                           \
    X(FORM(GR_PARALLEL_LIST), parallel, "parallel", "partition", SAME, GR_USUAL, GR_NEEDS_EXCHANGE,                    \
      "division of sums among ranks: rows; all columns (feature); columns of parts (grid:RANKS of a part; 0: about "   \
      "the root of their number); auto: predicted")                                                                    \
    X(CHOICE(gr_feature_graph, GR_FEATURE_GRAPH_LIST), feature_graph, "feature.graph", "auto", SAME, GR_USUAL,         \
      GR_NEEDS_EXCHANGE " and parallel=feature|grid|auto",                                                             \
      "edges of a group's ranks: held (replicate), or received in each sum (stream); auto: held if they fit")
/* clang-format on */

struct gr_dgraph_options {
    GR_DGRAPH_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_dgraph_option_table;

static inline const struct gr_dgraph_options *gr_dgraph_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_dgraph_option_table);
}
