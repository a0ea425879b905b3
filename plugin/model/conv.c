/* Layers of sage, gcn and mlp: Z = H W_self + agg(H) W_neigh + b; mlp has only the first term and gcn only the second.
 * agg(H) = diag(left) A diag(right) H; with aggregator=max|min the maximum or minimum over neighbours.
 *
 * sage   Hamilton et al. 2017, algorithm 1      gcn   Kipf and Welling 2017, eq. 2
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/gather.h"
#include "model/kind.h"
#include "model/product.h"
#include "model/rows.h"

/* WINNER: the sources of the extrema, in the index type of the edges. */
enum { WINNER };

static const struct gr_array_shape conv_arrays[] = {
    [WINNER] = { "winner", sizeof(int32_t), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED }, { 0 }
};

static void conv_count(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    if (a->layer->neigh != NULL) gr_model_layer_count_gathered(run, a, capacity);
    if (gr_run_config(run)->extremum != 0 && a->index > 0 && !capacity->predicts)
        a->own_count[WINNER] = capacity->rows * a->layer->in * capacity->winner_words;
}

/* The rows of the destinations, which are the first rows of the sources. */
static struct gr_operand own_rows(const struct gr_activations *a, struct gr_operand x)
{
    x.rows = a->block->n_dst;
    return x;
}

static int32_t conv_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    if (gr_run_config(run)->extremum != 0) return gr_model_layer_gather_extrema(run, a, x, a->own[WINNER], error);
    return a->aggregate_first ? gr_model_layer_gather(run, a, x, 0, error) : GRAFT_OK;
}

static int32_t conv_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                            graft_error *error)
{
    const struct gr_layer *layer = a->layer;
    const struct gr_block *block = a->block;
    const int              add = layer->self != NULL;
    struct gr_epilogue     epilogue = gr_model_layer_rows_epilogue(rows);
    struct gr_sum          sum;

    GR_ASSERT(layer->self != NULL || layer->neigh != NULL);
    if (layer->neigh == NULL) return gr_model_product_rows(run, own_rows(a, x), layer->self, 0, rows, error);
    if (add) GR_TRY(gr_model_product(run, own_rows(a, x), layer->self, 0, NULL, a->z, error));
    if (a->aggregate_first)
        return gr_model_product_rows(run, gr_model_layer_gathered(run, a), layer->neigh, (float)add, rows, error);
    GR_TRY(gr_model_product(run, x, layer->neigh, 0, block->right, run->space.scratch, error));
    sum = gr_model_sum_of(a, GR_FORWARD, block->left, run->space.scratch, layer->out, add, a->z);
    sum.epilogue = &epilogue;
    return gr_model_aggregate(run, &sum, error);
}

/* Compute the backward pass of (A H) W. The sum over neighbours overwrites dx, so the term of W_self is added
 * afterwards. */
static int32_t backward_gathered(struct gr_run *run, struct gr_activations *a, const float *g, float *dx,
                                 graft_error *error)
{
    const struct gr_layer *layer = a->layer;
    const struct gr_block *block = a->block;
    struct gr_sum          sum = gr_model_sum_of(a, GR_BACKWARD, block->right, run->space.scratch, layer->in, 0, dx);

    GR_TRY(gr_model_weight_gradient(run, gr_model_layer_gathered(run, a), g, 0, layer->neigh, error));
    if (dx == NULL) return GRAFT_OK;
    GR_TRY(gr_model_input_gradient(run, g, block->n_dst, layer->neigh, 0, block->left, run->space.scratch, error));
    if (layer->self == NULL) sum.epilogue = run->below;
    if (gr_run_config(run)->extremum != 0) GR_TRY(gr_model_layer_scatter_extrema(run, a, a->own[WINNER], dx, error));
    else GR_TRY(gr_model_aggregate(run, &sum, error));
    if (layer->self != NULL)
        return gr_model_input_gradient_with(run, g, block->n_dst, layer->self, 1, dx, run->below, error);
    return GRAFT_OK;
}

/* Set dx to the term of W_self, before other terms are added: rows that are no destinations become zero. */
static int32_t own_gradient(struct gr_run *run, struct gr_activations *a, const float *g, float *dx,
                            struct gr_epilogue *epilogue, graft_error *error)
{
    GR_TRY(gr_model_input_gradient_with(run, g, a->block->n_dst, a->layer->self, 0, dx, epilogue, error));
    if (a->block->n_dst < a->block->n_src || a->layer->neigh != NULL)
        gr_model_layer_clear_rest(run, a->block, dx, a->layer->in);
    return GRAFT_OK;
}

/* Compute the backward pass of A (H W). It overwrites g, so the term of W_self is computed before. */
static int32_t conv_backward_transformed(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g,
                                         float *dx, graft_error *error)
{
    const struct gr_layer *layer = a->layer;
    const struct gr_block *block = a->block;
    const struct gr_sum    sum = gr_model_sum_of(a, GR_BACKWARD, block->right, g, layer->out, 0, run->space.scratch);
    const int              add = layer->self != NULL;

    if (add && dx != NULL) GR_TRY(own_gradient(run, a, g, dx, NULL, error));
    if (block->left != NULL)
        gr_model_layer_scale(run, gr_dense_operand(g, layer->out, block->n_dst), block->left, 0, g, layer->out);
    GR_TRY(gr_model_aggregate(run, &sum, error));
    GR_TRY(gr_model_weight_gradient(run, x, run->space.scratch, 0, layer->neigh, error));
    if (dx != NULL)
        return gr_model_input_gradient_with(run, run->space.scratch, block->n_src, layer->neigh, (float)add, dx,
                                            run->below, error);
    return GRAFT_OK;
}

static int32_t conv_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                             graft_error *error)
{
    const struct gr_layer *layer = a->layer;

    if (layer->self != NULL) GR_TRY(gr_model_weight_gradient(run, own_rows(a, x), g, 0, layer->self, error));
    if (layer->neigh == NULL) return dx != NULL ? own_gradient(run, a, g, dx, run->below, error) : GRAFT_OK;
    if (a->aggregate_first) return backward_gathered(run, a, g, dx, error);
    return conv_backward_transformed(run, a, x, g, dx, error);
}

static const struct gr_parameter_shape sage_shapes[] = {
    { "weight_self", 'i', 'o', GR_SLOT(self), GR_FIRST_FAN_IN, NULL },
    { "weight_neigh", 'i', 'o', GR_SLOT(neigh), GR_FIRST_FAN_IN, NULL },
    { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_FAN_IN, NULL },
    { 0 },
};
static const struct gr_parameter_shape gcn_shapes[] = { { "weight", 'i', 'o', GR_SLOT(neigh), GR_FIRST_GLOROT, NULL },
                                                        { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_ZERO, NULL },
                                                        { 0 } };
const struct gr_parameter_shape        gr_own_shapes[] = { { "weight", 'i', 'o', GR_SLOT(self), GR_FIRST_FAN_IN, NULL },
                                                           { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_FAN_IN, NULL },
                                                           { 0 } };

const struct gr_model_kind gr_kind_sage = { .name = "sage",
                                            .shapes = sage_shapes,
                                            .arrays = conv_arrays,
                                            .normalization = GR_NORMALIZE_MEAN,
                                            .gathers = 1,
                                            .own_rows = 1,
                                            .gathers_late = 1,
                                            .count = conv_count,
                                            .begin = conv_begin,
                                            .forward = conv_forward,
                                            .backward = conv_backward };
const struct gr_model_kind gr_kind_gcn = { .name = "gcn",
                                           .shapes = gcn_shapes,
                                           .arrays = conv_arrays,
                                           .normalization = GR_NORMALIZE_SYMMETRIC,
                                           .gathers = 1,
                                           .self_loops = 1,
                                           .gathers_late = 1,
                                           .count = conv_count,
                                           .begin = conv_begin,
                                           .forward = conv_forward,
                                           .backward = conv_backward };
const struct gr_model_kind gr_kind_mlp = { .name = "mlp",
                                           .shapes = gr_own_shapes,
                                           .arrays = conv_arrays,
                                           .count = conv_count,
                                           .begin = conv_begin,
                                           .forward = conv_forward,
                                           .backward = conv_backward };
