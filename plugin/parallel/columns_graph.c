/* Creates the graph of a group of ranks that share columns, and allocates its memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"

#include "base/memory.h"
#include "comm/collective.h"

void gr_parallel_columns_destroy(struct gr_strategy *strategy)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    gr_parallel_fini(r);
    if (r->columns != NULL) {
        gr_parallel_transpose_fini(&r->columns->transpose);
        gr_parallel_blocks_fini(&r->columns->blocks);
        gr_parallel_grid_fini(r->context, &r->columns->grid);
    }
    gr_free(r->context, r->columns);
    gr_free(r->context, r);
}

/* Initialise transposes and blocks. Not collective. In slices of sums, the results of this rank follow the sums from
 * other groups; in slices of extrema, the rows of the halo follow the rows of the group. */
static int32_t init_slices(struct gr_ranks *r, graft_error *error)
{
    struct gr_grid *grid = &r->columns->grid;
    const int64_t   slots = GR_DIRECTIONS * (int64_t)r->n_layers;
    const int64_t   group = gr_parallel_grid_rows(grid, grid->n_levels);
    const int64_t   beyond = r->exchanges_rows ? grid->made.part.halo.count : 0;
    const int64_t   own = gr_parallel_grid_rows_of(grid, r->comm->rank, grid->n_levels);
    const int64_t   rows[] = { group + beyond, gr_parallel_config(r)->extremum != 0 ? group + beyond
                                               : grid->n_groups > 1                 ? group + own
                                                                                    : own };
    int32_t         rc =
        gr_parallel_transpose_init(r->context, r->comm, grid, r->n_layers, rows, &r->columns->transpose, error);

    gr_parallel_blocks_init(r->context, r->comm, grid, beyond, &r->columns->blocks);
    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(r->wish.budget, GR_USE_MESSAGES, r->traffic.turned, slots * r->comm->n_ranks, error);
    return rc;
}

/* Create the grid. Its levels are the prefixes of rows that layers need. */
static int32_t make_grid(struct gr_ranks *r, struct gr_linked_part *linked, graft_error *error)
{
    const struct gr_part *part = r->graph.part;
    struct gr_grid       *grid = &r->columns->grid;
    int64_t               reach[GR_LAYERS_MAX + 3] = { 0 };

    for (int32_t l = 0; l <= r->n_layers; l++) reach[r->n_layers - l + 1] = r->graph.reach[l];
    reach[r->n_layers + 2] = part->local.n_rows;
    GR_TRY(gr_parallel_grid_init(r->wish.budget, r->comm, part, r->wish.over->columns, r->n_layers + 2, reach, grid,
                                 error));
    GR_TRY(gr_parallel_linked_part_init(r->wish.budget, r->comm, &grid->linked, part, linked, error));
    GR_TRY(gr_parallel_edge_gather_outside(r->wish.budget, r->comm, grid, &linked->made.part,
                                           gr_parallel_columns_have_remote(r), &grid->made, error));
    GR_TRY(gr_comm_agree(r->comm, init_slices(r, error), error));
    gr_parallel_charge(r);
    return GRAFT_OK;
}

/* Create the exchanges of boundary rows of the slices of each layer, for extrema in several groups. */
static int32_t exchange_group_rows(struct gr_ranks *r, graft_error *error)
{
    int64_t width[GR_LAYERS_MAX];

    for (int32_t l = 0; l < r->n_layers; l++)
        width[l] = gr_parallel_columns_slice(r, gr_model_config_in(gr_parallel_config(r), l));
    return gr_parallel_exchange_rows(r, &r->columns->grid.made.part.halo, width, error);
}

/* Create this rank's blocks of all edges inside its group. Collective. */
static int32_t make_blocks(struct gr_ranks *r, const struct gr_part *linked, struct gr_edge_sets *sets,
                           graft_error *error)
{
    const struct gr_halo *halo = r->exchanges_rows ? &r->columns->grid.made.part.halo : NULL;
    const int             turned = r->wish.trains && gr_parallel_config(r)->extremum == 0;

    return gr_parallel_edge_sets_init(r->wish.budget, r->comm, &r->columns->grid, linked, halo, turned, sets, error);
}

/* Create this rank's blocks of the rows that layers compute in a step. Collective. */
static int32_t mask_blocks(struct gr_ranks *r, struct gr_edge_sets *sets, graft_error *error)
{
    const struct gr_grid *grid = &r->columns->grid;

    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan != NULL)
            GR_TRY(gr_parallel_edge_sets_mask(r->wish.budget, r->comm, grid, l, r->n_layers - l, sets, error));
    return GRAFT_OK;
}

/* Create the plan of the edges from other groups, and the blocks of the edges inside the group, for all rows. */
static int32_t make_all_rows(struct gr_ranks *r, graft_error *error)
{
    struct gr_linked_part linked = { .borrowed = 0 };
    int32_t               rc = make_grid(r, &linked, error);

    GR_TRY_DONE(rc);
    if (r->exchanges_rows) GR_TRY_DONE(exchange_group_rows(r, error));
    GR_TRY_DONE(gr_parallel_plans_init(r, &r->columns->grid.made.part, error));
    rc = make_blocks(r, &linked.made.part, &r->columns->blocks.sets, error);
    gr_parallel_charge(r);
done:
    gr_parallel_linked_part_fini(r->wish.budget, &linked);
    return rc;
}

/* Initialise the records that transposes store from step to step. This takes channels, so no failure of only this rank
 * may precede it. */
static int32_t init_stale_slices(struct gr_ranks *r, graft_error *error)
{
    struct gr_transpose *t = &r->columns->transpose;
    int32_t              rc = GRAFT_OK;

    if (!r->wish.trains) return GRAFT_OK;
    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        struct gr_turned_layer *of = &t->of_layer[l];

        of->width = gr_summed_columns(&r->wish.run->layers[l]);
        for (int k = 0; k < 2; k++) of->prefix[k] = gr_parallel_columns_prefix(r, r->plans.step[l], l, !k);
    }
    rc = gr_parallel_transpose_layers_init(t, &t->layers, error);
    gr_parallel_charge(r);
    return gr_comm_agree(r->comm, rc, error);
}

int32_t gr_parallel_columns_graph(struct gr_strategy *strategy, const struct gr_strategy_graph *graph,
                                  graft_error *error)
{
    struct gr_ranks      *r = gr_parallel_of(strategy);
    const struct gr_grid *grid = &r->columns->grid;
    int64_t               rows[GR_LAYERS_MAX + 1];

    r->graph = *graph;
    GR_TRY(make_all_rows(r, error));
    for (int32_t l = 0; l <= r->n_layers; l++)
        rows[l] = gr_parallel_columns_have_remote(r) ? gr_parallel_grid_rows(grid, r->n_layers - l + 1) : 0;
    GR_TRY(gr_parallel_plans_init_steps(r, rows, error));
    GR_TRY(mask_blocks(r, &r->columns->blocks.sets, error));
    gr_parallel_plans_find_widths(r, gr_parallel_columns_slice);
    return init_stale_slices(r, error);
}

/* Return the size of the array of winners (the neighbours with the extrema) of layer l. The first layer sends no
 * gradient back, and needs none. */
static int64_t count_winners(const struct gr_ranks *r, int32_t l)
{
    if (!r->wish.trains || gr_parallel_config(r)->extremum == 0 || l == 0) return 0;
    return gr_parallel_grid_rows(&r->columns->grid, gr_parallel_columns_prefix(r, r->plans.step[l], l, 0)) *
           gr_parallel_columns_slice(r, gr_summed_columns(&r->wish.run->layers[l]));
}

/* Return the bytes of slices and messages of `width` columns that are not allocated yet. */
static double transpose_need(const struct gr_ranks *r, int64_t width)
{
    const struct gr_transpose *t = &r->columns->transpose;
    const int64_t              more = gr_parallel_transpose_need(t, width) - gr_parallel_transpose_bytes(t);

    return more > 0 ? (double)more : 0;
}

double gr_parallel_columns_need(const struct gr_strategy *strategy, int streams)
{
    const struct gr_ranks     *r = (const struct gr_ranks *)strategy;
    const struct gr_transpose *t = &r->columns->transpose;
    const struct gr_blocks    *b = &r->columns->blocks;
    double                     bytes = gr_parallel_plans_need(r) + transpose_need(r, gr_parallel_plans_widest_sum(r)) +
                   (double)(gr_parallel_blocks_need(b, streams) - gr_parallel_blocks_bytes(b));

    if (r->wish.trains) bytes += (double)gr_parallel_transpose_layers_need(t, &t->layers);
    for (int32_t l = 0; l < r->n_layers; l++) bytes += 4 * (double)count_winners(r, l);
    return bytes;
}

int32_t gr_parallel_columns_hold(struct gr_strategy *strategy, int streams, graft_error *error)
{
    struct gr_ranks  *r = gr_parallel_of(strategy);
    struct gr_blocks *b = &r->columns->blocks;
    int32_t           rc = gr_parallel_blocks_choose(r->wish.budget, b, streams, error);

    GR_TRY(rc);
    for (int32_t l = 0; l < r->n_layers && rc == GRAFT_OK; l++)
        if (r->plans.masked[l].plan != NULL) rc = gr_parallel_blocks_mask(b, l, r->n_layers - l, error);
    gr_parallel_charge(r);
    return gr_comm_agree(r->comm, rc, error);
}

/* Allocate the records that transposes store from step to step. */
static int32_t reserve_stale_slices(struct gr_ranks *r, graft_error *error)
{
    struct gr_transpose *t = &r->columns->transpose;
    const int64_t        need = gr_parallel_transpose_layers_need(t, &t->layers);
    int32_t rc = gr_budget_check(r->wish.budget, (double)need, "messages (stale slices of columns)", error);

    if (rc == GRAFT_OK) rc = gr_parallel_transpose_layers_reserve(t, &t->layers, error);
    gr_parallel_charge(r);
    return rc;
}

/* Allocate slices of sums of `width` columns. */
static int32_t reserve_slices(struct gr_ranks *r, int64_t width, graft_error *error)
{
    int32_t rc = gr_budget_check(r->wish.budget, transpose_need(r, width), "messages (slices of columns)", error);

    if (rc == GRAFT_OK) rc = gr_parallel_transpose_reserve(&r->columns->transpose, width, error);
    gr_parallel_charge(r);
    return rc;
}

/* Allocate the arrays of winners, which the backward pass needs. */
static int32_t reserve_winners(struct gr_ranks *r, graft_error *error)
{
    for (int32_t l = 1; l < r->n_layers && gr_parallel_config(r)->extremum != 0; l++)
        GR_TRY(GR_BUDGET_NEW(r->wish.budget, GR_USE_ACTIVATIONS, r->columns->winner[l], count_winners(r, l), error));
    return GRAFT_OK;
}

int32_t gr_parallel_columns_reserve(struct gr_strategy *strategy, graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    if (r->wish.trains) GR_TRY(reserve_stale_slices(r, error));
    if (r->wish.trains) GR_TRY(reserve_winners(r, error));
    GR_TRY(gr_parallel_reserve_sums(r, error));
    GR_TRY(gr_parallel_plans_reserve(r, error));
    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        GR_TRY(reserve_slices(r, gr_summed_columns(&r->wish.run->layers[l]), error));
        GR_TRY(reserve_slices(r, gr_parallel_plans_label_columns(r, l), error));
    }
    return GRAFT_OK;
}

struct new_columns {
    struct gr_new_plans plans;
    struct gr_made_part group;  /* the edges from other groups */
    struct gr_edge_sets blocks; /* the edges inside the group */
};

static int32_t make_new_blocks(struct gr_ranks *r, const struct gr_part *linked, struct gr_edge_sets *sets,
                               graft_error *error)
{
    GR_TRY(make_blocks(r, linked, sets, error));
    GR_TRY(mask_blocks(r, sets, error));
    if (r->columns->blocks.streams) return GRAFT_OK;
    return gr_parallel_edge_sets_gather(r->wish.budget, r->comm, &r->columns->grid, sets, error);
}

int32_t gr_parallel_columns_values_begin(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                                         graft_error *error)
{
    struct gr_ranks      *r = gr_parallel_of(strategy);
    const struct gr_grid *grid = &r->columns->grid;
    struct gr_linked_part linked = { .borrowed = 0 };
    struct new_columns   *made = NULL;
    int32_t               rc = GR_NEW(r->context, made, 1, error);

    *values = made;
    GR_TRY_DONE(gr_comm_agree(r->comm, rc, error));
    GR_TRY_DONE(gr_parallel_linked_part_init(r->wish.budget, r->comm, &grid->linked, part, &linked, error));
    GR_TRY_DONE(make_new_blocks(r, &linked.made.part, &made->blocks, error));
    GR_TRY_DONE(gr_parallel_edge_gather_outside(r->wish.budget, r->comm, grid, &linked.made.part,
                                                gr_parallel_columns_have_remote(r), &made->group, error));
    rc = gr_parallel_plans_values_begin(r, &made->group.part, &made->plans, error);
done:
    gr_parallel_linked_part_fini(r->wish.budget, &linked);
    return rc;
}

void gr_parallel_columns_values_end(struct gr_strategy *strategy, void *values, int takes)
{
    struct gr_ranks     *r = gr_parallel_of(strategy);
    struct gr_made_part *group = &r->columns->grid.made;
    struct new_columns  *made = values;

    if (made == NULL) return;
    if (takes) {
        gr_parallel_blocks_swap(&r->columns->blocks, &made->blocks);
        gr_graph_part_take_values(&group->local, &group->part.local, &made->group.local);
        gr_graph_part_take_values(&group->remote, &group->part.remote, &made->group.remote);
    }
    gr_parallel_plans_values_end(r, &made->plans, takes);
    gr_graph_made_part_fini(r->context, &made->group);
    gr_parallel_edge_sets_fini(r->context, &made->blocks);
    gr_free(r->context, made);
    if (takes) gr_parallel_reset(r);
    gr_parallel_charge(r);
}
