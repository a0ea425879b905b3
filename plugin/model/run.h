/* A run: a model that runs on blocks, with a strategy. Layers access nothing else.
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

/** Label propagation: the labels of some training vertices, or in evaluation of all, are input of the first layer. */
struct gr_labels {
    int64_t  rows;         /* vertices whose labels may be input are among the first ones */
    uint8_t *taken;        /* [rows] the label of the vertex is input of the current pass */
    float   *gathered;     /* [n_dst x classes] labels after aggregation, if the first layer aggregates first */
    int      has_gathered; /* of the current pass */
    float   *product;      /* [classes x wide of the first layer] embedding times weights, and its gradient */
    double  *sums;         /* the same */
};

/** Work space. */
struct gr_space {
    float           *gradient[2]; /* [gradient_rows x widest] of z and of h, alternating */
    float           *residual;    /* [gradient_rows x widest] of the output of a layer that adds its input */
    float           *jumped;      /* [gradient_rows x in] of `joined` */
    float           *scratch;     /* [seen x widest] */
    uint16_t        *rounded;     /* [seen x widest] rows that a sum reads, as bfloat16; NULL: as floats */
    double          *partial;     /* sums over chunks of rows */
    double          *column_sums; /* [n_column_sums] of BatchNorm, over all ranks */
    int64_t          n_column_sums;
    _Atomic int64_t *left[2]; /* [chunks of rows] of gr_rows_backward: after a layer, and inside it */
};

struct gr_run {
    graft_context          *context;
    struct gr_model        *model;
    struct gr_strategy     *strategy;
    struct gr_profile       profile;
    const struct gr_module *dense;
    graft_dtype             dense_type; /* that dense products multiply */
    int                     threads;
    enum gr_isa             isa;
    struct gr_input         input;
    struct gr_targets       targets;
    struct gr_labels        labels;

    struct gr_activations layers[GR_LAYERS_MAX];
    int                   predicts;         /* the arrays are for passes without a backward pass */
    int32_t               holder[GR_STEPS]; /* the layer whose values are in the arrays that layers share */
    struct gr_space       space;
    struct gr_workers    *workers; /* NULL: there are none */

    /* The current pass: */
    struct gr_epilogue *below; /* the pass over rows of the layer below, for the last product that writes dx; or NULL */
    int32_t             pass;  /* GRAFT_PASS_... */
    int32_t             layer; /* -1: none */
    int64_t             epoch; /* steps of training before it */
};

static inline const struct gr_config *gr_run_config(const struct gr_run *run)
{
    return &run->model->config;
}

/** Whether the pass belongs to a step, so that there is dropout. */
static inline int gr_is_training(const struct gr_run *run)
{
    return run->pass != GRAFT_PASS_EVALUATION;
}

/** Whether labels are input. */
static inline int gr_propagates(const struct gr_run *run)
{
    return run->model->config.label_rate > 0;
}

/** All threads of the run, with their times if a profile is recorded; while they work, messages move. */
static inline struct gr_team gr_run_team(const struct gr_run *run)
{
    return (struct gr_team){ .threads = run->threads,
                             .times = run->profile.times,
                             .poll = run->strategy->ops->poll,
                             .poll_arg = run->strategy };
}
