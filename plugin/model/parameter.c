/* The parameters of each layer, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/kind.h"

#include <stdio.h>
#include <string.h>

static const struct gr_parameter_shape norm_shapes[] = { { "norm.gain", '1', 'o', GR_SLOT(gain), GR_FIRST_ONE, NULL },
                                                         { "norm.shift", '1', 'o', GR_SLOT(shift), GR_FIRST_ZERO,
                                                           NULL },
                                                         { 0 } };
static const struct gr_parameter_shape running_shapes[] = {
    { "norm.mean", '1', 'o', GR_SLOT(running_mean), GR_FIRST_ZERO, NULL },
    { "norm.variance", '1', 'o', GR_SLOT(running_variance), GR_FIRST_ONE, NULL },
    { 0 }
};

enum { PARAMETERS_OF_LAYER = 11 };

static int64_t extent(const struct gr_config *config, int32_t layer, char letter)
{
    switch (letter) {
    case 'i': return gr_model_config_in(config, layer);
    case 'o': return config->width[layer + 1];
    case 'w': return gr_model_config_wide(config, layer);
    case 'h': return config->attention.heads;
    case 'e': return config->attention.edge_features;
    case 'd': return gr_model_config_wide(config, layer) / config->attention.heads;
    default: return 1;
    }
}

/* Append a parameter of layer l. A bias has the fan-in of the matrix before it; the first shape of every kind is a
 * matrix. */
static void add_parameter(struct gr_model *model, int32_t l, const struct gr_parameter_shape *shape,
                          enum gr_statistic statistic)
{
    const struct gr_config *config = &model->config;
    const int               weight = strncmp(shape->name, "weight", 6) == 0;
    struct gr_parameter     p = { .n_dims = shape->rows == '1' ? 1 : 2, .first = shape->first, .statistic = statistic };
    struct gr_parameter    *added;
    char                    name[48];

    GR_ASSERT(model->parameters.count < config->n_layers * PARAMETERS_OF_LAYER + 1);
    snprintf(name, sizeof name, "layers.%d.%s", l, shape->name);
    p.decayed = !weight ? GR_NOT_DECAYED : l == 0 ? GR_DECAYED_FIRST : GR_DECAYED;
    p.rows = extent(config, l, shape->rows);
    p.cols = extent(config, l, shape->cols);
    p.inputs = p.n_dims == 2 ? p.rows : model->parameters.list[model->parameters.count - 1].inputs;
    added = gr_nn_add(&model->parameters, name, &p);
    memcpy((char *)&model->layers[l] + shape->slot, &added, sizeof added);
}

static void describe_layer(struct gr_model *model, int32_t l)
{
    const struct gr_config *config = &model->config;
    struct gr_layer        *layer = &model->layers[l];

    layer->in = gr_model_config_in(config, l);
    layer->out = config->width[l + 1];
    layer->wide = gr_model_config_wide(config, l);
    layer->hidden = l + 1 < config->n_weighted;
    layer->adds_input = config->hidden.adds_input && layer->hidden && l > 0 && layer->in == layer->out;
    if (l >= config->n_weighted) return;
    for (const struct gr_parameter_shape *s = config->kind->shapes; s->name != NULL; s++)
        if (s->is_wanted == NULL || s->is_wanted(config)) add_parameter(model, l, s, GR_TRAINED);
    for (const struct gr_parameter_shape *s = norm_shapes;
         s->name != NULL && config->hidden.norm != GR_NORM_NONE && layer->hidden; s++)
        add_parameter(model, l, s, GR_TRAINED);
}

/* Append the running statistics of BatchNorm, which evaluations use. They follow all trained parameters. */
static void add_running(struct gr_model *model, int32_t l)
{
    if (model->config.hidden.norm != GR_NORM_BATCH || !model->layers[l].hidden) return;
    for (const struct gr_parameter_shape *s = running_shapes; s->name != NULL; s++)
        add_parameter(model, l, s, s->slot == GR_SLOT(running_mean) ? GR_RUNNING_MEAN : GR_RUNNING_VARIANCE);
}

/* Append the embedding of labels as the last trained parameter: so it does not change the initial values of the
 * others. */
static void add_embedding(struct gr_model *model)
{
    const struct gr_parameter shape = { .n_dims = 2,
                                        .decayed = GR_DECAYED_FIRST,
                                        .rows = model->config.width[model->config.n_layers],
                                        .cols = model->config.width[0],
                                        .first = GR_FIRST_GLOROT };

    model->label_embedding = gr_nn_add(&model->parameters, "label_embedding", &shape);
}

int32_t gr_model_describe(struct gr_model *model, struct gr_budget *budget, graft_error *error)
{
    const int32_t n_layers = model->config.n_layers;

    model->parameters.dtype = GRAFT_F32;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_WEIGHTS, model->parameters.list, n_layers * PARAMETERS_OF_LAYER + 1, error));
    for (int32_t l = 0; l < n_layers; l++) describe_layer(model, l);
    if (model->config.label_rate > 0) add_embedding(model);
    for (int32_t l = 0; l < n_layers; l++) add_running(model, l);
    gr_nn_plan(&model->parameters, budget);
    return GRAFT_OK;
}
