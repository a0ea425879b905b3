/* The vertices in an order in which what is read together lies together, and in which the rows that training needs come
 * first, layer by layer: a mask of rows is then a number of rows. Inside the trainer, vertex v is vertex
 * trainer->vertex[v] of the host; the host never sees the order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"
#include "base/assert.h"
#include "train/train.h"

#include <string.h>

/* *array[n] of elements of so many bytes becomes a copy in the order of the trainer. NULL stays NULL. */
static int32_t reorder(graft_trainer *t, const void **array, uint64_t bytes, graft_error *error)
{
    const char *from = *array;
    char       *to;
    int32_t     rc = GRAFT_OK;

    if (from == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, to, t->n * (int64_t)bytes, error));
    for (int64_t v = 0; v < t->n; v++) memcpy(to + (uint64_t)v * bytes, from + (uint64_t)t->row[v] * bytes, bytes);
    *array = to;
done:
    return rc;
}

/* hop[v]: over how many edges v is gathered from by a vertex that is trained; n_layers + 1 if over more than n_layers.
 * reach is counted. */
static int32_t find_reach(graft_trainer *t, const graft_csr *graph, struct gr_search *s, graft_error *error)
{
    const int32_t n_layers = t->model.config.n_layers;
    int32_t       rc = GRAFT_OK;

    for (int64_t v = 0; v < t->n; v++) {
        s->hop[v] = n_layers + 1;
        if (gr_is_trained(&t->run.targets, v)) gr_search_add(s, v, 0);
    }
    t->reach[n_layers] = s->end = s->found;
    for (int32_t h = 1; h <= n_layers; h++) {
        const int gathers = graph != NULL && n_layers - h >= t->model.config.gathers_from;

        for (int64_t i = s->begin; i < s->end && gathers; i++) {
            for (int64_t e = graph->row_ptr[s->queue[i]]; e < graph->row_ptr[s->queue[i] + 1]; e++)
                gr_search_add(s, gr_csr_column(graph, e), h);
        }
        if (gathers) GR_TRY(gr_ranks_search(t, s, h, error));
        s->begin = s->end;
        s->end = s->found;
        t->reach[n_layers - h] = s->end;
        GR_ASSERT(s->end <= t->n);
    }
done:
    return rc;
}

static int32_t sum_reach(graft_trainer *t, graft_error *error)
{
    double  rows[GR_LAYERS_MAX + 1]; /* exact to 2^53 */
    int32_t rc = GRAFT_OK;

    for (int32_t l = 0; l <= t->model.config.n_layers; l++) rows[l] = (double)t->reach[l];
    GR_TRY(gr_strategy_sum(t->run.strategy, rows, t->model.config.n_layers + 1, error));
    for (int32_t l = 0; l <= t->model.config.n_layers; l++) t->reach_of_all[l] = (int64_t)rows[l];
done:
    return rc;
}

int gr_masks_rows(const graft_trainer *t)
{
    return t->model.config.row_masks && !t->model.config.kind->attends && t->run.targets.n_train > 0;
}

int32_t gr_first_masked(const graft_trainer *t)
{
    return t->run.input.is_constant && !gr_propagates(&t->run);
}

/* Whether masks of rows save enough of a step to be worth a copy of the features: a tenth of the rows of all layers. */
static int reach_is_short(const graft_trainer *t)
{
    double rows = 0;

    for (int32_t l = 1; l <= t->model.config.n_layers; l++) rows += (double)t->reach_of_all[l];
    return rows < 0.9 * (double)t->data.n_vertices * t->model.config.n_layers;
}

/* Of vertices in some order, those with fewer hops first; else as they were. */
static void sort_by_hop(const graft_trainer *t, const int32_t *hop, const int64_t *from, int64_t *to)
{
    int64_t at[GR_LAYERS_MAX + 2] = { 0 };

    for (int32_t h = 1; h <= t->model.config.n_layers + 1; h++) at[h] = t->reach[t->model.config.n_layers - h + 1];
    for (int64_t i = 0; i < t->n; i++) to[at[hop[from[i]]]++] = from[i];
}

/* In layer l a step does all rows. */
static void reach_all(graft_trainer *t, int32_t l)
{
    t->reach[l] = t->n;
    t->reach_of_all[l] = t->data.n_vertices;
}

/* Masks that save little are not worth a copy of their part of the graph. reach falls from layer to layer, so those
 * that are dropped belong to the first ones. */
static void drop_long_reach(graft_trainer *t)
{
    for (int32_t l = 0; l <= t->model.config.n_layers; l++) {
        if ((double)t->reach_of_all[l] > 0.95 * (double)t->data.n_vertices) reach_all(t, l);
    }
}

static int32_t reorder_vertices(graft_trainer *t, graft_error *error)
{
    const void *labels = t->run.targets.labels, *targets = t->run.targets.targets, *split = t->run.targets.split;
    int32_t     rc = GRAFT_OK;

    GR_TRY(reorder(t, &labels, sizeof *t->run.targets.labels, error));
    GR_TRY(reorder(t, &targets, (uint64_t)t->run.targets.n_classes * sizeof *t->run.targets.targets, error));
    GR_TRY(reorder(t, &split, sizeof *t->run.targets.split, error));
    t->run.targets.labels = labels;
    t->run.targets.targets = targets;
    t->run.targets.split = split;
done:
    return rc;
}

/* Over ranks a vertex has a place among those of its owner, and another name. */
static int32_t name_vertices(graft_trainer *t, graft_error *error)
{
    int64_t *vertex;
    int32_t  rc = GRAFT_OK;

    t->vertex = t->row;
    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, vertex, t->n, error));
    for (int64_t v = 0; v < t->n; v++) vertex[v] = t->over->vertex[t->row[v]];
    t->vertex = vertex;
done:
    return rc;
}

/* The order that is asked for, and in it those first that training needs; `order` is [n] and of no more use. */
static int32_t choose_order(graft_trainer *t, const graft_csr *graph, const int32_t *hop, int64_t *order,
                            graft_error *error)
{
    const int given = t->model.config.order == GR_ORDER_GIVEN || graph == NULL;
    int64_t  *row;
    int32_t   rc = GRAFT_OK;

    for (int64_t v = 0; v < t->n; v++) order[v] = v;
    GR_TRY(gr_budget_check(&t->budget, given ? 0 : (double)gr_order_bytes(t->n),
                           "graph (finding an order of its vertices)", error));
    if (!given) GR_TRY(gr_order_compute(t->context, graph, t->model.config.order, order, error));
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, row, t->n, error));
    if (hop != NULL) sort_by_hop(t, hop, order, row);
    else memcpy(row, order, (uint64_t)t->n * sizeof *order);
    t->row = row;
    GR_TRY(name_vertices(t, error));
    rc = reorder_vertices(t, error);
done:
    return rc;
}

static int32_t search_init(graft_trainer *t, int64_t bytes, struct gr_search *search, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(&t->budget, bytes, "graph (the order of its vertices)", error));
    GR_TRY(GR_NEW(t->context, search->queue, t->n, error));
    rc = GR_NEW(t->context, search->hop, t->n, error);
done:
    return rc;
}

int32_t gr_trainer_order_init(graft_trainer *t, const graft_csr *graph, graft_error *error)
{
    const int        given = t->model.config.order == GR_ORDER_GIVEN || graph == NULL;
    const int64_t    bytes = gr_block_bytes(t->n, sizeof(int64_t)) + gr_block_bytes(t->n, sizeof(int32_t));
    struct gr_search search = { 0 };
    int32_t          rc = GRAFT_OK;
    int              masks = gr_masks_rows(t);

    GR_TRY(gr_strategy_agree(t->run.strategy, search_init(t, bytes, &search, error), error));
    if (masks) {
        GR_TRY(find_reach(t, graph, &search, error));
        GR_TRY(sum_reach(t, error));
        masks = reach_is_short(t);
    }
    for (int32_t l = 0; l <= t->model.config.n_layers && !masks; l++) reach_all(t, l);
    if (masks || !given) rc = choose_order(t, graph, masks ? search.hop : NULL, search.queue, error);
    if (masks) drop_long_reach(t);
    rc = gr_strategy_agree(t->run.strategy, rc, error);
done:
    gr_budget_return(&t->budget, bytes);
    gr_free(t->context, search.queue);
    gr_free(t->context, search.hop);
    return rc;
}
