/* Owners in a file, which rank 0 reads and writes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "dgraph/owner.h"

#include <stdio.h>

/* The owners of all vertices on rank 0, and the route to rank 0. */
struct all_owners {
    struct gr_root root;
    int32_t       *owner; /* [n_vertices] on rank 0 */
    uint64_t      *print; /* [n_ranks] fingerprints of the slices */
};

static int32_t all_owners_init(const graft_graph *g, struct all_owners *all, graft_error *error)
{
    *all = (struct all_owners){ 0 };
    GR_TRY(gr_graph_root_init(g, &all->root, error));
    GR_TRY(GR_NEW(g->context, all->owner, gr_comm_route_n_in(&all->root.rows), error));
    return GR_NEW(g->context, all->print, g->comm->n_ranks, error);
}

static void all_owners_fini(const graft_graph *g, struct all_owners *all)
{
    gr_graph_root_fini(&all->root);
    gr_free(g->context, all->owner);
    gr_free(g->context, all->print);
}

static int32_t identify_graph(const graft_graph *g, const graft_slice *slice, uint64_t *print,
                              struct gr_graph_identity *identity, graft_error *error)
{
    const struct gr_slice rows = gr_graph_owner_rows(g, slice);
    const uint64_t        mine = g->n_slice > 0 ? gr_partition_slice_fingerprint(&rows) : 0;
    int32_t               rc = gr_comm_allgather(g->comm, &mine, sizeof mine, print, error);

    *identity = (struct gr_graph_identity){ .n_vertices = g->n_vertices };
    for (int32_t p = 0; p < g->comm->n_ranks && rc == GRAFT_OK; p++) {
        identity->n_edges += g->share[p].n_edges;
        identity->fingerprint += print[p];
    }
    return rc;
}

/* On rank 0: read the file, or check that it can be written. */
static int32_t read_or_check(const graft_graph *g, const char *path, const struct gr_graph_identity *identity,
                             int32_t *owner, int32_t *found, graft_error *error)
{
    const int32_t rc = gr_partition_owners_read(g->context, path, identity, gr_graph_owner_parts(g), owner, error);

    *found = rc == GRAFT_OK;
    return rc == GRAFT_ERR_NOT_FOUND ? gr_partition_owners_check_place(path, identity, gr_graph_owner_parts(g), error)
                                     : rc;
}

int32_t gr_graph_owner_load(graft_graph *g, const graft_slice *slice, const char *path,
                            struct gr_graph_identity *identity, int32_t *found, graft_error *error)
{
    struct all_owners all;
    int32_t           rc = all_owners_init(g, &all, error);

    GR_ASSERT(path[0] != '\0');
    *found = 0;
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(identify_graph(g, slice, all.print, identity, error));
    if (g->comm->rank == 0) rc = read_or_check(g, path, identity, all.owner, found, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_broadcast(g->comm, 0, found, sizeof *found, error));
    if (!*found) goto done;
    GR_TRY_DONE(gr_comm_route_return(&all.root.rows, all.owner, g->slice.owner, sizeof *g->slice.owner, error));
    snprintf(g->division.partition, sizeof g->division.partition, "from the file %.300s", path);
done:
    all_owners_fini(g, &all);
    return rc;
}

int32_t gr_graph_owner_save(const graft_graph *g, const char *path, const struct gr_graph_identity *identity,
                            graft_error *error)
{
    struct all_owners all;
    int32_t           rc = all_owners_init(g, &all, error);

    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_route_send(&all.root.rows, g->slice.owner, all.owner, sizeof *g->slice.owner, error));
    if (g->comm->rank == 0) rc = gr_partition_owners_write(path, identity, gr_graph_owner_parts(g), all.owner, error);
    rc = gr_comm_agree(g->comm, rc, error);
done:
    all_owners_fini(g, &all);
    return rc;
}
