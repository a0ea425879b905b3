/* The options of a trainer, read once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

int64_t gr_config_wide(const struct gr_config *config, int32_t l)
{
    const int averaged = config->kind->attends && l + 1 == config->n_layers;

    return config->width[l + 1] * (averaged ? config->heads : 1);
}

/* Whether the elements of all arrays can be counted: none has more rows than there are vertices, nor more columns than
 * the widest of features, layers and classes for all heads; and a sum of several, in bytes, is to be told too. */
static int32_t check_sizes(const graft_dataset *data, const struct gr_config *config, graft_error *error)
{
    const int64_t heads = config->kind->attends ? config->heads : 1;
    int64_t       widest = heads;

    if (data->n_classes > INT32_MAX / heads) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld classes, each for %lld heads, are too many; %lld can be",
                       (long long)data->n_classes, (long long)heads, (long long)(INT32_MAX / heads));
    }
    for (int32_t l = 0; l <= config->n_layers; l++) {
        const int64_t wide = l < config->n_layers ? gr_config_wide(config, l) : config->width[0];

        if (wide > widest) widest = wide;
    }
    if (data->n_vertices <= INT64_MAX / 64 / widest) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%lld vertices with %lld columns, the most of any array, are too many",
                   (long long)data->n_vertices, (long long)widest);
}

static int32_t check_heads(const struct gr_config *config, graft_error *error)
{
    for (int32_t l = 1; l < config->n_layers && config->kind->attends; l++) {
        if (config->width[l] % config->heads == 0) continue;
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'hidden' makes layer %d of gat %lld wide, which is no multiple of option 'heads', %lld",
                       l - 1, (long long)config->width[l], (long long)config->heads);
    }
    return GRAFT_OK;
}

static int32_t read_loss(graft_context *context, const graft_dataset *data, struct gr_config *config,
                         graft_error *error)
{
    config->sigmoid = gr_option_is(context, GR_OPTION_LOSS, "sigmoid") ||
                      (gr_option_is(context, GR_OPTION_LOSS, "auto") && data->targets != NULL);
    if (!config->sigmoid && data->targets != NULL && data->labels == NULL) {
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'loss' is softmax, but vertices have several classes at once; use "
                       "sigmoid");
    }
    return GRAFT_OK;
}

int32_t gr_config_read(graft_context *context, const graft_dataset *data, struct gr_config *config, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    memset(config, 0, sizeof *config);
    config->kind = gr_model_kind(gr_option_text(context, GR_OPTION_MODEL));
    config->n_layers = (int32_t)gr_option_integer(context, GR_OPTION_LAYERS);
    config->gathers_from = config->kind->gathers ? 0 : config->n_layers;
    config->width[0] = data->n_features;
    GR_TRY(gr_option_widths(context, GR_OPTION_HIDDEN, config->n_layers - 1, config->width + 1, error));
    config->width[config->n_layers] = data->n_classes;
    config->heads = gr_option_integer(context, GR_OPTION_HEADS);
    GR_TRY(check_sizes(data, config, error));
    GR_TRY(check_heads(config, error));
    config->epochs = gr_option_integer(context, GR_OPTION_EPOCHS);
    config->eval_every = gr_option_integer(context, GR_OPTION_EVAL_EVERY);
    config->lr = gr_option_number(context, GR_OPTION_LR);
    config->dropout = gr_option_number(context, GR_OPTION_DROPOUT);
    config->input_dropout = gr_option_number(context, GR_OPTION_INPUT_DROPOUT);
    config->label_rate = gr_option_number(context, GR_OPTION_LABEL_RATE);
    config->weight_decay = gr_option_number(context, GR_OPTION_WEIGHT_DECAY);
    config->momentum = gr_option_number(context, GR_OPTION_MOMENTUM);
    config->gin_eps = gr_option_number(context, GR_OPTION_GIN_EPS);
    config->norm = gr_option_is(context, GR_OPTION_NORM, "layer");
    config->decay_first_only = gr_option_is(context, GR_OPTION_WEIGHT_DECAY_LAYERS, "first");
    config->adam = gr_option_is(context, GR_OPTION_OPTIMIZER, "adam");
    config->symmetrize = gr_option_is(context, GR_OPTION_SYMMETRIZE, "yes");
    config->self_loops = gr_option_is(context, GR_OPTION_SELF_LOOPS, "yes") ||
                         (gr_option_is(context, GR_OPTION_SELF_LOOPS, "auto") && config->kind->self_loops);
    config->normalize_features = gr_option_is(context, GR_OPTION_NORMALIZE_FEATURES, "yes");
    config->row_masks = gr_option_is(context, GR_OPTION_ROW_MASKS, "yes");
    config->recompute = gr_option_is(context, GR_OPTION_RECOMPUTE, "yes");
    config->reuse_input = gr_option_is(context, GR_OPTION_REUSE_INPUT, "yes");
    config->sparse_input = gr_option_is(context, GR_OPTION_SPARSE_INPUT, "auto")  ? GR_AUTO
                           : gr_option_is(context, GR_OPTION_SPARSE_INPUT, "yes") ? GR_YES
                                                                                  : GR_NO;
    snprintf(config->order, sizeof config->order, "%s", gr_option_text(context, GR_OPTION_ORDER));
    config->seed = (uint64_t)gr_option_integer(context, GR_OPTION_SEED);
    rc = read_loss(context, data, config, error);
done:
    return rc;
}
