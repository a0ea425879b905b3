/* Packs items by their destinations, and exchanges them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/route.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

int32_t gr_comm_route_init(struct gr_route *route, struct gr_comm *comm, graft_error *error)
{
    *route = (struct gr_route){ .comm = comm };
    GR_TRY(GR_NEW(comm->context, route->out, comm->n_ranks + 1, error));
    GR_TRY(GR_NEW(comm->context, route->in, comm->n_ranks + 1, error));
    return GR_NEW(comm->context, route->counts, 3 * (int64_t)comm->n_ranks + 1, error);
}

void gr_comm_route_fini(struct gr_route *route)
{
    if (route->comm == NULL) return;
    gr_free(route->comm->context, route->out);
    gr_free(route->comm->context, route->in);
    gr_free(route->comm->context, route->counts);
    gr_free(route->comm->context, route->received);
    *route = (struct gr_route){ 0 };
}

/* Exchange counts with the peers only, in compacted arrays. */
static int32_t ask_peers(struct gr_route *route, graft_error *error)
{
    const int32_t n_ranks = route->comm->n_ranks;
    int64_t      *start = route->counts, *mine = start + n_ranks + 1, *theirs = mine + n_ranks;
    int32_t       rc;

    for (int32_t p = 0; p < n_ranks; p++) {
        GR_ASSERT(route->is_peer[p] || route->out[p + 1] == 0);
        start[p + 1] = start[p] + (route->is_peer[p] != 0);
        mine[start[p]] = route->out[p + 1];
    }
    rc = gr_comm_alltoallv(route->comm, mine, start, theirs, start, sizeof *mine, error);
    for (int32_t p = 0; p < n_ranks; p++) route->in[p + 1] = route->is_peer[p] ? theirs[start[p]] : 0;
    return rc;
}

int32_t gr_comm_route_plan(struct gr_route *route, graft_error *error)
{
    int64_t *const out = route->out, *const in = route->in;

    GR_TRY(route->is_peer != NULL ? ask_peers(route, error)
                                  : gr_comm_alltoall(route->comm, out + 1, sizeof *out, in + 1, error));
    for (int32_t p = 0; p < route->comm->n_ranks; p++) {
        out[p + 1] += out[p];
        in[p + 1] += in[p];
    }
    return GRAFT_OK;
}

/* gr_comm_route_take() has advanced the start of each rank to its end, which is the start of the next rank. */
void gr_comm_route_rewind(struct gr_route *route)
{
    GR_ASSERT(route->out[route->comm->n_ranks - 1] == route->out[route->comm->n_ranks]);
    memmove(route->out + 1, route->out, (size_t)route->comm->n_ranks * sizeof *route->out);
    route->out[0] = 0;
}

int32_t gr_comm_route_send(const struct gr_route *route, const void *packed, void *received, int64_t item_bytes,
                           graft_error *error)
{
    return gr_comm_alltoallv(route->comm, packed, route->out, received, route->in, item_bytes, error);
}

int32_t gr_comm_route_return(const struct gr_route *route, const void *received, void *packed, int64_t item_bytes,
                             graft_error *error)
{
    return gr_comm_alltoallv(route->comm, received, route->in, packed, route->out, item_bytes, error);
}

int32_t gr_comm_route_count(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                            graft_error *error)
{
    pack(arg, route);
    return gr_comm_route_plan(route, error);
}

int32_t gr_comm_route_deliver(struct gr_route *route, int32_t rc, void (*pack)(void *arg, struct gr_route *route),
                              void *arg, int64_t item_bytes, graft_error *error)
{
    const graft_context *context = route->comm->context;
    char                *packed = NULL;

    if (rc == GRAFT_OK) rc = GR_NEW(context, packed, gr_comm_route_n_out(route) * item_bytes, error);
    if (rc == GRAFT_OK) {
        route->received = gr_new(context, gr_comm_route_n_in(route), (uint64_t)item_bytes, "received items", error);
        rc = route->received != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
    }
    GR_TRY_DONE(gr_comm_agree(route->comm, rc, error));
    route->packed = packed;
    route->item_bytes = item_bytes;
    pack(arg, route);
    gr_comm_route_rewind(route);
    rc = gr_comm_route_send(route, packed, route->received, item_bytes, error);
done:
    route->packed = NULL;
    gr_free(context, packed);
    return rc;
}

int32_t gr_comm_route_exchange(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                               int64_t item_bytes, graft_error *error)
{
    GR_TRY(gr_comm_route_count(route, pack, arg, error));
    return gr_comm_route_deliver(route, GRAFT_OK, pack, arg, item_bytes, error);
}
