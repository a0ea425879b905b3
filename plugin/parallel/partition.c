/* Strategy `partition`. The ranks agree on local failures before the next collective operation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"

#include "adaptive/adapt.h"
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/memory.h"

#include <math.h>

/* Options that need no other messages. */
static void read_halo_options(struct gr_partition *p)
{
    const struct gr_halo_options *halo = gr_halo_options(p->context);

    p->sync_every = halo->refresh;
    p->drift_limit = halo->drift_limit;
    p->adapt_every = halo->reassign_every;
    p->evaluates_exact = halo->evaluation == GR_HALO_EVALUATES_F32;
}

/* Only sums and extrema can be computed from slices of columns; a record of a transpose has elements of several
 * rows. */
int32_t gr_partition_check(const struct gr_partition *p, const struct gr_halo_options *halo, graft_error *error)
{
    const char *name = p->columns == p->comm->n_ranks ? "feature" : "grid";

    if (p->columns == 1) return GRAFT_OK;
    if (p->needs_rows && p->extremum == 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'parallel' is %s, which splits columns of sums over neighbours, but attention reads "
                       "whole rows; expected parallel=partition",
                       name);
    if (halo != NULL && (gr_halo_codec_of(halo, GR_FORWARD).adaptive || gr_halo_codec_of(halo, GR_BACKWARD).adaptive))
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "option 'parallel' is %s, where a record has elements of several rows, whose ranges decide no width; "
            "expected another halo.codec than adaptive",
            name);
    return GRAFT_OK;
}

void gr_partition_init(struct gr_partition *p, graft_context *context, graft_graph *over,
                       const struct gr_config *config, struct gr_budget *budget)
{
    int shares_all;

    *p = (struct gr_partition){ .base = { &gr_partition_ops },
                                .context = context,
                                .over = over,
                                .comm = over->comm,
                                .budget = budget,
                                .n_layers = config->n_layers,
                                .gathers_from = config->gathers_from,
                                .columns = 1,
                                .extremum = config->extremum };
    p->options = *gr_halo_options(context);
    p->is_stale = p->options.staleness > 0;
    read_halo_options(p);
    if (config->kind->gathers) p->columns = over->columns;
    shares_all = p->columns > 1 && p->columns == p->comm->n_ranks;
    p->needs_rows = config->kind->attends || (config->extremum != 0 && !shares_all);
}

void gr_partition_fini(struct gr_partition *p)
{
    if (p->over == NULL) return;
    gr_plan_destroy(p->plan);
    for (int32_t l = 0; l < p->n_layers; l++) {
        gr_plan_destroy(p->masked[l].plan);
        gr_made_part_fini(p->context, &p->masked[l].part);
    }
    gr_halo_rows_fini(p->comm, &p->halo_rows);
    if (p->shared != NULL) gr_transpose_fini(&p->shared->transpose);
    if (p->shared != NULL) gr_blocks_fini(&p->shared->blocks);
    if (p->shared != NULL) gr_grid_fini(p->context, &p->shared->grid);
    gr_free(p->context, p->shared);
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

double gr_partition_need(const graft_plan *plan, int32_t layer, int64_t width)
{
    const struct gr_plan_rows *side = plan->rows;
    const int32_t              n = plan->comm->n_ranks;
    const int64_t              rows[] = { side[0].start[n], side[1].start[n] };
    const double               row = 4.0 * (double)width;
    const double               kept = (double)gr_halo_layers_need(&plan->layers, layer, width, GRAFT_F32);

    if (row * (double)rows[0] <= (double)side[0].capacity && row * (double)rows[1] <= (double)side[1].capacity)
        return kept;
    return row * (double)(rows[0] + rows[1]) + (double)gr_messages_need(&plan->messages, rows, width, GRAFT_F32) + kept;
}

int32_t gr_partition_reserve(struct gr_partition *p, struct gr_budget *budget, graft_plan *plan, int32_t layer,
                             int64_t width, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_budget_check(budget, gr_partition_need(plan, layer, width), "messages (rows of others)", error));
    rc = gr_plan_reserve(plan, layer, width, GRAFT_F32, error);
    gr_partition_charge(p, budget);
done:
    return rc;
}

int32_t gr_partition_reserve_transpose(struct gr_partition *p, struct gr_budget *budget, int64_t width,
                                       graft_error *error)
{
    const int64_t more = gr_transpose_need(&p->shared->transpose, width) - gr_transpose_bytes(&p->shared->transpose);
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_check(budget, more > 0 ? (double)more : 0, "messages (slices of columns)", error));
    rc = gr_transpose_reserve(&p->shared->transpose, width, error);
    gr_partition_charge(p, budget);
done:
    return rc;
}

void gr_partition_charge(struct gr_partition *p, struct gr_budget *budget)
{
    int64_t messages = p->plan != NULL ? gr_plan_bytes(p->plan) : 0, graph = 0;

    for (int32_t l = 0; l < p->n_layers; l++) {
        if (p->masked[l].plan != NULL) messages += gr_plan_bytes(p->masked[l].plan);
        graph += gr_made_part_bytes(&p->masked[l].part);
    }
    if (p->shared != NULL)
        graph += gr_grid_bytes(&p->shared->grid, p->comm->n_ranks) + gr_blocks_bytes(&p->shared->blocks);
    if (p->shared != NULL) messages += gr_transpose_bytes(&p->shared->transpose);
    messages += gr_halo_rows_bytes(&p->halo_rows, p->comm->n_ranks);
    gr_budget_charge(budget, GR_USE_MESSAGES, messages - p->charged_messages);
    gr_budget_charge(budget, GR_USE_GRAPH, graph - p->charged_graph);
    p->charged_messages = messages;
    p->charged_graph = graph;
}

/* -- one step ----------------------------------------------------------------------------------------------------- */

const struct gr_halo_layers *gr_partition_layers(const struct gr_partition *p, int32_t layer)
{
    GR_ASSERT(p->needs_rows || p->step_plan[layer] != NULL);
    return p->needs_rows ? &p->halo_rows.layers : &p->step_plan[layer]->layers;
}

struct gr_halo_layer *gr_partition_layer(const struct gr_partition *p, int32_t layer, int32_t direction)
{
    return layer < p->gathers_from ? NULL : gr_halo_layers_find(gr_partition_layers(p, layer), layer, direction);
}

/* The exchanges of a step: of boundary rows, layer by layer in each direction, then the transposes likewise. */
static int32_t count_exchanges(const struct gr_partition *p)
{
    return GR_DIRECTIONS * p->n_layers * (p->columns > 1 ? 3 : 1);
}

static struct gr_halo_layer *layer_at(const struct gr_partition *p, int32_t i)
{
    const int32_t number = i / GR_DIRECTIONS, direction = i % GR_DIRECTIONS;

    if (number < p->n_layers) return gr_partition_layer(p, number, direction);
    return gr_halo_layers_find(&p->shared->transpose.layers, number - p->n_layers, (enum gr_direction)direction);
}

/* -- the table of the strategy ------------------------------------------------------------------------------------ */

static struct gr_partition *partition_of(struct gr_strategy *strategy)
{
    return (struct gr_partition *)strategy;
}

/* Adaptive widths are assigned from the last step, if they are due. The limit of bytes includes the rows of labels,
 * which have other widths. */
static int32_t partition_prepare_step(struct gr_strategy *strategy, struct gr_run *run, graft_error *error)
{
    struct gr_partition *const   p = partition_of(strategy);
    const int32_t                slots = GR_DIRECTIONS * p->n_layers;
    const struct gr_halo_layers *layers;
    struct gr_halo_layer        *layer[GR_DIRECTIONS * GR_LAYERS_MAX];
    const double                 begin = gr_profile_begin(&run->profile);
    int32_t                      rc = GRAFT_OK;

    GR_TRY(gr_partition_renew(p, error));
    read_halo_options(p);
    if (p->gathers_from == p->n_layers || p->traced == 0) return GRAFT_OK;
    if (p->is_adapted && (p->adapt_every == 0 || p->traced < p->adapt_every)) return GRAFT_OK;
    layers = gr_partition_layers(p, p->gathers_from);
    if (!layers->adaptive[GR_FORWARD] && !layers->adaptive[GR_BACKWARD]) return GRAFT_OK;
    for (int32_t i = 0; i < slots; i++) layer[i] = layer_at(p, i);
    GR_TRY(gr_adapt(layers, layer, slots, layers->adaptive[GR_FORWARD] ? p->label_bytes : 0, error));
    p->is_adapted = 1;
    p->traced = 0;
    gr_profile_end_alone(&run->profile, "adapt", begin);
done:
    return rc;
}

static void partition_begin_step(struct gr_strategy *strategy, int64_t epoch)
{
    struct gr_partition *p = partition_of(strategy);

    gr_traffic_begin(p);
    p->synchronous =
        (p->sync_every > 0 && epoch % p->sync_every == 0) || (p->drift_limit > 0 && p->drift > p->drift_limit);
}

/* Whether a forward pass of this step used fresh rows. */
static int used_fresh_rows(const struct gr_partition *p, int64_t epoch)
{
    int fresh = 0;

    for (int32_t i = GR_FORWARD; i < count_exchanges(p); i += GR_DIRECTIONS) {
        const struct gr_halo_layer *layer = layer_at(p, i);

        if (layer == NULL || !layer->history.was_used || layer->history.used_epoch != epoch) continue;
        fresh |= layer->history.age == 0;
    }
    return fresh;
}

/* The exchanges of the last step will be repeated, so the first exchanges do not count for adaptive widths. Exchanges
 * of stale rows are not repeated: a repeated step uses the rows, and the drift, of the last step. */
static void undo_exchanges(struct gr_partition *p)
{
    for (int32_t i = 0; i < count_exchanges(p); i++) {
        struct gr_halo_layer *layer = layer_at(p, i);

        if (layer != NULL && layer->is_adaptive && !layer->is_stale) gr_row_bits_undo_epoch(&layer->bits, layer->rows);
    }
}

static int32_t partition_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error)
{
    struct gr_partition *p = partition_of(strategy);
    double               sums[4] = { *loss };
    int32_t              rc = GRAFT_OK;

    for (int32_t i = 0; i < count_exchanges(p); i++) {
        const struct gr_halo_layer *layer = layer_at(p, i);

        for (int k = 0; k < 2 && layer != NULL; k++) sums[1 + k] += layer->history.drift[k];
    }
    sums[3] = gr_check_cancel(p->context, error) < 0;
    GR_TRY(gr_comm_sum_f64(p->comm, sums, 4, error));
    if (sums[3] > 0) {
        undo_exchanges(p);
        return gr_comm_agree(p->comm, GRAFT_OK, error);
    }
    *loss = sums[0];
    p->traced++;
    for (int32_t i = 0; i < count_exchanges(p); i++) {
        struct gr_halo_layer *layer = layer_at(p, i);

        if (layer != NULL) gr_history_clear_drift(&layer->history);
    }
    p->was_synchronous = p->is_stale && used_fresh_rows(p, epoch);
    p->n_synchronous += p->was_synchronous;
    p->drift = sums[2] > 0 ? sqrt(sums[1] / sums[2]) : 0;
done:
    return rc;
}

static void partition_forget(struct gr_strategy *strategy)
{
    struct gr_partition *p = partition_of(strategy);

    if (p->plan != NULL) gr_halo_layers_forget(&p->plan->layers);
    if (p->shared != NULL) gr_halo_layers_forget(&p->shared->transpose.layers);
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan != NULL) gr_halo_layers_forget(&p->masked[l].plan->layers);
    gr_halo_layers_forget(&p->halo_rows.layers);
    p->drift = 0;
}

/* Widths must not depend on epochs that were not finite: they are chosen from later epochs. */
static void partition_undo_steps(struct gr_strategy *strategy)
{
    struct gr_partition *p = partition_of(strategy);

    partition_forget(strategy);
    for (int32_t i = 0; i < count_exchanges(p); i++) {
        struct gr_halo_layer *layer = layer_at(p, i);

        if (layer != NULL) layer->bits.is_counting = 0;
    }
    p->traced = 0;
}

void gr_partition_reset(struct gr_partition *p)
{
    if (p->plan != NULL) gr_halo_layers_reset(&p->plan->layers);
    if (p->shared != NULL) gr_halo_layers_reset(&p->shared->transpose.layers);
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan != NULL) gr_halo_layers_reset(&p->masked[l].plan->layers);
    if (p->needs_rows) {
        gr_halo_layers_reset(&p->halo_rows.layers);
        gr_halo_rows_weigh(&p->halo_rows, p->part);
    }
    p->is_adapted = 0;
    p->traced = 0;
}

/* Whether rows travel in full precision in the current pass. */
static int32_t is_exact(const struct gr_partition *p, const struct gr_run *run)
{
    return run->pass == GRAFT_PASS_EVALUATION && p->evaluates_exact;
}

/* The same for a sum; cached sums are computed once. */
int32_t gr_partition_is_exact(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum)
{
    return sum->kind == GR_SUM_CONSTANT || is_exact(p, run);
}

/* Whether a sum is not a step of its layer, and so does not use the stored rows of the layer. */
int gr_partition_is_stateless(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum)
{
    return gr_partition_is_exact(p, run, sum) || sum->kind == GR_SUM_LABELS || run->pass == GRAFT_PASS_EVALUATION;
}

/* The parts of a phase up to the sending of rows. */
void gr_partition_sent_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    if (pass->settled_at > 0) gr_profile_part(&run->profile, "wait", begin, pass->settled_at, 1);
    gr_profile_part(&run->profile, "pack", pass->settled_at > 0 ? pass->settled_at : begin, pass->sent_at, 0);
}

void gr_partition_received_parts(struct gr_run *run, const struct gr_exchange *pass, double local, double computed,
                                 double end)
{
    gr_profile_part(&run->profile, "local", local, computed, 0);
    gr_profile_part(&run->profile, "wait", computed, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, end, 0);
}

int32_t gr_partition_begin_sum(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    graft_plan *const          plan = sum->block->of_strategy;
    const int                  back = sum->direction == GR_BACKWARD;
    const int32_t              exact = gr_partition_is_exact(p, run, sum);
    const int                  stateless = gr_partition_is_stateless(p, run, sum);
    const graft_csr           *local = &plan->part->local;
    const int64_t              n_in = back ? local->n_rows : local->n_cols;
    const graft_dense          x = gr_dense_view(sum->x, sum->x_type, n_in, sum->width, sum->stride);
    const int64_t              n_out = back ? local->n_cols : local->n_rows;
    const graft_dense          out = gr_dense_view(sum->out, GRAFT_F32, n_out, sum->width, sum->width);
    const graft_aggregate_args args = { .size = sizeof args,
                                        .semiring = GRAFT_PLUS_TIMES,
                                        .flags = (back ? GRAFT_AGGREGATE_TRANSPOSE : 0) |
                                                 (sum->add ? GRAFT_AGGREGATE_ACCUMULATE : 0) |
                                                 (exact ? GRAFT_AGGREGATE_EXACT : 0) |
                                                 (stateless ? GRAFT_AGGREGATE_STATELESS : 0) |
                                                 (p->synchronous ? GRAFT_AGGREGATE_SYNCHRONOUS : 0),
                                        .layer = run->layer,
                                        .epoch = run->epoch,
                                        .threads = run->threads,
                                        .x = &x,
                                        .out = &out,
                                        .row_scale = sum->scale,
                                        .times = run->profile.times };

    GR_ASSERT(sum->width <= sum->stride);
    return gr_partition_records(p, run) ? gr_spmm_send(plan, &args, error) : gr_spmm_begin(plan, &args, error);
}

/* -- sums among the products that are recorded for workers -------------------------------------------------------- */

static struct gr_extent extent_at(const void *begin, int64_t bytes)
{
    return (struct gr_extent){ begin, (const char *)begin + (begin != NULL ? bytes : 0) };
}

/* Execute the tasks that must precede reading the rows of x, and overwriting the received rows of another sum. */
static int32_t sync_before_sending(struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const struct gr_block     *block = sum->block;
    const graft_plan *const    plan = block->of_strategy;
    const int64_t              n = sum->direction == GR_BACKWARD ? block->n_dst : block->n_src;
    const struct gr_plan_rows *rows = &plan->rows[gr_side_of(sum->direction, GR_RECEIVE)];

    return gr_workers_sync_for(run, extent_at(sum->x, n * sum->stride * gr_dtype_bytes(sum->x_type)),
                               extent_at(rows->buffer, rows->capacity), error);
}

/* Record a part of a sum, with this matrix and these rows. */
static int32_t record_part(struct gr_run *run, const struct gr_sum *sum, graft_matrix *a, struct gr_operand x, int add,
                           struct gr_epilogue *epilogue, graft_error *error)
{
    return gr_product_sparse(run,
                             &(struct gr_sparse_product){ .phase = "aggregate",
                                                          .a = a,
                                                          .scale = sum->scale,
                                                          .x = x,
                                                          .width = sum->width,
                                                          .add = add,
                                                          .in_blocks = 1,
                                                          .out = sum->out,
                                                          .epilogue = epilogue },
                             error);
}

/* The rows are sent. The sum of own rows is recorded, and executed with other recorded tasks while messages travel. */
static int32_t record_begin(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const graft_plan *const        plan = sum->block->of_strategy;
    const struct gr_plan_matrices *m = &plan->matrices[sum->direction];
    const struct gr_exchange      *pass = &plan->product.exchange;
    const int                      is_whole = m->received->csr.n_cols == 0;
    int32_t                        rc = GRAFT_OK;

    GR_TRY(gr_partition_begin_sum(p, run, sum, error));
    gr_partition_sent_parts(run, pass, p->begin);
    gr_profile_end(&run->profile, "aggregate", p->begin, 0, 0);
    GR_TRY(record_part(run, sum, m->local, gr_dense_operand(sum->x, sum->stride, m->local->csr.n_cols), sum->add,
                       is_whole ? sum->epilogue : NULL, error));
    p->moving = pass->messages;
done:
    return rc;
}

/* Execute all recorded tasks. Then receive the rows of others, and record their part of the sum. */
static int32_t record_end(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    graft_plan *const              plan = sum->block->of_strategy;
    const struct gr_plan_matrices *m = &plan->matrices[sum->direction];
    const struct gr_exchange      *pass = &plan->product.exchange;
    const void                    *rows;
    double                         begin;
    int32_t                        rc = GRAFT_OK;

    gr_workers_sync(run);
    begin = gr_profile_begin(&run->profile);
    p->moving = NULL;
    GR_TRY(gr_spmm_receive(plan, &rows, error));
    gr_traffic_count(p, run, pass, plan->flow, sum->direction);
    gr_profile_part(&run->profile, "wait", begin, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, 0, 0);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    if (m->received->csr.n_cols > 0)
        rc = record_part(run, sum, m->received, gr_dense_operand(rows, sum->width, m->received->csr.n_cols), 1,
                         sum->epilogue, error);
done:
    return rc;
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

static int32_t partition_aggregate_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                         graft_error *error)
{
    struct gr_partition *p = partition_of(strategy);
    int32_t              rc = GRAFT_OK;

    if (gr_workers_are_recording(run)) GR_TRY(sync_before_sending(run, sum, error));
    p->begin = gr_profile_begin(&run->profile);
    if (p->columns > 1) rc = gr_columns_begin(p, run, sum, error);
    else if (gr_partition_records(p, run)) rc = record_begin(p, run, sum, error);
    else rc = gr_partition_begin_sum(p, run, sum, error);
done:
    return rc;
}

static struct gr_amount amount_of(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum)
{
    const graft_plan *const plan = sum->block->of_strategy;
    const graft_csr        *local = &plan->part->local;

    if (p->columns > 1) return gr_columns_amount(p, run, sum);
    return (struct gr_amount){ (double)(gr_csr_entries(local) + gr_csr_entries(&plan->part->remote)),
                               (double)(sum->direction == GR_BACKWARD ? local->n_cols : local->n_rows) };
}

static int32_t partition_aggregate_end(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                       graft_error *error)
{
    struct gr_partition      *p = partition_of(strategy);
    graft_plan *const         plan = sum->block->of_strategy;
    const struct gr_exchange *pass = &plan->product.exchange;
    const int64_t             width = gr_partition_slice(p, sum->width);
    const struct gr_amount    amount = amount_of(p, run, sum);
    int32_t                   rc = GRAFT_OK;

    if (gr_partition_records(p, run)) return record_end(p, run, sum, error);
    if (p->columns > 1) {
        GR_TRY(gr_columns_end(p, run, sum, error));
    } else {
        GR_TRY(gr_spmm_end(plan, error));
        gr_traffic_count(p, run, pass, plan->flow, sum->direction);
        gr_partition_sent_parts(run, pass, p->begin);
        gr_partition_received_parts(run, pass, pass->sent_at, plan->product.computed_at, 0);
    }
    gr_profile_end(&run->profile, "aggregate", p->begin,
                   4 * ((amount.edges + amount.rows) * (double)width + amount.edges), amount.edges * (double)width);
done:
    return rc;
}

static int partition_shares_columns(const struct gr_strategy *strategy)
{
    return ((const struct gr_partition *)strategy)->columns > 1;
}

static int32_t partition_extrema(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                 graft_error *error)
{
    return gr_columns_extrema(partition_of(strategy), run, sum, error);
}

static int32_t partition_boundary_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *b,
                                        graft_error *error)
{
    struct gr_partition *p = partition_of(strategy);
    struct gr_halo_rows *rows = &p->halo_rows;
    struct gr_halo_pass  pass = { .direction = b->direction,
                                  .layer = run->layer,
                                  .exact = b->is_constant || is_exact(p, run), /* cached sums are computed once */
                                  .stateless = b->is_constant || run->pass == GRAFT_PASS_EVALUATION,
                                  .synchronous = p->synchronous,
                                  .epoch = run->epoch };
    int32_t              rc = GRAFT_OK;

    gr_halo_rows_place(rows, &pass, b->x, b->block->n_src, b->width);
    GR_TRY(gr_halo_rows_begin(rows, &pass, gr_run_team(run), error));
    gr_traffic_count(p, run, &rows->exchange, rows->flow, b->direction);
    gr_partition_sent_parts(run, &rows->exchange, b->begin);
done:
    return rc;
}

static int32_t partition_boundary_end(struct gr_strategy *strategy, struct gr_run *run, double local,
                                      graft_error *error)
{
    struct gr_halo_rows *rows = &partition_of(strategy)->halo_rows;
    const double         computed = gr_profile_begin(&run->profile);
    int32_t              rc = GRAFT_OK;

    GR_TRY(gr_halo_rows_end(rows, gr_run_team(run), error));
    gr_partition_received_parts(run, &rows->exchange, local, computed, 0);
done:
    return rc;
}

static int32_t partition_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return gr_comm_sum_f64(partition_of(strategy)->comm, values, count, error);
}

static int32_t partition_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error)
{
    return gr_comm_sum_f32(partition_of(strategy)->comm, values, count, error);
}

static int32_t partition_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error)
{
    return gr_comm_agree(partition_of(strategy)->comm, rc, error);
}

/* Stale rows travel between steps, and some transports need calls to make progress: 1000 calls a second are enough. */
static void poll_layers(struct gr_partition *p)
{
    const double now = p->is_stale ? gr_seconds() : 0;

    if (now - p->polled < 1e-3) return;
    p->polled = now;
    for (int32_t i = 0; i < count_exchanges(p); i++) {
        struct gr_halo_layer *layer = layer_at(p, i);

        if (layer != NULL && layer->history.in_flight) gr_messages_poll(&layer->history.messages);
    }
}

static void partition_poll(void *strategy)
{
    struct gr_partition *p = strategy;

    if (p->halo_rows.begun) gr_messages_poll(p->halo_rows.exchange.messages);
    else if (p->moving != NULL) gr_messages_poll(p->moving);
    else poll_layers(p);
}

const struct gr_strategy_ops gr_partition_ops = { .name = "partition",
                                                  .records = 1,
                                                  .prepare_step = partition_prepare_step,
                                                  .begin_step = partition_begin_step,
                                                  .end_step = partition_end_step,
                                                  .forget = partition_forget,
                                                  .undo_steps = partition_undo_steps,
                                                  .aggregate_begin = partition_aggregate_begin,
                                                  .aggregate_end = partition_aggregate_end,
                                                  .shares_columns = partition_shares_columns,
                                                  .extrema = partition_extrema,
                                                  .boundary_begin = partition_boundary_begin,
                                                  .boundary_end = partition_boundary_end,
                                                  .sum = partition_sum,
                                                  .sum_gradients = partition_sum_gradients,
                                                  .agree = partition_agree,
                                                  .poll = partition_poll };
