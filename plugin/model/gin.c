/* Layers of gin: Z = ReLU(((1+eps) H + A H) W_1 + b_1) W_2 + b_2. What the inner brackets hold is linear in H, so that
 * H W_1 may take the place of H there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

int32_t gr_gin_init(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_layer *layer = &t->layers[l];

    (void)error;
    layer->neigh = gr_parameter_find(t, l, "weight_1");
    layer->inner_bias = gr_parameter_find(t, l, "bias_1");
    layer->outer = gr_parameter_find(t, l, "weight_2");
    layer->bias = gr_parameter_find(t, l, "bias_2");
    layer->aggregate_first = gr_layer_aggregates_first(t, l);
    if (layer->aggregate_first) layer->count[GR_ARRAY_GATHERED] = t->n * layer->in;
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

/* layer->inner = X W_1 gathered: (1+eps) times that of the vertex itself, and those of its neighbours. */
static int32_t forward_transformed(const graft_trainer *t, struct gr_layer *layer, struct gr_operand x,
                                   graft_error *error)
{
    const struct gr_operand product = gr_dense_operand(t->scratch, layer->out, layer->rows_in);
    const float             factor = (float)(1 + t->config.gin_eps);
    int32_t                 rc = GRAFT_OK;

    GR_TRY(gr_product(t, x, layer->neigh, 0, NULL, t->scratch, error));
    gr_layer_scale(t, gr_dense_operand(t->scratch, layer->out, layer->rows_out), NULL, factor, layer->inner,
                   layer->out);
    rc = gr_product_gather(t, layer, &(struct gr_sum){ GR_GATHER, NULL, product, layer->out, 1, layer->inner }, error);
done:
    return rc;
}

int32_t gr_gin_begin(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    struct gr_rows rows = gin_inner_rows(t, layer);
    int32_t        rc = GRAFT_OK;

    if (layer->aggregate_first) {
        GR_TRY(gr_layer_gather(t, layer, x, error));
        rc = gr_product_rows(t, gr_layer_gathered(layer), layer->neigh, 0, &rows, error);
    } else {
        GR_TRY(forward_transformed(t, layer, x, error));
        gr_layer_rows_forward(t, &rows);
    }
done:
    return rc;
}

/* to[rows_in x width] = (1+eps) g + A^T g, for g of rows_out rows. */
static int32_t scatter(const graft_trainer *t, const struct gr_layer *layer, const float *g, int64_t width, float *to,
                       graft_error *error)
{
    gr_layer_scale(t, gr_dense_operand(g, width, layer->rows_out), NULL, (float)(1 + t->config.gin_eps), to, width);
    gr_layer_clear_rest(t, layer, to, width);
    return gr_product_gather(
        t, layer, &(struct gr_sum){ GR_SCATTER, NULL, gr_dense_operand(g, width, layer->rows_out), width, 1, to },
        error);
}

/* From t->scratch, the gradient of layer->inner before its bias. What g was is no longer needed. */
static int32_t backward_transformed(const graft_trainer *t, struct gr_layer *layer, struct gr_operand x, float *g,
                                    float *dx, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(scatter(t, layer, t->scratch, layer->out, g, error));
    GR_TRY(gr_product_weight_gradient(t, x, g, 0, layer->neigh, error));
    if (dx != NULL) rc = gr_product_input_gradient(t, g, layer->rows_in, layer->neigh, 0, NULL, dx, error);
done:
    return rc;
}

int32_t gr_gin_forward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error)
{
    (void)x; /* what is needed of it has been gathered */
    return gr_product_rows(t, gr_dense_operand(layer->inner, layer->out, layer->rows_out), layer->outer, 0, rows,
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

    GR_TRY(gr_product_weight_gradient(t, gr_dense_operand(layer->inner, layer->out, layer->rows_out), g, 0,
                                      layer->outer, error));
    GR_TRY(gr_product_input_gradient(t, g, layer->rows_out, layer->outer, 0, NULL, t->scratch, error));
    gr_layer_rows_backward(t, &rows, &inner);
    if (!layer->aggregate_first) return backward_transformed(t, layer, x, g, dx, error);
    GR_TRY(gr_product_weight_gradient(t, gr_layer_gathered(layer), t->scratch, 0, layer->neigh, error));
    if (dx == NULL) return rc;
    GR_TRY(gr_product_input_gradient(t, t->scratch, layer->rows_out, layer->neigh, 0, NULL, g, error));
    rc = scatter(t, layer, g, layer->in, dx, error);
done:
    return rc;
}
