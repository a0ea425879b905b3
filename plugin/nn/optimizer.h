/* Steps of an optimiser, their undoing, clipping of gradients, and the learning rate.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/team.h"
#include "nn/options.h"
#include "nn/parameter.h"

/** The learning rate over `steps` steps: a linear ramp of `warmup` steps to `rate`; then constant, or half a cosine
 *  from `rate` to `last` (Loshchilov and Hutter 2017, eq. 5, without restarts), or multiplied by `factor` every `every`
 *  steps. */
struct gr_nn_schedule {
    enum gr_schedule kind;
    double           rate, last, factor;
    int64_t          warmup, steps, every;
};

/** Compute the learning rate of the step after t completed steps. */
double gr_nn_rate(const struct gr_nn_schedule *schedule, int64_t t);

/** The methods: SGD with momentum and Adam, whose weight decay is an L2 penalty added to the gradient, as in PyTorch's
 *  SGD and Adam; and AdamW, whose decay multiplies the weights. */
enum gr_nn_method { GR_NN_SGD, GR_NN_ADAM, GR_NN_ADAMW };

struct gr_nn_step {
    enum gr_nn_method method;
    int64_t           number; /* index of the step, from 1 on */
    double            rate, weight_decay;
    int               decays_first; /* whether the penalty is of the first layer alone */
    double            momentum;     /* for SGD */
    double            beta1, beta2; /* for Adam and AdamW */
};

/** Do one step of the optimiser for all parameters. The result is bitwise identical for any number of threads. */
void gr_nn_step(struct gr_parameters *all, const struct gr_nn_step *step, struct gr_team team);
/** Restore the values and moments before the last step, at most once after each step. Parameters without `previous`
 *  arrays do not change. */
void gr_nn_undo(struct gr_parameters *all);

/** Compute the sum of squares of the gradients of all trained parameters, added in a fixed order. */
double gr_nn_squares(const struct gr_parameters *all);
/** Clip the gradients of all trained parameters: if their joint Euclidean norm `length` exceeds `longest`, scale them
 *  to norm `longest` (Pascanu et al. 2013, algorithm 1). */
void   gr_nn_clip(struct gr_parameters *all, double length, double longest);
