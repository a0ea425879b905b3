/* Balance: vertices leave overfull parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "partition/loads.h"

/* The excess of a part relative to the allowed amount, after adding (sign 1) or removing (-1) the vertex, or at present
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

static double gain_of_leaving(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES])
{
    return excess_of(loads, part, weight, 0) - excess_of(loads, part, weight, -1);
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

/* A vertex may move to a full part if that reduces the total excess: two such moves exchange vertices that are heavy in
 * different quantities. */
int64_t gr_partition_loads_relieve_pass(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine)
{
    int64_t weight[GR_SHARES], moves = 0;

    for (int64_t row = 0; row < slice->rows->n_rows; row++) {
        const int32_t from = mine[row];
        int32_t       to;
        double        gain;

        if (loads->level[from] <= 1 || loads->has[(int64_t)from * GR_SHARES + GR_SHARE_VERTICES] == 1) continue;
        gr_partition_slice_weigh(slice, row, weight);
        gain = gain_of_leaving(loads, from, weight);
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
