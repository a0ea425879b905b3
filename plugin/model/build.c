/* Laying out the layers: their widths and the arrays between the passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "model/model.h"

/* The arrays that layers of every kind have. */
static int32_t init_common(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_layer *layer = &t->layers[l];
    int32_t          rc = GRAFT_OK;

    layer->gain = gr_parameter_find(t, l, "norm.gain");
    layer->shift = gr_parameter_find(t, l, "norm.shift");
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_ACTIVATIONS, layer->z, t->n * layer->out, error));
    layer->h = layer->z;
    if (!layer->hidden) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_ACTIVATIONS, layer->bits, t->n * ((layer->out + 7) / 8), error));
    if (layer->gain == NULL) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_ACTIVATIONS, layer->h, t->n * layer->out, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_ACTIVATIONS, layer->mean, t->n, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_ACTIVATIONS, layer->rstd, t->n, error));
done:
    return rc;
}

int32_t gr_layers_init(graft_trainer *t, graft_error *error)
{
    const int32_t n_layers = t->config.n_layers;
    const int64_t chunks = gr_chunk_count(t->n, GR_CHUNK_ROWS);
    int64_t       widest = 4, scratch; /* 4: the sums of a loss, see loss.c */
    int32_t       rc = GRAFT_OK;

    for (int32_t l = 0; l < n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];

        layer->in = t->config.width[l];
        layer->out = t->config.width[l + 1];
        layer->hidden = l + 1 < n_layers;
        layer->wide = gr_config_wide(&t->config, l);
        if (layer->wide > widest) widest = layer->wide;
    }
    scratch = widest;
    for (int32_t l = 0; l < n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];

        GR_TRY(init_common(t, l, error));
        GR_TRY(gr_layer_kinds[t->config.kind].init(t, l, error));
        if (t->right != NULL && layer->aggregate_first && layer->in > scratch) scratch = layer->in;
    }
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->gradient[0], t->n * widest, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->gradient[1], t->n * widest, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->scratch, t->n * scratch, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->partial, chunks * GR_PARTIALS * widest, error));
done:
    return rc;
}
