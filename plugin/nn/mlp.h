/* Multilayer perceptrons: where their weights are in one array, and their names.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "nn/parameter.h"

enum { GR_MLP_LINEAR_MAX = 16 };

/** An MLP: linear layers with the activation between them, and LayerNorm after the last if has_norm. Matrices are [out
 *  x in] row-major, as in PyTorch. */
struct gr_mlp {
    int32_t linear, has_norm;
    int64_t in, width, out;
    int64_t weight[GR_MLP_LINEAR_MAX], bias[GR_MLP_LINEAR_MAX]; /* first elements in the array of weights */
    int64_t gain, shift;                                        /* of LayerNorm */
};

/** Place an MLP whose linear, has_norm, in, width and out are set: its weights begin at *at, which moves to their
 *  end. */
void gr_nn_place_mlp(struct gr_mlp *mlp, int64_t *at);

/** Append its parameters under the names of a PyTorch module, such as "0.weight" after `name`. Initial values are those
 *  of torch.nn.Linear and LayerNorm. The list has space for 2 linear + 2 more. */
void gr_nn_add_mlp(struct gr_parameters *all, const char *name, const struct gr_mlp *mlp);

/** The number of its weights. */
int64_t gr_nn_mlp_elements(const struct gr_mlp *mlp);

/** Multiply-adds for one row, if the first product has `in` columns. */
double gr_nn_mlp_work(const struct gr_mlp *mlp, int64_t in);
