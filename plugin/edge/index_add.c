/* Adds rows by index. A large index is sorted first, stably, so that each row of the result is read and written once,
 * while it is in registers. Source: SuperGCN 2.1 (index_add, sorted and clustered).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/fp.h"
#include "base/limits.h"
#include "edge/edge.h"
#include "edge/edge_loops.h"
#include "edge/rows.h"

/* Count how often the rows begin .. end-1 occur in `index`. Each thread scans the whole index for its own rows, so that
 * no two threads write the same element, and the order of i is kept. */
static void count_places(const graft_index *index, int64_t begin, int64_t end, int64_t *count)
{
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t row = gr_edge_number(index, i);

        if (row >= begin && row < end) count[row]++;
    }
}

static void place_entries(const graft_index *index, int64_t begin, int64_t end, int64_t *next,
                          const struct gr_csr *sorted)
{
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t row = gr_edge_number(index, i);

        if (row < begin || row >= end) continue;
        if (sorted->view.index_type == GRAFT_I64) ((int64_t *)sorted->col_idx)[next[row]++] = i;
        else ((int32_t *)sorted->col_idx)[next[row]++] = (int32_t)i;
    }
}

/* Find the first row that begins at entry `entry` or later. */
static int64_t row_from(const int64_t *begin, int64_t n, int64_t entry)
{
    int64_t low = 0, high = n;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (begin[middle] < entry) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Fill row_ptr and col_idx. row_ptr, shifted by one, first has the counts, then the next free place of each row. */
static void sort_places(const graft_index *index, int threads, const struct gr_csr *sorted)
{
    const int64_t n = sorted->view.n_rows;
    int64_t      *next = sorted->row_ptr + 1, begin = 0;

#pragma omp          parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; t++) count_places(index, n * t / threads, n * (t + 1) / threads, next);
    for (int64_t row = 0; row < n; row++) {
        const int64_t count = next[row];

        next[row] = begin;
        begin += count;
    }
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int64_t t = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t first = row_from(next, n, index->count * t / team);
        const int64_t end = row_from(next, n, index->count * (t + 1) / team);

#pragma omp barrier
        place_entries(index, first, t + 1 < team ? end : n, next, sorted);
    }
}

int32_t gr_edge_sort_index(const graft_context *context, const graft_index *index, int64_t n, int threads,
                           struct gr_csr *sorted, graft_error *error)
{
    const graft_csr like = { .index_type = index->count > INT32_MAX ? GRAFT_I64 : GRAFT_I32 };

    GR_TRY(gr_csr_init(context, sorted, &like, n, index->count, index->count, error));
    if (n > 0) sort_places(index, gr_threads_worth(threads, index->count), sorted);
    GR_ASSERT(gr_csr_is_valid(&sorted->view));
    return GRAFT_OK;
}

static void add_sorted_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct gr_edge_sums *sums = arg;

    gr_edge_loops_for(sums->out->dtype)->sums(sums, row, row_end);
}

static void add_sorted(const struct gr_csr *sorted, const graft_dense *x, const graft_dense *out, int threads)
{
    struct gr_edge_sums sums = { .row_ptr = sorted->row_ptr,
                                 .place = sorted->col_idx,
                                 .place_is_wide = sorted->view.index_type == GRAFT_I64,
                                 .from = x,
                                 .out = out,
                                 .accumulates = 1,
                                 .entries = x->n_rows };

    gr_edge_parallel_rows((struct gr_team){ .threads = threads }, x->n_rows * x->n_cols, &sorted->view, NULL,
                          add_sorted_rows, &sums);
}

/* The rows and columns of `out` that one thread adds to. */
struct add_range {
    int64_t row, row_end, column, column_end;
};

#define ADD_UNSORTED(REAL)                                                                                             \
    for (int64_t i = 0; i < index->count; i++) {                                                                       \
        const int64_t to = gr_edge_number(index, i);                                                                   \
        const REAL   *from = (const REAL *)x->data + i * x->stride;                                                    \
        REAL         *sum = (REAL *)out->data + to * out->stride;                                                      \
                                                                                                                       \
        if (to < part.row || to >= part.row_end) continue;                                                             \
        for (int64_t c = part.column; c < part.column_end; c++) sum[c] += from[c];                                     \
    }

static void add_unsorted(const graft_dense *x, const graft_index *index, const graft_dense *out, struct add_range part)
{
    if (x->dtype == GRAFT_F32) ADD_UNSORTED(float)
    else ADD_UNSORTED(double)
}

/* The beginning of part i of `parts` equal parts of n. */
static int64_t part_begin(int64_t n, int64_t parts, int64_t i)
{
    const int64_t begin = (n + parts - 1) / parts * i;

    return begin < n ? begin : n;
}

static void add_in_parts(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads)
{
    const int64_t width = out->n_cols, rows = out->n_rows;
    int64_t       column_parts = width / GR_ADD_COLUMNS, row_parts;
    struct gr_fp  fp;

    if (column_parts > threads) column_parts = threads;
    if (column_parts < 1) column_parts = 1;
    row_parts = threads / column_parts;
    fp = gr_fp_get();
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int64_t p = 0; p < column_parts * row_parts; p++) {
        const int64_t          i = p / column_parts, j = p % column_parts;
        const struct add_range part = { part_begin(rows, row_parts, i), part_begin(rows, row_parts, i + 1),
                                        part_begin(width, column_parts, j), part_begin(width, column_parts, j + 1) };
        const struct gr_fp     own = gr_fp_swap(fp);

        add_unsorted(x, index, out, part);
        gr_fp_set(own);
    }
}

/* Sorting pays if `out` does not fit the cache of a core, and most of its rows are written. */
static int is_worth_sorting(const graft_index *index, const graft_dense *out)
{
    return out->n_rows * out->n_cols * gr_dtype_bytes(out->dtype) > GR_ADD_SORTED_BYTES &&
           index->count * out->n_cols > GR_ADD_SORTED_ROWS * out->n_rows;
}

void gr_edge_index_add(const graft_context *context, const graft_dense *x, const graft_index *index,
                       const graft_dense *out, int threads)
{
    struct gr_csr sorted = { 0 };
    graft_error   ignored = { .size = sizeof ignored };

    GR_ASSERT(x->n_rows == index->count && x->n_cols == out->n_cols);
    if (out->n_cols == 0) return;
    threads = gr_threads_worth(threads, index->count * out->n_cols);
    if (is_worth_sorting(index, out) &&
        gr_edge_sort_index(context, index, out->n_rows, threads, &sorted, &ignored) == GRAFT_OK)
        add_sorted(&sorted, x, out, threads);
    else add_in_parts(x, index, out, threads);
    gr_csr_fini(context, &sorted);
}
