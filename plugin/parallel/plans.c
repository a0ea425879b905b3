/* The plans of the products over ranks: of all rows, and of the rows that the layers compute in a step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/ranks.h"

#include "base/assert.h"
#include "comm/collective.h"
#include "model/workers.h"
#include "parallel/columns.h"

void gr_parallel_charge(struct gr_ranks *r)
{
    int64_t messages = r->plans.whole != NULL ? gr_plan_bytes(r->plans.whole) : 0, graph = 0;

    for (int32_t l = 0; l < r->n_layers; l++) {
        if (r->plans.masked[l].plan != NULL) messages += gr_plan_bytes(r->plans.masked[l].plan);
        graph += gr_graph_made_part_bytes(&r->plans.masked[l].part);
    }
    if (r->columns != NULL) {
        graph += gr_parallel_grid_bytes(&r->columns->grid) + gr_parallel_blocks_bytes(&r->columns->blocks);
        messages += gr_parallel_transpose_bytes(&r->columns->transpose);
    }
    messages += gr_halo_rows_bytes(&r->halo_rows, r->comm->n_ranks);
    gr_budget_charge(r->wish.budget, GR_USE_MESSAGES, messages - r->charged_messages);
    gr_budget_charge(r->wish.budget, GR_USE_GRAPH, graph - r->charged_graph);
    r->charged_messages = messages;
    r->charged_graph = graph;
}

static int32_t make_plan(struct gr_ranks *r, const struct gr_part *part, graft_plan **plan, graft_error *error)
{
    const struct gr_plan_wish wish = { .transposed = r->wish.trains && gr_parallel_config(r)->extremum == 0,
                                       .dtype = GRAFT_F32,
                                       .is_revalued = r->wish.trains && part->local.values != NULL,
                                       .layers = r->n_layers };

    GR_TRY(gr_plan_create(r->context, r->comm, part, r->wish.over, &wish, plan, error));
    gr_parallel_charge(r);
    return GRAFT_OK;
}

int32_t gr_parallel_plans_init(struct gr_ranks *r, const struct gr_part *part, graft_error *error)
{
    const int32_t rc = make_plan(r, part, &r->plans.whole, error);

    r->plans.part = part;
    r->graph.whole->of_strategy = r->plans.whole;
    return rc;
}

/* Whether layer l computes the same rows as the layer before it, and reads the same rows. Equal totals over ranks
 * suffice, because on no rank the number of rows grows from layer to layer. */
static int repeats_rows(const struct gr_ranks *r, int32_t l)
{
    const int64_t *reach = r->graph.reach_of_all;

    return l > 0 && r->plans.step[l - 1] != NULL && r->plans.step[l - 1] != r->plans.whole &&
           reach[l - 1] == reach[l] && reach[l] == reach[l + 1];
}

static int32_t mask_rows(struct gr_ranks *r, int32_t l, const int64_t *rows, graft_error *error)
{
    struct gr_masked_rows *m = &r->plans.masked[l];
    const int32_t          rc =
        gr_graph_part_first_rows(r->context, r->plans.part, r->comm->n_ranks, rows[l + 1], rows[l], &m->part, error);

    GR_TRY(gr_comm_agree(r->comm, rc, error));
    GR_TRY(make_plan(r, &m->part.part, &m->plan, error));
    r->plans.step[l] = m->plan;
    return GRAFT_OK;
}

/* Add each layer to its plan in a step, which exchanges its messages. */
static int32_t add_step_plans(struct gr_ranks *r, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        const int32_t here = gr_plan_add_layer(r->plans.step[l], l, error);

        if (rc == GRAFT_OK) rc = here;
    }
    gr_parallel_charge(r);
    return gr_comm_agree(r->comm, rc, error);
}

int32_t gr_parallel_plans_init_steps(struct gr_ranks *r, const int64_t *rows, graft_error *error)
{
    if (!r->wish.trains) return GRAFT_OK;
    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        r->plans.step[l] = r->plans.whole;
        if (l < r->graph.first_masked || r->graph.reach_of_all[l + 1] == r->graph.n_vertices) continue;
        if (repeats_rows(r, l)) r->plans.step[l] = r->plans.step[l - 1];
        else GR_TRY(mask_rows(r, l, rows, error));
    }
    for (int32_t l = 0; l < r->n_layers; l++) r->graph.step[l].of_strategy = r->plans.step[l];
    return add_step_plans(r, error);
}

void gr_parallel_plans_fini(struct gr_ranks *r)
{
    gr_plan_destroy(r->plans.whole);
    for (int32_t l = 0; l < r->n_layers; l++) {
        gr_plan_destroy(r->plans.masked[l].plan);
        gr_graph_made_part_fini(r->context, &r->plans.masked[l].part);
    }
}

int64_t gr_parallel_plans_label_columns(const struct gr_ranks *r, int32_t layer)
{
    return layer == 0 && gr_propagates(r->wish.run) ? r->wish.run->targets.n_classes : 0;
}

int64_t gr_parallel_plans_widest_sum(const struct gr_ranks *r)
{
    const struct gr_run *run = r->wish.run;
    int64_t              widest = gr_propagates(run) ? run->targets.n_classes : 0;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++)
        if (gr_summed_columns(&run->layers[l]) > widest) widest = gr_summed_columns(&run->layers[l]);
    return widest;
}

void gr_parallel_plans_find_widths(struct gr_ranks *r, int64_t (*slice)(const struct gr_ranks *r, int64_t width))
{
    for (int32_t l = r->gathers_from; l < r->n_layers; l++) {
        const int64_t labels = slice(r, gr_parallel_plans_label_columns(r, l));

        r->plans.columns[l] = slice(r, gr_summed_columns(&r->wish.run->layers[l]));
        r->plans.widest[l] = r->plans.columns[l] > labels ? r->plans.columns[l] : labels;
    }
}

/* Return the number of columns of the widest message of a plan. Passes outside of training steps use the plan of all
 * rows. */
static int64_t widest_of_plan(const struct gr_ranks *r, const graft_plan *plan)
{
    int64_t widest = 0;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++)
        if ((plan == r->plans.whole || plan == r->plans.step[l]) && r->plans.widest[l] > widest)
            widest = r->plans.widest[l];
    return widest;
}

/* Return the bytes of the message buffers of a plan for `width` columns that are not allocated yet, and of the stored
 * data of a layer (-1: none). */
static double plan_need(const graft_plan *plan, int32_t layer, int64_t width)
{
    const struct gr_plan_rows *side = plan->rows;
    const int32_t              n = plan->comm->n_ranks;
    const int64_t              rows[] = { side[0].start[n], side[1].start[n] };
    const double               row = 4.0 * (double)width;
    const double               kept = (double)gr_halo_layers_need(&plan->layers, layer, width, GRAFT_F32);

    if (row * (double)rows[0] <= (double)side[0].capacity && row * (double)rows[1] <= (double)side[1].capacity)
        return kept;
    return row * (double)(rows[0] + rows[1]) + (double)gr_halo_messages_need(&plan->messages, rows, width, GRAFT_F32) +
           kept;
}

double gr_parallel_plans_need(const struct gr_ranks *r)
{
    double bytes;

    if (r->plans.whole == NULL || r->wish.has_batches) return 0; /* memory of batches is temporary */
    bytes = plan_need(r->plans.whole, -1, widest_of_plan(r, r->plans.whole));
    for (int32_t l = r->gathers_from; l < r->n_layers && r->wish.trains; l++) {
        const graft_plan *plan = r->plans.step[l];
        const int         is_new = plan != r->plans.whole && (l == 0 || plan != r->plans.step[l - 1]);

        if (is_new) bytes += plan_need(plan, -1, widest_of_plan(r, plan));
        bytes += (double)gr_halo_layers_need(&plan->layers, l, r->plans.columns[l], GRAFT_F32);
    }
    return bytes;
}

static int32_t reserve_plan(struct gr_ranks *r, graft_plan *plan, int32_t layer, int64_t width, graft_error *error)
{
    int32_t rc = gr_budget_check(r->wish.budget, plan_need(plan, layer, width), "messages (rows of others)", error);

    if (rc == GRAFT_OK) rc = gr_plan_reserve(plan, layer, width, GRAFT_F32, error);
    gr_parallel_charge(r);
    return rc;
}

/* Cut the matrices of the sums of a plan for sparse workers. */
static int32_t cut_matrices(struct gr_ranks *r, graft_plan *plan, int64_t rows, graft_error *error)
{
    for (int d = GR_FORWARD; d < GR_DIRECTIONS && plan != NULL; d++) {
        GR_TRY(gr_model_workers_cut(r->wish.run, r->wish.budget, plan->matrices[d].local, rows, error));
        GR_TRY(gr_model_workers_cut(r->wish.run, r->wish.budget, plan->matrices[d].received, rows, error));
    }
    return GRAFT_OK;
}

int32_t gr_parallel_plans_cut(struct gr_ranks *r, graft_error *error)
{
    GR_TRY(cut_matrices(r, r->plans.whole, r->graph.whole->n_src, error));
    for (int32_t l = 0; l < r->n_layers; l++) GR_TRY(cut_matrices(r, r->plans.step[l], r->graph.step[0].n_src, error));
    return GRAFT_OK;
}

int32_t gr_parallel_plans_reserve(struct gr_ranks *r, graft_error *error)
{
    if (r->plans.whole == NULL) return GRAFT_OK;
    /* The widest rows come first, so that no buffer is replaced by a larger one. */
    GR_TRY(reserve_plan(r, r->plans.whole, -1, widest_of_plan(r, r->plans.whole), error));
    for (int32_t l = r->gathers_from; l < r->n_layers && r->wish.trains; l++) {
        GR_TRY(reserve_plan(r, r->plans.step[l], -1, widest_of_plan(r, r->plans.step[l]), error));
        GR_TRY(reserve_plan(r, r->plans.step[l], l, r->plans.columns[l], error));
    }
    return GRAFT_OK;
}

const struct gr_halo_layers *gr_parallel_plans_layers(const struct gr_ranks *r, int32_t layer)
{
    GR_ASSERT(r->exchanges_rows || r->plans.step[layer] != NULL);
    return r->exchanges_rows ? &r->halo_rows.layers : &r->plans.step[layer]->layers;
}

struct gr_halo_layer *gr_parallel_plans_layer(const struct gr_ranks *r, int32_t layer, int32_t direction)
{
    return layer < r->gathers_from ? NULL : gr_halo_layers_find(gr_parallel_plans_layers(r, layer), layer, direction);
}

/* Exchanges of boundary rows come first, layer by layer in each direction; then transposes of inputs, and of
 * results. */
int32_t gr_parallel_plans_count_exchanges(const struct gr_ranks *r)
{
    return GR_DIRECTIONS * r->n_layers * (r->columns != NULL ? 3 : 1);
}

struct gr_halo_layer *gr_parallel_plans_exchange(const struct gr_ranks *r, int32_t i)
{
    const int32_t number = i / GR_DIRECTIONS, direction = i % GR_DIRECTIONS;

    if (number < r->n_layers) return gr_parallel_plans_layer(r, number, direction);
    return gr_halo_layers_find(&r->columns->transpose.layers, number - r->n_layers, (enum gr_direction)direction);
}

int32_t gr_parallel_plans_list_layers(struct gr_ranks *r, struct gr_halo_layers **list)
{
    int32_t n = 0;

    if (r->plans.whole != NULL) list[n++] = &r->plans.whole->layers;
    if (r->columns != NULL) list[n++] = &r->columns->transpose.layers;
    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan != NULL) list[n++] = &r->plans.masked[l].plan->layers;
    list[n++] = &r->halo_rows.layers;
    return n;
}

int32_t gr_parallel_plans_values_begin(struct gr_ranks *r, const struct gr_part *part, struct gr_new_plans *values,
                                       graft_error *error)
{
    GR_TRY(gr_plan_values_begin(r->plans.whole, part, &values->whole, error));
    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan != NULL)
            GR_TRY(gr_plan_values_begin(r->plans.masked[l].plan, part, &values->masked[l], error));
    return GRAFT_OK;
}

void gr_parallel_plans_values_end(struct gr_ranks *r, struct gr_new_plans *values, int takes)
{
    if (takes) gr_plan_values_end(r->plans.whole, &values->whole);
    gr_plan_values_fini(r->plans.whole, &values->whole);
    for (int32_t l = 0; l < r->n_layers; l++) {
        struct gr_masked_rows *m = &r->plans.masked[l];

        if (m->plan == NULL) continue;
        if (takes) {
            m->part.part.local.values = r->plans.part->local.values;
            m->part.part.remote.values = r->plans.part->remote.values;
            gr_plan_values_end(m->plan, &values->masked[l]);
        }
        gr_plan_values_fini(m->plan, &values->masked[l]);
    }
}
