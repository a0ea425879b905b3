/* Reports that memory.limit is too small over ranks, with advice on what would fit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"
#include "parallel/strategies.h"
#include "parallel/workload.h"

#include "base/text.h"
#include "comm/collective.h"

#include <math.h>
#include <stdio.h>

/* Add other options with which a rank needs less memory, if the printed numbers differ. */
static void advise_options(const struct gr_strategy_ops *ops, const struct gr_rank_bytes *bytes, int variant,
                           struct gr_text *text)
{
    const double shown = 0.05e6;

    for (int differs = ops->variants != NULL; differs >= 0; differs--) {
        const int     of = differs ? !variant : variant;
        const double *most = bytes->most[of];

        if (differs && most[0] > bytes->most[variant][0] - shown) continue;
        if (differs) gr_text_add(text, "; with %s %.1f MB", ops->variants[of], most[0] * 1e-6);
        if (most[1] > most[0] - shown) continue;
        gr_text_add(text, "; with %s%srecompute=yes %.1f MB", differs ? ops->variants[of] : "", differs ? " and " : "",
                    most[1] * 1e-6);
    }
}

enum { FEATURE, PARTITION_LEAST, PARTITION_MOST, ESTIMATES };

/* Estimate the bytes that other modes would need, from their largest messages and copies of the graph: parallel=feature
 * with feature.graph=stream; and parallel=partition, at least (no halo) and at most (the halo of the current owners,
 * who were not chosen for a small halo). Values are negative, so that a minimum over ranks gives the largest. */
static void estimate_modes(const struct gr_ranks *r, int64_t *bytes)
{
    const struct gr_part     *part = r->graph.part;
    const struct gr_messages *messages = &r->plans.whole->messages;
    const int64_t             n = part->local.n_rows, widest = gr_parallel_plans_widest_sum(r), own[] = { n, n },
                  halo[] = { part->halo.count, part->halo.count };
    const double row = sizeof(float) * (double)widest;
    const double entries = (double)(gr_csr_entries(&part->local) + gr_csr_entries(&part->remote));
    const double edges = 4 * ((double)n + (part->local.values != NULL ? 2 : 1) * entries);
    const double own_messages = (double)gr_halo_messages_need(messages, own, widest, GRAFT_F32);
    const double halo_messages = (double)gr_halo_messages_need(messages, halo, widest, GRAFT_F32);
    const double rest = gr_budget_planned(r->wish.budget) - (double)(r->charged_messages + r->charged_graph);
    double       steps = 0; /* sum of rows of layers with own plans, as shares of all rows */

    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan != NULL && n > 0) steps += (double)r->graph.reach[l] / (double)n;
    bytes[FEATURE] =
        -(int64_t)(rest + (4 + steps) * edges + (3 + 1.0 / r->comm->n_ranks) * row * (double)n + own_messages);
    bytes[PARTITION_LEAST] = -(int64_t)(rest + (1 + steps) * edges);
    bytes[PARTITION_MOST] =
        -(int64_t)(rest + (1 + steps) * (edges + 2 * row * (double)part->halo.count + halo_messages));
}

/* Add other modes that may need less memory, unless only parallel=partition is possible. Collective. */
static int32_t advise_modes(const struct gr_ranks *r, double least, struct gr_text *text, graft_error *error)
{
    const double limit = ceil(least * 1e-6);
    int64_t      bytes[ESTIMATES];
    double       mb[ESTIMATES];

    if (r->plans.whole == NULL || !r->wish.trains || gr_parallel_workload_of(r->context).shares_rows != NULL)
        return GRAFT_OK;
    estimate_modes(r, bytes);
    GR_TRY(gr_comm_min(r->comm, bytes, ESTIMATES, error));
    for (int i = 0; i < ESTIMATES; i++) mb[i] = round(-(double)bytes[i] * 1e-6);
    if (r->base.ops != &gr_feature_ops && mb[FEATURE] < limit)
        gr_text_add(text, "; with parallel=feature and feature.graph=stream about %.0f MB", mb[FEATURE]);
    if (r->base.ops != &gr_partition_ops && mb[PARTITION_LEAST] < limit)
        gr_text_add(text, "; with parallel=partition about %.0f to %.0f MB, according to its halo", mb[PARTITION_LEAST],
                    mb[PARTITION_MOST]);
    return GRAFT_OK;
}

int32_t gr_parallel_refuse_limit(const struct gr_strategy *strategy, const struct gr_rank_bytes *bytes, int variant,
                                 graft_error *error)
{
    const struct gr_ranks *r = (const struct gr_ranks *)strategy;
    const char            *name = strategy->ops->name;
    const double           least = bytes->most[variant][0];
    const int              is_auto = r->wish.over->division.compares;
    char                   mode[64] = "", words[320] = "";
    struct gr_text         advice = { words, sizeof words };

    /* The advice names the chosen mode, because with more memory auto might choose another one, which needs even
     * more. */
    if (is_auto && strategy->ops == &gr_grid_ops)
        snprintf(mode, sizeof mode, "parallel=grid:%d and ", r->wish.over->columns);
    else if (is_auto) snprintf(mode, sizeof mode, "parallel=%s and ", name);
    advise_options(strategy->ops, bytes, variant, &advice);
    GR_TRY(advise_modes(r, least, &advice, error));
    return gr_fail(
        error, GRAFT_ERR_NOMEM,
        "with parallel=%s%s a rank needs %.1f MB at least%s, more than one of them may use; expected option%s "
        "%smemory.limit=%.0f or more%s",
        name, is_auto ? ", which auto has chosen," : "", least * 1e-6,
        r->wish.has_batches ? " beside the arrays of batches" : "", mode[0] != '\0' ? "s" : "", mode,
        ceil(least * 1e-6), words);
}
