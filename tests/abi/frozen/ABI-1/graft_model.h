/* Models: what they compute, and their initial weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MODEL_H
#define GRAFT_MODEL_H

#include "graft_base.h"

GRAFT_EXTERN_C_BEGIN

/* Models. H_0 are the features, A is the graph (row v has the neighbours of v), W and b are weights, L is the number of
 * layers:
 *
 *     mlp    Z_l = H_l W + b                                   (a baseline without the graph)
 *     sage   Z_l = H_l W_self + D^-1 A H_l W_neigh + b         mean over neighbours, 0 if none; Hamilton et al. 2017
 *     gcn    Z_l = D^-1/2 A D^-1/2 H_l W + b                   with self loops; Kipf and Welling 2017, eq. 2
 *     gat    Z_l = (P_1 U_1 | ... | P_K U_K) + b               with self loops; Velickovic et al. 2018, eqs. 1 to 6
 *     gin    Z_l = ReLU(((1+eps) H_l + A H_l) W_1 + b_1) W_2 + b_2       Xu et al. 2019, eq. 4.1, eps fixed
 *
 *     H_{l+1} = dropout(ReLU(norm(Z_l)))  for l < L-1;  Z_{L-1} are the logits.
 *
 * sgc and appnp predict as mlp does, P = Z_{L-1}, and then propagate in K = `propagation` steps, with self loops:
 *
 *     sgc    Y_0 = P,  Y_k = S Y_{k-1},  S = D^-1/2 A D^-1/2;  Y_K are the logits     Wu et al. 2019, eq. 8, for L = 1
 *     appnp  Y_k = (1 - t) S Y_{k-1} + t P, with t = `teleport`                       Gasteiger et al. 2019, eqs. 3, 4
 *
 * gat has K = `heads` heads: H_l W = (U_1 | ... | U_K) concatenated, each of 1/K of the output width; in the last layer
 * each has the full output width, and the output is their mean. P_k is the softmax over each row of A of the scores of
 * its edges: the score of (v, u) is s = target_k . U_k(v) + source_k . U_k(u) if positive, else s/5. A vertex without
 * edges gathers 0; the values of A are not used.
 *
 * D has the row sums of A after symmetrize and self_loops: the numbers of neighbours if A has no values. A vertex with
 * a sum that is not positive gathers 0. gcn scales both sides with D, so A should be symmetric.
 *
 * Initial weights are uniform within [-b, b]. In sage, mlp, sgc and appnp b is 1/sqrt(in) for weights and biases,
 * where in is the number of rows of the weight (the rule of PyTorch's Linear); in gin it is so for weights; in gcn,
 * gat and the label embedding of option label_rate it is sqrt(6/(in + out)) for weights (Glorot and Bengio 2010, eq.
 * 16). All other biases are 0, norm gains 1 and shifts 0. The draws depend on seed, parameter, row and column only;
 * state_set() replaces the values. */

GRAFT_EXTERN_C_END
#endif
