/* Adam (Kingma and Ba 2015, algorithm 1, with beta 0.9 and 0.999, eps 1e-8) and SGD with momentum. The L2 penalty is
 * added to the gradient, as in the models that are compared with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/model.h"

#include <math.h>

static void adam_step(struct gr_parameter *p, float rate, float decay, double step)
{
    const float unbias_m = (float)(1 / (1 - pow(0.9, step))), unbias_v = (float)(1 / (1 - pow(0.999, step)));

    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        const float g = p->gradient[i] + decay * p->value[i];

        p->m[i] = 0.9f * p->m[i] + 0.1f * g;
        p->v[i] = 0.999f * p->v[i] + 0.001f * g * g;
        p->value[i] -= rate * (p->m[i] * unbias_m) / (sqrtf(p->v[i] * unbias_v) + 1e-8f);
    }
}

static void sgd_step(struct gr_parameter *p, float rate, float decay, float momentum)
{
    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        p->m[i] = momentum * p->m[i] + (p->gradient[i] + decay * p->value[i]);
        p->value[i] -= rate * p->m[i];
    }
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

void gr_optimizer_step(struct gr_model *model, int64_t step)
{
    const struct gr_live_config *config = &model->config.live;
    const float                  rate = (float)gr_learning_rate(config, step - 1);

    GR_ASSERT(step >= 1);
    for (int32_t i = 0; i < model->n_parameters; i++) {
        struct gr_parameter *p = &model->parameters[i];
        const float          decay = p->decayed ? (float)config->weight_decay : 0;

        if (model->config.adam) adam_step(p, rate, decay, (double)step);
        else sgd_step(p, rate, decay, (float)config->momentum);
    }
}
