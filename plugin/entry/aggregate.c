/* "graft.aggregate/1": reads the host's structs, checks them, and calls spmm/ and adaptive/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/adapt.h"
#include "entry/entry.h"

#include "base/option_row.h"
#include "halo/options.h"
#include "spmm/plan.h"

/* Read and check this rank's arguments. The caller makes all ranks agree on the result. */
static int32_t read_plan_args(const graft_graph *graph, const graft_plan_args *theirs, graft_plan *const *plan,
                              struct gr_plan_wish *wish, graft_error *error)
{
    graft_plan_args args = { .size = sizeof args };

    if (plan == NULL) return gr_fail(error, GRAFT_ERR_ARG, "plan is null");
    if (theirs != NULL) GR_TRY(gr_struct_read(&args, sizeof args, theirs, "args", error));
    if (args.flags & ~GRAFT_PLAN_TRANSPOSED)
        return gr_fail(error, GRAFT_ERR_ARG, "args: flags are 0x%x, which has unknown bits", args.flags);
    if (args.width < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "args: width is %lld, expected at least 0", (long long)args.width);
    if (args.layers < 0 || args.layers > INT32_MAX / 2)
        return gr_fail(error, GRAFT_ERR_ARG, "args: layers is %d, expected 0 to 2^30", args.layers);
    if (args.dtype == 0) args.dtype = graph->value_type != 0 ? graph->value_type : GRAFT_F32;
    if ((args.dtype != GRAFT_F32 && args.dtype != GRAFT_F64) ||
        (graph->value_type != 0 && args.dtype != graph->value_type))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "args: dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2), and the dtype of the values of "
                       "the graph if it has values (here %d)",
                       args.dtype, graph->value_type);
    *wish = (struct gr_plan_wish){ .transposed = (args.flags & GRAFT_PLAN_TRANSPOSED) != 0,
                                   .width = args.width,
                                   .dtype = args.dtype,
                                   .layers = args.layers > 0 ? args.layers : 1,
                                   .has_layers = 1,
                                   .is_revalued = graph->value_type != 0 };
    return GRAFT_OK;
}

static int32_t plan_create(graft_graph *graph, const graft_plan_args *args, graft_plan **plan, graft_error *error)
{
    struct gr_call      call;
    struct gr_plan_wish wish;
    int32_t             rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_AGGREGATE_ID " create", error);

    GR_TRY_DONE(rc);
    rc = read_plan_args(graph, args, plan, &wish, &call.error);
    GR_TRY_DONE(gr_comm_agree(graph->comm, rc, &call.error));
    if (graph->comm->rank == 0)
        gr_options_report(graph->context, gr_options_bit(graph->context, &gr_halo_option_table), graph->comm->n_ranks);
    GR_TRY_DONE(gr_plan_create(graph->context, graph->comm, &graph->part, graph, &wish, plan, &call.error));
    gr_handle_init(*plan, GR_HANDLE_PLAN, graph->context);
done:
    return gr_call_end(&call, rc);
}

/* Copies of the host's structs. */
struct pass_copy {
    graft_aggregate_args args;
    graft_dense          x, out;
    struct gr_mask_copy  mask;
};

static int32_t read_pass(const graft_aggregate_args *theirs, struct pass_copy *copy, graft_error *error)
{
    graft_aggregate_args *args = &copy->args;

    GR_TRY(gr_struct_read(args, sizeof *args, theirs, "args", error));
    GR_TRY(gr_struct_read(&copy->x, sizeof copy->x, args->x, "args.x", error));
    GR_TRY(gr_struct_read(&copy->out, sizeof copy->out, args->out, "args.out", error));
    GR_TRY(gr_entry_read_mask(&args->mask, &args->epilogue, &copy->mask, error));
    args->x = &copy->x;
    args->out = &copy->out;
    return GRAFT_OK;
}

static int32_t plan_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    struct gr_call   call;
    struct pass_copy copy = { .args = { .size = 0 } };
    int32_t          rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " begin", error);

    GR_TRY_DONE(rc);
    rc = read_pass(args, &copy, &call.error);
    rc = gr_plan_begin(plan, rc, &copy.args, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t plan_end(graft_plan *plan, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " end", error);

    if (rc == GRAFT_OK) rc = gr_plan_end(plan, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t plan_progress(graft_plan *plan, int32_t *arrived, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " progress", error);

    GR_TRY_DONE(rc);
    if (arrived == NULL) GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_ARG, "arrived is null"));
    if (!gr_plan_has_begun(plan)) GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_STATE, "no pass of this plan has begun"));
    *arrived = 1;
    if (plan->product.begun) GR_TRY_DONE(gr_halo_exchange_progress(&plan->product.exchange, arrived, &call.error));
    rc = gr_comm_outcome_progress(&plan->host.outcome, arrived, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_adaptive(const graft_plan *plan, graft_error *error)
{
    if (gr_plan_has_begun(plan)) return gr_fail(error, GRAFT_ERR_STATE, "a pass of this plan has begun and not ended");
    if (plan->layers.adaptive[GR_FORWARD] || plan->layers.adaptive[GR_BACKWARD]) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "the plan was made without adaptive widths (option 'halo.codec')");
}

static int32_t plan_assign_bits(graft_plan *plan, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " assign_bits", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_comm_agree(plan->comm, check_adaptive(plan, &call.error), &call.error));
    rc = gr_adaptive_set_widths(&plan->layers, NULL, GR_DIRECTIONS * plan->layers.n_layers, 0, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error)
{
    struct gr_call  call;
    graft_plan_info ours;
    int32_t         rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " info", error);

    if (rc == GRAFT_OK) rc = gr_plan_info(plan, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t plan_explain(const graft_plan *plan, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, plan, GR_HANDLE_PLAN, GRAFT_AGGREGATE_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_plan_explain(plan, &(struct gr_text){ text, capacity });
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(plan_destroy, graft_plan, PLAN, GRAFT_AGGREGATE_ID " destroy", gr_plan_destroy)

const graft_aggregate_api gr_interface_aggregate = {
    .size = sizeof(graft_aggregate_api),
    .create = plan_create,
    .begin = plan_begin,
    .end = plan_end,
    .info = plan_info,
    .explain = plan_explain,
    .destroy = plan_destroy,
    .assign_bits = plan_assign_bits,
    .progress = plan_progress,
};
