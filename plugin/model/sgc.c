/* Layers of sgc (Wu et al. 2019, eq. 8): predict, then propagate. Layers with weights, as in mlp, compute a row of
 * classes for each vertex; then K layers without weights compute Z' = diag(left) A diag(right) Z, the normalised sum
 * over neighbours. With one weighted layer this is S^K X W, S being the normalised matrix.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/gather.h"
#include "model/kind.h"
#include "model/rows.h"

static int32_t sgc_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                           graft_error *error)
{
    const struct gr_layer *layer = a->layer;

    if (layer->self != NULL) return gr_kind_mlp.forward(run, a, x, rows, error);
    GR_ASSERT(layer->in == layer->out);
    return gr_model_aggregate_scaled(run, 0, gr_model_sum_of(a, GR_FORWARD, NULL, x.data, layer->out, 0, a->z), error);
}

static int32_t sgc_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                            graft_error *error)
{
    const struct gr_layer *layer = a->layer;
    const struct gr_block *block = a->block;
    const struct gr_sum    sum = gr_model_sum_of(a, GR_BACKWARD, block->right, g, layer->out, 0, dx);

    if (layer->self != NULL) return gr_kind_mlp.backward(run, a, x, g, dx, error);
    gr_model_layer_scale(run, gr_dense_operand(g, layer->out, block->n_dst), block->left, 0, g, layer->out);
    return gr_model_aggregate(run, &sum, error);
}

const struct gr_model_kind gr_kind_sgc = { .name = "sgc",
                                           .shapes = gr_own_shapes,
                                           .normalization = GR_NORMALIZE_SYMMETRIC,
                                           .gathers = 1,
                                           .propagates = 1,
                                           .self_loops = 1,
                                           .gathers_late = 1,

                                           .forward = sgc_forward,
                                           .backward = sgc_backward };
