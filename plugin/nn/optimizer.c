/* Adam (Kingma and Ba 2015, algorithm 1, eps 1e-8), AdamW (Loshchilov and Hutter 2019, algorithm 2) and SGD with
 * momentum, as in PyTorch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/optimizer.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"

#include <math.h>

enum { WEIGHTS_AT_ONCE = GR_LIMIT(16384, 16) };

/* A step of some weights, which reads value, m and v in `from` and writes them to `to`, which may be the same arrays.
 * Adam and AdamW apply the bias corrections at different points of one formula, and the unused factors are 1. So
 * results are bitwise identical to those of the papers' algorithms. */
struct moves {
    const void *gradient;
    void       *from[GR_STEP_ARRAYS], *to[GR_STEP_ARRAYS];
    double keep, penalty; /* weight decay: the value times keep, or penalty times the value added to the gradient */
    double rate, beta1, beta2;
    double unbias_m, unbias_inside, unbias_outside; /* for v: inside or outside of the square root */
};

#define T float
#define ROOT sqrtf
#define TYPED(name) name##_f32
#include "nn/optimizer_of_type.h"

#define T double
#define ROOT sqrt
#define TYPED(name) name##_f64
#include "nn/optimizer_of_type.h"

static struct moves moves_of(const struct gr_nn_step *s)
{
    const double unbias_m = 1 / (1 - pow(s->beta1, (double)s->number));
    const double unbias_v = 1 - pow(s->beta2, (double)s->number);
    struct moves moves = { .keep = 1, .rate = s->rate, .beta1 = s->beta1, .beta2 = s->beta2 };

    moves.unbias_m = moves.unbias_inside = moves.unbias_outside = 1;
    if (s->method == GR_NN_SGD) {
        moves.beta1 = s->momentum;
    } else if (s->method == GR_NN_ADAM) {
        moves.unbias_m = unbias_m;
        moves.unbias_inside = 1 / unbias_v;
    } else {
        moves.keep = 1 - s->rate * s->weight_decay;
        moves.rate = s->rate / (1 - pow(s->beta1, (double)s->number));
        moves.unbias_outside = 1 / sqrt(unbias_v);
    }
    return moves;
}

/* Whether the next parameter can be updated with p in one loop: its arrays follow those of p, and its step is equal. */
static int continues(const struct gr_parameters *all, const struct gr_parameter *p)
{
    const int64_t              bytes = gr_parameter_elements(p) * gr_nn_bytes(all->dtype);
    const struct gr_parameter *next = p + 1;

    return p->previous[0] == NULL && next->previous[0] == NULL && p->decayed == next->decayed &&
           p->statistic == next->statistic && (char *)p->copy[GR_COPY_VALUE] + bytes == next->copy[GR_COPY_VALUE];
}

static void swap_previous(struct gr_parameters *all)
{
    static const enum gr_copy present[GR_STEP_ARRAYS] = { GR_COPY_VALUE, GR_COPY_M, GR_COPY_V };

    for (int32_t i = 0; i < all->count; i++) {
        struct gr_parameter *p = &all->list[i];

        for (int k = 0; k < GR_STEP_ARRAYS && p->previous[0] != NULL; k++) {
            void *const other = p->previous[k];

            p->previous[k] = p->copy[present[k]];
            p->copy[present[k]] = other;
        }
    }
}

void gr_nn_undo(struct gr_parameters *all)
{
    swap_previous(all);
}

/* Select the loop for a parameter. */
static gr_rows_fn loop_of(const struct gr_parameters *all, const struct gr_parameter *p, enum gr_nn_method method)
{
    const int is_double = all->dtype == GRAFT_F64;

    if (p->statistic != GR_TRAINED) return is_double ? follow_f64 : follow_f32;
    if (method == GR_NN_SGD) return is_double ? sgd_f64 : sgd_f32;
    return is_double ? adam_f64 : adam_f32;
}

/* New values and moments are written to the arrays `previous`, if there are any, which then are swapped. */
void gr_nn_step(struct gr_parameters *all, const struct gr_nn_step *step, struct gr_team team)
{
    struct moves moves = moves_of(step);

    GR_ASSERT(step->number >= 1);
    for (int32_t i = 0; i < all->count; i++) {
        const struct gr_parameter *p = &all->list[i];
        int64_t                    count = gr_parameter_elements(p);

        for (; i + 1 < all->count && continues(all, &all->list[i]); i++)
            count += gr_parameter_elements(&all->list[i + 1]);
        moves.penalty = step->method != GR_NN_ADAMW && (int)p->decayed > step->decays_first ? step->weight_decay : 0;
        moves.gradient = p->copy[GR_COPY_GRADIENT];
        moves.from[0] = p->copy[GR_COPY_VALUE];
        moves.from[1] = p->copy[GR_COPY_M];
        moves.from[2] = p->copy[GR_COPY_V];
        for (int k = 0; k < GR_STEP_ARRAYS; k++) moves.to[k] = p->previous[0] != NULL ? p->previous[k] : moves.from[k];
        gr_parallel_rows(team, 8 * count, count, WEIGHTS_AT_ONCE, loop_of(all, p, step->method), &moves);
    }
    swap_previous(all);
}

double gr_nn_squares(const struct gr_parameters *all)
{
    return all->dtype == GRAFT_F64 ? squares_f64(all->gradients, all->n_weights)
                                   : squares_f32(all->gradients, all->n_weights);
}

void gr_nn_clip(struct gr_parameters *all, double length, double longest)
{
    GR_ASSERT(longest > 0);
    if (length <= longest) return;
    if (all->dtype == GRAFT_F64) scale_f64(all->gradients, all->n_weights, longest / length);
    else scale_f32(all->gradients, all->n_weights, longest / length);
}

double gr_nn_rate(const struct gr_nn_schedule *s, int64_t t)
{
    const double pi = 3.14159265358979323846;

    if (t < s->warmup) return s->rate * (double)(t + 1) / (double)s->warmup;
    switch (s->kind) {
    case GR_SCHEDULE_COSINE:
        if (t >= s->steps || s->steps <= s->warmup) return s->last;
        return s->last +
               (s->rate - s->last) / 2 * (1 + cos(pi * (double)(t - s->warmup) / (double)(s->steps - s->warmup)));
    case GR_SCHEDULE_STEP: return s->rate * pow(s->factor, (double)(t / s->every));
    default: return s->rate;
    }
}
