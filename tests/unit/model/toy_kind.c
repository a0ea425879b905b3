/* A kind of model for test_toy_kind: Z = A S + b, where S has the squares of the elements of P = H W. P and S are
 * arrays of the kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/kind.h"

#include "model/gather.h"
#include "model/product.h"
#include "model/rows.h"

/* P, which the backward pass needs; S, which only the sum needs. */
enum { PRODUCT, SQUARES };

static const struct gr_array_shape toy_arrays[] = {
    [PRODUCT] = { "toy product", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [SQUARES] = { "toy squares", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_SHARED },
    { 0 }
};

static void toy_count(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    (void)run;
    a->own_count[PRODUCT] = a->own_count[SQUARES] = capacity->seen * a->layer->out;
}

static int32_t toy_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    return gr_model_product(run, x, a->layer->neigh, 0, NULL, a->own[PRODUCT], error);
}

static int32_t toy_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                           graft_error *error)
{
    const int64_t       width = a->layer->out;
    const float *const  product = a->own[PRODUCT];
    float *const        squares = a->own[SQUARES];
    const struct gr_sum sum = gr_model_sum_of(a, GR_FORWARD, NULL, squares, width, 0, a->z);

    (void)x;
    for (int64_t i = 0; i < a->block->n_src * width; i++) squares[i] = product[i] * product[i];
    GR_TRY(gr_model_aggregate(run, &sum, error));
    gr_model_layer_rows_forward(run, rows);
    return GRAFT_OK;
}

static int32_t toy_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                            graft_error *error)
{
    const int64_t       width = a->layer->out;
    const float *const  product = a->own[PRODUCT];
    float *const        to = run->space.scratch;
    const struct gr_sum sum = gr_model_sum_of(a, GR_BACKWARD, NULL, g, width, 0, to);

    GR_TRY(gr_model_aggregate(run, &sum, error));
    for (int64_t i = 0; i < a->block->n_src * width; i++) to[i] *= 2 * product[i];
    GR_TRY(gr_model_weight_gradient(run, x, to, 0, a->layer->neigh, error));
    if (dx != NULL)
        return gr_model_input_gradient_with(run, to, a->block->n_src, a->layer->neigh, 0, dx, run->below, error);
    return GRAFT_OK;
}

static const struct gr_parameter_shape toy_shapes[] = { { "weight", 'i', 'o', GR_SLOT(neigh), GR_FIRST_GLOROT, NULL },
                                                        { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_ZERO, NULL },
                                                        { 0 } };

extern const struct gr_model_kind gr_kind_toy;
const struct gr_model_kind        gr_kind_toy = { .name = "toy",
                                                  .shapes = toy_shapes,
                                                  .arrays = toy_arrays,
                                                  .gathers = 1,
                                                  .count = toy_count,
                                                  .begin = toy_begin,
                                                  .forward = toy_forward,
                                                  .backward = toy_backward };
