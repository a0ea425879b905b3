/* The passes of loops.h for elements of type T, included by loops.c for each type. No guard: it is included twice.
 * SPDX-License-Identifier: Apache-2.0 */

enum { OF(LANES) = VECTOR_BYTES / (int)sizeof(T) };

/* A vector, or the end of a row followed by `rest`. */
GR_INLINE VECTOR OF(load)(const T *from, int64_t left, T rest)
{
    VECTOR v;

    if (left < OF(LANES)) {
        T padded[OF(LANES)];

        for (int k = 0; k < OF(LANES); k++) padded[k] = k < left ? from[k] : rest;
        from = padded;
        memcpy(&v, padded, sizeof v);
        return v;
    }
    memcpy(&v, from, sizeof v);
    return v;
}

GR_INLINE void OF(store)(T *to, int64_t left, VECTOR v)
{
    if (left >= OF(LANES)) memcpy(to, &v, sizeof v);
    else memcpy(to, &v, (uint64_t)left * sizeof(T));
}

/* Halves are added until one number is left. */
GR_INLINE T OF(total)(VECTOR v)
{
    T parts[OF(LANES)];

    memcpy(parts, &v, sizeof v);
    for (int half = OF(LANES) / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) parts[k] += parts[k + half];
    return parts[0];
}

/* e^x - 1 of x <= 0: with x = n ln 2 + r it is 2^n (e^r - 1) + (2^n - 1), whose parts are exact to the last bits. A NaN
 * stays one. */
GR_INLINE VECTOR OF(expm1_below)(VECTOR x)
{
    const MASK   is_low = (MASK)(x < LEAST);
    const VECTOR least = (VECTOR){ 0 } + LEAST;
    const VECTOR from = (VECTOR)(((MASK)x & ~is_low) | ((MASK)least & is_low));
    const VECTOR shifted = from * (T)1.4426950408889634 + MAGIC, n = shifted - MAGIC;
    const VECTOR r = from - n * LN2_HIGH - n * LN2_LOW;
    const VECTOR power = (VECTOR)(((MASK)shifted - (MAGIC_BITS - EXPONENT_BIAS)) << EXPONENT_SHIFT);

    return power * (OF(series)(r) * r + r) + (power - 1);
}

GR_INLINE VECTOR OF(activation)(VECTOR z, int is_elu)
{
    const MASK is_positive = (MASK)(z > 0), is_negative = (MASK)(z < 0);

    if (!is_elu) return (VECTOR)((MASK)z & ~is_negative);
    return (VECTOR)(((MASK)z & is_positive) | ((MASK)OF(expm1_below)((VECTOR)((MASK)z & ~is_positive)) & ~is_positive));
}

static void OF(gather)(int64_t n, int64_t width, const void *a, const int32_t *from, const void *b, const int32_t *to,
                       void *z)
{
    for (int64_t r = 0; r < n; r++) {
        const T *left = (const T *)a + from[r] * width, *right = (const T *)b + to[r] * width;
        T       *out = (T *)z + r * width;

        for (int64_t j = 0; j < width; j++) out[j] = left[j] + right[j];
    }
}

static void OF(activate)(int64_t n, int64_t width, const void *bias, int is_elu, void *z)
{
    for (int64_t r = 0; r < n; r++) {
        T *row = (T *)z + r * width;

        for (int64_t j = 0; j < width; j += OF(LANES)) {
            const VECTOR v = OF(load)(row + j, width - j, 0) + OF(load)((const T *)bias + j, width - j, 0);

            OF(store)(row + j, width - j, OF(activation)(v, is_elu));
        }
    }
}

/* z = (z + bias - mean) / deviation. Returns 1 / deviation. */
GR_INLINE T OF(normalise_row)(int64_t width, const T *bias, T *z)
{
    VECTOR sums = { 0 }, squares = { 0 };
    T      mean, rstd;

    for (int64_t j = 0; j < width; j += OF(LANES)) {
        const VECTOR v = OF(load)(z + j, width - j, 0) + OF(load)(bias + j, width - j, 0);

        OF(store)(z + j, width - j, v);
        sums += v;
    }
    mean = OF(total)(sums) / (T)width;
    for (int64_t j = 0; j < width; j += OF(LANES)) {
        const VECTOR v = OF(load)(z + j, width - j, mean) - mean;

        squares += v * v;
    }
    rstd = 1 / ROOT(OF(total)(squares) / (T)width + (T)1e-5);
    for (int64_t j = 0; j < width; j++) z[j] = (z[j] - mean) * rstd;
    return rstd;
}

/* z = norm(z + bias) */
GR_INLINE void OF(norm_row)(const struct gr_mgn_norm *norm, T *z)
{
    const T *bias = norm->bias, *gain = norm->gain, *shift = norm->shift;

    if (gain == NULL) {
        for (int64_t j = 0; j < norm->width; j++) z[j] += bias[j];
        return;
    }
    OF(normalise_row)(norm->width, bias, z);
    for (int64_t j = 0; j < norm->width; j++) z[j] = z[j] * gain[j] + shift[j];
}

static void OF(end)(const struct gr_mgn_norm *norm, const void *base, void *out)
{
    for (int64_t r = 0; r < norm->n; r++) {
        T *z = (T *)norm->z + r * norm->width, *to = (T *)out + r * norm->width;

        OF(norm_row)(norm, z);
        if (base == NULL) memcpy(to, z, (uint64_t)norm->width * sizeof *z);
        else
            for (int64_t j = 0; j < norm->width; j++) to[j] = ((const T *)base)[r * norm->width + j] + z[j];
    }
}

/* m += weight x */
GR_INLINE void OF(add_row)(int64_t width, T weight, const T *x, T *m)
{
    for (int64_t j = 0; j < width; j++) m[j] += weight * x[j];
}

static void OF(end_edges)(const struct gr_mgn_norm *norm, const struct gr_mgn_sums *sums, const void *e, void *next,
                          void *m)
{
    const int64_t width = norm->width;

    for (int64_t r = 0; r < norm->n; r++) {
        const T  weight = sums->ranks != NULL ? 1 / (T)sums->ranks[r] : 1;
        const T *old = (const T *)e + r * width;
        T       *z = (T *)norm->z + r * width, *to = (T *)m + sums->target[r] * width;

        OF(norm_row)(norm, z);
        if (sums->sum == GR_MGN_SUM_UPDATE) OF(add_row)(width, weight, z, to);
        else if (sums->sum == GR_MGN_SUM_OLD) OF(add_row)(width, weight, old, to);
        if (sums->sum == GR_MGN_SUM_NEW || next != NULL)
            for (int64_t j = 0; j < width; j++) z[j] += old[j];
        if (sums->sum == GR_MGN_SUM_NEW) OF(add_row)(width, weight, z, to);
        if (next != NULL) memcpy((T *)next + r * width, z, (uint64_t)width * sizeof *z);
    }
}

static void OF(normalise)(const struct gr_mgn_norm *norm, void *rstd)
{
    for (int64_t r = 0; r < norm->n; r++)
        ((T *)rstd)[r] = OF(normalise_row)(norm->width, norm->bias, (T *)norm->z + r * norm->width);
}

/* With y = gain x + shift, where x is the normalised z + bias: dz = rstd (u - mean(u) - x mean(u x)), u = gain dy. */
GR_INLINE void OF(norm_row_back)(int64_t width, const T *x, T rstd, const T *gain, T *g, T *gain_gradient,
                                 T *shift_gradient)
{
    VECTOR sums = { 0 }, products = { 0 };
    T      mean, slope;

    for (int64_t j = 0; j < width; j++) {
        gain_gradient[j] += g[j] * x[j];
        shift_gradient[j] += g[j];
    }
    for (int64_t j = 0; j < width; j += OF(LANES)) {
        const VECTOR u = OF(load)(g + j, width - j, 0) * OF(load)(gain + j, width - j, 0);

        OF(store)(g + j, width - j, u);
        sums += u;
        products += u * OF(load)(x + j, width - j, 0);
    }
    mean = OF(total)(sums) / (T)width;
    slope = OF(total)(products) / (T)width;
    for (int64_t j = 0; j < width; j++) g[j] = rstd * (g[j] - mean - x[j] * slope);
}

static void OF(end_back)(const struct gr_mgn_norm *norm, const void *rstd, void *g, void *bias, void *gain, void *shift)
{
    for (int64_t r = 0; r < norm->n; r++) {
        T *row = (T *)g + r * norm->width;

        if (norm->gain != NULL)
            OF(norm_row_back)(norm->width, (const T *)norm->z + r * norm->width, ((const T *)rstd)[r], norm->gain, row,
                              gain, shift);
        OF(add_row)(norm->width, 1, row, bias);
    }
}

static void OF(activate_back)(int64_t n, int64_t width, const void *a, int is_elu, void *g, void *bias)
{
    for (int64_t r = 0; r < n; r++) {
        const T *from = (const T *)a + r * width;
        T       *row = (T *)g + r * width;

        if (is_elu)
            for (int64_t j = 0; j < width; j++) row[j] *= from[j] > 0 ? 1 : from[j] + 1;
        else
            for (int64_t j = 0; j < width; j++) row[j] = from[j] > 0 ? row[j] : 0;
        OF(add_row)(width, 1, row, bias);
    }
}

static void OF(end_edges_back)(int64_t n, int64_t width, const struct gr_mgn_sums *sums, const void *gradient_m,
                               int is_carried, void *e, void *u)
{
    for (int64_t r = 0; r < n; r++) {
        const T  weight = sums->ranks != NULL ? 1 / (T)sums->ranks[r] : 1;
        const T *gm = (const T *)gradient_m + sums->target[r] * width;
        T       *old = (T *)e + r * width, *update = (T *)u + r * width;

        for (int64_t j = 0; j < width; j++) {
            const T of_next = is_carried ? old[j] : 0, of_sum = weight * gm[j];

            update[j] = of_next + (sums->sum != GR_MGN_SUM_OLD ? of_sum : 0);
            old[j] += sums->sum != GR_MGN_SUM_UPDATE ? of_sum : 0;
        }
    }
}

static void OF(scatter)(int64_t n, int64_t width, const void *x, const int32_t *to, void *out)
{
    for (int64_t r = 0; r < n; r++) OF(add_row)(width, 1, (const T *)x + r * width, (T *)out + to[r] * width);
}

static void OF(collect)(int64_t begin, int64_t end, int64_t width, const int32_t *ptr, const int32_t *edge,
                        const void *x, void *out)
{
    for (int64_t v = begin; v < end; v++) {
        T *sum = (T *)out + v * width;

        memset(sum, 0, (uint64_t)width * sizeof *sum);
        for (int64_t k = ptr[v]; k < ptr[v + 1]; k++) OF(add_row)(width, 1, (const T *)x + edge[k] * width, sum);
    }
}

static void OF(add)(int64_t n, const void *x, void *out)
{
    OF(add_row)(n, 1, x, out);
}

static void OF(add_copies)(const struct gr_mesh_copies *copies, int64_t begin, int64_t end, int64_t width,
                           const void *halo, void *x)
{
    for (int64_t i = begin; i < end; i++) {
        const int32_t *copy = copies->copy + copies->start[i];
        const int64_t  count = copies->start[i + 1] - copies->start[i], before = copies->before[i];
        T             *row = (T *)x + copies->node[i] * width;

        for (int64_t j = 0; j < width; j++) {
            T sum = 0;

            for (int64_t k = 0; k < before; k++) sum += ((const T *)halo)[copy[k] * width + j];
            sum += row[j];
            for (int64_t k = before; k < count; k++) sum += ((const T *)halo)[copy[k] * width + j];
            row[j] = sum;
        }
    }
}

#undef T
#undef VECTOR
#undef MASK
#undef OF
#undef MAGIC
#undef MAGIC_BITS
#undef EXPONENT_BIAS
#undef EXPONENT_SHIFT
#undef LN2_HIGH
#undef LN2_LOW
#undef LEAST
#undef ROOT

#ifndef LOOPS
#define LOOPS(type)                                                                                                    \
    {                                                                                                                  \
        gather_##type,    activate_##type, end_##type,           end_edges_##type,                                     \
        normalise_##type, end_back_##type, activate_back_##type, end_edges_back_##type,                                \
        scatter_##type,   collect_##type,  add_##type,           add_copies_##type                                     \
    }
#endif
