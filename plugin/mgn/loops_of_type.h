/* The passes of loops.h for elements of type T, included by loops.c for each type. No guard: it is included twice.
 * SPDX-License-Identifier: Apache-2.0 */

static void TYPED(gather)(int64_t n, int64_t width, const void *a, const int32_t *from, const void *b,
                          const int32_t *to, void *z)
{
    for (int64_t r = 0; r < n; r++) {
        const T *left = (const T *)a + from[r] * width, *right = (const T *)b + to[r] * width;
        T       *out = (T *)z + r * width;

        for (int64_t j = 0; j < width; j++) out[j] = left[j] + right[j];
    }
}

static void TYPED(end_edges)(const struct gr_nn_norm *norm, const struct gr_mgn_sums *sums, const void *e, void *next,
                             void *m)
{
    const int64_t width = norm->width;

    for (int64_t r = 0; r < norm->n; r++) {
        const T  weight = sums->ranks != NULL ? 1 / (T)sums->ranks[r] : 1;
        const T *old = (const T *)e + r * width;
        T       *z = (T *)norm->z + r * width, *to = (T *)m + sums->target[r] * width;

        TYPED(apply_norm)(norm->width, norm->bias, norm->gain, norm->shift, z);
        if (sums->sum == GR_MGN_SUM_UPDATE) TYPED(add_row)(width, weight, z, to);
        else if (sums->sum == GR_MGN_SUM_OLD) TYPED(add_row)(width, weight, old, to);
        if (sums->sum == GR_MGN_SUM_NEW || next != NULL)
            for (int64_t j = 0; j < width; j++) z[j] += old[j];
        if (sums->sum == GR_MGN_SUM_NEW) TYPED(add_row)(width, weight, z, to);
        if (next != NULL) memcpy((T *)next + r * width, z, (uint64_t)width * sizeof *z);
    }
}

static void TYPED(end_edges_back)(int64_t n, int64_t width, const struct gr_mgn_sums *sums, const void *gradient_m,
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

static void TYPED(scatter)(int64_t n, int64_t width, const void *x, const int32_t *to, void *out)
{
    for (int64_t r = 0; r < n; r++) TYPED(add_row)(width, 1, (const T *)x + r * width, (T *)out + to[r] * width);
}

static void TYPED(collect)(int64_t begin, int64_t end, int64_t width, const int32_t *ptr, const int32_t *edge,
                           const void *x, void *out)
{
    for (int64_t v = begin; v < end; v++) {
        T *sum = (T *)out + v * width;

        memset(sum, 0, (uint64_t)width * sizeof *sum);
        for (int64_t k = ptr[v]; k < ptr[v + 1]; k++) TYPED(add_row)(width, 1, (const T *)x + edge[k] * width, sum);
    }
}

static void TYPED(add)(int64_t n, const void *x, void *out)
{
    TYPED(add_row)(n, 1, x, out);
}

static void TYPED(add_copies)(const struct gr_mesh_copies *copies, int64_t begin, int64_t end, int64_t width,
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
#undef TYPED
