/* The measured times of a pass.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"
#include "mgn/inside.h"

int32_t gr_mgn_times_init(struct gr_mgn *g, graft_error *error)
{
    if (!gr_base_options(g->context)->profile) return GRAFT_OK;
    return GR_POOL_NEW(g->context, &g->memory, g->times, 2 * (g->shape->options.layers + 2), error);
}

static void add_times(const struct gr_mgn_times *from, struct gr_mgn_times *sum)
{
    for (int part = 0; part < GR_MGN_ALL; part++) sum->seconds[part] += from->seconds[part];
    sum->bytes_sent += from->bytes_sent;
}

struct gr_mgn_times gr_mgn_times_of(const struct gr_mgn *g, int is_backward, int64_t l)
{
    const int64_t       layers = g->shape->options.layers;
    struct gr_mgn_times times = *gr_mgn_times_at(g, is_backward, l);

    if (l == layers) times.seconds[GR_MGN_ALL] = times.seconds[GR_MGN_EDGES] + times.seconds[GR_MGN_NODES];
    for (int64_t k = 0; k <= layers && l > layers; k++) add_times(gr_mgn_times_at(g, is_backward, k), &times);
    return times;
}
