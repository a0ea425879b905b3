/* The features as the model wants them: dense, and each row divided by its sum if that is asked for. The host's own
 * array is used where it will do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

static int32_t check_dense(const graft_trainer *t, graft_error *error)
{
    const graft_dense *f = &t->features;
    int64_t            bad = INT64_MAX;
    const int32_t      rc = gr_dense_check(f, "features", error);

    if (rc < 0) return rc;
    if (f->dtype != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "features have dtype %d, expected GRAFT_F32 (1)", f->dtype);
    }
#pragma omp parallel for num_threads(t->threads) reduction(min : bad) if (t->threads > 1)
    for (int64_t row = 0; row < f->n_rows; row++) {
        for (int64_t j = 0; j < f->n_cols; j++) {
            if (!isfinite(((const float *)f->data)[row * f->stride + j]) && row < bad) bad = row;
        }
    }
    if (bad == INT64_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "features: row %lld holds a value that is not finite", (long long)bad);
}

static int32_t fill_from_sparse(graft_trainer *t, float *x, graft_error *error)
{
    const graft_csr *s = &t->sparse_features;
    int32_t          rc = gr_csr_check(s, "sparse_features", 0, t->threads, error);

    if (rc < 0) return rc;
    if (s->values != NULL && s->value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "sparse_features: value_type is %d, expected GRAFT_F32 (1)",
                       s->value_type);
    }
    for (int64_t row = 0; row < s->n_rows; row++) {
        const int64_t v = gr_vertex(t->vertex, row);

        for (int64_t e = s->row_ptr[v]; e < s->row_ptr[v + 1]; e++) {
            x[row * s->n_cols + gr_csr_column(s, e)] += s->values != NULL ? ((const float *)s->values)[e] : 1;
        }
    }
    return GRAFT_OK;
}

static void normalize(float *x, int64_t n, int64_t width)
{
    for (int64_t row = 0; row < n; row++) {
        double sum = 0;

        for (int64_t j = 0; j < width; j++) sum += x[row * width + j];
        for (int64_t j = 0; j < width && sum != 0; j++) x[row * width + j] = (float)(x[row * width + j] / sum);
    }
}

int32_t gr_model_features_init(graft_trainer *t, graft_error *error)
{
    const int64_t width = t->config.width[0];
    float        *x = NULL;
    int32_t       rc = GRAFT_OK;

    if (t->data.features != NULL) {
        GR_TRY(check_dense(t, error));
        t->x = t->features.data;
        t->x_stride = t->features.stride;
    }
    if (t->data.features == NULL || t->config.normalize_features || t->vertex != NULL) {
        if (t->n > 0 && width > INT64_MAX / t->n) {
            return gr_fail(error, GRAFT_ERR_NOMEM, "%lld x %lld features", (long long)t->n, (long long)width);
        }
        GR_TRY(GR_LEDGER_NEW(t, GR_USE_FEATURES, x, t->n * width, error));
        if (t->data.features == NULL) GR_TRY(fill_from_sparse(t, x, error));
        for (int64_t row = 0; row < t->n && t->data.features != NULL; row++) {
            const int64_t v = gr_vertex(t->vertex, row);

            memcpy(x + row * width, t->x + v * t->x_stride, (uint64_t)width * sizeof *x);
        }
        if (t->config.normalize_features) normalize(x, t->n, width);
        t->x = x;
        t->x_stride = width;
    }
    if (t->config.input_dropout > 0) GR_TRY(GR_LEDGER_NEW(t, GR_USE_FEATURES, t->x_dropped, t->n * width, error));
done:
    return rc;
}
