/* Layers of gin (Xu et al. 2019, eq. 4.1): Z = ReLU((H + A H) W_1 + b_1) W_2 + b_2. (H + A H) W_1 is linear in H, so it
 * may be computed as H W_1 + A (H W_1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/gather.h"
#include "model/kind.h"
#include "model/product.h"
#include "model/rows.h"
#include "model/workers.h"

/* INNER: ReLU of the first product, [n_dst x out]. INNER_BITS: the elements that ReLU keeps. */
enum { INNER, INNER_BITS };

static const struct gr_array_shape gin_arrays[] = {
    [INNER] = { "inner", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [INNER_BITS] = { "inner_bits", 1, GR_USE_MASKS, GR_LIFE_RECOMPUTED },
    { 0 }
};

static void gin_count(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    const int64_t out = a->layer->out;

    GR_ASSERT(a->layer->neigh != NULL && a->layer->outer != NULL);
    gr_model_layer_count_gathered(run, a, capacity);
    a->own_count[INNER] = capacity->rows * out;
    a->own_count[INNER_BITS] = capacity->rows * ((out + 7) / 8);
}

/* Describe the passes over rows that follow the first product: bias and ReLU. */
static struct gr_rows inner_rows(const struct gr_run *run, const struct gr_activations *a)
{
    return (struct gr_rows){ .n = a->block->n_dst,
                             .width = a->layer->out,
                             .team = gr_run_team(run),
                             .isa = run->isa,
                             .bias = a->layer->inner_bias->value,
                             .z = a->own[INNER],
                             .h = a->own[INNER],
                             .bits = a->own[INNER_BITS] };
}

/* INNER = ReLU(X W_1 + A X W_1 + b_1); the epilogue `rows` adds the bias and applies ReLU. */
static int32_t forward_transformed(struct gr_run *run, struct gr_activations *a, struct gr_operand x,
                                   struct gr_rows *rows, graft_error *error)
{
    const int64_t      out = a->layer->out;
    struct gr_epilogue epilogue = gr_model_layer_rows_epilogue(rows);
    struct gr_sum      sum = gr_model_sum_of(a, GR_FORWARD, NULL, run->space.scratch, out, 1, a->own[INNER]);

    sum.epilogue = &epilogue;
    GR_TRY(gr_model_product(run, x, a->layer->neigh, 0, NULL, run->space.scratch, error));
    gr_model_layer_scale(run, gr_dense_operand(run->space.scratch, out, a->block->n_dst), NULL, 1, a->own[INNER], out);
    return gr_model_aggregate(run, &sum, error);
}

static int32_t gin_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    struct gr_rows rows = inner_rows(run, a);

    if (!a->aggregate_first) return forward_transformed(run, a, x, &rows, error);
    GR_TRY(gr_model_layer_gather(run, a, x, 1, error));
    return gr_model_product_rows(run, gr_model_layer_gathered(run, a), a->layer->neigh, 0, &rows, error);
}

static int32_t gin_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                           graft_error *error)
{
    (void)x; /* begin() has used it */
    return gr_model_product_rows(run, gr_dense_operand(a->own[INNER], a->layer->out, a->block->n_dst), a->layer->outer,
                                 0, rows, error);
}

/* to[n_src x width] = g + A^T g, for g of n_dst rows, with an epilogue or NULL. */
static int32_t scatter_gradient(struct gr_run *run, const struct gr_activations *a, const float *g, int64_t width,
                                float *to, struct gr_epilogue *epilogue, graft_error *error)
{
    struct gr_sum sum = gr_model_sum_of(a, GR_BACKWARD, NULL, g, width, 1, to);

    sum.epilogue = epilogue;
    gr_model_layer_scale(run, gr_dense_operand(g, width, a->block->n_dst), NULL, 1, to, width);
    gr_model_layer_clear_rest(run, a->block, to, width);
    return gr_model_aggregate(run, &sum, error);
}

/* Compute the backward pass of H W_1 + A (H W_1) from its gradient, which is in run->space.scratch. Overwrites g. */
static int32_t gin_backward_transformed(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g,
                                        float *dx, graft_error *error)
{
    struct gr_parameter *const w = a->layer->neigh;

    GR_TRY(scatter_gradient(run, a, run->space.scratch, a->layer->out, g, NULL, error));
    GR_TRY(gr_model_weight_gradient(run, x, g, 0, w, error));
    if (dx != NULL) return gr_model_input_gradient_with(run, g, a->block->n_src, w, 0, dx, run->below, error);
    return GRAFT_OK;
}

static int32_t gin_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                            graft_error *error)
{
    const struct gr_layer  *layer = a->layer;
    const int64_t           n_dst = a->block->n_dst;
    struct gr_rows_backward inner = { .rows = inner_rows(run, a), .left = run->space.left[1] };
    struct gr_epilogue      epilogue = { .some = gr_nn_rows_backward_part, .arg = &inner };

    GR_TRY(
        gr_model_weight_gradient(run, gr_dense_operand(a->own[INNER], layer->out, n_dst), g, 0, layer->outer, error));
    inner.gradient = (struct gr_rows_gradient){ .g = run->space.scratch,
                                                .bias = layer->inner_bias->gradient,
                                                .partial = run->space.partial };
    gr_model_workers_own_pass(run, a->index, 1, &inner);
    gr_nn_rows_backward_begin(&inner);
    GR_TRY(gr_model_input_gradient_with(run, g, n_dst, layer->outer, 0, run->space.scratch, &epilogue, error));
    gr_model_layer_rows_backward(run, &inner);
    if (!a->aggregate_first) return gin_backward_transformed(run, a, x, g, dx, error);
    GR_TRY(gr_model_weight_gradient(run, gr_model_layer_gathered(run, a), run->space.scratch, 0, layer->neigh, error));
    if (dx == NULL) return GRAFT_OK;
    GR_TRY(gr_model_input_gradient(run, run->space.scratch, n_dst, layer->neigh, 0, NULL, g, error));
    return scatter_gradient(run, a, g, layer->in, dx, run->below, error);
}

static const struct gr_parameter_shape gin_shapes[] = { { "weight_1", 'i', 'o', GR_SLOT(neigh), GR_FIRST_FAN_IN, NULL },
                                                        { "bias_1", '1', 'o', GR_SLOT(inner_bias), GR_FIRST_ZERO,
                                                          NULL },
                                                        { "weight_2", 'o', 'o', GR_SLOT(outer), GR_FIRST_FAN_IN, NULL },
                                                        { "bias_2", '1', 'o', GR_SLOT(bias), GR_FIRST_ZERO, NULL },
                                                        { 0 } };

const struct gr_model_kind gr_kind_gin = { .name = "gin",
                                           .shapes = gin_shapes,
                                           .arrays = gin_arrays,
                                           .gathers = 1,
                                           .wide_gradient = 1,
                                           .count = gin_count,
                                           .begin = gin_begin,
                                           .forward = gin_forward,
                                           .backward = gin_backward };
