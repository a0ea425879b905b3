/* Partition by streaming over the vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/loads.h"

/* The first knows nothing of the neighbours behind: on the graph of the Debian archive it alone cuts 1.7 times as many
 * entries. Later ones hardly save more. */
enum { PASSES = 5 };

/* Where the vertex goes, given where the others are; -1 in `mine` for those that are nowhere yet. */
static void deal(struct gr_loads *loads, const struct gr_slice *slice, int64_t row, int32_t *mine)
{
    int64_t weight[GR_SHARES];
    int32_t part;

    gr_slice_weigh(slice, row, weight);
    part = gr_loads_nearest(loads, slice, row, weight, mine);
    if (part < 0) part = gr_loads_least(loads, weight);
    gr_loads_add(loads, part, weight, 1);
    mine[row] = part;
}

int32_t gr_partition_stream(const graft_context *context, const struct gr_slice *slice, int32_t parts, int32_t *mine,
                            graft_error *error)
{
    const int64_t   n_rows = slice->rows->n_rows;
    int64_t         total[GR_SHARES];
    struct gr_loads loads;
    int32_t         rc;

    gr_slice_total(slice, total);
    rc = gr_loads_init(context, &loads, total, parts, error);
    if (rc < 0) return rc;
    for (int64_t row = 0; row < n_rows; row++) mine[row] = -1;
    for (int pass = 0; pass < PASSES; pass++) {
        gr_loads_clear(&loads);
        for (int64_t row = 0; row < n_rows; row++) deal(&loads, slice, row, mine);
    }
    gr_loads_relieve(&loads, slice, mine);
    gr_loads_fini(context, &loads);
    return GRAFT_OK;
}
