/* The offsets of the weights of a network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

int64_t gr_mlp_elements(const struct gr_mlp *mlp)
{
    const int64_t end = mlp->has_norm ? mlp->shift : mlp->bias[mlp->linear - 1];

    return end + mlp->out - mlp->weight[0];
}

/* An MLP whose weights begin at *at, which moves to their end. */
static struct gr_mlp place_mlp(const struct gr_mgn_options *options, int64_t in, int64_t out, int has_norm, int64_t *at)
{
    struct gr_mlp mlp = {
        .linear = (int32_t)options->linear, .has_norm = has_norm, .in = in, .width = options->width, .out = out
    };

    for (int64_t i = 0; i < options->linear; i++) {
        const int64_t columns = i == 0 ? in : options->width, rows = i == options->linear - 1 ? out : options->width;

        mlp.weight[i] = *at;
        mlp.bias[i] = mlp.weight[i] + rows * columns;
        *at = mlp.bias[i] + rows;
    }
    if (!has_norm) return mlp;
    mlp.gain = *at;
    mlp.shift = mlp.gain + out;
    *at = mlp.shift + out;
    return mlp;
}

int32_t gr_mgn_shape_init(const graft_context *context, const struct gr_mgn_options *options, int64_t n_node_in,
                          int64_t n_edge_in, int64_t n_out, struct gr_mgn_shape *shape, graft_error *error)
{
    const int64_t width = options->width;
    const int     norm = options->has_norm;
    int32_t       rc = GRAFT_OK;

    *shape =
        (struct gr_mgn_shape){ .options = *options, .n_node_in = n_node_in, .n_edge_in = n_edge_in, .n_out = n_out };
    GR_TRY(GR_NEW(context, shape->edge, options->layers, error));
    GR_TRY(GR_NEW(context, shape->node, options->layers, error));
    shape->node_encoder = place_mlp(options, n_node_in, width, norm, &shape->n_weights);
    shape->edge_encoder = place_mlp(options, n_edge_in, width, norm, &shape->n_weights);
    for (int64_t l = 0; l < options->layers; l++) {
        shape->edge[l] = place_mlp(options, 3 * width, width, norm, &shape->n_weights);
        shape->node[l] = place_mlp(options, 2 * width, width, norm, &shape->n_weights);
    }
    shape->decoder = place_mlp(options, width, n_out, 0, &shape->n_weights);
done:
    if (rc < 0) gr_mgn_shape_fini(context, shape);
    return rc;
}

void gr_mgn_shape_fini(const graft_context *context, struct gr_mgn_shape *shape)
{
    gr_free(context, shape->edge);
    gr_free(context, shape->node);
    *shape = (struct gr_mgn_shape){ 0 };
}

/* Multiply-adds of an MLP for one row, whose first product has `in` columns. */
static double work_of_mlp(const struct gr_mlp *mlp, int64_t in)
{
    const double width = (double)mlp->width;

    if (mlp->linear == 1) return (double)in * (double)mlp->out;
    return (double)in * width + (mlp->linear - 2) * width * width + width * (double)mlp->out;
}

double gr_mgn_work(const struct gr_mgn_shape *shape, int64_t n_nodes, int64_t n_edges)
{
    const int64_t width = shape->options.width;
    const double  layers = (double)shape->options.layers, nodes = (double)n_nodes, edges = (double)n_edges;
    const double  encoder = nodes * work_of_mlp(&shape->node_encoder, shape->n_node_in) +
                           edges * work_of_mlp(&shape->edge_encoder, shape->n_edge_in);
    const double in_layer =
        layers > 0 ? nodes * (2 * (double)width * (double)width + work_of_mlp(&shape->node[0], 2 * width)) +
                         edges * work_of_mlp(&shape->edge[0], width)
                   : 0;

    return encoder + layers * in_layer + nodes * work_of_mlp(&shape->decoder, width);
}
