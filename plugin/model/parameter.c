/* The weights by name, and their first values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/random.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const prefixes[GR_STATE_COPIES] = { "", "best.", "optimizer.m.", "optimizer.v." };

static const struct gr_parameter_shape norm_shapes[] = { { "norm.gain", '1', 'o', GR_SLOT(gain), GR_FIRST_ONE },
                                                         { "norm.shift", '1', 'o', GR_SLOT(shift), GR_FIRST_ZERO },
                                                         { 0 } };
static const struct gr_parameter_shape running_shapes[] = {
    { "norm.mean", '1', 'o', GR_SLOT(running_mean), GR_FIRST_ZERO },
    { "norm.variance", '1', 'o', GR_SLOT(running_variance), GR_FIRST_ONE },
    { 0 }
};

/* As in GATConv of PyTorch Geometric. */
static const struct gr_parameter_shape edge_shapes[] = {
    { "weight_edge", 'e', 'w', GR_SLOT(edge_weight), GR_FIRST_GLOROT },
    { "attention_edge", 'h', 'd', GR_SLOT(edge_attention), GR_FIRST_GLOROT },
    { 0 }
};

/* With option attention_input=relu. */
static const struct gr_parameter_shape relu_shapes[] = { { "inner_bias", '1', 'w', GR_SLOT(inner_bias), GR_FIRST_ZERO },
                                                         { 0 } };

enum { PARAMETERS_OF_LAYER = 11 };

static int64_t extent(const struct gr_config *config, int32_t layer, char letter)
{
    switch (letter) {
    case 'i': return gr_config_in(config, layer);
    case 'o': return config->width[layer + 1];
    case 'w': return gr_config_wide(config, layer);
    case 'h': return config->heads;
    case 'e': return config->edge_features;
    case 'd': return gr_config_wide(config, layer) / config->heads;
    default: return 1;
    }
}

static void name_parameter(struct gr_parameter *p, const char *text)
{
    for (int i = 0; i < GR_STATE_COPIES; i++) snprintf(p->name[i], sizeof p->name[i], "%s%s", prefixes[i], text);
}

static void add_parameter(struct gr_model *model, int32_t l, const struct gr_parameter_shape *shape)
{
    GR_ASSERT(model->n_parameters < model->config.n_layers * PARAMETERS_OF_LAYER + 1);
    struct gr_parameter *p = &model->parameters[model->n_parameters++];
    const int            weight = strncmp(shape->name, "weight", 6) == 0;
    char                 full[48];

    snprintf(full, sizeof full, "layers.%d.%s", l, shape->name);
    name_parameter(p, full);
    p->n_dims = shape->rows == '1' ? 1 : 2;
    p->decayed = weight && (l == 0 || !model->config.decay_first_only);
    p->rows = extent(&model->config, l, shape->rows);
    p->cols = extent(&model->config, l, shape->cols);
    p->inputs = p->n_dims == 2 ? p->rows : p[-1].inputs; /* the first shape of every kind is a matrix */
    p->first = shape->first;
    memcpy((char *)&model->layers[l] + shape->slot, &p, sizeof p);
}

static void describe_layer(struct gr_model *model, int32_t l)
{
    const struct gr_config *config = &model->config;
    struct gr_layer        *layer = &model->layers[l];

    layer->in = gr_config_in(config, l);
    layer->out = config->width[l + 1];
    layer->wide = gr_config_wide(config, l);
    layer->hidden = l + 1 < config->n_weighted;
    layer->adds_input = config->adds_input && layer->hidden && l > 0 && layer->in == layer->out;
    if (l >= config->n_weighted) return;
    for (const struct gr_parameter_shape *s = config->kind->shapes; s->name != NULL; s++) add_parameter(model, l, s);
    for (const struct gr_parameter_shape *s = edge_shapes; s->name != NULL && config->edge_features > 0; s++)
        add_parameter(model, l, s);
    for (const struct gr_parameter_shape *s = relu_shapes; s->name != NULL && config->attends_to_relu; s++)
        add_parameter(model, l, s);
    for (const struct gr_parameter_shape *s = norm_shapes;
         s->name != NULL && config->norm != GR_NORM_NONE && layer->hidden; s++)
        add_parameter(model, l, s);
}

/* Statistics that BatchNorm keeps for evaluations; they follow all trained parameters. */
static void add_running(struct gr_model *model, int32_t l)
{
    if (model->config.norm != GR_NORM_BATCH || !model->layers[l].hidden) return;
    for (const struct gr_parameter_shape *s = running_shapes; s->name != NULL; s++) {
        add_parameter(model, l, s);
        model->parameters[model->n_parameters - 1].statistic =
            s->slot == GR_SLOT(running_mean) ? GR_RUNNING_MEAN : GR_RUNNING_VARIANCE;
    }
}

/* The embedding of labels is the last trained parameter, so that the others keep their places and first values. */
static void add_embedding(struct gr_model *model)
{
    struct gr_parameter *p = &model->parameters[model->n_parameters++];

    name_parameter(p, "label_embedding");
    p->n_dims = 2;
    p->decayed = 1;
    p->rows = model->config.width[model->config.n_layers];
    p->cols = model->config.width[0];
    p->first = GR_FIRST_GLOROT;
    model->label_embedding = p;
}

static int32_t make_parameter(struct gr_parameter *p, struct gr_budget *budget, int32_t copies, graft_error *error)
{
    const int64_t count = p->rows * p->cols;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_WEIGHTS, p->value, count, error));
    if (copies == 1) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_OPTIMISER, p->best, count, error));
    if (p->statistic != GR_TRAINED) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_OPTIMISER, p->m, count, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_OPTIMISER, p->v, count, error));
done:
    return rc;
}

/* Uniform first values lie within +-b. The rule of fan-in is the rule of PyTorch's Linear, 1/sqrt(inputs), for weights
 * and biases: He et al. 2015, section 2.2, for a slope of sqrt(5). tests/bench/learning.py measures the first
 * epochs. */
static double first_bound(const struct gr_parameter *p)
{
    if (p->first == GR_FIRST_FAN_IN) return 1 / sqrt((double)p->inputs);
    return sqrt(6.0 / (double)(p->rows + p->cols)); /* Glorot and Bengio 2010, eq. 16 */
}

static void set_first_value(const struct gr_config *config, struct gr_parameter *p, int32_t index)
{
    const uint64_t key = gr_random_key(config->seed, GR_RANDOM_INIT, 0, (uint64_t)index);
    const double   bound = first_bound(p);
    uint32_t       bits[4];

    if (p->first == GR_FIRST_ZERO) return;
    if (p->first == GR_FIRST_ONE) {
        for (int64_t i = 0; i < p->cols; i++) p->value[i] = 1;
        return;
    }
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t j = 0; j < p->cols; j++) {
            if (j % 4 == 0) gr_random_block(key, (uint64_t)row, (uint64_t)j / 4, bits);
            p->value[row * p->cols + j] = (float)(bound * (2 * ((double)bits[j % 4] + 0.5) / 4294967296.0 - 1));
        }
    }
}

int32_t gr_model_describe(struct gr_model *model, struct gr_budget *budget, graft_error *error)
{
    const int32_t n_layers = model->config.n_layers;
    double        count = 0, moments = 0;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_WEIGHTS, model->parameters, n_layers * PARAMETERS_OF_LAYER + 1, error));
    for (int32_t l = 0; l < n_layers; l++) describe_layer(model, l);
    if (model->config.label_rate > 0) add_embedding(model);
    model->n_trained = model->n_parameters;
    for (int32_t l = 0; l < n_layers; l++) add_running(model, l);
    for (int32_t i = 0; i < model->n_parameters; i++) {
        const double elements = (double)model->parameters[i].rows * (double)model->parameters[i].cols;

        count += elements;
        if (i < model->n_trained) moments += 2 * elements;
    }
    /* Best and previous values, and present and previous moments. */
    gr_budget_plan(budget, GR_USE_WEIGHTS, 2 * sizeof(float) * count);
    gr_budget_plan(budget, GR_USE_OPTIMISER, sizeof(float) * (2 * count + 2 * moments));
done:
    return rc;
}

int32_t gr_model_allocate(struct gr_model *model, struct gr_budget *budget, int32_t copies, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_ASSERT(copies == 1 || copies == GR_STATE_COPIES);
    for (int32_t i = 0; i < model->n_parameters; i++)
        GR_TRY(make_parameter(&model->parameters[i], budget, copies, error));
done:
    return rc;
}

int32_t gr_model_init(struct gr_model *model, struct gr_budget *budget, graft_error *error)
{
    int64_t running = 0;
    int32_t rc = GRAFT_OK;

    model->n_weights = 0;
    for (int32_t i = 0; i < model->n_parameters; i++) {
        const struct gr_parameter *p = &model->parameters[i];

        *(i < model->n_trained ? &model->n_weights : &running) += p->rows * p->cols;
    }
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_WEIGHTS, model->gradients, model->n_weights + running, error));
    GR_TRY(gr_model_allocate(model, budget, GR_STATE_COPIES, error));
    for (int32_t i = 0; i < model->n_parameters; i++) {
        struct gr_parameter *p = &model->parameters[i];

        p->gradient = i == 0 ? model->gradients : p[-1].gradient + p[-1].rows * p[-1].cols;
        for (int k = 0; k < (i < model->n_trained ? 3 : 1); k++)
            GR_TRY(GR_BUDGET_NEW(budget, GR_USE_OPTIMISER, p->previous[k], p->rows * p->cols, error));
        set_first_value(&model->config, p, i);
    }
done:
    return rc;
}
