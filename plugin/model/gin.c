/* Layers of gin: Z = ReLU(((1+eps) H + A H) W_1 + b_1) W_2 + b_2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

/* The input is added to the sum, so that comes first. */
int32_t gr_gin_init(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_layer *layer = &t->layers[l];

    (void)error;
    layer->neigh = gr_parameter_find(t, l, "weight_1");
    layer->inner_bias = gr_parameter_find(t, l, "bias_1");
    layer->outer = gr_parameter_find(t, l, "weight_2");
    layer->bias = gr_parameter_find(t, l, "bias_2");
    layer->aggregate_first = 1;
    layer->count[GR_ARRAY_GATHERED] = t->n * layer->in;
    layer->count[GR_ARRAY_INNER] = t->n * layer->out;
    layer->count[GR_ARRAY_INNER_BITS] = t->n * ((layer->out + 7) / 8);
    return GRAFT_OK;
}

/* The passes over rows behind gin's first product: bias and ReLU. */
static struct gr_rows gin_inner_rows(const graft_trainer *t, struct gr_layer *layer)
{
    return (struct gr_rows){ .n = layer->rows_out,
                             .width = layer->out,
                             .team = gr_profile_team(t),
                             .isa = t->isa,
                             .bias = layer->inner_bias->value,
                             .z = layer->inner,
                             .h = layer->inner,
                             .bits = layer->inner_bits };
}

int32_t gr_gin_begin(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    const struct gr_rows rows = gin_inner_rows(t, layer);
    int32_t              rc = GRAFT_OK;

    GR_TRY(gr_layer_gather(t, layer, x, error));
    GR_TRY(gr_product(t, (struct gr_operand){ layer->gathered, layer->in, layer->rows_out }, layer->neigh, 0,
                      layer->inner, error));
    gr_layer_rows_forward(t, &rows);
done:
    return rc;
}

int32_t gr_gin_forward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    (void)x; /* what is needed of it has been gathered */
    return gr_product(t, (struct gr_operand){ layer->inner, layer->out, layer->rows_out }, layer->outer, 0, layer->z,
                      error);
}

int32_t gr_gin_backward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                        graft_error *error)
{
    const struct gr_rows          rows = gin_inner_rows(t, layer);
    const struct gr_rows_gradient inner = { .g = t->scratch,
                                            .bias = layer->inner_bias->gradient,
                                            .partial = t->partial };
    int32_t                       rc = GRAFT_OK;

    (void)x; /* what is needed of it has been gathered */
    GR_TRY(gr_product_weight_gradient(t, (struct gr_operand){ layer->inner, layer->out, layer->rows_out }, g,
                                      layer->outer, error));
    GR_TRY(gr_product_input_gradient(t, g, layer->rows_out, layer->outer, 0, t->scratch, error));
    gr_layer_rows_backward(t, &rows, &inner);
    GR_TRY(gr_product_weight_gradient(t, (struct gr_operand){ layer->gathered, layer->in, layer->rows_out }, t->scratch,
                                      layer->neigh, error));
    if (dx == NULL) return rc;
    GR_TRY(gr_product_input_gradient(t, t->scratch, layer->rows_out, layer->neigh, 0, g, error));
    gr_rows_scale(g, layer->in, NULL, (float)(1 + t->config.gin_eps), dx, layer->rows_out, layer->in, t->threads);
    gr_layer_clear_rest(layer, dx);
    rc = gr_product_gather(t, layer->a_transpose, NULL, (struct gr_operand){ g, layer->in, layer->rows_out }, layer->in,
                           1, dx, error);
done:
    return rc;
}
