/* The plans of a graph over ranks, of all rows and of the layers in a step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "edge/edge.h"
#include "run/loss.h"
#include "run/ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int32_t init_halo_rows(struct gr_setup *s, graft_error *error)
{
    const struct gr_part *part = s->partition.part;
    const int32_t         layers = s->model.config.n_layers;
    int64_t               width[GR_LAYERS_MAX];
    int32_t               rc = GRAFT_OK;

    for (int32_t l = 0; l < layers; l++)
        width[l] = s->partition.columns_of[l] = s->partition.widest[l] =
            s->model.config.kind->attends ? gr_config_wide(&s->model.config, l) : gr_config_in(&s->model.config, l);
    GR_TRY(
        gr_halo_rows_init(s->context, s->data.over->comm, &part->halo, width, layers, &s->partition.halo_rows, error));
    gr_halo_rows_weigh(&s->partition.halo_rows, part);
    gr_partition_charge(&s->partition, &s->budget);
done:
    return rc;
}

static int32_t make_part_plan(struct gr_setup *s, const struct gr_part *part, graft_plan **plan, graft_error *error)
{
    const struct gr_plan_wish wish = { .transposed = s->given == NULL && s->model.config.extremum == 0,
                                       .dtype = GRAFT_F32,
                                       .is_revalued = s->given == NULL && part->local.values != NULL,
                                       .layers = s->model.config.n_layers };
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_plan_create(s->context, s->data.over->comm, part, s->data.over, &wish, plan, error));
    gr_partition_charge(&s->partition, &s->budget);
done:
    return rc;
}

/* The local initialisation. In slices of sums the results of this rank follow the rows from other groups; in slices of
 * extrema the rows of the halo follow the rows of the group. */
static int32_t init_shared(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    struct gr_grid      *grid = &r->shared->grid;
    const int64_t        slots = GR_DIRECTIONS * (int64_t)s->model.config.n_layers;
    const int64_t group = gr_grid_rows(grid, grid->n_levels), beyond = r->needs_rows ? grid->made.part.halo.count : 0;
    const int64_t own = gr_grid_rows_of(grid, r->comm->rank, grid->n_levels);
    const int64_t rows[] = { group + beyond, r->extremum != 0     ? group + beyond
                                             : grid->n_groups > 1 ? group + own
                                                                  : own };
    int32_t       rc =
        gr_transpose_init(s->context, r->comm, grid, s->model.config.n_layers, rows, &r->shared->transpose, error);

    gr_blocks_init(s->context, r->comm, grid, beyond, &r->shared->blocks);
    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(&s->budget, GR_USE_MESSAGES, r->shared->turned, slots * r->comm->n_ranks, error);
    return rc;
}

/* The graph of the ranks that share columns with this one. Its levels are the prefixes of rows that layers need. */
static int32_t make_grid(struct gr_setup *s, struct gr_linked_part *linked, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    const int32_t        layers = s->model.config.n_layers;
    int64_t              reach[GR_LAYERS_MAX + 3] = { 0 };
    struct gr_grid      *grid;
    int32_t              rc = GRAFT_OK;

    for (int32_t l = 0; l <= layers; l++) reach[layers - l + 1] = s->derived.reach[l];
    reach[layers + 2] = s->data.n;
    rc = GR_NEW(s->context, r->shared, 1, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    grid = &r->shared->grid;
    GR_TRY(gr_grid_init(&s->budget, r->comm, r->part, r->columns, layers + 2, reach, grid, error));
    GR_TRY(gr_linked_part_init(&s->budget, r->comm, &grid->linked, r->part, linked, error));
    GR_TRY(
        gr_grid_gather(&s->budget, r->comm, grid, &linked->made.part, gr_partition_has_remote(r), &grid->made, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, init_shared(s, error), error));
    gr_partition_charge(r, &s->budget);
done:
    return rc;
}

/* Extrema with shared columns in several groups: boundary rows of the slices of each layer. */
static int32_t init_group_halo(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    const int32_t        layers = s->model.config.n_layers;
    int64_t              width[GR_LAYERS_MAX];
    int32_t              rc = GRAFT_OK;

    for (int32_t l = 0; l < layers; l++) width[l] = gr_partition_slice(r, gr_config_in(&s->model.config, l));
    GR_TRY(
        gr_halo_rows_init(s->context, r->comm, &r->shared->grid.made.part.halo, width, layers, &r->halo_rows, error));
    gr_partition_charge(r, &s->budget);
done:
    return rc;
}

int32_t gr_ranks_graph_init(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    const int64_t        slots = GR_DIRECTIONS * (int64_t)s->model.config.n_layers;
    int32_t              rc = GRAFT_OK;

    if (s->data.over == NULL) return GRAFT_OK;
    rc = GR_BUDGET_NEW(&s->budget, GR_USE_MESSAGES, r->sent, slots + 1, error);
    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(&s->budget, GR_USE_MESSAGES, r->pairs, slots * s->data.over->comm->n_ranks, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    r->part = &s->derived.graph.part;
    r->share = s->derived.share;
    if (s->derived.wish.reads_halo && s->model.config.kind->gathers) rc = init_halo_rows(s, error);
done:
    return rc;
}

/* The plan of all rows, and if ranks share columns the edges of this rank inside its group. */
static int32_t make_all_rows(struct gr_setup *s, graft_error *error)
{
    struct gr_partition  *r = &s->partition;
    const int             turned = s->given == NULL && r->extremum == 0;
    struct gr_linked_part linked = { .borrowed = 0 };
    int32_t               rc = GRAFT_OK;

    if (r->columns > 1) GR_TRY(make_grid(s, &linked, error));
    if (r->needs_rows) GR_TRY(init_group_halo(s, error));
    GR_TRY(make_part_plan(s, gr_partition_summed(r), &r->plan, error));
    if (r->columns == 1) return GRAFT_OK;
    rc = gr_edge_sets_init(&s->budget, r->comm, &r->shared->grid, &linked.made.part,
                           r->needs_rows ? &r->shared->grid.made.part.halo : NULL, turned, &r->shared->blocks.sets,
                           error);
    gr_partition_charge(r, &s->budget);
done:
    gr_linked_part_fini(&s->budget, &linked);
    return rc;
}

/* Whether layer l computes the same rows as the layer before it, from the same input. All ranks agree, because no
 * number of rows grows from layer to layer. */
static int repeats_rows(const struct gr_setup *s, int32_t l)
{
    const struct gr_partition *r = &s->partition;

    return l > 0 && r->step_plan[l - 1] != NULL && r->step_plan[l - 1] != r->plan &&
           s->derived.reach_of_all[l - 1] == s->derived.reach_of_all[l] &&
           s->derived.reach_of_all[l] == s->derived.reach_of_all[l + 1];
}

static int32_t mask_rows(struct gr_setup *s, int32_t l, graft_error *error)
{
    const struct gr_partition *r = &s->partition;
    struct gr_masked_rows     *m = &s->partition.masked[l];
    const int32_t              prefix = s->model.config.n_layers - l;
    int64_t                    n_dst = s->derived.reach[l + 1], n_src = s->derived.reach[l];
    int32_t                    rc = GRAFT_OK;

    if (r->columns > 1) {
        n_dst = gr_partition_has_remote(r) ? gr_grid_rows(&r->shared->grid, prefix) : 0;
        n_src = gr_partition_has_remote(r) ? gr_grid_rows(&r->shared->grid, prefix + 1) : 0;
    }
    rc = gr_part_first(s->context, gr_partition_summed(r), r->comm->n_ranks, n_dst, n_src, &m->part, error);

    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(make_part_plan(s, &m->part.part, &m->plan, error));
    s->partition.step_plan[l] = m->plan;
    if (r->columns == 1) return GRAFT_OK;
    rc = gr_edge_sets_mask(&s->budget, r->comm, &r->shared->grid, l, prefix, &r->shared->blocks.sets, error);
    gr_partition_charge(&s->partition, &s->budget);
done:
    return rc;
}

/* The plan of each layer in a step determines its messages. */
static int32_t add_step_plans(struct gr_setup *s, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++) {
        const int32_t here = gr_plan_add_layer(s->partition.step_plan[l], l, error);

        if (rc == GRAFT_OK) rc = here;
    }
    gr_partition_charge(&s->partition, &s->budget);
    return gr_strategy_agree(s->run.strategy, rc, error);
}

int32_t gr_ranks_graph_mask(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    int32_t              rc = GRAFT_OK;

    if (s->data.over == NULL || !s->model.config.kind->gathers || s->derived.wish.reads_halo) return GRAFT_OK;
    GR_TRY(make_all_rows(s, error));
    s->derived.whole.of_strategy = r->plan;
    if (s->given != NULL) return GRAFT_OK;
    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++) {
        r->step_plan[l] = r->plan;
        if (l < gr_first_masked(s) || s->derived.reach_of_all[l + 1] == s->data.given.n_vertices) continue;
        if (repeats_rows(s, l)) r->step_plan[l] = r->step_plan[l - 1];
        else GR_TRY(mask_rows(s, l, error));
    }
    rc = add_step_plans(s, error);
done:
    return rc;
}

int32_t gr_ranks_blocks_init(struct gr_setup *s, int streams, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    int32_t              rc = GRAFT_OK;

    if (s->data.over == NULL || r->shared == NULL) return GRAFT_OK;
    GR_TRY(gr_blocks_choose(&s->budget, &r->shared->blocks, streams, error));
    for (int32_t l = 0; l < s->model.config.n_layers && rc == GRAFT_OK; l++)
        if (r->masked[l].plan != NULL) rc = gr_blocks_mask(&r->shared->blocks, l, s->model.config.n_layers - l, error);
    gr_partition_charge(r, &s->budget);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    return rc;
}

int32_t gr_ranks_stale_init(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    struct gr_transpose *t;
    int32_t              rc;

    if (r->shared == NULL || s->given != NULL) return GRAFT_OK;
    t = &r->shared->transpose;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++) {
        struct gr_turned_layer *of = &t->of_layer[l];

        of->width = gr_summed_columns(&s->run.layers[l]);
        for (int k = 0; k < 2; k++) of->prefix[k] = gr_partition_prefix(r, r->step_plan[l], l, !k);
    }
    rc = gr_transpose_layers_init(t, &t->layers, error);
    gr_partition_charge(r, &s->budget);
    return rc;
}

/* The records that transposes store from step to step. */
static int32_t keep_transposes(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    struct gr_transpose *t = &r->shared->transpose;
    const int64_t        need = gr_transpose_layers_need(t, &t->layers);
    int32_t              rc = gr_budget_check(&s->budget, (double)need, "messages (stale slices of columns)", error);

    GR_TRY(rc);
    rc = gr_transpose_layers_reserve(t, &t->layers, error);
    gr_partition_charge(r, &s->budget);
done:
    return rc;
}

int64_t gr_ranks_winners(const struct gr_setup *s, int32_t l)
{
    const struct gr_partition *r = &s->partition;

    if (r->shared == NULL || s->given != NULL || s->model.config.extremum == 0 || l == 0) return 0;
    return gr_grid_rows(&r->shared->grid, gr_partition_prefix(r, r->step_plan[l], l, 0)) *
           gr_partition_slice(r, gr_summed_columns(&s->run.layers[l]));
}

/* The neighbours of extrema, for the backward pass. */
static int32_t keep_winners(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    int32_t              rc = GRAFT_OK;

    for (int32_t l = 1; l < s->model.config.n_layers && s->model.config.extremum != 0; l++)
        GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_ACTIVATIONS, r->shared->winner[l], gr_ranks_winners(s, l), error));
done:
    return rc;
}

int32_t gr_ranks_reserve(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    int32_t              rc = GRAFT_OK;

    if (s->data.over == NULL) return GRAFT_OK;
    if (r->columns > 1 && s->given == NULL) GR_TRY(keep_transposes(s, error));
    if (r->columns > 1 && s->given == NULL) GR_TRY(keep_winners(s, error));
    if (s->given == NULL)
        GR_TRY(gr_comm_reserve(r->comm, (uint64_t)s->model.parameters.n_weights * sizeof(float), error));
    if (s->run.space.n_column_sums > 0)
        GR_TRY(gr_comm_reserve(r->comm, (uint64_t)s->run.space.n_column_sums * sizeof(double), error));
    if (gr_is_regression(&s->model.config))
        GR_TRY(gr_comm_reserve(
            r->comm, GR_PARTIALS * (uint64_t)gr_regression_sums(s->data.given.n_classes) * sizeof(double), error));
    if (r->plan == NULL) return GRAFT_OK;
    gr_ranks_find_widths(s);
    /* The widest rows first, so that no buffer is replaced by a larger one. */
    GR_TRY(gr_partition_reserve(r, &s->budget, r->plan, -1, gr_ranks_widest(s, r->plan), error));
    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++) {
        if (r->columns > 1)
            GR_TRY(gr_partition_reserve_transpose(r, &s->budget, gr_summed_columns(&s->run.layers[l]), error));
        if (r->columns > 1) GR_TRY(gr_partition_reserve_transpose(r, &s->budget, gr_ranks_label_columns(s, l), error));
        if (s->given != NULL) continue;
        GR_TRY(gr_partition_reserve(r, &s->budget, r->step_plan[l], -1, gr_ranks_widest(s, r->step_plan[l]), error));
        GR_TRY(gr_partition_reserve(r, &s->budget, r->step_plan[l], l, r->columns_of[l], error));
    }
done:
    return rc;
}
