/* The kinds of models, and the configuration of a model from the options of the context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/options.h"
#include "model/kind.h"
#include "model/options.h"
#include "nn/options.h"

#define KIND(constant, word) &gr_kind_##word,
static const struct gr_model_kind *const kinds[GR_KINDS] = { GR_KIND_MAP(KIND) };

const struct gr_model_kind *gr_model_kind(enum gr_kind kind)
{
    GR_ASSERT(kind < GR_KINDS);
    return kinds[kind];
}

int64_t gr_model_config_wide(const struct gr_config *config, int32_t l)
{
    const int averaged = config->kind->attends && l + 1 == config->n_layers;

    GR_ASSERT(l >= 0 && l < config->n_layers);
    return config->width[l + 1] * (averaged ? config->attention.heads : 1);
}

int64_t gr_model_config_in(const struct gr_config *config, int32_t l)
{
    int64_t sum = 0;

    if (!gr_model_config_jumps(config, l) || config->hidden.jumping == GR_JUMPING_MAX) return config->width[l];
    for (int32_t k = 1; k <= l; k++) sum += config->width[k];
    return sum;
}

/* Check that sizes of arrays in bytes fit into an int64_t, with a margin for sums of several arrays. No array has more
 * rows than there are vertices, nor more columns than the widest of features, layers, and classes for all heads. */
static int32_t check_sizes(const graft_dataset *data, const struct gr_config *config, graft_error *error)
{
    const int64_t heads = config->kind->attends ? config->attention.heads : 1;
    int64_t       widest = heads;

    if (data->n_classes > INT32_MAX / heads) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld classes, each for %lld heads, are too many; %lld can be",
                       (long long)data->n_classes, (long long)heads, (long long)(INT32_MAX / heads));
    }
    for (int32_t l = 0; l <= config->n_layers; l++) {
        const int64_t wide = l < config->n_layers ? gr_model_config_wide(config, l) : config->width[0];
        const int64_t in = l < config->n_layers ? gr_model_config_in(config, l) : 0;

        if (wide > widest) widest = wide;
        if (in > widest) widest = in;
    }
    if (data->n_vertices <= INT64_MAX / 64 / widest) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%lld vertices with %lld columns, the most of any array, are too many",
                   (long long)data->n_vertices, (long long)widest);
}

static int32_t check_hidden_heads(const struct gr_config *config, graft_error *error)
{
    for (int32_t l = 1; l < config->n_layers && config->kind->attends; l++) {
        if (config->width[l] % config->attention.heads == 0) continue;
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'hidden' makes layer %d of gat %lld wide, which is no multiple of option 'heads', %lld",
                       l - 1, (long long)config->width[l], (long long)config->attention.heads);
    }
    return GRAFT_OK;
}

static int32_t read_loss(const struct gr_options *options, const graft_dataset *data, struct gr_config *config,
                         graft_error *error)
{
    const struct gr_loss_options *loss = gr_options_of(options, &gr_loss_option_table);
    const int                     has_classes = data->labels != NULL || data->targets != NULL;

    config->loss.kind = (enum gr_loss)loss->loss.word;
    if (config->loss.kind == GR_LOSS_AUTO && data->float_targets != NULL) config->loss.kind = GR_LOSS_MSE;
    else if (config->loss.kind == GR_LOSS_AUTO)
        config->loss.kind = data->targets != NULL ? GR_LOSS_SIGMOID : GR_LOSS_SOFTMAX;
    if (data->float_targets != NULL && has_classes)
        return gr_fail(error, GRAFT_ERR_ARG, "float_targets and %s are both given; a model learns one of them",
                       data->labels != NULL ? "labels" : "targets");
    if (data->float_targets != NULL && !gr_is_regression(config))
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'loss' is %s, but targets are floats; use mse, mae or huber",
                       gr_loss_name(config->loss.kind));
    if (has_classes && gr_is_regression(config))
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'loss' is %s, but the data set has %s and no float_targets",
                       gr_loss_name(config->loss.kind), data->labels != NULL ? "labels" : "targets of classes");
    if (config->loss.kind == GR_LOSS_SOFTMAX && data->targets != NULL && data->labels == NULL) {
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'loss' is softmax, but vertices have several classes at once; use "
                       "sigmoid");
    }
    return GRAFT_OK;
}

static int32_t read_layers(const struct gr_options *options, const graft_dataset *data, struct gr_config *config,
                           graft_error *error)
{
    const struct gr_model_options *model = gr_options_of(options, &gr_model_option_table);
    const struct gr_shape_options *shape = gr_options_of(options, &gr_shape_option_table);
    const int32_t                  weighted = config->n_weighted = (int32_t)shape->layers;
    const int32_t                  steps = config->kind->propagates ? (int32_t)model->propagation : 0;

    if (weighted + steps > GR_LAYERS_MAX)
        return gr_fail(error, GRAFT_ERR_OPTION, "options 'layers' and 'propagation' are %d and %d, at most %d in all",
                       weighted, steps, GR_LAYERS_MAX);
    config->n_layers = weighted + steps;
    config->gathers_from = config->kind->gathers ? (steps > 0 ? weighted : 0) : config->n_layers;
    config->width[0] = data->n_features;
    GR_TRY(gr_option_spread_widths(&shape->hidden, weighted - 1, "option 'hidden'", "hidden layers", config->width + 1,
                                   error));
    for (int32_t l = weighted; l <= config->n_layers; l++) config->width[l] = data->n_classes;
    return GRAFT_OK;
}

struct gr_live_config gr_model_live_config(const struct gr_options *options)
{
    const struct gr_training_options *train = gr_options_of(options, &gr_training_option_table);

    return (struct gr_live_config){
        .epochs = train->epochs,
        .eval_every = train->eval_every,
        .patience = train->patience,
        .schedule = { .kind = (enum gr_schedule)train->schedule.word,
                      .rate = train->lr,
                      .factor = train->schedule.number[1],
                      .steps = train->epochs,
                      .every = train->schedule.word == GR_SCHEDULE_STEP ? (int64_t)train->schedule.number[0] : 1 },
        .weight_decay = train->weight_decay.number[0],
        .decays_first = train->weight_decay.number[1] != 0,
        .clip_norm = train->clip_norm,
    };
}

static enum gr_normalization normalization_of(const struct gr_model_options *model, const struct gr_model_kind *kind)
{
    return model->kind == GR_KIND_SAGE && model->aggregator != GR_AGGREGATOR_MEAN ? GR_NORMALIZE_NONE
                                                                                  : kind->normalization;
}

graft_semiring gr_model_extremum(const struct gr_model_options *model)
{
    if (model->kind != GR_KIND_SAGE) return 0;
    return model->aggregator == GR_AGGREGATOR_MAX   ? GRAFT_MAX_SECOND
           : model->aggregator == GR_AGGREGATOR_MIN ? GRAFT_MIN_SECOND
                                                    : 0;
}

/* Check that no option needs aggregation to be linear, which extrema are not. */
static int32_t check_extremum(const struct gr_config *config, const graft_dataset *data, graft_error *error)
{
    if (config->extremum == 0) return GRAFT_OK;
    if (config->label_rate > 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'aggregator' and 'label_rate' are %s and %g; labels as input need mean or sum",
                       gr_extremum_word(config->extremum), config->label_rate);
    if (data->sparse_features != NULL && config->data.sparse_input == GR_YES)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "options 'aggregator' and 'sparse_input' are %s and yes; maxima and minima are of dense features",
            gr_extremum_word(config->extremum));
    return GRAFT_OK;
}

static int32_t check_residual(const struct gr_config *config, graft_error *error)
{
    if (!config->hidden.adds_input || config->n_weighted < 3) return GRAFT_OK;
    for (int32_t l = 1; l + 1 < config->n_weighted; l++)
        if (config->width[l] == config->width[l + 1]) return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_OPTION,
        "option 'residual' is yes, but no hidden layer is as wide as the one before it; see option 'hidden'");
}

static int32_t check_jumping(const struct gr_config *config, graft_error *error)
{
    for (int32_t l = 2; l < config->n_weighted && config->hidden.jumping == GR_JUMPING_MAX; l++) {
        if (config->width[l] == config->width[1]) continue;
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'jumping' is max, but option 'hidden' makes layers 0 and %d %lld and %lld wide; they "
                       "must be equally wide",
                       l - 1, (long long)config->width[1], (long long)config->width[l]);
    }
    return GRAFT_OK;
}

static void read_softmax(const struct gr_loss_options *loss, struct gr_config *config)
{
    if (loss->loss.word != GR_LOSS_SOFTMAX) return;
    config->loss.balances = loss->loss.number[0] != 0;
    config->loss.label_smoothing = loss->loss.number[1];
}

static struct gr_attention_config read_attention(const struct gr_model_options *model, const struct gr_model_kind *kind,
                                                 const graft_dataset *data)
{
    struct gr_attention_config attention = { .heads = model->heads };

    if (!kind->attends) return attention;
    attention.edge_array = model->edge_features == GR_EDGE_FEATURES_ARRAY;
    if (model->edge_features == GR_EDGE_FEATURES_VALUES) attention.edge_features = 1;
    else if (attention.edge_array && data->edge_features != NULL) attention.edge_features = data->edge_features->n_cols;
    attention.reads_relu = model->attention_input == GR_ATTENTION_RELU;
    attention.dropout = model->attention_dropout;
    return attention;
}

int32_t gr_model_config_read(const struct gr_options *options, const graft_dataset *data, struct gr_config *config,
                             graft_error *error)
{
    const struct gr_shape_options    *shape = gr_options_of(options, &gr_shape_option_table);
    const struct gr_model_options    *model = gr_options_of(options, &gr_model_option_table);
    const struct gr_training_options *train = gr_options_of(options, &gr_training_option_table);
    const struct gr_loss_options     *loss = gr_options_of(options, &gr_loss_option_table);
    const struct gr_data_options     *of_data = gr_options_of(options, &gr_data_option_table);
    const struct gr_resource_options *resource = gr_options_of(options, &gr_resource_option_table);
    const struct gr_base_options     *base = gr_options_of(options, &gr_base_option_table);
    const enum gr_choice              loops = of_data->self_loops;
    const struct gr_model_kind       *kind = gr_model_kind(model->kind);

    *config =
        (struct gr_config){ .kind = kind,
                            .normalization = normalization_of(model, kind),
                            .input_dropout = model->input_dropout,
                            .label_rate = loss->label_rate,
                            .teleport = model->teleport,
                            .attention = read_attention(model, kind, data),
                            .hidden = { .is_elu = shape->activation == GR_ELU,
                                        .drops_first = model->norm_order == GR_NORM_LAST,
                                        .dropout = model->dropout,
                                        .adds_input = shape->adds_input },
                            .loss = { .huber_delta = loss->loss.word == GR_LOSS_HUBER ? loss->loss.number[0] : 1 },
                            .live = gr_model_live_config(options),
                            .data = { .symmetrize = of_data->symmetrize,
                                      .self_loops = loops == GR_AUTO ? kind->self_loops : loops == GR_YES,
                                      .normalize_features = of_data->normalize_features,
                                      .reuse_input = resource->reuse_input,
                                      .row_masks = resource->row_masks,
                                      .sparse_input = resource->sparse_input,
                                      .order = resource->order },
                            .optimizer = train->optimizer,
                            .recompute = resource->recompute,
                            .seed = (uint64_t)base->seed };
    GR_TRY(read_layers(options, data, config, error));
    if (config->n_weighted > 1) config->hidden.norm = shape->norm;
    if (config->n_weighted > 2) config->hidden.jumping = model->jumping;
    GR_TRY(check_sizes(data, config, error));
    GR_TRY(check_jumping(config, error));
    GR_TRY(check_hidden_heads(config, error));
    GR_TRY(check_residual(config, error));
    config->extremum = gr_model_extremum(model);
    GR_TRY(check_extremum(config, data, error));
    if (config->extremum != 0) config->data.sparse_input = GR_NO;
    read_softmax(loss, config);
    return read_loss(options, data, config, error);
}
