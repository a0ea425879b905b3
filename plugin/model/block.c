/* Checks of the invariants of blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/block.h"

#include "graph/csr.h"

/* Whether the first n_rows rows of a matrix have only columns below n_cols. */
static int columns_fit(const graft_csr *csr, int64_t n_rows, int64_t n_cols)
{
    if (csr->n_rows < n_rows || csr->row_ptr[0] != 0) return 0;
    for (int64_t row = 0; row < n_rows; row++) {
        if (csr->row_ptr[row] > csr->row_ptr[row + 1]) return 0;
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++)
            if (gr_csr_column(csr, e) < 0 || gr_csr_column(csr, e) >= n_cols) return 0;
    }
    return 1;
}

int gr_model_block_is_valid(const struct gr_block *b)
{
    int has_spare_rows;

    if (b->n_dst < 0 || b->n_src < b->n_dst || b->n_seen < b->n_src) return 0;
    if (b->a == NULL) return b->kind == NULL;
    has_spare_rows = b->a->csr.n_rows > b->n_dst;
    if (has_spare_rows && gr_model_block_has_halo(b)) return 0;
    if (!columns_fit(&b->a->csr, b->n_dst, has_spare_rows ? b->a->csr.n_cols : b->n_seen)) return 0;
    if (b->a_transpose == NULL || b->a_transpose == b->a || has_spare_rows) return 1;
    return b->a_transpose->csr.n_cols == b->n_dst && columns_fit(&b->a_transpose->csr, b->n_src, b->n_dst) &&
           gr_csr_entries(&b->a_transpose->csr) == gr_csr_entries(&b->a->csr);
}
