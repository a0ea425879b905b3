/* The vertices in an order in which what is read together lies together, and in which the rows that training needs come
 * first, layer by layer: a mask of rows is then a number of rows. Inside the trainer, vertex v is vertex
 * trainer->vertex[v] of the host; the host never sees the order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"
#include "model/model.h"

#include <string.h>

/* *array[n] of elements of so many bytes becomes a copy in the order of the trainer. NULL stays NULL. */
static int32_t reorder(graft_trainer *t, const void **array, uint64_t bytes, graft_error *error)
{
    const char *from = *array;
    char       *to;
    int32_t     rc = GRAFT_OK;

    if (from == NULL) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRAPH, to, t->n * (int64_t)bytes, error));
    for (int64_t v = 0; v < t->n; v++) memcpy(to + (uint64_t)v * bytes, from + (uint64_t)t->row[v] * bytes, bytes);
    *array = to;
done:
    return rc;
}

/* hop[v]: over how many edges v is gathered from by a vertex that is trained; n_layers + 1 if over more than n_layers.
 * Breadth first, level by level; `queue` is [n]. reach is counted. */
static void find_reach(graft_trainer *t, const graft_csr *graph, int32_t *hop, int64_t *queue)
{
    const int32_t n_layers = t->config.n_layers;
    int64_t       begin = 0, end = 0;

    for (int64_t v = 0; v < t->n; v++) {
        hop[v] = gr_is_trained(t, v) ? 0 : n_layers + 1;
        if (hop[v] == 0) queue[end++] = v;
    }
    t->reach[n_layers] = end;
    for (int32_t h = 1; h <= n_layers; h++) {
        const int64_t level_end = end;

        for (; begin < level_end && graph != NULL; begin++) {
            for (int64_t e = graph->row_ptr[queue[begin]]; e < graph->row_ptr[queue[begin] + 1]; e++) {
                const int64_t u = gr_csr_column(graph, e);

                if (hop[u] <= n_layers) continue;
                hop[u] = h;
                queue[end++] = u;
            }
        }
        t->reach[n_layers - h] = end;
    }
}

/* Whether masks of rows save enough of a step to be worth a copy of the features: a tenth of the rows of all layers. */
static int reach_is_short(const graft_trainer *t)
{
    double rows = 0;

    for (int32_t l = 1; l <= t->config.n_layers; l++) rows += (double)t->reach[l];
    return rows < 0.9 * (double)t->n * t->config.n_layers;
}

/* Of vertices in some order, those with fewer hops first; else as they were. */
static void sort_by_hop(const graft_trainer *t, const int32_t *hop, const int64_t *from, int64_t *to)
{
    int64_t at[GR_LAYERS_MAX + 2] = { 0 };

    for (int32_t h = 1; h <= t->config.n_layers + 1; h++) at[h] = t->reach[t->config.n_layers - h + 1];
    for (int64_t i = 0; i < t->n; i++) to[at[hop[from[i]]]++] = from[i];
}

/* Masks that save little are not worth a copy of their part of the graph. reach falls from layer to layer, so those
 * that are dropped belong to the first ones. */
static void drop_long_reach(graft_trainer *t)
{
    for (int32_t l = 0; l <= t->config.n_layers; l++) {
        if ((double)t->reach[l] > 0.95 * (double)t->n) t->reach[l] = t->n;
    }
}

static int32_t reorder_vertices(graft_trainer *t, graft_error *error)
{
    const void *labels = t->data.labels, *targets = t->data.targets, *split = t->data.split;
    int32_t     rc = GRAFT_OK;

    GR_TRY(reorder(t, &labels, sizeof *t->data.labels, error));
    GR_TRY(reorder(t, &targets, (uint64_t)t->data.n_classes * sizeof *t->data.targets, error));
    GR_TRY(reorder(t, &split, sizeof *t->data.split, error));
    t->data.labels = labels;
    t->data.targets = targets;
    t->data.split = split;
done:
    return rc;
}

int32_t gr_model_order_init(graft_trainer *t, const graft_csr *graph, graft_error *error)
{
    const int     given = strcmp(t->config.order, "given") == 0 || graph == NULL;
    const int64_t bytes = gr_block_bytes(t->n, sizeof(int64_t)) + gr_block_bytes(t->n, sizeof(int32_t));
    const int64_t work = given ? 0 : gr_order_bytes(t->n);
    int64_t      *order = NULL, *vertex;
    int32_t      *hop = NULL, rc = GRAFT_OK;
    int           masks = t->config.row_masks && t->config.kind != GR_MODEL_GAT && t->n_train > 0;

    GR_TRY(gr_ledger_borrow(t, bytes, "graph (the order of its vertices)", error));
    GR_TRY(GR_NEW(t->context, order, t->n, error));
    GR_TRY(GR_NEW(t->context, hop, t->n, error));
    if (masks) {
        find_reach(t, graph, hop, order);
        masks = reach_is_short(t);
    }
    for (int32_t l = 0; l <= t->config.n_layers && !masks; l++) t->reach[l] = t->n;
    if (!masks && given) goto done;
    for (int64_t v = 0; v < t->n; v++) order[v] = v;
    GR_TRY(gr_ledger_check(t, (double)work, "graph (finding an order of its vertices)", error));
    if (!given) GR_TRY(gr_order_compute(t->context, graph, t->config.order, order, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRAPH, vertex, t->n, error));
    if (masks) sort_by_hop(t, hop, order, vertex);
    else memcpy(vertex, order, (uint64_t)t->n * sizeof *order);
    t->vertex = t->row = vertex;
    if (masks) drop_long_reach(t);
    rc = reorder_vertices(t, error);
done:
    gr_ledger_return(t, bytes);
    gr_free(t->context, order);
    gr_free(t->context, hop);
    return rc;
}
