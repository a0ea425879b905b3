/* The options of a trainer, read once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <string.h>

static enum gr_model_kind kind_of(const char *name)
{
    if (strcmp(name, "gcn") == 0) return GR_MODEL_GCN;
    if (strcmp(name, "gin") == 0) return GR_MODEL_GIN;
    if (strcmp(name, "mlp") == 0) return GR_MODEL_MLP;
    return GR_MODEL_SAGE;
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
    config->kind = kind_of(gr_option_text(context, GR_OPTION_MODEL));
    config->n_layers = (int32_t)gr_option_integer(context, GR_OPTION_LAYERS);
    config->width[0] = data->n_features;
    GR_TRY(gr_option_widths(context, GR_OPTION_HIDDEN, config->n_layers - 1, config->width + 1, error));
    config->width[config->n_layers] = data->n_classes;
    config->epochs = gr_option_integer(context, GR_OPTION_EPOCHS);
    config->eval_every = gr_option_integer(context, GR_OPTION_EVAL_EVERY);
    config->lr = gr_option_number(context, GR_OPTION_LR);
    config->dropout = gr_option_number(context, GR_OPTION_DROPOUT);
    config->input_dropout = gr_option_number(context, GR_OPTION_INPUT_DROPOUT);
    config->weight_decay = gr_option_number(context, GR_OPTION_WEIGHT_DECAY);
    config->momentum = gr_option_number(context, GR_OPTION_MOMENTUM);
    config->gin_eps = gr_option_number(context, GR_OPTION_GIN_EPS);
    config->norm = gr_option_is(context, GR_OPTION_NORM, "layer");
    config->decay_first_only = gr_option_is(context, GR_OPTION_WEIGHT_DECAY_LAYERS, "first");
    config->adam = gr_option_is(context, GR_OPTION_OPTIMIZER, "adam");
    config->symmetrize = gr_option_is(context, GR_OPTION_SYMMETRIZE, "yes");
    config->self_loops = gr_option_is(context, GR_OPTION_SELF_LOOPS, "yes") ||
                         (gr_option_is(context, GR_OPTION_SELF_LOOPS, "auto") && config->kind == GR_MODEL_GCN);
    config->normalize_features = gr_option_is(context, GR_OPTION_NORMALIZE_FEATURES, "yes");
    config->seed = (uint64_t)gr_option_integer(context, GR_OPTION_SEED);
    rc = read_loss(context, data, config, error);
done:
    return rc;
}
