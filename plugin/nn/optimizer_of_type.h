/* The loops of optimizer.c for elements of type T, included for each type. No guard: it is included twice.
 * SPDX-License-Identifier: Apache-2.0 */

static void TYPED(adam)(void *arg, int64_t begin, int64_t end)
{
    const struct moves *s = arg;
    const T             keep = (T)s->keep, penalty = (T)s->penalty, rate = (T)s->rate, unbias_m = (T)s->unbias_m;
    const T             b1 = (T)s->beta1, c1 = (T)(1 - s->beta1), b2 = (T)s->beta2, c2 = (T)(1 - s->beta2);
    const T             inside = (T)s->unbias_inside, outside = (T)s->unbias_outside;
    const T *const gradient = s->gradient, *const value = s->from[0], *const m = s->from[1], *const v = s->from[2];
    T *const new_value = s->to[0], *const new_m = s->to[1], *const new_v = s->to[2];

#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        const T g = gradient[i] + penalty * value[i];

        new_m[i] = b1 * m[i] + c1 * g;
        new_v[i] = b2 * v[i] + c2 * g * g;
        new_value[i] = keep * value[i] - rate * (new_m[i] * unbias_m) / (ROOT(new_v[i] * inside) * outside + (T)1e-8);
    }
}

static void TYPED(sgd)(void *arg, int64_t begin, int64_t end)
{
    const struct moves *s = arg;
    const T             penalty = (T)s->penalty, rate = (T)s->rate, momentum = (T)s->beta1;
    const T *const gradient = s->gradient, *const value = s->from[0], *const m = s->from[1], *const v = s->from[2];
    T *const new_value = s->to[0], *const new_m = s->to[1], *const new_v = s->to[2];

#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        new_m[i] = momentum * m[i] + (gradient[i] + penalty * value[i]);
        new_v[i] = v[i];
        new_value[i] = value[i] - rate * new_m[i];
    }
}

/* Update running statistics by the statistics of the step, with PyTorch's momentum of 0.1. */
static void TYPED(follow)(void *arg, int64_t begin, int64_t end)
{
    const struct moves *s = arg;
    const T *const gradient = s->gradient, *const value = s->from[0];
    T *const new_value = s->to[0];

    for (int64_t i = begin; i < end; i++) new_value[i] = (T)0.9 * value[i] + (T)0.1 * gradient[i];
}

/* Add up the squares in double, where squares of floats cannot overflow. */
static double TYPED(squares)(const void *array, int64_t count)
{
    const T *const x = array;
    double         sum = 0;

    for (int64_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static void TYPED(scale)(void *array, int64_t count, double factor)
{
    T *const x = array;

    for (int64_t i = 0; i < count; i++) x[i] = (T)((double)x[i] * factor);
}

#undef T
#undef ROOT
#undef TYPED
