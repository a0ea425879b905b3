/* The edge operators: the division of work among threads. The loops are in edge_loops.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "edge/edge.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/processor.h"
#include "base/sort.h"
#include "edge/edge_loops.h"
#include "edge/rows.h"

#include <string.h>

const struct gr_edge_loops *gr_edge_loops_for(graft_dtype dtype)
{
    return &GR_FOR_ISA(gr_edge, gr_processor_isa())[dtype == GRAFT_F64];
}

void gr_edge_gather_rows(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads)
{
    const int64_t element = gr_dtype_bytes(x->dtype), bytes = x->n_cols * element;

    GR_ASSERT(out->n_rows == index->count && out->n_cols == x->n_cols);
    if (x->n_cols == 0) return;
    threads = gr_threads_worth(threads, index->count * x->n_cols);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < index->count; i++)
        memcpy((char *)out->data + i * out->stride * element,
               (const char *)x->data + gr_edge_number(index, i) * x->stride * element, (size_t)bytes);
}

/* An operator with the loops for its type. */
struct edge_pass {
    const struct gr_edge_loops *loops;
    struct gr_edge_operands     o;
};

struct edge_sums_pass {
    const struct gr_edge_loops *loops;
    struct gr_edge_sums         sums;
};

/* Compute entries begin .. end-1. Entries are independent, so a chunk may begin inside a row. */
static void sddmm_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct edge_pass *pass = arg;
    const int64_t          *row_ptr = pass->o.csr->row_ptr;
    int64_t                 row = gr_sorted_last(row_ptr, pass->o.csr->n_rows, begin);

    for (int64_t e = begin, next; e < end; e = next) {
        while (e >= row_ptr[row + 1]) row++;
        next = row_ptr[row + 1] < end ? row_ptr[row + 1] : end;
        if (gr_edge_has(pass->o.some, row)) pass->loops->dots(&pass->o, row, e, next);
    }
}

void gr_edge_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, const graft_dense *out,
                   const struct gr_edge_some *some, struct gr_team team)
{
    struct edge_pass pass = { gr_edge_loops_for(x->dtype), { a, x, y, out, some } };
    const int64_t    entries = gr_csr_entries(a);

    gr_parallel_rows(team, entries * x->n_cols, entries, GR_EDGE_PIECE, sddmm_chunk, &pass);
}

/* The cost of computing an exponential, in operations. */
enum { EXPONENTIAL = 16 };

static void softmax_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_pass *pass = arg;

    pass->loops->softmax(&pass->o, row, row_end);
}

void gr_edge_softmax(const graft_csr *a, const graft_dense *s, const graft_dense *p, const struct gr_edge_some *some,
                     struct gr_team team)
{
    struct edge_pass pass = { gr_edge_loops_for(s->dtype), { a, s, NULL, p, some } };

    gr_edge_parallel_rows(team, EXPONENTIAL * gr_csr_entries(a) * s->n_cols, a, some, softmax_rows, &pass);
}

static void softmax_backward_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_pass *pass = arg;

    pass->loops->softmax_backward(&pass->o, row, row_end);
}

void gr_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, const graft_dense *ds,
                              const struct gr_edge_some *some, struct gr_team team)
{
    struct edge_pass pass = { gr_edge_loops_for(p->dtype), { a, p, dp, ds, some } };

    gr_edge_parallel_rows(team, 4 * gr_csr_entries(a) * p->n_cols, a, some, softmax_backward_rows, &pass);
}

static void sum_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct edge_sums_pass *pass = arg;

    pass->loops->sums(&pass->sums, row, row_end);
}

void gr_edge_mxm(const graft_csr *a, const struct gr_edge_map *map, const graft_dense *w, const graft_dense *y,
                 const graft_dense *out, const struct gr_edge_some *some, struct gr_team team)
{
    const graft_csr      *csr = map != NULL ? &map->csr.view : a;
    const int64_t        *entry = map != NULL ? map->entry : NULL;
    const int64_t         entries = gr_csr_entries(csr);
    struct edge_sums_pass pass = { gr_edge_loops_for(out->dtype),
                                   { .row_ptr = csr->row_ptr, .out = out, .entries = entries } };

    GR_ASSERT(w->n_rows == gr_csr_entries(a) && w->n_cols > 0);
    if (out->n_cols == 0) return;
    if (y != NULL) {
        pass.sums.from = y;
        pass.sums.place = csr->col_idx;
        pass.sums.place_is_wide = csr->index_type == GRAFT_I64;
        pass.sums.weight = w;
        pass.sums.entry = entry;
    } else { /* sums of the weights themselves */
        pass.sums.from = w;
        pass.sums.place = entry;
        pass.sums.place_is_wide = 1;
    }
    gr_edge_parallel_rows(team, (entries + csr->n_rows) * out->n_cols, csr, some, sum_rows, &pass);
}
