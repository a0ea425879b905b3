/* Replaces arrays of a data set by new arrays of the host, which are checked, sent to the owners of their rows, and put
 * into the order of the vertices. The arrays in use are replaced when nothing can fail any more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"
#include "graph/csr.h"

#include <string.h>

enum {
    ALL_TARGETS = GRAFT_UPDATE_LABELS | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT,
    ALL = GRAFT_UPDATE_FEATURES | ALL_TARGETS | GRAFT_UPDATE_EDGE_VALUES | GRAFT_UPDATE_EDGE_FEATURES
};

static int32_t check_sparse(const struct gr_dataset *d, struct gr_new_data *u, graft_error *error)
{
    const graft_csr *x = &u->sparse;

    if (u->given.sparse_features == NULL && gr_dataset_host_rows(d) == 0) return GRAFT_OK;
    if (u->given.sparse_features == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "sparse features are to be replaced, and are null");
    GR_TRY(gr_struct_read(&u->sparse, sizeof u->sparse, u->given.sparse_features, "dataset.sparse_features", error));
    if (x->n_rows != gr_dataset_host_rows(d) || x->n_cols != d->given.n_features)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "sparse features are %lld x %lld; the trainer was created with %lld x %lld",
                       (long long)x->n_rows, (long long)x->n_cols, (long long)gr_dataset_host_rows(d),
                       (long long)d->given.n_features);
    u->lent_sparse = u->sparse;
    GR_TRY(gr_csr_widen(d->context, &u->sparse, "sparse_features", &u->row_ptr, error));
    return gr_csr_check(x, "sparse_features", 0, d->threads, error);
}

static int32_t check_features(const struct gr_dataset *d, struct gr_new_data *u, graft_error *error)
{
    const graft_dataset *data = &u->given;
    const graft_dense   *x = &u->features.x;

    if (d->given.sparse_features != NULL) return check_sparse(d, u, error);
    u->features.x.stride = d->given.n_features;
    if (data->features == NULL && gr_dataset_host_rows(d) == 0) return GRAFT_OK;
    if (data->features == NULL) return gr_fail(error, GRAFT_ERR_ARG, "features are to be replaced, and are null");
    GR_TRY(gr_dataset_view_features(data, &u->features, error));
    if (x->n_rows != gr_dataset_host_rows(d) || x->n_cols != d->given.n_features || x->dtype != d->feature_type)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld of dtype %d; the trainer was created with %lld x %lld of dtype %d",
                       (long long)x->n_rows, (long long)x->n_cols, x->dtype, (long long)gr_dataset_host_rows(d),
                       (long long)d->given.n_features, d->feature_type);
    return gr_dataset_check_features(x, gr_dataset_first(d), d->threads, error);
}

/* Whether target array i is replaced. Class targets and float targets have the same bit of `what`. */
static int is_replaced(const struct gr_dataset *d, const struct gr_new_data *u, int i)
{
    const struct gr_target_array a = gr_dataset_target_array(&u->targets, i);

    return (u->what & a.what) != 0 && i != (d->regresses ? GR_TARGET_CLASSES : GR_TARGET_VALUES);
}

static int32_t check_targets(const struct gr_dataset *d, const struct gr_targets *now, struct gr_new_data *u,
                             graft_error *error)
{
    graft_dataset given = u->given;

    if ((u->what & GRAFT_UPDATE_TARGETS) == 0 || !d->regresses) given.float_targets = NULL;
    GR_TRY(gr_dataset_read_targets(d, &given, &u->targets, error));
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) {
        const struct gr_target_array a = gr_dataset_target_array(&u->targets, i);

        if (!is_replaced(d, u, i)) {
            gr_dataset_set_target_array(&u->targets, i, NULL, a.stride);
            continue;
        }
        if (gr_dataset_target_array(now, i).data == NULL)
            return gr_fail(error, GRAFT_ERR_STATE,
                           "this trainer was created without %s%s, or does not use them: they "
                           "cannot be replaced",
                           i == GR_TARGET_SPLIT ? "a " : "", a.name);
        if (a.data == NULL && u->targets.n > 0)
            return gr_fail(error, GRAFT_ERR_ARG, "%s: to be replaced, and null", a.name);
    }
    return gr_dataset_check_targets(&u->targets, gr_dataset_first(d), error);
}

static int32_t check_edge_features(const struct gr_dataset *d, struct gr_new_data *u, graft_error *error)
{
    const int64_t rows = d->over != NULL ? -1 : gr_csr_entries(&d->graph);

    if (d->edge_features.size == 0)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this trainer was created without edge_features, or does not use them: they cannot be replaced");
    if (u->given.edge_features == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "edge_features are to be replaced, and are null");
    GR_TRY(gr_struct_read(&u->edge_features, sizeof u->edge_features, u->given.edge_features, "dataset.edge_features",
                          error));
    GR_TRY(gr_dataset_check_edge_features(&u->edge_features, rows, d->threads, error));
    if (u->edge_features.n_cols != d->edge_features.n_cols)
        return gr_fail(error, GRAFT_ERR_ARG, "edge_features have %lld columns; the trainer was created with %lld",
                       (long long)u->edge_features.n_cols, (long long)d->edge_features.n_cols);
    return GRAFT_OK;
}

int32_t gr_dataset_check_new(const struct gr_dataset *d, const struct gr_targets *now, struct gr_new_data *u,
                             graft_error *error)
{
    if (u->what == 0 || (u->what & ~(uint32_t)ALL) != 0)
        return gr_fail(error, GRAFT_ERR_ARG, "what is 0x%x, expected some of GRAFT_UPDATE_... (0x%x)", u->what, ALL);
    if (u->what & GRAFT_UPDATE_FEATURES) GR_TRY(check_features(d, u, error));
    if (u->what & GRAFT_UPDATE_EDGE_FEATURES) GR_TRY(check_edge_features(d, u, error));
    return check_targets(d, now, u, error);
}

/* Allocate *made, and write the rows of the array to it in the order of the vertices; over ranks, of the owned ones. */
static int32_t arrange(const struct gr_dataset *d, const int64_t *row, const struct gr_target_array *array, void **made,
                       graft_error *error)
{
    const int64_t bytes = array->bytes, stride = d->over != NULL ? bytes : array->stride;
    const char   *from = array->data;
    char         *owned = NULL, *out = NULL;
    int32_t       rc = GR_NEW(d->context, out, d->n * bytes, error);

    if (rc == GRAFT_OK && d->over != NULL && row != NULL) rc = GR_NEW(d->context, owned, d->n * bytes, error);
    GR_TRY_DONE(gr_dataset_agree(d, rc, error));
    if (d->over != NULL)
        GR_TRY_DONE(gr_dataset_send_rows(d, from, array->stride, bytes, owned != NULL ? owned : out, error));
    for (int64_t v = 0; v < d->n && row != NULL; v++)
        memcpy(out + v * bytes, (owned != NULL ? owned : from) + row[v] * stride, (uint64_t)bytes);
    *made = out;
    out = NULL;
done:
    gr_free(d->context, owned);
    gr_free(d->context, out);
    return rc;
}

int32_t gr_dataset_arrange_new(const struct gr_dataset *d, const int64_t *row, struct gr_new_data *u,
                               struct gr_targets *next, graft_error *error)
{
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) {
        const struct gr_target_array a = gr_dataset_target_array(&u->targets, i);

        if (!is_replaced(d, u, i)) continue;
        if (d->over != NULL || row != NULL) GR_TRY(arrange(d, row, &a, &u->made[i], error));
        gr_dataset_set_target_array(next, i, u->made[i] != NULL ? u->made[i] : a.data,
                                    u->made[i] != NULL ? a.bytes : a.stride);
    }
    return GRAFT_OK;
}

void gr_dataset_take_targets(struct gr_dataset *d, const struct gr_new_data *u, struct gr_targets *now)
{
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) {
        const struct gr_target_array a = gr_dataset_target_array(&u->targets, i),
                                     used = gr_dataset_target_array(now, i);

        if (!is_replaced(d, u, i)) continue;
        if (u->made[i] == NULL) gr_dataset_set_target_array(now, i, a.data, a.stride);
        else memcpy((void *)(uintptr_t)used.data, u->made[i], (uint64_t)(d->n * a.bytes));
    }
    gr_dataset_lend_targets(d, u->what, &u->targets);
}

/* Replace scale and zero of features, unless `scale` is NULL. */
static void take_scale(struct gr_dataset *d, const float *scale, const float *zero)
{
    const int64_t width = d->given.n_features;

    if (scale == NULL) return;
    memcpy(d->feature_scale, scale, (uint64_t)width * sizeof *scale);
    memcpy(d->feature_scale + width, zero, (uint64_t)width * sizeof *zero);
}

int32_t gr_dataset_prepare_new(struct gr_dataset *d, int copied, struct gr_new_data *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (d->over == NULL || (u->what & GRAFT_UPDATE_FEATURES) == 0 || d->given.features == NULL) return GRAFT_OK;
    if (d->features.x.dtype == GRAFT_U8) GR_TRY(gr_dataset_share_scale(d, &u->features, &u->scale, error));
    if (copied) rc = gr_dataset_new_features(d, &u->owned, error);
    return gr_dataset_agree(d, rc, error);
}

int32_t gr_dataset_take_features(struct gr_dataset *d, struct gr_new_data *u, graft_error *error)
{
    if (d->over != NULL) {
        void *const owned = u->owned != NULL ? u->owned : d->owned;

        GR_TRY(gr_dataset_send_features(d, &u->features.x, owned, error));
        if (u->scale != NULL) take_scale(d, u->scale, u->scale + d->given.n_features);
        d->features.x.data = owned;
    } else {
        take_scale(d, u->features.scale, u->features.zero);
        d->features.x = u->features.x;
    }
    gr_dataset_lend_features(d, &u->features.x);
    return GRAFT_OK;
}

void gr_dataset_take_sparse(struct gr_dataset *d, struct gr_new_data *u)
{
    int64_t *const before = d->row_ptr[1];

    gr_dataset_lend_sparse(d, &u->lent_sparse);
    if (d->over != NULL) return;
    d->row_ptr[1] = u->row_ptr;
    u->row_ptr = before;
    gr_budget_charge(d->budget, GR_USE_FEATURES, gr_memory_bytes(d->row_ptr[1]) - gr_memory_bytes(before));
}

void gr_dataset_new_fini(struct gr_dataset *d, struct gr_new_data *u)
{
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) gr_free(d->context, u->made[i]);
    gr_free(d->context, u->scale);
    if (u->owned != NULL) gr_dataset_drop_features(d, &u->owned);
    gr_free(d->context, u->row_ptr);
}
