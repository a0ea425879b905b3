/* Routes of rows and edges from the slices to rank 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/owner.h"

#include "base/memory.h"

/* Route all items of each slice to rank 0. */
static int32_t lay_root_route(const graft_graph *g, struct gr_route *route, int edges, graft_error *error)
{
    const int32_t rc = gr_comm_route_init(route, g->comm, error);

    for (int32_t p = 0; p < g->comm->n_ranks && rc == GRAFT_OK; p++) {
        const struct gr_share *s = &g->share[p], *mine = &g->share[g->comm->rank];

        route->out[p + 1] = edges ? mine->n_edges : mine->n_slice;
        if (g->comm->rank == 0) route->in[p + 1] = route->in[p] + (edges ? s->n_edges : s->n_slice);
    }
    return rc;
}

int32_t gr_graph_root_init(const graft_graph *g, struct gr_root *root, graft_error *error)
{
    GR_TRY(lay_root_route(g, &root->rows, 0, error));
    return lay_root_route(g, &root->edges, 1, error);
}

void gr_graph_root_fini(struct gr_root *root)
{
    gr_comm_route_fini(&root->rows);
    gr_comm_route_fini(&root->edges);
}
