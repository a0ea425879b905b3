/* Making plans.
 * SPDX-License-Identifier: Apache-2.0 */
#include "spmm/plan.h"

#include "adaptive/adapt.h"
#include "base/memory.h"

enum gr_cover_kind gr_cover_choice(const graft_context *context)
{
    if (gr_option_is(context, GR_OPTION_HALO_COVER, "pre")) return GR_COVER_PRE;
    return gr_option_is(context, GR_OPTION_HALO_COVER, "post") ? GR_COVER_POST : GR_COVER_HYBRID;
}

static int32_t compare_wishes(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    static const char *const names[] = { "option halo.cover", "GRAFT_PLAN_TRANSPOSED", "width of the plan",
                                         "dtype of the plan", "the type of values",    "layers of the plan" };
    const char *const        texts[6] = { gr_option_text(plan->context, GR_OPTION_HALO_COVER) };
    const uint64_t           values[] = { (uint64_t)plan->cover, (uint64_t)wish->transposed, (uint64_t)wish->width,
                                          (uint64_t)wish->dtype, (uint64_t)plan->value_type, (uint64_t)wish->layers };

    return gr_comm_compare_texts(plan->comm, names, values, texts, 6, error);
}

static int32_t compare(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(compare_wishes(plan, wish, error));
    GR_TRY(gr_wire_compare(plan->context, plan->comm, error));
    rc = gr_lanes_compare(plan->context, plan->comm, error);
done:
    return rc;
}

static int32_t allocate(graft_plan *plan, graft_error *error)
{
    const int64_t n_ranks = plan->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    /* First of all: it takes a channel, and where memory fails on one rank the others have taken theirs. */
    GR_TRY(gr_wire_init(plan->context, plan->comm, 0, &plan->wire, error));
    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY(GR_NEW(plan->context, plan->side[side].start, n_ranks + 1, error));
    rc = GR_NEW(plan->context, plan->flow, n_ranks, error);
done:
    return rc;
}

static int is_bare(const struct gr_part *part, int64_t row)
{
    return part->local.row_ptr[row] == part->local.row_ptr[row + 1] &&
           part->remote.row_ptr[row] < part->remote.row_ptr[row + 1];
}

static int32_t list_bare(graft_plan *plan, graft_error *error)
{
    const struct gr_part *part = plan->part;

    for (int64_t row = 0; row < part->local.n_rows; row++) plan->n_bare += is_bare(part, row);
    if (GR_NEW(plan->context, plan->bare, plan->n_bare, error) < 0) return GRAFT_ERR_NOMEM;
    for (int64_t row = 0, put = 0; row < part->local.n_rows; row++)
        if (is_bare(part, row)) plan->bare[put++] = (int32_t)row;
    return GRAFT_OK;
}

int32_t gr_plan_add_lanes(graft_plan *plan, int32_t layer, graft_error *error)
{
    const int64_t *const start[] = { plan->side[GR_SIDE_OUT].start, plan->side[GR_SIDE_IN].start };

    return gr_lanes_add(&plan->lanes, layer, start, error);
}

/* Lanes of all layers, or none so far; and memory for them. */
static int32_t init_lanes(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    int32_t rc = gr_lanes_init(plan->context, plan->comm, wish->layers, &plan->lanes, error);

    for (int32_t l = 0; l < wish->layers && wish->has_lanes; l++) {
        int32_t here = gr_plan_add_lanes(plan, l, error);

        if (here == GRAFT_OK && wish->width > 0) here = gr_plan_reserve(plan, l, wish->width, wish->dtype, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

int32_t gr_plan_reserve(graft_plan *plan, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error)
{
    const int64_t element = dtype == GRAFT_F64 ? 8 : 4;
    int64_t       rows[GR_SIDES];
    int32_t       rc = GRAFT_OK;

    for (int i = 0; i < GR_SIDES; i++) {
        int64_t bytes;
        void   *larger;

        rows[i] = plan->side[i].start[plan->comm->n_ranks];
        if (__builtin_mul_overflow(rows[i] * element, width, &bytes)) bytes = INT64_MAX;
        if (bytes <= plan->buffer_bytes[i]) continue;
        larger = gr_new(plan->context, bytes, 1, "rows of messages", error);
        if (larger == NULL) return GRAFT_ERR_NOMEM;
        gr_free(plan->context, plan->side[i].buffer);
        plan->side[i].buffer = larger;
        plan->buffer_bytes[i] = bytes;
    }
    GR_TRY(gr_wire_reserve(&plan->wire, rows, width, dtype, error));
    rc = gr_lanes_reserve(&plan->lanes, layer, width, dtype, error);
done:
    return rc;
}

/* What this rank alone has to do when the lists are there. */
static int32_t complete(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    graft_context *context = plan->context;
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_matrix_create(context, &plan->part->local, &plan->local, error));
    if (wish->transposed) {
        GR_TRY(gr_transpose_matrix(context, plan->local, &plan->local_transpose, error));
        GR_TRY(gr_transpose_matrix(context, plan->send, &plan->send_transpose, error));
        GR_TRY(gr_transpose_matrix(context, plan->receive, &plan->receive_transpose, error));
    }
    GR_TRY(list_bare(plan, error));
    rc = gr_plan_reserve(plan, -1, wish->width, wish->dtype, error);
done:
    return rc;
}

int64_t gr_plan_bytes(const graft_plan *plan)
{
    const graft_matrix *const matrices[] = { plan->send, plan->receive, plan->local_transpose, plan->send_transpose,
                                             plan->receive_transpose };
    const int32_t             n_ranks = plan->comm->n_ranks;
    int64_t                   bytes = (int64_t)sizeof *plan + gr_wire_bytes(&plan->wire) + gr_lanes_bytes(&plan->lanes);

    bytes += n_ranks * (int64_t)(sizeof *plan->flow + GR_SIDES * sizeof *plan->side[0].start);
    bytes += plan->n_bare * (int64_t)sizeof *plan->bare + plan->buffer_bytes[0] + plan->buffer_bytes[1];
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (matrices[i] != NULL) bytes += matrices[i]->owned_bytes;
    return bytes;
}

static int32_t share_flow(graft_plan *plan, const struct gr_cuts *cuts, graft_error *error)
{
    const int32_t  n_ranks = plan->comm->n_ranks;
    const int64_t *in = plan->side[GR_SIDE_IN].start, *out = plan->side[GR_SIDE_OUT].start;
    struct gr_flow mine = { .n_cut = cuts->edge_start[n_ranks],
                            .in = in[n_ranks],
                            .out = out[n_ranks],
                            .raw = plan->flow[plan->comm->rank].raw,
                            .if_post = cuts->n_sources,
                            .if_pre = cuts->target_start[n_ranks],
                            .bytes = gr_plan_bytes(plan) };

    for (int32_t q = 0; q < n_ranks; q++) {
        mine.messages_in += in[q] < in[q + 1];
        mine.messages_out += out[q] < out[q + 1];
    }
    return gr_comm_allgather(plan->comm, &mine, sizeof mine, plan->flow, error);
}

/* What this rank alone has to do before the lists. */
static int32_t prepare(graft_plan *plan, struct gr_cuts *cuts, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(allocate(plan, error));
    GR_TRY(gr_cuts_init(plan->context, plan->part, plan->comm->n_ranks, cuts, error));
    rc = gr_cuts_find(plan->context, plan->cover, cuts, error);
done:
    return rc;
}

static int32_t make(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    struct gr_cuts cuts = { 0 };
    int32_t        rc = prepare(plan, &cuts, error);

    GR_TRY(gr_comm_agree(plan->comm, rc, error));
    GR_TRY(gr_lists_make(plan, &cuts, error));
    rc = complete(plan, wish, error);
    GR_TRY(gr_comm_agree(plan->comm, rc, error));
    GR_TRY(gr_comm_agree(plan->comm, init_lanes(plan, wish, error), error));
    rc = share_flow(plan, &cuts, error);
done:
    gr_cuts_fini(plan->context, &cuts);
    return rc;
}

int32_t gr_plan_create(graft_context *context, struct gr_comm *comm, const struct gr_part *part, graft_graph *graph,
                       const struct gr_plan_wish *wish, graft_plan **plan, graft_error *error)
{
    graft_plan *made = NULL;
    int32_t     rc = GR_NEW(context, made, 1, error);

    if (rc == GRAFT_OK) {
        made->context = context;
        made->comm = comm;
    }
    GR_TRY(gr_comm_agree(comm, rc, error));
    made->part = part;
    made->value_type = part->local.values != NULL ? part->local.value_type : 0;
    made->cover = gr_cover_choice(context);
    made->graph = graph;
    if (graph != NULL) graph->references++;
    GR_TRY(compare(made, wish, error));
    GR_TRY(make(made, wish, error));
    *plan = made;
    made = NULL;
done:
    gr_plan_destroy(made);
    return rc;
}

static int32_t check_adaptive(const graft_plan *plan, graft_error *error)
{
    if (plan->pass.begun) return gr_fail(error, GRAFT_ERR_STATE, "a pass of this plan has begun and not ended");
    if (plan->lanes.adaptive[GR_FORWARD] || plan->lanes.adaptive[GR_BACKWARD]) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE,
                   "the plan was made without adaptive bits (options 'halo.bits' and 'halo.bits_backward')");
}

int32_t gr_plan_adapt(graft_plan *plan, graft_error *error)
{
    int32_t rc = check_adaptive(plan, error);

    GR_TRY(gr_comm_agree(plan->comm, rc, error));
    rc = gr_adapt(&plan->lanes, NULL, 2 * plan->lanes.n_layers, 0, error);
done:
    return rc;
}

void gr_plan_destroy(graft_plan *plan)
{
    if (plan == NULL) return;
    if (plan->pass.begun) gr_comm_abandon(plan->comm, "a plan was destroyed between begin and end");
    gr_lanes_fini(&plan->lanes); /* while what says how long messages are is there */
    gr_matrix_destroy(plan->local);
    gr_matrix_destroy(plan->send);
    gr_matrix_destroy(plan->receive);
    gr_matrix_destroy(plan->local_transpose);
    gr_matrix_destroy(plan->send_transpose);
    gr_matrix_destroy(plan->receive_transpose);
    for (int side = 0; side < GR_SIDES; side++) {
        gr_free(plan->context, plan->side[side].start);
        gr_free(plan->context, plan->side[side].buffer);
    }
    gr_wire_fini(&plan->wire);
    gr_free(plan->context, plan->bare);
    gr_free(plan->context, plan->flow);
    gr_graph_destroy(plan->graph);
    gr_free(plan->context, plan);
}
