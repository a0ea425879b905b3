/* An order of the vertices in which rows that are read together are close together, and rows that training needs come
 * first, layer by layer, so that a mask of rows is just a number of rows. Vertex v of the library is vertex
 * derived->whole.vertex[v] of the host; the host never sees the order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"
#include "base/assert.h"
#include "derived/derived.h"

#include <string.h>

/* A breadth-first search, level by level, for the vertices on which training depends. */
struct search {
    int32_t *hop;        /* [n] level of each vertex; n_layers + 1: not found yet */
    int64_t *queue;      /* [n] vertices in the order in which they are found */
    int64_t  begin, end; /* begin and end of the current level in the queue */
    int64_t  found;      /* number of vertices found so far: the end of the next level */
};

/* Add vertex v on level `hop`, unless it has been found before. */
static void search_add(struct search *search, int64_t v, int32_t hop)
{
    if (search->hop[v] <= hop) return;
    search->hop[v] = hop;
    search->queue[search->found++] = v;
}

/* Replace a target array, unless it is NULL, by a copy in the order of the vertices. */
static int32_t reorder(struct gr_derived *d, int i, graft_error *error)
{
    const struct gr_target_array a = gr_dataset_target_array(d->wish.targets, i);
    const char                  *from = a.data;
    char                        *to;

    if (from == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, to, d->n * a.bytes, error));
    for (int64_t v = 0; v < d->n; v++) memcpy(to + v * a.bytes, from + d->row[v] * a.stride, (uint64_t)a.bytes);
    gr_dataset_set_target_array(d->wish.targets, i, to, a.bytes);
    return GRAFT_OK;
}

/* Find level 0: the training vertices, or the vertices to predict. */
static void find_first_level(const struct gr_derived *d, struct search *search)
{
    for (int64_t v = 0; v < d->n; v++) search->hop[v] = d->config->n_layers + 1;
    for (int64_t i = 0; d->wish.predicts && i < d->wish.n_list; i++) search_add(search, d->wish.list[i], 0);
    for (int64_t v = 0; !d->wish.predicts && v < d->n; v++)
        if (gr_is_trained(d->wish.targets, v)) search_add(search, v, 0);
}

/* Mark in `out` the vertices of the halo from which vertices of the current level gather. */
static void mark_halo(const graft_csr *remote, const struct search *search, uint8_t *out)
{
    for (int64_t i = search->begin; i < search->end; i++) {
        const int64_t row = search->queue[i];

        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) out[gr_csr_column(remote, e)] = 1;
    }
}

/* Search over ranks: vertices of other ranks from which the current level gathers are added there on level `hop`. */
static int32_t search_ranks(const struct gr_derived *d, const struct gr_part *part, struct gr_links *links,
                            struct search *search, int32_t hop, graft_error *error)
{
    struct gr_comm *comm = d->data->over->comm;
    const int64_t   told = links->send_start[comm->n_ranks];
    uint8_t        *out = NULL, *in = NULL;
    int32_t         rc;

    rc = gr_budget_check(d->budget, (double)(part->halo.count + told), "graph (the order of its vertices)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(d->context, out, part->halo.count, error);
    if (rc == GRAFT_OK) rc = GR_NEW(d->context, in, told, error);
    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    mark_halo(&part->remote, search, out);
    GR_TRY_DONE(gr_halo_links_tell(links, comm, out, in, 1, error));
    for (int64_t i = 0; i < told; i++)
        if (in[i]) search_add(search, links->place[i], hop);
done:
    gr_free(d->context, out);
    gr_free(d->context, in);
    return rc;
}

/* Find hop[v], the length of the shortest path over which a vertex of level 0 gathers from v, or n_layers + 1 if it is
 * longer than n_layers; and count reach. Layers that compute all rows need no search. */
static int32_t find_reach(struct gr_derived *d, const struct gr_part *part, struct gr_links *links,
                          struct search *search, graft_error *error)
{
    const graft_csr *graph = part != NULL ? &part->local : NULL;
    const int32_t    n_layers = d->config->n_layers;

    find_first_level(d, search);
    d->reach[n_layers] = search->end = search->found;
    for (int32_t h = 1; h <= n_layers; h++) {
        const int32_t l = n_layers - h;
        const int     gathers = graph != NULL && l >= d->config->gathers_from && l > d->wish.complete;

        for (int64_t i = search->begin; i < search->end && gathers; i++) {
            for (int64_t e = graph->row_ptr[search->queue[i]]; e < graph->row_ptr[search->queue[i] + 1]; e++)
                search_add(search, gr_csr_column(graph, e), h);
        }
        if (gathers && d->data->over != NULL) GR_TRY(search_ranks(d, part, links, search, h, error));
        search->begin = search->end;
        search->end = search->found;
        d->reach[l] = search->end;
        GR_ASSERT(search->end <= d->n);
    }
    return GRAFT_OK;
}

static int32_t sum_reach(struct gr_derived *d, graft_error *error)
{
    double rows[GR_LAYERS_MAX + 1]; /* integers up to 2^53 are exact */

    for (int32_t l = 0; l <= d->config->n_layers; l++) rows[l] = (double)d->reach[l];
    GR_TRY(gr_dataset_sum(d->data, rows, d->config->n_layers + 1, error));
    for (int32_t l = 0; l <= d->config->n_layers; l++) d->reach_of_all[l] = (int64_t)rows[l];
    return GRAFT_OK;
}

/* Whether masks of rows are worth a copy of the features: they save at least a tenth of the rows of all layers. */
static int reach_is_short(const struct gr_derived *d)
{
    double rows = 0;

    for (int32_t l = 1; l <= d->config->n_layers; l++)
        rows += (double)(l > d->wish.complete ? d->reach_of_all[l] : d->data->given.n_vertices);
    return rows < 0.9 * (double)d->data->given.n_vertices * d->config->n_layers;
}

/* Sort vertices stably by hops. */
static void sort_by_hop(const struct gr_derived *d, const int32_t *hop, const int64_t *from, int64_t *to)
{
    int64_t at[GR_LAYERS_MAX + 2] = { 0 };

    for (int32_t h = 1; h <= d->config->n_layers + 1; h++) at[h] = d->reach[d->config->n_layers - h + 1];
    for (int64_t i = 0; i < d->n; i++) to[at[hop[from[i]]]++] = from[i];
}

/* Let a step compute all rows of the input of layer l. */
static void reach_all(struct gr_derived *d, int32_t l)
{
    d->reach[l] = d->n;
    d->reach_of_all[l] = d->data->given.n_vertices;
}

/* Drop masks that save too little to be worth a copy of their part of the graph. reach decreases from layer to layer,
 * so these belong to the first layers, like layers that compute all rows. */
static void drop_long_reach(struct gr_derived *d)
{
    for (int32_t l = 0; l <= d->config->n_layers; l++) {
        if (l <= d->wish.complete || (double)d->reach_of_all[l] > 0.95 * (double)d->data->given.n_vertices)
            reach_all(d, l);
    }
}

/* Set whole.vertex, the global index of each vertex in the new order: over ranks that of owned vertex row[v]. */
static int32_t name_vertices(struct gr_derived *d, graft_error *error)
{
    int64_t *vertex;

    d->whole.vertex = d->row;
    if (d->data->over == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, vertex, d->n, error));
    for (int64_t v = 0; v < d->n; v++) vertex[v] = d->data->over->vertex[d->row[v]];
    d->whole.vertex = vertex;
    return GRAFT_OK;
}

/* Compute the order by option order, with the vertices that training needs first, and put targets into it. `order` is
 * memory for n elements. */
static int32_t choose_order(struct gr_derived *d, const graft_csr *graph, const int32_t *hop, int64_t *order,
                            graft_error *error)
{
    const int given = d->config->data.order == GR_ORDER_GIVEN || graph == NULL;
    int64_t  *row;

    for (int64_t v = 0; v < d->n; v++) order[v] = v;
    GR_TRY(gr_budget_check(d->budget, given ? 0 : (double)gr_csr_order_bytes(d->n),
                           "graph (finding an order of its vertices)", error));
    if (!given) GR_TRY(gr_csr_order_compute(d->context, graph, d->config->data.order, order, error));
    GR_TRY(GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, row, d->n, error));
    if (hop != NULL) sort_by_hop(d, hop, order, row);
    else memcpy(row, order, (uint64_t)d->n * sizeof *order);
    d->row = row;
    GR_TRY(name_vertices(d, error));
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) GR_TRY(reorder(d, i, error));
    return GRAFT_OK;
}

static int32_t search_init(struct gr_derived *d, int64_t bytes, struct search *search, graft_error *error)
{
    GR_TRY(gr_budget_borrow(d->budget, bytes, "graph (the order of its vertices)", error));
    GR_TRY(GR_NEW(d->context, search->queue, d->n, error));
    return GR_NEW(d->context, search->hop, d->n, error);
}

int32_t gr_derived_order(struct gr_derived *d, const struct gr_part *part, struct gr_links *links, graft_error *error)
{
    const int     given = d->config->data.order == GR_ORDER_GIVEN || part == NULL;
    const int64_t bytes = gr_memory_block_bytes(d->n, sizeof(int64_t)) + gr_memory_block_bytes(d->n, sizeof(int32_t));
    const graft_csr *graph = part != NULL ? &part->local : NULL;
    struct search    search = { 0 };
    int32_t          rc = GRAFT_OK;
    int              masks = d->wish.masks_rows;

    GR_TRY_DONE(gr_dataset_agree(d->data, search_init(d, bytes, &search, error), error));
    if (masks) {
        GR_TRY_DONE(find_reach(d, part, links, &search, error));
        GR_TRY_DONE(sum_reach(d, error));
        masks = reach_is_short(d);
    }
    for (int32_t l = 0; l <= d->config->n_layers && !masks; l++) reach_all(d, l);
    if (masks || !given) rc = choose_order(d, graph, masks ? search.hop : NULL, search.queue, error);
    if (masks) drop_long_reach(d);
    rc = gr_dataset_agree(d->data, rc, error);
done:
    gr_budget_return(d->budget, bytes);
    gr_free(d->context, search.queue);
    gr_free(d->context, search.hop);
    return rc;
}
