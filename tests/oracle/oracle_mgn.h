/* The network of kind mgn by its formulas (graft_network.h), edge by edge and in double precision.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_MGN_H
#define ORACLE_MGN_H

#include <stdint.h>

struct oracle_mgn {
    int            width, layers, linear, is_elu, has_norm, is_encoded; /* is_encoded stands for mgn.edges=encoded */
    /* Which edge features are summed at nodes: 0 the updates, 1 the new ones, 2 the old ones. */
    int            sum;
    int            n_node_in, n_edge_in, n_out;
    int64_t        n_nodes, n_edges;
    const int32_t *source, *target;
    const double  *edge_weight; /* weight of each edge; NULL for 1 */
};

/** The number of weights. Perceptrons follow each other; a linear layer has its matrix [out x in] and then its bias,
 *  and LayerNorm has gain and shift at the end of a perceptron. */
int64_t oracle_mgn_weights(const struct oracle_mgn *mgn);

/** Compute output [n_nodes x n_out] from nodes [n_nodes x n_node_in] and edges [n_edges x n_edge_in]. */
void oracle_mgn(const struct oracle_mgn *mgn, const double *weights, const double *nodes, const double *edges,
                double *output);

#endif
