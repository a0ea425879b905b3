/* Layers of appnp (Gasteiger et al. 2019, eq. 3 and 4): predict, then propagate with teleport. Layers with weights, as
 * in mlp, make predictions H; then K layers without weights compute
 *
 *      Z' = (1 - alpha) diag(left) A diag(right) Z + alpha H        from Z = H, with option teleport as alpha.
 *
 * Backward, the gradient of H includes alpha times the gradient of each Z'. These terms are summed on the way, and the
 * first layer without weights adds the sum to the result of the chain of products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/run.h"

#include <string.h>

static void appnp_count(struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    gr_kind_sgc.count(run, a, capacity);
    if (a->index == gr_run_config(run)->n_weighted) a->count[GR_ARRAY_INNER] = capacity->seen * a->layer->out;
}

static float teleport_of(const struct gr_run *run)
{
    return (float)gr_run_config(run)->teleport;
}

static int32_t appnp_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    return gr_kind_sgc.begin(run, a, x, error);
}

static int32_t appnp_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                             graft_error *error)
{
    const float *predicted = run->layers[gr_run_config(run)->n_weighted - 1].z;
    const float  alpha = teleport_of(run);
    int32_t      rc = GRAFT_OK;

    GR_TRY(gr_kind_sgc.forward(run, a, x, rows, error));
    if (a->layer->self == NULL) gr_layer_mix(run, a->block->n_dst * a->layer->out, alpha, predicted, 1 - alpha, a->z);
done:
    return rc;
}

/* Add alpha g to the teleported gradient, which the last layer, which comes first in the backward pass, sets to
 * zero. */
static void teleport_gradient(struct gr_run *run, const struct gr_activations *a, const float *g)
{
    const struct gr_config      *config = gr_run_config(run);
    const struct gr_activations *first = &run->layers[config->n_weighted];
    const int64_t                width = a->layer->out;

    GR_ASSERT(a->index >= config->n_weighted);
    if (a->index + 1 == config->n_layers && first->block->n_src > 0)
        memset(first->inner, 0, (uint64_t)(first->block->n_src * width) * sizeof *first->inner);
    gr_layer_mix(run, a->block->n_dst * width, teleport_of(run), g, 1, first->inner);
}

static int32_t appnp_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                              graft_error *error)
{
    const int     is_first = a->index == gr_run_config(run)->n_weighted;
    const int64_t count = a->block->n_src * a->layer->out;
    int32_t       rc = GRAFT_OK;

    if (a->layer->self != NULL) return gr_kind_sgc.backward(run, a, x, g, dx, error);
    teleport_gradient(run, a, g);
    GR_TRY(gr_kind_sgc.backward(run, a, x, g, dx, error));
    gr_layer_mix(run, count, is_first ? 1 : 0, is_first ? a->inner : dx, 1 - teleport_of(run), dx);
done:
    return rc;
}

static const struct gr_parameter_shape appnp_shapes[] = { { "weight", 'i', 'o', GR_SLOT(self), GR_FIRST_FAN_IN },
                                                          { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_FAN_IN },
                                                          { 0 } };

const struct gr_model_kind gr_kind_appnp = { .name = "appnp",
                                             .shapes = appnp_shapes,
                                             .normalization = GR_NORMALIZE_SYMMETRIC,
                                             .gathers = 1,
                                             .propagates = 1,
                                             .self_loops = 1,
                                             .gathers_late = 1,
                                             .count = appnp_count,
                                             .begin = appnp_begin,
                                             .forward = appnp_forward,
                                             .backward = appnp_backward };
