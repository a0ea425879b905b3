/* What a trainer over ranks sends, counted layer by layer. Every rank knows how many rows each of them gets and gives
 * in an exchange, and all exchange rows of the same bytes, so that no counting needs a message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "model/model.h"

#include <stdio.h>

/* Layers in both directions. */
static int32_t slots_of(const graft_trainer *t)
{
    return t->config.n_layers * GR_DIRECTIONS;
}

void gr_traffic_begin(const graft_trainer *t)
{
    if (t->over == NULL) return;
    for (int32_t i = 0; i <= slots_of(t); i++) t->ranks.sent[i] = (struct gr_sent){ .loss = t->ranks.sent[i].loss };
}

int64_t gr_ranks_row_bytes(const struct gr_wire *wire, int32_t pass, int64_t width, int32_t exact)
{
    const struct gr_wire_pass on_wire = { .direction = pass, .exact = exact, .width = width, .dtype = GRAFT_F32 };

    return gr_wire_row_bytes(wire, &on_wire);
}

void gr_traffic_count(const graft_trainer *t, const struct gr_flow *flow, int32_t pass, int64_t row_bytes)
{
    struct gr_sent *sent = &t->ranks.sent[t->layer_now * GR_DIRECTIONS + pass];

    if (t->pass_now == GRAFT_PASS_EVALUATION) return;
    /* Features that are gathered once are gathered for all rows, where labels beside them are for those of a step. */
    if (sent->flow != NULL && sent->flow != flow) sent = &t->ranks.sent[slots_of(t)];
    sent->flow = flow;
    sent->exchanges++;
    sent->row_bytes += row_bytes;
}

void gr_traffic_lose(const graft_trainer *t, int32_t pass, const struct gr_wire *wire)
{
    struct gr_wire_loss *loss = &t->ranks.sent[t->layer_now * GR_DIRECTIONS + pass].loss;

    if (t->pass_now == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < wire->exchange.comm->n_ranks; q++) {
        loss->rows += wire->loss[q].rows;
        loss->nmse += wire->loss[q].nmse;
        loss->bound += wire->loss[q].bound;
    }
}

/* Rows of an exchange for all vertices, forward; NULL: mlp has none. */
static const struct gr_flow *whole_flow(const graft_trainer *t)
{
    return t->ranks.plan != NULL ? t->ranks.plan->flow : t->ranks.halo_rows.flow;
}

/* Of one rank, or of all. */
static struct gr_flow flow_of(const graft_trainer *t, const struct gr_flow *flow, int32_t rank)
{
    struct gr_flow sum = { 0 };

    for (int32_t p = 0; flow != NULL && p < t->over->comm->n_ranks; p++) {
        if (rank >= 0 && rank != p) continue;
        sum.in += flow[p].in;
        sum.out += flow[p].out;
        sum.if_post += flow[p].if_post;
        sum.messages_in += flow[p].messages_in;
        sum.messages_out += flow[p].messages_out;
    }
    return sum;
}

static int32_t check_ranks(const graft_trainer *t, graft_error *error)
{
    if (t->over != NULL) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "the trainer has all vertices in one process, and no messages");
}

static void add_seconds(const struct gr_wire *wire, const struct gr_lanes *lanes, graft_traffic *traffic)
{
    gr_wire_seconds(wire, &traffic->wait_seconds, &traffic->exchange_seconds);
    gr_lanes_seconds(lanes, &traffic->wait_seconds, &traffic->exchange_seconds);
}

int32_t gr_trainer_traffic(const graft_trainer *t, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    const struct gr_ranks *r = &t->ranks;
    graft_graph_info       graph = { .size = sizeof graph };
    struct gr_flow         flow;
    int32_t                rc = GRAFT_OK;

    GR_TRY(check_ranks(t, error));
    GR_TRY(gr_graph_info(t->over, r->share, rank, &graph, error));
    flow = flow_of(t, whole_flow(t), rank);
    traffic->rank = rank;
    traffic->cut_edges = graph.n_cut;
    traffic->halo_rows = flow.in;
    traffic->halo_rows_if_post = flow.if_post;
    for (int32_t i = 0; i <= slots_of(t); i++) {
        flow = flow_of(t, r->sent[i].flow, rank);
        traffic->halo_bytes_per_epoch += flow.in * r->sent[i].row_bytes;
        traffic->halo_bytes_if_post += flow.if_post * r->sent[i].row_bytes;
    }
    add_seconds(&r->halo_rows.wire, &r->halo_rows.lanes, traffic);
    if (r->plan != NULL) add_seconds(&r->plan->wire, &r->plan->lanes, traffic);
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        const graft_plan *masked = r->masked[l].plan;

        if (masked != NULL) add_seconds(&masked->wire, &masked->lanes, traffic);
    }
    for (int32_t i = 0; i < slots_of(t); i++) {
        const struct gr_lane *lane = gr_ranks_lane(t, i / GR_DIRECTIONS, i % GR_DIRECTIONS);

        flow = flow_of(t, whole_flow(t), -1);
        if (lane != NULL && flow.in > 0 && lane->oldest > traffic->stale_epochs_max)
            traffic->stale_epochs_max = lane->oldest;
    }
    if (traffic->exchange_seconds > 0)
        traffic->overlap_fraction = 1 - traffic->wait_seconds / traffic->exchange_seconds;
done:
    return rc;
}

/* What a rank gets and gives in exchanges forward, or backward where it is the other way round. */
static void add_sent(const graft_trainer *t, const struct gr_sent *sent, int32_t rank, graft_traffic_item *item)
{
    struct gr_flow flow = flow_of(t, sent->flow, rank);

    if (item->pass == GRAFT_PASS_BACKWARD) {
        flow = (struct gr_flow){
            .in = flow.out, .out = flow.in, .messages_in = flow.messages_out, .messages_out = flow.messages_in
        };
    }
    item->exchanges += sent->exchanges;
    item->rows += flow.in * sent->exchanges;
    item->rows_sent += flow.out * sent->exchanges;
    item->bytes += flow.in * sent->row_bytes;
    item->bytes_sent += flow.out * sent->row_bytes;
    item->messages += flow.messages_in * sent->exchanges;
    item->messages_sent += flow.messages_out * sent->exchanges;
}

int32_t gr_trainer_traffic_item(const graft_trainer *t, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error)
{
    graft_graph_info graph = { .size = sizeof graph };
    int32_t          rc = GRAFT_OK;

    GR_TRY(check_ranks(t, error));
    GR_TRY(gr_graph_info(t->over, t->ranks.share, rank, &graph, error));
    if (index < 0 || index >= slots_of(t))
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no traffic item %d, there are %d", index, slots_of(t));
    item->rank = rank;
    item->layer = index / GR_DIRECTIONS;
    item->pass = index % GR_DIRECTIONS;
    add_sent(t, &t->ranks.sent[index], rank, item);
    if (index == 0) add_sent(t, &t->ranks.sent[slots_of(t)], rank, item);
    if (rank == t->over->comm->rank) {
        item->looked_at = t->ranks.sent[index].loss.rows;
        item->nmse = t->ranks.sent[index].loss.nmse;
        item->bound = t->ranks.sent[index].loss.bound;
    }
done:
    return rc;
}

/* Whether layer l gathers in a step whose arrays it shares with layers behind it, so that the backward pass does it
 * again: with recompute. */
static int gathers_again(const graft_trainer *t, int32_t l)
{
    const struct gr_layer *layer = &t->layers[l];
    const int in_z = t->config.kind != GR_MODEL_GAT && t->config.kind != GR_MODEL_GIN && !layer->aggregate_first;
    const enum gr_step step = in_z ? GR_STEP_Z : GR_STEP_BEGIN;

    if (!layer->shares[step]) return 0;
    for (int32_t behind = l + 1; behind < t->config.n_layers; behind++)
        if (t->layers[behind].shares[step]) return 1;
    return 0;
}

/* Bytes that a row has in layer l in one direction of a step, when what is aggregated once is there. */
static int64_t row_bytes(const graft_trainer *t, int32_t l, int32_t pass)
{
    const struct gr_layer *layer = &t->layers[l];
    const int              is_gat = t->config.kind == GR_MODEL_GAT;
    const struct gr_wire  *wire = t->ranks.plan != NULL ? &t->ranks.plan->wire : &t->ranks.halo_rows.wire;
    const int              first = l == 0 && layer->aggregate_first && !is_gat;
    const int64_t          labels = first && gr_propagates(t) ? t->data.n_classes : 0;
    const int64_t          width = is_gat ? layer->wide : layer->aggregate_first ? layer->in : layer->out;
    int64_t                bytes;

    if (first && pass == GRAFT_PASS_BACKWARD) return 0;
    bytes = first && gr_gathers_once(t) ? 0 : gr_ranks_row_bytes(wire, pass, width, 0);
    if (pass == GRAFT_PASS_FORWARD && gathers_again(t, l)) bytes *= 2;
    return bytes + (labels > 0 ? gr_ranks_row_bytes(wire, pass, labels, 0) : 0);
}

static void line(const graft_trainer *t, int32_t rank, struct gr_text *text)
{
    for (int32_t i = 0; i < slots_of(t); i++) {
        const graft_plan    *masked = t->layers[i / GR_DIRECTIONS].masked_plan;
        const struct gr_flow flow = flow_of(t, masked != NULL ? masked->flow : whole_flow(t), rank);
        const int32_t        pass = i % GR_DIRECTIONS;
        const int64_t        rows = pass == GRAFT_PASS_FORWARD ? flow.in : flow.out;

        gr_text_add(text, " %12lld", (long long)(rows * row_bytes(t, i / GR_DIRECTIONS, pass)));
    }
    gr_text_add(text, "\n");
}

void gr_traffic_explain(const graft_trainer *t, struct gr_text *text)
{
    if (t->config.kind == GR_MODEL_MLP) return;
    gr_text_add(text, "bytes of rows that come to each rank in a step, by layer, forward and backward\nrank  ");
    for (int32_t l = 0; l < t->config.n_layers; l++) gr_text_add(text, " %10d f %10d b", l, l);
    gr_text_add(text, "\n");
    for (int32_t p = 0; p < t->over->comm->n_ranks; p++) {
        gr_text_add(text, "%-6d", p);
        line(t, p, text);
    }
    gr_text_add(text, "all   ");
    line(t, -1, text);
}
