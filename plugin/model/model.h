/* What a model is: its configuration, its weights by name and the state of its optimiser. It knows neither graph nor
 * ranks; run.h combines it with both.
 *
 * config.h  the options of a model and of its training      kind.h  the kinds of layers
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "model/config.h"
#include "nn/parameter.h"

/** The weights of one layer; NULL if its kind does not use them. */
struct gr_layer {
    int64_t              in, out;
    int64_t              wide;         /* columns of H W: of all heads of gat, else out */
    int                  hidden;       /* norm, activation and dropout follow */
    int                  adds_input;   /* then, with option residual, the layer's input is added */
    struct gr_parameter *self, *neigh; /* factors of the vertex itself and of its neighbours */
    struct gr_parameter *bias, *inner_bias, *outer, *gain, *shift, *source, *target;
    struct gr_parameter *edge_weight, *edge_attention; /* with config.attention.edge_features */
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

/** Names and shapes of all parameters, and the weights of each layer, without values. Plans their bytes. */
int32_t gr_model_describe(struct gr_model *model, struct gr_budget *budget, graft_error *error);
