/* The subgraph induced by the vertices of a batch, with rows in the order of the vertices; and the samplers of
 * subgraphs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/subgraph.h"

#include "base/parallel.h"
#include "base/random.h"

enum { ROWS_OF_CHUNK = 64 };

static const struct gr_subgraph_kind *const kinds[] = {
    [GR_SAMPLER_CLUSTER] = &gr_cluster_kind,
    [GR_SAMPLER_SAINT] = &gr_saint_kind,
};

/* -- samplers ----------------------------------------------------------------------------------------------------- */

int32_t gr_subgraphs_create(const struct gr_subgraph_source *source, struct gr_subgraphs **subgraphs,
                            graft_error *error)
{
    graft_context *const context = source->context;
    struct gr_subgraphs *made = NULL;
    int32_t              rc = GRAFT_OK;

    GR_TRY(GR_NEW(context, made, 1, error));
    made->kind = kinds[context->options.sampling.sampler];
    made->n_batches = source->n_seeds > 0 ? source->n_batches : 0;
    GR_TRY(GR_NEW(context, made->is_seed, source->graph->n_rows / 8 + 1, error));
    for (int64_t i = 0; i < source->n_seeds; i++)
        made->is_seed[source->seeds[i] / 8] |= (uint8_t)(1u << source->seeds[i] % 8);
    GR_TRY(made->kind->create(source, made, &made->state, error));
    if (made->kind->batches != NULL) made->n_batches = made->kind->batches(made->state);
    *subgraphs = made;
    made = NULL;
done:
    gr_subgraphs_destroy(context, made);
    return rc;
}

void gr_subgraphs_destroy(const graft_context *context, struct gr_subgraphs *subgraphs)
{
    if (subgraphs == NULL) return;
    subgraphs->kind->destroy(context, subgraphs->state);
    gr_free(context, subgraphs->is_seed);
    gr_free(context, subgraphs);
}

int64_t gr_subgraphs_bytes(const struct gr_subgraphs *subgraphs)
{
    return gr_bytes(subgraphs->is_seed) + subgraphs->kind->bytes(subgraphs->state);
}

void gr_subgraphs_order(const struct gr_subgraphs *subgraphs, uint64_t seed, int64_t epoch, int64_t *seeds,
                        int64_t n_seeds, int64_t *first)
{
    const int64_t n = subgraphs->n_batches;

    if (subgraphs->kind->order != NULL) {
        subgraphs->kind->order(subgraphs->state, seed, epoch, seeds, first);
        return;
    }
    gr_sample_shuffle(seeds, n_seeds, gr_random_key(seed, GR_RANDOM_SHUFFLE, (uint64_t)epoch, 0));
    for (int64_t b = 0; b <= n; b++) first[b] = n > 0 ? (int64_t)((__int128)n_seeds * b / n) : 0;
}

/* -- vertices ----------------------------------------------------------------------------------------------------- */

int32_t gr_subgraph_reserve(const struct gr_subgraph *g, int64_t most, graft_error *error)
{
    const int64_t wanted = g->batch->n_vertices + most;
    int32_t       rc = gr_batch_reserve(g->context, g->batch, wanted, error);

    return rc < 0 ? rc : gr_numbering_reserve(g->context, &g->work->numbering, wanted, error);
}

void gr_subgraph_add(const struct gr_subgraph *g, int64_t v)
{
    struct gr_numbering *numbering = &g->work->numbering;
    const int64_t        at = gr_numbering_slot(numbering, (int32_t)v);

    if (atomic_load_explicit(&numbering->number[at], memory_order_relaxed) != GR_NO_NUMBER) return;
    atomic_store_explicit(&numbering->number[at], (int32_t)g->batch->n_vertices, memory_order_relaxed);
    g->batch->vertex[g->batch->n_vertices++] = v;
}

/* -- edges -------------------------------------------------------------------------------------------------------- */

static void count_subgraph(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_subgraph *g = arg;
    const graft_csr          *graph = g->request->rule->graph;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        const int64_t v = g->batch->vertex[i];
        int64_t       count = 0;

        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++)
            count += gr_numbering_find(&g->work->numbering, (int32_t)gr_csr_column(graph, e)) != GR_NO_NUMBER;
        g->batch->layers[0].row_ptr[i + 1] = count;
    }
}

static void fill_subgraph(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_subgraph      *g = arg;
    const graft_csr               *graph = g->request->rule->graph;
    const struct gr_sampled_layer *layer = &g->batch->layers[0];

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        const int64_t v = g->batch->vertex[i];
        int64_t       at = layer->row_ptr[i];

        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++) {
            const int32_t number = gr_numbering_find(&g->work->numbering, (int32_t)gr_csr_column(graph, e));

            if (number == GR_NO_NUMBER) continue;
            layer->col[at] = number;
            layer->entry[at++] = e;
        }
    }
}

static int32_t induce(const struct gr_subgraph *g, graft_error *error)
{
    struct gr_sampled_layer *layer = &g->batch->layers[0];
    const graft_csr         *graph = g->request->rule->graph;
    const int64_t            n = g->batch->n_vertices;
    struct gr_team           team = { .threads = g->work->threads };
    int64_t                  scanned = 0;
    int32_t                  rc = GRAFT_OK;

    layer->n_dst = layer->n_src = n;
    GR_TRY(gr_batch_reserve_rows(g->context, layer, n, error));
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = g->batch->vertex[i];
        scanned += graph->row_ptr[v + 1] - graph->row_ptr[v];
    }
    layer->row_ptr[0] = 0;
    gr_parallel_chunks(team, 8 * scanned, n, ROWS_OF_CHUNK, count_subgraph, (void *)(uintptr_t)g);
    for (int64_t i = 0; i < n; i++) layer->row_ptr[i + 1] += layer->row_ptr[i];
    layer->n_edges = layer->row_ptr[n];
    GR_TRY(gr_batch_reserve_edges(g->context, layer, error));
    gr_parallel_chunks(team, 8 * scanned, n, ROWS_OF_CHUNK, fill_subgraph, (void *)(uintptr_t)g);
done:
    return rc;
}

int32_t gr_subgraph_make(const struct gr_subgraph *g, graft_error *error)
{
    const struct gr_subgraphs *subgraphs = g->request->subgraphs;
    int32_t                    rc = GRAFT_OK;

    GR_TRY(subgraphs->kind->gather(subgraphs->state, g, error));
    GR_TRY(induce(g, error));
    if (subgraphs->kind->weigh == NULL || !g->request->weighs) goto done;
    GR_TRY(gr_batch_reserve_weights(g->context, g->batch, error));
    subgraphs->kind->weigh(subgraphs->state, g->batch);
    g->batch->is_weighted = 1;
done:
    return rc;
}
