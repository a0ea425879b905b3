/* Rows of a sparse matrix from entries in any order: a stable counting sort by column, then one by row (the transpose),
 * so that the columns of every row come in order, and equal places side by side.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr_build.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

int32_t gr_coo_init(const graft_context *context, struct gr_coo *coo, int64_t count, int weighted, graft_error *error)
{
    int32_t       rc;
    struct gr_coo made = { .count = count };

    GR_TRY(GR_NEW(context, made.row, count, error));
    GR_TRY(GR_NEW(context, made.col, count, error));
    if (weighted) GR_TRY(GR_NEW(context, made.value, count, error));
    *coo = made;
    memset(&made, 0, sizeof made);
done:
    gr_coo_fini(context, &made);
    return rc;
}

void gr_coo_fini(const graft_context *context, struct gr_coo *coo)
{
    gr_free(context, coo->row);
    gr_free(context, coo->col);
    gr_free(context, coo->value);
    memset(coo, 0, sizeof *coo);
}

/* The transpose: a row of `columns` holds the rows that have an entry in this column, in the order they came. */
static int32_t sort_by_column(const graft_context *context, const struct gr_coo *coo, struct gr_csr *columns,
                              graft_error *error)
{
    const graft_csr like = { .size = sizeof like,
                             .index_type = GRAFT_I32,
                             .value_type = coo->value != NULL ? GRAFT_F32 : 0,
                             .values = coo->value };
    int64_t        *next;
    int32_t         rc = gr_csr_init(context, columns, &like, coo->n_cols, coo->n_rows, coo->count, error);

    if (rc < 0) return rc;
    next = columns->row_ptr;
    for (int64_t i = 0; i < coo->count; i++) next[coo->col[i] + 1]++;
    for (int64_t col = 0; col < coo->n_cols; col++) next[col + 1] += next[col];
    for (int64_t i = 0; i < coo->count; i++) {
        const int64_t to = next[coo->col[i]]++;

        ((int32_t *)columns->col_idx)[to] = coo->row[i];
        if (coo->value != NULL) ((float *)columns->values)[to] = coo->value[i];
    }
    memmove(next + 1, next, (size_t)coo->n_cols * sizeof *next); /* the end of one column is the begin of the next */
    next[0] = 0;
    return GRAFT_OK;
}

/* Make one entry of equal ones, which lie side by side. Returns how many went. */
static int64_t merge_equal(struct gr_csr *csr)
{
    const int64_t n_rows = csr->view.n_rows, entries = csr->row_ptr[n_rows];
    int32_t      *col_idx = csr->col_idx;
    float        *values = csr->values;
    int64_t       to = 0, from = 0;

    for (int64_t row = 0; row < n_rows; row++) {
        const int64_t begin = to;

        for (; from < csr->row_ptr[row + 1]; from++) {
            if (to > begin && col_idx[to - 1] == col_idx[from]) {
                if (values != NULL) values[to - 1] += values[from];
                continue;
            }
            if (values != NULL) values[to] = values[from];
            col_idx[to++] = col_idx[from];
        }
        csr->row_ptr[row + 1] = to;
    }
    return entries - to;
}

static int32_t check_sums(const struct gr_csr *csr, const char *name, graft_error *error)
{
    const float *values = csr->values;

    for (int64_t row = 0; values != NULL && row < csr->view.n_rows; row++) {
        for (int64_t i = csr->row_ptr[row]; i < csr->row_ptr[row + 1]; i++) {
            if (isfinite(values[i])) continue;
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "'%s': the values at row %lld, column %lld (from 0 on) add up to more than a float holds",
                           name, (long long)row, (long long)gr_csr_column(&csr->view, i));
        }
    }
    return GRAFT_OK;
}

int32_t gr_csr_build(const graft_context *context, struct gr_coo *coo, const char *name, struct gr_csr *csr,
                     int64_t *merged, graft_error *error)
{
    int32_t       rc;
    int64_t       gone;
    struct gr_csr columns = { 0 }, made = { 0 };

    GR_TRY(sort_by_column(context, coo, &columns, error));
    gr_coo_fini(context, coo);
    GR_TRY(gr_csr_transpose(context, &columns.view, &made, error));
    gone = merge_equal(&made);
    GR_TRY(check_sums(&made, name, error));
    *merged = gone;
    *csr = made;
    memset(&made, 0, sizeof made);
done:
    gr_csr_fini(context, &columns);
    gr_csr_fini(context, &made);
    gr_coo_fini(context, coo);
    return rc;
}
