/* Draws vertices for each layer (LADIES, Zou et al. 2019, algorithm 1), in proportion to the squared norms of the
 * columns of D^-1 A, restricted to the rows of the destinations: q_u is the sum of 1 / degree^2 over the edges from u
 * to destinations. Destinations themselves are sources in any case, so their edges stay, with weight 1.
 *
 * The paper draws with replacement. Here `fanout` different vertices are drawn by priority sampling (Duffield, Lund and
 * Thorup 2007): vertex u gets the key x_u / q_u, where x_u is uniform in (0, 1], and the vertices with the smallest
 * keys are kept. With the next key t as threshold, the weight of u is 1 / min(1, q_u t). The expectation of the weight
 * of each vertex, counted as 0 if it is not drawn, is exactly 1, so that weighted sums over rows have no bias. A
 * trainer then divides each row by the sum of its weights, as the paper does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

/* The candidates of a layer: in-neighbours of the destinations that are not destinations themselves. */
struct candidates {
    int64_t  first, count; /* the index of the first one in the batch, and the number of candidates */
    double  *q;            /* [count] q_u */
    double  *key;          /* [count] */
    double   threshold;    /* candidates with smaller keys are kept */
    int64_t *number;       /* [count] index in the batch of each drawn candidate; -1 for the others */
};

static void find_importance(const struct gr_sampled_layer *layer, struct candidates *c)
{
    for (int64_t j = 0; j < c->count; j++) c->q[j] = 0;
    for (int64_t i = 0; i < layer->n_dst; i++) {
        const int64_t degree = layer->row_ptr[i + 1] - layer->row_ptr[i];
        const double  share = degree > 0 ? 1 / ((double)degree * (double)degree) : 0;

        for (int64_t e = layer->row_ptr[i]; e < layer->row_ptr[i + 1]; e++)
            if (layer->col[e] >= c->first) c->q[layer->col[e] - c->first] += share;
    }
}

/* Find the smallest key that is not kept, with a heap of this key and all smaller ones. */
static void find_threshold(const struct gr_making *g, uint64_t draw, int64_t fanout, struct candidates *c, double *heap,
                           int64_t *entry)
{
    int64_t kept = 0;

    for (int64_t j = 0; j < c->count; j++) {
        const uint64_t name = gr_sample_draw_name(g->request->rule, g->batch->vertex[c->first + j]);

        c->key[j] = gr_sample_draw_unit(draw, name) / c->q[j];
        gr_sample_draw_keep_smallest(heap, entry, &kept, fanout + 1, c->key[j], j);
    }
    c->threshold = heap[0];
}

/* Number the drawn vertices, and forget the numbers of the others. */
static void number_drawn(const struct gr_making *g, struct candidates *c)
{
    struct gr_numbering *numbering = &g->work->numbering;
    int64_t             *vertex = g->batch->vertex, next = c->first;

    for (int64_t j = 0; j < c->count; j++) {
        const int64_t v = vertex[c->first + j], at = gr_sample_numbering_slot(numbering, (int32_t)v);

        c->number[j] = c->key[j] < c->threshold ? next : -1;
        atomic_store_explicit(&numbering->number[at], c->number[j] < 0 ? GR_NO_NUMBER : (int32_t)next,
                              memory_order_relaxed);
        if (c->number[j] >= 0) vertex[next++] = v;
    }
    g->batch->n_vertices = next;
}

static void keep_edges(struct gr_sampled_layer *layer, const struct candidates *c)
{
    int64_t at = 0, begin = 0;

    for (int64_t i = 0; i < layer->n_dst; i++) {
        const int64_t end = layer->row_ptr[i + 1];

        for (int64_t e = begin; e < end; e++) {
            const int64_t j = layer->col[e] - c->first;
            const double  p = j >= 0 ? c->q[j] * c->threshold : 1;

            if (j >= 0 && c->number[j] < 0) continue;
            layer->col[at] = j >= 0 ? (int32_t)c->number[j] : layer->col[e];
            layer->entry[at] = layer->entry[e];
            layer->weight[at++] = p < 1 ? (float)(1 / p) : 1;
        }
        layer->row_ptr[i + 1] = at;
        begin = end;
    }
    layer->n_edges = at;
}

static int32_t draw_vertices(const struct gr_making *g, int32_t l, graft_error *error)
{
    struct gr_sampled_layer *layer = &g->batch->layers[l];
    struct gr_draw_space    *space = &g->work->space[0];
    const int64_t            fanout = g->request->fanout[l];
    struct candidates        c = { .first = g->batch->n_vertices };

    GR_TRY(gr_sample_making_draw_layer(g, l, GR_ALL_NEIGHBOURS, error));
    GR_TRY(gr_sample_making_reserve_weights(g, layer, error));
    c.count = g->batch->n_vertices - c.first;
    if (fanout == GR_ALL_NEIGHBOURS || c.count <= fanout) {
        for (int64_t e = 0; e < layer->n_edges; e++) layer->weight[e] = 1;
        return GRAFT_OK;
    }
    GR_TRY(gr_sample_grow_space(g->context, space, 2 * c.count + fanout + 1, error));
    c.q = space->weight;
    c.key = c.q + c.count;
    c.number = space->entry;
    find_importance(layer, &c);
    find_threshold(g, gr_sample_making_key(g, l), fanout, &c, c.key + c.count, space->entry);
    number_drawn(g, &c);
    keep_edges(layer, &c);
    layer->n_src = g->batch->n_vertices;
    return GRAFT_OK;
}

static int32_t make_layers(const struct gr_making *g, graft_error *error)
{
    g->batch->weighs_edges = g->batch->normalizes = 1;
    for (int32_t l = g->request->n_layers - 1; l >= 0; l--) GR_TRY(draw_vertices(g, l, error));
    return GRAFT_OK;
}

static void explain_layers(const struct gr_batch_request *request, struct gr_text *text)
{
    gr_text_add(text, "ladies    ");
    for (int32_t l = 0; l < request->n_layers; l++)
        gr_text_add(text, "%s%lld", l > 0 ? "," : "", (long long)request->fanout[l]);
    gr_text_add(text, " vertices drawn for a layer; -1: all\n");
}

const struct gr_sampler_kind gr_sample_ladies = {
    .word = "ladies",
    .has_fanout = 1,
    .one_process = "a layer is drawn among the in-neighbours of all its destinations, which several ranks would have",
    .no_history =
        "a batch gathers from vertices that are drawn for each layer, and rows of its own vertices are renewed",
    .make = make_layers,
    .explain = explain_layers,
};
