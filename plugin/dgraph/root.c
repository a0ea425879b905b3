/* What belongs to vertices, from slices to rank 0 and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/owner.h"

#include "base/memory.h"

int32_t gr_root_init(const graft_graph *g, struct gr_root *root, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(GR_NEW(g->context, root->slice, g->comm->n_ranks + 1, error));
    GR_TRY(GR_NEW(g->context, root->whole, g->comm->n_ranks + 1, error));
done:
    return rc;
}

void gr_root_fini(const graft_graph *g, struct gr_root *root)
{
    gr_free(g->context, root->slice);
    gr_free(g->context, root->whole);
    *root = (struct gr_root){ 0 };
}

int64_t gr_root_rows(const graft_graph *g)
{
    return g->comm->rank == 0 ? g->n_vertices : 0;
}

int64_t gr_root_entries(const graft_graph *g)
{
    int64_t entries = 0;

    for (int32_t p = 0; p < g->comm->n_ranks && g->comm->rank == 0; p++) entries += g->share[p].n_entries;
    return entries;
}

static void lay_out(const graft_graph *g, struct gr_root *root, int64_t row_bytes, int64_t entry_bytes)
{
    const struct gr_share *mine = &g->share[g->comm->rank];

    for (int32_t p = 0; p < g->comm->n_ranks; p++) {
        const struct gr_share *s = &g->share[p];
        const int64_t          bytes = s->n_slice * row_bytes + s->n_entries * entry_bytes;

        root->slice[p + 1] = mine->n_slice * row_bytes + mine->n_entries * entry_bytes;
        root->whole[p + 1] = g->comm->rank == 0 ? root->whole[p] + bytes : 0;
    }
}

int32_t gr_root_gather(const graft_graph *g, struct gr_root *root, int64_t row_bytes, int64_t entry_bytes,
                       const void *slice, void *whole, graft_error *error)
{
    lay_out(g, root, row_bytes, entry_bytes);
    return gr_comm_alltoallv(g->comm, slice, root->slice, whole, root->whole, error);
}

int32_t gr_root_scatter(const graft_graph *g, struct gr_root *root, int64_t row_bytes, const void *whole, void *slice,
                        graft_error *error)
{
    lay_out(g, root, row_bytes, 0);
    return gr_comm_alltoallv(g->comm, whole, root->whole, slice, root->slice, error);
}
