/* Makes a graph over ranks symmetric: each rank sends its cut edges to the owners of their columns, which merge the
 * reversed edges with their own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/sort.h"
#include "dgraph/part.h"

#include <string.h>

/* The cut edges in reverse: sent, and received from the other ranks. */
struct reversed {
    struct gr_pool  pool;
    struct gr_links links;
    struct gr_csr   turned;    /* transposed remote matrix, whose rows are sent to the owners of their vertices */
    int64_t        *length;    /* [halo] edges of each row of the transposed matrix */
    int64_t        *length_in; /* [received rows] edges of each received row */
    struct gr_route edges;
    int32_t        *column; /* [received edges] index, at its owner, of the vertex whose row has the edge */
    char           *value;  /* [received edges] values */
};

static void reversed_fini(struct gr_comm *comm, struct reversed *b)
{
    gr_halo_links_fini(comm, &b->links);
    gr_csr_fini(comm->context, &b->turned);
    gr_comm_route_fini(&b->edges);
    gr_pool_fini(comm->context, &b->pool);
    *b = (struct reversed){ 0 };
}

static int32_t reverse_edges(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                             struct reversed *b, graft_error *error)
{
    const int64_t *const start = part->halo.start;

    GR_TRY(gr_csr_transpose(context, &part->remote, &b->turned, error));
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->length, part->halo.count, error));
    GR_TRY(gr_comm_route_init(&b->edges, comm, error));
    for (int64_t s = 0; s < part->halo.count; s++) b->length[s] = b->turned.row_ptr[s + 1] - b->turned.row_ptr[s];
    for (int32_t q = 0; q < comm->n_ranks; q++)
        b->edges.out[q + 1] = b->turned.row_ptr[start[q + 1]] - b->turned.row_ptr[start[q]];
    return GRAFT_OK;
}

static int32_t exchange_reversed(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                                 struct reversed *b, graft_error *error)
{
    const int64_t bytes = part->remote.values != NULL ? gr_dtype_bytes(part->remote.value_type) : 0;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_comm_agree(comm, reverse_edges(context, comm, part, b, error), error));
    GR_TRY(gr_halo_links_init(context, comm, &part->halo, &b->links, error));
    GR_TRY(gr_comm_route_plan(&b->edges, error));
    rc = GR_POOL_NEW(context, &b->pool, b->length_in, b->links.send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(context, &b->pool, b->column, gr_comm_route_n_in(&b->edges), error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(context, &b->pool, b->value, gr_comm_route_n_in(&b->edges) * bytes, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(gr_halo_links_tell(&b->links, comm, b->length, b->length_in, sizeof *b->length, error));
    GR_TRY(gr_comm_route_send(&b->edges, b->turned.col_idx, b->column, sizeof *b->column, error));
    return bytes > 0 ? gr_comm_route_send(&b->edges, b->turned.values, b->value, bytes, error) : GRAFT_OK;
}

/* Create the halo of both directions: the vertices from which this rank gathers, and those that gather from this
 * rank. */
static int32_t join_halo(const graft_context *context, const struct gr_halo *old, int32_t n_ranks,
                         const struct reversed *b, struct gr_made_part *made, graft_error *error)
{
    int64_t *keys = NULL, total = 0;
    int32_t  rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, keys, old->count + gr_comm_route_n_in(&b->edges), error));
    for (int64_t q = 0; q < n_ranks; q++) {
        int64_t *const begin = keys + total;
        int64_t        count = 0;

        for (int64_t s = old->start[q]; s < old->start[q + 1]; s++) begin[count++] = old->place[s];
        for (int64_t e = b->edges.in[q]; e < b->edges.in[q + 1]; e++) begin[count++] = b->column[e];
        GR_TRY_DONE(gr_sort_unique(context, begin, INT32_MAX, &count, error));
        for (int64_t i = 0; i < count; i++) begin[i] |= q << 32;
        total += count;
    }
    rc = total <= INT32_MAX ? gr_graph_made_part_key_halo(context, made, n_ranks, keys, total, error)
                            : gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                                      "made symmetric, the rows of a rank gather from %lld vertices of other ranks, "
                                      "expected at most %d",
                                      (long long)total, INT32_MAX);
done:
    gr_free(context, keys);
    return rc;
}

/* Create a matrix of the received edges, with the rows of this rank. Edges arrive in the order of ranks and of their
 * vertices, so rows are sorted. */
static int32_t build_received_rows(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                                   const struct reversed *b, const struct gr_halo *halo, struct gr_csr *rows,
                                   graft_error *error)
{
    const int64_t *sent = b->links.send_start;
    graft_csr      like = part->remote;
    int64_t       *next;

    if (like.values != NULL) like.values = b->value;
    GR_TRY(gr_csr_init(context, rows, &like, like.n_rows, halo->count, gr_comm_route_n_in(&b->edges), error));
    next = rows->row_ptr;
    for (int64_t i = 0; i < sent[n_ranks]; i++) rows->row_ptr[b->links.place[i] + 1] += b->length_in[i];
    for (int64_t v = 0; v < like.n_rows; v++) next[v + 1] += next[v];
    for (int32_t q = 0; q < n_ranks; q++) {
        int64_t e = b->edges.in[q];

        for (int64_t i = sent[q]; i < sent[q + 1]; i++)
            for (int64_t end = e + b->length_in[i]; e < end; e++)
                gr_csr_put(rows, next[b->links.place[i]]++, gr_csr_halo_index(halo, q, b->column[e]), &like, e);
    }
    /* Undo the shift: each row pointer has advanced to the next one. */
    memmove(next + 1, next, (uint64_t)like.n_rows * sizeof *next);
    next[0] = 0;
    return GRAFT_OK;
}

/* Create a matrix of this rank's own cut edges, sorted, with columns in the new halo. */
static int32_t renumber_rows(const graft_context *context, const struct gr_halo *old, int32_t n_ranks,
                             const struct gr_csr *turned, const struct gr_halo *halo, struct gr_csr *rows,
                             graft_error *error)
{
    int32_t *new_index = NULL, *column, rc = GRAFT_OK;

    GR_TRY_DONE(gr_csr_transpose(context, &turned->view, rows, error));
    GR_TRY_DONE(GR_NEW(context, new_index, old->count, error));
    for (int32_t q = 0; q < n_ranks; q++)
        for (int64_t s = old->start[q]; s < old->start[q + 1]; s++)
            new_index[s] = (int32_t)gr_csr_halo_index(halo, q, old->place[s]);
    column = rows->col_idx;
    for (int64_t e = 0; e < gr_csr_entries(&rows->view); e++) column[e] = new_index[column[e]];
    rows->view.n_cols = halo->count;
done:
    gr_free(context, new_index);
    return rc;
}

static int32_t unite_remote(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                            struct reversed *b, struct gr_made_part *made, graft_error *error)
{
    struct gr_csr own = { 0 }, received = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY_DONE(join_halo(context, &part->halo, n_ranks, b, made, error));
    GR_TRY_DONE(renumber_rows(context, &part->halo, n_ranks, &b->turned, &made->part.halo, &own, error));
    gr_csr_fini(context, &b->turned);
    GR_TRY_DONE(build_received_rows(context, part, n_ranks, b, &made->part.halo, &received, error));
    GR_TRY_DONE(gr_csr_union(context, &own.view, &received.view, gr_csr_union_entries(&own.view, &received.view),
                             &made->remote, error));
    made->part.remote = made->remote.view;
done:
    gr_csr_fini(context, &own);
    gr_csr_fini(context, &received);
    return rc;
}

static int32_t unite_local(const graft_context *context, const graft_csr *local, struct gr_made_part *made,
                           graft_error *error)
{
    struct gr_csr back = { 0 }, own = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY_DONE(gr_csr_transpose(context, local, &back, error));
    GR_TRY_DONE(gr_csr_transpose(context, &back.view, &own, error)); /* own = local with sorted rows */
    GR_TRY_DONE(
        gr_csr_union(context, &own.view, &back.view, gr_csr_union_entries(&own.view, &back.view), &made->local, error));
    made->part.local = made->local.view;
done:
    gr_csr_fini(context, &back);
    gr_csr_fini(context, &own);
    return rc;
}

int32_t gr_graph_part_symmetrize(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                                 struct gr_made_part *made, graft_error *error)
{
    struct reversed back = { 0 };
    int32_t         rc = GRAFT_OK;

    GR_TRY_DONE(exchange_reversed(context, comm, part, &back, error));
    rc = unite_remote(context, part, comm->n_ranks, &back, made, error);
    reversed_fini(comm, &back);
    if (rc == GRAFT_OK) rc = unite_local(context, &part->local, made, error);
    rc = gr_comm_agree(comm, rc, error);
    GR_ASSERT(rc < 0 || gr_csr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
done:
    reversed_fini(comm, &back);
    return rc;
}

int64_t gr_graph_part_symmetrize_bytes(const struct gr_part *part)
{
    const graft_csr *local = &part->local, *remote = &part->remote;
    const int64_t    one = gr_csr_copy_bytes(local, local->n_rows, gr_csr_entries(local));
    const int64_t    cut = gr_csr_copy_bytes(remote, remote->n_rows, gr_csr_entries(remote));

    return cut + (one > cut ? 3 * one : 3 * cut);
}
