/* The vertices and edges of a batch over ranks. A rank samples in its part of the graph, where vertices of the halo
 * have no neighbours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/sort.h"

/* Find the index of each sampled vertex (gr_batch_vertices.place), and the numbers of sources of each layer. */
static void place_vertices(const struct gr_batch *batch, int64_t owned, struct gr_batch_vertices *now, int32_t *place)
{
    int32_t l = batch->n_layers - 1;

    now->n_owned = now->n_halo = 0;
    for (int64_t i = 0; i <= batch->n_vertices; i++) {
        /* The count includes destinations of the layer before that only other ranks need. */
        for (; l >= 0 && (l > 0 ? batch->layers[l - 1].n_dst : batch->layers[0].n_src) == i; l--) {
            now->owned[l] = now->n_owned;
            now->halo[l] = now->n_halo;
        }
        if (i < batch->n_vertices) place[i] = (int32_t)(batch->vertex[i] < owned ? now->n_owned++ : ~now->n_halo++);
    }
    GR_ASSERT(l < 0 && now->n_owned + now->n_halo == batch->n_vertices);
}

int32_t gr_parallel_cached_number(struct gr_batch_strategy *strategy, const struct gr_batch *batch,
                                  const int64_t **vertex, int64_t *n_owned, graft_error *error)
{
    struct gr_cached         *c = gr_cached_of(strategy);
    struct gr_batch_vertices *now = &c->now;
    int32_t                  *place;
    int64_t                  *ordered;

    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, place, batch->n_vertices, error));
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, ordered, batch->n_vertices, error));
    place_vertices(batch, c->graph->n_rows, now, place);
    for (int64_t i = 0; i < batch->n_vertices; i++)
        ordered[place[i] >= 0 ? place[i] : now->n_owned + ~place[i]] = batch->vertex[i];
    now->place = place;
    now->vertex = *vertex = ordered;
    *n_owned = now->n_owned;
    c->counts.features_read += now->n_halo;
    return gr_parallel_fetch_number(c, error);
}

/* Find the columns of the halo vertices of the batch: column[h] is that of vertex h, or -1 if its row is missing.
 * Columns of cached rows precede those of fetched rows. */
static int32_t find_cached(struct gr_cached *c, const struct gr_sampled_layer *from, int32_t l,
                           struct gr_batch_layer *b, int32_t *column, graft_error *error)
{
    const struct gr_batch_vertices *now = &c->now;
    struct gr_cached_layer         *layer = &c->layer[l];
    const struct gr_fetch          *fetch = &layer->fetch;
    const int64_t                   n = now->halo[l];
    int64_t                         wanted = 0, found = 0, n_rows;
    int32_t                        *vertex, *row;

    for (int64_t e = 0; e < from->n_edges; e++)
        if (now->place[from->col[e]] < 0) column[~now->place[from->col[e]]] = 1;
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, vertex, n, error));
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, row, n, error));
    for (int64_t h = 0; h < n; h++)
        if (column[h] != 0) vertex[wanted++] = (int32_t)(now->vertex[now->n_owned + h] - c->graph->n_rows);
    n_rows = gr_sample_cache_find(&layer->cache, vertex, wanted, &c->life, c->wish.run->threads, row);
    wanted = 0;
    for (int64_t h = 0; h < n; h++) {
        const int is_wanted = column[h] != 0;

        column[h] = -1;
        if (!is_wanted) continue;
        if (row[wanted] != GR_NOT_CACHED) {
            column[h] = (int32_t)(b->n_src + found);
            row[found++] = row[wanted];
        } else if (fetch->count > 0) {
            column[h] = (int32_t)(b->n_src + n_rows + gr_sorted_index(fetch->vertex, fetch->count, vertex[wanted]));
        }
        wanted++;
    }
    GR_ASSERT(found == n_rows);
    layer->row = row;
    b->n_seen = b->n_src + n_rows + fetch->count;
    return GRAFT_OK;
}

/* Copy the edges whose source rows are not missing. */
static int32_t copy_edges(struct gr_cached *c, const struct gr_sampled_layer *from, const int32_t *column,
                          struct gr_batch_layer *b, graft_error *error)
{
    const int32_t *place = c->now.place;
    int64_t       *row_ptr, *entry, *row, at = 0;
    int32_t       *col;

    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, row_ptr, b->n_dst + 1, error));
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, row, b->n_dst, error));
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, col, from->n_edges, error));
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, entry, from->n_edges, error));
    for (int64_t i = 0; i < from->n_dst; i++) {
        if (place[i] < 0) continue;
        for (int64_t e = from->row_ptr[i]; e < from->row_ptr[i + 1]; e++) {
            const int32_t source = place[from->col[e]], to = source >= 0 ? source : column[~source];

            if (to < 0) continue;
            col[at] = to;
            entry[at++] = from->entry[e];
        }
        row[place[i]] = i;
        row_ptr[place[i] + 1] = at;
    }
    b->row_ptr = row_ptr;
    b->row = row;
    b->col = col;
    b->entry = entry;
    b->n_edges = at;
    return GRAFT_OK;
}

int32_t gr_parallel_cached_layer(struct gr_batch_strategy *strategy, const struct gr_batch *batch, int32_t l,
                                 struct gr_batch_layer *b, graft_error *error)
{
    struct gr_cached               *c = gr_cached_of(strategy);
    const struct gr_batch_vertices *now = &c->now;
    const struct gr_sampled_layer  *from = &batch->layers[l];
    const int32_t                   first = gr_run_config(c->wish.run)->gathers_from;
    int32_t                        *column;

    *b = (struct gr_batch_layer){ .n_dst = l < first                 ? batch->n_vertices
                                           : l + 1 < batch->n_layers ? now->owned[l + 1]
                                                                     : batch->n_seeds,
                                  .n_src = l <= first ? batch->n_vertices : now->owned[l],
                                  .from = from };
    b->n_seen = b->n_src;
    if (l < first) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, column, now->halo[l], error));
    for (int64_t h = 0; l == first && h < now->halo[l]; h++) column[h] = (int32_t)(now->n_owned + h);
    if (l > first) GR_TRY(find_cached(c, from, l, b, column, error));
    return copy_edges(c, from, column, b, error);
}
