/* Multilayer perceptrons: the offsets of their weights in one array, and their names.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "nn/parameter.h"

enum { GR_MLP_LINEAR_MAX = 16 };

/** An MLP: linear layers with the activation between them, and LayerNorm after the last if has_norm. Matrices are [out
 *  x in] row-major, as in PyTorch. */
struct gr_mlp {
    int32_t linear, has_norm;
    int64_t in, width, out;
    int64_t weight[GR_MLP_LINEAR_MAX], bias[GR_MLP_LINEAR_MAX]; /* offsets in the array of weights */
    int64_t gain, shift;                                        /* offsets of the parameters of LayerNorm */
};

/** Set the offsets of an MLP whose linear, has_norm, in, width and out are set. The weights begin at offset *at, which
 *  is set to their end. */
void gr_nn_place_mlp(struct gr_mlp *mlp, int64_t *at);

/** Append the parameters of an MLP to a list, which has space for 2 linear + 2 more. They have `name` and the names of
 *  a PyTorch module, such as "0.weight", and the initial values of torch.nn.Linear and LayerNorm. */
void gr_nn_add_mlp(struct gr_parameters *all, const char *name, const struct gr_mlp *mlp);

/** The number of weights of an MLP. */
int64_t gr_nn_mlp_elements(const struct gr_mlp *mlp);

/** The number of multiply-adds of an MLP for one row, if `in` columns of the first matrix are multiplied. */
double gr_nn_mlp_work(const struct gr_mlp *mlp, int64_t in);
