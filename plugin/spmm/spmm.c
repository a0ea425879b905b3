/* A distributed product: computes, encodes and sends rows, computes the local part of the product while they are in
 * flight, and adds the received rows to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "kernel/mask.h"
#include "spmm/plan.h"

#include <math.h>
#include <string.h>

static enum gr_direction direction_of(const graft_aggregate_args *a)
{
    return a->flags & GRAFT_AGGREGATE_TRANSPOSE ? GR_BACKWARD : GR_FORWARD;
}

/* Whether the product is not a step of its layer. */
static int is_stateless(const graft_aggregate_args *a)
{
    return (a->flags & (GRAFT_AGGREGATE_STATELESS | GRAFT_AGGREGATE_EXACT)) != 0;
}

/* Check that the layer of a step is one of the plan, and that a step with stale rows is a sum. */
static int32_t check_layer(const graft_plan *plan, const graft_aggregate_args *a, graft_error *error)
{
    const struct gr_halo_layers *layers = &plan->layers;

    if (layers->layer == NULL || is_stateless(a)) return GRAFT_OK;
    if (a->layer < 0 || a->layer >= layers->n_layers)
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "layer is %d; with halo.staleness=1, or halo.codec=adaptive, expected 0 to %d, by graft_plan_args.layers",
            a->layer, layers->n_layers - 1);
    if (layers->is_stale && !gr_semiring_is_sum(a->semiring))
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "halo.staleness is for sums, and semiring %d is a maximum or minimum, which must not mix "
                       "rows of two epochs. Set halo.staleness=0, or flag GRAFT_AGGREGATE_STATELESS",
                       a->semiring);
    return GRAFT_OK;
}

/* Check that the plan supports the flags and the semiring. */
static int32_t check_kind(const graft_plan *plan, const graft_aggregate_args *a, graft_error *error)
{
    const enum gr_direction direction = direction_of(a);

    if (a->flags & ~(GRAFT_AGGREGATE_TRANSPOSE | GRAFT_AGGREGATE_ACCUMULATE | GRAFT_AGGREGATE_EXACT |
                     GRAFT_AGGREGATE_STATELESS | GRAFT_AGGREGATE_SYNCHRONOUS | GRAFT_AGGREGATE_REPLACE))
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, of which some are unknown", a->flags);
    if (a->semiring < GRAFT_PLUS_TIMES || a->semiring > GRAFT_MIN_SECOND)
        return gr_fail(error, GRAFT_ERR_ARG, "semiring is %d, expected 1 (plus_times) to 6 (min_second)", a->semiring);
    if (a->row_scale != NULL && !gr_semiring_is_sum(a->semiring))
        return gr_fail(error, GRAFT_ERR_ARG, "row_scale is for sums, and semiring %d is a maximum or minimum",
                       a->semiring);
    if (a->times != NULL && a->threads < 1)
        return gr_fail(error, GRAFT_ERR_ARG, "times are asked for, and threads is %d; it should say for how many",
                       a->threads);
    if (direction == GR_BACKWARD && !gr_semiring_is_sum(a->semiring))
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "only sums have a transposed pass, and semiring %d is none",
                       a->semiring);
    if (a->epilogue != NULL && (!gr_semiring_is_sum(a->semiring) || a->flags & GRAFT_AGGREGATE_ACCUMULATE))
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "over ranks an epilogue is for sums that are not accumulated; semiring is %d, flags are 0x%x",
                       a->semiring, a->flags);
    if (plan->matrices[direction].local == NULL)
        return gr_fail(error, GRAFT_ERR_STATE, "the plan was made without GRAFT_PLAN_TRANSPOSED");
    return check_layer(plan, a, error);
}

/* Check mask and epilogue as the local product does. */
static int32_t check_masked(const graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    const graft_mxm_args local = { .size = sizeof local,
                                   .semiring = args->semiring,
                                   .a = plan->matrices[direction_of(args)].local,
                                   .b = args->x,
                                   .c = args->out,
                                   .mask = args->mask,
                                   .epilogue = args->epilogue };

    return gr_mxm_check(&local, error);
}

static int fits_type(graft_dtype x, graft_dtype out)
{
    return out != GRAFT_BF16 && (x == out || (x == GRAFT_BF16 && out == GRAFT_F32));
}

static int32_t check_matrices(const graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    const graft_csr   *local = &plan->matrices[direction_of(args)].local->csr;
    const int64_t      rows_in = local->n_cols, rows_out = local->n_rows;
    const graft_dense *x = args->x, *out = args->out;

    GR_TRY(gr_kernel_dense_check(x, "x", error));
    GR_TRY(gr_kernel_dense_check(out, "out", error));
    if (x->n_rows != rows_in || out->n_rows != rows_out || x->n_cols != out->n_cols)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "x is %lld x %lld and out %lld x %lld; they should have %lld and %lld rows, the vertices that "
                       "the rank owns, and the same columns",
                       (long long)x->n_rows, (long long)x->n_cols, (long long)out->n_rows, (long long)out->n_cols,
                       (long long)rows_in, (long long)rows_out);
    if (!fits_type(x->dtype, out->dtype) || (plan->value_type != 0 && plan->value_type != out->dtype))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "types differ: x has dtype %d, out %d, the values of the graph %d (0: none); all must be "
                       "GRAFT_F32 (1), or all GRAFT_F64 (2); x may be GRAFT_BF16 (6) where out is GRAFT_F32",
                       x->dtype, out->dtype, plan->value_type);
    if (gr_kernel_dense_overlaps(x, out)) return gr_fail(error, GRAFT_ERR_ARG, "out overlaps x in memory");
    if (args->mask != NULL || args->epilogue != NULL) return check_masked(plan, args, error);
    return GRAFT_OK;
}

static int32_t check_begun(const graft_plan *plan, graft_error *error)
{
    if (!gr_plan_has_begun(plan)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "a pass of this plan has begun and not ended");
}

static int32_t check_args(const graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    GR_TRY(check_kind(plan, args, error));
    return check_matrices(plan, args, error);
}

static struct gr_team plan_team(const graft_plan *plan)
{
    return (struct gr_team){ .threads = gr_context_threads(plan->context, plan->product.args.threads),
                             .times = plan->product.args.times };
}

/* Return the rows that the product sends, or receives. */
static struct gr_rank_rows rows_of(const graft_plan *plan, enum gr_side side)
{
    const struct gr_plan_rows *rows = &plan->rows[gr_side_of(plan->product.direction, side)];

    return (struct gr_rank_rows){ rows->start, rows->buffer };
}

/* View sent or received rows as a matrix of the type of `out`. */
static graft_dense matrix_of(const graft_plan *plan, struct gr_rank_rows rows)
{
    const graft_dense *out = &plan->product.out;

    return gr_dense_view(rows.data, out->dtype, rows.start[plan->comm->n_ranks], out->n_cols, out->n_cols);
}

/* -- steps of a product, in their order --------------------------------------------------------------------------- */

/* Copy mask and epilogue, because the caller's structs may not exist until the end of the product. */
static void keep_masked(graft_plan *plan, const graft_aggregate_args *args)
{
    struct gr_spmm *p = &plan->product;

    if (args->mask != NULL) {
        p->mask = *args->mask;
        p->args.mask = &p->mask;
    }
    if (args->epilogue == NULL) return;
    p->epilogue = *args->epilogue;
    p->args.epilogue = &p->epilogue;
    if (p->epilogue.vertex == NULL && plan->graph != NULL) p->epilogue.vertex = plan->graph->vertex;
    if (p->epilogue.residual == NULL) return;
    p->residual = *p->epilogue.residual;
    p->epilogue.residual = &p->residual;
}

/* Set the fields of the product and its exchange before anything is sent. */
static void set_product(graft_plan *plan, const graft_aggregate_args *args)
{
    struct gr_spmm         *p = &plan->product;
    const enum gr_direction direction = direction_of(args);

    *p = (struct gr_spmm){ .begun = 1, .args = *args, .x = *args->x, .out = *args->out, .direction = direction };
    keep_masked(plan, args);
    p->exchange.args = (struct gr_exchange_args){ .layer = args->layer,
                                                  .direction = direction,
                                                  .exact = (args->flags & GRAFT_AGGREGATE_EXACT) != 0,
                                                  .epoch = args->epoch,
                                                  .width = args->x->n_cols,
                                                  .dtype = args->out->dtype,
                                                  .semiring = args->semiring,
                                                  .flags = args->flags };
    p->exchange.messages = &plan->messages;
    p->exchange.total = &plan->sent;
    p->exchange.smoothing = plan->layers.smoothing;
    p->exchange.synchronous = (args->flags & GRAFT_AGGREGATE_SYNCHRONOUS) != 0;
}

/* Compute the weights of received rows, for adaptive widths. */
static void weigh_received(const graft_plan *plan)
{
    const struct gr_spmm *p = &plan->product;
    const int             is_second = p->args.semiring == GRAFT_PLUS_SECOND || p->args.semiring == GRAFT_MAX_SECOND ||
                          p->args.semiring == GRAFT_MIN_SECOND;

    if (p->exchange.layer == NULL || !p->exchange.layer->is_adaptive) return;
    gr_halo_row_bits_weigh(&p->exchange.layer->bits, &plan->matrices[p->direction].received->csr, !is_second,
                           p->out.dtype, p->args.row_scale);
}

/* Compute the rows to send, S x or R^T x. The thread that has computed a block of rows encodes it. */
static int32_t aggregate_sent(graft_plan *plan, graft_error *error)
{
    const struct gr_spmm *p = &plan->product;
    struct gr_messages   *messages = p->exchange.messages;
    const int             encodes = p->exchange.encodes;
    const graft_dense     sent = matrix_of(plan, p->exchange.sent);
    const graft_mxm_args  args = { .size = sizeof args,
                                   .semiring = p->args.semiring,
                                   .threads = p->exchange.threads,
                                   .a = plan->matrices[p->direction].sent,
                                   .b = &p->x,
                                   .c = &sent,
                                   .times = p->args.times,
                                   .rows_done = encodes ? gr_halo_messages_encode : NULL,
                                   .rows_arg = encodes ? messages : NULL };

    GR_ASSERT(p->begun && plan->matrices[p->direction].sent->csr.n_rows == sent.n_rows);
    if (p->is_refused) {
        if (sent.n_rows > 0) memset(sent.data, 0, (uint64_t)(sent.n_rows * sent.n_cols * gr_dtype_bytes(sent.dtype)));
        if (encodes && sent.n_rows > 0) gr_halo_messages_encode(messages, 0, 0, sent.n_rows);
        return GRAFT_OK;
    }
    return sent.n_rows > 0 ? gr_mxm_run(plan->context, &args, error) : GRAFT_OK;
}

/* Compute out (+)= A_local x, or A_local^T x, while messages are in flight. An epilogue applies to the whole sum: if
 * received rows follow, only the residual is added here, and add_received() applies the rest with `out` as its
 * residual. */
static int32_t multiply_local(graft_plan *plan, graft_error *error)
{
    const struct gr_spmm *p = &plan->product;
    const uint32_t        flags = (p->args.flags & GRAFT_AGGREGATE_ACCUMULATE ? GRAFT_MXM_ACCUMULATE : 0) |
                           (p->args.flags & GRAFT_AGGREGATE_REPLACE ? GRAFT_MXM_REPLACE : 0);
    const graft_epilogue residual = { .size = sizeof residual, .residual = p->epilogue.residual };
    const int            is_part = p->args.epilogue != NULL && p->exchange.received.start[plan->comm->n_ranks] > 0;
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = p->args.semiring,
                                  .flags = flags,
                                  .threads = p->args.threads,
                                  .a = plan->matrices[p->direction].local,
                                  .b = &p->x,
                                  .c = &p->out,
                                  .mask = p->args.mask,
                                  .epilogue = is_part ? &residual : p->args.epilogue,
                                  .row_scale = p->args.row_scale,
                                  .times = p->args.times,
                                  .poll = gr_comm_framed_poll,
                                  .poll_arg = &p->exchange.messages->framed };

    return gr_mxm_run(plan->context, &args, error);
}

/* Arguments of the threads that clear the rows of `out` that have no local entries. */
struct clear {
    const int32_t     *row;
    const graft_dense *out;
    const graft_mask  *mask;
    double             neutral; /* neutral element of the maximum or minimum */
};

static void clear_floats(void *arg, int64_t begin, int64_t end)
{
    const struct clear *c = arg;

    for (int64_t i = begin; i < end; i++) {
        float *row = (float *)c->out->data + c->row[i] * c->out->stride;

        for (int64_t j = 0; j < c->out->n_cols; j++)
            if (gr_mask_allows(c->mask, c->row[i], j)) row[j] = (float)c->neutral;
    }
}

static void clear_doubles(void *arg, int64_t begin, int64_t end)
{
    const struct clear *c = arg;

    for (int64_t i = begin; i < end; i++) {
        double *row = (double *)c->out->data + c->row[i] * c->out->stride;

        for (int64_t j = 0; j < c->out->n_cols; j++)
            if (gr_mask_allows(c->mask, c->row[i], j)) row[j] = c->neutral;
    }
}

/* Set rows that have cut edges but no local entries to the neutral element of a maximum or minimum, because the 0 from
 * the local product would take part in it. */
static void clear_remote_only(graft_plan *plan)
{
    const struct gr_spmm *p = &plan->product;
    struct clear          clear = { plan->remote_only, &p->out, p->args.mask,
                           gr_semiring_is_max(p->args.semiring) ? -INFINITY : INFINITY };
    struct gr_team        team = plan_team(plan);

    if (gr_semiring_is_sum(p->args.semiring) || p->args.flags & GRAFT_AGGREGATE_ACCUMULATE) return;
    team.poll = gr_comm_framed_poll;
    team.poll_arg = &p->exchange.messages->framed;
    gr_parallel_rows(team, plan->n_remote_only * p->out.n_cols, plan->n_remote_only, GR_ROWS_AT_ONCE,
                     p->out.dtype == GRAFT_F64 ? clear_doubles : clear_floats, &clear);
}

/* Compute out (+)= R received, or S^T received; with an epilogue out = epilogue(R received + out). */
static int32_t add_received(graft_plan *plan, const void *rows, graft_error *error)
{
    const struct gr_spmm     *p = &plan->product;
    const struct gr_rank_rows in = { p->exchange.received.start, (void *)(uintptr_t)rows };
    const graft_dense         received = matrix_of(plan, in);
    graft_epilogue            whole = p->epilogue;
    const graft_mxm_args      args = { .size = sizeof args,
                                       .semiring = p->args.semiring,
                                       .flags = p->args.epilogue != NULL ? 0 : GRAFT_MXM_ACCUMULATE,
                                       .mask = p->args.mask,
                                       .epilogue = p->args.epilogue != NULL ? &whole : NULL,
                                       .threads = p->args.threads,
                                       .a = plan->matrices[p->direction].received,
                                       .b = &received,
                                       .c = &p->out,
                                       .row_scale = p->args.row_scale,
                                       .times = p->args.times };

    GR_ASSERT(plan->matrices[p->direction].received->csr.n_cols == received.n_rows);
    whole.residual = &p->out;
    return received.n_rows > 0 ? gr_mxm_run(plan->context, &args, error) : GRAFT_OK;
}

/* -- the product -------------------------------------------------------------------------------------------------- */

/* End the comm after a failure of this rank alone, because the other ranks wait for its messages. */
static int32_t fail_all(graft_plan *plan, int32_t rc, graft_error *error)
{
    plan->product.begun = 0;
    error->code = rc;
    return gr_comm_fail(plan->comm, error);
}

/* Compute and send the rows of plan->product. \return OK; ERR_NONFINITE, see gr_halo_messages_send(); any error of this
 * rank. */
static int32_t send_rows(graft_plan *plan, graft_error *error)
{
    struct gr_exchange          *x = &plan->product.exchange;
    const graft_aggregate_args  *args = &plan->product.args;
    const struct gr_halo_layers *layers = is_stateless(args) ? NULL : &plan->layers;

    GR_TRY(gr_plan_reserve_rows(plan, x->args.width, x->args.dtype, error));
    x->sent = rows_of(plan, GR_SEND);
    x->received = rows_of(plan, GR_RECEIVE);
    GR_TRY(gr_halo_exchange_open(x, layers, plan_team(plan), error));
    weigh_received(plan);
    if (!x->is_repeat) GR_TRY(aggregate_sent(plan, error));
    return gr_halo_exchange_send(x, plan_team(plan), error);
}

static int32_t send_or_fail(graft_plan *plan, graft_error *error)
{
    const int32_t rc = send_rows(plan, error);

    return rc < 0 ? fail_all(plan, rc, error) : GRAFT_OK;
}

int32_t gr_spmm_send(graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    GR_TRY(check_begun(plan, error));
    GR_ASSERT(check_args(plan, args, error) == GRAFT_OK);
    set_product(plan, args);
    return send_or_fail(plan, error);
}

static int32_t compute_local(graft_plan *plan, graft_error *error)
{
    const int32_t rc = multiply_local(plan, error);

    if (rc < 0) return fail_all(plan, rc, error);
    clear_remote_only(plan);
    plan->product.computed_at = gr_seconds();
    return GRAFT_OK;
}

/* Begin plan->product: send rows, and compute the local part. */
static int32_t begin_product(graft_plan *plan, graft_error *error)
{
    const int32_t rc = send_or_fail(plan, error);

    return rc < 0 ? rc : compute_local(plan, error);
}

int32_t gr_spmm_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    const int32_t rc = gr_spmm_send(plan, args, error);

    return rc < 0 ? rc : compute_local(plan, error);
}

int32_t gr_spmm_receive(graft_plan *plan, const void **rows, graft_error *error)
{
    struct gr_spmm *p = &plan->product;
    int32_t         rc;

    if (!p->begun) return gr_fail(error, GRAFT_ERR_STATE, "no pass of this plan has begun");
    p->begun = 0;
    rc = gr_halo_exchange_end(&p->exchange, plan_team(plan), rows, error);
    if (rc == GRAFT_OK) plan->host.passes++;
    return rc;
}

int32_t gr_spmm_end(graft_plan *plan, graft_error *error)
{
    const void *rows;
    int32_t     rc = gr_spmm_receive(plan, &rows, error);

    if (rc < 0) return rc;
    rc = add_received(plan, rows, error);
    return rc < 0 ? fail_all(plan, rc, error) : GRAFT_OK;
}

/* -- passes of the host, whose arguments may be wrong on one rank ------------------------------------------------- */

/* The arguments of a pass that are equal on all ranks. */
struct terms {
    graft_semiring semiring;
    uint32_t       flags;
    int32_t        layer;
    graft_dtype    dtype;
    int64_t        epoch, width;
};

_Static_assert(sizeof(struct terms) <= GR_OUTCOME_TERMS, "terms fit into an outcome");

/* Whether a pass can use stored rows or adaptive widths. Ranks agree on such a pass before any rows are sent. */
static int is_step(const graft_plan *plan, uint32_t flags)
{
    const graft_aggregate_args args = { .flags = flags };

    return plan->layers.layer != NULL && !is_stateless(&args);
}

/* Send rows of zeros in a pass that this rank refused, because other ranks have begun it and expect rows. */
static int32_t send_zeros(graft_plan *plan, const struct terms *terms, graft_error *error)
{
    const graft_dense          none = gr_dense_view(NULL, terms->dtype, 0, terms->width, terms->width);
    const graft_aggregate_args args = { .size = sizeof args,
                                        .semiring = terms->semiring,
                                        .flags = terms->flags,
                                        .layer = terms->layer,
                                        .epoch = terms->epoch,
                                        .x = &none,
                                        .out = &none };

    set_product(plan, &args);
    plan->product.is_refused = 1;
    return send_or_fail(plan, error);
}

/* End a pass whose outcome is the failure `rc`. If some ranks have sent rows, all ranks complete the exchange, and do
 * not use its rows; for a step, no rank has sent any. Returns `rc`, or ERR_PEER. */
static int32_t end_refused(graft_plan *plan, int32_t rc, graft_error *error)
{
    struct gr_spmm     *p = &plan->product;
    const struct terms *terms = rc != GRAFT_ERR_PEER ? gr_comm_outcome_terms(&plan->host.outcome) : NULL;
    const void         *rows;
    int32_t             sent = GRAFT_OK;

    if (terms != NULL && !is_step(plan, terms->flags)) {
        if (!p->begun) sent = send_zeros(plan, terms, error);
        if (sent == GRAFT_OK) sent = gr_halo_exchange_end(&p->exchange, plan_team(plan), &rows, error);
    }
    p->begun = 0;
    return sent < 0 ? sent : rc;
}

int32_t gr_plan_begin(graft_plan *plan, int32_t rc, const graft_aggregate_args *args, graft_error *error)
{
    struct gr_outcome *outcome = &plan->host.outcome;
    struct terms       terms = { 0 };
    const int          is_late = is_step(plan, args->flags);
    int                is_good;
    int64_t            left;
    int32_t            begun;

    gr_comm_outcome_count(outcome);
    GR_TRY(check_begun(plan, error));
    if (rc == GRAFT_OK) rc = check_args(plan, args, error);
    if (rc == GRAFT_OK) rc = gr_comm_poll(plan->comm, NULL, 0, &left, error);
    if (rc == GRAFT_ERR_PEER) return rc;
    is_good = rc == GRAFT_OK;
    if (is_good) set_product(plan, args);
    if (plan->comm->n_ranks == 1) return is_good ? begin_product(plan, error) : rc;
    if (is_good) {
        terms =
            (struct terms){ args->semiring, args->flags, args->layer, args->out->dtype, args->epoch, args->x->n_cols };
        if (!is_late) rc = send_rows(plan, error);
        if (rc < 0 && rc != GRAFT_ERR_NONFINITE) return fail_all(plan, rc, error);
    }
    begun = gr_comm_outcome_begin(outcome, outcome->calls, rc, error, is_good ? &terms : NULL, sizeof terms, error);
    if (begun < 0) return end_refused(plan, begun, error);
    if (!is_late) return rc < 0 ? GRAFT_OK : compute_local(plan, error);
    rc = gr_comm_outcome_end(outcome, error);
    return rc < 0 ? end_refused(plan, rc, error) : begin_product(plan, error);
}

int32_t gr_plan_end(graft_plan *plan, graft_error *error)
{
    int32_t rc;

    if (!gr_plan_has_begun(plan)) gr_comm_outcome_count_end(&plan->host.outcome);
    rc = gr_comm_outcome_end(&plan->host.outcome, error);
    return rc < 0 ? end_refused(plan, rc, error) : gr_spmm_end(plan, error);
}
