/* Sparse features that stay sparse: dropout of their values, and the values of their transpose.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dropout.h"
#include "edge/rows.h"
#include "graph/csr.h"
#include "model/run.h"

void gr_sparse_fill_transpose(const struct gr_run *run, const struct gr_sparse_part *part)
{
    const float  *from = part->x->csr.values;
    const int64_t entries = gr_csr_entries(&part->x->csr);
    const int     threads = gr_threads_worth(run->threads, entries);

    GR_ASSERT(part->transpose != NULL && part->entry != NULL);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) part->transpose_values[e] = from[part->entry[e]];
}

struct drop {
    const struct gr_run *run;
    uint64_t             key;
    uint32_t             threshold;
};

/* As gr_rows_dropout(), only for the entries. The draws of eight columns are in one block, so with ascending columns a
 * block is made once. */
static void drop_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct drop      *drop = arg;
    const struct gr_sparse *sparse = &drop->run->input.sparse;
    const int64_t *const    vertex = drop->run->layers[0].block->vertex;
    const graft_csr        *csr = &sparse->whole.x->csr;
    const float             scale = (float)gr_dropout_scale(drop->threshold);
    const float            *from = csr->values;

    for (; row < row_end; row++) {
        int64_t  block = -1;
        unsigned kept = 0;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const int64_t column = gr_csr_column(csr, e);

            if (column / 8 != block) {
                block = column / 8;
                kept = gr_dropout_kept(drop->key, gr_vertex(vertex, row), block, drop->threshold);
            }
            sparse->dropped[e] = kept >> column % 8 & 1 ? from[e] * scale : 0;
        }
    }
}

void gr_sparse_dropout(struct gr_run *run, uint64_t key, uint32_t threshold)
{
    const struct gr_sparse *sparse = &run->input.sparse;
    const graft_csr        *csr = &sparse->step[0].x->csr;
    struct drop             drop = { run, key, threshold };

    gr_edge_parallel_rows(gr_run_team(run), 8 * gr_csr_entries(csr), csr, NULL, drop_rows, &drop);
    for (int i = 0; i < 2; i++) {
        const struct gr_sparse_part *part = &sparse->step[i];

        if (part->x == NULL) continue;
        gr_sparse_fill_transpose(run, part);
        gr_matrix_unprepare(part->x);
        gr_matrix_unprepare(part->transpose);
    }
}
