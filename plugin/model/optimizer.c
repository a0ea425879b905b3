/* Adam (Kingma and Ba 2015, algorithm 1, with beta 0.9 and 0.999, eps 1e-8) and SGD with momentum. The L2 penalty is
 * added to the gradient, as in PyTorch's Adam and SGD. The gradient may be clipped before (Pascanu et al. 2013,
 * algorithm 1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/model.h"

#include <math.h>

/* Steps write the new weights and moments beside the present ones, in p->previous. */
enum { VALUE, M, V, SWAPPED };

static void adam_step(struct gr_parameter *p, float rate, float decay, double step)
{
    float *const value = p->previous[VALUE], *const m = p->previous[M], *const v = p->previous[V];
    const float unbias_m = (float)(1 / (1 - pow(0.9, step))), unbias_v = (float)(1 / (1 - pow(0.999, step)));

    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        const float g = p->gradient[i] + decay * p->value[i];

        m[i] = 0.9f * p->m[i] + 0.1f * g;
        v[i] = 0.999f * p->v[i] + 0.001f * g * g;
        value[i] = p->value[i] - rate * (m[i] * unbias_m) / (sqrtf(v[i] * unbias_v) + 1e-8f);
    }
}

static void sgd_step(struct gr_parameter *p, float rate, float decay, float momentum)
{
    float *const value = p->previous[VALUE], *const m = p->previous[M], *const v = p->previous[V];

    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        m[i] = momentum * p->m[i] + (p->gradient[i] + decay * p->value[i]);
        v[i] = p->v[i];
        value[i] = p->value[i] - rate * m[i];
    }
}

/* Running statistics follow the statistics of the step, with PyTorch's momentum of 0.1. */
static void running_step(struct gr_parameter *p)
{
    for (int64_t i = 0; i < p->rows * p->cols; i++) p->previous[VALUE][i] = 0.9f * p->value[i] + 0.1f * p->gradient[i];
}

/* The order of the sum is fixed, so its bits do not depend on threads. Squares of floats cannot overflow in double. */
double gr_gradient_clip(struct gr_model *model, double longest)
{
    double squares = 0, length;

    GR_ASSERT(longest > 0);
    for (int64_t i = 0; i < model->n_weights; i++) squares += (double)model->gradients[i] * (double)model->gradients[i];
    length = sqrt(squares);
    if (length <= longest) return length;
    for (int64_t i = 0; i < model->n_weights; i++)
        model->gradients[i] = (float)((double)model->gradients[i] * (longest / length));
    return length;
}

double gr_learning_rate(const struct gr_live_config *config, int64_t epoch)
{
    const double pi = 3.14159265358979323846;

    switch (config->schedule) {
    case GR_SCHEDULE_COSINE: return config->lr / 2 * (1 + cos(pi * (double)epoch / (double)config->epochs));
    case GR_SCHEDULE_STEP: return config->lr * pow(config->schedule_factor, (double)(epoch / config->schedule_every));
    default: return config->lr;
    }
}

static void swap_previous(struct gr_model *model)
{
    for (int32_t i = 0; i < model->n_parameters; i++) {
        struct gr_parameter *p = &model->parameters[i];
        float **const        present[SWAPPED] = { &p->value, &p->m, &p->v };

        for (int k = 0; k < SWAPPED; k++) {
            float *const other = p->previous[k];

            p->previous[k] = *present[k];
            *present[k] = other;
        }
    }
}

void gr_optimizer_undo(struct gr_model *model)
{
    swap_previous(model);
}

void gr_optimizer_step(struct gr_model *model, int64_t step, double learning_rate)
{
    const struct gr_live_config *config = &model->config.live;
    const float                  rate = (float)learning_rate;

    GR_ASSERT(step >= 1);
    for (int32_t i = 0; i < model->n_parameters; i++) {
        struct gr_parameter *p = &model->parameters[i];
        const float          decay = p->decayed ? (float)config->weight_decay : 0;

        if (p->statistic != GR_TRAINED) running_step(p);
        else if (model->config.adam) adam_step(p, rate, decay, (double)step);
        else sgd_step(p, rate, decay, (float)config->momentum);
    }
    swap_previous(model);
}
