/* Repair of a partition from another source: owners in range, no empty part, balance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/loads.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

static int is_part(int32_t owner, int32_t parts)
{
    return owner >= 0 && owner < parts;
}

/* Vertices with an owner stay there; other vertices go to the part with most of their neighbours, or else with the
 * least load. */
static void place_all(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine)
{
    int64_t weight[GR_SHARES];

    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        if (!is_part(mine[row], loads->parts)) mine[row] = -1;
        if (mine[row] < 0) continue;
        gr_partition_slice_weigh(slice, row, weight);
        gr_partition_loads_add(loads, mine[row], weight, 1);
    }
    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        if (mine[row] >= 0) continue;
        gr_partition_slice_weigh(slice, row, weight);
        mine[row] = gr_partition_loads_nearest(loads, slice, row, weight, mine);
        if (mine[row] < 0) mine[row] = gr_partition_loads_least(loads, weight);
        gr_partition_loads_add(loads, mine[row], weight, 1);
    }
}

/* Give each empty part a vertex of a part above the mean. While a part is empty, some part is above the mean, and parts
 * already passed never gain vertices, so one pass is enough. */
static void fill_empty(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine)
{
    const int64_t n_rows = slice->rows->n_rows, mean = n_rows / loads->parts;
    int64_t       weight[GR_SHARES];
    int32_t       empty = 0;

    for (int64_t row = 0; mean > 0 && row < n_rows; row++) {
        while (empty < loads->parts && loads->has[(int64_t)empty * GR_SHARES + GR_SHARE_VERTICES] > 0) empty++;
        if (empty == loads->parts) return;
        GR_ASSERT(is_part(mine[row], loads->parts));
        if (loads->has[(int64_t)mine[row] * GR_SHARES + GR_SHARE_VERTICES] <= mean) continue;
        gr_partition_slice_weigh(slice, row, weight);
        gr_partition_loads_move(loads, weight, &mine[row], empty);
    }
}

int32_t gr_partition_repair(const graft_context *context, const struct gr_slice *slice, int32_t parts, int32_t *mine,
                            int64_t *moved, graft_error *error)
{
    const int64_t   n_rows = slice->rows->n_rows;
    int64_t         total[GR_SHARES], changed = 0;
    int32_t        *was = NULL, rc;
    struct gr_loads loads = { 0 };

    gr_partition_slice_total(slice, total);
    GR_TRY_DONE(GR_NEW(context, was, n_rows, error));
    GR_TRY_DONE(gr_partition_loads_init(context, &loads, total, parts, error));
    memcpy(was, mine, (size_t)n_rows * sizeof *was);
    place_all(&loads, slice, mine);
    fill_empty(&loads, slice, mine);
    gr_partition_loads_relieve(&loads, slice, mine);
    for (int64_t row = 0; row < n_rows; row++) changed += was[row] != mine[row];
    *moved = changed;
done:
    gr_partition_loads_fini(context, &loads);
    gr_free(context, was);
    return rc;
}
