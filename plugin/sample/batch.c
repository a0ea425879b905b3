/* One batch: its memory, its vertices, and the call that makes it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/parallel.h"
#include "base/random.h"

#include <string.h>

/* The number of slots for each vertex that may be looked up. */
enum { SPARSITY = 2 };
/* An array of up to SMALL_ARRAY numbers is preferred even if it is much larger than a table: reading it takes half the
 * time. */
enum { SMALL_ARRAY = 4 << 20, SPARSITY_OF_ARRAY = 32 };

static int64_t slots_for(const struct gr_numbering *numbering, int64_t most, int *hashed)
{
    int64_t slots = 1024;

    while (slots < SPARSITY * most) slots *= 2;
    *hashed = 2 * slots < numbering->n && (numbering->n > SMALL_ARRAY || SPARSITY_OF_ARRAY * slots < numbering->n);
    return *hashed ? slots : numbering->n;
}

static void numbering_fini(const graft_context *context, struct gr_numbering *numbering)
{
    gr_free(context, (void *)numbering->key);
    gr_free(context, (void *)numbering->number);
    numbering->key = numbering->number = NULL;
    numbering->slots = 0;
}

/* Arrays without numbers. */
static int32_t make_slots(const graft_context *context, struct gr_numbering *made, int hashed, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, made->number, made->slots, error));
    for (int64_t i = 0; i < made->slots; i++) atomic_init(&made->number[i], GR_NO_NUMBER);
    if (!hashed) goto done;
    GR_TRY_DONE(GR_NEW(context, made->key, made->slots, error));
    for (int64_t i = 0; i < made->slots; i++) atomic_init(&made->key[i], -1);
done:
    if (rc < 0) numbering_fini(context, made);
    return rc;
}

/* Make places for `most` vertices, and keep present numbers. If there is no memory nothing has changed. */
static int32_t reserve_numbering(const graft_context *context, struct gr_numbering *numbering, int64_t most,
                                 graft_error *error)
{
    struct gr_numbering made = { .n = numbering->n };
    int                 hashed;

    made.slots = slots_for(&made, most, &hashed);
    if (numbering->slots >= made.slots) return GRAFT_OK;
    GR_TRY(make_slots(context, &made, hashed, error));
    for (int64_t i = 0; i < numbering->slots; i++) { /* an array over all vertices is never replaced */
        const int32_t v = atomic_load_explicit(&numbering->key[i], memory_order_relaxed);

        if (v == -1) continue;
        atomic_store_explicit(&made.number[gr_sample_numbering_slot(&made, v)],
                              atomic_load_explicit(&numbering->number[i], memory_order_relaxed), memory_order_relaxed);
    }
    numbering_fini(context, numbering);
    *numbering = made;
    return GRAFT_OK;
}

/* Forget the numbers of these vertices, which must be all vertices that have been looked up. */
static void clear_numbering(struct gr_numbering *numbering, const int64_t *vertex, int64_t count)
{
    if (numbering->key == NULL) {
        for (int64_t i = 0; i < count; i++)
            atomic_store_explicit(&numbering->number[vertex[i]], GR_NO_NUMBER, memory_order_relaxed);
        return;
    }
    for (int64_t i = 0; i < numbering->slots; i++) {
        atomic_store_explicit(&numbering->number[i], GR_NO_NUMBER, memory_order_relaxed);
        atomic_store_explicit(&numbering->key[i], -1, memory_order_relaxed);
    }
}

int32_t gr_sample_grow(const graft_context *context, void **array, int64_t *capacity, int64_t wanted, int64_t kept,
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

/* Grow two arrays that share a capacity. If there is no memory for one, both are freed. */
static int32_t grow_pair(const graft_context *context, void *array[2], const uint64_t bytes[2], int64_t *capacity,
                         int64_t wanted, graft_error *error)
{
    int64_t first = *capacity;
    int32_t rc = gr_sample_grow(context, &array[0], &first, wanted, 0, bytes[0], error);

    if (rc == GRAFT_OK) rc = gr_sample_grow(context, &array[1], capacity, wanted, 0, bytes[1], error);
    if (rc == GRAFT_OK) return GRAFT_OK;
    for (int i = 0; i < 2; i++) {
        gr_free(context, array[i]);
        array[i] = NULL;
    }
    *capacity = 0;
    return rc;
}

int32_t gr_sample_making_reserve(const struct gr_making *g, int64_t most, graft_error *error)
{
    struct gr_batch *batch = g->batch;
    const int64_t    wanted = batch->n_vertices + most;

    GR_TRY(gr_sample_grow(g->context, (void **)&batch->vertex, &batch->capacity, wanted, batch->n_vertices,
                          sizeof *batch->vertex, error));
    return reserve_numbering(g->context, &g->work->numbering, wanted, error);
}

int32_t gr_sample_making_reserve_rows(const struct gr_making *g, struct gr_sampled_layer *layer, int64_t rows,
                                      graft_error *error)
{
    return gr_sample_grow(g->context, (void **)&layer->row_ptr, &layer->rows, rows + 1, 0, sizeof *layer->row_ptr,
                          error);
}

int32_t gr_sample_making_reserve_edges(const struct gr_making *g, struct gr_sampled_layer *layer, graft_error *error)
{
    void   *array[2] = { layer->col, layer->entry };
    int32_t rc;

    if (layer->n_edges >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_NOMEM, "a batch would have %lld edges in a layer, more than 2147483646",
                       (long long)layer->n_edges);
    rc = grow_pair(g->context, array, (const uint64_t[]){ sizeof *layer->col, sizeof *layer->entry }, &layer->edges,
                   layer->n_edges, error);
    layer->col = array[0];
    layer->entry = array[1];
    return rc;
}

int32_t gr_sample_making_reserve_weights(const struct gr_making *g, struct gr_sampled_layer *layer, graft_error *error)
{
    return gr_sample_grow(g->context, (void **)&layer->weight, &layer->weights, layer->n_edges, 0,
                          sizeof *layer->weight, error);
}

int32_t gr_sample_grow_space(const graft_context *context, struct gr_draw_space *space, int64_t count,
                             graft_error *error)
{
    void         *array[2] = { space->weight, space->entry };
    const int32_t rc = grow_pair(context, array, (const uint64_t[]){ sizeof *space->weight, sizeof *space->entry },
                                 &space->capacity, count, error);

    space->weight = array[0];
    space->entry = array[1];
    return rc;
}

void gr_sample_shuffle(int64_t *values, int64_t n, uint64_t key)
{
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t word[4];
        int64_t  other, v;

        gr_random_block(key, (uint64_t)i, 0, word);
        other = (int64_t)((unsigned __int128)((uint64_t)word[0] << 32 | word[1]) * (uint64_t)(i + 1) >> 64);
        v = values[i];
        values[i] = values[other];
        values[other] = v;
    }
}

void gr_sample_making_add(const struct gr_making *g, int64_t v)
{
    struct gr_numbering *numbering = &g->work->numbering;
    const int64_t        at = gr_sample_numbering_slot(numbering, (int32_t)v);

    if (atomic_load_explicit(&numbering->number[at], memory_order_relaxed) != GR_NO_NUMBER) return;
    atomic_store_explicit(&numbering->number[at], (int32_t)g->batch->n_vertices, memory_order_relaxed);
    g->batch->vertex[g->batch->n_vertices++] = v;
}

uint64_t gr_sample_making_key(const struct gr_making *g, int32_t layer)
{
    return gr_random_key(g->request->seed, GR_RANDOM_SAMPLE, (uint64_t)g->request->epoch,
                         (uint64_t)g->request->index * GR_SAMPLE_LAYERS_MAX + (uint64_t)layer);
}

static int32_t add_seeds(const struct gr_making *g, graft_error *error)
{
    const int64_t *seeds = g->request->seeds, n = g->work->numbering.n;

    GR_TRY(gr_sample_making_reserve(g, g->request->n_seeds, error));
    for (int64_t i = 0; i < g->request->n_seeds; i++) {
        const int64_t v = seeds[i];

        if (v < 0 || v >= n)
            return gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] is %lld, but the graph has %lld vertices", (long long)i,
                           (long long)v, (long long)n);
        gr_sample_making_add(g, v);
        if (g->batch->n_vertices == i)
            return gr_fail(error, GRAFT_ERR_ARG, "seeds[%lld] and seeds[%d] are both %lld", (long long)i,
                           (int)gr_sample_numbering_find(&g->work->numbering, (int32_t)v), (long long)v);
    }
    return GRAFT_OK;
}

/* Take part in the collective extension of the last layer, so that the other ranks learn of the error of this rank. */
static int32_t tell_ranks(const struct gr_making *g, int32_t rc, graft_error *error)
{
    const struct gr_extension *extension = g->request->extension;
    const int32_t              last = g->request->n_layers - 1;

    return last > extension->first ? extension->extend(extension->arg, g, last, rc, error) : rc;
}

int32_t gr_sample_batch_make(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                             const struct gr_batch_request *request, graft_error *error)
{
    const struct gr_making making = { context, request, batch, work };
    int32_t                rc;

    batch->epoch = request->epoch;
    batch->index = request->index;
    batch->n_layers = request->n_layers;
    batch->n_seeds = request->n_seeds;
    batch->n_vertices = 0;
    batch->is_subgraph = batch->weighs_edges = batch->normalizes = batch->weighs_seeds = 0;
    rc = add_seeds(&making, error);
    if (rc == GRAFT_OK) rc = request->kind->make(&making, error);
    else if (request->extension != NULL) rc = tell_ranks(&making, rc, error);
    clear_numbering(&work->numbering, batch->vertex, batch->n_vertices);
    if (rc < 0) batch->n_vertices = 0;
    return rc;
}

int64_t gr_sample_batch_edges(const struct gr_batch *batch)
{
    int64_t edges = 0;

    for (int32_t l = 0; l < batch->n_layers; l++) edges += gr_sample_batch_layer(batch, l).n_edges;
    return edges;
}

void gr_sample_batch_fini(const graft_context *context, struct gr_batch *batch)
{
    for (int32_t l = 0; l < GR_SAMPLE_LAYERS_MAX; l++) {
        gr_free(context, batch->layers[l].row_ptr);
        gr_free(context, batch->layers[l].col);
        gr_free(context, batch->layers[l].entry);
        gr_free(context, batch->layers[l].weight);
    }
    gr_free(context, batch->vertex);
    gr_free(context, batch->weight);
}

int64_t gr_sample_batch_bytes(const struct gr_batch *batch)
{
    int64_t bytes = gr_memory_bytes(batch->vertex) + gr_memory_bytes(batch->weight);

    for (int32_t l = 0; l < GR_SAMPLE_LAYERS_MAX; l++)
        bytes += gr_memory_bytes(batch->layers[l].row_ptr) + gr_memory_bytes(batch->layers[l].col) +
                 gr_memory_bytes(batch->layers[l].entry) + gr_memory_bytes(batch->layers[l].weight);
    return bytes;
}

int32_t gr_sample_work_init(const graft_context *context, struct gr_sample_work *work, int64_t n, int threads,
                            graft_error *error)
{
    work->numbering.n = n;
    work->threads = threads;
    return GR_NEW(context, work->space, threads, error);
}

void gr_sample_work_fini(const graft_context *context, struct gr_sample_work *work)
{
    for (int t = 0; work->space != NULL && t < work->threads; t++) {
        gr_free(context, work->space[t].weight);
        gr_free(context, work->space[t].entry);
    }
    gr_free(context, work->space);
    gr_free(context, work->first);
    numbering_fini(context, &work->numbering);
}

int64_t gr_sample_work_bytes(const struct gr_sample_work *work)
{
    int64_t bytes = gr_memory_bytes(work->space) + gr_memory_bytes(work->first) +
                    gr_memory_bytes((const void *)work->numbering.key) +
                    gr_memory_bytes((const void *)work->numbering.number);

    for (int t = 0; work->space != NULL && t < work->threads; t++)
        bytes += gr_memory_bytes(work->space[t].weight) + gr_memory_bytes(work->space[t].entry);
    return bytes;
}

/* The subgraph induced by the vertices of a batch, with rows in the order of the vertices. */
enum { ROWS_OF_CHUNK = 64 };

static void count_subgraph(void *arg, int64_t begin, int64_t end)
{
    const struct gr_making *g = arg;
    const graft_csr        *graph = g->request->rule->graph;

    for (int64_t i = begin; i < end; i++) {
        const int64_t v = g->batch->vertex[i];
        int64_t       count = 0;

        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++)
            count += gr_sample_numbering_find(&g->work->numbering, (int32_t)gr_csr_column(graph, e)) != GR_NO_NUMBER;
        g->batch->layers[0].row_ptr[i + 1] = count;
    }
}

static void fill_subgraph(void *arg, int64_t begin, int64_t end)
{
    const struct gr_making        *g = arg;
    const graft_csr               *graph = g->request->rule->graph;
    const struct gr_sampled_layer *layer = &g->batch->layers[0];

    for (int64_t i = begin; i < end; i++) {
        const int64_t v = g->batch->vertex[i];
        int64_t       at = layer->row_ptr[i];

        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++) {
            const int32_t number = gr_sample_numbering_find(&g->work->numbering, (int32_t)gr_csr_column(graph, e));

            if (number == GR_NO_NUMBER) continue;
            layer->col[at] = number;
            layer->entry[at++] = e;
        }
    }
}

int32_t gr_sample_making_induce(const struct gr_making *g, graft_error *error)
{
    struct gr_sampled_layer *layer = &g->batch->layers[0];
    const graft_csr         *graph = g->request->rule->graph;
    const int64_t            n = g->batch->n_vertices;
    struct gr_team           team = { .threads = g->work->threads };
    int64_t                  scanned = 0;

    g->batch->is_subgraph = 1;
    layer->n_dst = layer->n_src = n;
    GR_TRY(gr_sample_making_reserve_rows(g, layer, n, error));
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = g->batch->vertex[i];
        scanned += graph->row_ptr[v + 1] - graph->row_ptr[v];
    }
    layer->row_ptr[0] = 0;
    gr_parallel_rows(team, 8 * scanned, n, ROWS_OF_CHUNK, count_subgraph, (void *)(uintptr_t)g);
    for (int64_t i = 0; i < n; i++) layer->row_ptr[i + 1] += layer->row_ptr[i];
    layer->n_edges = layer->row_ptr[n];
    GR_TRY(gr_sample_making_reserve_edges(g, layer, error));
    gr_parallel_rows(team, 8 * scanned, n, ROWS_OF_CHUNK, fill_subgraph, (void *)(uintptr_t)g);
    return GRAFT_OK;
}
