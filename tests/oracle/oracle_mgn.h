/* Model mgn by its formulas (graft_network.h), edge by edge and in double.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_MGN_H
#define ORACLE_MGN_H

#include <stdint.h>

struct oracle_mgn {
    int            width, layers, linear, is_elu, has_norm, is_encoded; /* is_encoded: mgn.edges=encoded */
    int            sum;                                                 /* 0: update, 1: new, 2: old */
    int            n_node_in, n_edge_in, n_out;
    int64_t        n_nodes, n_edges;
    const int32_t *source, *target;
    const double  *edge_weight; /* NULL: 1 */
};

/** The number of weights, one MLP after the other, each linear layer as matrix [out x in] and bias, at the end of an
 *  MLP gain and shift of LayerNorm. */
int64_t oracle_mgn_weights(const struct oracle_mgn *mgn);

/** output[n_nodes x n_out] from nodes[n_nodes x n_node_in] and edges[n_edges x n_edge_in]. */
void oracle_mgn(const struct oracle_mgn *mgn, const double *weights, const double *nodes, const double *edges,
                double *output);

#endif
