/* Derives parts of a graph over ranks: reordered, or restricted to the first rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/part.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"
#include "graph/order.h"

#include <string.h>

int32_t gr_graph_made_part_new_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    int64_t count, graft_error *error)
{
    GR_TRY(GR_NEW(context, made->halo_start, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, made->halo_place, count, error));
    made->part.halo = (struct gr_halo){ count, made->halo_start, made->halo_place };
    return GRAFT_OK;
}

int32_t gr_graph_made_part_key_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    const int64_t *keys, int64_t count, graft_error *error)
{
    GR_TRY(gr_graph_made_part_new_halo(context, made, n_ranks, count, error));
    for (int64_t s = 0; s < count; s++) {
        made->halo_place[s] = (int32_t)(keys[s] & INT32_MAX);
        made->halo_start[(keys[s] >> 32) + 1]++;
    }
    for (int32_t q = 0; q < n_ranks; q++) made->halo_start[q + 1] += made->halo_start[q];
    return GRAFT_OK;
}

void gr_graph_made_part_fini(const graft_context *context, struct gr_made_part *made)
{
    gr_csr_fini(context, &made->local);
    gr_csr_fini(context, &made->remote);
    gr_free(context, made->halo_start);
    gr_free(context, made->halo_place);
    *made = (struct gr_made_part){ 0 };
}

int64_t gr_graph_made_part_bytes(const struct gr_made_part *made)
{
    return gr_csr_bytes(&made->local) + gr_csr_bytes(&made->remote) + gr_memory_bytes(made->halo_start) +
           gr_memory_bytes(made->halo_place);
}

static int64_t copy_bytes(const graft_csr *csr)
{
    return gr_csr_copy_bytes(csr, csr->n_rows, gr_csr_entries(csr));
}

int64_t gr_graph_part_reorder_bytes(const struct gr_part *part)
{
    const int64_t local = copy_bytes(&part->local), remote = copy_bytes(&part->remote);

    return remote + (local > remote ? 2 * local : local + remote);
}

/* Sort each row by column, by two transpositions: the rows of a transpose are sorted. */
static int32_t sort_csr_rows(const graft_context *context, struct gr_csr *csr, graft_error *error)
{
    for (int times = 0; times < 2; times++) {
        struct gr_csr turned = { 0 };

        GR_TRY(gr_csr_transpose(context, &csr->view, &turned, error));
        gr_csr_fini(context, csr);
        *csr = turned;
    }
    return GRAFT_OK;
}

/* Sort the halo by owner and new index at the owner. new_index[s] receives the new position of vertex s of the old
 * halo. */
static int32_t sort_halo(const graft_context *context, const struct gr_halo *old, int32_t n_ranks,
                         const int32_t *new_place, int32_t *new_index, struct gr_made_part *made, graft_error *error)
{
    const int64_t most = (int64_t)INT32_MAX << 32;
    int64_t      *keys = NULL; /* new index at the owner in the upper half, old position in the lower half */
    int32_t       rc = gr_graph_made_part_new_halo(context, made, n_ranks, old->count, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(GR_NEW(context, keys, old->count, error));
    for (int64_t s = 0; s < old->count; s++) keys[s] = (int64_t)new_place[s] << 32 | s;
    for (int32_t q = 0; q < n_ranks; q++) {
        int64_t count = old->start[q + 1] - old->start[q];

        made->halo_start[q + 1] = old->start[q + 1];
        GR_TRY_DONE(gr_sort_unique(context, keys + old->start[q], most, &count, error));
    }
    for (int64_t s = 0; s < old->count; s++) {
        made->halo_place[s] = (int32_t)(keys[s] >> 32);
        new_index[(uint32_t)keys[s]] = (int32_t)s;
    }
done:
    gr_free(context, keys);
    return rc;
}

/* Reorder the rows of the remote matrix, and replace its columns by positions in the new halo. */
static int32_t reorder_remote(const graft_context *context, const graft_csr *remote, const int64_t *order,
                              const int32_t *new_index, struct gr_made_part *made, graft_error *error)
{
    struct gr_csr *csr = &made->remote;
    int64_t        to = 0;

    GR_TRY(gr_csr_init(context, csr, remote, remote->n_rows, remote->n_cols, gr_csr_entries(remote), error));
    for (int64_t i = 0; i < remote->n_rows; i++) {
        for (int64_t e = remote->row_ptr[order[i]]; e < remote->row_ptr[order[i] + 1]; e++)
            gr_csr_put(csr, to++, new_index[gr_csr_column(remote, e)], remote, e);
        csr->row_ptr[i + 1] = to;
    }
    GR_TRY(sort_csr_rows(context, csr, error));
    made->part.remote = csr->view;
    return GRAFT_OK;
}

int32_t gr_graph_part_reorder(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                              struct gr_links *links, const int64_t *order, struct gr_made_part *made,
                              graft_error *error)
{
    int32_t *place = NULL, *packed = NULL, *new_place = NULL, *new_index = NULL;
    int32_t  rc = gr_csr_order_apply(context, &part->local, order, &made->local, error);

    if (rc == GRAFT_OK) rc = sort_csr_rows(context, &made->local, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, place, part->local.n_rows, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, packed, links->send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, new_place, part->halo.count, error);
    if (rc == GRAFT_OK) rc = GR_NEW(context, new_index, part->halo.count, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    made->part.local = made->local.view;
    for (int64_t i = 0; i < part->local.n_rows; i++) place[order[i]] = (int32_t)i; /* other ranks receive these */
    GR_TRY_DONE(gr_halo_links_ask(links, comm, place, packed, new_place, sizeof *place, error));
    rc = sort_halo(context, &part->halo, comm->n_ranks, new_place, new_index, made, error);
    if (rc == GRAFT_OK) rc = reorder_remote(context, &part->remote, order, new_index, made, error);
    rc = gr_comm_agree(comm, rc, error);
    GR_ASSERT(rc < 0 || gr_csr_part_is_valid(&made->part, comm->n_ranks, comm->rank));
done:
    gr_free(context, place);
    gr_free(comm->context, packed);
    gr_free(comm->context, new_place);
    gr_free(context, new_index);
    return rc;
}

/* Create a halo of only the vertices s that have new_index[s] != 0, and set new_index[s] to their new position. */
static int32_t narrow_halo(const graft_context *context, const struct gr_halo *old, int32_t n_ranks, int32_t *new_index,
                           struct gr_made_part *made, graft_error *error)
{
    int64_t count = 0, to = 0;

    for (int64_t s = 0; s < old->count; s++) count += new_index[s] != 0;
    GR_TRY(gr_graph_made_part_new_halo(context, made, n_ranks, count, error));
    for (int32_t q = 0; q < n_ranks; q++) {
        for (int64_t s = old->start[q]; s < old->start[q + 1]; s++) {
            if (new_index[s] == 0) continue;
            made->halo_place[to] = old->place[s];
            new_index[s] = (int32_t)to++;
        }
        made->halo_start[q + 1] = to;
    }
    return GRAFT_OK;
}

int32_t gr_graph_part_first_rows(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                                 int64_t n_rows, int64_t n_cols, struct gr_made_part *made, graft_error *error)
{
    const graft_csr *remote = &part->remote;
    const int64_t    entries = remote->row_ptr[n_rows];
    graft_csr        like = *remote;
    int32_t         *new_index = NULL, *column, rc = GRAFT_OK;

    GR_ASSERT(n_rows >= 0 && n_rows <= remote->n_rows && n_cols >= n_rows);
    like.values = NULL;
    GR_TRY_DONE(GR_NEW(context, new_index, part->halo.count, error));
    for (int64_t e = 0; e < entries; e++) new_index[gr_csr_column(remote, e)] = 1;
    GR_TRY_DONE(narrow_halo(context, &part->halo, n_ranks, new_index, made, error));
    GR_TRY_DONE(gr_csr_init(context, &made->remote, &like, n_rows, made->part.halo.count, entries, error));
    column = made->remote.col_idx;
    for (int64_t e = 0; e < entries; e++) column[e] = new_index[gr_csr_column(remote, e)];
    memcpy(made->remote.row_ptr, remote->row_ptr, (uint64_t)(n_rows + 1) * sizeof *remote->row_ptr);
    made->part.remote = made->remote.view;
    made->part.remote.values = remote->values;
    made->part.local = part->local;
    made->part.local.n_rows = n_rows;
    made->part.local.n_cols = n_cols;
    GR_ASSERT(gr_csr_is_valid(&made->part.local) && gr_csr_is_valid(&made->part.remote));
done:
    gr_free(context, new_index);
    return rc;
}
