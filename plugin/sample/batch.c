/* The blocks of one batch: for each layer, from the last one to the first, count the draws, draw, and number the new
 * vertices. Vertices are numbered in the order of the first edge that needs them, also with several threads: each place
 * keeps the first edge that needs it, and the vertices of these edges are numbered in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/subgraph.h"

#include "base/parallel.h"
#include "base/random.h"

#include <string.h>

enum { ROWS_OF_CHUNK = 256, EDGES_OF_CHUNK = 4096, LOOK_AHEAD = 16, EDGES_AT_A_TIME = 64 };
/* The fewest threads that number vertices together, which takes more than twice the work of one thread. */
enum { TOGETHER_FROM = 3 };

/* The layer being made. */
struct making {
    const graft_context           *context;
    const struct gr_batch_request *request;
    struct gr_batch               *batch;
    struct gr_sampled_layer       *layer;
    struct gr_sample_work         *work;
    int64_t                        fanout;
    uint64_t                       key;
    int64_t                        needs; /* of space, at most */
    struct gr_team                 team;
};

/* Grow to at least `wanted` elements; the first `kept` elements stay. */
static int32_t grow_array(const graft_context *context, void **array, int64_t *capacity, int64_t wanted, int64_t kept,
                          uint64_t bytes, graft_error *error)
{
    const int64_t more = wanted + wanted / 4 + 64;
    void         *made;

    if (wanted <= *capacity && *array != NULL) return GRAFT_OK;
    made = gr_new(context, more, bytes, "batch", error);
    if (made == NULL) return GRAFT_ERR_NOMEM;
    if (kept > 0) memcpy(made, *array, (size_t)kept * bytes);
    gr_free(context, *array);
    *array = made;
    *capacity = more;
    return GRAFT_OK;
}

static int32_t grow_pair(const graft_context *context, struct gr_sampled_layer *layer, int64_t edges,
                         graft_error *error)
{
    int64_t columns = layer->edges;
    int32_t rc = GRAFT_OK;

    GR_TRY(grow_array(context, (void **)&layer->col, &columns, edges, 0, sizeof *layer->col, error));
    GR_TRY(grow_array(context, (void **)&layer->entry, &layer->edges, edges, 0, sizeof *layer->entry, error));
done:
    if (rc < 0) { /* both have `edges` elements, or neither exists */
        gr_free(context, layer->col);
        gr_free(context, layer->entry);
        layer->col = NULL;
        layer->entry = NULL;
        layer->edges = 0;
    }
    return rc;
}

int32_t gr_batch_reserve(const graft_context *context, struct gr_batch *batch, int64_t vertices, graft_error *error)
{
    return grow_array(context, (void **)&batch->vertex, &batch->capacity, vertices, batch->n_vertices,
                      sizeof *batch->vertex, error);
}

int32_t gr_batch_reserve_rows(const graft_context *context, struct gr_sampled_layer *layer, int64_t rows,
                              graft_error *error)
{
    return grow_array(context, (void **)&layer->row_ptr, &layer->rows, rows + 1, 0, sizeof *layer->row_ptr, error);
}

int32_t gr_batch_reserve_edges(const graft_context *context, struct gr_sampled_layer *layer, graft_error *error)
{
    if (layer->n_edges >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_NOMEM, "a batch would have %lld edges in a layer, more than 2147483646",
                       (long long)layer->n_edges);
    return grow_pair(context, layer, layer->n_edges, error);
}

int32_t gr_batch_reserve_weights(const graft_context *context, struct gr_batch *batch, graft_error *error)
{
    const int32_t rc = grow_array(context, (void **)&batch->weight, &batch->weights, batch->n_vertices, 0,
                                  sizeof *batch->weight, error);

    if (rc < 0) return rc;
    return grow_array(context, (void **)&batch->edge_weight, &batch->edge_weights, batch->layers[0].n_edges, 0,
                      sizeof *batch->edge_weight, error);
}

static void count_draws(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making       *m = arg;
    const struct gr_draw_rule *rule = m->request->rule;
    const int64_t             *vertex = m->batch->vertex;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        if (i + LOOK_AHEAD < end) __builtin_prefetch(&rule->graph->row_ptr[vertex[i + LOOK_AHEAD]]);
        m->layer->row_ptr[i + 1] = gr_draw_count(rule, m->fanout, vertex[i]);
    }
}

/* The source vertices of entries. */
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

/* The entries of some rows, and their source vertices. */
static void draw_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making       *m = arg;
    const struct gr_draw_rule *rule = m->request->rule;
    struct gr_sampled_layer   *layer = m->layer;
    struct gr_draw_space      *space = &m->work->space[m->work->threads > 1 ? omp_get_thread_num() : 0];
    const int64_t              first = layer->row_ptr[begin];
    int64_t                    begin_alone = begin;
    const struct gr_draw_rows  rows = { .rule = rule,
                                        .key = m->key,
                                        .fanout = m->fanout,
                                        .vertex = m->batch->vertex,
                                        .row_ptr = layer->row_ptr,
                                        .entry = layer->entry };

    (void)chunk;
    if (rule->draw_rows != NULL && m->fanout >= 0 && m->fanout <= GR_DRAWN_TOGETHER) {
        rule->draw_rows(&rows, begin, end);
        begin_alone = end;
    }
    for (int64_t i = begin_alone; i < end; i++) {
        int64_t *entry = layer->entry + layer->row_ptr[i];

        if (i + LOOK_AHEAD < end) __builtin_prefetch(&rule->graph->row_ptr[m->batch->vertex[i + LOOK_AHEAD]]);
        gr_draw_entries(rule, space, m->key, m->fanout, m->batch->vertex[i], entry);
    }
    for (int64_t e = first; rule->shift != NULL && e < layer->row_ptr[end]; e++)
        layer->entry[e] = gr_draw_shifted(rule, layer->entry[e]);
    read_columns(rule->graph, layer->entry + first, layer->col + first, layer->row_ptr[end] - first);
}

/* One thread, by the array: numbers in the order of the edges, some edges at a time. Edges whose vertices have no
 * number are found first, without branches, because branches would be mispredicted; a vertex may be found twice. */
static void number_by_array(struct making *m)
{
    struct gr_sampled_layer *layer = m->layer;
    _Atomic int32_t         *place = m->work->numbering.number;
    int64_t                 *vertex = m->batch->vertex;
    int32_t                  next = (int32_t)m->batch->n_vertices;

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
    m->batch->n_vertices = next;
}

/* One thread, by the table. */
static void number_by_table(struct making *m)
{
    struct gr_numbering     *numbering = &m->work->numbering;
    struct gr_sampled_layer *layer = m->layer;
    const int64_t            n_edges = layer->n_edges;
    int32_t                  next = (int32_t)m->batch->n_vertices;

    for (int64_t e = 0; e < n_edges; e++) {
        const int32_t v = layer->col[e];
        int64_t       at;
        int32_t       there;

        if (e + LOOK_AHEAD < n_edges) {
            at = gr_numbering_home(numbering, layer->col[e + LOOK_AHEAD]);
            __builtin_prefetch((const void *)&numbering->key[at], 1);
            __builtin_prefetch((const void *)&numbering->number[at], 1);
        }
        at = gr_numbering_slot_alone(numbering, v);
        there = atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
        layer->col[e] = there == GR_NO_NUMBER ? next : there;
        atomic_store_explicit(&numbering->number[at], layer->col[e], memory_order_relaxed);
        m->batch->vertex[next] = v;
        next += there == GR_NO_NUMBER;
    }
    m->batch->n_vertices = next;
}

/* Edge e as a value of its place: larger for earlier edges, and less than any number. */
static int32_t mark_of(int64_t e)
{
    return (int32_t)(-1 - e);
}

static _Atomic int32_t *place_of(const struct making *m, int64_t e)
{
    struct gr_numbering *numbering = &m->work->numbering;

    return &numbering->number[gr_numbering_slot(numbering, m->layer->col[e])];
}

static int is_first(const struct making *m, int64_t e)
{
    return atomic_load_explicit(place_of(m, e), memory_order_relaxed) == mark_of(e);
}

static void mark_places(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making *m = arg;

    (void)chunk;
    for (int64_t e = begin; e < end; e++) {
        _Atomic int32_t *place = place_of(m, e);
        int32_t          there = atomic_load_explicit(place, memory_order_relaxed);

        while (there < mark_of(e) && !atomic_compare_exchange_weak_explicit(
                                         place, &there, mark_of(e), memory_order_relaxed, memory_order_relaxed)) {
        }
    }
}

static void count_first(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making *m = arg;
    int64_t              count = 0;

    for (int64_t e = begin; e < end; e++) count += is_first(m, e);
    m->work->first[chunk] = count;
}

static void number_first(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making *m = arg;
    int64_t              number = m->batch->n_vertices + m->work->first[chunk];

    for (int64_t e = begin; e < end; e++) {
        if (!is_first(m, e)) continue;
        m->batch->vertex[number] = m->layer->col[e];
        atomic_store_explicit(place_of(m, e), (int32_t)number, memory_order_relaxed);
        number++;
    }
}

static void replace_columns(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct making *m = arg;

    (void)chunk;
    for (int64_t e = begin; e < end; e++) m->layer->col[e] = atomic_load_explicit(place_of(m, e), memory_order_relaxed);
}

static int32_t number_together(struct making *m, graft_error *error)
{
    const int64_t edges = m->layer->n_edges, chunks = gr_chunk_count(edges, EDGES_OF_CHUNK);
    int64_t       sum = 0;
    const int32_t rc =
        grow_array(m->context, (void **)&m->work->first, &m->work->chunks, chunks, 0, sizeof *m->work->first, error);

    if (rc < 0) return rc;
    gr_parallel_chunks(m->team, 8 * edges, edges, EDGES_OF_CHUNK, mark_places, m);
    gr_parallel_chunks(m->team, 8 * edges, edges, EDGES_OF_CHUNK, count_first, m);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const int64_t count = m->work->first[chunk];
        m->work->first[chunk] = sum;
        sum += count;
    }
    gr_parallel_chunks(m->team, 8 * edges, edges, EDGES_OF_CHUNK, number_first, m);
    gr_parallel_chunks(m->team, 8 * edges, edges, EDGES_OF_CHUNK, replace_columns, m);
    m->batch->n_vertices += sum;
    return GRAFT_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The row pointers of a layer, and memory for its edges and for all their source vertices. */
static int32_t count_layer(struct making *m, graft_error *error)
{
    struct gr_sampled_layer *layer = m->layer;
    struct gr_batch         *batch = m->batch;
    const int64_t            n_dst = batch->n_vertices;
    const int                each = gr_draw_needs_degrees(m->request->rule);
    int32_t                  rc = GRAFT_OK;

    layer->n_dst = n_dst;
    GR_TRY(gr_batch_reserve_rows(m->context, layer, n_dst, error));
    layer->row_ptr[0] = 0;
    gr_parallel_chunks(m->team, 16 * n_dst, n_dst, ROWS_OF_CHUNK, count_draws, m);
    for (int64_t i = 0; i < n_dst; i++) {
        layer->row_ptr[i + 1] += layer->row_ptr[i];
        if (each) m->needs = larger(m->needs, gr_draw_needs(m->request->rule, m->fanout, batch->vertex[i]));
    }
    if (!each) m->needs = gr_draw_needs(m->request->rule, m->fanout, 0);
    layer->n_edges = layer->row_ptr[n_dst];
    GR_TRY(gr_batch_reserve_edges(m->context, layer, error));
    GR_TRY(grow_array(m->context, (void **)&batch->vertex, &batch->capacity, n_dst + layer->n_edges + 1, n_dst,
                      sizeof *batch->vertex, error));
    GR_TRY(gr_numbering_reserve(m->context, &m->work->numbering, n_dst + layer->n_edges, error));
done:
    return rc;
}

static int32_t grow_spaces(struct making *m, graft_error *error)
{
    for (int t = 0; t < m->work->threads; t++) {
        struct gr_draw_space *space = &m->work->space[t];
        int64_t               capacity = space->capacity;
        int32_t rc = grow_array(m->context, (void **)&space->weight, &capacity, m->needs, 0, sizeof(double), error);

        if (rc == GRAFT_OK)
            rc = grow_array(m->context, (void **)&space->entry, &space->capacity, m->needs, 0, sizeof(int64_t), error);
        if (rc < 0) return rc;
    }
    return GRAFT_OK;
}

static int32_t make_layer(struct making *m, graft_error *error)
{
    const int64_t n_dst = m->batch->n_vertices;
    int32_t       rc = GRAFT_OK;

    m->needs = 0;
    GR_TRY(count_layer(m, error));
    GR_TRY(grow_spaces(m, error));
    gr_parallel_chunks(m->team, 64 * m->layer->n_edges, n_dst, ROWS_OF_CHUNK, draw_rows, m);
    if (gr_threads_worth(m->team.threads, 8 * m->layer->n_edges) >= TOGETHER_FROM) GR_TRY(number_together(m, error));
    else if (m->work->numbering.key == NULL) number_by_array(m);
    else number_by_table(m);
    m->layer->n_src = m->batch->n_vertices;
done:
    return rc;
}

static int32_t take_seeds(struct making *m, graft_error *error)
{
    const struct gr_batch_request *request = m->request;
    struct gr_batch               *batch = m->batch;
    struct gr_numbering           *numbering = &m->work->numbering;
    int32_t                        rc = GRAFT_OK;

    GR_TRY(grow_array(m->context, (void **)&batch->vertex, &batch->capacity, request->n_seeds, 0, sizeof *batch->vertex,
                      error));
    GR_TRY(gr_numbering_reserve(m->context, numbering, request->n_seeds, error));
    for (int64_t i = 0; i < request->n_seeds; i++) {
        const int64_t v = request->seeds[i];
        int64_t       at;

        if (v < 0 || v >= numbering->n)
            return gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, but the graph has %lld vertices", (long long)i,
                           (long long)v, (long long)numbering->n);
        at = gr_numbering_slot(numbering, (int32_t)v);
        if (atomic_load_explicit(&numbering->number[at], memory_order_relaxed) != GR_NO_NUMBER)
            return gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] and seeds[%d] are both %lld", (long long)i,
                           (int)atomic_load_explicit(&numbering->number[at], memory_order_relaxed), (long long)v);
        atomic_store_explicit(&numbering->number[at], (int32_t)i, memory_order_relaxed);
        batch->vertex[batch->n_vertices++] = v;
    }
done:
    return rc;
}

int32_t gr_batch_make(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                      const struct gr_batch_request *request, graft_error *error)
{
    struct making m = {
        .context = context, .request = request, .batch = batch, .work = work, .team = { .threads = work->threads }
    };
    const struct gr_subgraph made = { context, request, batch, work };
    int32_t                  rc;

    batch->epoch = request->epoch;
    batch->index = request->index;
    batch->n_layers = request->n_layers;
    batch->n_seeds = request->n_seeds;
    batch->n_vertices = 0;
    batch->is_subgraph = request->subgraphs != NULL;
    batch->is_weighted = 0;
    rc = take_seeds(&m, error);
    if (batch->is_subgraph) {
        if (rc == GRAFT_OK) rc = gr_subgraph_make(&made, error);
        goto done;
    }
    for (int32_t l = request->n_layers - 1; l >= 0; l--) {
        m.layer = &batch->layers[l];
        m.fanout = request->fanout[l];
        m.key = gr_random_key(request->seed, GR_RANDOM_SAMPLE, (uint64_t)request->epoch,
                              (uint64_t)request->index * GR_SAMPLE_LAYERS_MAX + (uint64_t)l);
        if (rc == GRAFT_OK) rc = make_layer(&m, error);
        if (request->extension != NULL && l > request->extension->first)
            rc = request->extension->extend(request->extension->arg, &made, l, rc, error);
        GR_TRY(rc);
    }
done:
    gr_numbering_clear(&work->numbering, batch->vertex, batch->n_vertices);
    if (rc < 0) batch->n_vertices = 0;
    return rc;
}

int64_t gr_batch_edges(const struct gr_batch *batch)
{
    int64_t edges = 0;

    for (int32_t l = 0; l < batch->n_layers; l++) edges += gr_batch_layer(batch, l).n_edges;
    return edges;
}

void gr_batch_fini(const graft_context *context, struct gr_batch *batch)
{
    for (int32_t l = 0; l < GR_SAMPLE_LAYERS_MAX; l++) {
        gr_free(context, batch->layers[l].row_ptr);
        gr_free(context, batch->layers[l].col);
        gr_free(context, batch->layers[l].entry);
    }
    gr_free(context, batch->vertex);
    gr_free(context, batch->weight);
    gr_free(context, batch->edge_weight);
}

int64_t gr_batch_bytes(const struct gr_batch *batch)
{
    int64_t bytes = gr_bytes(batch->vertex) + gr_bytes(batch->weight) + gr_bytes(batch->edge_weight);

    for (int32_t l = 0; l < GR_SAMPLE_LAYERS_MAX; l++)
        bytes += gr_bytes(batch->layers[l].row_ptr) + gr_bytes(batch->layers[l].col) + gr_bytes(batch->layers[l].entry);
    return bytes;
}

int32_t gr_sample_work_init(const graft_context *context, struct gr_sample_work *work, int64_t n, int threads,
                            graft_error *error)
{
    int32_t rc = GRAFT_OK;

    work->numbering.n = n;
    work->threads = threads;
    GR_TRY(GR_NEW(context, work->space, threads, error));
done:
    return rc;
}

void gr_sample_work_fini(const graft_context *context, struct gr_sample_work *work)
{
    for (int t = 0; work->space != NULL && t < work->threads; t++) {
        gr_free(context, work->space[t].weight);
        gr_free(context, work->space[t].entry);
    }
    gr_free(context, work->space);
    gr_free(context, work->first);
    gr_numbering_fini(context, &work->numbering);
}

int64_t gr_sample_work_bytes(const struct gr_sample_work *work)
{
    int64_t bytes = gr_bytes(work->space) + gr_bytes(work->first) + gr_numbering_bytes(&work->numbering);

    for (int t = 0; t < work->threads; t++) bytes += gr_bytes(work->space[t].weight) + gr_bytes(work->space[t].entry);
    return bytes;
}
