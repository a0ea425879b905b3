/* Samples in-neighbours of each destination: for each layer, counts the draws, draws, and numbers the new vertices.
 * Vertices are numbered in the order of the first edge that needs them, also with several threads: the slot of each
 * vertex records the first edge that needs it, and then the vertices of these edges are numbered in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/parallel.h"

enum { ROWS_OF_CHUNK = 256, EDGES_OF_CHUNK = 4096, LOOK_AHEAD = 16, EDGES_AT_A_TIME = 64 };
/* The fewest threads that number vertices together, which takes more than twice the work of one thread. */
enum { TOGETHER_FROM = 3 };

/* The layer being made. */
struct drawing {
    const struct gr_making    *making;
    const struct gr_draw_rule *rule;
    struct gr_batch           *batch;
    struct gr_sampled_layer   *layer;
    struct gr_sample_work     *work;
    int64_t                    fanout;
    uint64_t                   key;
    struct gr_team             team;
};

static void count_draws(void *arg, int64_t begin, int64_t end)
{
    const struct drawing      *d = arg;
    const struct gr_draw_rule *rule = d->rule;
    const int64_t             *vertex = d->batch->vertex;

    for (int64_t i = begin; i < end; i++) {
        if (i + LOOK_AHEAD < end) __builtin_prefetch(&rule->graph->row_ptr[vertex[i + LOOK_AHEAD]]);
        d->layer->row_ptr[i + 1] = gr_sample_draw_count(rule, d->fanout, vertex[i]);
    }
}

/* Read the source vertices of entries. */
static void read_columns(const graft_csr *graph, const int64_t *entry, int32_t *col, int64_t count)
{
    const int32_t *narrow = graph->col_idx;
    const int64_t *wide = graph->col_idx;

    if (graph->index_type == GRAFT_I32) {
        for (int64_t e = 0; e < count; e++) __builtin_prefetch(&narrow[entry[e]]);
        for (int64_t e = 0; e < count; e++) col[e] = narrow[entry[e]];
    } else {
        for (int64_t e = 0; e < count; e++) __builtin_prefetch(&wide[entry[e]]);
        for (int64_t e = 0; e < count; e++) col[e] = (int32_t)wide[entry[e]];
    }
}

/* Draw the entries of rows begin .. end-1, and read their source vertices. */
static void draw_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct drawing      *d = arg;
    const struct gr_draw_rule *rule = d->rule;
    struct gr_sampled_layer   *layer = d->layer;
    struct gr_draw_space      *space = &d->work->space[d->work->threads > 1 ? omp_get_thread_num() : 0];
    const int64_t              first = layer->row_ptr[begin];
    int64_t                    begin_alone = begin;
    const struct gr_draw_rows  rows = { .rule = rule,
                                        .key = d->key,
                                        .fanout = d->fanout,
                                        .vertex = d->batch->vertex,
                                        .row_ptr = layer->row_ptr,
                                        .entry = layer->entry };

    (void)chunk;
    if (rule->draw_rows != NULL && d->fanout >= 0 && d->fanout <= GR_DRAWN_TOGETHER) {
        rule->draw_rows(&rows, begin, end);
        begin_alone = end;
    }
    for (int64_t i = begin_alone; i < end; i++) {
        int64_t *entry = layer->entry + layer->row_ptr[i];

        if (i + LOOK_AHEAD < end) __builtin_prefetch(&rule->graph->row_ptr[d->batch->vertex[i + LOOK_AHEAD]]);
        gr_sample_draw_entries(rule, space, d->key, d->fanout, d->batch->vertex[i], entry);
    }
    for (int64_t e = first; rule->shift != NULL && e < layer->row_ptr[end]; e++)
        layer->entry[e] = gr_sample_draw_shifted(rule, layer->entry[e]);
    read_columns(rule->graph, layer->entry + first, layer->col + first, layer->row_ptr[end] - first);
}

/* Number the vertices in one thread, with the array, in the order of the edges, some edges at a time. Edges whose
 * vertices have no number are found first, without branches, which would be mispredicted; a vertex may be found
 * twice. */
static void number_by_array(struct drawing *d)
{
    struct gr_sampled_layer *layer = d->layer;
    _Atomic int32_t         *place = d->work->numbering.number;
    int64_t                 *vertex = d->batch->vertex;
    int32_t                  next = (int32_t)d->batch->n_vertices;

    for (int64_t begin = 0; begin < layer->n_edges; begin += EDGES_AT_A_TIME) {
        const int64_t  left = layer->n_edges - begin, count = left < EDGES_AT_A_TIME ? left : EDGES_AT_A_TIME;
        const int64_t  ahead = left - count < EDGES_AT_A_TIME ? left - count : EDGES_AT_A_TIME;
        int32_t *const col = layer->col + begin;
        int32_t        without[EDGES_AT_A_TIME];
        int            n_without = 0;

        for (int64_t e = 0; e < ahead; e++) __builtin_prefetch((const void *)&place[col[count + e]], 1);
        for (int64_t e = 0; e < count; e++) {
            without[n_without] = col[e];
            n_without += atomic_load_explicit(&place[col[e]], memory_order_relaxed) == GR_NO_NUMBER;
        }
        for (int i = 0; i < n_without; i++) {
            const int32_t v = without[i];

            if (atomic_load_explicit(&place[v], memory_order_relaxed) != GR_NO_NUMBER) continue;
            vertex[next] = v;
            atomic_store_explicit(&place[v], next++, memory_order_relaxed);
        }
        for (int64_t e = 0; e < count; e++) col[e] = atomic_load_explicit(&place[col[e]], memory_order_relaxed);
    }
    d->batch->n_vertices = next;
}

/* Number the vertices in one thread, with the hash table. */
static void number_by_table(struct drawing *d)
{
    struct gr_numbering     *numbering = &d->work->numbering;
    struct gr_sampled_layer *layer = d->layer;
    const int64_t            n_edges = layer->n_edges;
    int32_t                  next = (int32_t)d->batch->n_vertices;

    for (int64_t e = 0; e < n_edges; e++) {
        const int32_t v = layer->col[e];
        int64_t       at;
        int32_t       there;

        if (e + LOOK_AHEAD < n_edges) {
            at = gr_sample_numbering_home(numbering, layer->col[e + LOOK_AHEAD]);
            __builtin_prefetch((const void *)&numbering->key[at], 1);
            __builtin_prefetch((const void *)&numbering->number[at], 1);
        }
        at = gr_sample_numbering_slot_alone(numbering, v);
        there = atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
        layer->col[e] = there == GR_NO_NUMBER ? next : there;
        atomic_store_explicit(&numbering->number[at], layer->col[e], memory_order_relaxed);
        d->batch->vertex[next] = v;
        next += there == GR_NO_NUMBER;
    }
    d->batch->n_vertices = next;
}

/* The value that marks a slot with edge e: larger for earlier edges, and less than any number of a vertex. */
static int32_t mark_of(int64_t e)
{
    return (int32_t)(-1 - e);
}

static _Atomic int32_t *place_of(const struct drawing *d, int64_t e)
{
    struct gr_numbering *numbering = &d->work->numbering;

    return &numbering->number[gr_sample_numbering_slot(numbering, d->layer->col[e])];
}

static int is_first(const struct drawing *d, int64_t e)
{
    return atomic_load_explicit(place_of(d, e), memory_order_relaxed) == mark_of(e);
}

static void mark_places(void *arg, int64_t begin, int64_t end)
{
    const struct drawing *d = arg;

    for (int64_t e = begin; e < end; e++) {
        _Atomic int32_t *place = place_of(d, e);
        int32_t          there = atomic_load_explicit(place, memory_order_relaxed);

        while (there < mark_of(e) && !atomic_compare_exchange_weak_explicit(
                                         place, &there, mark_of(e), memory_order_relaxed, memory_order_relaxed)) {
        }
    }
}

static void count_first(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct drawing *d = arg;
    int64_t               count = 0;

    for (int64_t e = begin; e < end; e++) count += is_first(d, e);
    d->work->first[chunk] = count;
}

static void number_first(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct drawing *d = arg;
    int64_t               number = d->batch->n_vertices + d->work->first[chunk];

    for (int64_t e = begin; e < end; e++) {
        if (!is_first(d, e)) continue;
        d->batch->vertex[number] = d->layer->col[e];
        atomic_store_explicit(place_of(d, e), (int32_t)number, memory_order_relaxed);
        number++;
    }
}

static void replace_columns(void *arg, int64_t begin, int64_t end)
{
    const struct drawing *d = arg;

    for (int64_t e = begin; e < end; e++) d->layer->col[e] = atomic_load_explicit(place_of(d, e), memory_order_relaxed);
}

static int32_t number_together(struct drawing *d, graft_error *error)
{
    const int64_t edges = d->layer->n_edges, chunks = gr_chunk_count(edges, EDGES_OF_CHUNK);
    int64_t       sum = 0;

    GR_TRY(gr_sample_grow(d->making->context, (void **)&d->work->first, &d->work->chunks, chunks, 0,
                          sizeof *d->work->first, error));
    gr_parallel_rows(d->team, 8 * edges, edges, EDGES_OF_CHUNK, mark_places, d);
    gr_parallel_chunks(d->team, 8 * edges, edges, EDGES_OF_CHUNK, count_first, d);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const int64_t count = d->work->first[chunk];
        d->work->first[chunk] = sum;
        sum += count;
    }
    gr_parallel_chunks(d->team, 8 * edges, edges, EDGES_OF_CHUNK, number_first, d);
    gr_parallel_rows(d->team, 8 * edges, edges, EDGES_OF_CHUNK, replace_columns, d);
    d->batch->n_vertices += sum;
    return GRAFT_OK;
}

/* Compute the row pointers of a layer, and reserve memory for its edges, their source vertices, and their draws. */
static int32_t count_layer(struct drawing *d, graft_error *error)
{
    struct gr_sampled_layer *layer = d->layer;
    const int64_t            n_dst = d->batch->n_vertices;
    const int                each = gr_sample_draw_needs_degrees(d->rule);
    int64_t                  needs = each ? 0 : gr_sample_draw_needs(d->rule, d->fanout, 0);

    layer->n_dst = n_dst;
    GR_TRY(gr_sample_making_reserve_rows(d->making, layer, n_dst, error));
    layer->row_ptr[0] = 0;
    gr_parallel_rows(d->team, 16 * n_dst, n_dst, ROWS_OF_CHUNK, count_draws, d);
    for (int64_t i = 0; i < n_dst; i++) {
        const int64_t mine = each ? gr_sample_draw_needs(d->rule, d->fanout, d->batch->vertex[i]) : 0;

        layer->row_ptr[i + 1] += layer->row_ptr[i];
        needs = mine > needs ? mine : needs;
    }
    layer->n_edges = layer->row_ptr[n_dst];
    GR_TRY(gr_sample_making_reserve_edges(d->making, layer, error));
    GR_TRY(gr_sample_making_reserve(d->making, layer->n_edges + 1, error));
    for (int t = 0; t < d->work->threads; t++)
        GR_TRY(gr_sample_grow_space(d->making->context, &d->work->space[t], needs, error));
    return GRAFT_OK;
}

int32_t gr_sample_making_draw_layer(const struct gr_making *making, int32_t l, int64_t fanout, graft_error *error)
{
    struct drawing d = { .making = making,
                         .rule = making->request->rule,
                         .batch = making->batch,
                         .layer = &making->batch->layers[l],
                         .work = making->work,
                         .fanout = fanout,
                         .key = gr_sample_making_key(making, l),
                         .team = { .threads = making->work->threads } };

    GR_TRY(count_layer(&d, error));
    gr_parallel_chunks(d.team, 64 * d.layer->n_edges, d.layer->n_dst, ROWS_OF_CHUNK, draw_rows, &d);
    if (gr_threads_worth(d.team.threads, 8 * d.layer->n_edges) >= TOGETHER_FROM) GR_TRY(number_together(&d, error));
    else if (d.work->numbering.key == NULL) number_by_array(&d);
    else number_by_table(&d);
    d.layer->n_src = d.batch->n_vertices;
    return GRAFT_OK;
}

static int32_t draw_neighbours(const struct gr_making *making, graft_error *error)
{
    const struct gr_batch_request *request = making->request;
    const struct gr_extension     *extension = request->extension;

    for (int32_t l = request->n_layers - 1; l >= 0; l--) {
        int32_t rc = gr_sample_making_draw_layer(making, l, request->fanout[l], error);

        if (extension != NULL && l > extension->first) rc = extension->extend(extension->arg, making, l, rc, error);
        GR_TRY(rc);
    }
    return GRAFT_OK;
}

const struct gr_sampler_kind gr_sample_neighbour = {
    .word = "neighbour",
    .draws = 1,
    .has_fanout = 1,
    .make = draw_neighbours,
};

int32_t gr_sample_all(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                      const graft_csr *graph, const int64_t *seeds, int64_t n_seeds, graft_error *error)
{
    const struct gr_draw_rule     rule = { .graph = graph };
    const struct gr_batch_request request = { .kind = &gr_sample_neighbour,
                                              .rule = &rule,
                                              .n_layers = 1,
                                              .fanout = { GR_ALL_NEIGHBOURS },
                                              .seeds = seeds,
                                              .n_seeds = n_seeds };

    return gr_sample_batch_make(context, batch, work, &request, error);
}
