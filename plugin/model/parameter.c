/* The weights by name, and their first values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const prefixes[GR_STATE_COPIES] = { "", "best.", "optimizer.m.", "optimizer.v." };

/* Names of the parameters of a layer in the order of the state. Rows and columns are 'i'n, 'o'ut or 1. */
struct shape_row {
    enum gr_model_kind kind;
    const char        *name;
    char               rows, cols;
};

static const struct shape_row shapes[] = {
    { GR_MODEL_SAGE, "weight_self", 'i', 'o' }, { GR_MODEL_SAGE, "weight_neigh", 'i', 'o' },
    { GR_MODEL_SAGE, "bias", '1', 'o' },        { GR_MODEL_GCN, "weight", 'i', 'o' },
    { GR_MODEL_GCN, "bias", '1', 'o' },         { GR_MODEL_MLP, "weight", 'i', 'o' },
    { GR_MODEL_MLP, "bias", '1', 'o' },         { GR_MODEL_GIN, "weight_1", 'i', 'o' },
    { GR_MODEL_GIN, "bias_1", '1', 'o' },       { GR_MODEL_GIN, "weight_2", 'o', 'o' },
    { GR_MODEL_GIN, "bias_2", '1', 'o' },
};

static int32_t add(graft_trainer *t, int32_t layer, const char *name, int64_t rows, int64_t cols, graft_error *error)
{
    struct gr_parameter *p = &t->parameters[t->n_parameters++];
    const int64_t        count = rows * cols;
    int32_t              rc = GRAFT_OK;

    for (int i = 0; i < GR_STATE_COPIES; i++) {
        snprintf(p->name[i], sizeof p->name[i], "%slayers.%d.%s", prefixes[i], layer, name);
    }
    p->n_dims = strncmp(name, "weight", 6) == 0 ? 2 : 1;
    p->decayed = p->n_dims == 2 && (layer == 0 || !t->config.decay_first_only);
    p->rows = rows;
    p->cols = cols;
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, p->value, count, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, p->gradient, count, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, p->best, count, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, p->m, count, error));
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, p->v, count, error));
done:
    return rc;
}

static int64_t extent(const graft_trainer *t, int32_t layer, char letter)
{
    return letter == 'i' ? t->config.width[layer] : letter == 'o' ? t->config.width[layer + 1] : 1;
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

int32_t gr_parameters_init(graft_trainer *t, graft_error *error)
{
    const int32_t n_shapes = (int32_t)(sizeof shapes / sizeof shapes[0]);
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->parameters, t->config.n_layers * 6, error));
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        for (int32_t i = 0; i < n_shapes; i++) {
            const struct shape_row *s = &shapes[i];

            if (s->kind != t->config.kind) continue;
            GR_TRY(add(t, l, s->name, extent(t, l, s->rows), extent(t, l, s->cols), error));
        }
        if (t->config.norm && l + 1 < t->config.n_layers) {
            GR_TRY(add(t, l, "norm.gain", 1, t->config.width[l + 1], error));
            GR_TRY(add(t, l, "norm.shift", 1, t->config.width[l + 1], error));
        }
    }
    for (int32_t i = 0; i < t->n_parameters; i++) set_first_value(t, &t->parameters[i], i);
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
