/* Makes one step of Adam (Kingma and Ba, ICLR 2015, algorithm 1) or of SGD with momentum. The L2 penalty is part of the
 * gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <string.h>

/** The factor of the L2 penalty of a tensor. The penalty applies to weight matrices and to the label embedding, but not
 * to biases, gains and shifts. */
static double decay_of(const struct oracle_optimizer *optimizer, const struct oracle_tensor *tensor)
{
    const char *dot = strrchr(tensor->name, '.');

    if (dot != NULL && strncmp(dot, ".weight", 7) != 0) return 0;
    return optimizer->decay_first_only && tensor->layer > 0 ? 0 : optimizer->weight_decay;
}

static double adam(const struct oracle_optimizer *optimizer, int64_t step, double g, double *m, double *v)
{
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    return optimizer->lr * (*m / (1 - pow(beta1, (double)step))) / (sqrt(*v / (1 - pow(beta2, (double)step))) + eps);
}

double oracle_clip(const struct oracle_optimizer *optimizer, const struct oracle_tensor *tensor, int32_t n,
                   double *const *gradient)
{
    double length = 0;

    for (int32_t t = 0; t < n; t++)
        for (int64_t at = 0; at < tensor[t].rows * tensor[t].cols; at++) length = hypot(length, gradient[t][at]);
    if (optimizer->clip_norm == 0 || length <= optimizer->clip_norm) return length;
    for (int32_t t = 0; t < n; t++)
        for (int64_t at = 0; at < tensor[t].rows * tensor[t].cols; at++)
            gradient[t][at] *= optimizer->clip_norm / length;
    return length;
}

void oracle_optimizer_step(const struct oracle_optimizer *optimizer, int64_t step, const struct oracle_tensor *tensor,
                           const double *gradient, double *m, double *v)
{
    const double decay = decay_of(optimizer, tensor);

    for (int64_t at = 0; at < tensor->rows * tensor->cols; at++) {
        const double g = gradient[at] + decay * tensor->value[at];

        if (optimizer->adam) {
            tensor->value[at] -= adam(optimizer, step, g, &m[at], &v[at]);
        } else {
            m[at] = optimizer->momentum * m[at] + g;
            tensor->value[at] -= optimizer->lr * m[at];
        }
    }
}
