/* An order of the vertices in which rows that are read together are close together, and rows that training needs come
 * first, layer by layer: then a mask of rows is a number of rows. Inside the library, vertex v is vertex
 * setup->derived.vertex[v] of the host; the host never sees the order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"
#include "base/assert.h"
#include "run/setup.h"

#include <string.h>

/* *array[n] of rows of `bytes` bytes becomes a copy in the order of the setup. NULL stays NULL. */
static int32_t reorder(struct gr_setup *s, const void **array, uint64_t bytes, uint64_t stride, graft_error *error)
{
    const char *from = *array;
    char       *to;
    int32_t     rc = GRAFT_OK;

    if (from == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, to, s->data.n * (int64_t)bytes, error));
    for (int64_t v = 0; v < s->data.n; v++)
        memcpy(to + (uint64_t)v * bytes, from + (uint64_t)s->derived.row[v] * stride, bytes);
    *array = to;
done:
    return rc;
}

/* Level 0: the training vertices, or the vertices of the list to predict. */
static void find_first_level(const struct gr_setup *s, struct gr_search *search)
{
    const struct gr_outputs *list = s->given != NULL ? s->given->outputs : NULL;

    for (int64_t v = 0; v < s->data.n; v++) search->hop[v] = s->model.config.n_layers + 1;
    for (int64_t i = 0; list != NULL && i < list->n; i++) gr_search_add(search, list->vertices[i], 0);
    for (int64_t v = 0; list == NULL && v < s->data.n; v++)
        if (gr_is_trained(&s->run.targets, v)) gr_search_add(search, v, 0);
}

/* Up to this layer a step computes all rows of the input, because statistics of BatchNorm are over all vertices; -1
 * without BatchNorm. Predictions use running statistics. */
static int32_t last_complete(const struct gr_setup *s)
{
    int32_t last = -1;

    for (int32_t l = 0; l < s->model.config.n_layers && s->given == NULL; l++)
        if (gr_has_batch_norm(&s->run, &s->model.layers[l])) last = l + 1;
    return last;
}

/* hop[v]: the number of edges over which a vertex of level 0 gathers from v; n_layers + 1 if more than n_layers. reach
 * is counted. Levels of layers with all rows are not searched. */
static int32_t find_reach(struct gr_setup *s, const graft_csr *graph, struct gr_search *search, graft_error *error)
{
    const int32_t n_layers = s->model.config.n_layers;
    int32_t       rc = GRAFT_OK;

    find_first_level(s, search);
    s->derived.reach[n_layers] = search->end = search->found;
    for (int32_t h = 1; h <= n_layers; h++) {
        const int32_t l = n_layers - h;
        const int     gathers = graph != NULL && l >= s->model.config.gathers_from && l > last_complete(s);

        for (int64_t i = search->begin; i < search->end && gathers; i++) {
            for (int64_t e = graph->row_ptr[search->queue[i]]; e < graph->row_ptr[search->queue[i] + 1]; e++)
                gr_search_add(search, gr_csr_column(graph, e), h);
        }
        if (gathers) GR_TRY(gr_ranks_search(s, search, h, error));
        search->begin = search->end;
        search->end = search->found;
        s->derived.reach[l] = search->end;
        GR_ASSERT(search->end <= s->data.n);
    }
done:
    return rc;
}

static int32_t sum_reach(struct gr_setup *s, graft_error *error)
{
    double  rows[GR_LAYERS_MAX + 1]; /* exact to 2^53 */
    int32_t rc = GRAFT_OK;

    for (int32_t l = 0; l <= s->model.config.n_layers; l++) rows[l] = (double)s->derived.reach[l];
    GR_TRY(gr_strategy_sum(s->run.strategy, rows, s->model.config.n_layers + 1, error));
    for (int32_t l = 0; l <= s->model.config.n_layers; l++) s->derived.reach_of_all[l] = (int64_t)rows[l];
done:
    return rc;
}

/* Whether the receptive field of a list is worth a separate order. Labels as input belong to vertices that come first
 * in training; sparse features have parts only for a step and for all rows. */
static int predicts_few(const struct gr_setup *s)
{
    const struct gr_outputs *outputs = s->given->outputs;

    return outputs->vertices != NULL && outputs->n > 0 && s->data.over == NULL && s->data.given.features != NULL &&
           !gr_propagates(&s->run);
}

int gr_setup_is_ordered(const struct gr_setup *s)
{
    return s->derived.row != NULL || (s->model.config.kind->gathers && s->model.config.order != GR_ORDER_GIVEN);
}

int gr_reads_halo(const struct gr_setup *s)
{
    return s->data.over != NULL && s->partition.needs_rows && s->partition.columns == 1;
}

int gr_masks_rows(const struct gr_setup *s)
{
    if (!s->model.config.row_masks || s->model.config.kind->attends) return 0;
    if (s->data.over != NULL && s->partition.needs_rows) return 0;
    if (s->given != NULL) return predicts_few(s);
    return s->run.targets.n_train > 0;
}

int32_t gr_first_masked(const struct gr_setup *s)
{
    return s->run.input.is_constant && !gr_propagates(&s->run);
}

/* Whether masks of rows save enough of a step to be worth a copy of the features: a tenth of the rows of all layers. */
static int reach_is_short(const struct gr_setup *s)
{
    double rows = 0;

    for (int32_t l = 1; l <= s->model.config.n_layers; l++)
        rows += (double)(l > last_complete(s) ? s->derived.reach_of_all[l] : s->data.given.n_vertices);
    return rows < 0.9 * (double)s->data.given.n_vertices * s->model.config.n_layers;
}

/* Sort vertices stably by hops. */
static void sort_by_hop(const struct gr_setup *s, const int32_t *hop, const int64_t *from, int64_t *to)
{
    int64_t at[GR_LAYERS_MAX + 2] = { 0 };

    for (int32_t h = 1; h <= s->model.config.n_layers + 1; h++)
        at[h] = s->derived.reach[s->model.config.n_layers - h + 1];
    for (int64_t i = 0; i < s->data.n; i++) to[at[hop[from[i]]]++] = from[i];
}

/* In layer l a step computes all rows. */
static void reach_all(struct gr_setup *s, int32_t l)
{
    s->derived.reach[l] = s->data.n;
    s->derived.reach_of_all[l] = s->data.given.n_vertices;
}

/* Masks that save little are not worth a copy of their part of the graph. reach decreases from layer to layer, so
 * dropped masks belong to the first layers, as do layers with all rows. */
static void drop_long_reach(struct gr_setup *s)
{
    for (int32_t l = 0; l <= s->model.config.n_layers; l++) {
        if (l <= last_complete(s) || (double)s->derived.reach_of_all[l] > 0.95 * (double)s->data.given.n_vertices)
            reach_all(s, l);
    }
}

static int32_t reorder_vertices(struct gr_setup *s, graft_error *error)
{
    struct gr_targets *now = &s->run.targets;
    const void        *labels = now->labels, *targets = now->targets, *split = now->split, *values = now->values;
    const uint64_t     classes = (uint64_t)now->n_classes, wide = classes * sizeof *now->values;
    int32_t            rc = GRAFT_OK;

    GR_TRY(reorder(s, &labels, sizeof *now->labels, sizeof *now->labels, error));
    GR_TRY(reorder(s, &targets, classes, classes, error));
    GR_TRY(reorder(s, &split, 1, 1, error));
    GR_TRY(reorder(s, &values, wide, (uint64_t)now->stride * sizeof *now->values, error));
    now->labels = labels;
    now->targets = targets;
    now->split = split;
    now->values = values;
    now->stride = now->n_classes;
done:
    return rc;
}

/* Over ranks a vertex has a place among the vertices of its owner, and another number. */
static int32_t name_vertices(struct gr_setup *s, graft_error *error)
{
    int64_t *vertex;
    int32_t  rc = GRAFT_OK;

    s->derived.vertex = s->derived.row;
    if (s->data.over == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, vertex, s->data.n, error));
    for (int64_t v = 0; v < s->data.n; v++) vertex[v] = s->data.over->vertex[s->derived.row[v]];
    s->derived.vertex = vertex;
done:
    return rc;
}

/* The order of option order, with the vertices that training needs first; `order` is [n], and is overwritten. */
static int32_t choose_order(struct gr_setup *s, const graft_csr *graph, const int32_t *hop, int64_t *order,
                            graft_error *error)
{
    const int given = s->model.config.order == GR_ORDER_GIVEN || graph == NULL;
    int64_t  *row;
    int32_t   rc = GRAFT_OK;

    for (int64_t v = 0; v < s->data.n; v++) order[v] = v;
    GR_TRY(gr_budget_check(&s->budget, given ? 0 : (double)gr_order_bytes(s->data.n),
                           "graph (finding an order of its vertices)", error));
    if (!given) GR_TRY(gr_order_compute(s->context, graph, s->model.config.order, order, error));
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, row, s->data.n, error));
    if (hop != NULL) sort_by_hop(s, hop, order, row);
    else memcpy(row, order, (uint64_t)s->data.n * sizeof *order);
    s->derived.row = row;
    GR_TRY(name_vertices(s, error));
    rc = reorder_vertices(s, error);
done:
    return rc;
}

static int32_t search_init(struct gr_setup *s, int64_t bytes, struct gr_search *search, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(&s->budget, bytes, "graph (the order of its vertices)", error));
    GR_TRY(GR_NEW(s->context, search->queue, s->data.n, error));
    rc = GR_NEW(s->context, search->hop, s->data.n, error);
done:
    return rc;
}

int32_t gr_setup_order_init(struct gr_setup *s, const graft_csr *graph, graft_error *error)
{
    const int        given = s->model.config.order == GR_ORDER_GIVEN || graph == NULL;
    const int64_t    bytes = gr_block_bytes(s->data.n, sizeof(int64_t)) + gr_block_bytes(s->data.n, sizeof(int32_t));
    struct gr_search search = { 0 };
    int32_t          rc = GRAFT_OK;
    int              masks = gr_masks_rows(s);

    GR_TRY(gr_strategy_agree(s->run.strategy, search_init(s, bytes, &search, error), error));
    if (masks) {
        GR_TRY(find_reach(s, graph, &search, error));
        GR_TRY(sum_reach(s, error));
        masks = reach_is_short(s);
    }
    for (int32_t l = 0; l <= s->model.config.n_layers && !masks; l++) reach_all(s, l);
    if (masks || !given) rc = choose_order(s, graph, masks ? search.hop : NULL, search.queue, error);
    if (masks) drop_long_reach(s);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    gr_budget_return(&s->budget, bytes);
    gr_free(s->context, search.queue);
    gr_free(s->context, search.hop);
    return rc;
}
