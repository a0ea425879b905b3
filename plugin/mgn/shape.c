/* The weights of a network: their offsets and names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

#include <stdio.h>

static struct gr_mlp place_mlp(const struct gr_mgn_options *options, int64_t in, int64_t out, int has_norm, int64_t *at)
{
    struct gr_mlp mlp = {
        .linear = (int32_t)options->linear, .has_norm = has_norm, .in = in, .width = options->width, .out = out
    };

    gr_nn_place_mlp(&mlp, at);
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
    GR_TRY_DONE(GR_NEW(context, shape->edge, options->layers, error));
    GR_TRY_DONE(GR_NEW(context, shape->node, options->layers, error));
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

static int32_t parameters_of(const struct gr_mlp *mlp)
{
    return 2 * mlp->linear + 2 * (mlp->has_norm != 0);
}

int32_t gr_mgn_count_parameters(const struct gr_mgn_shape *shape)
{
    int32_t count = parameters_of(&shape->node_encoder) + parameters_of(&shape->edge_encoder);

    for (int64_t l = 0; l < shape->options.layers; l++)
        count += parameters_of(&shape->edge[l]) + parameters_of(&shape->node[l]);
    return count + parameters_of(&shape->decoder);
}

void gr_mgn_add_parameters(const struct gr_mgn_shape *shape, struct gr_parameters *all)
{
    char name[32];

    gr_nn_add_mlp(all, "node_encoder.", &shape->node_encoder);
    gr_nn_add_mlp(all, "edge_encoder.", &shape->edge_encoder);
    for (int64_t l = 0; l < shape->options.layers; l++) {
        snprintf(name, sizeof name, "layers.%d.edge.", (int)l);
        gr_nn_add_mlp(all, name, &shape->edge[l]);
        snprintf(name, sizeof name, "layers.%d.node.", (int)l);
        gr_nn_add_mlp(all, name, &shape->node[l]);
    }
    gr_nn_add_mlp(all, "decoder.", &shape->decoder);
}

double gr_mgn_work(const struct gr_mgn_shape *shape, int64_t n_nodes, int64_t n_edges)
{
    const int64_t width = shape->options.width;
    const double  layers = (double)shape->options.layers, nodes = (double)n_nodes, edges = (double)n_edges;
    const double  encoder = nodes * gr_nn_mlp_work(&shape->node_encoder, shape->n_node_in) +
                           edges * gr_nn_mlp_work(&shape->edge_encoder, shape->n_edge_in);
    const double in_layer =
        layers > 0 ? nodes * (2 * (double)width * (double)width + gr_nn_mlp_work(&shape->node[0], 2 * width)) +
                         edges * gr_nn_mlp_work(&shape->edge[0], width)
                   : 0;

    return encoder + layers * in_layer + nodes * gr_nn_mlp_work(&shape->decoder, width);
}
