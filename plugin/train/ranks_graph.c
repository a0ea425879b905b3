/* The graph of a trainer over ranks: made symmetric, in the order of the trainer, with self loops; and the parts of it
 * that the layers need in a step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "edge/edge.h"
#include "train/train.h"

#include <string.h>

/* What was made replaces what it was made from. */
static void replace_part(graft_trainer *t, struct gr_made_part *next)
{
    struct gr_partition *r = &t->partition;

    gr_made_part_fini(t->context, &r->made);
    r->made = *next;
    r->part = next->part;
    GR_ASSERT(gr_part_is_valid(&r->part, t->over->comm->n_ranks, t->over->comm->rank));
    *next = (struct gr_made_part){ 0 };
    gr_partition_charge(r, &t->budget);
}

/* Store every edge in both directions. All ranks then learn the new counts. */
static int32_t make_part_symmetric(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    const int64_t        bytes = gr_part_symmetrize_bytes(&r->part);
    struct gr_made_part  made = { 0 };
    int32_t              rc = GRAFT_OK;

    rc = gr_budget_borrow(&t->budget, bytes, "graph (made symmetric)", error);
    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    GR_TRY(gr_part_symmetrize(t->context, t->over->comm, &r->part, &made, error));
    gr_budget_return(&t->budget, bytes);
    replace_part(t, &made);
    rc = GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, r->share, t->over->comm->n_ranks, error);
    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    rc = gr_graph_share(t->over, &r->part, r->share, error);
done:
    gr_made_part_fini(t->context, &made);
    return rc;
}

/* A loop at each vertex, which takes the place of the local matrix alone. */
static int32_t add_part_loops(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    const graft_csr     *local = &r->part.local;
    const int64_t        entries = gr_csr_entries(local) + gr_csr_missing_loops(local);
    const int64_t        bytes = gr_csr_copy_bytes(local, t->n, entries);
    struct gr_csr        looped = { 0 };
    int32_t              rc = GRAFT_OK;

    GR_TRY(gr_budget_borrow(&t->budget, bytes, "graph (with self loops)", error));
    GR_TRY(gr_csr_add_self_loops(t->context, local, &looped, error));
    gr_csr_fini(t->context, &r->made.local);
    r->made.local = looped;
    r->part.local = r->made.part.local = looped.view;
    gr_budget_return(&t->budget, bytes);
    gr_partition_charge(r, &t->budget);
done:
    return rc;
}

static int32_t put_part_in_order(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    const int64_t        bytes = gr_part_reorder_bytes(&r->part);
    struct gr_made_part  made = { 0 };
    int32_t              rc = GRAFT_OK;

    GR_TRY(gr_strategy_agree(t->run.strategy,
                             gr_budget_borrow(&t->budget, bytes, "graph (in the order of the trainer)", error), error));
    GR_TRY(gr_part_reorder(t->context, t->over->comm, &r->part, &r->links, t->row, &made, error));
    gr_budget_return(&t->budget, bytes);
    replace_part(t, &made);
done:
    gr_made_part_fini(t->context, &made);
    return rc;
}

/* r->part, from that of the graph over ranks. */
static int32_t make_part(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    const int            moves = gr_masks_rows(t) || t->model.config.order != GR_ORDER_GIVEN;
    int32_t              rc = GRAFT_OK;

    if (t->model.config.symmetrize) GR_TRY(make_part_symmetric(t, error));
    if (moves) GR_TRY(gr_links_init(t->context, t->over->comm, &r->part.halo, &r->links, error));
    gr_partition_charge(r, &t->budget);
    GR_TRY(gr_trainer_order_init(t, &r->part.local, error));
    if (t->model.config.self_loops) rc = add_part_loops(t, error);
    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    if (t->row != NULL) GR_TRY(put_part_in_order(t, error));
    gr_links_fini(t->over->comm, &r->links);
    gr_partition_charge(r, &t->budget);
    rc = gr_strategy_agree(t->run.strategy, gr_trainer_scales(t, &r->part.local, &r->part.remote, error), error);
done:
    return rc;
}

/* Note in `out` which vertices of the halo are gathered from by the level. */
static void mark_halo(const graft_csr *remote, const struct gr_search *s, uint8_t *out)
{
    for (int64_t i = s->begin; i < s->end; i++) {
        const int64_t row = s->queue[i];

        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) out[gr_csr_column(remote, e)] = 1;
    }
}

int32_t gr_ranks_search(graft_trainer *t, struct gr_search *s, int32_t hop, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    uint8_t             *out = NULL, *in = NULL;
    int64_t              told;
    int32_t              rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    told = r->links.send_start[t->over->comm->n_ranks];
    rc = gr_budget_check(&t->budget, (double)(r->part.halo.count + told), "graph (the order of its vertices)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(t->context, out, r->part.halo.count, error);
    if (rc == GRAFT_OK) rc = GR_NEW(t->context, in, told, error);
    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    mark_halo(&r->part.remote, s, out);
    GR_TRY(gr_links_tell(&r->links, t->over->comm, out, in, 1, error));
    for (int64_t i = 0; i < told; i++)
        if (in[i]) gr_search_add(s, r->links.place[i], hop);
done:
    gr_free(t->context, out);
    gr_free(t->context, in);
    return rc;
}

/* For gat, entries of all owned rows as one matrix, whose columns are the owned vertices and those of the halo behind
 * them. */
static int32_t make_joined(graft_trainer *t, graft_error *error)
{
    const struct gr_part *part = &t->partition.part;
    const graft_csr      *parts[] = { &part->local, &part->remote };
    const graft_csr       like = { .size = sizeof like, .index_type = GRAFT_I32 };
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);
    struct gr_csr         joined = { 0 };
    int64_t               at = 0;

    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    if (t->n_seen > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "%lld vertices and %lld of other ranks are too many for gat",
                       (long long)t->n, (long long)part->halo.count);
    GR_TRY(gr_csr_init(t->context, &joined, &like, t->n, t->n_seen, entries, error));
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRAPH, t->row_kind, t->n_seen, error));
    memset(t->row_kind + t->n, GR_ROW_HALO, (uint64_t)part->halo.count);
    for (int64_t row = 0; row < t->n; row++) {
        if (part->remote.row_ptr[row] < part->remote.row_ptr[row + 1]) t->row_kind[row] = GR_ROW_BOUNDARY;
        for (int i = 0; i < 2; i++) {
            for (int64_t e = parts[i]->row_ptr[row]; e < parts[i]->row_ptr[row + 1]; e++)
                ((int32_t *)joined.col_idx)[at++] = (int32_t)(gr_csr_column(parts[i], e) + (i > 0 ? t->n : 0));
        }
        joined.row_ptr[row + 1] = at;
    }
    GR_ASSERT(gr_csr_is_valid(&joined.view));
    GR_TRY(gr_matrix_take(t->context, &joined, &t->a, error));
    GR_TRY(gr_edge_map(t->a, &map, error)); /* here, so that no epoch allocates */
    gr_budget_charge(&t->budget, GR_USE_GRAPH, gr_matrix_own_bytes(t->a));
done:
    gr_csr_fini(t->context, &joined);
    return rc;
}

static int32_t init_attention(graft_trainer *t, graft_error *error)
{
    const struct gr_halo *halo = &t->partition.part.halo;
    const int32_t         layers = t->model.config.n_layers;
    int64_t               width[GR_LAYERS_MAX];
    int32_t               rc = GRAFT_OK;

    t->n_seen = t->n + halo->count;
    for (int32_t l = 0; l < layers; l++) width[l] = gr_config_wide(&t->model.config, l);
    GR_TRY(gr_strategy_agree(t->run.strategy, make_joined(t, error), error));
    GR_TRY(gr_halo_rows_init(t->context, t->over->comm, halo, width, layers, &t->partition.halo_rows, error));
    gr_halo_rows_weigh(&t->partition.halo_rows, &t->partition.part);
    gr_partition_charge(&t->partition, &t->budget);
done:
    return rc;
}

static int32_t make_part_plan(graft_trainer *t, const struct gr_part *part, graft_plan **plan, graft_error *error)
{
    const struct gr_plan_wish wish = { .transposed = 1, .dtype = GRAFT_F32, .layers = t->model.config.n_layers };
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_plan_create(t->context, t->over->comm, part, t->over, &wish, plan, error));
    gr_partition_charge(&t->partition, &t->budget);
done:
    return rc;
}

int32_t gr_ranks_graph_init(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    const int64_t        slots = GR_DIRECTIONS * (int64_t)t->model.config.n_layers;
    int32_t              rc = GRAFT_OK;

    t->vertex = t->over->vertex;
    r->part = t->over->part;
    r->share = t->over->share;
    rc = GR_BUDGET_NEW(&t->budget, GR_USE_MESSAGES, r->sent, slots + 1, error);
    if (rc == GRAFT_OK)
        rc = GR_BUDGET_NEW(&t->budget, GR_USE_MESSAGES, r->pairs, slots * t->over->comm->n_ranks, error);
    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    if (!t->model.config.kind->gathers) return gr_trainer_order_init(t, NULL, error);
    GR_TRY(make_part(t, error));
    if (t->model.config.kind->attends) return init_attention(t, error);
    rc = make_part_plan(t, &r->part, &r->plan, error);
done:
    return rc;
}

/* Whether layer l computes the rows that the layer before it computes, of the same input. All ranks agree on that, for
 * no number of rows grows from layer to layer. */
static int repeats_rows(const graft_trainer *t, int32_t l)
{
    const struct gr_partition *r = &t->partition;

    return l > 0 && r->step_plan[l - 1] != NULL && r->step_plan[l - 1] != r->plan &&
           t->reach_of_all[l - 1] == t->reach_of_all[l] && t->reach_of_all[l] == t->reach_of_all[l + 1];
}

static int32_t mask_rows(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_masked_rows *m = &t->partition.masked[l];
    int32_t rc = gr_part_first(t->context, &t->partition.part, t->over->comm->n_ranks, t->reach[l + 1], t->reach[l],
                               &m->part, error);

    GR_TRY(gr_strategy_agree(t->run.strategy, rc, error));
    GR_TRY(make_part_plan(t, &m->part.part, &m->plan, error));
    t->partition.step_plan[l] = m->plan;
done:
    return rc;
}

/* What each layer sends in a step goes by the plan that it has there. */
static int32_t add_step_plans(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t l = t->model.config.gathers_from; l < t->model.config.n_layers; l++) {
        const int32_t here = gr_plan_add_layer(t->partition.step_plan[l], l, error);

        if (rc == GRAFT_OK) rc = here;
    }
    gr_partition_charge(&t->partition, &t->budget);
    return gr_strategy_agree(t->run.strategy, rc, error);
}

int32_t gr_ranks_graph_mask(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    int32_t              rc = GRAFT_OK;

    if (r->plan == NULL) return GRAFT_OK;
    for (int32_t l = t->model.config.gathers_from; l < t->model.config.n_layers; l++) {
        r->step_plan[l] = r->plan;
        if (l < gr_first_masked(t) || t->reach_of_all[l + 1] == t->data.n_vertices) continue;
        if (repeats_rows(t, l)) r->step_plan[l] = r->step_plan[l - 1];
        else GR_TRY(mask_rows(t, l, error));
    }
    rc = add_step_plans(t, error);
done:
    return rc;
}

int32_t gr_ranks_reserve(graft_trainer *t, graft_error *error)
{
    struct gr_partition *r = &t->partition;
    int32_t              rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(gr_comm_reserve(r->comm, (uint64_t)t->model.n_weights * sizeof *t->model.gradients, error));
    for (int32_t l = t->model.config.gathers_from; l < t->model.config.n_layers && r->plan != NULL; l++) {
        const struct gr_layer *layer = &t->model.layers[l];
        const int64_t          labels = l == 0 && gr_propagates(&t->run) ? t->run.targets.n_classes : 0;
        const int64_t          columns = t->run.layers[l].aggregate_first ? layer->in : layer->out;
        const int64_t          width = columns > labels ? columns : labels;

        GR_TRY(gr_partition_reserve(r, &t->budget, r->plan, -1, width, error));
        if (r->step_plan[l] != r->plan) GR_TRY(gr_partition_reserve(r, &t->budget, r->step_plan[l], -1, width, error));
        GR_TRY(gr_partition_reserve(r, &t->budget, r->step_plan[l], l, columns, error));
    }
    r->label_bytes = gr_trainer_label_bytes(t, -1);
done:
    return rc;
}
