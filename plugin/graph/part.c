/* Whether a part has the shape that all code above relies on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/part.h"

static int rows_are_valid(const graft_csr *csr)
{
    if (csr->n_rows < 0 || csr->index_type != GRAFT_I32 || csr->row_ptr[0] != 0) return 0;
    for (int64_t i = 0; i < csr->n_rows; i++)
        if (csr->row_ptr[i + 1] < csr->row_ptr[i]) return 0;
    for (int64_t e = 0; e < gr_csr_entries(csr); e++)
        if (gr_csr_column(csr, e) < 0 || gr_csr_column(csr, e) >= csr->n_cols) return 0;
    return 1;
}

static int halo_is_valid(const struct gr_halo *halo, int32_t n_ranks, int32_t rank)
{
    if (halo->start[0] != 0 || halo->start[n_ranks] != halo->count) return 0;
    for (int32_t q = 0; q < n_ranks; q++) {
        const int64_t begin = halo->start[q], end = halo->start[q + 1];

        if (end < begin || end > halo->count || (q == rank && end > begin)) return 0;
        for (int64_t s = begin; s < end; s++)
            if (halo->place[s] < 0 || (s > begin && halo->place[s] <= halo->place[s - 1])) return 0;
    }
    return 1;
}

int gr_part_is_valid(const struct gr_part *part, int32_t n_ranks, int32_t rank)
{
    return halo_is_valid(&part->halo, n_ranks, rank) && rows_are_valid(&part->local) && rows_are_valid(&part->remote) &&
           part->local.n_cols >= part->local.n_rows && part->remote.n_rows == part->local.n_rows &&
           part->remote.n_cols == part->halo.count;
}
