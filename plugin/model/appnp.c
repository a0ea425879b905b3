/* Layers of appnp (Gasteiger et al. 2019, eq. 3 and 4): predict, then propagate with teleport. Layers with weights, as
 * in mlp, compute predictions H; then K layers without weights compute
 *
 *      Z' = (1 - alpha) diag(left) A diag(right) Z + alpha H        from Z = H, with option teleport as alpha.
 *
 * Backward, the gradient of H includes alpha times the gradient of each Z'. Each layer adds its term to a sum, and the
 * first layer without weights adds this sum to the gradient through the chain of products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/kind.h"
#include "model/rows.h"

#include <string.h>

/* The sum of alpha times the gradients of all Z', [n_src x out] of the first layer without weights. */
enum { TELEPORTED };

static const struct gr_array_shape appnp_arrays[] = {
    [TELEPORTED] = { "teleported", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_SHARED }, { 0 }
};

static void appnp_count(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    if (a->index >= gr_run_config(run)->n_weighted && !capacity->predicts)
        a->own_count[TELEPORTED] = capacity->seen * a->layer->out;
}

static float teleport_of(const struct gr_run *run)
{
    return (float)gr_run_config(run)->teleport;
}

static int32_t appnp_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                             graft_error *error)
{
    const float *predicted = run->layers[gr_run_config(run)->n_weighted - 1].z;
    const float  alpha = teleport_of(run);

    GR_TRY(gr_kind_sgc.forward(run, a, x, rows, error));
    if (a->layer->self == NULL)
        gr_model_layer_mix(run, a->block->n_dst * a->layer->out, alpha, predicted, 1 - alpha, a->z);
    return GRAFT_OK;
}

static int32_t appnp_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                              graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);
    const int64_t           width = a->layer->out, count = a->block->n_src * width;
    const int               is_first = a->index == config->n_weighted;
    float *const            teleported = a->own[TELEPORTED];

    if (a->layer->self != NULL) return gr_kind_sgc.backward(run, a, x, g, dx, error);
    /* The last layer is the first of the backward pass. */
    if (a->index + 1 == config->n_layers)
        memset(teleported, 0, (uint64_t)(run->layers[config->n_weighted].block->n_src * width) * sizeof *teleported);
    gr_model_layer_mix(run, a->block->n_dst * width, teleport_of(run), g, 1, teleported);
    GR_TRY(gr_kind_sgc.backward(run, a, x, g, dx, error));
    gr_model_layer_mix(run, count, is_first ? 1 : 0, is_first ? teleported : dx, 1 - teleport_of(run), dx);
    return GRAFT_OK;
}

const struct gr_model_kind gr_kind_appnp = { .name = "appnp",
                                             .shapes = gr_own_shapes,
                                             .arrays = appnp_arrays,
                                             .normalization = GR_NORMALIZE_SYMMETRIC,
                                             .gathers = 1,
                                             .propagates = 1,
                                             .teleports = 1,
                                             .self_loops = 1,
                                             .gathers_late = 1,
                                             .count = appnp_count,

                                             .forward = appnp_forward,
                                             .backward = appnp_backward };
