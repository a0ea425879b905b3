/* Computes the matrices S and R of a plan from the covers. The receiver chooses the rows, and sends the entries of S to
 * the senders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "spmm/plan.h"

#include <string.h>

/* Numbers of rows, and of their entries in S. */
struct amount {
    int64_t rows, entries;
};

/* Values of the cut edges (`remote`), of S (`sent`) and of R (`received`). */
struct list_values {
    const void *remote;
    void       *sent, *received;
    int64_t     n_received;
};

/* The rows to receive, ordered by rank, and for each rank raw rows before partial sums. */
struct lists {
    graft_plan     *plan;
    struct gr_cuts *cuts;
    struct gr_pool  pool;           /* owner of all arrays, except asked_start */
    struct amount  *asked, *asking; /* [n_ranks] requests of this rank to each rank, and of each rank to this one */
    int64_t        *asked_start;    /* [n_ranks + 1] first entry requested from each rank; owner: plan->sources */
    int64_t        *asking_start;   /* [n_ranks + 1] first entry requested by each rank */
    int32_t        *row_of_source;  /* [halo] the row to receive for each source in the cover */
    int32_t        *row_of_target;  /* [targets] the row to receive for each target in the cover */
    int32_t        *entries;        /* [rows received] number of entries of each row */
    int64_t        *begin;          /* [rows received + 1] first entry of each row in `place` */
    int32_t        *place;          /* [entries asked] index of the source among the vertices of its owner */
    int64_t        *row_ptr;        /* [rows + 1] first entry of each row of R */
    int32_t        *entries_out;    /* [rows sent] number of entries of each row of S */
};

/* Assign indices to the rows to receive. */
static int32_t number_rows(struct lists *l, graft_error *error)
{
    struct gr_cuts *c = l->cuts;
    struct gr_flow *flow = &l->plan->flow[l->plan->comm->rank];
    int64_t        *start = l->plan->rows[GR_RECEIVE].start, rows = 0;

    flow->raw = 0;
    for (int64_t s = 0; s < c->part->halo.count; s++) flow->raw += c->source_in[s];
    for (int64_t t = 0; t < c->target_start[c->n_ranks]; t++) rows += c->target_in[t];
    rows += flow->raw;
    if (rows > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "it would receive %lld rows, at most %d", (long long)rows,
                       INT32_MAX);
    rows = 0;
    for (int32_t q = 0; q < c->n_ranks; q++) {
        for (int64_t s = c->part->halo.start[q]; s < c->part->halo.start[q + 1]; s++)
            if (c->source_in[s]) l->row_of_source[s] = (int32_t)rows++;
        for (int64_t t = c->target_start[q]; t < c->target_start[q + 1]; t++)
            if (c->target_in[t]) l->row_of_target[t] = (int32_t)rows++;
        start[q + 1] = rows;
    }
    return GRAFT_OK;
}

/* Count the entries of each row to receive, and of R. */
static void count_entries(struct lists *l)
{
    struct gr_cuts  *c = l->cuts;
    const graft_csr *remote = &c->part->remote;

    for (int64_t s = 0; s < c->part->halo.count; s++)
        if (c->source_in[s]) l->entries[l->row_of_source[s]] = 1;
    gr_spmm_cuts_walk(c);
    for (int64_t row = 0; row < remote->n_rows; row++) {
        l->row_ptr[row + 1] = l->row_ptr[row];
        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_spmm_cuts_step(c, row, e);

            if (c->source_in[edge.source]) l->row_ptr[row + 1]++;
            else l->row_ptr[row + 1] += l->entries[l->row_of_target[edge.target]]++ == 0;
        }
    }
}

static int32_t count_lists(struct lists *l, graft_error *error)
{
    const graft_context *context = l->plan->context;
    const int32_t        n_ranks = l->plan->comm->n_ranks;
    const int64_t       *start = l->plan->rows[GR_RECEIVE].start;

    GR_TRY(GR_POOL_NEW(context, &l->pool, l->asked, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->asking, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &l->plan->sources.pool, l->asked_start, n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->asking_start, n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->row_of_source, l->cuts->part->halo.count, error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->row_of_target, l->cuts->target_start[n_ranks], error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->row_ptr, l->plan->part->local.n_rows + 1, error));
    GR_TRY(number_rows(l, error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->entries, start[n_ranks], error));
    GR_TRY(GR_POOL_NEW(context, &l->pool, l->begin, start[n_ranks] + 1, error));
    count_entries(l);
    for (int64_t r = 0; r < start[n_ranks]; r++) l->begin[r + 1] = l->begin[r] + l->entries[r];
    for (int32_t q = 0; q < n_ranks; q++) {
        l->asked_start[q + 1] = l->begin[start[q + 1]];
        l->asked[q] = (struct amount){ start[q + 1] - start[q], l->asked_start[q + 1] - l->asked_start[q] };
    }
    return GRAFT_OK;
}

/* Store an entry of the row to receive for a target; l->entries counts down the entries not yet stored. Returns whether
 * it is the first one of the row. */
static int ask_entry(struct lists *l, const struct gr_cut_edge *edge)
{
    const int32_t row = l->row_of_target[edge->target];
    const int64_t put = l->begin[row + 1] - l->entries[row]--;

    l->place[put] = l->cuts->part->halo.place[edge->source];
    if (l->plan->sources.asked != NULL) l->plan->sources.asked[put] = edge->entry;
    return put == l->begin[row];
}

/* Fill in R and the entries to request, without values. */
static void fill_lists(struct lists *l, struct gr_csr *receive)
{
    struct gr_cuts         *c = l->cuts;
    const graft_csr        *remote = &c->part->remote;
    struct gr_plan_sources *sources = &l->plan->sources;
    int32_t                *column = receive->col_idx;
    int64_t                 put = 0;

    for (int64_t s = 0; s < c->part->halo.count; s++) {
        if (!c->source_in[s]) continue;
        l->place[l->begin[l->row_of_source[s]]] = c->part->halo.place[s];
        if (sources->asked != NULL) sources->asked[l->begin[l->row_of_source[s]]] = -1;
    }
    gr_spmm_cuts_walk(c);
    for (int64_t row = 0; row < remote->n_rows; row++) {
        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_spmm_cuts_step(c, row, e);
            const int                is_raw = c->source_in[edge.source];

            if (!is_raw && !ask_entry(l, &edge)) continue;
            column[put] = is_raw ? l->row_of_source[edge.source] : l->row_of_target[edge.target];
            if (sources->received != NULL) sources->received[put] = is_raw ? e : -1;
            put++;
        }
    }
}

/* Copy the values of entries from their sources. */
#define TAKE_VALUES(type, from, to)                                                                                    \
    for (int64_t i = 0; i < count; i++) ((type *)(to))[i] = source[i] < 0 ? 1 : ((const type *)(from))[source[i]]

static void take_sources(const graft_plan *plan, const int64_t *source, int64_t count, const void *values, void *to)
{
    if (plan->value_type == GRAFT_F32) TAKE_VALUES(float, values, to);
    if (plan->value_type == GRAFT_F64) TAKE_VALUES(double, values, to);
}

/* Allocate the entries to request; if edges have values also their sources, and the sources of the `received` entries
 * of R. */
static int32_t allocate_asked(struct lists *l, int64_t received, graft_error *error)
{
    graft_plan             *plan = l->plan;
    const int64_t           entries = l->begin[plan->rows[GR_RECEIVE].start[plan->comm->n_ranks]];
    struct gr_plan_sources *sources = &plan->sources;
    int32_t                 rc = GR_POOL_NEW(plan->context, &l->pool, l->place, entries, error);

    if (rc < 0 || plan->value_type == 0) return rc;
    GR_TRY(GR_POOL_NEW(plan->context, &sources->pool, sources->asked, entries, error));
    return GR_POOL_NEW(plan->context, &sources->pool, sources->received, received, error);
}

static int32_t allocate_lists(struct lists *l, struct gr_csr *send, struct gr_csr *receive, graft_error *error)
{
    graft_plan      *plan = l->plan;
    const int64_t    n = plan->part->local.n_rows, rows_in = plan->rows[GR_RECEIVE].start[plan->comm->n_ranks];
    const graft_csr *like = &plan->part->local;
    int64_t         *start = plan->rows[GR_SEND].start;

    for (int32_t q = 0; q < plan->comm->n_ranks; q++) {
        start[q + 1] = start[q] + l->asking[q].rows;
        l->asking_start[q + 1] = l->asking_start[q] + l->asking[q].entries;
    }
    if (start[plan->comm->n_ranks] > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "it would send %lld rows, at most %d",
                       (long long)start[plan->comm->n_ranks], INT32_MAX);
    GR_TRY(allocate_asked(l, l->row_ptr[n], error));
    GR_TRY(GR_POOL_NEW(plan->context, &l->pool, l->entries_out, start[plan->comm->n_ranks], error));
    GR_TRY(gr_csr_init(plan->context, send, like, start[plan->comm->n_ranks], like->n_cols,
                       l->asking_start[plan->comm->n_ranks], error));
    GR_TRY(gr_csr_init(plan->context, receive, like, n, rows_in, l->row_ptr[n], error));
    memcpy(receive->row_ptr, l->row_ptr, (uint64_t)(n + 1) * sizeof *l->row_ptr);
    return GRAFT_OK;
}

/* Compute the values of S and R: each rank computes those of its R and of its requested entries, and sends the latter,
 * which the receivers store in S. */
static int32_t send_values(graft_plan *plan, const int64_t *asked_start, const int64_t *asking_start,
                           const struct list_values *v, graft_error *error)
{
    const int64_t asked = asked_start[plan->comm->n_ranks], bytes = gr_dtype_bytes(plan->value_type);
    char         *values = NULL;
    int32_t       rc = GR_NEW(plan->context, values, asked * bytes, error);

    GR_TRY_DONE(gr_comm_agree(plan->comm, rc, error));
    take_sources(plan, plan->sources.asked, asked, v->remote, values);
    take_sources(plan, plan->sources.received, v->n_received, v->remote, v->received);
    rc = gr_comm_alltoallv(plan->comm, values, asked_start, v->sent, asking_start, bytes, error);
done:
    gr_free(plan->context, values);
    return rc;
}

/* Send each rank the entries requested from it, which are its S. */
static int32_t send_entries(struct lists *l, struct gr_csr *send, struct gr_csr *receive, graft_error *error)
{
    struct gr_comm          *comm = l->plan->comm;
    const struct list_values values = { l->cuts->part->remote.values, send->values, receive->values,
                                        l->row_ptr[receive->view.n_rows] };

    GR_TRY(gr_comm_alltoallv(comm, l->entries, l->plan->rows[GR_RECEIVE].start, l->entries_out,
                             l->plan->rows[GR_SEND].start, sizeof *l->entries, error));
    for (int64_t r = 0; r < send->view.n_rows; r++) send->row_ptr[r + 1] = send->row_ptr[r] + l->entries_out[r];
    fill_lists(l, receive);
    GR_TRY(gr_comm_alltoallv(comm, l->place, l->asked_start, send->col_idx, l->asking_start, sizeof *l->place, error));
    if (l->plan->value_type != 0) GR_TRY(send_values(l->plan, l->asked_start, l->asking_start, &values, error));
    GR_ASSERT(gr_csr_is_valid(&send->view) && gr_csr_is_valid(&receive->view));
    return GRAFT_OK;
}

/* Create a matrix that takes over the arrays of csr, which is then empty. */
static int32_t wrap_csr(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    const int32_t rc = gr_matrix_create(context, &csr->view, matrix, error);

    if (rc < 0) return rc;
    gr_matrix_adopt(*matrix);
    *csr = (struct gr_csr){ 0 };
    return GRAFT_OK;
}

void gr_plan_sources_fini(const graft_context *context, struct gr_plan_sources *sources)
{
    gr_pool_fini(context, &sources->pool);
    *sources = (struct gr_plan_sources){ 0 };
}

int32_t gr_plan_lists_make(graft_plan *plan, struct gr_cuts *cuts, graft_error *error)
{
    struct lists  lists = { .plan = plan, .cuts = cuts };
    struct gr_csr send = { 0 }, receive = { 0 };
    int32_t       rc = count_lists(&lists, error);

    GR_TRY_DONE(gr_comm_agree(plan->comm, rc, error));
    GR_TRY_DONE(gr_comm_alltoall(plan->comm, lists.asked, sizeof *lists.asked, lists.asking, error));
    rc = allocate_lists(&lists, &send, &receive, error);
    GR_TRY_DONE(gr_comm_agree(plan->comm, rc, error));
    GR_TRY_DONE(send_entries(&lists, &send, &receive, error));
    rc = wrap_csr(plan->context, &send, &plan->matrices[GR_FORWARD].sent, error);
    if (rc == GRAFT_OK) rc = wrap_csr(plan->context, &receive, &plan->matrices[GR_FORWARD].received, error);
    rc = gr_comm_agree(plan->comm, rc, error);
    plan->sources.asked_start = lists.asked_start;
done:
    gr_csr_fini(plan->context, &send);
    gr_csr_fini(plan->context, &receive);
    gr_pool_fini(plan->context, &lists.pool);
    return rc;
}

int32_t gr_plan_lists_values(graft_plan *plan, const void *remote, void *sent, void *received, graft_error *error)
{
    const graft_csr         *s = &plan->matrices[GR_FORWARD].sent->csr;
    const struct list_values values = { remote, sent, received,
                                        gr_csr_entries(&plan->matrices[GR_FORWARD].received->csr) };
    int64_t                 *asking_start = NULL;
    int32_t                  rc = GR_NEW(plan->context, asking_start, plan->comm->n_ranks + 1, error);

    GR_TRY_DONE(gr_comm_agree(plan->comm, rc, error));
    for (int32_t q = 0; q <= plan->comm->n_ranks; q++) asking_start[q] = s->row_ptr[plan->rows[GR_SEND].start[q]];
    rc = send_values(plan, plan->sources.asked_start, asking_start, &values, error);
done:
    gr_free(plan->context, asking_start);
    return rc;
}

int32_t gr_spmm_transpose_matrix(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                 graft_error *error)
{
    struct gr_csr csr = { 0 };
    int32_t       rc = gr_csr_transpose(context, &matrix->csr, &csr, error);

    if (rc == GRAFT_OK) rc = wrap_csr(context, &csr, transpose, error);
    gr_csr_fini(context, &csr);
    return rc;
}
