/* Computes the network of kind mgn by its formulas (graft_network.h), edge by edge and in double precision.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_MGN_H
#define ORACLE_MGN_H

#include <stdint.h>

struct oracle_mgn {
    int            width, layers, linear, is_elu, has_norm, is_encoded; /* sizes and settings of the network; is_encoded
                                                                         * stands for mgn.edges=encoded */
    /* Which edge features are summed at nodes: 0 for the updates, 1 for the new features, 2 for the old ones. */
    int            sum;
    int            n_node_in, n_edge_in, n_out;
    int64_t        n_nodes, n_edges;
    const int32_t *source, *target;
    const double  *edge_weight; /* weight of each edge; NULL if all are 1 */
};

/** The number of weights. Multilayer perceptrons follow each other. A linear layer has its matrix [out x in] and then
 * its bias, and LayerNorm has its gain and shift at the end of a perceptron. */
int64_t oracle_mgn_weights(const struct oracle_mgn *mgn);

/** Compute output [n_nodes x n_out] from nodes [n_nodes x n_node_in] and edges [n_edges x n_edge_in]. */
void oracle_mgn(const struct oracle_mgn *mgn, const double *weights, const double *nodes, const double *edges,
                double *output);

#endif
