/* Balance: vertices leave overfull parts; and repair of a partition from another source: owners in range, no empty
 * part.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/loads.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* The excess of a part relative to the allowed amount: with the vertex added (sign 1) or removed (-1), or as it is
 * (0). */
static double excess_of(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES], int sign)
{
    double excess = 0;

    for (int k = 0; k < GR_SHARES; k++) {
        const int64_t over = loads->has[(int64_t)part * GR_SHARES + k] + sign * weight[k] - loads->allowed[k];

        if (over > 0) excess += (double)over / (double)loads->allowed[k];
    }
    return excess;
}

static double cost_of_coming(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES])
{
    return excess_of(loads, part, weight, 1) - excess_of(loads, part, weight, 0);
}

static int32_t cheapest_part(const struct gr_loads *loads, int32_t from, const int64_t weight[GR_SHARES])
{
    int32_t best = from;
    double  best_cost = 0;

    GR_ASSERT(from >= 0 && from < loads->parts);
    for (int32_t part = 0; part < loads->parts; part++) {
        const double cost = cost_of_coming(loads, part, weight);

        if (part == from || (best != from && cost >= best_cost)) continue;
        best = part;
        best_cost = cost;
    }
    return best;
}

/* Do one pass over the vertices. A vertex may move to a full part if that reduces the total excess: two such moves
 * exchange vertices that are heavy in different quantities. */
int64_t gr_partition_loads_relieve_pass(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine)
{
    int64_t weight[GR_SHARES], moves = 0;

    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        const int32_t from = mine[row];
        int32_t       to;
        double        gain;

        if (loads->level[from] <= 1 || loads->has[(int64_t)from * GR_SHARES + GR_SHARE_VERTICES] == 1) continue;
        gr_partition_slice_weigh(slice, row, weight);
        gain = excess_of(loads, from, weight, 0) - excess_of(loads, from, weight, -1);
        if (gain <= 0) continue;
        to = gr_partition_loads_nearest(loads, slice, row, weight, mine);
        if (to < 0 || to == from) to = cheapest_part(loads, from, weight);
        if (to == from || cost_of_coming(loads, to, weight) >= gain) continue;
        gr_partition_loads_move(loads, weight, &mine[row], to);
        moves++;
    }
    return moves;
}

void gr_partition_loads_relieve(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine)
{
    for (int pass = 0; pass < GR_RELIEVE_PASSES && gr_partition_loads_relieve_pass(loads, slice, mine) > 0; pass++)
        continue;
}

static int is_part(int32_t owner, int32_t parts)
{
    return owner >= 0 && owner < parts;
}

/* Assign the vertices without a valid owner to the part with most of their neighbours, or else with the least load, and
 * compute the loads. */
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
