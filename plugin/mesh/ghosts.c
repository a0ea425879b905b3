/* Meshes whose nodes have owners: a rank has the edges to the nodes that it owns. Edges to ghosts are sent to their
 * owners, and the sources that other ranks own form the halo. Until owners have numbered their nodes, a node of another
 * rank is identified by its owner and its place: its index among all nodes there, including ghosts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"
#include "comm/route.h"
#include "mesh/build.h"

#include <string.h>

/* An edge in a message to the owner of its target. */
struct ghost_edge {
    int32_t target;       /* place of the target on the receiver */
    int32_t owner, place; /* owner of the source, and its place there */
};

/* The reply of an owner about a node: its id and its index among owned nodes; `dim` coordinates follow. */
struct halo_reply {
    int64_t id, number;
};

struct ghosts {
    graft_mesh              *mesh;
    struct gr_local_mesh    *local;
    const struct gr_meeting *meeting;
    int32_t                 *owner, *place; /* [n] owner of each node, and its place there */
    struct gr_pool           pool;
    struct gr_route          edges, nodes;
    const struct ghost_edge *in;
    int32_t                 *column;   /* [n] index of each node as a source in the mesh; at first, whether it is a
                                          source */
    int64_t                 *key;      /* [halo] owner << 32 | place of each row of the halo, ascending */
    int32_t                 *requests; /* [received] place of each node that another rank requests */
    char                    *replies, *answers; /* replies that are sent, and received ones; see reply_bytes() */
    int64_t                 *id;                /* [n_sources] id of each source */
};

static void ghosts_fini(struct ghosts *g)
{
    gr_pool_fini(g->mesh->context, &g->pool);
    gr_comm_route_fini(&g->edges);
    gr_comm_route_fini(&g->nodes);
}

/* Find the owner of each node, given by the host or else the lowest rank that has the node; and its place there. */
static int32_t find_owners(struct ghosts *g, graft_error *error)
{
    const struct gr_local_mesh *local = g->local;
    const graft_mesh_args      *a = local->args;
    const int32_t               rank = local->comm->rank, n_ranks = local->comm->n_ranks;

    for (int64_t v = 0; v < local->n; v++) {
        g->owner[v] = a->owners != NULL ? a->owners[local->row_of[v]] : rank;
        g->place[v] = -1;
    }
    for (int32_t q = 0; q < n_ranks; q++)
        for (int64_t k = g->meeting->start[q]; k < g->meeting->start[q + 1]; k++) {
            const int32_t v = g->meeting->node[k];

            if (a->owners == NULL && q < g->owner[v]) g->owner[v] = q;
            if (g->owner[v] == q) g->place[v] = g->meeting->place[k];
        }
    for (int64_t v = 0; v < local->n; v++)
        if (g->owner[v] != rank && g->place[v] < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "row %lld, node %lld: its owner is rank %d, which does not have this node",
                           (long long)local->row_of[v] + a->index_base, (long long)local->id[v], g->owner[v]);
    return GRAFT_OK;
}

/* Number the nodes that this rank owns consecutively, in their order. */
static int32_t number_own(struct ghosts *g, graft_error *error)
{
    const struct gr_local_mesh *local = g->local;
    graft_mesh                 *mesh = g->mesh;
    const int32_t               rank = local->comm->rank;
    int64_t                     own = 0;

    for (int64_t v = 0; v < local->n; v++) own += g->owner[v] == rank;
    mesh->n_nodes = own;
    GR_TRY(GR_POOL_NEW(local->context, &mesh->pool, mesh->node_of, local->args->n_rows, error));
    GR_TRY(GR_POOL_NEW(local->context, &mesh->pool, mesh->row_of, own, error));
    GR_TRY(GR_POOL_NEW(local->context, &mesh->pool, mesh->id, own, error));
    own = 0;
    for (int64_t v = 0; v < local->n; v++) { /* with ghosts there is one row for each node: v is also a row */
        mesh->node_of[v] = g->owner[v] == rank ? (int32_t)own : -1;
        if (g->owner[v] != rank) continue;
        mesh->row_of[own] = local->row_of[v];
        mesh->id[own++] = local->id[v];
    }
    return GRAFT_OK;
}

/* Pack the edges to ghosts for the owners of the ghosts. */
static void pack_edges(void *arg, struct gr_route *route)
{
    const struct ghosts        *g = arg;
    const struct gr_local_mesh *local = g->local;
    const int32_t               rank = local->comm->rank;

    for (int64_t v = 0; v < local->n; v++) {
        for (int64_t e = local->row_ptr[v]; e < local->row_ptr[v + 1] && g->owner[v] != rank; e++) {
            const int32_t      s = local->source[e];
            struct ghost_edge *to = gr_comm_route_item(route, g->owner[v]);

            if (to != NULL)
                *to = (struct ghost_edge){ g->place[v], g->owner[s], g->owner[s] == rank ? s : g->place[s] };
        }
    }
}

static int64_t key_of_node(int32_t owner, int32_t place)
{
    return (int64_t)owner << 32 | place;
}

/* Collect the sources that other ranks own, of edges to nodes of this rank, each once: the rows of the halo. */
static int32_t collect_sources(struct ghosts *g, graft_error *error)
{
    const struct gr_local_mesh *local = g->local;
    const int32_t               rank = local->comm->rank;
    const int64_t               n_in = gr_comm_route_n_in(&g->edges);
    int64_t                     count = 0;

    GR_TRY(GR_POOL_NEW(local->context, &g->pool, g->column, local->n, error));
    for (int64_t v = 0; v < local->n; v++) {
        if (g->owner[v] != rank) continue;
        for (int64_t e = local->row_ptr[v]; e < local->row_ptr[v + 1]; e++) {
            const int32_t s = local->source[e];

            if (g->owner[s] != rank && g->column[s] == 0) count++;
            g->column[s] = 1;
        }
    }
    GR_TRY(GR_POOL_NEW(local->context, &g->pool, g->key, count + n_in, error));
    count = 0;
    for (int64_t v = 0; v < local->n; v++)
        if (g->owner[v] != rank && g->column[v]) g->key[count++] = key_of_node(g->owner[v], g->place[v]);
    for (int64_t k = 0; k < n_in; k++)
        if (g->in[k].owner != rank) g->key[count++] = key_of_node(g->in[k].owner, g->in[k].place);
    GR_TRY(gr_sort_unique(local->context, g->key, key_of_node(local->comm->n_ranks, 0), &count, error));
    g->mesh->halo.count = count;
    g->mesh->n_sources = g->mesh->n_nodes + count;
    if (g->mesh->n_sources >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "a rank has %lld nodes and gathers from %lld of other ranks, "
                       "expected less than %d together",
                       (long long)g->mesh->n_nodes, (long long)count, INT32_MAX);
    return GRAFT_OK;
}

static int64_t reply_bytes(const struct ghosts *g)
{
    return (int64_t)sizeof(struct halo_reply) + g->mesh->space.dim * (int64_t)sizeof(double);
}

/* Request the nodes of the halo from their owners. */
static int32_t request_halo(struct ghosts *g, graft_error *error)
{
    graft_mesh     *mesh = g->mesh;
    const int32_t   n_ranks = mesh->comm->n_ranks;
    struct gr_halo *halo = &mesh->halo;
    int32_t         rc = GR_POOL_NEW(mesh->context, &mesh->pool, halo->start, (int64_t)n_ranks + 1, error);

    if (rc == GRAFT_OK) rc = GR_POOL_NEW(mesh->context, &mesh->pool, halo->place, halo->count, error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(mesh->context, &g->pool, g->answers, halo->count * reply_bytes(g), error);
    GR_TRY(gr_comm_agree(mesh->comm, rc, error));
    for (int64_t k = 0; k < halo->count; k++) {
        g->nodes.out[(g->key[k] >> 32) + 1]++;
        halo->place[k] = (int32_t)g->key[k];
    }
    GR_TRY(gr_comm_route_plan(&g->nodes, error));
    memcpy(halo->start, g->nodes.out, ((size_t)n_ranks + 1) * sizeof *halo->start);
    rc = GR_POOL_NEW(mesh->context, &g->pool, g->requests, gr_comm_route_n_in(&g->nodes), error);
    if (rc == GRAFT_OK)
        rc = GR_POOL_NEW(mesh->context, &g->pool, g->replies, gr_comm_route_n_in(&g->nodes) * reply_bytes(g), error);
    GR_TRY(gr_comm_agree(mesh->comm, rc, error));
    return gr_comm_route_send(&g->nodes, halo->place, g->requests, sizeof *g->requests, error);
}

/* Reply to requests for nodes that this rank owns. */
static int32_t reply(struct ghosts *g, graft_error *error)
{
    const struct gr_local_mesh *local = g->local;

    for (int64_t k = 0; k < gr_comm_route_n_in(&g->nodes); k++) {
        const int32_t           v = g->requests[k];
        const struct halo_reply record = { local->id[v], g->mesh->node_of[v] };
        char                   *to = g->replies + k * reply_bytes(g);

        GR_ASSERT(record.number >= 0);
        memcpy(to, &record, sizeof record);
        for (int c = 0; c < g->mesh->space.dim; c++) {
            const double x = gr_mesh_field_at(&local->x, local->row_of[v], c);

            memcpy(to + sizeof record + (uint64_t)c * sizeof x, &x, sizeof x);
        }
    }
    return gr_comm_route_return(&g->nodes, g->replies, g->answers, reply_bytes(g), error);
}

/* Read the indices, ids and coordinates of rows of the halo from replies. Owners number their nodes in the order of
 * their places, so the indices ascend like the places. */
static int32_t read_answers(struct ghosts *g, graft_error *error)
{
    graft_mesh   *mesh = g->mesh;
    const int32_t dim = mesh->space.dim;

    GR_TRY(GR_POOL_NEW(mesh->context, &g->pool, g->id, mesh->n_sources, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->space.position, mesh->n_sources * dim, error));
    if (mesh->n_nodes > 0) memcpy(g->id, mesh->id, (size_t)mesh->n_nodes * sizeof *g->id);
    for (int64_t k = 0; k < mesh->halo.count; k++) {
        const char       *from = g->answers + k * reply_bytes(g);
        struct halo_reply record;

        memcpy(&record, from, sizeof record);
        memcpy(mesh->space.position + (mesh->n_nodes + k) * dim, from + sizeof record, (size_t)dim * sizeof(double));
        mesh->halo.place[k] = (int32_t)record.number;
        g->id[mesh->n_nodes + k] = record.id;
    }
    return GRAFT_OK;
}

/* Find the index of a source in the mesh by its owner and place. */
static int32_t column_of(const struct ghosts *g, int32_t owner, int32_t place)
{
    const int64_t key = key_of_node(owner, place), begin = g->mesh->halo.start[owner];

    if (owner == g->mesh->comm->rank) return g->mesh->node_of[place];
    return (int32_t)(g->mesh->n_nodes + begin +
                     gr_sorted_index(g->key + begin, g->mesh->halo.start[owner + 1] - begin, key));
}

/* Make the lists of edges to the nodes of this rank, from its own edges and those received from other ranks. */
static int32_t make_own_rows(struct ghosts *g, graft_error *error)
{
    struct gr_local_mesh *local = g->local;
    graft_mesh           *mesh = g->mesh;
    const int32_t         rank = local->comm->rank;
    const int64_t         n_in = gr_comm_route_n_in(&g->edges);
    int64_t              *next;

    GR_TRY(GR_POOL_NEW(local->context, &mesh->pool, mesh->edges.row_ptr, mesh->n_nodes + 1, error));
    next = mesh->edges.row_ptr;
    for (int64_t v = 0; v < local->n; v++) {
        if (g->column[v]) g->column[v] = column_of(g, g->owner[v], g->owner[v] == rank ? (int32_t)v : g->place[v]);
        if (g->owner[v] == rank) next[mesh->node_of[v] + 1] = local->row_ptr[v + 1] - local->row_ptr[v];
    }
    for (int64_t k = 0; k < n_in; k++) next[mesh->node_of[g->in[k].target] + 1]++;
    for (int64_t i = 0; i < mesh->n_nodes; i++) next[i + 1] += next[i];
    GR_TRY(GR_NEW(local->context, mesh->edges.source, next[mesh->n_nodes], error));
    for (int64_t v = 0; v < local->n; v++) {
        if (g->owner[v] != rank) continue;
        for (int64_t e = local->row_ptr[v]; e < local->row_ptr[v + 1]; e++)
            mesh->edges.source[next[mesh->node_of[v]]++] = g->column[local->source[e]];
    }
    for (int64_t k = 0; k < n_in; k++)
        mesh->edges.source[next[mesh->node_of[g->in[k].target]]++] = column_of(g, g->in[k].owner, g->in[k].place);
    memmove(next + 1, next, (size_t)mesh->n_nodes * sizeof *next);
    next[0] = 0;
    gr_free(local->context, local->source);
    local->source = NULL;
    GR_TRY(gr_mesh_adjacency_tidy(local->context, local->team, mesh->n_nodes, g->id, mesh->edges.row_ptr,
                                  &mesh->edges.source, error));
    mesh->n_edges = mesh->edges.row_ptr[mesh->n_nodes];
    return GRAFT_OK;
}

static int32_t begin_ghosts(struct ghosts *g, graft_error *error)
{
    const graft_context *context = g->mesh->context;

    GR_TRY(gr_comm_route_init(&g->edges, g->mesh->comm, error));
    GR_TRY(gr_comm_route_init(&g->nodes, g->mesh->comm, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->owner, g->local->n, error));
    GR_TRY(GR_POOL_NEW(context, &g->pool, g->place, g->local->n, error));
    GR_TRY(find_owners(g, error));
    return number_own(g, error);
}

int32_t gr_mesh_take_ghosts(graft_mesh *mesh, struct gr_local_mesh *local, const struct gr_meeting *meeting,
                            struct gr_mesh_once *once, graft_error *error)
{
    struct ghosts g = { .mesh = mesh, .local = local, .meeting = meeting };
    int32_t       rc = gr_comm_agree(mesh->comm, begin_ghosts(&g, error), error);

    GR_TRY_DONE(rc);
    g.edges.is_peer = meeting->is_peer;
    GR_TRY_DONE(gr_comm_route_exchange(&g.edges, pack_edges, &g, sizeof *g.in, error));
    g.in = g.edges.received;
    GR_TRY_DONE(gr_comm_agree(mesh->comm, collect_sources(&g, error), error));
    GR_TRY_DONE(request_halo(&g, error));
    GR_TRY_DONE(reply(&g, error));
    gr_mesh_id_table_fini(local->context, &local->table);
    gr_free(local->context, local->id);
    local->id = NULL;
    rc = read_answers(&g, error);
    if (rc == GRAFT_OK) rc = make_own_rows(&g, error);
    GR_TRY_DONE(gr_comm_agree(mesh->comm, rc, error));
    *once = (struct gr_mesh_once){ mesh->n_nodes, mesh->n_edges };
done:
    ghosts_fini(&g);
    return rc;
}
