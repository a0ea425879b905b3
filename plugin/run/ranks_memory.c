/* The memory that a rank needs at least.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/collective.h"
#include "dgraph/options.h"
#include "parallel/strategies.h"
#include "run/memory.h"
#include "run/ranks.h"

#include <math.h>

/* Collective. */
static int32_t find_bytes(struct gr_setup *s, struct gr_rank_bytes *bytes, graft_error *error)
{
    int64_t values[6];

    for (int recompute = 1; recompute >= 0; recompute--) { /* as set at last, because the budget keeps the plan */
        const double planned = gr_setup_planned(s, recompute || s->model.config.recompute) + gr_setup_spans_need(s);

        for (int variant = 0; variant < 2; variant++)
            values[2 * variant + recompute] =
                -(int64_t)ceil(fmax(planned + gr_strategy_need(s->strategy, variant), s->deferral.most));
    }
    for (int variant = 0; variant < 2; variant++) values[4 + variant] = -values[2 * variant] <= s->budget.limit;
    GR_TRY(gr_comm_min(s->data.over->comm, values, 6, error));
    for (int i = 0; i < 4; i++) bytes->most[i / 2][i % 2] = -(double)values[i];
    for (int i = 0; i < 2; i++) bytes->fits[i] = (int)values[4 + i];
    return GRAFT_OK;
}

int32_t gr_setup_check_memory(struct gr_setup *s, int *variant, graft_error *error)
{
    const enum gr_feature_graph option = gr_dgraph_options(s->context)->feature_graph;
    struct gr_rank_bytes        bytes;

    if (s->data.over == NULL) return GRAFT_OK;
    s->budget.deferral = NULL;
    GR_TRY(find_bytes(s, &bytes, error));
    *variant = option == GR_FEATURE_GRAPH_STREAM ||
               (option == GR_FEATURE_GRAPH_AUTO && !bytes.fits[0] && bytes.most[1][0] < bytes.most[0][0]);
    if (!bytes.fits[*variant]) return gr_parallel_refuse_limit(s->strategy, &bytes, *variant, error);
    return GRAFT_OK;
}
