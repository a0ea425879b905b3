/* Creates and destroys plans.
 * SPDX-License-Identifier: Apache-2.0 */
#include "spmm/plan.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "comm/compare_options.h"
#include "halo/options.h"

/* The kind of cover in option halo.cover. */
static enum gr_cover_kind cover_choice(const graft_context *context)
{
    static const enum gr_cover_kind kinds[] = { [GR_HALO_COVER_HYBRID] = GR_COVER_HYBRID,
                                                [GR_HALO_COVER_PRE] = GR_COVER_PRE,
                                                [GR_HALO_COVER_POST] = GR_COVER_POST };

    return kinds[gr_halo_options(context)->cover];
}

static int32_t compare_wishes(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    static const char *const names[] = { "GRAFT_PLAN_TRANSPOSED", "width of the plan", "dtype of the plan",
                                         "the type of values", "layers of the plan" };
    const uint64_t           values[] = { (uint64_t)wish->transposed, (uint64_t)wish->width, (uint64_t)wish->dtype,
                                          (uint64_t)plan->value_type, (uint64_t)wish->layers };

    return gr_comm_compare(plan->comm, names, values, 5, error);
}

static int32_t compare_ranks(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    GR_TRY(gr_comm_compare_options(plan->context, plan->comm, gr_options_bit(plan->context, &gr_halo_option_table),
                                   error));
    return compare_wishes(plan, wish, error);
}

static int is_of_host(const graft_plan *plan)
{
    return plan->graph != NULL && plan->part == &plan->graph->part;
}

static int32_t allocate_plan(graft_plan *plan, graft_error *error)
{
    const int64_t n_ranks = plan->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    /* This comes first, because it takes a channel even if an allocation fails here or on another rank. */
    GR_TRY_DONE(gr_halo_messages_init(plan->context, plan->comm, 0, &plan->messages, error));
    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY_DONE(GR_POOL_NEW(plan->context, &plan->pool, plan->rows[side].start, n_ranks + 1, error));
    GR_TRY_DONE(GR_POOL_NEW(plan->context, &plan->pool, plan->flow, n_ranks, error));
    if (!is_of_host(plan)) return GRAFT_OK;
    rc = gr_comm_outcome_init(&plan->host.outcome, plan->comm, plan->messages.framed.channel + 1, "a pass of a plan",
                              error);
    plan->messages.framed.outcome = &plan->host.outcome;
done:
    return rc;
}

static int is_remote_only(const struct gr_part *part, int64_t row)
{
    return part->local.row_ptr[row] == part->local.row_ptr[row + 1] &&
           part->remote.row_ptr[row] < part->remote.row_ptr[row + 1];
}

static int32_t list_remote_only(graft_plan *plan, graft_error *error)
{
    const struct gr_part *part = plan->part;

    for (int64_t row = 0; row < part->local.n_rows; row++) plan->n_remote_only += is_remote_only(part, row);
    GR_TRY(GR_POOL_NEW(plan->context, &plan->pool, plan->remote_only, plan->n_remote_only, error));
    for (int64_t row = 0, put = 0; row < part->local.n_rows; row++)
        if (is_remote_only(part, row)) plan->remote_only[put++] = (int32_t)row;
    return GRAFT_OK;
}

int32_t gr_plan_add_layer(graft_plan *plan, int32_t layer, graft_error *error)
{
    const int64_t *const start[GR_SIDES] = { plan->rows[GR_SEND].start, plan->rows[GR_RECEIVE].start };

    return gr_halo_layers_add(&plan->layers, layer, start, error);
}

/* Add all layers if wish->has_layers, and allocate their memory. */
static int32_t init_plan_layers(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    int32_t rc = gr_halo_layers_init(plan->context, plan->comm, wish->layers, &plan->layers, error);

    for (int32_t l = 0; l < wish->layers && wish->has_layers; l++) {
        int32_t layer_rc = gr_plan_add_layer(plan, l, error);

        if (layer_rc == GRAFT_OK && wish->width > 0)
            layer_rc = gr_plan_reserve(plan, l, wish->width, wish->dtype, error);
        if (rc == GRAFT_OK) rc = layer_rc;
    }
    return rc;
}

static int32_t reserve_side(const graft_plan *plan, struct gr_plan_rows *rows, int64_t width, graft_dtype dtype,
                            graft_error *error)
{
    const int64_t column_bytes = rows->start[plan->comm->n_ranks] * gr_dtype_bytes(dtype);
    int64_t       bytes;
    void         *larger;

    if (__builtin_mul_overflow(column_bytes, width, &bytes)) bytes = INT64_MAX;
    if (bytes <= rows->capacity) return GRAFT_OK;
    larger = gr_new(plan->context, bytes, 1, "rows of messages", error);
    if (larger == NULL) return GRAFT_ERR_NOMEM;
    gr_free(plan->context, rows->buffer);
    rows->buffer = larger;
    rows->capacity = bytes;
    return GRAFT_OK;
}

int32_t gr_plan_reserve_rows(graft_plan *plan, int64_t width, graft_dtype dtype, graft_error *error)
{
    for (int side = 0; side < GR_SIDES; side++) GR_TRY(reserve_side(plan, &plan->rows[side], width, dtype, error));
    return GRAFT_OK;
}

int32_t gr_plan_reserve(graft_plan *plan, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error)
{
    const int32_t n = plan->comm->n_ranks;
    const int64_t rows[GR_SIDES] = { plan->rows[GR_SEND].start[n], plan->rows[GR_RECEIVE].start[n] };

    GR_TRY(gr_plan_reserve_rows(plan, width, dtype, error));
    GR_TRY(gr_halo_messages_reserve(&plan->messages, rows, width, dtype, error));
    return gr_halo_layers_reserve(&plan->layers, layer, width, dtype, error);
}

/* Create all other matrices, and allocate buffers. Not collective. */
static int32_t complete_plan(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    graft_context           *context = plan->context;
    struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD], *backward = &plan->matrices[GR_BACKWARD];

    GR_TRY(gr_matrix_create(context, &plan->part->local, &forward->local, error));
    if (wish->transposed) {
        GR_TRY(gr_spmm_transpose_matrix(context, forward->local, &backward->local, error));
        GR_TRY(gr_spmm_transpose_matrix(context, forward->received, &backward->sent, error));
        GR_TRY(gr_spmm_transpose_matrix(context, forward->sent, &backward->received, error));
    }
    GR_TRY(list_remote_only(plan, error));
    return gr_plan_reserve(plan, -1, wish->width, wish->dtype, error);
}

static int64_t matrix_bytes(const graft_matrix *matrix)
{
    return matrix != NULL ? matrix->owned_bytes : 0;
}

int64_t gr_plan_bytes(const graft_plan *plan)
{
    int64_t bytes = gr_memory_bytes(plan) + plan->pool.bytes + plan->sources.pool.bytes +
                    gr_halo_messages_bytes(&plan->messages) + gr_halo_layers_bytes(&plan->layers) +
                    gr_comm_outcome_bytes(&plan->host.outcome);

    for (int side = 0; side < GR_SIDES; side++) bytes += plan->rows[side].capacity;
    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        const struct gr_plan_matrices *m = &plan->matrices[d];

        bytes += matrix_bytes(m->local) + matrix_bytes(m->sent) + matrix_bytes(m->received);
    }
    return bytes;
}

static int32_t share_plan_flow(graft_plan *plan, const struct gr_cuts *cuts, graft_error *error)
{
    const int32_t  n_ranks = plan->comm->n_ranks;
    const int64_t *in = plan->rows[GR_RECEIVE].start, *out = plan->rows[GR_SEND].start;
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

/* Allocate the plan's arrays, and find the covers. Not collective. */
static int32_t find_covers(graft_plan *plan, struct gr_cuts *cuts, graft_error *error)
{
    GR_TRY(allocate_plan(plan, error));
    GR_TRY(gr_spmm_cuts_init(plan->context, plan->part, plan->comm->n_ranks, cuts, error));
    return gr_spmm_cuts_find(plan->context, plan->cover, cuts, error);
}

static int32_t make_plan(graft_plan *plan, const struct gr_plan_wish *wish, graft_error *error)
{
    struct gr_cuts cuts = { 0 };
    int32_t        rc = find_covers(plan, &cuts, error);

    GR_TRY_DONE(gr_comm_agree(plan->comm, rc, error));
    GR_TRY_DONE(gr_plan_lists_make(plan, &cuts, error));
    if (!wish->is_revalued) gr_plan_sources_fini(plan->context, &plan->sources);
    GR_TRY_DONE(gr_comm_agree(plan->comm, complete_plan(plan, wish, error), error));
    GR_TRY_DONE(gr_comm_agree(plan->comm, init_plan_layers(plan, wish, error), error));
    rc = share_plan_flow(plan, &cuts, error);
done:
    gr_pool_fini(plan->context, &cuts.pool);
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
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    made->part = part;
    made->value_type = part->local.values != NULL ? part->local.value_type : 0;
    made->cover = cover_choice(context);
    made->graph = graph;
    if (graph != NULL) graph->references++;
    GR_TRY_DONE(compare_ranks(made, wish, error));
    GR_TRY_DONE(make_plan(made, wish, error));
    GR_ASSERT(gr_plan_is_valid(made));
    if (is_of_host(made)) {
        made->host.next = graph->users.plans;
        made->host.serial = graph->users.plans_made++;
        graph->users.plans = made;
    }
    *plan = made;
    made = NULL;
done:
    gr_plan_destroy(made);
    return rc;
}

static int starts_are_valid(const int64_t *start, int32_t n_ranks, int32_t rank)
{
    if (start[0] != 0 || start[rank] != start[rank + 1]) return 0;
    for (int32_t q = 0; q < n_ranks; q++)
        if (start[q + 1] < start[q]) return 0;
    return 1;
}

/* Check the shape of a matrix; NULL: there is none to check. */
static int has_shape(const graft_matrix *matrix, int64_t n_rows, int64_t n_cols)
{
    return matrix == NULL || (matrix->csr.n_rows == n_rows && matrix->csr.n_cols == n_cols);
}

int gr_plan_is_valid(const graft_plan *plan)
{
    const int32_t                  n_ranks = plan->comm->n_ranks, rank = plan->comm->rank;
    const int64_t                 *sent = plan->rows[GR_SEND].start, *received = plan->rows[GR_RECEIVE].start;
    const int64_t                  n_rows = plan->part->local.n_rows, n_cols = plan->part->local.n_cols;
    const struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD], *backward = &plan->matrices[GR_BACKWARD];

    return starts_are_valid(sent, n_ranks, rank) && starts_are_valid(received, n_ranks, rank) &&
           has_shape(forward->local, n_rows, n_cols) && has_shape(forward->sent, sent[n_ranks], n_cols) &&
           has_shape(forward->received, n_rows, received[n_ranks]) && has_shape(backward->local, n_cols, n_rows) &&
           has_shape(backward->sent, received[n_ranks], n_rows) && has_shape(backward->received, n_cols, sent[n_ranks]);
}

static void leave_graph(const graft_plan *plan)
{
    graft_plan **link = plan->graph != NULL ? &plan->graph->users.plans : NULL;

    while (link != NULL && *link != NULL && *link != plan) link = &(*link)->host.next;
    if (link != NULL && *link != NULL) *link = plan->host.next;
}

void gr_plan_destroy(graft_plan *plan)
{
    if (plan == NULL) return;
    leave_graph(plan);
    if (gr_plan_has_begun(plan)) gr_comm_abandon(plan->comm, "a plan was destroyed between begin and end");
    gr_halo_layers_fini(&plan->layers); /* before the lists of rows, on which messages in flight depend */
    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        gr_matrix_destroy(plan->matrices[d].local);
        gr_matrix_destroy(plan->matrices[d].sent);
        gr_matrix_destroy(plan->matrices[d].received);
    }
    for (int side = 0; side < GR_SIDES; side++) gr_free(plan->context, plan->rows[side].buffer);
    gr_halo_messages_fini(&plan->messages);
    gr_comm_outcome_fini(&plan->host.outcome);
    gr_plan_sources_fini(plan->context, &plan->sources);
    gr_pool_fini(plan->context, &plan->pool);
    gr_graph_destroy(plan->graph);
    gr_free(plan->context, plan);
}
