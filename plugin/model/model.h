/* A model: its configuration, its weights by name and the state of its optimiser. It knows neither graph nor ranks;
 * run.h combines it with both.
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
    int64_t              wide;         /* columns of H W: of all heads together for gat, else `out` */
    int                  hidden;       /* norm, activation and dropout follow the layer */
    int                  adds_input;   /* the layer's input is added to its output: option residual */
    struct gr_parameter *self, *neigh; /* weights of the vertex itself and of its neighbours */
    struct gr_parameter *bias, *inner_bias, *outer, *gain, *shift, *source, *target;
    struct gr_parameter *edge_weight, *edge_attention; /* weights of edge features in attention */
    struct gr_parameter *running_mean, *running_variance;
};

struct gr_model {
    struct gr_config     config;
    struct gr_layer      layers[GR_LAYERS_MAX];
    struct gr_parameters parameters;
    struct gr_parameter *label_embedding; /* [classes x features] embedding for option label_rate; or NULL */
};

/** A weight matrix or vector of a layer. Letters name the numbers of rows and columns: 'i'n, 'o'ut, '1', 'w'ide,
 *  'h'eads, 'd' for the columns of a head, and 'e' for the features of an edge. */
struct gr_parameter_shape {
    const char         *name;
    char                rows, cols;
    size_t              slot; /* offset of its pointer in gr_layer */
    enum gr_first_value first;
    int (*is_wanted)(const struct gr_config *config); /* whether a layer has it; NULL: always */
};

#define GR_SLOT(member) offsetof(struct gr_layer, member)

/** Set names and shapes of all parameters, and the pointers of each layer, without values. Plan their bytes. */
int32_t gr_model_describe(struct gr_model *model, struct gr_budget *budget, graft_error *error);
