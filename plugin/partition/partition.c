/* Slices of a graph, and the two methods that do not use neighbours: block and hash.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/partition.h"

#include "base/assert.h"
#include "base/random.h"

void gr_partition_slice_total(const struct gr_slice *slice, int64_t total[GR_SHARES])
{
    total[GR_SHARE_VERTICES] = slice->rows->n_rows;
    total[GR_SHARE_ENTRIES] = gr_csr_entries(slice->rows);
    total[GR_SHARE_TRAINED] = 0;
    for (int64_t row = 0; slice->train_mask != NULL && row < slice->rows->n_rows; row++)
        total[GR_SHARE_TRAINED] += slice->train_mask[row] != 0;
}

uint64_t gr_partition_slice_fingerprint(const struct gr_slice *slice)
{
    uint64_t sum = 0;

    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        const uint64_t key = gr_random_key((uint64_t)(slice->first + row), GR_RANDOM_FINGERPRINT, 0, 0);

        for (int64_t e = slice->rows->row_ptr[row]; e < slice->rows->row_ptr[row + 1]; e++)
            sum += gr_random_key(key, GR_RANDOM_FINGERPRINT, (uint64_t)gr_csr_column(slice->rows, e), 0);
    }
    return sum;
}

/* Assign contiguous ranges of about equal size in vertices and entries together: a vertex goes to part floor(parts *
 * s), where s is the mean of the shares of vertices and of entries before the middle of the vertex. Sums are integers,
 * so s does not depend on how the graph is sliced. Training vertices are not balanced: ranges cannot separate adjacent
 * ones. */
int32_t gr_partition_block(const struct gr_partition_input *input, int32_t *mine, graft_error *error)
{
    static const int64_t   none[GR_SHARES];
    const struct gr_slice *slice = input->slice;
    const int64_t         *before = input->before != NULL ? input->before : none, *total = input->total;
    int64_t                own[GR_SHARES];
    double                 n, entries;

    (void)error;
    gr_partition_slice_total(slice, own);
    if (total == NULL) total = own;
    n = (double)total[GR_SHARE_VERTICES];
    entries = (double)total[GR_SHARE_ENTRIES];
    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        const int64_t *ends = slice->rows->row_ptr + row;
        const double   vertices = ((double)(before[GR_SHARE_VERTICES] + row) + 0.5) / n;
        const int64_t  twice = 2 * before[GR_SHARE_ENTRIES] + ends[0] + ends[1];
        const double   share = entries > 0 ? 0.5 * (vertices + 0.5 * (double)twice / entries) : vertices;
        const int32_t  part = (int32_t)(share * input->parts);
        GR_ASSERT(part >= 0);

        mine[row] = part < input->parts ? part : input->parts - 1;
    }
    return GRAFT_OK;
}

/* Assign by a hash of the vertex. Parts are as balanced as random assignments, and most edges are cut. */
int32_t gr_partition_hash(const struct gr_partition_input *input, int32_t *mine, graft_error *error)
{
    const uint64_t key = gr_random_key(0, GR_RANDOM_PARTITION, 0, 0);
    uint32_t       bits[4];

    (void)error;
    for (int64_t i = 0; i < input->slice->rows->n_rows; i++) {
        gr_random_block(key, (uint64_t)(input->slice->first + i), 0, bits);
        mine[i] = (int32_t)((uint64_t)bits[0] * (uint64_t)input->parts >> 32);
    }
    return GRAFT_OK;
}
