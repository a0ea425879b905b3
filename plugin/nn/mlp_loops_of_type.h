/* The passes of mlp_loops.h for elements of type T, included by mlp_loops.c for each type. No guard: it is included
 * twice.
 * SPDX-License-Identifier: Apache-2.0 */

/* Compute e^x - 1 for x <= 0. With x = n ln 2 + r it is 2^n (e^r - 1) + (2^n - 1), whose terms are accurate to the last
 * bits. NaN remains NaN. */
GR_INLINE VECTOR TYPED(expm1_below)(VECTOR x)
{
    const MASK   is_low = (MASK)(x < LEAST);
    const VECTOR least = (VECTOR){ 0 } + LEAST;
    const VECTOR from = (VECTOR)(((MASK)x & ~is_low) | ((MASK)least & is_low));
    const VECTOR shifted = from * (T)1.4426950408889634 + MAGIC, n = shifted - MAGIC;
    const VECTOR r = from - n * LN2_HIGH - n * LN2_LOW;
    const VECTOR power = (VECTOR)(((MASK)shifted - (MAGIC_BITS - EXPONENT_BIAS)) << EXPONENT_SHIFT);

    return power * (TYPED(series)(r) * r + r) + (power - 1);
}

GR_INLINE VECTOR TYPED(activation)(VECTOR z, int is_elu)
{
    const MASK is_positive = (MASK)(z > 0), is_negative = (MASK)(z < 0);

    if (!is_elu) return (VECTOR)((MASK)z & ~is_negative);
    return (VECTOR)(((MASK)z & is_positive) |
                    ((MASK)TYPED(expm1_below)((VECTOR)((MASK)z & ~is_positive)) & ~is_positive));
}

static void TYPED(activate)(int64_t n, int64_t width, const void *bias, int is_elu, void *z)
{
    for (int64_t r = 0; r < n; r++) {
        T *row = (T *)z + r * width;

        for (int64_t j = 0; j < width; j += LANES) {
            const VECTOR v = LOAD(row + j, width - j, 0) + LOAD((const T *)bias + j, width - j, 0);
            const VECTOR a = TYPED(activation)(v, is_elu);

            memcpy(row + j, &a, width - j < LANES ? (uint64_t)(width - j) * sizeof *row : sizeof a);
        }
    }
}

static void TYPED(end)(const struct gr_nn_norm *norm, const void *base, void *out)
{
    for (int64_t r = 0; r < norm->n; r++) {
        T *z = (T *)norm->z + r * norm->width, *to = (T *)out + r * norm->width;

        TYPED(apply_norm)(norm->width, norm->bias, norm->gain, norm->shift, z);
        if (base == NULL) memcpy(to, z, (uint64_t)norm->width * sizeof *z);
        else
            for (int64_t j = 0; j < norm->width; j++) to[j] = ((const T *)base)[r * norm->width + j] + z[j];
    }
}

static void TYPED(normalise)(const struct gr_nn_norm *norm, void *rstd)
{
    for (int64_t r = 0; r < norm->n; r++)
        ((T *)rstd)[r] = TYPED(normalise_row)(norm->width, norm->bias, (T *)norm->z + r * norm->width);
}

/* Replace g, the gradient of row r, which is normalised, by that of the row before; add to those of gain and shift. */
GR_INLINE void TYPED(norm_back)(const struct gr_nn_norm *norm, int64_t r, T rstd, T *g, T *gain, T *shift)
{
    const struct TYPED(normed) row = { (const T *)norm->z + r * norm->width, 0, 1 };

    for (int64_t j = 0; j < norm->width; j++) {
        gain[j] += g[j] * row.z[j];
        shift[j] += g[j];
    }
    TYPED(norm_row_back)(norm->width, &row, rstd, norm->gain, 1, g);
}

static void TYPED(end_back)(const struct gr_nn_norm *norm, const void *rstd, void *g, void *bias, void *gain,
                            void *shift)
{
    for (int64_t r = 0; r < norm->n; r++) {
        T *row = (T *)g + r * norm->width;

        if (norm->gain != NULL) TYPED(norm_back)(norm, r, ((const T *)rstd)[r], row, gain, shift);
        TYPED(add_row)(norm->width, 1, row, bias);
    }
}

static void TYPED(activate_back)(int64_t n, int64_t width, const void *a, int is_elu, void *g, void *bias)
{
    for (int64_t r = 0; r < n; r++) {
        const T *from = (const T *)a + r * width;
        T       *row = (T *)g + r * width;

        if (is_elu)
            for (int64_t j = 0; j < width; j++) row[j] *= from[j] > 0 ? 1 : from[j] + 1;
        else
            for (int64_t j = 0; j < width; j++) row[j] = from[j] > 0 ? row[j] : 0;
        TYPED(add_row)(width, 1, row, bias);
    }
}

#undef T
#undef VECTOR
#undef MASK
#undef LANES
#undef LOAD
#undef TYPED
#undef MAGIC
#undef MAGIC_BITS
#undef EXPONENT_BIAS
#undef EXPONENT_SHIFT
#undef LN2_HIGH
#undef LN2_LOW
#undef LEAST
