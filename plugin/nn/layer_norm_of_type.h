/* The functions of layer_norm.h for elements of type T, included for each type. No guard: it is included twice.
 * SPDX-License-Identifier: Apache-2.0 */

/* Add the bias to z unless it is NULL, and compute *mean, the mean of z. Sums are accumulated in `parts` registers, 1
 * or 2, which determines how they are rounded. Returns 1 / deviation. */
GR_INLINE T TYPED(row_moments)(int64_t width, int parts, const T *bias, T *z, T *mean)
{
    VECTOR sums[2] = { { 0 } }, squares[2] = { { 0 } };

    for (int64_t j = 0; j < width; j += parts * LANES) {
        for (int k = 0; k < parts && j + k * LANES < width; k++) {
            T *const      at = z + j + k * LANES;
            const int64_t left = width - j - k * LANES;
            VECTOR        v = LOAD(at, left, 0);

            if (bias != NULL) {
                v += LOAD(bias + j + k * LANES, left, 0);
                memcpy(at, &v, left < LANES ? (uint64_t)left * sizeof *at : sizeof v);
            }
            sums[k] += v;
        }
    }
    *mean = TOTAL(parts == 1 ? sums[0] : sums[0] + sums[1]) / (T)width;
    for (int64_t j = 0; j < width; j += parts * LANES) {
        for (int k = 0; k < parts && j + k * LANES < width; k++) {
            const VECTOR v = LOAD(z + j + k * LANES, width - j - k * LANES, *mean) - *mean;

            squares[k] += v * v;
        }
    }
    return 1 / ROOT(TOTAL(parts == 1 ? squares[0] : squares[0] + squares[1]) / (T)width + (T)1e-5);
}

/* Replace z by the normalised z + bias. Returns 1 / deviation. */
GR_INLINE T TYPED(normalise_row)(int64_t width, const T *bias, T *z)
{
    T       mean;
    const T rstd = TYPED(row_moments)(width, 1, bias, z, &mean);

    for (int64_t j = 0; j < width; j++) z[j] = (z[j] - mean) * rstd;
    return rstd;
}

/* z = norm(z + bias) or, if gain is NULL, z + bias. */
GR_INLINE void TYPED(apply_norm)(int64_t width, const T *bias, const T *gain, const T *shift, T *z)
{
    if (gain == NULL) {
        for (int64_t j = 0; j < width; j++) z[j] += bias[j];
        return;
    }
    TYPED(normalise_row)(width, bias, z);
    for (int64_t j = 0; j < width; j++) z[j] = z[j] * gain[j] + shift[j];
}

/* A row z before its norm. The normalised row is x = (z - mean) scale. */
struct TYPED(normed) {
    const T *z;
    T        mean, scale;
};

/* Replace g, the gradient of y = gain x + shift, by that of z: rstd (u - mean(u) - x mean(u x)) with u = gain g. Means
 * are sums divided by the width (`divides`), or multiplied by its inverse, which may differ in the last bit. */
GR_INLINE void TYPED(norm_row_back)(int64_t width, const struct TYPED(normed) * row, T rstd, const T *gain, int divides,
                                    T *g)
{
    const T share = 1 / (T)width;
    VECTOR  sums = { 0 }, products = { 0 };
    T       mean, slope;

    for (int64_t j = 0; j < width; j += LANES) {
        const VECTOR u = LOAD(g + j, width - j, 0) * LOAD(gain + j, width - j, 0);

        sums += u;
        products += u * ((LOAD(row->z + j, width - j, row->mean) - row->mean) * row->scale);
    }
    mean = divides ? TOTAL(sums) / (T)width : TOTAL(sums) * share;
    slope = divides ? TOTAL(products) / (T)width : TOTAL(products) * share;
    for (int64_t j = 0; j < width; j++)
        g[j] = rstd * (g[j] * gain[j] - mean - (row->z[j] - row->mean) * row->scale * slope);
}

/* out += weight x */
GR_INLINE void TYPED(add_row)(int64_t width, T weight, const T *x, T *out)
{
    for (int64_t j = 0; j < width; j++) out[j] += weight * x[j];
}

#undef T
#undef VECTOR
#undef LANES
#undef LOAD
#undef TOTAL
#undef ROOT
#undef TYPED
