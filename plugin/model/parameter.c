/* The weights by name, and their first values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const prefixes[GR_STATE_COPIES] = { "", "best.", "optimizer.m.", "optimizer.v." };

/* Names of the parameters of a layer in the order of the state. Rows and columns are 'i'n, 'o'ut or 1; of gat also
 * 'w'ide, 'h'eads and 'd', the columns of a head. */
struct shape_row {
    enum gr_model_kind kind;
    const char        *name;
    char               rows, cols;
};

static const struct shape_row shapes[] = {
    { GR_MODEL_SAGE, "weight_self", 'i', 'o' },
    { GR_MODEL_SAGE, "weight_neigh", 'i', 'o' },
    { GR_MODEL_SAGE, "bias", '1', 'o' },
    { GR_MODEL_GCN, "weight", 'i', 'o' },
    { GR_MODEL_GCN, "bias", '1', 'o' },
    { GR_MODEL_MLP, "weight", 'i', 'o' },
    { GR_MODEL_MLP, "bias", '1', 'o' },
    { GR_MODEL_GIN, "weight_1", 'i', 'o' },
    { GR_MODEL_GIN, "bias_1", '1', 'o' },
    { GR_MODEL_GIN, "weight_2", 'o', 'o' },
    { GR_MODEL_GIN, "bias_2", '1', 'o' },
    { GR_MODEL_GAT, "weight", 'i', 'w' },
    { GR_MODEL_GAT, "attention_source", 'h', 'd' },
    { GR_MODEL_GAT, "attention_target", 'h', 'd' },
    { GR_MODEL_GAT, "bias", '1', 'o' },
};
static const struct shape_row norm_shapes[] = { { .name = "norm.gain", .rows = '1', .cols = 'o' },
                                                { .name = "norm.shift", .rows = '1', .cols = 'o' } };

static int64_t extent(const struct gr_config *config, int32_t layer, char letter)
{
    switch (letter) {
    case 'i': return config->width[layer];
    case 'o': return config->width[layer + 1];
    case 'w': return gr_config_wide(config, layer);
    case 'h': return config->heads;
    case 'd': return gr_config_wide(config, layer) / config->heads;
    default: return 1;
    }
}

static void name(struct gr_parameter *p, const char *text)
{
    for (int i = 0; i < GR_STATE_COPIES; i++) snprintf(p->name[i], sizeof p->name[i], "%s%s", prefixes[i], text);
}

static void add(graft_trainer *t, int32_t layer, const struct shape_row *shape)
{
    struct gr_parameter *p = &t->parameters[t->n_parameters++];
    const int64_t        rows = extent(&t->config, layer, shape->rows), cols = extent(&t->config, layer, shape->cols);
    const int            weight = strncmp(shape->name, "weight", 6) == 0;
    char                 full[48];

    snprintf(full, sizeof full, "layers.%d.%s", layer, shape->name);
    name(p, full);
    p->n_dims = shape->rows == '1' ? 1 : 2;
    p->decayed = weight && (layer == 0 || !t->config.decay_first_only);
    p->rows = rows;
    p->cols = cols;
}

/* The embedding of labels, which is the last parameter: the others have their places, and first values, without it. */
static void add_embedding(graft_trainer *t)
{
    struct gr_parameter *p = &t->parameters[t->n_parameters++];

    name(p, "label_embedding");
    p->n_dims = 2;
    p->decayed = 1;
    p->rows = t->data.n_classes;
    p->cols = t->config.width[0];
    t->labels.embedding = p;
}

/* Its gradient is part of one array for all. */
static int32_t make(graft_trainer *t, struct gr_parameter *p, graft_error *error)
{
    const int64_t count = p->rows * p->cols;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_LEDGER_NEW(t, GR_USE_WEIGHTS, p->value, count, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_OPTIMISER, p->best, count, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_OPTIMISER, p->m, count, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_OPTIMISER, p->v, count, error));
done:
    return rc;
}

/* Glorot and Bengio 2010, eq. 16: uniform in +-sqrt(6 / (rows + cols)). Gains begin at 1, all else at 0. */
static void set_first_value(const graft_trainer *t, struct gr_parameter *p, int32_t index)
{
    const uint64_t key = gr_random_key(t->config.seed, GR_RANDOM_INIT, 0, (uint64_t)index);
    const double   bound = sqrt(6.0 / (double)(p->rows + p->cols));
    uint32_t       bits[4];

    if (p->n_dims == 1) {
        const int gain = strstr(p->name[0], "gain") != NULL;
        for (int64_t i = 0; i < p->cols && gain; i++) p->value[i] = 1;
        return;
    }
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t j = 0; j < p->cols; j++) {
            if (j % 4 == 0) gr_random_block(key, (uint64_t)row, (uint64_t)j / 4, bits);
            p->value[row * p->cols + j] = (float)(bound * (2 * ((double)bits[j % 4] + 0.5) / 4294967296.0 - 1));
        }
    }
}

int32_t gr_parameters_describe(graft_trainer *t, graft_error *error)
{
    const int32_t n_shapes = (int32_t)(sizeof shapes / sizeof shapes[0]);
    double        count = 0;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_LEDGER_NEW(t, GR_USE_WEIGHTS, t->parameters, t->config.n_layers * 6 + 1, error));
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        for (int32_t i = 0; i < n_shapes; i++) {
            if (shapes[i].kind == t->config.kind) add(t, l, &shapes[i]);
        }
        for (int32_t i = 0; i < 2 && t->config.norm && l + 1 < t->config.n_layers; i++) {
            add(t, l, &norm_shapes[i]);
        }
    }
    if (gr_propagates(t)) add_embedding(t);
    for (int32_t i = 0; i < t->n_parameters; i++)
        count += (double)t->parameters[i].rows * (double)t->parameters[i].cols;
    gr_ledger_plan(t, GR_USE_WEIGHTS, 2 * sizeof(float) * count);
    gr_ledger_plan(t, GR_USE_OPTIMISER, 3 * sizeof(float) * count);
done:
    return rc;
}

int32_t gr_parameters_init(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    t->n_weights = 0;
    for (int32_t i = 0; i < t->n_parameters; i++) t->n_weights += t->parameters[i].rows * t->parameters[i].cols;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_WEIGHTS, t->gradients, t->n_weights, error));
    for (int32_t i = 0; i < t->n_parameters; i++) {
        struct gr_parameter *p = &t->parameters[i];

        GR_TRY(make(t, p, error));
        p->gradient = i == 0 ? t->gradients : p[-1].gradient + p[-1].rows * p[-1].cols;
        set_first_value(t, p, i);
    }
done:
    return rc;
}

struct gr_parameter *gr_parameter_find(graft_trainer *t, int32_t layer, const char *name)
{
    char full[48];

    snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    for (int32_t i = 0; i < t->n_parameters; i++) {
        if (strcmp(t->parameters[i].name[0], full) == 0) return &t->parameters[i];
    }
    return NULL;
}
