/* What a model is: its configuration, its weights by name and the state of its optimiser. It knows neither graph nor
 * ranks; run.h combines it with both.
 *
 * config.c     the options of a model and of its training      kind.c     the table of kinds
 * parameter.c  the parameters of each layer
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_MODEL_H
#define GR_MODEL_MODEL_H

#include "base/budget.h"
#include "base/option.h"
#include "graft_train.h"
#include "nn/optimizer.h"

enum { GR_LAYERS_MAX = 64 };

struct gr_model_kind;

/** What may change between epochs. */
struct gr_live_config {
    int64_t               epochs, eval_every, patience;
    struct gr_nn_schedule schedule; /* over epochs */
    double                weight_decay, momentum, clip_norm;
};

/** How edges are scaled: A as it is; D^-1 A, a mean; D^-1/2 A D^-1/2 (Kipf and Welling 2017, eq. 2). */
enum gr_normalization { GR_NORMALIZE_NONE, GR_NORMALIZE_MEAN, GR_NORMALIZE_SYMMETRIC };

struct gr_config {
    const struct gr_model_kind *kind;
    enum gr_normalization       normalization; /* of the kind, unless option aggregator sets another */
    graft_semiring              extremum;      /* aggregator=max|min: the semiring of its products; 0: the model sums */
    int32_t                     n_layers;
    int32_t                     n_weighted;   /* the first layers, which have weights; the others only propagate */
    int32_t                     gathers_from; /* the first layer that gathers from neighbours; n_layers: none does */
    int64_t      width[GR_LAYERS_MAX + 1];    /* width[l] enters layer l; width[n_layers] is the number of classes */
    int64_t      heads;
    int64_t      edge_features;   /* of each edge, in the scores of attention; 0: none */
    int          attends_to_relu; /* option attention_input=relu */
    int          edge_array;      /* they are an array of the data set; else the edge value */
    enum gr_loss loss;            /* not GR_LOSS_AUTO */
    double       dropout, input_dropout, attention_dropout, label_rate, gin_eps, teleport, huber_delta;
    double       label_smoothing;              /* of the softmax loss */
    int          balances;                     /* class weights of the softmax loss */
    struct gr_live_config live;                /* read again before every epoch */
    int                   is_elu, drops_first; /* behind hidden layers: ELU and no ReLU; dropout before norm */
    int                   adds_input;          /* option residual */
    enum gr_jumping       jumping;             /* none if there are less than two hidden layers */
    enum gr_norm          norm;                /* none if there is no hidden layer */
    int                   decay_first_only, adam, symmetrize, self_loops, normalize_features, reuse_input, row_masks;
    int                   recompute;
    enum gr_choice        sparse_input;
    uint64_t              seed;
    enum gr_order         order;
};

/** The weights of one layer; NULL if its kind does not use them. */
struct gr_layer {
    int64_t              in, out;
    int64_t              wide;         /* columns of H W: of all heads of gat, else out */
    int                  hidden;       /* norm, activation and dropout follow */
    int                  adds_input;   /* then, with option residual, the layer's input is added */
    struct gr_parameter *self, *neigh; /* factors of the vertex itself and of its neighbours */
    struct gr_parameter *bias, *inner_bias, *outer, *gain, *shift, *source, *target;
    struct gr_parameter *edge_weight, *edge_attention; /* with config.edge_features */
    struct gr_parameter *running_mean, *running_variance;
};

struct gr_model {
    struct gr_config     config;
    struct gr_layer      layers[GR_LAYERS_MAX];
    struct gr_parameters parameters;
    struct gr_parameter *label_embedding; /* [classes x features] of option label_rate, or NULL */
};

/** A weight matrix or vector of a layer. Rows and columns are 'i'n, 'o'ut or 1; also 'w'ide, 'h'eads, 'd', the
 *  columns of a head, and features of an 'e'dge. */
struct gr_parameter_shape {
    const char         *name;
    char                rows, cols;
    size_t              slot; /* of its pointer in gr_layer */
    enum gr_first_value first;
    int (*is_wanted)(const struct gr_config *config); /* NULL: always */
};

#define GR_SLOT(member) offsetof(struct gr_layer, member)

int32_t gr_config_read(const struct gr_options *options, const graft_dataset *data, struct gr_config *config,
                       graft_error *error);

/** The present values of options that may change between epochs. */
struct gr_live_config gr_live_config_of(const struct gr_options *options);

/** The value of option aggregator for an extremum. */
static inline const char *gr_extremum_word(graft_semiring extremum)
{
    return extremum == GRAFT_MIN_SECOND ? "min" : "max";
}

/** Whether the model learns float targets instead of classes. */
static inline int gr_is_regression(const struct gr_config *config)
{
    return config->loss >= GR_LOSS_MSE;
}

/** The word of option "loss". */
static inline const char *gr_loss_name(enum gr_loss loss)
{
    static const char *const names[] = { "auto", "softmax", "sigmoid", "mse", "mae", "huber" };

    return names[loss];
}

/** Columns of the product with the weights of layer l: of all heads of gat, which the last layer averages; else of the
 *  output. */
int64_t gr_config_wide(const struct gr_config *config, int32_t l);

/** Columns of the input of layer l: width[l], unless the layer reads all hidden layers side by side. */
int64_t gr_config_in(const struct gr_config *config, int32_t l);

/** Whether layer l reads all hidden layers. */
static inline int gr_config_jumps(const struct gr_config *config, int32_t l)
{
    return config->jumping != GR_JUMPING_NONE && l == config->n_weighted - 1;
}

/** Names and shapes of all parameters, and the weights of each layer, without values. Plans their bytes. */
int32_t gr_model_describe(struct gr_model *model, struct gr_budget *budget, graft_error *error);

#endif
