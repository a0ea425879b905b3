/* Prints a plan as a table of ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "spmm/plan.h"

#include <stdio.h>

static void add_flow(graft_plan_info *info, const struct gr_flow *flow)
{
    info->n_cut += flow->n_cut;
    info->halo_rows += flow->in;
    info->halo_rows_sent += flow->out;
    info->halo_rows_post += flow->raw;
    info->halo_rows_if_post += flow->if_post;
    info->halo_rows_if_pre += flow->if_pre;
    info->messages += flow->messages_in;
    info->bytes += flow->bytes;
}

static void explain_layers(graft_plan_info *info, const struct gr_halo_layers *layers)
{
    for (int32_t i = 0; layers->layer != NULL && i < GR_DIRECTIONS * layers->n_layers; i++) {
        const struct gr_halo_layer *layer = &layers->layer[i];

        if (layer->bits.expected_error > info->expected_error) info->expected_error = layer->bits.expected_error;
        if (layer->history.oldest > info->staleness_max) info->staleness_max = layer->history.oldest;
    }
}

/* Return the bytes by which buffers of this rank have grown since the plan was created. */
static int64_t grown_bytes(const graft_plan *plan)
{
    return gr_plan_bytes(plan) - plan->flow[plan->comm->rank].bytes;
}

int32_t gr_plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error)
{
    const int32_t n_ranks = plan->comm->n_ranks;

    if (rank < -1 || rank >= n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 (all) to %d", rank, n_ranks - 1);
    *info = (graft_plan_info){ .size = sizeof *info, .rank = rank };
    for (int32_t p = 0; p < n_ranks; p++)
        if (rank < 0 || rank == p) add_flow(info, &plan->flow[p]);
    if (rank >= 0 && rank != plan->comm->rank) return GRAFT_OK;
    info->bytes += grown_bytes(plan);
    info->passes = plan->host.passes;
    info->bytes_sent = plan->sent.bytes;
    info->bytes_unquantized = plan->sent.raw_bytes;
    info->sampled_rows = plan->sent.sampled_rows;
    info->nmse = plan->sent.nmse;
    info->expected = plan->sent.expected;
    explain_layers(info, &plan->layers);
    gr_halo_messages_add_seconds(&plan->messages, &info->wait_seconds, &info->exchange_seconds);
    gr_halo_layers_add_seconds(&plan->layers, &info->wait_seconds, &info->exchange_seconds);
    if (info->exchange_seconds > 0) info->overlap_fraction = 1 - info->wait_seconds / info->exchange_seconds;
    return GRAFT_OK;
}

/* Add the line of a rank, or with -1 of all ranks. Memory is that of the new plan, because a rank knows only its own
 * growth. */
static void rank_line(const graft_plan *plan, int32_t rank, struct gr_text *text)
{
    graft_error     none = { .size = sizeof none };
    graft_plan_info info, *i = &info;
    char            name[16] = "all";

    gr_plan_info(plan, rank, i, &none);
    if (rank >= 0) snprintf(name, sizeof name, "%d", rank);
    if (rank < 0 || rank == plan->comm->rank) i->bytes -= grown_bytes(plan);
    gr_text_add(text, "%-6s %12lld %12lld %12lld %12lld %12lld %12lld %8lld %10.1f\n", name, (long long)i->n_cut,
                (long long)i->halo_rows, (long long)i->halo_rows_sent, (long long)i->halo_rows_post,
                (long long)i->halo_rows_if_post, (long long)i->halo_rows_if_pre, (long long)i->messages,
                (double)i->bytes / 1e6);
}

/* Add the lines about the rows that the calling rank has sent, and their quantization error. */
static void sent_lines(struct gr_text *text, const graft_plan_info *i)
{
    gr_text_add(text, "%.3f MB of rows sent by this rank in all products", (double)i->bytes_sent * 1e-6);
    if (i->bytes_unquantized > 0)
        gr_text_add(text, ", and %.3f MB raw in addition, in messages with a row that fits no code",
                    (double)i->bytes_unquantized * 1e-6);
    if (i->sampled_rows > 0)
        gr_text_add(text, "; |x - x'|^2 / |x|^2 is %.3g, expected %.3g, mean of %lld sampled rows",
                    i->nmse / (double)i->sampled_rows, i->expected / (double)i->sampled_rows,
                    (long long)i->sampled_rows);
    if (i->expected_error > 0)
        gr_text_add(text, "; expected relative error of adaptive widths at most %.3g", i->expected_error);
    if (i->staleness_max > 0) gr_text_add(text, "; rows were at most %lld epochs stale", (long long)i->staleness_max);
    gr_text_add(text, "\n");
}

void gr_plan_explain(const graft_plan *plan, struct gr_text *text)
{
    graft_error     none = { .size = sizeof none };
    graft_plan_info info;

    gr_text_add(
        text, "rows that each rank receives and sends in a product; halo.cover is %s; plan MB: memory of the new plan",
        gr_cover_name((int32_t)plan->cover));
    gr_text_add(text, "\n%-6s %12s %12s %12s %12s %12s %12s %8s %10s\n", "rank", "cut", "rows", "sent", "raw",
                "if post", "if pre", "messages", "plan MB");
    for (int32_t p = 0; p < plan->comm->n_ranks; p++) rank_line(plan, p, text);
    rank_line(plan, -1, text);
    if (grown_bytes(plan) > 0)
        gr_text_add(text, "buffers of this rank have grown by %.1f MB\n", (double)grown_bytes(plan) * 1e-6);
    gr_plan_info(plan, -1, &info, &none);
    if (info.passes == 0) return;
    gr_text_add(text, "%lld products: %.3f s of exchange on this rank, of which it waited %.3f s; %.0f %% hidden\n",
                (long long)info.passes, info.exchange_seconds, info.wait_seconds, 100 * info.overlap_fraction);
    sent_lines(text, &info);
}
