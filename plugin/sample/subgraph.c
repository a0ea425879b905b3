/* The subgraph induced by the vertices of a batch, with rows in the order of the vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/parallel.h"

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
