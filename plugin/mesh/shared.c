/* Meshes with shared nodes: a rank computes all its nodes, and the copies on other ranks form the halo. Edges whose two
 * nodes are shared with another rank are sent to it, to find the edges that it also has.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/route.h"
#include "mesh/build.h"

#include <string.h>

static void take_arrays(graft_mesh *mesh, struct gr_local_mesh *local)
{
    mesh->n_nodes = mesh->n_sources = local->n;
    mesh->n_edges = local->row_ptr[local->n];
    mesh->node_of = local->node_of;
    mesh->row_of = local->row_of;
    mesh->id = local->id;
    mesh->edges.row_ptr = local->row_ptr;
    mesh->edges.source = local->source;
    gr_pool_adopt(&mesh->pool, local->node_of);
    gr_pool_adopt(&mesh->pool, local->row_of);
    gr_pool_adopt(&mesh->pool, local->id);
    gr_pool_adopt(&mesh->pool, local->row_ptr);
    local->node_of = local->row_of = local->source = NULL;
    local->id = local->row_ptr = NULL;
}

static int32_t take_halo(graft_mesh *mesh, const struct gr_meeting *meeting, graft_error *error)
{
    const int32_t n_ranks = mesh->comm->n_ranks;

    mesh->halo.count = meeting->start[n_ranks];
    if (mesh->halo.count >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "other ranks have %lld copies of nodes, expected less than %d",
                       (long long)mesh->halo.count, INT32_MAX);
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->halo.start, (int64_t)n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->halo.place, mesh->halo.count, error));
    memcpy(mesh->halo.start, meeting->start, ((size_t)n_ranks + 1) * sizeof *mesh->halo.start);
    if (mesh->halo.count > 0)
        memcpy(mesh->halo.place, meeting->place, (size_t)mesh->halo.count * sizeof *mesh->halo.place);
    return GRAFT_OK;
}

/* Count the ranks of each node, which later become weights, and the shared nodes. *lower receives the number of nodes
 * that a lower rank has. */
static int32_t count_copies(graft_mesh *mesh, const struct gr_meeting *meeting, int64_t *lower, graft_error *error)
{
    struct gr_mesh_copies *copies = &mesh->copies;
    double                *ranks; /* number of ranks that have each node */

    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->node_weight, mesh->n_nodes, error));
    ranks = mesh->node_weight;
    for (int64_t i = 0; i < mesh->n_nodes; i++) ranks[i] = 1;
    *lower = 0;
    for (int64_t k = 0; k < mesh->halo.count; k++) {
        const int32_t node = meeting->node[k];

        if (ranks[node] == 1) {
            copies->count++;
            if (k < mesh->halo.start[mesh->comm->rank]) ++*lower;
        }
        ranks[node]++;
    }
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, copies->node, copies->count, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, copies->start, copies->count + 1, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, copies->before, copies->count, error));
    return GR_POOL_NEW(mesh->context, &mesh->pool, copies->copy, mesh->halo.count, error);
}

/* List the copies of each shared node by a counting sort of the rows of the halo, and set the weights of nodes. */
static int32_t list_copies(graft_mesh *mesh, const struct gr_meeting *meeting, graft_error *error)
{
    struct gr_mesh_copies *copies = &mesh->copies;
    int32_t               *number = NULL; /* index of each node among the shared nodes */
    int64_t                put = 0;
    int32_t                rc = GR_NEW(mesh->context, number, mesh->n_nodes, error);

    GR_TRY_DONE(rc);
    for (int64_t i = 0; i < mesh->n_nodes; i++) {
        if (mesh->node_weight[i] > 1) {
            number[i] = (int32_t)put;
            copies->node[put] = (int32_t)i;
            copies->start[put + 1] = copies->start[put] + (int64_t)mesh->node_weight[i] - 1;
            put++;
        }
        mesh->node_weight[i] = 1 / mesh->node_weight[i];
    }
    for (int64_t k = 0; k < mesh->halo.count; k++) {
        const int32_t shared = number[meeting->node[k]];

        copies->copy[copies->start[shared]++] = (int32_t)k;
        copies->before[shared] += k < mesh->halo.start[mesh->comm->rank];
    }
    memmove(copies->start + 1, copies->start, (size_t)copies->count * sizeof *copies->start);
    copies->start[0] = 0;
done:
    gr_free(mesh->context, number);
    return rc;
}

/* An edge in a message, with the receiver's indices of nodes. */
struct edge_record {
    int32_t target, source;
};

struct shared_edges {
    graft_mesh               *mesh;
    const struct gr_meeting  *meeting;
    int32_t                  *place; /* [n_nodes] index of each node on the rank to which edges are packed, or -1 */
    struct gr_route           route;
    const struct edge_record *in;
};

/* Pack the edges to `node` whose source rank q also has. */
static void pack_edges_to(const struct shared_edges *s, struct gr_route *route, int32_t q, int32_t node)
{
    const graft_mesh *mesh = s->mesh;

    for (int64_t e = mesh->edges.row_ptr[node]; e < mesh->edges.row_ptr[node + 1]; e++) {
        struct edge_record *to = s->place[mesh->edges.source[e]] >= 0 ? gr_comm_route_item(route, q) : NULL;

        if (to != NULL) *to = (struct edge_record){ s->place[node], s->place[mesh->edges.source[e]] };
    }
}

static void pack_shared_edges(void *arg, struct gr_route *route)
{
    const struct shared_edges *s = arg;
    const struct gr_meeting   *meeting = s->meeting;

    for (int32_t q = 0; q < s->mesh->comm->n_ranks; q++) {
        const int64_t begin = meeting->start[q], end = meeting->start[q + 1];

        for (int64_t k = begin; k < end; k++) s->place[meeting->node[k]] = meeting->place[k];
        for (int64_t k = begin; k < end; k++) pack_edges_to(s, route, q, meeting->node[k]);
        for (int64_t k = begin; k < end; k++) s->place[meeting->node[k]] = -1;
    }
}

static int32_t exchange_shared_edges(struct shared_edges *s, graft_error *error)
{
    graft_mesh *mesh = s->mesh;
    int32_t     rc = gr_comm_route_init(&s->route, mesh->comm, error);

    if (rc == GRAFT_OK) rc = GR_NEW(mesh->context, s->place, mesh->n_nodes, error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(mesh->context, &mesh->pool, mesh->edges.ranks, mesh->n_edges, error);
    GR_TRY_DONE(gr_comm_agree(mesh->comm, rc, error));
    s->route.is_peer = s->meeting->is_peer;
    for (int64_t i = 0; i < mesh->n_nodes; i++) s->place[i] = -1;
    rc = gr_comm_route_exchange(&s->route, pack_shared_edges, s, sizeof *s->in, error);
    s->in = s->route.received;
done:
    return rc;
}

/* Find the edge from source to target by bisection, because sources of a row ascend by id. Returns -1 if there is
 * none. */
static int64_t find_edge(const graft_mesh *mesh, const struct edge_record *edge)
{
    const int64_t id = mesh->id[edge->source], end = mesh->edges.row_ptr[edge->target + 1];
    int64_t       low = mesh->edges.row_ptr[edge->target], high = end;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (mesh->id[mesh->edges.source[middle]] < id) low = middle + 1;
        else high = middle;
    }
    return low < end && mesh->edges.source[low] == edge->source ? low : -1;
}

/* Count the ranks that have each edge. *lower receives the number of edges that a lower rank has; edges of lower ranks
 * are the first in the message. */
static void count_ranks_of_edges(struct shared_edges *s, int64_t *lower)
{
    const graft_mesh *mesh = s->mesh;
    int32_t          *ranks = mesh->edges.ranks;

    for (int64_t e = 0; e < mesh->n_edges; e++) ranks[e] = 1;
    *lower = 0;
    for (int64_t k = 0; k < gr_comm_route_n_in(&s->route); k++) {
        const int64_t e = find_edge(mesh, &s->in[k]);

        if (e < 0) continue;
        if (k < s->route.in[mesh->comm->rank] && ranks[e] == 1) ++*lower;
        ranks[e]++;
    }
}

static int32_t find_shared_edges(graft_mesh *mesh, const struct gr_meeting *meeting, int64_t *lower, graft_error *error)
{
    struct shared_edges s = { .mesh = mesh, .meeting = meeting };
    int32_t             rc = exchange_shared_edges(&s, error);

    if (rc == GRAFT_OK) count_ranks_of_edges(&s, lower);
    gr_comm_route_fini(&s.route);
    gr_free(mesh->context, s.place);
    return rc;
}

int32_t gr_mesh_take_shared(graft_mesh *mesh, struct gr_local_mesh *local, const struct gr_meeting *meeting,
                            struct gr_mesh_once *once, graft_error *error)
{
    struct gr_mesh_once lower = { 0 };
    int32_t             rc = take_halo(mesh, meeting, error);

    take_arrays(mesh, local);
    if (rc == GRAFT_OK && mesh->comm->n_ranks > 1) rc = count_copies(mesh, meeting, &lower.n_nodes, error);
    if (rc == GRAFT_OK && mesh->comm->n_ranks > 1) rc = list_copies(mesh, meeting, error);
    GR_TRY_DONE(gr_comm_agree(mesh->comm, rc, error));
    if (mesh->comm->n_ranks > 1) GR_TRY_DONE(find_shared_edges(mesh, meeting, &lower.n_edges, error));
    *once = (struct gr_mesh_once){ mesh->n_nodes - lower.n_nodes, mesh->n_edges - lower.n_edges };
done:
    return rc;
}
