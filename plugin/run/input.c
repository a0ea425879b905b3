/* Makes the features that the model reads: in the order of the setup and, if an option asks for it, each row divided by
 * its sum. The host's array of dense features is used if possible; sparse features stay sparse or are made dense
 * (sparse.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/input.h"
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/finite.h"
#include "base/parallel.h"
#include "graph/csr.h"
#include "run/pass.h"

#include <math.h>
#include <string.h>

/* Append row v of the host to x, whose entries end at `to`, and add up values in the same column. place[c] is one more
 * than the last index of an entry with column c. \return the new end */
static int64_t copy_row(const graft_csr *from, int64_t v, struct gr_csr *x, int64_t to, int64_t *place)
{
    const int64_t begin = to;
    float *const  values = x->values;

    for (int64_t e = from->row_ptr[v]; e < from->row_ptr[v + 1]; e++) {
        const int64_t column = gr_csr_column(from, e);

        if (place[column] <= begin) {
            ((int32_t *)x->col_idx)[to] = (int32_t)column;
            place[column] = ++to;
        }
        values[place[column] - 1] += from->values != NULL ? ((const float *)from->values)[e] : 1;
    }
    return to;
}

/* Check that sums of values with the same column are finite. `v` is the index that the host gives the row. */
static int32_t check_merged_values(const struct gr_csr *x, int64_t row, int64_t v, graft_error *error)
{
    for (int64_t e = x->row_ptr[row]; e < x->row_ptr[row + 1]; e++) {
        if (isfinite(((const float *)x->values)[e])) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "sparse_features: the values at row %lld, column %lld add up to more than a float holds",
                       (long long)v, (long long)gr_csr_column(&x->view, e));
    }
    return GRAFT_OK;
}

static int32_t fill_from_host(const struct gr_setup *s, struct gr_csr *x, int64_t *place, graft_error *error)
{
    for (int64_t row = 0; row < s->data.n; row++) {
        const int64_t begin = x->row_ptr[row];

        x->row_ptr[row + 1] = copy_row(&s->data.sparse_features, gr_vertex(s->derived.row, row), x, begin, place);
        GR_TRY(check_merged_values(x, row, gr_vertex(s->derived.whole.vertex, row), error));
        if (s->model.config.data.normalize_features)
            gr_dataset_normalize((float *)x->values + begin, x->row_ptr[row + 1] - begin);
    }
    return GRAFT_OK;
}

/* Copy the host's sparse features in the order of the setup, with float values and 32-bit columns, each at most once in
 * a row. */
static int32_t read_host_sparse(struct gr_setup *s, struct gr_csr *x, graft_error *error)
{
    const graft_csr *given = &s->data.sparse_features;
    const float      one = 1;
    const graft_csr  like = { .size = sizeof like, .index_type = GRAFT_I32, .value_type = GRAFT_F32, .values = &one };
    int64_t         *place = NULL, place_bytes, bytes;
    int32_t          rc = GRAFT_OK;

    if (given->values != NULL && given->value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "sparse_features: value_type is %d, expected GRAFT_F32 (1)",
                       given->value_type);
    }
    place_bytes = gr_memory_block_bytes(given->n_cols, sizeof *place);
    bytes = place_bytes + gr_csr_copy_bytes(&like, given->n_rows, gr_csr_entries(given));
    GR_TRY_DONE(gr_budget_borrow(&s->budget, bytes, "features (sparse, in another order)", error));
    rc = GR_NEW(s->context, place, given->n_cols, error);
    if (rc == GRAFT_OK)
        rc = gr_csr_init(s->context, x, &like, given->n_rows, given->n_cols, gr_csr_entries(given), error);
    if (rc == GRAFT_OK) rc = fill_from_host(s, x, place, error);
    GR_ASSERT(rc < 0 || gr_csr_is_valid(&x->view));
    gr_budget_return(&s->budget, rc < 0 ? bytes : place_bytes);
done:
    gr_free(s->context, place);
    if (rc < 0) gr_csr_fini(s->context, x);
    return rc;
}

/* The number of rows of dense features that the model reads. */
static int64_t rows_read(const struct gr_setup *s)
{
    return s->given != NULL && gr_setup_masks_rows(s) ? s->derived.reach[0] : s->data.n;
}

/* Allocate an array of dense features. */
static int32_t new_dense(struct gr_setup *s, float **x, graft_error *error)
{
    const int64_t width = s->model.config.width[0];

    if (s->data.n > 0 && width > INT64_MAX / s->data.n) {
        return gr_fail(error, GRAFT_ERR_NOMEM, "%lld x %lld features", (long long)s->data.n, (long long)width);
    }
    return GR_BUDGET_NEW(&s->budget, GR_USE_FEATURES, *x, rows_read(s) * width, error);
}

static void fill_dense(const struct gr_setup *s, const graft_csr *sparse, float *x)
{
    const int64_t width = s->model.config.width[0];

    for (int64_t row = 0; row < s->data.n; row++) {
        memset(x + row * width, 0, (uint64_t)width * sizeof *x);
        for (int64_t e = sparse->row_ptr[row]; e < sparse->row_ptr[row + 1]; e++)
            x[row * width + gr_csr_column(sparse, e)] = ((const float *)sparse->values)[e];
    }
}

static void set_input(struct gr_setup *s, const void *x, graft_dtype type, int64_t stride)
{
    s->run.input.x = x;
    s->run.input.type = type;
    s->run.input.stride = stride;
}

static int32_t make_dense(struct gr_setup *s, const graft_csr *sparse, graft_error *error)
{
    float *x = NULL;

    GR_TRY(new_dense(s, &x, error));
    fill_dense(s, sparse, x);
    set_input(s, x, GRAFT_F32, s->model.config.width[0]);
    return GRAFT_OK;
}

void gr_setup_expect_input(struct gr_setup *s, int sparse)
{
    const struct gr_config *config = &s->model.config;

    s->run.input.is_sparse = sparse;
    s->run.input.is_constant = config->data.reuse_input && config->input_dropout == 0 && !sparse;
}

/* Use the host's sparse features, which over ranks stay sparse on all ranks, or on none. */
static int32_t init_from_sparse(struct gr_setup *s, graft_error *error)
{
    struct gr_csr sparse = { 0 };
    int32_t       rc = GRAFT_OK;
    int           stays;

    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, read_host_sparse(s, &sparse, error), error));
    gr_setup_expect_input(s, 0); /* the plan assumed that they stay sparse; this is decided now */
    stays = gr_setup_sparse_is_better(s, &sparse.view);
    GR_TRY_DONE(gr_strategy_any(s->run.strategy, &stays, error));
    gr_setup_expect_input(s, stays);
    rc = stays ? gr_setup_sparse_init(s, &sparse, error) : make_dense(s, &sparse.view, error);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    gr_budget_return(&s->budget, gr_csr_bytes(&sparse));
    gr_csr_fini(s->context, &sparse);
    return rc;
}

/* Check that x has entries in the same rows and columns as the features that stay sparse. */
static int32_t check_same_entries(const struct gr_setup *s, const graft_csr *x, graft_error *error)
{
    const graft_matrix *now = s->run.input.sparse.whole.x;
    const int64_t       entries = gr_csr_entries(x);

    if (now == NULL) return GRAFT_OK;
    if (entries == gr_csr_entries(&now->csr) &&
        memcmp(x->row_ptr, now->csr.row_ptr, (uint64_t)(s->data.n + 1) * sizeof *x->row_ptr) == 0 &&
        memcmp(x->col_idx, now->csr.col_idx, (uint64_t)entries * sizeof(int32_t)) == 0)
        return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "sparse features have %lld entries; expected other values for the %lld ones, in the same rows and "
                   "columns, that create() had",
                   (long long)entries, (long long)gr_csr_entries(&now->csr));
}

/* Replace the values of the features by those of x. */
static void put_sparse(struct gr_setup *s, const graft_csr *x)
{
    struct gr_sparse *sparse = &s->run.input.sparse;

    if (sparse->whole.x == NULL) {
        fill_dense(s, x, (float *)(uintptr_t)s->run.input.x);
        return;
    }
    memcpy(sparse->whole.x->owned[GR_OWNED_VALUES], x->values, (uint64_t)gr_csr_entries(x) * sizeof(float));
    gr_matrix_unprepare(sparse->whole.x);
    for (int i = 0; i < 2; i++) {
        if (sparse->step[i].x == NULL) continue;
        gr_run_fill_sparse_transpose(&s->run, &sparse->step[i]); /* with dropout, each step does this again */
        gr_matrix_unprepare(sparse->step[i].x);
        gr_matrix_unprepare(sparse->step[i].transpose);
    }
}

int32_t gr_setup_sparse_refresh(struct gr_setup *s, const graft_csr *given, graft_error *error)
{
    graft_csr     after = s->data.sparse_features;
    struct gr_csr owned = { 0 }, x = { 0 };
    int32_t       rc = GRAFT_OK;

    if (s->data.over != NULL) GR_TRY_DONE(gr_dataset_send_sparse(&s->data, given, 0, &owned, error));
    s->data.sparse_features = s->data.over != NULL ? owned.view : *given;
    rc = read_host_sparse(s, &x, error);
    if (rc == GRAFT_OK) rc = check_same_entries(s, &x.view, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    put_sparse(s, &x.view);
    if (s->data.over == NULL) after = *given;
done:
    s->data.sparse_features = after;
    gr_budget_return(&s->budget, gr_csr_bytes(&x));
    gr_csr_fini(s->context, &x);
    gr_csr_fini(s->context, &owned);
    return rc;
}

void gr_setup_features_refresh(struct gr_setup *s)
{
    const graft_dense *x = &s->data.features.x;

    if (!gr_setup_copies_features(s)) set_input(s, x->data, x->dtype, x->stride);
    else
        gr_dataset_widen(&s->data.features, s->derived.row, rows_read(s), s->model.config.data.normalize_features,
                         s->run.threads, (float *)(uintptr_t)s->run.input.x);
}

/* Check that rows are finite which create() has not read. */
static int32_t check_taken(const struct gr_setup *s, const int64_t *vertex, int64_t count, const float *x,
                           graft_error *error)
{
    const int64_t width = s->model.config.width[0];
    const int64_t at = gr_setup_reads_rows(s) && !s->data.features_checked ? gr_first_not_finite(x, count * width) : -1;

    if (at < 0 || at == count * width) return GRAFT_OK;
    return gr_dataset_refuse(gr_vertex(s->derived.whole.vertex, vertex[at / width]), at % width, x[at], error);
}

int32_t gr_setup_take_features(const struct gr_setup *s, const struct gr_input *from, const int64_t *vertex,
                               int64_t count, float *to, graft_error *error)
{
    struct gr_features f = s->data.features;

    f.x = gr_dense_view(from->x, from->type, s->data.n, s->model.config.width[0], from->stride);
    gr_dataset_widen(&f, vertex, count, 0, s->run.threads, to);
    return check_taken(s, vertex, count, to, error);
}

static int32_t init_from_dense(struct gr_setup *s, graft_error *error)
{
    float *x = NULL;

    if (gr_setup_copies_features(s)) {
        GR_TRY(new_dense(s, &x, error));
        set_input(s, x, GRAFT_F32, s->model.config.width[0]);
    }
    gr_setup_features_refresh(s);
    if (s->data.over != NULL && x != NULL) gr_dataset_drop_features(&s->data, &s->data.owned);
    return GRAFT_OK;
}

static int32_t init_dropped(struct gr_setup *s, graft_error *error)
{
    if (s->given != NULL || gr_setup_has_batches(s) || s->model.config.input_dropout == 0) return GRAFT_OK;
    if (s->run.input.sparse.whole.x != NULL) return GRAFT_OK;
    return GR_BUDGET_NEW(&s->budget, GR_USE_FEATURES, s->run.input.dropped, s->data.n * s->model.config.width[0],
                         error);
}

int32_t gr_setup_features_init(struct gr_setup *s, graft_error *error)
{
    if (s->data.given.features == NULL) GR_TRY(init_from_sparse(s, error));
    else GR_TRY(gr_strategy_agree(s->run.strategy, init_from_dense(s, error), error));
    return gr_strategy_agree(s->run.strategy, init_dropped(s, error), error);
}
