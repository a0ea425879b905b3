/* AdamW (Loshchilov and Hutter 2019, algorithm 2; eps 1e-8), as torch.optim.AdamW computes it, and the learning rate:
 * a linear ramp, then half a cosine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "network/network.h"

#include <math.h>

enum { WEIGHTS_AT_ONCE = GR_LIMIT(16384, 16) };

struct step {
    void       *weights, *m, *v;
    const void *gradient;
    double      decay, beta1, beta2, rate, unbias_v; /* rate: divided by the bias correction of m */
};

#define DEFINE_STEP(name, real, root)                                                                                  \
    static void name(void *arg, int64_t chunk, int64_t begin, int64_t end)                                             \
    {                                                                                                                  \
        const struct step *s = arg;                                                                                    \
        const real         keep = (real)s->decay, b1 = (real)s->beta1, b2 = (real)s->beta2, rate = (real)s->rate;      \
        const real         c1 = (real)(1 - s->beta1), c2 = (real)(1 - s->beta2), unbias = (real)s->unbias_v;           \
        real *const w = s->weights, *const m = s->m, *const v = s->v;                                                  \
        const real *const g = s->gradient;                                                                             \
                                                                                                                       \
        (void)chunk;                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            m[i] = b1 * m[i] + c1 * g[i];                                                                              \
            v[i] = b2 * v[i] + c2 * g[i] * g[i];                                                                       \
            w[i] = keep * w[i] - rate * m[i] / (root(v[i]) * unbias + (real)1e-8);                                     \
        }                                                                                                              \
    }

DEFINE_STEP(step_f32, float, sqrtf)
DEFINE_STEP(step_f64, double, sqrt)

/* Steps of the optimiser so far. */
static int64_t followed(const graft_network *n)
{
    return n->steps > n->options.gather ? n->steps - n->options.gather : 0;
}

double gr_network_learning_rate(const graft_network *n)
{
    const struct gr_mesh_options *o = &n->context->options.mesh;
    const int64_t                 t = followed(n);
    const double                  pi = 3.14159265358979323846;

    if (t < o->warmup) return o->lr * (double)(t + 1) / (double)o->warmup;
    if (o->steps == 0) return o->lr;
    if (t >= o->steps || o->steps <= o->warmup) return o->lr_end;
    return o->lr_end +
           (o->lr - o->lr_end) / 2 * (1 + cos(pi * (double)(t - o->warmup) / (double)(o->steps - o->warmup)));
}

void gr_network_follow(graft_network *n, const void *gradient, double rate)
{
    const struct gr_mesh_options *o = &n->context->options.mesh;
    const double                  t = (double)(followed(n) + 1);
    struct step s = { n->weights, n->training.m, n->training.v, gradient, .beta1 = o->beta1, .beta2 = o->beta2 };

    s.decay = 1 - rate * o->weight_decay;
    s.rate = rate / (1 - pow(o->beta1, t));
    s.unbias_v = 1 / sqrt(1 - pow(o->beta2, t));
    gr_parallel_chunks(gr_network_team(n), 8 * n->shape.n_weights, n->shape.n_weights, WEIGHTS_AT_ONCE,
                       n->dtype == GRAFT_F64 ? step_f64 : step_f32, &s);
}
