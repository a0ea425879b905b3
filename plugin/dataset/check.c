/* Checks of the values of the host's arrays: labels, targets, split, and features of vertices and edges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/team.h"
#include "dataset/dataset.h"
#include "kernel/kernel.h"

#include <math.h>

int32_t gr_dataset_check_targets(const struct gr_targets *d, int64_t first, graft_error *error)
{
    for (int64_t v = 0; v < d->n && d->labels != NULL; v++) {
        if (d->labels[v] >= -1 && d->labels[v] < d->n_classes) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has label %d, expected -1 to %lld", (long long)(first + v),
                       d->labels[v], (long long)d->n_classes - 1);
    }
    for (int64_t i = 0; i < d->n * d->n_classes && d->targets != NULL; i++) {
        if (d->targets[i] <= 1) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has target %d for class %lld, expected 0 or 1",
                       (long long)(first + i / d->n_classes), d->targets[i], (long long)(i % d->n_classes));
    }
    for (int64_t i = 0; i < d->n * d->n_classes && d->values != NULL; i++) {
        if (!isinf(d->values[i / d->n_classes * d->stride + i % d->n_classes])) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "float_targets: row %lld, column %lld is infinite, expected a finite value, or NaN if it is not "
                       "known",
                       (long long)(first + i / d->n_classes), (long long)(i % d->n_classes));
    }
    for (int64_t v = 0; v < d->n && d->split != NULL; v++) {
        if (d->split[v] <= GRAFT_SPLIT_TEST) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has split %d, expected 0 to 3", (long long)(first + v),
                       d->split[v]);
    }
    return GRAFT_OK;
}

/* Find the first row in [begin, end) with a NaN or an infinity; n_rows: there is none. Contiguous rows are checked in
 * one loop. */
static int64_t find_row_not_finite(const graft_dense *f, int64_t begin, int64_t end)
{
    const int64_t span = f->stride == f->n_cols ? end - begin : 1;

    for (int64_t row = begin; row < end; row += span) {
        const int64_t count = span * f->n_cols, at = gr_dataset_first_not_finite(f, row * f->stride, count);

        if (at < count) return row + at / f->n_cols;
    }
    return f->n_rows;
}

/* Find the first row with a NaN or an infinity; n_rows: there is none. */
static int64_t find_bad_row(const graft_dense *f, int threads)
{
    const struct gr_fp fp = gr_fp_get();
    int64_t            bad = f->n_rows;

    threads = gr_threads_worth(threads, f->n_rows * f->n_cols);
#pragma omp parallel for num_threads(threads) reduction(min : bad) if (threads > 1)
    for (int64_t begin = 0; begin < f->n_rows; begin += GR_CHUNK_ROWS) {
        const int64_t      end = begin + GR_CHUNK_ROWS < f->n_rows ? begin + GR_CHUNK_ROWS : f->n_rows;
        const struct gr_fp own = gr_fp_swap(fp);
        const int64_t      at = find_row_not_finite(f, begin, end);

        gr_fp_set(own);
        if (at < bad) bad = at;
    }
    return bad;
}

int32_t gr_dataset_check_edge_features(const graft_dense *f, int64_t rows, int threads, graft_error *error)
{
    int64_t bad;

    GR_TRY(gr_kernel_dense_check(f, "edge_features", error));
    if (f->dtype != GRAFT_F32 || f->n_cols < 1 || f->n_cols > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "edge_features are %lld x %lld of dtype %d, expected a column at least, of GRAFT_F32 (1)",
                       (long long)f->n_rows, (long long)f->n_cols, f->dtype);
    if (rows >= 0 && f->n_rows != rows)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "edge_features have %lld rows, but the graph has %lld edges; expected a row for each",
                       (long long)f->n_rows, (long long)rows);
    bad = find_bad_row(f, threads);
    if (bad == f->n_rows) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "edge_features: row %lld has a value that is not finite", (long long)bad);
}

int32_t gr_dataset_check_features(const graft_dense *f, int64_t first, int threads, graft_error *error)
{
    const int64_t bad = find_bad_row(f, threads);
    int64_t       column;

    if (bad == f->n_rows) return GRAFT_OK;
    column = gr_dataset_first_not_finite(f, bad * f->stride, f->n_cols);
    return gr_dataset_refuse(first + bad, column, gr_dataset_element(f, bad * f->stride + column), error);
}
