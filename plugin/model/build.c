/* Laying out the layers: which weights each has, in which order it multiplies, and the arrays between the passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "model/model.h"

/* Columns that pass through the sparse product, forward and backward, in either order; the first layer sends no
 * gradient back to its input. The cheaper one is taken. gin adds the input to the sum, so it aggregates first. */
static int aggregates_first(const graft_trainer *t, int32_t l)
{
    const int64_t in = t->config.width[l], out = t->config.width[l + 1];

    return t->config.kind == GR_MODEL_GIN || in + (l > 0 ? in : 0) <= 2 * out;
}

static void find_weights(graft_trainer *t, int32_t l)
{
    struct gr_layer *layer = &t->layers[l];

    switch (t->config.kind) {
    case GR_MODEL_SAGE:
        layer->self = gr_parameter_find(t, l, "weight_self");
        layer->neigh = gr_parameter_find(t, l, "weight_neigh");
        break;
    case GR_MODEL_GCN: layer->neigh = gr_parameter_find(t, l, "weight"); break;
    case GR_MODEL_MLP: layer->self = gr_parameter_find(t, l, "weight"); break;
    case GR_MODEL_GIN:
        layer->neigh = gr_parameter_find(t, l, "weight_1");
        layer->inner_bias = gr_parameter_find(t, l, "bias_1");
        layer->outer = gr_parameter_find(t, l, "weight_2");
        break;
    }
    layer->bias = gr_parameter_find(t, l, t->config.kind == GR_MODEL_GIN ? "bias_2" : "bias");
    layer->gain = gr_parameter_find(t, l, "norm.gain");
    layer->shift = gr_parameter_find(t, l, "norm.shift");
}

static int32_t allocate_layer(graft_trainer *t, struct gr_layer *layer, graft_error *error)
{
    const int64_t bit_bytes = (layer->out + 7) / 8;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->z, t->n * layer->out, error));
    if (layer->neigh != NULL && layer->aggregate_first) {
        GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->gathered, t->n * layer->in, error));
    }
    if (layer->outer != NULL) {
        GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->inner, t->n * layer->out, error));
        GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->inner_bits, t->n * bit_bytes, error));
    }
    layer->h = layer->z;
    if (!layer->hidden) return GRAFT_OK;
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->bits, t->n * bit_bytes, error));
    if (layer->gain == NULL) return GRAFT_OK;
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->h, t->n * layer->out, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->mean, t->n, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, layer->rstd, t->n, error));
done:
    return rc;
}

int32_t gr_layers_init(graft_trainer *t, graft_error *error)
{
    const int32_t n_layers = t->config.n_layers;
    const int64_t chunks = gr_chunk_count(t->n, GR_CHUNK_ROWS);
    int64_t       widest = 4, scratch; /* 4: the sums of a loss, see loss.c */
    int32_t       rc = GRAFT_OK;

    for (int32_t l = 1; l <= n_layers; l++) {
        if (t->config.width[l] > widest) widest = t->config.width[l];
    }
    if (widest > INT32_MAX || t->config.width[0] > INT32_MAX || t->n > INT64_MAX / 64 / INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld vertices with rows of %lld features and %lld classes are too many",
                       (long long)t->n, (long long)t->config.width[0], (long long)t->config.width[n_layers]);
    }
    scratch = widest;
    for (int32_t l = 0; l < n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];

        layer->in = t->config.width[l];
        layer->out = t->config.width[l + 1];
        layer->hidden = l + 1 < n_layers;
        layer->aggregate_first = aggregates_first(t, l);
        if (t->right != NULL && layer->aggregate_first && layer->in > scratch) scratch = layer->in;
        find_weights(t, l);
        GR_TRY(allocate_layer(t, layer, error));
    }
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->gradient[0], t->n * widest, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->gradient[1], t->n * widest, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->scratch, t->n * scratch, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->partial, chunks * GR_PARTIALS * widest, error));
done:
    return rc;
}
