/* Counts of sent rows and bytes, layer by layer. Every rank knows the numbers of rows that each rank receives and sends
 * in an exchange. The bytes of a row are the same everywhere, or were shared when adaptive bits were assigned, so
 * counting needs no message. Only the sender knows the rows to each other rank, and their quantization error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "parallel/partition.h"

/* Layers in both directions. */
static int32_t slots_of(const struct gr_partition *p)
{
    return p->n_layers * GR_DIRECTIONS;
}

void gr_traffic_begin(struct gr_partition *p)
{
    for (int32_t i = 0; i <= slots_of(p); i++)
        p->sent[i] = (struct gr_sent){ .code = p->sent[i].code, .rounding = p->sent[i].rounding };
    for (int32_t i = 0; i < slots_of(p) * p->comm->n_ranks; i++)
        p->pairs[i].rows = p->pairs[i].bytes = p->pairs[i].raw = p->pairs[i].raw_bytes = 0;
    for (int32_t i = 0; i < slots_of(p) * p->comm->n_ranks && p->shared != NULL; i++)
        p->shared->turned[i] = (struct gr_transpose_flow){ 0 };
}

void gr_traffic_count(struct gr_partition *p, const struct gr_run *run, const struct gr_exchange *pass,
                      const struct gr_flow *flow, enum gr_direction direction)
{
    const int32_t          at = run->layer * GR_DIRECTIONS + (int32_t)direction, n_ranks = p->comm->n_ranks;
    const struct gr_codec *codec = &pass->messages->begun.codec;
    struct gr_sent        *sent = &p->sent[at];

    GR_ASSERT(run->layer >= 0 && run->layer < p->n_layers);
    if (pass->is_repeat || run->pass == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < n_ranks; q++)
        gr_send_stats_add(&p->pairs[(int64_t)at * n_ranks + q], &pass->messages->sent[q]);
    /* Features that are gathered once are gathered for all rows, but labels beside them only for the rows of a step. */
    if (sent->flow != NULL && sent->flow != flow) sent = &p->sent[slots_of(p)];
    sent->flow = flow;
    sent->exchanges++;
    if (codec->bits <= 8) sent->code = codec->code;
    if (codec->bits <= 8) sent->rounding = codec->rounding;
    if (pass->layer != NULL && pass->layer->bits.is_assigned) {
        sent->adapted = pass->layer;
        return;
    }
    sent->alike[__builtin_ctz((uint32_t)codec->bits)]++;
    sent->row_bytes += gr_messages_row_bytes(pass->messages, &pass->args);
}

void gr_traffic_count_transpose(struct gr_partition *p, const struct gr_run *run, const struct gr_transposed *what,
                                int to_rows)
{
    const struct gr_exchange *pass = &p->shared->transpose.exchange;
    const struct gr_codec    *codec = &pass->messages->begun.codec;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)what->args.direction, n = p->comm->n_ranks;
    const int32_t             c = p->columns;
    const int64_t             bytes = gr_messages_row_bytes(pass->messages, &pass->args);

    if (pass->is_repeat || run->pass == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &p->shared->turned[(int64_t)at * n + q];

        gr_send_stats_add(&p->pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int32_t r = q / c * c; r < (q / c + 1) * c; r++) {
            const int64_t elements[GR_SIDES] = {
                gr_transpose_elements(&p->shared->grid, what, to_rows ? r : q, to_rows ? q : r),
                gr_transpose_elements(&p->shared->grid, what, to_rows ? q : r, to_rows ? r : q)
            };

            for (int side = 0; side < GR_SIDES && r != q; side++) {
                const int64_t records = gr_chunk_count(elements[side], GR_RECORD);

                flow->rows[side] += records;
                flow->bytes[side] += gr_transpose_message_bytes(pass->messages, elements[side], bytes);
                flow->messages[side] += records > 0;
            }
        }
        flow->exchanges++;
        flow->bits = codec->bits;
    }
    if (codec->bits <= 8) p->sent[at].code = codec->code;
    if (codec->bits <= 8) p->sent[at].rounding = codec->rounding;
}

void gr_traffic_count_blocks(struct gr_partition *p, const struct gr_run *run)
{
    const struct gr_blocks *b = &p->shared->blocks;
    const int32_t           at = run->layer * GR_DIRECTIONS + (int32_t)b->sum.direction, n = p->comm->n_ranks;

    if (run->pass == GRAFT_PASS_EVALUATION || !b->streams) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &p->shared->turned[(int64_t)at * n + q];

        for (int side = 0; side < GR_SIDES; side++)
            flow->bytes[side] += gr_blocks_traffic(b, &b->sum, q, side == GR_SEND);
        flow->edges += gr_blocks_traffic(b, &b->sum, q, 0);
    }
}

void gr_traffic_count_columns(struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum, int exact)
{
    const graft_plan         *plan = sum->block->of_strategy;
    const struct gr_exchange *pass = p->needs_rows ? &p->halo_rows.exchange : &plan->product.exchange;
    const struct gr_messages *messages = p->needs_rows ? &p->halo_rows.messages : &plan->messages;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)sum->direction, n = p->comm->n_ranks;
    const int                 back = sum->direction == GR_BACKWARD, is_here = gr_partition_slice(p, sum->width) > 0;
    struct gr_exchange_args   args = { .direction = sum->direction, .exact = exact, .dtype = GRAFT_F32 };

    if (run->pass == GRAFT_PASS_EVALUATION || p->columns == n || p->shared->transpose.exchange.is_repeat) return;
    for (int32_t q = 0; q < n; q++) {
        const struct gr_flow     *flow = &(p->needs_rows ? p->halo_rows.flow : plan->flow)[q];
        struct gr_transpose_flow *to = &p->shared->turned[(int64_t)at * n + q];
        const int64_t             rows[GR_SIDES] = { back ? flow->in : flow->out, back ? flow->out : flow->in };
        const int64_t             sent[GR_SIDES] = { back ? flow->messages_in : flow->messages_out,
                                         back ? flow->messages_out : flow->messages_in };

        args.width = gr_grid_slice_width(&p->shared->grid, sum->width, q % p->columns);
        if (args.width == 0) continue;
        if (is_here) gr_send_stats_add(&p->pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int side = 0; side < GR_SIDES; side++) {
            to->rows[side] += rows[side];
            to->bytes[side] += rows[side] * gr_messages_row_bytes(messages, &args);
            to->messages[side] += sent[side];
        }
    }
}

/* Rows that a rank, or with -1 all ranks, sent and received in the transposes of a slot. */
static struct gr_transpose_flow turned_of(const struct gr_partition *p, int32_t slot, int32_t rank)
{
    struct gr_transpose_flow sum = { 0 };

    for (int32_t q = 0; q < p->comm->n_ranks && p->shared != NULL && slot < slots_of(p); q++) {
        const struct gr_transpose_flow *flow = &p->shared->turned[(int64_t)slot * p->comm->n_ranks + q];

        if (rank >= 0 && rank != q) continue;
        for (int side = 0; side < GR_SIDES; side++) {
            sum.rows[side] += flow->rows[side];
            sum.bytes[side] += flow->bytes[side];
            sum.messages[side] += flow->messages[side];
        }
        sum.edges += flow->edges;
        sum.exchanges = flow->exchanges;
        sum.bits = flow->bits;
    }
    return sum;
}

const struct gr_flow *gr_traffic_whole(const struct gr_partition *p)
{
    return p->plan != NULL && !p->needs_rows ? p->plan->flow : p->halo_rows.flow;
}

struct gr_flow gr_traffic_flow(const struct gr_partition *p, const struct gr_flow *flow, int32_t rank)
{
    struct gr_flow sum = { 0 };

    for (int32_t q = 0; flow != NULL && q < p->comm->n_ranks; q++) {
        if (rank >= 0 && rank != q) continue;
        sum.in += flow[q].in;
        sum.out += flow[q].out;
        sum.if_post += flow[q].if_post;
        sum.messages_in += flow[q].messages_in;
        sum.messages_out += flow[q].messages_out;
    }
    return sum;
}

struct gr_row_bits_flow gr_traffic_adapted(const struct gr_partition *p, const struct gr_halo_layer *layer,
                                           int32_t rank)
{
    struct gr_row_bits_flow sum = { 0 };

    for (int32_t q = 0; layer != NULL && q < p->comm->n_ranks; q++) {
        if (rank >= 0 && rank != q) continue;
        sum.bytes_in += layer->bits.flow[q].bytes_in;
        sum.bytes_out += layer->bits.flow[q].bytes_out;
        for (int i = 0; i < 3; i++) sum.rows_out[i] += layer->bits.flow[q].rows_out[i];
    }
    return sum;
}

/* Exchanges whose rows had adaptive bits. */
static int64_t adapted_in(const struct gr_sent *sent)
{
    int64_t n = sent->exchanges;

    for (int i = 0; i < GR_BITS; i++) n -= sent->alike[i];
    return n;
}

/* Rows that a rank receives and sends in one exchange of a slot; backward the other way round. */
static struct gr_flow flow_of(const struct gr_partition *p, int32_t slot, int32_t rank)
{
    const struct gr_flow flow = gr_traffic_flow(p, p->sent[slot].flow, rank);

    GR_ASSERT(slot >= 0 && slot <= slots_of(p));
    if (slot == slots_of(p) || slot % GR_DIRECTIONS == GRAFT_PASS_FORWARD) return flow;
    return (struct gr_flow){ .in = flow.out,
                             .out = flow.in,
                             .if_post = flow.if_post,
                             .messages_in = flow.messages_out,
                             .messages_out = flow.messages_in };
}

/* Bytes received by a rank in all exchanges of a slot; and the bytes that it would receive if all rows were raw
 * rows. */
static void add_bytes(const struct gr_partition *p, int32_t slot, int32_t rank, graft_traffic *traffic)
{
    const struct gr_sent         *sent = &p->sent[slot];
    const struct gr_flow          flow = flow_of(p, slot, rank), all = flow_of(p, slot, -1);
    const struct gr_row_bits_flow adapted = gr_traffic_adapted(p, sent->adapted, rank);
    const struct gr_row_bits_flow whole = gr_traffic_adapted(p, sent->adapted, -1);
    const double                  each = all.in > 0 ? (double)whole.bytes_in / (double)all.in : 0;

    traffic->edge_bytes_per_epoch += turned_of(p, slot, rank).edges;
    traffic->halo_bytes_per_epoch +=
        turned_of(p, slot, rank).bytes[GR_RECEIVE] + flow.in * sent->row_bytes + adapted_in(sent) * adapted.bytes_in;
    traffic->halo_bytes_if_post +=
        flow.if_post * sent->row_bytes + adapted_in(sent) * (int64_t)(each * (double)flow.if_post + 0.5);
}

/* The stored rows of the layer of a slot, if any rank has rows for another. */
static const struct gr_halo_layer *layer_of(const struct gr_partition *p, int32_t slot)
{
    const struct gr_flow all = gr_traffic_flow(p, gr_traffic_whole(p), -1);

    return all.in > 0 ? gr_partition_layer(p, slot / GR_DIRECTIONS, (enum gr_direction)(slot % GR_DIRECTIONS)) : NULL;
}

/* Epochs since the rows that a slot and its transposes used were sent: in their last exchanges, and the most in any. */
struct ages {
    int64_t last, most;
};

static struct ages ages_of(const struct gr_partition *p, int32_t slot)
{
    const int32_t               layer = slot / GR_DIRECTIONS, direction = slot % GR_DIRECTIONS;
    const struct gr_halo_layer *kept[3] = { layer_of(p, slot) };
    struct ages                 ages = { 0, p->oldest[slot] };

    for (int k = 0; k < 2 && p->shared != NULL; k++)
        kept[1 + k] =
            gr_halo_layers_find(&p->shared->transpose.layers, k * p->n_layers + layer, (enum gr_direction)direction);
    for (int k = 0; k < 3; k++) {
        if (kept[k] == NULL) continue;
        if (kept[k]->history.age > ages.last) ages.last = kept[k]->history.age;
        if (kept[k]->history.oldest > ages.most) ages.most = kept[k]->history.oldest;
    }
    return ages;
}

static void add_seconds(const struct gr_messages *messages, const struct gr_halo_layers *layers, graft_traffic *traffic)
{
    gr_messages_add_seconds(messages, &traffic->wait_seconds, &traffic->exchange_seconds);
    gr_halo_layers_add_seconds(layers, &traffic->wait_seconds, &traffic->exchange_seconds);
}

int32_t gr_traffic_of(const struct gr_partition *p, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    graft_graph_info graph = { .size = sizeof graph };
    struct gr_flow   flow;
    int32_t          rc = GRAFT_OK;

    GR_TRY(gr_graph_info(p->over, p->share, rank, &graph, error));
    flow = gr_traffic_flow(p, gr_traffic_whole(p), rank);
    traffic->rank = rank;
    traffic->cut_edges = graph.n_cut;
    traffic->halo_rows = flow.in;
    traffic->halo_rows_if_post = flow.if_post;
    for (int32_t i = 0; i <= slots_of(p); i++) add_bytes(p, i, rank, traffic);
    add_seconds(&p->halo_rows.messages, &p->halo_rows.layers, traffic);
    if (p->columns > 1) add_seconds(&p->shared->transpose.messages, &p->shared->transpose.layers, traffic);
    if (p->plan != NULL) add_seconds(&p->plan->messages, &p->plan->layers, traffic);
    for (int32_t l = 0; l < p->n_layers; l++) {
        const graft_plan *masked = p->masked[l].plan;

        if (masked != NULL) add_seconds(&masked->messages, &masked->layers, traffic);
    }
    for (int32_t i = 0; i < slots_of(p); i++) {
        const struct ages ages = ages_of(p, i);

        if (ages.most > traffic->staleness_max) traffic->staleness_max = ages.most;
    }
    traffic->epochs_synchronous = p->n_synchronous;
    if (traffic->exchange_seconds > 0)
        traffic->overlap_fraction = 1 - traffic->wait_seconds / traffic->exchange_seconds;
done:
    return rc;
}

static void add_sent(const struct gr_partition *p, int32_t slot, int32_t rank, graft_traffic_item *item)
{
    const struct gr_sent          *sent = &p->sent[slot];
    const struct gr_flow           flow = flow_of(p, slot, rank);
    const struct gr_row_bits_flow  widths = gr_traffic_adapted(p, sent->adapted, rank);
    const struct gr_transpose_flow turned = turned_of(p, slot, rank);
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

static int32_t check_item(const struct gr_partition *p, int32_t index, graft_error *error)
{
    if (index >= 0 && index < slots_of(p)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no traffic item %d, there are %d", index, slots_of(p));
}

int32_t gr_traffic_item(const struct gr_partition *p, int32_t rank, int32_t index, graft_traffic_item *item,
                        graft_error *error)
{
    graft_graph_info            graph = { .size = sizeof graph };
    const struct gr_send_stats *pairs;
    const struct gr_halo_layer *layer;
    struct ages                 ages;
    int32_t                     rc = GRAFT_OK;

    GR_TRY(gr_graph_info(p->over, p->share, rank, &graph, error));
    GR_TRY(check_item(p, index, error));
    pairs = p->pairs + (int64_t)index * p->comm->n_ranks;
    layer = layer_of(p, index);
    item->rank = rank;
    item->layer = index / GR_DIRECTIONS;
    item->pass = index % GR_DIRECTIONS;
    add_sent(p, index, rank, item);
    if (index == 0) add_sent(p, slots_of(p), rank, item);
    for (int32_t q = 0; q < p->comm->n_ranks && rank == p->comm->rank; q++) {
        item->sampled_rows += pairs[q].sampled_rows;
        item->nmse += pairs[q].nmse;
        item->expected += pairs[q].expected;
    }
    item->expected_error = layer != NULL ? layer->bits.expected_error : 0;
    ages = ages_of(p, index);
    item->staleness = ages.last;
    item->staleness_max = ages.most;
done:
    return rc;
}

int32_t gr_traffic_pair(const struct gr_partition *p, int32_t peer, int32_t index, graft_traffic_pair *pair,
                        graft_error *error)
{
    const struct gr_send_stats *sent;
    int32_t                     rc = GRAFT_OK;

    if (peer < 0 || peer >= p->comm->n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected 0 to %d", peer, p->comm->n_ranks - 1);
    GR_TRY(check_item(p, index, error));
    sent = p->pairs + (int64_t)index * p->comm->n_ranks + peer;
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
done:
    return rc;
}
