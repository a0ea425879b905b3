/* The graph over ranks: made symmetric, in the order of the setup, with self loops; and its parts for the layers in a
 * step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "edge/edge.h"
#include "run/setup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Replace the part by its derived part. */
static void replace_part(struct gr_setup *s, struct gr_part_copy *copy, struct gr_made_part *next)
{
    gr_made_part_fini(s->context, copy->made);
    *copy->made = *next;
    *copy->part = next->part;
    GR_ASSERT(gr_part_is_valid(copy->part, s->data.over->comm->n_ranks, s->data.over->comm->rank));
    *next = (struct gr_made_part){ 0 };
    gr_partition_charge(&s->partition, &s->budget);
}

/* Store every edge in both directions. */
static int32_t make_part_symmetric(struct gr_setup *s, struct gr_part_copy *copy, graft_error *error)
{
    const int64_t       bytes = gr_part_symmetrize_bytes(copy->part);
    struct gr_made_part made = { 0 };
    int32_t             rc = GRAFT_OK;

    rc = gr_budget_borrow(copy->budget, bytes, "graph (made symmetric)", error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(gr_part_symmetrize(s->context, s->data.over->comm, copy->part, &made, error));
    gr_budget_return(copy->budget, bytes);
    replace_part(s, copy, &made);
done:
    gr_made_part_fini(s->context, &made);
    return rc;
}

/* Share the counts of a part, unless it is the part of the graph over ranks. */
static int32_t share_part(struct gr_setup *s, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    int32_t              rc = GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, r->share, s->data.over->comm->n_ranks, error);

    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    rc = gr_graph_share(s->data.over, &r->part, r->share, error);
done:
    return rc;
}

/* Add a loop at each vertex, which changes only the local matrix. */
static int32_t add_part_loops(struct gr_setup *s, struct gr_part_copy *copy, graft_error *error)
{
    const graft_csr *local = &copy->part->local;
    const int64_t    entries = gr_csr_entries(local) + gr_csr_missing_loops(local);
    const int64_t    bytes = gr_csr_copy_bytes(local, s->data.n, entries);
    struct gr_csr    looped = { 0 };
    int32_t          rc = GRAFT_OK;

    const struct gr_loop_value value = gr_setup_loop_value(s, &copy->part->remote);

    GR_TRY(gr_budget_borrow(copy->budget, bytes, "graph (with self loops)", error));
    GR_TRY(gr_csr_add_self_loops(s->context, local, &value, &looped, error));
    gr_csr_fini(s->context, &copy->made->local);
    copy->made->local = looped;
    copy->part->local = copy->made->part.local = looped.view;
    gr_budget_return(copy->budget, bytes);
    gr_partition_charge(&s->partition, &s->budget);
done:
    return rc;
}

static int32_t put_part_in_order(struct gr_setup *s, struct gr_part_copy *copy, graft_error *error)
{
    const int64_t       bytes = gr_part_reorder_bytes(copy->part);
    struct gr_made_part made = { 0 };
    int32_t             rc = GRAFT_OK;

    GR_TRY(gr_strategy_agree(s->run.strategy, gr_budget_borrow(copy->budget, bytes, "graph (in another order)", error),
                             error));
    GR_TRY(
        gr_part_reorder(s->context, s->data.over->comm, copy->part, &s->partition.links, s->derived.row, &made, error));
    gr_budget_return(copy->budget, bytes);
    replace_part(s, copy, &made);
done:
    gr_made_part_fini(s->context, &made);
    return rc;
}

int32_t gr_ranks_graph_derive(struct gr_setup *s, struct gr_part_copy *copy, int first, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    const int moves = first ? gr_masks_rows(s) || s->model.config.order != GR_ORDER_GIVEN : s->derived.row != NULL;
    int32_t   rc = GRAFT_OK;

    if (s->model.config.symmetrize) GR_TRY(make_part_symmetric(s, copy, error));
    if (s->model.config.symmetrize && first) GR_TRY(share_part(s, error));
    if (moves) GR_TRY(gr_links_init(s->context, s->data.over->comm, &copy->part->halo, &r->links, error));
    gr_partition_charge(r, &s->budget);
    if (first) GR_TRY(gr_setup_order_init(s, &copy->part->local, error));
    if (s->model.config.self_loops) rc = add_part_loops(s, copy, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    if (s->derived.row != NULL) rc = put_part_in_order(s, copy, error);
done:
    gr_links_fini(s->data.over->comm, &r->links);
    gr_partition_charge(r, &s->budget);
    return rc;
}

/* Mark in `out` the vertices of the halo from which the level gathers. */
static void mark_halo(const graft_csr *remote, const struct gr_search *search, uint8_t *out)
{
    for (int64_t i = search->begin; i < search->end; i++) {
        const int64_t row = search->queue[i];

        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) out[gr_csr_column(remote, e)] = 1;
    }
}

int32_t gr_ranks_search(struct gr_setup *s, struct gr_search *search, int32_t hop, graft_error *error)
{
    struct gr_partition *r = &s->partition;
    uint8_t             *out = NULL, *in = NULL;
    int64_t              told;
    int32_t              rc = GRAFT_OK;

    if (s->data.over == NULL) return GRAFT_OK;
    told = r->links.send_start[s->data.over->comm->n_ranks];
    rc = gr_budget_check(&s->budget, (double)(r->part.halo.count + told), "graph (the order of its vertices)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(s->context, out, r->part.halo.count, error);
    if (rc == GRAFT_OK) rc = GR_NEW(s->context, in, told, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    mark_halo(&r->part.remote, search, out);
    GR_TRY(gr_links_tell(&r->links, s->data.over->comm, out, in, 1, error));
    for (int64_t i = 0; i < told; i++)
        if (in[i]) gr_search_add(search, r->links.place[i], hop);
done:
    gr_free(s->context, out);
    gr_free(s->context, in);
    return rc;
}

void gr_ranks_join_values(const struct gr_part *part, void *values)
{
    const graft_csr *parts[] = { &part->local, &part->remote };
    const int64_t    bytes = gr_dtype_bytes(part->local.value_type);
    char            *to = values;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        for (int i = 0; i < 2; i++) {
            const int64_t begin = parts[i]->row_ptr[row], count = parts[i]->row_ptr[row + 1] - begin;

            if (count == 0) continue;
            memcpy(to, (const char *)parts[i]->values + begin * bytes, (uint64_t)(count * bytes));
            to += count * bytes;
        }
    }
}

int32_t gr_ranks_join(const struct gr_setup *s, int with_values, struct gr_csr *joined, graft_error *error)
{
    const struct gr_part *part = &s->partition.part;
    const graft_csr      *parts[] = { &part->local, &part->remote };
    const graft_csr       like = { .size = sizeof like,
                                   .index_type = GRAFT_I32,
                                   .value_type = part->local.value_type,
                                   .values = with_values ? part->local.values : NULL };
    const graft_semiring  extremum = s->model.config.extremum;
    const int64_t         seen = s->data.n + part->halo.count;
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);
    int64_t               at = 0;
    int32_t               rc = GRAFT_OK;

    if (seen > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "%lld vertices and %lld of other ranks are too many for option '%s' = %s", (long long)s->data.n,
                       (long long)part->halo.count, extremum != 0 ? "aggregator" : "model",
                       extremum != 0 ? gr_extremum_word(extremum) : s->model.config.kind->name);
    GR_TRY(gr_csr_init(s->context, joined, &like, s->data.n, seen, entries, error));
    for (int64_t row = 0; row < s->data.n; row++) {
        for (int i = 0; i < 2; i++) {
            for (int64_t e = parts[i]->row_ptr[row]; e < parts[i]->row_ptr[row + 1]; e++)
                ((int32_t *)joined->col_idx)[at++] = (int32_t)(gr_csr_column(parts[i], e) + (i > 0 ? s->data.n : 0));
        }
        joined->row_ptr[row + 1] = at;
    }
    if (joined->values != NULL) gr_ranks_join_values(part, joined->values);
    GR_ASSERT(gr_csr_is_valid(&joined->view));
done:
    return rc;
}

/* For attention and extrema, the matrix of the rows of this rank. If values are numbers of entries, the matrix has no
 * values, and the caller frees the numbers. */
static int32_t make_joined(struct gr_setup *s, int64_t **numbers, graft_error *error)
{
    const graft_csr *remote = &s->partition.part.remote;
    struct gr_csr    joined = { 0 };

    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_ranks_join(s, gr_setup_uses_values(s) || s->model.config.edge_array, &joined, error));
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, s->derived.row_kind, s->derived.n_seen, error));
    memset(s->derived.row_kind + s->data.n, GR_ROW_HALO, (uint64_t)(s->derived.n_seen - s->data.n));
    for (int64_t row = 0; row < s->data.n; row++)
        if (remote->row_ptr[row] < remote->row_ptr[row + 1]) s->derived.row_kind[row] = GR_ROW_BOUNDARY;
    if (s->model.config.edge_array) {
        *numbers = joined.values;
        joined.values = NULL;
        joined.view.values = NULL;
    }
    GR_TRY(gr_matrix_take(s->context, &joined, &s->derived.a, error));
    if (s->given == NULL && s->model.config.kind->attends)
        GR_TRY(gr_edge_map(s->derived.a, &map, error)); /* here, so that no epoch allocates */
    gr_budget_charge(&s->budget, GR_USE_GRAPH, gr_matrix_own_bytes(s->derived.a));
done:
    gr_csr_fini(s->context, &joined);
    return rc;
}

/* Dropout of attention draws for both ends of an edge, so a rank needs the numbers of vertices in its halo. */
static int32_t ask_vertices(struct gr_setup *s, graft_error *error)
{
    struct gr_comm  *comm = s->data.over->comm;
    struct gr_links *links = &s->partition.halo_rows.links;
    const int64_t    bytes = links->send_start[comm->n_ranks] * (int64_t)sizeof(int64_t);
    int64_t         *seen = NULL, *packed = NULL;
    int32_t          rc = gr_budget_borrow(&s->budget, bytes, "graph (vertices of other ranks)", error);

    if (rc == GRAFT_OK) rc = GR_NEW(s->context, packed, links->send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_BUDGET_NEW(&s->budget, GR_USE_GRAPH, seen, s->derived.n_seen, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    for (int64_t v = 0; v < s->data.n; v++) seen[v] = s->derived.vertex[v];
    GR_TRY(gr_links_ask(links, comm, s->derived.vertex, packed, seen + s->data.n, sizeof *seen, error));
    s->derived.vertex = seen;
    gr_budget_return(&s->budget, bytes);
done:
    gr_free(s->context, packed);
    return rc;
}

static int32_t init_halo_rows(struct gr_setup *s, graft_error *error)
{
    const struct gr_halo *halo = &s->partition.part.halo;
    const int32_t         layers = s->model.config.n_layers;
    int64_t               width[GR_LAYERS_MAX], *numbers = NULL;
    int32_t               rc = GRAFT_OK;

    s->derived.n_seen = s->data.n + halo->count;
    for (int32_t l = 0; l < layers; l++)
        width[l] = s->partition.columns_of[l] = s->partition.widest[l] =
            s->model.config.kind->attends ? gr_config_wide(&s->model.config, l) : gr_config_in(&s->model.config, l);
    GR_TRY(gr_strategy_agree(s->run.strategy, make_joined(s, &numbers, error), error));
    if (s->model.config.edge_array) {
        gr_ranks_edge_numbers_drop(s);
        GR_TRY(gr_edge_features_init(s, &s->derived.a->csr, numbers, error));
    }
    GR_TRY(gr_halo_rows_init(s->context, s->data.over->comm, halo, width, layers, &s->partition.halo_rows, error));
    gr_halo_rows_weigh(&s->partition.halo_rows, &s->partition.part);
    gr_partition_charge(&s->partition, &s->budget);
    if (s->model.config.attention_dropout > 0 && s->given == NULL) rc = ask_vertices(s, error);
done:
    gr_free(s->context, numbers);
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
    GR_TRY(gr_grid_init(&s->budget, r->comm, &r->part, r->columns, layers + 2, reach, grid, error));
    GR_TRY(gr_linked_part_init(&s->budget, r->comm, &grid->linked, &r->part, linked, error));
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
    struct gr_part_copy  copy = { &s->budget, &r->part, &r->made };
    const int64_t        slots = GR_DIRECTIONS * (int64_t)s->model.config.n_layers;
    int32_t              rc = GRAFT_OK;

    s->derived.vertex = s->data.over->vertex;
    r->part = s->data.over->part;
    r->share = s->data.over->share;
    rc = GR_BUDGET_NEW(&s->budget, GR_USE_MESSAGES, r->sent, slots + 1, error);
    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(&s->budget, GR_USE_MESSAGES, r->pairs, slots * s->data.over->comm->n_ranks, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    if (!s->model.config.kind->gathers) return gr_setup_order_init(s, NULL, error);
    if (s->model.config.edge_array) {
        GR_TRY(gr_ranks_edge_numbers(s, &s->budget, &s->data.edge_features, &r->made, error));
        r->part = r->made.part;
        gr_partition_charge(r, &s->budget);
    }
    GR_TRY(gr_ranks_graph_derive(s, &copy, 1, error));
    rc = gr_strategy_agree(s->run.strategy, gr_setup_scales(s, &r->part.local, &r->part.remote, error), error);
    GR_TRY(rc);
    if (gr_reads_halo(s)) rc = init_halo_rows(s, error);
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

    if (!s->model.config.kind->gathers || gr_reads_halo(s)) return GRAFT_OK;
    GR_TRY(make_all_rows(s, error));
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
    if (s->run.n_column_sums > 0)
        GR_TRY(gr_comm_reserve(r->comm, (uint64_t)s->run.n_column_sums * sizeof(double), error));
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
