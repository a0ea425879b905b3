/* The offsets and the names of the weights of an MLP.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/mlp.h"

#include <stdio.h>

static int64_t columns_of(const struct gr_mlp *mlp, int64_t layer)
{
    return layer == 0 ? mlp->in : mlp->width;
}

static int64_t rows_of(const struct gr_mlp *mlp, int64_t layer)
{
    return layer == mlp->linear - 1 ? mlp->out : mlp->width;
}

void gr_nn_place_mlp(struct gr_mlp *mlp, int64_t *at)
{
    for (int64_t i = 0; i < mlp->linear; i++) {
        mlp->weight[i] = *at;
        mlp->bias[i] = mlp->weight[i] + rows_of(mlp, i) * columns_of(mlp, i);
        *at = mlp->bias[i] + rows_of(mlp, i);
    }
    if (!mlp->has_norm) return;
    mlp->gain = *at;
    mlp->shift = mlp->gain + mlp->out;
    *at = mlp->shift + mlp->out;
}

void gr_nn_add_mlp(struct gr_parameters *all, const char *name, const struct gr_mlp *mlp)
{
    struct gr_parameter p = { .decayed = GR_DECAYED, .first = GR_FIRST_FAN_IN };
    char                text[56];

    for (int i = 0; i < mlp->linear; i++) {
        p.inputs = columns_of(mlp, i);
        p.rows = rows_of(mlp, i);
        p.cols = p.inputs;
        p.n_dims = 2;
        snprintf(text, sizeof text, "%s%d.weight", name, i);
        gr_nn_add(all, text, &p);
        p.cols = p.rows;
        p.rows = p.n_dims = 1;
        snprintf(text, sizeof text, "%s%d.bias", name, i);
        gr_nn_add(all, text, &p);
    }
    if (!mlp->has_norm) return;
    p.first = GR_FIRST_ONE;
    snprintf(text, sizeof text, "%snorm.weight", name);
    gr_nn_add(all, text, &p);
    p.first = GR_FIRST_ZERO;
    snprintf(text, sizeof text, "%snorm.bias", name);
    gr_nn_add(all, text, &p);
}

int64_t gr_nn_mlp_elements(const struct gr_mlp *mlp)
{
    const int64_t end = mlp->has_norm ? mlp->shift : mlp->bias[mlp->linear - 1];

    return end + mlp->out - mlp->weight[0];
}

double gr_nn_mlp_work(const struct gr_mlp *mlp, int64_t in)
{
    const double width = (double)mlp->width;

    if (mlp->linear == 1) return (double)in * (double)mlp->out;
    return (double)in * width + (mlp->linear - 2) * width * width + width * (double)mlp->out;
}
