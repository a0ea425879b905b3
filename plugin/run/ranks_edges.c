/* New edge values over ranks. Owners of rows and vertex covers stay as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/setup.h"

int32_t gr_ranks_edges_check(const struct gr_setup *s, const struct gr_new_edges *e, graft_error *error)
{
    const graft_csr *rows = &e->graph;

    if (rows->n_rows != s->data.over->n_slice || rows->n_cols != s->data.over->n_vertices)
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld; the slice of this rank is %lld x %lld",
                       (long long)rows->n_rows, (long long)rows->n_cols, (long long)s->data.over->n_slice,
                       (long long)s->data.over->n_vertices);
    if (gr_slice_digest(rows) == s->data.over->slice_digest) return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_ARG,
        "graph: row_ptr or col_idx differ from the slice at the creation of the graph over ranks; values may "
        "change, but not entries");
}

/* Check the memory for value arrays that the trainer has shared with the graph over ranks so far. */
static int32_t check_edge_memory(const struct gr_setup *s, graft_error *error)
{
    const struct gr_partition *r = &s->partition;
    double                     bytes = 0;

    if (r->needs_rows) return GRAFT_OK;
    if (r->made.local.values == NULL) bytes += 4.0 * (double)gr_csr_entries(&r->part.local);
    if (r->made.remote.values == NULL) bytes += 4.0 * (double)gr_csr_entries(&r->part.remote);
    return gr_budget_check(&s->budget, bytes, "graph (values of its own)", error);
}

static int32_t join_values(const struct gr_setup *s, struct gr_new_edges *e, graft_error *error)
{
    float  *values = NULL;
    int32_t rc = GR_NEW(s->context, values, gr_csr_entries(&s->derived.a->csr), error);

    if (rc == GRAFT_OK) gr_ranks_join_values(&e->part, values);
    e->joined = values;
    return gr_strategy_agree(s->run.strategy, rc, error);
}

/* The edges inside the group in blocks, with the new values. */
static int32_t make_new_blocks(struct gr_setup *s, const struct gr_part *part, struct gr_new_edges *e,
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
static int32_t make_new_group(struct gr_setup *s, struct gr_new_edges *e, graft_error *error)
{
    const struct gr_partition *r = &s->partition;
    const struct gr_grid      *grid = &r->shared->grid;
    struct gr_linked_part      linked;
    int32_t                    rc = gr_linked_part_init(&s->budget, r->comm, &grid->linked, &e->part, &linked, error);

    GR_TRY(rc);
    GR_TRY(make_new_blocks(s, &linked.made.part, e, error));
    rc = gr_grid_gather(&s->budget, r->comm, grid, &linked.made.part, gr_partition_has_remote(r), &e->group, error);
done:
    gr_linked_part_fini(&s->budget, &linked);
    return rc;
}

int32_t gr_ranks_edges_begin(struct gr_setup *s, struct gr_new_edges *e, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    struct gr_part_copy  copy = { &e->budget, &e->part, &e->made };
    struct gr_part      *summed;
    int32_t              rc = gr_strategy_agree(s->run.strategy, check_edge_memory(s, error), error);

    GR_TRY(rc);
    GR_TRY(gr_graph_send_values(s->data.over, e->graph.values, &e->made, error));
    e->part = e->made.part;
    GR_TRY(gr_ranks_graph_derive(s, &copy, 0, error));
    if (r->needs_rows) return join_values(s, e, error);
    if (r->columns > 1) GR_TRY(make_new_group(s, e, error));
    summed = r->columns > 1 ? &e->group.part : &e->part;
    GR_TRY(gr_plan_values_begin(r->plan, summed, &e->whole, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        if (r->masked[l].plan != NULL) GR_TRY(gr_plan_values_begin(r->masked[l].plan, summed, &e->masked[l], error));
done:
    return rc;
}

void gr_ranks_edges_end(struct gr_setup *s, struct gr_new_edges *e)
{
    struct gr_partition *r = &s->partition;

    if (!gr_setup_uses_values(s)) return;
    if (e->joined != NULL) {
        gr_matrix_swap_values(s->derived.a, &e->joined);
    } else {
        gr_part_take_values(&r->made.local, &r->part.local, &e->made.local);
        gr_part_take_values(&r->made.remote, &r->part.remote, &e->made.remote);
    }
    if (r->columns > 1) {
        gr_blocks_swap(&r->shared->blocks, e->blocks);
        gr_part_take_values(&r->shared->grid.made.local, &r->shared->grid.made.part.local, &e->group.local);
        gr_part_take_values(&r->shared->grid.made.remote, &r->shared->grid.made.part.remote, &e->group.remote);
    }
    if (r->plan != NULL) gr_plan_values_end(r->plan, &e->whole);
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        struct gr_masked_rows *m = &r->masked[l];

        if (m->plan == NULL) continue;
        m->part.part.local.values = gr_partition_summed(r)->local.values;
        m->part.part.remote.values = gr_partition_summed(r)->remote.values;
        gr_plan_values_end(m->plan, &e->masked[l]);
    }
    gr_setup_scales_refresh(s, &r->part.local, &r->part.remote);
    gr_partition_reset(r);
    gr_partition_charge(r, &s->budget);
}
