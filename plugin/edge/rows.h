/* Loops over the rows of a sparse matrix, in chunks with about equal numbers of entries. The chunks depend on the
 * matrix only, not on the threads.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "base/parallel.h"
#include "edge/edge.h"

typedef void (*gr_edge_rows_fn)(void *arg, int64_t row, int64_t row_end);

struct gr_edge_rows {
    const graft_csr           *csr;
    const struct gr_edge_some *some;
    gr_edge_rows_fn            body;
    void                      *arg;
};

/** Find the first row with at least `units` entries plus rows before it. Rows count too, so that empty rows are also
 *  divided among chunks. */
static inline int64_t gr_edge_row_at(const graft_csr *csr, int64_t units)
{
    int64_t low = 0, high = csr->n_rows;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (csr->row_ptr[middle] + middle < units) low = middle + 1;
        else high = middle;
    }
    return low;
}

static inline void gr_edge_rows_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_edge_rows *rows = arg;
    const int64_t              after = gr_edge_row_at(rows->csr, end);

    (void)chunk;
    for (int64_t row = gr_edge_row_at(rows->csr, begin), row_end; row < after; row = row_end + 1) {
        for (; row < after && !gr_edge_has(rows->some, row);) row++;
        for (row_end = row; row_end < after && gr_edge_has(rows->some, row_end);) row_end++;
        if (row < row_end) rows->body(rows->arg, row, row_end);
    }
}

/** Call body(arg, row, row_end) for ranges that cover all rows, or the rows of `some`. `operations` is the total cost,
 *  as in gr_threads_worth(). */
static inline void gr_edge_parallel_rows(struct gr_team team, int64_t operations, const graft_csr *csr,
                                         const struct gr_edge_some *some, gr_edge_rows_fn body, void *arg)
{
    struct gr_edge_rows rows = { csr, some, body, arg };

    gr_parallel_chunks(team, operations, gr_csr_entries(csr) + csr->n_rows, GR_EDGE_PIECE, gr_edge_rows_chunk, &rows);
}
