/* A run: a model on blocks, with a strategy and work space. Layers access nothing else.
 *
 * product.h  the products of layers              rows.h     passes over rows
 * gather.h   sums and extrema over neighbours    workers.h  sums and dense products in a pipeline
 * labels.h   labels as input                     kind.h     the kinds of layers, which call all of these
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "base/profile.h"
#include "base/team.h"
#include "dense/dense.h"
#include "model/activations.h"
#include "model/input.h"
#include "model/model.h"
#include "model/strategy.h"
#include "model/targets.h"
#include "nn/rows.h"

/** Data of label propagation: the labels of some training vertices, or in evaluation of all of them, are input of the
 *  first layer. */
struct gr_labels {
    int64_t  rows;         /* number of first vertices, the only ones whose labels may be input */
    uint8_t *taken;        /* [rows] whether the label of the vertex is input of the current pass */
    float   *gathered;     /* [n_dst x classes] labels summed over neighbours, if the first layer aggregates first */
    int      has_gathered; /* `gathered` is that of the current pass */
    float   *product;      /* [classes x wide of the first layer] embedding times weights, or its gradient */
    double  *sums;         /* [classes x wide of the first layer] sums in double for this gradient */
};

/** The work space of passes. */
struct gr_space {
    float           *gradient[2]; /* [gradient_rows x widest] gradients of z and of h, in turn */
    float           *residual;    /* [gradient_rows x widest] gradient of the output of a layer that adds its input */
    float           *jumped;      /* [gradient_rows x in] gradient of `joined` */
    float           *scratch;     /* [seen x widest] memory for intermediate results of one operation */
    uint16_t        *rounded;     /* [seen x widest] rows that a sum reads, as bfloat16; NULL: sums read floats */
    double          *partial;     /* partial sums over chunks of rows */
    double          *column_sums; /* [n_column_sums] sums of columns over all ranks, for BatchNorm */
    int64_t          n_column_sums;
    _Atomic int64_t *left[2]; /* [chunks of rows] gr_rows_backward.left of the pass after a layer, and inside it */
};

struct gr_run {
    graft_context          *context;
    struct gr_model        *model;
    struct gr_strategy     *strategy;
    struct gr_profile       profile;
    const struct gr_module *dense;
    graft_dtype             dense_type; /* type to which dense products round their operands */
    int                     threads;
    enum gr_isa             isa;
    struct gr_input         input;
    struct gr_targets       targets;
    struct gr_labels        labels;

    struct gr_activations layers[GR_LAYERS_MAX];
    int                   predicts;         /* the arrays are for passes without a backward pass */
    int32_t               holder[GR_STEPS]; /* layer whose values are now in the arrays that layers share */
    struct gr_space       space;
    struct gr_workers    *workers; /* NULL: there are none */

    /* The state of the current pass: */
    struct gr_epilogue *below; /* backward pass over rows of the layer before, for the last product that writes dx */
    int32_t             pass;  /* GRAFT_PASS_... */
    int32_t             layer; /* the current layer; -1: none */
    int64_t             epoch; /* number of training steps before this pass */
};

static inline const struct gr_config *gr_run_config(const struct gr_run *run)
{
    return &run->model->config;
}

/** Whether the current pass belongs to a training step, so that there is dropout. */
static inline int gr_is_training(const struct gr_run *run)
{
    return run->pass != GRAFT_PASS_EVALUATION;
}

/** Whether labels are input of the first layer (option label_rate). */
static inline int gr_propagates(const struct gr_run *run)
{
    return run->model->config.label_rate > 0;
}

/** A team of all threads of the run, which record their times for a profile, and let messages move while they work. */
static inline struct gr_team gr_run_team(const struct gr_run *run)
{
    return (struct gr_team){ .threads = run->threads,
                             .times = run->profile.times,
                             .poll = run->strategy->ops->poll,
                             .poll_arg = run->strategy };
}
