/* Strategy `partition`: sums are products over ranks, whose parts may be recorded for workers; attention and extrema
 * exchange the rows of the halo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/explain.h"
#include "parallel/strategies.h"
#include "parallel/sums.h"
#include "parallel/traffic.h"

#include "base/memory.h"
#include "model/workers.h"

/* Record a part of a sum: the product of matrix `a` with rows `x`. */
static int32_t record_part(struct gr_run *run, const struct gr_sum *sum, graft_matrix *a, struct gr_operand x, int add,
                           struct gr_epilogue *epilogue, graft_error *error)
{
    return gr_model_product_sparse(run,
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

/* Begin a sum: send rows, and record the sum of own rows, which is executed with other recorded tasks while messages
 * are in flight. */
static int32_t record_begin(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const graft_plan *const        plan = sum->block->of_strategy;
    const struct gr_plan_matrices *m = &plan->matrices[sum->direction];
    const struct gr_exchange      *pass = &plan->product.exchange;
    const int                      is_whole = m->received->csr.n_cols == 0;

    GR_TRY(gr_parallel_begin_sum(r, run, sum, 1, error));
    gr_parallel_sent_parts(run, pass, r->begin);
    gr_profile_end(&run->profile, "aggregate", r->begin, 0, 0);
    GR_TRY(record_part(run, sum, m->local, gr_dense_operand(sum->x, sum->stride, m->local->csr.n_cols), sum->add,
                       is_whole ? sum->epilogue : NULL, error));
    r->moving = pass->messages;
    return GRAFT_OK;
}

/* End a sum: execute all recorded tasks, receive the rows of other ranks, and record their part of the sum. */
static int32_t record_end(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    graft_plan *const              plan = sum->block->of_strategy;
    const struct gr_plan_matrices *m = &plan->matrices[sum->direction];
    const struct gr_exchange      *pass = &plan->product.exchange;
    const void                    *rows;
    double                         begin;

    gr_model_workers_sync(run);
    begin = gr_profile_begin(&run->profile);
    r->moving = NULL;
    GR_TRY(gr_spmm_receive(plan, &rows, error));
    gr_parallel_traffic_count(r, run, pass, plan->flow, sum->direction);
    gr_profile_part(&run->profile, "wait", begin, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, 0, 0);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    if (m->received->csr.n_cols > 0)
        return record_part(run, sum, m->received, gr_dense_operand(rows, sum->width, m->received->csr.n_cols), 1,
                           sum->epilogue, error);
    return GRAFT_OK;
}

static int32_t partition_aggregate_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                         graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    GR_TRY(gr_parallel_sync(run, sum, error));
    r->begin = gr_profile_begin(&run->profile);
    return gr_model_workers_are_recording(run) ? record_begin(r, run, sum, error)
                                               : gr_parallel_begin_sum(r, run, sum, 0, error);
}

static int32_t partition_aggregate_end(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                       graft_error *error)
{
    struct gr_ranks          *r = gr_parallel_of(strategy);
    graft_plan *const         plan = sum->block->of_strategy;
    const struct gr_exchange *pass = &plan->product.exchange;
    const graft_csr          *local = &plan->part->local;

    if (gr_model_workers_are_recording(run)) return record_end(r, run, sum, error);
    GR_TRY(gr_spmm_end(plan, error));
    gr_parallel_traffic_count(r, run, pass, plan->flow, sum->direction);
    gr_parallel_sent_parts(run, pass, r->begin);
    gr_parallel_received_parts(run, pass, pass->sent_at, plan->product.computed_at, 0);
    gr_parallel_end_phase(r, run, sum->width, (double)(gr_csr_entries(local) + gr_csr_entries(&plan->part->remote)),
                          (double)(sum->direction == GR_BACKWARD ? local->n_cols : local->n_rows));
    return GRAFT_OK;
}

static int32_t partition_boundary_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *b,
                                        graft_error *error)
{
    struct gr_ranks     *r = gr_parallel_of(strategy);
    struct gr_halo_rows *rows = &r->halo_rows;
    struct gr_halo_pass  pass = { .direction = b->direction,
                                  .layer = run->layer,
                                  .exact = b->is_constant || run->pass == GRAFT_PASS_EVALUATION,
                                  .stateless = b->is_constant || run->pass == GRAFT_PASS_EVALUATION,
                                  .synchronous = r->stale.synchronous,
                                  .epoch = run->epoch };

    gr_halo_rows_place(rows, &pass, b->x, b->block->n_src, b->width);
    GR_TRY(gr_halo_rows_begin(rows, &pass, gr_run_team(run), error));
    gr_parallel_traffic_count(r, run, &rows->exchange, rows->flow, b->direction);
    gr_parallel_sent_parts(run, &rows->exchange, b->begin);
    return GRAFT_OK;
}

static int32_t partition_boundary_end(struct gr_strategy *strategy, struct gr_run *run, double local,
                                      graft_error *error)
{
    struct gr_halo_rows *rows = &gr_parallel_of(strategy)->halo_rows;
    const double         computed = gr_profile_begin(&run->profile);

    GR_TRY(gr_halo_rows_end(rows, gr_run_team(run), error));
    gr_parallel_received_parts(run, &rows->exchange, local, computed, 0);
    return GRAFT_OK;
}

static int32_t partition_create(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    const struct gr_config *config = gr_run_config(wish->run);
    struct gr_ranks        *r;
    int32_t                 rc;

    GR_TRY(GR_NEW(wish->run->context, r, 1, error));
    *strategy = &r->base;
    rc = gr_parallel_init(r, &gr_partition_ops, wish, error);
    r->exchanges_rows = r->base.reads_halo = r->base.all_rows = config->kind->attends || config->extremum != 0;
    return rc;
}

static void partition_destroy(struct gr_strategy *strategy)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    gr_parallel_fini(r);
    gr_free(r->context, r);
}

static int64_t all_columns(const struct gr_ranks *r, int64_t width)
{
    (void)r;
    return width;
}

/* Create the exchanges of halo rows that layers read. */
static int32_t exchange_halo_rows(struct gr_ranks *r, graft_error *error)
{
    const struct gr_config *config = gr_parallel_config(r);
    struct gr_plans        *plans = &r->plans;

    for (int32_t l = 0; l < r->n_layers; l++)
        plans->columns[l] = plans->widest[l] =
            config->kind->attends ? gr_model_config_wide(config, l) : gr_model_config_in(config, l);
    GR_TRY(gr_parallel_exchange_rows(r, &r->graph.part->halo, plans->widest, error));
    gr_halo_rows_weigh(&r->halo_rows, r->graph.part);
    gr_parallel_charge(r);
    return GRAFT_OK;
}

static int32_t partition_graph(struct gr_strategy *strategy, const struct gr_strategy_graph *graph, graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    r->graph = *graph;
    if (!gr_parallel_config(r)->kind->gathers) return GRAFT_OK;
    if (r->exchanges_rows) return exchange_halo_rows(r, error);
    GR_TRY(gr_parallel_plans_init(r, graph->part, error));
    GR_TRY(gr_parallel_plans_init_steps(r, graph->reach, error));
    gr_parallel_plans_find_widths(r, all_columns);
    return GRAFT_OK;
}

static double partition_need(const struct gr_strategy *strategy, int variant)
{
    (void)variant;
    return gr_parallel_plans_need((const struct gr_ranks *)strategy);
}

static int32_t partition_reserve(struct gr_strategy *strategy, graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    GR_TRY(gr_parallel_plans_cut(r, error));
    GR_TRY(gr_parallel_reserve_sums(r, error));
    return gr_parallel_plans_reserve(r, error);
}

static int32_t partition_values_begin(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                                      graft_error *error)
{
    struct gr_ranks     *r = gr_parallel_of(strategy);
    struct gr_new_plans *made = NULL;
    int32_t              rc = GRAFT_OK;

    if (r->plans.whole == NULL) return GRAFT_OK;
    rc = GR_NEW(r->context, made, 1, error);
    *values = made;
    GR_TRY(gr_comm_agree(r->comm, rc, error));
    return gr_parallel_plans_values_begin(r, part, made, error);
}

static void partition_values_end(struct gr_strategy *strategy, void *values, int takes)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    if (values != NULL) gr_parallel_plans_values_end(r, values, takes);
    gr_free(r->context, values);
    if (takes) gr_parallel_reset(r);
    gr_parallel_charge(r);
}

const struct gr_strategy_ops gr_partition_ops = { .name = "partition",
                                                  .records = 1,
                                                  .make = { .create = partition_create,
                                                            .destroy = partition_destroy,
                                                            .graph = partition_graph,
                                                            .need = partition_need,
                                                            .reserve = partition_reserve,
                                                            .values_begin = partition_values_begin,
                                                            .values_end = partition_values_end },
                                                  .report = { .traffic = gr_parallel_traffic_of,
                                                              .traffic_item = gr_parallel_traffic_item,
                                                              .traffic_pair = gr_parallel_traffic_pair,
                                                              .explain = gr_parallel_explain },
                                                  .prepare_step = gr_parallel_prepare_step,
                                                  .begin_step = gr_parallel_begin_step,
                                                  .end_step = gr_parallel_end_step,
                                                  .forget = gr_parallel_forget,
                                                  .aggregate_begin = partition_aggregate_begin,
                                                  .aggregate_end = partition_aggregate_end,
                                                  .boundary_begin = partition_boundary_begin,
                                                  .boundary_end = partition_boundary_end,
                                                  .sum = gr_parallel_sum,
                                                  .sum_gradients = gr_parallel_sum_gradients,
                                                  .agree = gr_parallel_agree,
                                                  .poll = gr_parallel_poll };
