/* Laying out the layers: their widths and the arrays between the passes. With option recompute, what the backward pass
 * of a layer can have made again from the layer's input is one set of arrays for all layers, as large as the widest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "model/labels.h"

#include <string.h>

#define ARRAY(field, use, remade)                                                                                      \
    {                                                                                                                  \
#field, offsetof(struct gr_layer, field), sizeof *((struct gr_layer *)0)->field, use, remade                   \
    }

static const struct {
    const char *name;
    size_t      at; /* of its pointer in the layer */
    uint64_t    element_bytes;
    enum gr_use use;
    int         remade; /* with recompute: what GR_STEP_BEGIN and GR_STEP_Z leave */
} arrays[GR_ARRAYS] = {
    [GR_ARRAY_GATHERED] = ARRAY(gathered, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_LABEL_SUMS] = ARRAY(label_sums, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_INNER] = ARRAY(inner, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_INNER_BITS] = ARRAY(inner_bits, GR_USE_MASKS, 1),
    [GR_ARRAY_PROJECTED] = ARRAY(attention.projected, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_SOURCE_SCORE] = ARRAY(attention.score[GR_SOURCE], GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_TARGET_SCORE] = ARRAY(attention.score[GR_TARGET], GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_ALPHA] = ARRAY(attention.alpha, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_Z] = ARRAY(z, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_H] = ARRAY(h, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_MEAN] = ARRAY(mean, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_RSTD] = ARRAY(rstd, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_BITS] = ARRAY(bits, GR_USE_MASKS, 0),
    [GR_ARRAY_PER_HEAD] = ARRAY(attention.per_head, GR_USE_ACTIVATIONS, 0),
};

/* Whether the layer need not keep this array, for it can be made again. H is kept, as the next layer's input; so are
 * logits, constant sums over features, and what is small beside H. */
static int is_remade(const graft_trainer *t, int32_t l, int which)
{
    if (!t->config.recompute || !arrays[which].remade) return 0;
    if (which == GR_ARRAY_Z) return t->layers[l].count[GR_ARRAY_H] > 0;
    return which != GR_ARRAY_GATHERED || l > 0 || !gr_gathers_once(t);
}

/* Elements of the array that the layers share; 0 if there is none. */
static int64_t shared_count(const graft_trainer *t, int which)
{
    int64_t most = 0;

    for (int32_t l = 0; l < t->config.n_layers; l++) {
        if (is_remade(t, l, which) && t->layers[l].count[which] > most) most = t->layers[l].count[which];
    }
    return most;
}

/* Elements of one array in all layers. */
static double count_of(const graft_trainer *t, int which)
{
    double count = (double)shared_count(t, which);

    for (int32_t l = 0; l < t->config.n_layers; l++)
        count += is_remade(t, l, which) ? 0 : (double)t->layers[l].count[which];
    return count;
}

/* One of the arrays, for each layer or for all. */
static int32_t make_array(graft_trainer *t, int which, graft_error *error)
{
    const int64_t most = shared_count(t, which);
    void         *shared = NULL;

    for (int32_t l = 0; l < t->config.n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];
        const int        remade = is_remade(t, l, which);
        void            *made = shared;

        if (layer->count[which] == 0) continue;
        if (made == NULL || !remade)
            made = gr_ledger_new(t, arrays[which].use, remade ? most : layer->count[which], arrays[which].element_bytes,
                                 arrays[which].name, error);
        if (made == NULL) return GRAFT_ERR_NOMEM;
        if (remade) {
            shared = made;
            layer->shares[which == GR_ARRAY_Z ? GR_STEP_Z : GR_STEP_BEGIN] = 1;
        }
        memcpy((char *)layer + arrays[which].at, &made, sizeof made);
    }
    return GRAFT_OK;
}

/* The arrays that layers of every kind have. */
static void count_common(graft_trainer *t, int32_t l)
{
    struct gr_layer *layer = &t->layers[l];
    const int64_t    n = t->n;

    layer->gain = gr_parameter_find(t, l, "norm.gain");
    layer->shift = gr_parameter_find(t, l, "norm.shift");
    layer->count[GR_ARRAY_Z] = n * layer->out;
    if (!layer->hidden) return;
    layer->count[GR_ARRAY_BITS] = n * ((layer->out + 7) / 8);
    if (layer->gain == NULL) return;
    layer->count[GR_ARRAY_H] = n * layer->out;
    layer->count[GR_ARRAY_MEAN] = layer->count[GR_ARRAY_RSTD] = n;
}

static void set_widths(graft_trainer *t)
{
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];

        layer->in = t->config.width[l];
        layer->out = t->config.width[l + 1];
        layer->hidden = l + 1 < t->config.n_layers;
        layer->wide = gr_config_wide(&t->config, l);
    }
}

/* Elements of what the backward pass works with. */
struct work {
    int64_t gradient; /* of each of two */
    int64_t scratch, partial;
};

/* Rows of a step that have gradients: behind the first layer all that a later one needs, and in gin those in front of
 * it, whose sums over A^T go there too. Before reach is known, as many as are certain. */
static int64_t gradient_rows(const graft_trainer *t)
{
    if (t->reach[0] > 0 || t->over != NULL) return t->reach[t->config.kind == GR_MODEL_GIN ? 0 : 1];
    return gr_masks_rows(t) ? t->n_train : t->n;
}

static struct work work_of(const graft_trainer *t)
{
    const int64_t chunks = gr_chunk_count(t->n_seen, GR_CHUNK_ROWS);
    int64_t       widest = 4, scratch = 0; /* 4: the sums of a loss, see loss.c */

    for (int32_t l = 0; l < t->config.n_layers; l++) {
        const struct gr_layer *layer = &t->layers[l];

        if (layer->wide > widest) widest = layer->wide;
        /* gcn scales what it gathers on both sides. */
        if (t->config.kind == GR_MODEL_GCN && layer->aggregate_first && layer->in > scratch) scratch = layer->in;
    }
    if (widest > scratch) scratch = widest;
    return (struct work){ gradient_rows(t) * widest, t->n_seen * scratch, chunks * GR_PARTIALS * widest };
}

int32_t gr_layers_plan(graft_trainer *t, graft_error *error)
{
    double      bytes[GR_USES] = { 0 };
    int32_t     rc = GRAFT_OK;
    struct work work;

    set_widths(t);
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        memset(t->layers[l].count, 0, sizeof t->layers[l].count);
        count_common(t, l);
        GR_TRY(gr_layer_kinds[t->config.kind].init(t, l, error));
    }
    if (gr_propagates(t) && t->layers[0].count[GR_ARRAY_GATHERED] > 0)
        t->layers[0].count[GR_ARRAY_LABEL_SUMS] = t->n * t->data.n_classes;
    for (int which = 0; which < GR_ARRAYS; which++)
        bytes[arrays[which].use] += count_of(t, which) * (double)arrays[which].element_bytes;
    work = work_of(t);
    bytes[GR_USE_GRADIENTS] = (double)(2 * work.gradient + work.scratch) * sizeof(float) +
                              (double)work.partial * sizeof(double) +
                              (t->config.kind == GR_MODEL_GAT ? (double)gr_gat_shared_count(t) * sizeof(float) : 0);
    if (gr_propagates(t)) {
        bytes[GR_USE_GRADIENTS] += gr_labels_bytes(t);
        bytes[GR_USE_MASKS] += (double)t->reach[t->config.n_layers];
    }
    gr_ledger_plan(t, GR_USE_ACTIVATIONS, bytes[GR_USE_ACTIVATIONS]);
    gr_ledger_plan(t, GR_USE_MASKS, bytes[GR_USE_MASKS]);
    gr_ledger_plan(t, GR_USE_GRADIENTS, bytes[GR_USE_GRADIENTS]);
done:
    return rc;
}

int32_t gr_layers_init(graft_trainer *t, graft_error *error)
{
    int32_t     rc = GRAFT_OK;
    struct work work;

    /* Of these nothing is to come. */
    gr_ledger_plan(t, GR_USE_FEATURES, 0);
    gr_ledger_plan(t, GR_USE_GRAPH, 0);
    GR_TRY(gr_model_replan(t, error));
    work = work_of(t);
    if (t->config.kind == GR_MODEL_GAT) GR_TRY(gr_gat_share(t, error));
    for (int which = 0; which < GR_ARRAYS; which++) GR_TRY(make_array(t, which, error));
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        if (t->layers[l].h == NULL) t->layers[l].h = t->layers[l].z;
    }
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->gradient[0], work.gradient, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->gradient[1], work.gradient, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->scratch, work.scratch, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->partial, work.partial, error));
    rc = gr_labels_init(t, error);
done:
    return rc;
}
