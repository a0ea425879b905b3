/* Sparse matrices in CSR form: create, check, transpose, merge, add self loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/team.h"

#include <math.h>
#include <string.h>

static uint64_t index_bytes(const graft_csr *csr)
{
    return (uint64_t)gr_dtype_bytes(csr->index_type);
}

static uint64_t value_bytes(const graft_csr *csr)
{
    return csr->values == NULL ? 0 : (uint64_t)gr_dtype_bytes(csr->value_type);
}

int32_t gr_csr_init(const graft_context *context, struct gr_csr *csr, const graft_csr *like, int64_t n_rows,
                    int64_t n_cols, int64_t entries, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    memset(csr, 0, sizeof *csr);
    csr->view = *like;
    csr->view.n_rows = n_rows;
    csr->view.n_cols = n_cols;
    GR_TRY_DONE(GR_NEW(context, csr->row_ptr, n_rows < INT64_MAX ? n_rows + 1 : -1, error));
    csr->col_idx = gr_new(context, entries, index_bytes(like), "col_idx", error);
    GR_TRY_DONE(csr->col_idx != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM);
    if (like->values != NULL) {
        csr->values = gr_new(context, entries, value_bytes(like), "values", error);
        GR_TRY_DONE(csr->values != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM);
    }
    csr->view.row_ptr = csr->row_ptr;
    csr->view.col_idx = csr->col_idx;
    csr->view.values = csr->values;
done:
    if (rc < 0) gr_csr_fini(context, csr);
    return rc;
}

void gr_csr_fini(const graft_context *context, struct gr_csr *csr)
{
    gr_free(context, csr->row_ptr);
    gr_free(context, csr->col_idx);
    gr_free(context, csr->values);
    memset(csr, 0, sizeof *csr);
}

int64_t gr_csr_copy_bytes(const graft_csr *like, int64_t n_rows, int64_t entries)
{
    return gr_memory_block_bytes(n_rows + 1, sizeof *like->row_ptr) +
           gr_memory_block_bytes(entries, index_bytes(like)) +
           (like->values != NULL ? gr_memory_block_bytes(entries, value_bytes(like)) : 0);
}

int64_t gr_csr_bytes(const struct gr_csr *csr)
{
    return gr_memory_bytes(csr->row_ptr) + gr_memory_bytes(csr->col_idx) + gr_memory_bytes(csr->values);
}

void gr_csr_put(struct gr_csr *out, int64_t to, int64_t column, const graft_csr *in, int64_t from)
{
    const uint64_t bytes = value_bytes(in);

    if (in->index_type == GRAFT_I32) ((int32_t *)out->col_idx)[to] = (int32_t)column;
    else ((int64_t *)out->col_idx)[to] = column;
    if (bytes > 0)
        memcpy((char *)out->values + (uint64_t)to * bytes, (const char *)in->values + (uint64_t)from * bytes, bytes);
}

int32_t gr_csr_widen(const graft_context *context, graft_csr *csr, const char *name, int64_t **made, graft_error *error)
{
    *made = NULL;
    if (csr->row_ptr_32 == NULL || csr->n_rows < 0) return GRAFT_OK; /* gr_csr_check() finds the error */
    if (csr->row_ptr != NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: row_ptr and row_ptr_32 are both given, expected one of them", name);
    if (GR_NEW(context, *made, csr->n_rows < INT64_MAX ? csr->n_rows + 1 : -1, error) < 0) return GRAFT_ERR_NOMEM;
    for (int64_t row = 0; row <= csr->n_rows; row++) (*made)[row] = csr->row_ptr_32[row];
    csr->row_ptr = *made;
    csr->row_ptr_32 = NULL;
    return GRAFT_OK;
}

int32_t gr_csr_check_pointers(const graft_csr *csr, const char *name, int64_t first_row, graft_error *error)
{
    for (int64_t row = 0; row < csr->n_rows; row++) {
        if (csr->row_ptr[row + 1] >= csr->row_ptr[row]) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "%s: row_ptr falls from %lld to %lld at row %lld", name,
                       (long long)csr->row_ptr[row], (long long)csr->row_ptr[row + 1], (long long)(first_row + row));
    }
    return GRAFT_OK;
}

static int value_is_finite(const graft_csr *csr, int64_t entry)
{
    return csr->value_type == GRAFT_F32 ? isfinite(((const float *)csr->values)[entry])
                                        : isfinite(((const double *)csr->values)[entry]);
}

/* Report the first wrong column of a row that has one. */
static int32_t report_column(const graft_csr *csr, const char *name, int64_t row, int64_t first_row,
                             int64_t first_entry, graft_error *error)
{
    int64_t e = csr->row_ptr[row];

    while (gr_csr_column(csr, e) >= 0 && gr_csr_column(csr, e) < csr->n_cols) e++;
    return gr_fail(error, GRAFT_ERR_FORMAT, "%s: row %lld, entry %lld has column %lld, expected 0 to %lld", name,
                   (long long)(first_row + row), (long long)(first_entry + e), (long long)gr_csr_column(csr, e),
                   (long long)csr->n_cols - 1);
}

/* Report the first value of a row that is not finite. */
static int32_t report_value(const graft_csr *csr, const char *name, int64_t row, int64_t first_row, graft_error *error)
{
    int64_t e = csr->row_ptr[row];

    while (value_is_finite(csr, e)) e++;
    return gr_fail(error, GRAFT_ERR_FORMAT, "%s: row %lld, column %lld has a value that is not finite", name,
                   (long long)(first_row + row), (long long)gr_csr_column(csr, e));
}

int32_t gr_csr_check_entries(const graft_csr *csr, const char *name, int64_t first_row, int64_t first_entry,
                             int threads, graft_error *error)
{
    const struct gr_fp fp = gr_fp_get();
    int64_t column = INT64_MAX, value = INT64_MAX; /* the first row with a wrong column, with a wrong value */

    threads = gr_threads_worth(threads, gr_csr_entries(csr));
#pragma omp parallel num_threads(threads) reduction(min : column, value) if (threads > 1)
    {
        const struct gr_fp own = gr_fp_swap(fp);

#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < csr->n_rows; row++) {
            for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
                const int64_t c = gr_csr_column(csr, e);

                if ((c < 0 || c >= csr->n_cols) && row < column) column = row;
                if (csr->values != NULL && !value_is_finite(csr, e) && row < value) value = row;
            }
        }
        gr_fp_set(own);
    }
    if (column < INT64_MAX) return report_column(csr, name, column, first_row, first_entry, error);
    return value < INT64_MAX ? report_value(csr, name, value, first_row, error) : GRAFT_OK;
}

/* Check types, sizes and pointers; read no array beyond row_ptr[0]. */
static int32_t check_csr_shape(const graft_csr *csr, const char *name, graft_error *error)
{
    if (csr->n_rows < 0 || csr->n_cols < 0) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s is %lld x %lld, expected sizes of at least 0", name,
                       (long long)csr->n_rows, (long long)csr->n_cols);
    }
    if (csr->index_type != GRAFT_I32 && csr->index_type != GRAFT_I64) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: index_type is %d, expected GRAFT_I32 (3) or GRAFT_I64 (4)", name,
                       csr->index_type);
    }
    if (csr->values != NULL && csr->value_type != GRAFT_F32 && csr->value_type != GRAFT_F64) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: value_type is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", name,
                       csr->value_type);
    }
    if (csr->row_ptr == NULL) return gr_fail(error, GRAFT_ERR_ARG, "%s: row_ptr and row_ptr_32 are null", name);
    if (csr->row_ptr[0] != 0) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "%s: row_ptr[0] is %lld, expected 0", name, (long long)csr->row_ptr[0]);
    }
    return GRAFT_OK;
}

int32_t gr_csr_check(const graft_csr *csr, const char *name, int32_t trust, int threads, graft_error *error)
{
    GR_TRY(check_csr_shape(csr, name, error));
    if (csr->row_ptr[csr->n_rows] != 0 && csr->col_idx == NULL) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s: col_idx is null, but there are %lld entries", name,
                       (long long)gr_csr_entries(csr));
    }
    if (trust) return GRAFT_OK;
    GR_TRY(gr_csr_check_pointers(csr, name, 0, error));
    return gr_csr_check_entries(csr, name, 0, 0, threads, error);
}

int gr_csr_is_valid(const graft_csr *csr)
{
    if (csr->n_rows < 0 || csr->n_cols < 0 || csr->row_ptr == NULL || csr->row_ptr[0] != 0) return 0;
    if (csr->index_type != GRAFT_I32 && csr->index_type != GRAFT_I64) return 0;
    for (int64_t i = 0; i < csr->n_rows; i++)
        if (csr->row_ptr[i + 1] < csr->row_ptr[i]) return 0;
    if (gr_csr_entries(csr) > 0 && csr->col_idx == NULL) return 0;
    for (int64_t e = 0; e < gr_csr_entries(csr); e++)
        if (gr_csr_column(csr, e) < 0 || gr_csr_column(csr, e) >= csr->n_cols) return 0;
    return 1;
}

int32_t gr_csr_transpose(const graft_context *context, const graft_csr *csr, struct gr_csr *transpose,
                         graft_error *error)
{
    const int64_t entries = gr_csr_entries(csr);
    int64_t      *next;

    if (csr->index_type == GRAFT_I32 && csr->n_rows > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "the transpose of %lld rows needs 64-bit column indices, but the matrix has 32-bit ones",
                       (long long)csr->n_rows);
    }
    GR_TRY(gr_csr_init(context, transpose, csr, csr->n_cols, csr->n_rows, entries, error));

    /* A counting sort by column. row_ptr, shifted by one, first has counts, then the next free place of each row. */
    next = transpose->row_ptr;
    for (int64_t e = 0; e < entries; e++) next[gr_csr_column(csr, e) + 1]++;
    for (int64_t c = 0; c < csr->n_cols; c++) next[c + 1] += next[c];
    memmove(next + 1, next, (uint64_t)csr->n_cols * sizeof *next);
    for (int64_t row = 0; row < csr->n_rows; row++) {
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            gr_csr_put(transpose, next[gr_csr_column(csr, e) + 1]++, row, csr, e);
        }
    }
    next[0] = 0;
    GR_ASSERT(gr_csr_is_valid(&transpose->view));
    return GRAFT_OK;
}

/* Whether a matrix has the entries of `transpose`. next[c] begins as the first entry of row c of the transpose. */
static int matches_transpose(const graft_csr *csr, const graft_csr *transpose, int64_t *next)
{
    for (int64_t row = 0; row < csr->n_rows; row++) {
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const int64_t c = gr_csr_column(csr, e), at = next[c]++;

            if (at >= transpose->row_ptr[c + 1] || gr_csr_column(transpose, at) != row) return 0;
        }
    }
    return 1;
}

/* Copy the values of columns first .. end-1 to the transpose. For floats `bytes` is a compile-time constant. */
static inline void turn_columns(const graft_csr *csr, int64_t *next, int64_t first, int64_t end, char *values,
                                const uint64_t bytes)
{
    const char *from = csr->values;

    for (int64_t e = 0; e < gr_csr_entries(csr); e++) {
        const int64_t c = gr_csr_column(csr, e);

        if (c < first || c >= end) continue;
        memcpy(values + (uint64_t)next[c]++ * bytes, from + (uint64_t)e * bytes, bytes);
    }
}

/* Copy all values to the transpose. Each thread scans all entries, and copies the values of a range of columns. */
static void turn_entries(const graft_csr *csr, int threads, int64_t *next, char *values)
{
    threads = gr_threads_worth(threads, gr_csr_entries(csr));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t first = csr->n_cols * t / threads, end = csr->n_cols * (t + 1) / threads;

        if (csr->value_type == GRAFT_F32) turn_columns(csr, next, first, end, values, sizeof(float));
        else turn_columns(csr, next, first, end, values, value_bytes(csr));
    }
}

int32_t gr_csr_transpose_values(const graft_context *context, const graft_csr *csr, const graft_csr *transpose,
                                int32_t trust, void *values, graft_error *error)
{
    int64_t *next = NULL;
    int32_t  rc = GRAFT_OK;

    if (csr->n_rows != transpose->n_cols || csr->n_cols != transpose->n_rows ||
        gr_csr_entries(csr) != gr_csr_entries(transpose))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "the matrix is %lld x %lld with %lld entries, and no transpose of one of %lld x %lld with %lld",
                       (long long)transpose->n_rows, (long long)transpose->n_cols, (long long)gr_csr_entries(transpose),
                       (long long)csr->n_rows, (long long)csr->n_cols, (long long)gr_csr_entries(csr));
    GR_TRY_DONE(GR_NEW(context, next, transpose->n_rows, error));
    memcpy(next, transpose->row_ptr, (uint64_t)transpose->n_rows * sizeof *next);
    if (!trust && !matches_transpose(csr, transpose, next)) {
        rc = gr_fail(error, GRAFT_ERR_ARG, "the matrix is not the transpose of the other one: entries differ");
        goto done;
    }
    memcpy(next, transpose->row_ptr, (uint64_t)transpose->n_rows * sizeof *next);
    turn_entries(csr, gr_context_threads(context, 0), next, values);
done:
    gr_free(context, next);
    return rc;
}

int32_t gr_csr_is_symmetric(const graft_context *context, const graft_csr *csr, int *symmetric, graft_error *error)
{
    const uint64_t bytes = value_bytes(csr);
    int64_t       *next = NULL;
    int32_t        rc = GRAFT_OK;
    int            same = csr->n_rows == csr->n_cols;

    /* The entries of the transpose come in row order, so the next entry of row c must be at next[c]. */
    GR_TRY_DONE(GR_NEW(context, next, csr->n_rows, error));
    memcpy(next, csr->row_ptr, (uint64_t)csr->n_rows * sizeof *next);
    for (int64_t row = 0; row < csr->n_rows && same; row++) {
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1] && same; e++) {
            const int64_t c = gr_csr_column(csr, e), at = next[c]++;

            same = at < csr->row_ptr[c + 1] && gr_csr_column(csr, at) == row;
            if (same && bytes > 0)
                same = memcmp((const char *)csr->values + (uint64_t)at * bytes,
                              (const char *)csr->values + (uint64_t)e * bytes, bytes) == 0;
        }
    }
    *symmetric = same;
done:
    gr_free(context, next);
    return rc;
}

/* Merge row `row` of two matrices with sorted rows into `out`, each column once; values of `a` win. With out NULL, only
 * count.
 * \return the end of the row */
static int64_t merge_row(const graft_csr *a, const graft_csr *b, int64_t row, struct gr_csr *out, int64_t to)
{
    int64_t i = a->row_ptr[row], j = b->row_ptr[row];

    while (i < a->row_ptr[row + 1] || j < b->row_ptr[row + 1]) {
        const int64_t ca = i < a->row_ptr[row + 1] ? gr_csr_column(a, i) : INT64_MAX;
        const int64_t cb = j < b->row_ptr[row + 1] ? gr_csr_column(b, j) : INT64_MAX;
        const int64_t c = ca < cb ? ca : cb;

        if (out != NULL) gr_csr_put(out, to, c, ca == c ? a : b, ca == c ? i : j);
        to++;
        while (i < a->row_ptr[row + 1] && gr_csr_column(a, i) == c) i++;
        while (j < b->row_ptr[row + 1] && gr_csr_column(b, j) == c) j++;
    }
    return to;
}

int64_t gr_csr_union_entries(const graft_csr *a, const graft_csr *b)
{
    int64_t entries = 0;

    for (int64_t row = 0; row < a->n_rows; row++) entries = merge_row(a, b, row, NULL, entries);
    return entries;
}

int32_t gr_csr_union(const graft_context *context, const graft_csr *a, const graft_csr *b, int64_t entries,
                     struct gr_csr *both, graft_error *error)
{
    int64_t to = 0;

    GR_ASSERT(a->n_rows == b->n_rows && a->n_cols == b->n_cols);
    GR_TRY(gr_csr_init(context, both, a, a->n_rows, a->n_cols, entries, error));
    for (int64_t row = 0; row < a->n_rows; row++) {
        to = merge_row(a, b, row, both, to);
        both->row_ptr[row + 1] = to;
    }
    GR_ASSERT(to == entries && gr_csr_is_valid(&both->view));
    return GRAFT_OK;
}

static int has_loop(const graft_csr *csr, int64_t row)
{
    int found = 0;

    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) found |= gr_csr_column(csr, e) == row;
    return found;
}

int64_t gr_csr_missing_loops(const graft_csr *csr)
{
    int64_t missing = 0;

    for (int64_t row = 0; row < csr->n_rows; row++) missing += !has_loop(csr, row);
    return missing;
}

static double mean_of_row(const graft_csr *csr, const struct gr_loop_value *value, int64_t row)
{
    const graft_csr *parts[] = { csr, value->rest };
    double           sum = 0;
    int64_t          count = 0;

    for (int i = 0; i < 2 && parts[i] != NULL; i++) {
        for (int64_t e = parts[i]->row_ptr[row]; e < parts[i]->row_ptr[row + 1]; e++, count++)
            sum += (double)((const float *)parts[i]->values)[e];
    }
    return count > 0 ? sum / (double)count : 0;
}

static void put_loop(struct gr_csr *out, int64_t to, int64_t vertex, double value)
{
    if (out->view.index_type == GRAFT_I32) ((int32_t *)out->col_idx)[to] = (int32_t)vertex;
    else ((int64_t *)out->col_idx)[to] = vertex;
    if (out->values == NULL) return;
    if (out->view.value_type == GRAFT_I64) ((int64_t *)out->values)[to] = GR_NO_ENTRY;
    else if (out->view.value_type == GRAFT_F32) ((float *)out->values)[to] = (float)value;
    else ((double *)out->values)[to] = value;
}

int32_t gr_csr_add_self_loops(const graft_context *context, const graft_csr *csr, const struct gr_loop_value *value,
                              struct gr_csr *looped, graft_error *error)
{
    const int64_t entries = gr_csr_entries(csr) + gr_csr_missing_loops(csr);
    int64_t       to = 0;

    GR_ASSERT(!value->is_mean || csr->value_type == GRAFT_F32);
    GR_TRY(gr_csr_init(context, looped, csr, csr->n_rows, csr->n_cols, entries, error));
    for (int64_t row = 0; row < csr->n_rows; row++) {
        int          missing = !has_loop(csr, row);
        const double loop = missing && value->is_mean ? mean_of_row(csr, value, row) : 1;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            if (missing && gr_csr_column(csr, e) > row) {
                put_loop(looped, to++, row, loop);
                missing = 0;
            }
            gr_csr_put(looped, to++, gr_csr_column(csr, e), csr, e);
        }
        if (missing) put_loop(looped, to++, row, loop);
        looped->row_ptr[row + 1] = to;
    }
    GR_ASSERT(to == entries && gr_csr_is_valid(&looped->view));
    return GRAFT_OK;
}
