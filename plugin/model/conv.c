/* Layers Z = H W_self + agg(H) W_neigh + b, of which mlp has the first half and gcn the second.
 * agg(H) = diag(left) A diag(right) H.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

int32_t gr_conv_init(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_layer *layer = &t->layers[l];

    (void)error;
    layer->self = gr_parameter_find(t, l, t->config.kind == GR_MODEL_MLP ? "weight" : "weight_self");
    layer->neigh = gr_parameter_find(t, l, t->config.kind == GR_MODEL_GCN ? "weight" : "weight_neigh");
    layer->bias = gr_parameter_find(t, l, "bias");
    layer->aggregate_first = gr_layer_aggregates_first(t, l);
    if (layer->neigh != NULL && layer->aggregate_first) layer->count[GR_ARRAY_GATHERED] = t->n * layer->in;
    return GRAFT_OK;
}

static struct gr_operand first_rows(struct gr_operand x, int64_t rows)
{
    x.rows = rows;
    return x;
}

int32_t gr_conv_begin(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    return layer->neigh != NULL && layer->aggregate_first ? gr_layer_gather(t, layer, x, error) : GRAFT_OK;
}

int32_t gr_conv_forward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                        graft_error *error)
{
    const struct gr_operand product = gr_dense_operand(t->scratch, layer->out, layer->rows_in);
    const struct gr_operand own = first_rows(x, layer->rows_out);
    const int               add = layer->self != NULL;
    int32_t                 rc = GRAFT_OK;

    if (layer->neigh == NULL) return gr_product_rows(t, own, layer->self, 0, rows, error);
    if (add) GR_TRY(gr_product(t, own, layer->self, 0, NULL, layer->z, error));
    if (layer->aggregate_first)
        return gr_product_rows(t, gr_layer_gathered(layer), layer->neigh, (float)add, rows, error);
    GR_TRY(gr_product(t, x, layer->neigh, 0, t->right, t->scratch, error));
    GR_TRY(
        gr_product_gather(t, layer, &(struct gr_sum){ GR_GATHER, t->left, product, layer->out, add, layer->z }, error));
    gr_layer_rows_forward(t, rows);
done:
    return rc;
}

/* Through what was gathered first. dx is written there, so that the vertex itself comes behind. */
static int32_t backward_gathered(graft_trainer *t, struct gr_layer *layer, const float *g, float *dx,
                                 graft_error *error)
{
    const struct gr_operand gradient = gr_dense_operand(t->scratch, layer->in, layer->rows_out);
    int32_t                 rc = GRAFT_OK;

    GR_TRY(gr_product_weight_gradient(t, gr_layer_gathered(layer), g, 0, layer->neigh, error));
    if (dx == NULL) return GRAFT_OK;
    GR_TRY(gr_product_input_gradient(t, g, layer->rows_out, layer->neigh, 0, t->left, t->scratch, error));
    GR_TRY(gr_product_gather(t, layer, &(struct gr_sum){ GR_SCATTER, t->right, gradient, layer->in, 0, dx }, error));
    if (layer->self != NULL) rc = gr_product_input_gradient(t, g, layer->rows_out, layer->self, 1, NULL, dx, error);
done:
    return rc;
}

/* Through what was transformed first. g is spoiled, so that the vertex itself comes before. */
static int32_t backward_transformed(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                                    graft_error *error)
{
    const struct gr_operand gradient = gr_dense_operand(g, layer->out, layer->rows_out);
    const int               add = layer->self != NULL;
    int32_t                 rc = GRAFT_OK;

    if (add && dx != NULL) {
        GR_TRY(gr_product_input_gradient(t, g, layer->rows_out, layer->self, 0, NULL, dx, error));
        gr_layer_clear_rest(t, layer, dx, layer->in);
    }
    if (t->left != NULL) gr_layer_scale(t, gradient, t->left, 0, g, layer->out);
    GR_TRY(gr_product_gather(t, layer, &(struct gr_sum){ GR_SCATTER, t->right, gradient, layer->out, 0, t->scratch },
                             error));
    GR_TRY(gr_product_weight_gradient(t, x, t->scratch, 0, layer->neigh, error));
    if (dx != NULL)
        rc = gr_product_input_gradient(t, t->scratch, layer->rows_in, layer->neigh, (float)add, NULL, dx, error);
done:
    return rc;
}

int32_t gr_conv_backward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                         graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (layer->self != NULL)
        GR_TRY(gr_product_weight_gradient(t, first_rows(x, layer->rows_out), g, 0, layer->self, error));
    if (layer->neigh == NULL) { /* rows_in are rows_out */
        if (dx != NULL) rc = gr_product_input_gradient(t, g, layer->rows_out, layer->self, 0, NULL, dx, error);
    } else if (layer->aggregate_first) {
        rc = backward_gathered(t, layer, g, dx, error);
    } else {
        rc = backward_transformed(t, layer, x, g, dx, error);
    }
done:
    return rc;
}
