/* The memory that a rank needs at least, and advice if this is more than the limit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "dgraph/options.h"
#include "parallel/workload.h"
#include "run/memory.h"
#include "run/ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t gr_ranks_label_columns(const struct gr_setup *s, int32_t l)
{
    return l == 0 && gr_propagates(&s->run) ? s->run.targets.n_classes : 0;
}

void gr_ranks_find_widths(struct gr_setup *s)
{
    struct gr_partition *r = &s->partition;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers && r->plan != NULL; l++) {
        const int64_t labels = gr_partition_slice(r, gr_ranks_label_columns(s, l));

        r->columns_of[l] = gr_partition_slice(r, gr_summed_columns(&s->run.layers[l]));
        r->widest[l] = r->columns_of[l] > labels ? r->columns_of[l] : labels;
    }
}

int64_t gr_ranks_widest(const struct gr_setup *s, const graft_plan *plan)
{
    const struct gr_partition *r = &s->partition;
    int64_t                    widest = 0;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++)
        if ((plan == r->plan || plan == r->step_plan[l]) && r->widest[l] > widest) widest = r->widest[l];
    return widest;
}

/* All columns of the widest sum. */
static int64_t widest_sum(const struct gr_setup *s)
{
    int64_t widest = gr_propagates(&s->run) ? s->run.targets.n_classes : 0;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++)
        if (gr_summed_columns(&s->run.layers[l]) > widest) widest = gr_summed_columns(&s->run.layers[l]);
    return widest;
}

/* Bytes of the slices and messages of shared columns. */
static double transpose_bytes(const struct gr_setup *s)
{
    const struct gr_partition *p = &s->partition;
    double                     more;

    if (p->columns == 1) return 0;
    more =
        (double)(gr_transpose_need(&p->shared->transpose, widest_sum(s)) - gr_transpose_bytes(&p->shared->transpose));
    return more > 0 ? more : 0;
}

/* Bytes of messages that are not allocated yet. Buffers of a plan are as wide as the widest of its layers. */
static double message_bytes(const struct gr_setup *s)
{
    const struct gr_partition *p = &s->partition;
    double                     bytes;

    if (p->plan == NULL) return 0;
    bytes = gr_partition_need(p->plan, -1, gr_ranks_widest(s, p->plan)) + transpose_bytes(s);
    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers && s->given == NULL; l++) {
        const graft_plan *plan = p->step_plan[l];
        const int         is_new = plan != p->plan && (l == 0 || plan != p->step_plan[l - 1]);

        if (is_new) bytes += gr_partition_need(plan, -1, gr_ranks_widest(s, plan));
        bytes += (double)gr_halo_layers_need(&plan->layers, l, p->columns_of[l], GRAFT_F32);
    }
    return bytes;
}

/* Bytes of all uses that are not in the plan of the budget. The arrays of batches are temporary. */
static double bytes_beside_plan(const struct gr_setup *s, int streams)
{
    const struct gr_partition *p = &s->partition;
    double                     bytes = gr_spans_need(s) + (gr_setup_has_batches(s) ? 0 : message_bytes(s));

    if (p->shared == NULL) return bytes;
    bytes += (double)(gr_blocks_need(&p->shared->blocks, streams) - gr_blocks_bytes(&p->shared->blocks));
    if (s->given == NULL)
        bytes += (double)gr_transpose_layers_need(&p->shared->transpose, &p->shared->transpose.layers);
    for (int32_t l = 0; l < s->model.config.n_layers; l++) bytes += 4 * (double)gr_ranks_winners(s, l);
    return bytes;
}

/* The bytes of a rank, the most of all ranks: with held edges of its group, or (1) received edges; with recompute as
 * set, or (1) yes. */
struct rank_bytes {
    double most[2][2];
    int    fits[2]; /* with recompute as set */
};

/* Collective. */
static int32_t find_bytes(struct gr_setup *s, struct rank_bytes *bytes, graft_error *error)
{
    int64_t values[6];
    int32_t rc = GRAFT_OK;

    for (int recompute = 1; recompute >= 0; recompute--) { /* as set at last, because the budget keeps the plan */
        const double planned = gr_setup_planned(s, recompute || s->model.config.recompute);

        for (int streams = 0; streams < 2; streams++)
            values[2 * streams + recompute] =
                -(int64_t)ceil(fmax(planned + bytes_beside_plan(s, streams), s->deferral.most));
    }
    for (int streams = 0; streams < 2; streams++) values[4 + streams] = -values[2 * streams] <= s->budget.limit;
    GR_TRY(gr_comm_min(s->data.over->comm, values, 6, error));
    for (int i = 0; i < 4; i++) bytes->most[i / 2][i % 2] = -(double)values[i];
    for (int i = 0; i < 2; i++) bytes->fits[i] = (int)values[4 + i];
done:
    return rc;
}

/* -- refusals ----------------------------------------------------------------------------------------------------- */

/* The value of option 'parallel' for the present sharing. */
static const char *mode_of(const struct gr_partition *p)
{
    return p->columns == 1 ? "partition" : p->columns == p->comm->n_ranks ? "feature" : "grid";
}

/* Add other options with which a rank needs less than with those that are set, in the digits that are shown. */
static void advise_options(const struct rank_bytes *bytes, int streams, struct gr_text *text)
{
    static const char *const graphs[] = { "feature.graph=replicate", "feature.graph=stream" };
    const double             shown = 0.05e6;

    for (int differs = 1; differs >= 0; differs--) {
        const int     received = differs ? !streams : streams;
        const double *most = bytes->most[received];

        if (differs && most[0] > bytes->most[streams][0] - shown) continue;
        if (differs) gr_text_add(text, "; with %s %.1f MB", graphs[received], most[0] * 1e-6);
        if (most[1] > most[0] - shown) continue;
        gr_text_add(text, "; with %s%srecompute=yes %.1f MB", differs ? graphs[received] : "", differs ? " and " : "",
                    most[1] * 1e-6);
    }
}

enum { FEATURE, PARTITION_LEAST, PARTITION_MOST, ESTIMATES };

/* Estimate the bytes in other modes from their largest messages and copies of the graph: with columns that all ranks
 * share and received edges; and for a partition without a halo, and with the halo that the present owners would have,
 * which other modes do not keep small. Negative, for a minimum over ranks. */
static void estimate_modes(const struct gr_setup *s, int64_t *bytes)
{
    const struct gr_partition *p = &s->partition;
    const int64_t              widest = widest_sum(s), own[] = { s->data.n, s->data.n },
                  halo[] = { p->part->halo.count, p->part->halo.count };
    const double row = sizeof(float) * (double)widest;
    const double entries = (double)(gr_csr_entries(&p->part->local) + gr_csr_entries(&p->part->remote));
    const double edges = 4 * ((double)s->data.n + (p->part->local.values != NULL ? 2 : 1) * entries);
    const double own_messages = (double)gr_messages_need(&p->plan->messages, own, widest, GRAFT_F32);
    const double halo_messages = (double)gr_messages_need(&p->plan->messages, halo, widest, GRAFT_F32);
    const double rest = gr_budget_planned(&s->budget) - (double)(p->charged_messages + p->charged_graph);
    double       steps = 0; /* rows of layers that have a plan of their own, as shares of all rows */

    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        if (p->masked[l].plan != NULL && s->data.n > 0) steps += (double)s->derived.reach[l] / (double)s->data.n;
    bytes[FEATURE] =
        -(int64_t)(rest + (4 + steps) * edges + (3 + 1.0 / p->comm->n_ranks) * row * (double)s->data.n + own_messages);
    bytes[PARTITION_LEAST] = -(int64_t)(rest + (1 + steps) * edges);
    bytes[PARTITION_MOST] =
        -(int64_t)(rest + (1 + steps) * (edges + 2 * row * (double)p->part->halo.count + halo_messages));
}

/* Add other modes that may need less, unless only a partition is possible. Collective. */
static int32_t advise_modes(const struct gr_setup *s, double least, struct gr_text *text, graft_error *error)
{
    const struct gr_partition *p = &s->partition;
    const double               limit = ceil(least * 1e-6);
    int64_t                    bytes[ESTIMATES];
    double                     mb[ESTIMATES];
    int32_t                    rc = GRAFT_OK;

    if (p->plan == NULL || s->given != NULL || gr_workload_of(s->context).shares_rows != NULL) return GRAFT_OK;
    estimate_modes(s, bytes);
    GR_TRY(gr_comm_min(p->comm, bytes, ESTIMATES, error));
    for (int i = 0; i < ESTIMATES; i++) mb[i] = round(-(double)bytes[i] * 1e-6);
    if (p->columns < p->comm->n_ranks && mb[FEATURE] < limit)
        gr_text_add(text, "; with parallel=feature and feature.graph=stream about %.0f MB", mb[FEATURE]);
    if (p->columns > 1 && mb[PARTITION_LEAST] < limit)
        gr_text_add(text, "; with parallel=partition about %.0f to %.0f MB, according to its halo", mb[PARTITION_LEAST],
                    mb[PARTITION_MOST]);
done:
    return rc;
}

/* The error is the same on all ranks. */
static int32_t refuse_limit(const struct gr_setup *s, const struct rank_bytes *bytes, int streams, graft_error *error)
{
    const struct gr_partition *p = &s->partition;
    const double               least = bytes->most[streams][0];
    char                       mode[64] = "", words[320] = "";
    struct gr_text             advice = { words, sizeof words };
    int32_t                    rc = GRAFT_OK;

    /* With more memory auto may choose another mode, which needs more. */
    if (s->data.over->division.compares && strcmp(mode_of(p), "grid") == 0)
        snprintf(mode, sizeof mode, "parallel=grid, parallel.columns=%d and ", p->columns);
    else if (s->data.over->division.compares) snprintf(mode, sizeof mode, "parallel=%s and ", mode_of(p));
    advise_options(bytes, streams, &advice);
    GR_TRY(advise_modes(s, least, &advice, error));
    rc = gr_fail(error, GRAFT_ERR_NOMEM,
                 "with parallel=%s%s a rank needs %.1f MB at least%s, more than one of them may use; expected option%s "
                 "%smemory.limit=%.0f or more%s",
                 mode_of(p), s->data.over->division.compares ? ", which auto has chosen," : "", least * 1e-6,
                 gr_setup_has_batches(s) ? " beside the arrays of batches" : "", mode[0] != '\0' ? "s" : "", mode,
                 ceil(least * 1e-6), words);
done:
    return rc;
}

int32_t gr_ranks_check_memory(struct gr_setup *s, int *streams, graft_error *error)
{
    const enum gr_feature_graph option = gr_dgraph_options(s->context)->feature_graph;
    struct rank_bytes           bytes;
    int32_t                     rc = GRAFT_OK;

    if (s->data.over == NULL) return GRAFT_OK;
    (void)gr_setup_planned(s, s->model.config.recompute); /* It chooses the widths of sums. */
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_ranks_stale_init(s, error), error));
    gr_ranks_find_widths(s);
    s->budget.deferral = NULL;
    GR_TRY(find_bytes(s, &bytes, error));
    *streams = option == GR_FEATURE_GRAPH_STREAM ||
               (option == GR_FEATURE_GRAPH_AUTO && !bytes.fits[0] && bytes.most[1][0] < bytes.most[0][0]);
    if (!bytes.fits[*streams]) rc = refuse_limit(s, &bytes, *streams, error);
done:
    return rc;
}
