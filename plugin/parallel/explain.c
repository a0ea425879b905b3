/* Prints tables of what ranks send to each other: before a step the planned bytes, after it the sent bytes and the
 * quantization error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/explain.h"

#include "base/text.h"
#include "parallel/columns.h"
#include "parallel/traffic.h"

#include <math.h>

/* Whether the backward pass must gather again in layer l, because (with option recompute) layer l and a later layer
 * share the arrays that the gathered rows are in. */
static int gathers_again(const struct gr_ranks *r, int32_t l)
{
    const struct gr_activations *a = &r->wish.run->layers[l];
    const int                    late = gr_parallel_config(r)->kind->gathers_late && !a->aggregate_first;
    const enum gr_step           step = late ? GR_STEP_Z : GR_STEP_BEGIN;

    if (!a->shared[step]) return 0;
    for (int32_t behind = l + 1; behind < r->n_layers; behind++)
        if (r->wish.run->layers[behind].shared[step]) return 1;
    return 0;
}

/* Whether layer l is the first layer, and sums its input over neighbours. */
static int sums_input(const struct gr_ranks *r, int32_t l)
{
    return l == 0 && r->wish.run->layers[0].aggregate_first;
}

/* Return the bytes received by a rank, or with -1 by all ranks, in layer l in one direction of a step, without sums
 * that are computed only once. */
static int64_t step_bytes(const struct gr_ranks *r, int32_t l, int32_t pass, int32_t rank)
{
    const struct gr_activations *a = &r->wish.run->layers[l];
    const struct gr_layer       *layer = a->layer;
    const struct gr_flow         flow = gr_parallel_traffic_step(r, l, rank);
    const struct gr_halo_layer  *kept = gr_parallel_plans_layer(r, l, (enum gr_direction)pass);
    const int64_t                rows = pass == GRAFT_PASS_FORWARD ? flow.in : flow.out;
    const int                    attends = gr_parallel_config(r)->kind->attends;
    const int                    first = sums_input(r, l);
    const int64_t                width = attends ? layer->wide : gr_summed_columns(a);
    int64_t                      bytes;

    if (l < r->gathers_from || (first && pass == GRAFT_PASS_BACKWARD)) return 0;
    if (kept != NULL && kept->bits.is_assigned) bytes = gr_parallel_traffic_adapted(r, kept, rank).bytes_in;
    else bytes = rows * gr_parallel_traffic_row_bytes(r, pass, width);
    if (first && r->wish.run->input.is_constant) bytes = 0;
    /* With stale rows a repeat uses the stored rows, and sends none. */
    if (pass == GRAFT_PASS_FORWARD && gathers_again(r, l) && (kept == NULL || !kept->is_stale)) bytes *= 2;
    return bytes + (first ? gr_parallel_traffic_label_bytes(r, rank) : 0);
}

static void step_line(const struct gr_ranks *r, int32_t rank, struct gr_text *text)
{
    if (rank >= 0) gr_text_add(text, "%-6d", rank);
    else gr_text_add(text, "all   ");
    for (int32_t i = 0; i < GR_DIRECTIONS * r->n_layers; i++)
        gr_text_add(text, " %12lld", (long long)step_bytes(r, i / GR_DIRECTIONS, i % GR_DIRECTIONS, rank));
    gr_text_add(text, "\n");
}

static void explain_step(const struct gr_ranks *r, struct gr_text *text)
{
    gr_text_add(text, "bytes of rows that each rank receives in a step, by layer, forward and backward\nrank  ");
    for (int32_t l = 0; l < r->n_layers; l++) gr_text_add(text, " %10d f %10d b", l, l);
    gr_text_add(text, "\n");
    for (int32_t p = 0; p < r->comm->n_ranks; p++) step_line(r, p, text);
    step_line(r, -1, text);
}

static const char *code_name(int32_t code, int32_t rounding)
{
    if (code == GRAFT_CODEC_ROTATED) return "rotated";
    return rounding == GRAFT_ROUND_STOCHASTIC ? "stochastic" : "nearest";
}

/* Describe the encoding of rows, unless they are raw. */
static void explain_bits(const struct gr_ranks *r, struct gr_text *text)
{
    static const char *const    names[] = { "forward", "backward" };
    static const char *const    measured[] = { "no row", "one row in 64", "every row" };
    const struct gr_row_format *f = &gr_parallel_traffic_messages(r)->format;

    if (f->bits[GR_FORWARD] == 32 && f->bits[GR_BACKWARD] == 32) return;
    gr_text_add(text, "messages ");
    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) {
        const int32_t bits = f->bits[d], code = gr_halo_row_format_code(f, d, bits, INT64_MAX);
        const int32_t narrow = gr_halo_row_format_code(f, d, bits, 1);

        if (f->adaptive[d]) gr_text_add(text, " %s in 2, 4 or 8 bits", names[d]);
        else gr_text_add(text, " %s in %d bit%s", names[d], bits, bits > 1 ? "s" : "");
        if (bits <= 8) gr_text_add(text, ", %s", code_name(code, gr_halo_row_format_rounding(f, d, bits)));
        if (narrow != code)
            gr_text_add(text, " (narrow rows %s)", code_name(narrow, gr_halo_row_format_rounding(f, d, bits)));
        gr_text_add(text, ";");
    }
    gr_text_add(text, " the error of %s is measured\n", measured[f->measuring]);
}

/* Return the counts of a layer and direction for all ranks, with the quantization error of this rank. */
static graft_traffic_item item_of(const struct gr_ranks *r, int32_t index)
{
    graft_traffic_item all = { .size = sizeof all }, own = { .size = sizeof own };

    gr_parallel_traffic_item(&r->base, -1, index, &all, NULL);
    gr_parallel_traffic_item(&r->base, r->comm->rank, index, &own, NULL);
    all.sampled_rows = own.sampled_rows;
    all.nmse = own.nmse;
    all.expected = own.expected;
    return all;
}

/* Return the counts of the rank whose rows have the largest mean error. */
static graft_traffic_pair worst_of(const struct gr_ranks *r, int32_t index)
{
    graft_traffic_pair worst = { .peer = -1 };

    for (int32_t q = 0; q < r->comm->n_ranks; q++) {
        graft_traffic_pair pair = { .size = sizeof pair };

        gr_parallel_traffic_pair(&r->base, q, index, &pair, NULL);
        if (pair.sampled_rows > 0 &&
            (worst.peer < 0 || pair.nmse * (double)worst.sampled_rows > worst.nmse * (double)pair.sampled_rows))
            worst = pair;
    }
    return worst;
}

static void loss_columns(const struct gr_ranks *r, int32_t index, const graft_traffic_item *item, struct gr_text *text)
{
    const graft_traffic_pair worst = worst_of(r, index);

    if (item->sampled_rows == 0) {
        gr_text_add(text, " %8s %8s %-10s %16s", "-", "-", "-", "-");
        return;
    }
    gr_text_add(text, " %8.2g %8.2g %-10s %8.2g to %4d", item->nmse / (double)item->sampled_rows,
                item->expected / (double)item->sampled_rows, code_name(item->code, item->rounding),
                worst.nmse / (double)worst.sampled_rows, worst.peer);
}

/* Which columns the table has: for each width of rows; for errors of rounded rows; for stale rows; for adaptive
 * widths. */
struct columns {
    int bits[GR_BITS], lost, late, shares;
};

static struct columns columns_of(const struct gr_ranks *r)
{
    struct columns columns = {
        .late = (r->plans.whole != NULL ? &r->plans.whole->layers : &r->halo_rows.layers)->is_stale
    };

    for (int32_t i = 0; i < GR_DIRECTIONS * r->n_layers; i++) {
        const graft_traffic_item item = item_of(r, i);

        for (int b = 0; b < GR_BITS; b++) columns.bits[b] |= item.rows_by_bits[b] > 0;
        columns.lost |= item.sampled_rows > 0;
        columns.shares |= item.expected_error > 0;
    }
    return columns;
}

/* Report rows of this rank that were sent again because the codec could not represent a row of their message. */
static void explain_raw(const struct gr_ranks *r, struct gr_text *text)
{
    const int64_t        n_pairs = (int64_t)GR_DIRECTIONS * r->n_layers * r->comm->n_ranks;
    struct gr_send_stats sum = { 0 };

    for (int64_t i = 0; i < n_pairs; i++) gr_halo_send_stats_add(&sum, &r->traffic.pairs[i]);
    if (sum.raw > 0)
        gr_text_add(text,
                    "%lld rows of this rank were also sent unquantized, %.3f MB: a row of their message fits no code\n",
                    (long long)sum.raw, (double)sum.raw_bytes * 1e-6);
}

static void explain_sent(const struct gr_ranks *r, struct gr_text *text)
{
    const struct columns c = columns_of(r);

    gr_text_add(text, "sent in the last step, all ranks: %s by their bits\n%-10s",
                r->columns != NULL ? "records and boundary rows" : "rows", "layer");
    for (int b = GR_BITS - 1; b >= 0; b--)
        if (c.bits[b]) gr_text_add(text, " %10d", 1 << b);
    gr_text_add(text, " %10s", "MB");
    if (c.late) gr_text_add(text, " %5s %5s", "late", "most");
    if (c.shares) gr_text_add(text, " %8s", "share");
    if (c.lost) gr_text_add(text, " %8s %8s %-10s %16s", "lost", "expected", "rounding", "most lost");
    gr_text_add(text, "\n");
    for (int32_t i = 0; i < GR_DIRECTIONS * r->n_layers; i++) {
        const graft_traffic_item item = item_of(r, i);

        gr_text_add(text, "%-2d%-8s", item.layer, item.pass == GRAFT_PASS_FORWARD ? "forward" : "backward");
        for (int b = GR_BITS - 1; b >= 0; b--)
            if (c.bits[b]) gr_text_add(text, " %10lld", (long long)item.rows_by_bits[b]);
        gr_text_add(text, " %10.3f", (double)item.bytes * 1e-6);
        if (c.late) gr_text_add(text, " %5lld %5lld", (long long)item.staleness, (long long)item.staleness_max);
        if (c.shares) gr_text_add(text, " %8.2g", item.expected_error);
        if (c.lost) loss_columns(r, i, &item, text);
        gr_text_add(text, "\n");
    }
    if (c.late)
        gr_text_add(text,
                    "late: epochs that the rows in use were behind; most: since the start. %lld steps had their own; "
                    "rows drifted by %.3g in the last one\n",
                    (long long)r->stale.n_synchronous, r->base.drift);
    if (c.shares)
        gr_text_add(text,
                    "share: expected loss of a layer with the chosen bits, as a share of weight |x|^2 of its rows\n");
    explain_raw(r, text);
    if (c.lost)
        gr_text_add(text,
                    "lost: |x - x'|^2 / |x|^2, mean of rows that this rank sent since the start. expected: D elements "
                    "anywhere between\nlevels with step S lose D S^2 / 12 to the nearest level, D S^2 / 6 "
                    "stochastically; (pi / 2 - 1) |x|^2 rotated\n");
}

/* Predict the bytes of edges that all ranks send in a sum of all rows, with the self-loops that the model adds. */
static double predicted_stream(const struct gr_ranks *r, const struct gr_grid_choice *choice)
{
    const double of_loops = (r->wish.over->value_type != 0 ? 8 : 4) * (double)r->wish.over->division.n_linked;

    if (choice->streamed == 0) return 0;
    return (double)choice->streamed + (gr_parallel_config(r)->data.self_loops ? (choice->columns - 1) * of_loops : 0);
}

/* Return the share of all rows that a step uses in layer l: the geometric mean of the shares of its inputs and
 * outputs. */
static double step_share(const struct gr_ranks *r, int32_t l)
{
    return sqrt((double)r->graph.reach_of_all[l] * (double)r->graph.reach_of_all[l + 1]) / (double)r->graph.n_vertices;
}

/* Return the share of boundary rows that a layer exchanges in a step: counted, or estimated if there are no boundary
 * rows. */
static double halo_share(const struct gr_ranks *r, int32_t l)
{
    const int64_t whole = gr_parallel_traffic_flow(r, gr_parallel_traffic_whole(r), -1).in;

    return whole > 0 ? (double)gr_parallel_traffic_step(r, l, -1).in / (double)whole : step_share(r, l);
}

/* Predict the bytes of boundary rows in one exchange, and of the two transposes around it: each row is sent to the
 * other ranks of its group, except for the columns of its own rank, once as an input of the sum and once as a
 * result. */
static double predicted_exchange(const struct gr_ranks *r, const struct gr_grid_choice *choice, int32_t l, int32_t pass,
                                 int64_t width)
{
    const double of_result = (double)r->graph.reach_of_all[l + 1], of_input = (double)r->graph.reach_of_all[l];
    const double elsewhere = (double)(choice->columns - 1) / choice->columns;
    const double element = (double)gr_parallel_traffic_row_bytes(r, pass, GR_RECORD) / GR_RECORD;

    const double linked = (double)r->wish.over->division.n_linked / (double)r->graph.n_vertices;

    return (double)choice->halo_rows * halo_share(r, l) * (double)gr_parallel_traffic_row_bytes(r, pass, width) +
           elsewhere * linked * (of_input + of_result) * (double)width * element +
           predicted_stream(r, choice) * step_share(r, l);
}

/* Predict the bytes of a step. */
static double predicted_bytes(const struct gr_ranks *r, const struct gr_grid_choice *choice)
{
    double bytes = 0;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        const struct gr_activations *a = &r->wish.run->layers[l];
        const int64_t                width = gr_summed_columns(a);
        const int                    first = sums_input(r, l);

        if (!first || !r->wish.run->input.is_constant)
            bytes += (1 + gathers_again(r, l)) * predicted_exchange(r, choice, l, GRAFT_PASS_FORWARD, width);
        if (first && gr_propagates(r->wish.run))
            bytes += predicted_exchange(r, choice, l, GRAFT_PASS_FORWARD, r->wish.run->targets.n_classes);
        if (!first) bytes += predicted_exchange(r, choice, l, GRAFT_PASS_BACKWARD, width);
    }
    return bytes;
}

/* Predict the seconds of a step: the seconds for all rows, times the mean share of rows of the layers. */
static double predicted_seconds(const struct gr_ranks *r, const struct gr_grid_choice *choice)
{
    const int32_t from = r->gathers_from, layers = r->n_layers - from;
    double        share = 0;

    for (int32_t l = from; l < r->n_layers; l++) share += step_share(r, l) / layers;
    return choice->seconds * share;
}

/* Describe the prediction of parallel=auto, and compare it with the last step. */
static void explain_prediction(const struct gr_ranks *r, double seconds, int64_t sent, struct gr_text *text)
{
    const graft_graph *over = r->wish.over;
    const int32_t      columns = r->columns != NULL ? r->columns->grid.columns : 1;

    if (over->division.n_choices == 0) return;
    gr_text_add(text, "parallel  a step is predicted to send");
    for (int32_t i = 0; i < over->division.n_choices; i++)
        gr_text_add(text, "%s %.4g MB in groups of %d", i > 0 ? "," : "",
                    predicted_bytes(r, &over->division.choices[i]) * 1e-6, over->division.choices[i].columns);
    gr_text_add(text, " that share columns");
    for (int32_t i = 0; i < over->division.n_choices && seconds > 0; i++)
        if (over->division.choices[i].columns == columns)
            gr_text_add(text, "; the last one sent %.4g MB and took %.3g s (predicted: %.3g s)", (double)sent * 1e-6,
                        seconds, predicted_seconds(r, &over->division.choices[i]));
    gr_text_add(text, "\n");
}

/* List the ranks that have no columns of a layer, because the layer is narrower than the group. */
static void explain_idle(const struct gr_ranks *r, struct gr_text *text)
{
    const struct gr_grid *grid = &r->columns->grid;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        const int64_t width = gr_summed_columns(&r->wish.run->layers[l]);

        if (width >= grid->columns) continue;
        gr_text_add(text, "columns   of layer %d are %lld; none is on rank", l, (long long)width);
        for (int32_t q = 0; q < r->comm->n_ranks; q++)
            if (gr_parallel_grid_slice_width(grid, width, q % grid->columns) == 0) gr_text_add(text, " %d", q);
        gr_text_add(text, "\n");
    }
}

/* Describe the memory of a rank that shares columns. */
static void explain_columns(const struct gr_ranks *r, struct gr_text *text)
{
    const struct gr_transpose *t = &r->columns->transpose;
    const struct gr_blocks    *b = &r->columns->blocks;
    const double               slices = sizeof **t->slice * (double)(t->elements[0] + t->elements[1]);

    gr_text_add(text,
                "columns   of sums are shared by %d ranks each; they send records of %d elements; %.4g MB of "
                "slices, %.4g MB of records and messages\n",
                r->columns->grid.columns, GR_RECORD, slices * 1e-6,
                ((double)gr_parallel_transpose_bytes(t) - slices) * 1e-6);
    gr_text_add(text, "edges     of other ranks are %s: %.4g MB; with feature.graph=%s it would be %.4g MB\n",
                b->streams ? "received in each sum" : "held", (double)gr_parallel_blocks_need(b, b->streams) * 1e-6,
                b->streams ? "replicate" : "stream", (double)gr_parallel_blocks_need(b, !b->streams) * 1e-6);
    explain_idle(r, text);
}

static void explain_traffic(const struct gr_ranks *r, double seconds, struct gr_text *text)
{
    int64_t rows = 0, bytes = 0;

    for (int32_t i = 0; i < GR_DIRECTIONS * r->n_layers; i++) {
        const graft_traffic_item item = item_of(r, i);

        rows += item.rows;
        bytes += item.bytes;
    }
    if (rows > 0) explain_sent(r, text);
    explain_prediction(r, seconds, bytes, text);
}

void gr_parallel_explain(const struct gr_strategy *strategy, double seconds, struct gr_text *text)
{
    const struct gr_ranks *r = (const struct gr_ranks *)strategy;

    if (r->plans.whole != NULL && r->wish.has_batches)
        gr_text_add(text, "products belong to evaluations; batches read rows from caches\n");
    if (r->plans.whole != NULL) gr_plan_explain(r->plans.whole, text);
    if (!gr_parallel_config(r)->kind->gathers) return;
    explain_bits(r, text);
    if (r->wish.has_batches) return; /* steps of batches send other rows */
    explain_step(r, text);
    explain_traffic(r, seconds, text);
}

void gr_parallel_columns_explain(const struct gr_strategy *strategy, double seconds, struct gr_text *text)
{
    const struct gr_ranks *r = (const struct gr_ranks *)strategy;

    if (gr_parallel_columns_have_remote(r)) {
        gr_text_add(text, "rows of the next table have 1/%d of the columns, which are the columns of their rank\n",
                    r->columns->grid.columns);
        gr_plan_explain(r->plans.whole, text);
    }
    explain_bits(r, text);
    explain_columns(r, text);
    explain_traffic(r, seconds, text);
}
