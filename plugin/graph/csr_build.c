/* Builds a CSR matrix from entries in any order: a stable counting sort by row, then a sort of each row by column, then
 * entries at equal places are merged. No array is as long as the matrix is wide.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr_build.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

int32_t gr_csr_coo_init(const graft_context *context, struct gr_coo *coo, int64_t count, int weighted,
                        graft_error *error)
{
    int32_t       rc;
    struct gr_coo made = { .count = count };

    GR_TRY_DONE(GR_NEW(context, made.row, count, error));
    GR_TRY_DONE(GR_NEW(context, made.col, count, error));
    if (weighted) GR_TRY_DONE(GR_NEW(context, made.value, count, error));
    *coo = made;
    memset(&made, 0, sizeof made);
done:
    gr_csr_coo_fini(context, &made);
    return rc;
}

void gr_csr_coo_fini(const graft_context *context, struct gr_coo *coo)
{
    gr_free(context, coo->row);
    gr_free(context, coo->col);
    gr_free(context, coo->value);
    gr_free(context, coo->number);
    memset(coo, 0, sizeof *coo);
}

/* Sort by row; entries of a row keep their order. */
static int32_t sort_by_row(const graft_context *context, const struct gr_coo *coo, struct gr_csr *rows,
                           graft_error *error)
{
    const graft_csr like = { .size = sizeof like,
                             .index_type = GRAFT_I32,
                             .value_type = coo->value != NULL ? GRAFT_F32 : 0,
                             .values = coo->value };
    int64_t        *next;

    GR_TRY(gr_csr_init(context, rows, &like, coo->n_rows, coo->n_cols, coo->count, error));
    next = rows->row_ptr;
    for (int64_t i = 0; i < coo->count; i++) next[coo->row[i] + 1]++;
    for (int64_t row = 0; row < coo->n_rows; row++) next[row + 1] += next[row];
    for (int64_t i = 0; i < coo->count; i++) {
        const int64_t to = next[coo->row[i]]++;

        ((int32_t *)rows->col_idx)[to] = coo->col[i];
        if (coo->value != NULL) ((float *)rows->values)[to] = coo->value[i];
    }
    memmove(next + 1, next, (size_t)coo->n_rows * sizeof *next); /* the end of one row is the beginning of the next */
    next[0] = 0;
    return GRAFT_OK;
}

/* The columns of one row, and the values, or NULL. */
struct row_entries {
    int32_t *col;
    float   *value;
};

static inline void move_entry(struct row_entries to, int64_t i, struct row_entries from, int64_t j)
{
    to.col[i] = from.col[j];
    if (from.value != NULL) to.value[i] = from.value[j];
}

static int row_is_sorted(struct row_entries row, int64_t count)
{
    int64_t i = 1;

    while (i < count && row.col[i - 1] <= row.col[i]) i++;
    return i >= count;
}

static void sort_by_insertion(struct row_entries row, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const int32_t col = row.col[i];
        const float   value = row.value != NULL ? row.value[i] : 0;
        int64_t       to = i;

        for (; to > 0 && row.col[to - 1] > col; to--) move_entry(row, to, row, to - 1);
        row.col[to] = col;
        if (row.value != NULL) row.value[to] = value;
    }
}

/* Radix sort by 8 bits of the column at a time, from the lowest. Each pass swaps the row with the spare one. */
static void sort_by_digits(struct row_entries row, int64_t count, int64_t n_cols, struct row_entries spare)
{
    const struct row_entries home = row;

    for (int shift = 0; shift < 32 && (n_cols - 1) >> shift > 0; shift += 8) {
        const struct row_entries from = row;
        int64_t                  next[257] = { 0 };

        for (int64_t i = 0; i < count; i++) next[(from.col[i] >> shift & 255) + 1]++;
        for (int digit = 0; digit < 255; digit++) next[digit + 1] += next[digit];
        for (int64_t i = 0; i < count; i++) move_entry(spare, next[from.col[i] >> shift & 255]++, from, i);
        row = spare;
        spare = from;
    }
    if (row.col == home.col) return;
    memcpy(home.col, row.col, (size_t)count * sizeof *row.col);
    if (row.value != NULL) memcpy(home.value, row.value, (size_t)count * sizeof *row.value);
}

/* Sort each row by column; entries of equal columns keep their order. */
static int32_t sort_rows(const graft_context *context, const struct gr_csr *csr, graft_error *error)
{
    const int64_t     *ptr = csr->row_ptr, n_rows = csr->view.n_rows;
    struct row_entries spare = { 0 };
    int64_t            longest = 0;
    int32_t            rc = GRAFT_OK;

    for (int64_t i = 0; i < n_rows; i++)
        if (ptr[i + 1] - ptr[i] > longest) longest = ptr[i + 1] - ptr[i];
    if (longest > GR_SORT_BY_INSERTION) {
        GR_TRY_DONE(GR_NEW(context, spare.col, longest, error));
        if (csr->values != NULL) GR_TRY_DONE(GR_NEW(context, spare.value, longest, error));
    }
    for (int64_t i = 0; i < n_rows; i++) {
        const struct row_entries row = { (int32_t *)csr->col_idx + ptr[i],
                                         csr->values != NULL ? (float *)csr->values + ptr[i] : NULL };
        const int64_t            count = ptr[i + 1] - ptr[i];

        if (row_is_sorted(row, count)) continue;
        if (count <= GR_SORT_BY_INSERTION) sort_by_insertion(row, count);
        else sort_by_digits(row, count, csr->view.n_cols, spare);
    }
done:
    gr_free(context, spare.col);
    gr_free(context, spare.value);
    return rc;
}

/* Merge adjacent entries of equal columns by adding their values. \return the number of removed entries */
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

static int32_t check_sums(const struct gr_csr *csr, int64_t first_row, const char *name, graft_error *error)
{
    const float *values = csr->values;

    for (int64_t row = 0; values != NULL && row < csr->view.n_rows; row++) {
        for (int64_t i = csr->row_ptr[row]; i < csr->row_ptr[row + 1]; i++) {
            if (isfinite(values[i])) continue;
            return gr_fail(
                error, GRAFT_ERR_FORMAT,
                "'%s': the sum of the values at row %lld, column %lld (both counted from 0) is not a finite float",
                name, (long long)(first_row + row), (long long)gr_csr_column(&csr->view, i));
        }
    }
    return GRAFT_OK;
}

int32_t gr_csr_build(const graft_context *context, struct gr_coo *coo, const char *name, struct gr_csr *csr,
                     int64_t *merged, graft_error *error)
{
    const int64_t first_row = coo->first_row;
    struct gr_csr made = { 0 };
    int64_t       removed;
    int32_t       rc;

    GR_TRY_DONE(sort_by_row(context, coo, &made, error));
    gr_csr_coo_fini(context, coo);
    GR_TRY_DONE(sort_rows(context, &made, error));
    removed = merge_equal(&made);
    GR_TRY_DONE(check_sums(&made, first_row, name, error));
    GR_ASSERT(removed >= 0 && gr_csr_is_valid(&made.view));
    *merged = removed;
    *csr = made;
    memset(&made, 0, sizeof made);
done:
    gr_csr_fini(context, &made);
    gr_csr_coo_fini(context, coo);
    return rc;
}
