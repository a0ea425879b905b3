/* Counts sent rows and bytes, layer by layer. Every rank knows how many rows each rank receives and sends in an
 * exchange. The bytes of a row are the same everywhere, or were shared when adaptive bits were assigned, so counting
 * needs no message. Only the sender knows how many rows it sent to each rank, and their quantization error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/traffic.h"
#include "base/assert.h"
#include "base/parallel.h"
#include "parallel/columns.h"

/* Return the number of slots. Slot layer * GR_DIRECTIONS + direction counts a layer in one direction. */
static int32_t slots_of(const struct gr_ranks *r)
{
    return r->n_layers * GR_DIRECTIONS;
}

void gr_parallel_traffic_begin(struct gr_ranks *r)
{
    for (int32_t i = 0; i <= slots_of(r); i++)
        r->traffic.sent[i] =
            (struct gr_sent){ .code = r->traffic.sent[i].code, .rounding = r->traffic.sent[i].rounding };
    for (int32_t i = 0; i < slots_of(r) * r->comm->n_ranks; i++)
        r->traffic.pairs[i].rows = r->traffic.pairs[i].bytes = r->traffic.pairs[i].raw = r->traffic.pairs[i].raw_bytes =
            0;
    for (int32_t i = 0; i < slots_of(r) * r->comm->n_ranks && r->traffic.turned != NULL; i++)
        r->traffic.turned[i] = (struct gr_transpose_flow){ 0 };
}

void gr_parallel_traffic_count(struct gr_ranks *r, const struct gr_run *run, const struct gr_exchange *pass,
                               const struct gr_flow *flow, enum gr_direction direction)
{
    const int32_t          at = run->layer * GR_DIRECTIONS + (int32_t)direction, n_ranks = r->comm->n_ranks;
    const struct gr_codec *codec = &pass->messages->begun.codec;
    struct gr_sent        *sent = &r->traffic.sent[at];

    GR_ASSERT(run->layer >= 0 && run->layer < r->n_layers);
    if (pass->is_repeat || run->pass == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < n_ranks; q++)
        gr_halo_send_stats_add(&r->traffic.pairs[(int64_t)at * n_ranks + q], &pass->messages->sent[q]);
    /* Features that are gathered once are gathered for all rows, but labels only for the rows of a step. */
    if (sent->flow != NULL && sent->flow != flow) sent = &r->traffic.sent[slots_of(r)];
    sent->flow = flow;
    sent->exchanges++;
    if (codec->bits <= 8) sent->code = codec->code;
    if (codec->bits <= 8) sent->rounding = codec->rounding;
    if (pass->layer != NULL && pass->layer->bits.is_assigned) {
        sent->adapted = pass->layer;
        return;
    }
    sent->alike[__builtin_ctz((uint32_t)codec->bits)]++;
    sent->row_bytes += gr_halo_messages_row_bytes(pass->messages, &pass->args);
}

/* Add the counts of a rank, or with -1 of all ranks, to *sum: [n_ranks] structs of 64-bit integers. */
static void add_records(const struct gr_ranks *r, int32_t rank, const void *records, int64_t bytes, void *sum)
{
    const int64_t *from = records, n = bytes / (int64_t)sizeof *from;
    int64_t       *to = sum;

    for (int32_t q = rank < 0 ? 0 : rank; q < (rank < 0 ? r->comm->n_ranks : rank + 1); q++)
        for (int64_t i = 0; i < n; i++) to[i] += from[q * n + i];
}

/* Return the rows that a rank, or with -1 all ranks, sent and received in the transposes of a slot. */
static struct gr_transpose_flow turned_of(const struct gr_ranks *r, int32_t slot, int32_t rank)
{
    struct gr_transpose_flow        sum = { 0 };
    const struct gr_transpose_flow *flow = r->traffic.turned;

    if (flow == NULL || slot >= slots_of(r)) return sum;
    flow += (int64_t)slot * r->comm->n_ranks;
    add_records(r, rank, flow, sizeof *flow, &sum);
    sum.exchanges = flow->exchanges; /* the same on all ranks, like the bits */
    sum.bits = flow->bits;
    return sum;
}

const struct gr_flow *gr_parallel_traffic_whole(const struct gr_ranks *r)
{
    return r->plans.whole != NULL && !r->exchanges_rows ? r->plans.whole->flow : r->halo_rows.flow;
}

struct gr_flow gr_parallel_traffic_flow(const struct gr_ranks *r, const struct gr_flow *flow, int32_t rank)
{
    struct gr_flow sum = { 0 };

    if (flow != NULL) add_records(r, rank, flow, sizeof *flow, &sum);
    return sum;
}

struct gr_row_bits_flow gr_parallel_traffic_adapted(const struct gr_ranks *r, const struct gr_halo_layer *layer,
                                                    int32_t rank)
{
    struct gr_row_bits_flow sum = { 0 };

    if (layer != NULL) add_records(r, rank, layer->bits.flow, sizeof *layer->bits.flow, &sum);
    return sum;
}

/* Return the rows of a rank, or with -1 of all ranks, in one exchange of layer l in a step. */
struct gr_flow gr_parallel_traffic_step(const struct gr_ranks *r, int32_t l, int32_t rank)
{
    const graft_plan *plan = r->plans.step[l];

    return gr_parallel_traffic_flow(r, plan != NULL ? plan->flow : gr_parallel_traffic_whole(r), rank);
}

const struct gr_messages *gr_parallel_traffic_messages(const struct gr_ranks *r)
{
    return r->plans.whole != NULL ? &r->plans.whole->messages : &r->halo_rows.messages;
}

int64_t gr_parallel_traffic_row_bytes(const struct gr_ranks *r, enum gr_direction direction, int64_t width)
{
    const struct gr_exchange_args args = { .direction = direction, .width = width, .dtype = GRAFT_F32 };

    return gr_halo_messages_row_bytes(gr_parallel_traffic_messages(r), &args);
}

int64_t gr_parallel_traffic_label_bytes(const struct gr_ranks *r, int32_t rank)
{
    const struct gr_run *run = r->wish.run;

    if (!run->layers[0].aggregate_first || !gr_propagates(run)) return 0;
    return gr_parallel_traffic_step(r, 0, rank).in *
           gr_parallel_traffic_row_bytes(r, GR_FORWARD, run->targets.n_classes);
}

/* Return the number of exchanges whose rows had adaptive widths. */
static int64_t adapted_in(const struct gr_sent *sent)
{
    int64_t n = sent->exchanges;

    for (int i = 0; i < GR_BITS; i++) n -= sent->alike[i];
    return n;
}

/* Return the rows that a rank receives and sends in one exchange of a slot; backward, rows sent forward are
 * received. */
static struct gr_flow flow_of(const struct gr_ranks *r, int32_t slot, int32_t rank)
{
    const struct gr_flow flow = gr_parallel_traffic_flow(r, r->traffic.sent[slot].flow, rank);

    GR_ASSERT(slot >= 0 && slot <= slots_of(r));
    if (slot == slots_of(r) || slot % GR_DIRECTIONS == GRAFT_PASS_FORWARD) return flow;
    return (struct gr_flow){ .in = flow.out,
                             .out = flow.in,
                             .if_post = flow.if_post,
                             .messages_in = flow.messages_out,
                             .messages_out = flow.messages_in };
}

/* Add the bytes that a rank received in all exchanges of a slot, and the bytes that it would have received if no rows
 * were partial sums. */
static void add_bytes(const struct gr_ranks *r, int32_t slot, int32_t rank, graft_traffic *traffic)
{
    const struct gr_sent         *sent = &r->traffic.sent[slot];
    const struct gr_flow          flow = flow_of(r, slot, rank), all = flow_of(r, slot, -1);
    const struct gr_row_bits_flow adapted = gr_parallel_traffic_adapted(r, sent->adapted, rank);
    const struct gr_row_bits_flow whole = gr_parallel_traffic_adapted(r, sent->adapted, -1);
    const double                  each = all.in > 0 ? (double)whole.bytes_in / (double)all.in : 0;

    traffic->edge_bytes_per_epoch += turned_of(r, slot, rank).edges;
    traffic->halo_bytes_per_epoch +=
        turned_of(r, slot, rank).bytes[GR_RECEIVE] + flow.in * sent->row_bytes + adapted_in(sent) * adapted.bytes_in;
    traffic->halo_bytes_if_post +=
        flow.if_post * sent->row_bytes + adapted_in(sent) * (int64_t)(each * (double)flow.if_post + 0.5);
}

/* Return the stored data of the layer and direction of a slot; NULL if no rows are exchanged. */
static const struct gr_halo_layer *layer_of(const struct gr_ranks *r, int32_t slot)
{
    const struct gr_flow all = gr_parallel_traffic_flow(r, gr_parallel_traffic_whole(r), -1);

    return all.in > 0 ? gr_parallel_plans_layer(r, slot / GR_DIRECTIONS, (enum gr_direction)(slot % GR_DIRECTIONS))
                      : NULL;
}

/* The age in epochs of the rows that a slot and its transposes used: in their last exchanges, and the largest in
 * any. */
struct ages {
    int64_t last, most;
};

static struct ages ages_of(const struct gr_ranks *r, int32_t slot)
{
    struct ages ages = { 0, r->traffic.oldest[slot] };

    for (int k = 0; k < (r->columns != NULL ? 3 : 1); k++) {
        const struct gr_halo_layer *kept =
            k == 0 ? layer_of(r, slot) : gr_parallel_plans_exchange(r, slot + k * slots_of(r));

        if (kept == NULL) continue;
        if (kept->history.age > ages.last) ages.last = kept->history.age;
        if (kept->history.oldest > ages.most) ages.most = kept->history.oldest;
    }
    return ages;
}

static void add_seconds(const struct gr_messages *messages, const struct gr_halo_layers *layers, graft_traffic *traffic)
{
    gr_halo_messages_add_seconds(messages, &traffic->wait_seconds, &traffic->exchange_seconds);
    gr_halo_layers_add_seconds(layers, &traffic->wait_seconds, &traffic->exchange_seconds);
}

int32_t gr_parallel_traffic_of(const struct gr_strategy *strategy, int32_t rank, graft_traffic *traffic,
                               graft_error *error)
{
    const struct gr_ranks *r = (const struct gr_ranks *)strategy;
    graft_graph_info       graph = { .size = sizeof graph };
    struct gr_flow         flow;

    GR_TRY(gr_graph_info(r->wish.over, r->graph.share, rank, &graph, error));
    flow = gr_parallel_traffic_flow(r, gr_parallel_traffic_whole(r), rank);
    traffic->rank = rank;
    traffic->cut_edges = graph.n_cut;
    traffic->halo_rows = flow.in;
    traffic->halo_rows_if_post = flow.if_post;
    for (int32_t i = 0; i <= slots_of(r); i++) add_bytes(r, i, rank, traffic);
    add_seconds(&r->halo_rows.messages, &r->halo_rows.layers, traffic);
    if (r->columns != NULL) add_seconds(&r->columns->transpose.messages, &r->columns->transpose.layers, traffic);
    if (r->plans.whole != NULL) add_seconds(&r->plans.whole->messages, &r->plans.whole->layers, traffic);
    for (int32_t l = 0; l < r->n_layers; l++) {
        const graft_plan *masked = r->plans.masked[l].plan;

        if (masked != NULL) add_seconds(&masked->messages, &masked->layers, traffic);
    }
    for (int32_t i = 0; i < slots_of(r); i++) {
        const struct ages ages = ages_of(r, i);

        if (ages.most > traffic->staleness_max) traffic->staleness_max = ages.most;
    }
    traffic->epochs_synchronous = r->stale.n_synchronous;
    if (traffic->exchange_seconds > 0)
        traffic->overlap_fraction = 1 - traffic->wait_seconds / traffic->exchange_seconds;
    return GRAFT_OK;
}

static void add_sent(const struct gr_ranks *r, int32_t slot, int32_t rank, graft_traffic_item *item)
{
    const struct gr_sent          *sent = &r->traffic.sent[slot];
    const struct gr_flow           flow = flow_of(r, slot, rank);
    const struct gr_row_bits_flow  widths = gr_parallel_traffic_adapted(r, sent->adapted, rank);
    const struct gr_transpose_flow turned = turned_of(r, slot, rank);
    const int64_t                  adapted = adapted_in(sent);

    item->exchanges += sent->exchanges + turned.exchanges;
    item->rows += turned.rows[GR_RECEIVE];
    item->rows_sent += turned.rows[GR_SEND];
    item->bytes += turned.bytes[GR_RECEIVE];
    item->bytes_sent += turned.bytes[GR_SEND];
    item->messages += turned.messages[GR_RECEIVE];
    item->messages_sent += turned.messages[GR_SEND];
    if (turned.exchanges > 0) item->rows_by_bits[__builtin_ctz((uint32_t)turned.bits)] += turned.rows[GR_SEND];
    item->rows += flow.in * sent->exchanges;
    item->rows_sent += flow.out * sent->exchanges;
    item->bytes += flow.in * sent->row_bytes + adapted * widths.bytes_in;
    item->bytes_sent += flow.out * sent->row_bytes + adapted * widths.bytes_out;
    item->messages += flow.messages_in * sent->exchanges;
    item->messages_sent += flow.messages_out * sent->exchanges;
    for (int i = 0; i < GR_BITS; i++) item->rows_by_bits[i] += flow.out * sent->alike[i];
    for (int i = 0; i < 3; i++) item->rows_by_bits[i + 1] += adapted * widths.rows_out[i];
    if (item->code == 0) {
        item->code = sent->code;
        item->rounding = sent->rounding;
    }
}

static int32_t check_item(const struct gr_ranks *r, int32_t index, graft_error *error)
{
    if (index >= 0 && index < slots_of(r)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no traffic item %d, there are %d", index, slots_of(r));
}

int32_t gr_parallel_traffic_item(const struct gr_strategy *strategy, int32_t rank, int32_t index,
                                 graft_traffic_item *item, graft_error *error)
{
    const struct gr_ranks      *r = (const struct gr_ranks *)strategy;
    graft_graph_info            graph = { .size = sizeof graph };
    const struct gr_send_stats *pairs;
    const struct gr_halo_layer *layer;
    struct ages                 ages;

    GR_TRY(gr_graph_info(r->wish.over, r->graph.share, rank, &graph, error));
    GR_TRY(check_item(r, index, error));
    pairs = r->traffic.pairs + (int64_t)index * r->comm->n_ranks;
    layer = layer_of(r, index);
    item->rank = rank;
    item->layer = index / GR_DIRECTIONS;
    item->pass = index % GR_DIRECTIONS;
    add_sent(r, index, rank, item);
    if (index == 0) add_sent(r, slots_of(r), rank, item);
    for (int32_t q = 0; q < r->comm->n_ranks && rank == r->comm->rank; q++) {
        item->sampled_rows += pairs[q].sampled_rows;
        item->nmse += pairs[q].nmse;
        item->expected += pairs[q].expected;
    }
    item->expected_error = layer != NULL ? layer->bits.expected_error : 0;
    ages = ages_of(r, index);
    item->staleness = ages.last;
    item->staleness_max = ages.most;
    return GRAFT_OK;
}

int32_t gr_parallel_traffic_pair(const struct gr_strategy *strategy, int32_t peer, int32_t index,
                                 graft_traffic_pair *pair, graft_error *error)
{
    const struct gr_ranks      *r = (const struct gr_ranks *)strategy;
    const struct gr_send_stats *sent;

    if (peer < 0 || peer >= r->comm->n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected 0 to %d", peer, r->comm->n_ranks - 1);
    GR_TRY(check_item(r, index, error));
    sent = r->traffic.pairs + (int64_t)index * r->comm->n_ranks + peer;
    pair->peer = peer;
    pair->layer = index / GR_DIRECTIONS;
    pair->pass = index % GR_DIRECTIONS;
    pair->rows = sent->rows;
    pair->bytes = sent->bytes;
    pair->rows_unquantized = sent->raw;
    pair->bytes_unquantized = sent->raw_bytes;
    pair->sampled_rows = sent->sampled_rows;
    pair->nmse = sent->nmse;
    pair->expected = sent->expected;
    return GRAFT_OK;
}
