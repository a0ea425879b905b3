/* The configuration of a model, which follows from the options of a context and from a data set.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_mxm.h"
#include "graft_train.h"
#include "model/options.h"
#include "nn/optimizer.h"

enum { GR_LAYERS_MAX = 64 };

struct gr_model_kind;

/** Settings that may change between epochs. */
struct gr_live_config {
    int64_t               epochs, eval_every, patience;
    struct gr_nn_schedule schedule; /* learning rate over epochs */
    double                weight_decay, clip_norm;
    int                   decays_first; /* weight_decay=X:first */
};

/** How the matrix A of edges is scaled: not; to D^-1 A, a mean; to D^-1/2 A D^-1/2 (Kipf and Welling 2017, eq. 2). */
enum gr_normalization { GR_NORMALIZE_NONE, GR_NORMALIZE_MEAN, GR_NORMALIZE_SYMMETRIC };

/** Settings of attention. For kinds of models without attention, all except `heads` are 0. */
struct gr_attention_config {
    int64_t heads;
    int64_t edge_features; /* number of features of each edge in the scores; 0: none */
    int     edge_array;    /* edge features are an array of the data set; else the edge value */
    int     reads_relu;    /* option attention_input=relu */
    double  dropout;       /* share of alpha that is dropped */
};

/** The operations after hidden layers. */
struct gr_hidden_config {
    enum gr_norm    norm;        /* option norm; none if there is no hidden layer */
    int             is_elu;      /* ELU instead of ReLU */
    int             drops_first; /* dropout comes before norm and activation */
    double          dropout;
    int             adds_input; /* option residual */
    enum gr_jumping jumping;    /* option jumping; none if there are fewer than two hidden layers */
};

struct gr_loss_config {
    enum gr_loss kind; /* never GR_LOSS_AUTO */
    double       huber_delta;
    double       label_smoothing; /* smoothing of loss=softmax */
    int          balances;        /* whether loss=softmax:balanced */
};

/** How the data set is transformed and stored. */
struct gr_data_config {
    int            symmetrize, self_loops, normalize_features;
    int            reuse_input, row_masks;
    enum gr_choice sparse_input;
    enum gr_order  order;
};

struct gr_config {
    const struct gr_model_kind *kind;
    enum gr_normalization       normalization; /* normalisation of the kind, unless option aggregator sets another */
    graft_semiring              extremum;      /* the semiring of products for aggregator=max|min; 0: the model sums */
    int32_t                     n_layers;
    int32_t                     n_weighted;   /* number of layers with weights; the later layers only propagate */
    int32_t                     gathers_from; /* the first layer that gathers from neighbours; n_layers: none does */
    int64_t width[GR_LAYERS_MAX + 1];         /* columns of the input of layer l; of layer n_layers: of the output */
    double  input_dropout, label_rate, teleport;
    struct gr_attention_config attention;
    struct gr_hidden_config    hidden;
    struct gr_loss_config      loss;
    struct gr_live_config      live; /* settings that are read again before every epoch */
    struct gr_data_config      data;
    struct gr_form             optimizer;
    int                        recompute;
    uint64_t                   seed;
};

/** Set the configuration from options and a data set. \return OK; ERR_ARG; ERR_OPTION. */
int32_t gr_model_config_read(const struct gr_options *options, const graft_dataset *data, struct gr_config *config,
                             graft_error *error);

/** Read the current values of the options that may change between epochs. */
struct gr_live_config gr_model_live_config(const struct gr_options *options);

/** The semiring for aggregator=max or min; 0: the model sums, or does not have this option. */
graft_semiring gr_model_extremum(const struct gr_model_options *model);

/** The value of option aggregator that selects this extremum. */
static inline const char *gr_extremum_word(graft_semiring extremum)
{
    return extremum == GRAFT_MIN_SECOND ? "min" : "max";
}

/** Whether the model learns float targets instead of classes. */
static inline int gr_is_regression(const struct gr_config *config)
{
    return config->loss.kind >= GR_LOSS_MSE;
}

/** The value of option "loss" that selects this loss. */
static inline const char *gr_loss_name(enum gr_loss loss)
{
    static const char *const names[] = {
        [GR_LOSS_AUTO] = "auto", [GR_LOSS_SOFTMAX] = "softmax", [GR_LOSS_SIGMOID] = "sigmoid",
        [GR_LOSS_MSE] = "mse",   [GR_LOSS_MAE] = "mae",         [GR_LOSS_HUBER] = "huber",
    };

    return names[loss];
}

/** The number of columns of the product with the weights of layer l: that of the output; in the last layer of gat,
 *  which averages the heads, that of all heads. */
int64_t gr_model_config_wide(const struct gr_config *config, int32_t l);

/** The number of columns of the input of layer l: width[l], unless the layer reads all hidden layers side by side. */
int64_t gr_model_config_in(const struct gr_config *config, int32_t l);

/** Whether layer l reads the outputs of all hidden layers (option jumping). */
static inline int gr_model_config_jumps(const struct gr_config *config, int32_t l)
{
    return config->hidden.jumping != GR_JUMPING_NONE && l == config->n_weighted - 1;
}
