/* New edge values over ranks, as strategies need them. Owners of rows and vertex covers stay as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/ranks.h"

/* The edges inside the group in blocks, with the new values. */
static int32_t make_new_blocks(struct gr_setup *s, const struct gr_part *part, struct gr_new_sums *e,
                               graft_error *error)
{
    const struct gr_partition *r = &s->partition;
    const struct gr_grid      *grid = &r->shared->grid;
    int32_t                    rc = GR_NEW(s->context, e->blocks, 1, error);

    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(gr_edge_sets_init(&s->budget, r->comm, grid, part, NULL, 1, e->blocks, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        if (r->masked[l].plan != NULL)
            GR_TRY(gr_edge_sets_mask(&s->budget, r->comm, grid, l, s->model.config.n_layers - l, e->blocks, error));
    if (!r->shared->blocks.streams) rc = gr_edge_sets_gather(&s->budget, r->comm, grid, e->blocks, error);
done:
    return rc;
}

/* The summed edges if ranks share columns. */
static int32_t make_new_group(struct gr_setup *s, const struct gr_part *part, struct gr_new_sums *e, graft_error *error)
{
    const struct gr_partition *r = &s->partition;
    const struct gr_grid      *grid = &r->shared->grid;
    struct gr_linked_part      linked;
    int32_t                    rc = gr_linked_part_init(&s->budget, r->comm, &grid->linked, part, &linked, error);

    GR_TRY(rc);
    GR_TRY(make_new_blocks(s, &linked.made.part, e, error));
    rc = gr_grid_gather(&s->budget, r->comm, grid, &linked.made.part, gr_partition_has_remote(r), &e->group, error);
done:
    gr_linked_part_fini(&s->budget, &linked);
    return rc;
}

int32_t gr_ranks_edges_begin(struct gr_setup *s, const struct gr_part *part, struct gr_new_sums **sums,
                             graft_error *error)
{
    struct gr_partition  *r = &s->partition;
    const struct gr_part *summed = part;
    struct gr_new_sums   *e = NULL;
    int32_t               rc = GRAFT_OK;

    if (s->data.over == NULL || r->needs_rows || !s->derived.wish.uses_values) return GRAFT_OK;
    GR_TRY(gr_strategy_agree(s->run.strategy, GR_NEW(s->context, e, 1, error), error));
    *sums = e;
    if (r->columns > 1) GR_TRY(make_new_group(s, part, e, error));
    if (r->columns > 1) summed = &e->group.part;
    GR_TRY(gr_plan_values_begin(r->plan, summed, &e->whole, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        if (r->masked[l].plan != NULL) GR_TRY(gr_plan_values_begin(r->masked[l].plan, summed, &e->masked[l], error));
done:
    if (*sums == NULL) gr_free(s->context, e);
    return rc;
}

void gr_ranks_edges_end(struct gr_setup *s, struct gr_new_sums *e)
{
    struct gr_partition *r = &s->partition;

    if (s->data.over == NULL || !s->derived.wish.uses_values) return;
    if (e != NULL && r->columns > 1) {
        gr_blocks_swap(&r->shared->blocks, e->blocks);
        gr_part_take_values(&r->shared->grid.made.local, &r->shared->grid.made.part.local, &e->group.local);
        gr_part_take_values(&r->shared->grid.made.remote, &r->shared->grid.made.part.remote, &e->group.remote);
    }
    if (e != NULL) gr_plan_values_end(r->plan, &e->whole);
    for (int32_t l = 0; l < s->model.config.n_layers && e != NULL; l++) {
        struct gr_masked_rows *m = &r->masked[l];

        if (m->plan == NULL) continue;
        m->part.part.local.values = gr_partition_summed(r)->local.values;
        m->part.part.remote.values = gr_partition_summed(r)->remote.values;
        gr_plan_values_end(m->plan, &e->masked[l]);
    }
    gr_partition_reset(r);
    gr_partition_charge(r, &s->budget);
}

void gr_ranks_edges_fini(struct gr_setup *s, struct gr_new_sums *e)
{
    if (e == NULL) return;
    gr_made_part_fini(s->context, &e->group);
    if (e->blocks != NULL) gr_edge_sets_fini(s->context, e->blocks);
    gr_free(s->context, e->blocks);
    if (s->partition.plan != NULL) gr_plan_values_fini(s->partition.plan, &e->whole);
    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        if (s->partition.masked[l].plan != NULL) gr_plan_values_fini(s->partition.masked[l].plan, &e->masked[l]);
    gr_free(s->context, e);
}
