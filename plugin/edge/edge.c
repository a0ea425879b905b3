/* The edge operators: how threads share each of them. The loops are in loops.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "edge/edge.h"
#include "base/assert.h"
#include "base/limits.h"
#include "edge/rows.h"

#include <math.h>
#include <string.h>

/* An operator on the entries of csr. x has one row for each row of csr, or for each entry. */
struct edge_operands {
    const graft_csr           *csr;
    const int64_t             *entry; /* the row of x for each entry of csr; NULL: entry e has row e */
    const graft_dense         *x, *y, *out;
    const struct gr_edge_some *some;
};

/* The rows and columns of `out` that one thread adds to. */
struct add_range {
    int64_t row, row_end, column, column_end;
};

#define REAL float
#define NAME(name) name##_f32
#define exponential_f32 expf
#include "edge/loops.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#define exponential_f64 exp
#include "edge/loops.h"
#undef REAL
#undef NAME

void gr_edge_gather_rows(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads)
{
    const int single = x->dtype == GRAFT_F32;

    GR_ASSERT(out->n_rows == index->count && out->n_cols == x->n_cols);
    if (x->n_cols == 0) return;
    threads = gr_threads_worth(threads, index->count * x->n_cols);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < index->count; i++) (single ? gather_row_f32 : gather_row_f64)(x, index, out, i);
}

/* The beginning of part i of `parts` equal parts of n. */
static int64_t part_begin(int64_t n, int64_t parts, int64_t i)
{
    const int64_t begin = (n + parts - 1) / parts * i;

    return begin < n ? begin : n;
}

void gr_edge_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads)
{
    const int64_t width = out->n_cols, rows = out->n_rows;
    int64_t       column_parts = width / GR_ADD_COLUMNS, row_parts;

    GR_ASSERT(x->n_rows == index->count && x->n_cols == width);
    if (width == 0) return;
    threads = gr_threads_worth(threads, index->count * width);
    if (column_parts > threads) column_parts = threads;
    if (column_parts < 1) column_parts = 1;
    row_parts = threads / column_parts;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int64_t p = 0; p < column_parts * row_parts; p++) {
        const int64_t          i = p / column_parts, j = p % column_parts;
        const struct add_range part = { part_begin(rows, row_parts, i), part_begin(rows, row_parts, i + 1),
                                        part_begin(width, column_parts, j), part_begin(width, column_parts, j + 1) };

        (x->dtype == GRAFT_F32 ? add_rows_f32 : add_rows_f64)(x, index, out, part);
    }
}

/* Entries begin .. end-1. Entries do not depend on each other, so a chunk may begin inside a row. */
static void sddmm_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct edge_operands *o = arg;
    const int64_t              *row_ptr = o->csr->row_ptr;
    int64_t                     row = 0, after = o->csr->n_rows; /* row_ptr[row] <= begin < row_ptr[after] */

    (void)chunk;
    while (after - row > 1) {
        const int64_t middle = row + (after - row) / 2;

        if (row_ptr[middle] <= begin) row = middle;
        else after = middle;
    }
    for (int64_t e = begin; e < end; e++) {
        while (e >= row_ptr[row + 1]) row++;
        if (!gr_edge_has(o->some, row)) {
            e = row_ptr[row + 1] - 1;
            continue;
        }
        (o->x->dtype == GRAFT_F32 ? entry_dots_f32 : entry_dots_f64)(o, row, e);
    }
}

void gr_edge_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, const graft_dense *out,
                   const struct gr_edge_some *some, struct gr_team team)
{
    struct edge_operands o = { a, NULL, x, y, out, some };
    const int64_t        entries = gr_csr_entries(a);

    gr_parallel_chunks(team, entries * x->n_cols, entries, GR_EDGE_PIECE, sddmm_chunk, &o);
}

/* The cost of an exponential, in operations. */
enum { EXPONENTIAL = 16 };

static void softmax_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_operands *o = arg;

    for (; row < row_end; row++) {
        for (int64_t h = 0; h < o->out->n_cols; h++) (o->x->dtype == GRAFT_F32 ? softmax_f32 : softmax_f64)(o, row, h);
    }
}

void gr_edge_softmax(const graft_csr *a, const graft_dense *s, const graft_dense *p, const struct gr_edge_some *some,
                     struct gr_team team)
{
    struct edge_operands o = { a, NULL, s, NULL, p, some };

    gr_edge_parallel_rows(team, EXPONENTIAL * gr_csr_entries(a) * s->n_cols, a, some, softmax_rows, &o);
}

static void softmax_backward_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_operands *o = arg;

    for (; row < row_end; row++) {
        for (int64_t h = 0; h < o->out->n_cols; h++)
            (o->x->dtype == GRAFT_F32 ? softmax_backward_f32 : softmax_backward_f64)(o, row, h);
    }
}

void gr_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, const graft_dense *ds,
                              const struct gr_edge_some *some, struct gr_team team)
{
    struct edge_operands o = { a, NULL, p, dp, ds, some };

    gr_edge_parallel_rows(team, 4 * gr_csr_entries(a) * p->n_cols, a, some, softmax_backward_rows, &o);
}

static void mxm_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_operands *o = arg;

    for (; row < row_end; row++) (o->x->dtype == GRAFT_F32 ? mxm_row_f32 : mxm_row_f64)(o, row);
}

void gr_edge_mxm(const graft_csr *a, const struct gr_edge_map *map, const graft_dense *w, const graft_dense *y,
                 const graft_dense *out, const struct gr_edge_some *some, struct gr_team team)
{
    struct edge_operands o = { a, NULL, w, y, out, some };

    GR_ASSERT(w->n_rows == gr_csr_entries(a) && w->n_cols > 0);
    if (out->n_cols == 0) return;
    if (map != NULL) {
        o.csr = &map->csr.view;
        o.entry = map->entry;
    }
    gr_edge_parallel_rows(team, (gr_csr_entries(o.csr) + o.csr->n_rows) * out->n_cols, o.csr, some, mxm_rows, &o);
}
