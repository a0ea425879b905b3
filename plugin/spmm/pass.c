/* A pass over a plan: rows are made and sent, the local part of the product is done while they travel, and what came is
 * aggregated.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/adapt.h"
#include "spmm/plan.h"
#include "base/parallel.h"

#include <math.h>

/* Rows that a thread clears at a time. */
enum { CHUNK = 64 };

static int is_sum(graft_semiring semiring)
{
    return semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND;
}

static int is_max(graft_semiring semiring)
{
    return semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND;
}

static int is_apart(const graft_aggregate_args *a)
{
    return (a->flags & (GRAFT_AGGREGATE_APART | GRAFT_AGGREGATE_EXACT)) != 0;
}

/* A pass that is a step of its layer, where the plan keeps account of these. */
static int32_t check_lane(const graft_plan *plan, const graft_aggregate_args *a, graft_error *error)
{
    const struct gr_lanes *lanes = &plan->lanes;

    if (lanes->lane == NULL || is_apart(a)) return GRAFT_OK;
    if (a->layer < 0 || a->layer >= lanes->n_layers)
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "layer is %d; with halo.async, or adaptive halo.bits, expected 0 to %d, by graft_plan_args.layers",
            a->layer, lanes->n_layers - 1);
    if (lanes->is_async && !is_sum(a->semiring))
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "halo.async is for sums, and semiring %d is a maximum or minimum: of rows of two epochs it would "
            "be that of neither. Set halo.async=no, or flag GRAFT_AGGREGATE_APART",
            a->semiring);
    return GRAFT_OK;
}

/* Whether the flags and the semiring are something that this plan can do. */
static int32_t check_kind(const graft_plan *plan, const graft_aggregate_args *a, graft_error *error)
{
    const int transposed = (a->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;

    if (a->flags & ~(GRAFT_AGGREGATE_TRANSPOSE | GRAFT_AGGREGATE_ACCUMULATE | GRAFT_AGGREGATE_EXACT |
                     GRAFT_AGGREGATE_APART | GRAFT_AGGREGATE_WAIT))
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, of which some are unknown", a->flags);
    if (a->semiring < GRAFT_PLUS_TIMES || a->semiring > GRAFT_MIN_SECOND)
        return gr_fail(error, GRAFT_ERR_ARG, "semiring is %d, expected 1 (plus_times) to 6 (min_second)", a->semiring);
    if (a->row_scale != NULL && !is_sum(a->semiring))
        return gr_fail(error, GRAFT_ERR_ARG, "row_scale is for sums, and semiring %d is a maximum or minimum",
                       a->semiring);
    if (a->times != NULL && a->threads < 1)
        return gr_fail(error, GRAFT_ERR_ARG, "times are asked for, and threads is %d; it should say for how many",
                       a->threads);
    if (transposed && !is_sum(a->semiring))
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "only sums have a transposed pass, and semiring %d is none",
                       a->semiring);
    if (transposed && plan->receive_transpose == NULL)
        return gr_fail(error, GRAFT_ERR_STATE, "the plan was made without GRAFT_PLAN_TRANSPOSED");
    return check_lane(plan, a, error);
}

static int32_t check_matrices(const graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    const int          transposed = (args->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    const graft_csr   *local = &plan->part->local;
    const int64_t      rows_in = transposed ? local->n_rows : local->n_cols;
    const int64_t      rows_out = transposed ? local->n_cols : local->n_rows;
    const graft_dense *x = args->x, *out = args->out;
    int32_t            rc = GRAFT_OK;

    GR_TRY(gr_dense_check(x, "x", error));
    GR_TRY(gr_dense_check(out, "out", error));
    if (x->n_rows != rows_in || out->n_rows != rows_out || x->n_cols != out->n_cols)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "x is %lld x %lld and out %lld x %lld; they should have %lld and %lld rows, the vertices that "
                       "the rank owns, and the same columns",
                       (long long)x->n_rows, (long long)x->n_cols, (long long)out->n_rows, (long long)out->n_cols,
                       (long long)rows_in, (long long)rows_out);
    if (x->dtype != out->dtype || x->dtype == GRAFT_BF16 || (plan->value_type != 0 && plan->value_type != x->dtype))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "types differ: x has dtype %d, out %d, the values of the graph %d (0: none); all must be "
                       "GRAFT_F32 (1), or all GRAFT_F64 (2)",
                       x->dtype, out->dtype, plan->value_type);
    if (gr_dense_overlap(x, out)) return gr_fail(error, GRAFT_ERR_ARG, "out overlaps x in memory");
done:
    return rc;
}

/* Begin the record of a pass: which way rows go, and between which ranks. */
static void start(graft_plan *plan, const graft_aggregate_args *args)
{
    struct gr_pass *pass = &plan->pass;
    const int       transposed = (args->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;

    *pass = (struct gr_pass){ .begun = 1, .args = *args, .x = *args->x, .out = *args->out };
    pass->sends = transposed ? GR_SIDE_IN : GR_SIDE_OUT;
    pass->gets = transposed ? GR_SIDE_OUT : GR_SIDE_IN;
    pass->element = args->x->dtype == GRAFT_F64 ? 8 : 4;
    pass->on_lane.waits = (args->flags & GRAFT_AGGREGATE_WAIT) != 0;
    pass->on_lane.smoothing = plan->lanes.smoothing;
}

static struct gr_wire_pass wire_pass(const struct gr_pass *pass)
{
    return (struct gr_wire_pass){ .layer = pass->args.layer,
                                  .direction = pass->args.flags & GRAFT_AGGREGATE_TRANSPOSE ? GR_BACKWARD : GR_FORWARD,
                                  .exact = (pass->args.flags & GRAFT_AGGREGATE_EXACT) != 0,
                                  .epoch = pass->args.epoch,
                                  .width = pass->x.n_cols,
                                  .dtype = pass->x.dtype,
                                  .semiring = pass->args.semiring,
                                  .flags = pass->args.flags };
}

static struct gr_wire_rows rows_of(const graft_plan *plan, int32_t side)
{
    return (struct gr_wire_rows){ plan->side[side].start, plan->side[side].buffer };
}

static struct gr_team team_of(const graft_plan *plan)
{
    return (struct gr_team){ .threads = gr_threads(plan->context, plan->pass.args.threads),
                             .times = plan->pass.args.times };
}

/* The rows to or from others as a matrix. */
static graft_dense buffer_of(const graft_plan *plan, int32_t side)
{
    const graft_dense *x = &plan->pass.x;

    return (graft_dense){ .size = sizeof(graft_dense),
                          .dtype = x->dtype,
                          .n_rows = plan->side[side].start[plan->comm->n_ranks],
                          .n_cols = x->n_cols,
                          .stride = x->n_cols,
                          .data = plan->side[side].buffer };
}

static int32_t product(graft_plan *plan, graft_matrix *a, const graft_dense *b, const graft_dense *c, uint32_t flags,
                       const void *row_scale, void (*poll_fn)(void *), graft_error *error)
{
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = plan->pass.args.semiring,
                                  .flags = flags,
                                  .threads = plan->pass.args.threads,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .row_scale = row_scale,
                                  .times = plan->pass.args.times,
                                  .poll = poll_fn,
                                  .poll_arg = poll_fn != NULL ? &plan->pass.on_lane.wire->exchange : NULL };

    return gr_mxm_run(plan->context, &args, error);
}

/* The rows that go, each block of them encoded by the thread that made it. */
static int32_t make_rows(graft_plan *plan, graft_matrix *a, graft_error *error)
{
    struct gr_wire      *wire = plan->pass.on_lane.wire;
    const graft_dense    sent = buffer_of(plan, plan->pass.sends);
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = plan->pass.args.semiring,
                                  .threads = gr_wire_team(wire, team_of(plan)).threads,
                                  .a = a,
                                  .b = &plan->pass.x,
                                  .c = &sent,
                                  .times = plan->pass.args.times,
                                  .rows_done = gr_wire_encoder_of(wire),
                                  .rows_arg = wire };

    gr_wire_out(wire, rows_of(plan, plan->pass.sends));
    return sent.n_rows > 0 ? gr_mxm_run(plan->context, &args, error) : GRAFT_OK;
}

/* Rows of out that others alone have entries of, while threads go through them. */
struct bare {
    const int32_t     *row;
    const graft_dense *out;
    double             none; /* what has no part in the maximum or minimum */
};

static void clear_floats(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct bare *b = arg;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        float *row = (float *)b->out->data + b->row[i] * b->out->stride;

        for (int64_t j = 0; j < b->out->n_cols; j++) row[j] = (float)b->none;
    }
}

static void clear_doubles(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct bare *b = arg;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        double *row = (double *)b->out->data + b->row[i] * b->out->stride;

        for (int64_t j = 0; j < b->out->n_cols; j++) row[j] = b->none;
    }
}

/* Rows without entries of their own are 0 so far, which would take part in a maximum or minimum. */
static void clear_bare(graft_plan *plan)
{
    const struct gr_pass *pass = &plan->pass;
    struct bare           bare = { plan->bare, &pass->out, is_max(pass->args.semiring) ? -INFINITY : INFINITY };
    struct gr_team        team = team_of(plan);

    if (is_sum(pass->args.semiring) || pass->args.flags & GRAFT_AGGREGATE_ACCUMULATE) return;
    team.poll = gr_exchange_poll;
    team.poll_arg = &plan->pass.on_lane.wire->exchange;
    gr_parallel_chunks(team, plan->n_bare * pass->out.n_cols, plan->n_bare, CHUNK,
                       pass->element == 4 ? clear_floats : clear_doubles, &bare);
}

static struct gr_lane *lane_of(const graft_plan *plan)
{
    const struct gr_pass *pass = &plan->pass;

    if (is_apart(&pass->args)) return NULL;
    return gr_lanes_find(&plan->lanes, pass->args.layer, pass->gets == GR_SIDE_IN ? GR_FORWARD : GR_BACKWARD);
}

/* What the pass makes of the rows that come. */
static void weigh(const graft_plan *plan, struct gr_lane *lane)
{
    const struct gr_pass *pass = &plan->pass;
    const int is_second = pass->args.semiring == GRAFT_PLUS_SECOND || pass->args.semiring == GRAFT_MAX_SECOND ||
                          pass->args.semiring == GRAFT_MIN_SECOND;
    const graft_matrix *matrix = pass->gets == GR_SIDE_OUT ? plan->send_transpose : plan->receive;

    gr_adapt_weigh(lane, &matrix->csr, !is_second, pass->x.dtype, pass->args.row_scale);
}

/* All of a pass that happens before end(). What fails here has others waiting. */
static int32_t run(graft_plan *plan, graft_error *error)
{
    struct gr_pass     *pass = &plan->pass;
    const int           transposed = pass->gets == GR_SIDE_OUT;
    const uint32_t      flags = pass->args.flags & GRAFT_AGGREGATE_ACCUMULATE ? GRAFT_MXM_ACCUMULATE : 0;
    struct gr_wire_pass on_wire = wire_pass(pass);
    struct gr_lane     *lane = lane_of(plan);
    int32_t             rc = GRAFT_OK;

    if (lane != NULL) weigh(plan, lane);
    GR_TRY(
        gr_lane_receive(&pass->on_lane, lane, &plan->wire, &on_wire, rows_of(plan, pass->gets), team_of(plan), error));
    if (!pass->on_lane.again) GR_TRY(make_rows(plan, transposed ? plan->receive_transpose : plan->send, error));
    GR_TRY(gr_lane_send(&pass->on_lane, team_of(plan), error));
    for (int32_t q = 0; q < plan->comm->n_ranks && !pass->on_lane.again; q++)
        gr_wire_sent_add(&plan->sent, &pass->on_lane.wire->sent[q]);
    GR_TRY(product(plan, transposed ? plan->local_transpose : plan->local, &pass->x, &pass->out, flags,
                   pass->args.row_scale, gr_exchange_poll, error));
    clear_bare(plan);
    pass->computed = gr_seconds();
done:
    return rc;
}

int32_t gr_pass_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    int64_t left;
    int32_t rc = GRAFT_OK;

    if (plan->pass.begun) return gr_fail(error, GRAFT_ERR_STATE, "a pass of this plan has begun and not ended");
    GR_TRY(check_kind(plan, args, error));
    GR_TRY(check_matrices(plan, args, error));
    GR_TRY(gr_comm_poll(plan->comm, NULL, 0, &left, error));
    start(plan, args);
    rc = gr_plan_reserve(plan, -1, args->x->n_cols, args->x->dtype, error);
    if (rc == GRAFT_OK) rc = gr_lane_reserve(&plan->lanes, lane_of(plan), args->x->n_cols, args->x->dtype, error);
    if (rc == GRAFT_OK) rc = run(plan, error);
    if (rc < 0) {
        plan->pass.begun = 0;
        error->code = rc;
        rc = gr_comm_fail(plan->comm, error);
    }
done:
    return rc;
}

int32_t gr_pass_end(graft_plan *plan, graft_error *error)
{
    struct gr_pass *pass = &plan->pass;
    const int       transposed = pass->gets == GR_SIDE_OUT;
    graft_dense     received;
    const void     *rows;
    int32_t         rc = GRAFT_OK;

    if (!pass->begun) return gr_fail(error, GRAFT_ERR_STATE, "no pass of this plan has begun");
    pass->begun = 0;
    GR_TRY(gr_lane_end(&pass->on_lane, team_of(plan), &rows, error));
    received = buffer_of(plan, pass->gets);
    received.data = (void *)(uintptr_t)rows;
    if (received.n_rows > 0)
        rc = product(plan, transposed ? plan->send_transpose : plan->receive, &received, &pass->out,
                     GRAFT_MXM_ACCUMULATE, pass->args.row_scale, NULL, error);
    if (rc < 0) {
        error->code = rc;
        rc = gr_comm_fail(plan->comm, error);
    }
    plan->passes += rc == GRAFT_OK;
done:
    return rc;
}
