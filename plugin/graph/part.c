/* Checks of a part and its halo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/part.h"

int gr_csr_halo_is_valid(const struct gr_halo *halo, int32_t n_ranks, int32_t rank)
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

int gr_csr_part_is_valid(const struct gr_part *part, int32_t n_ranks, int32_t rank)
{
    return gr_csr_halo_is_valid(&part->halo, n_ranks, rank) && gr_csr_is_valid(&part->local) &&
           gr_csr_is_valid(&part->remote) && part->local.index_type == GRAFT_I32 &&
           part->remote.index_type == GRAFT_I32 && part->local.n_cols >= part->local.n_rows &&
           part->remote.n_rows == part->local.n_rows && part->remote.n_cols == part->halo.count;
}
