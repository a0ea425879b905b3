/* Making a mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/parallel.h"
#include "comm/collective.h"
#include "mesh/build.h"

#include <math.h>
#include <string.h>

enum { CHUNK_EDGES = GR_LIMIT(16384, 8) };

/* All nodes of the rank are nodes of the mesh: with shared nodes, or on one rank. */
static int32_t take_local(graft_mesh *mesh, struct gr_local_mesh *local, graft_error *error)
{
    int32_t rc = GR_NEW(mesh->context, mesh->halo.start, mesh->comm->n_ranks + 1, error);

    mesh->n_nodes = mesh->n_sources = local->n;
    mesh->n_edges = local->row_ptr[local->n];
    mesh->node_of = local->node_of;
    mesh->row_of = local->row_of;
    mesh->id = local->id;
    mesh->row_ptr = local->row_ptr;
    mesh->source = local->source;
    local->node_of = local->row_of = local->source = NULL;
    local->id = local->row_ptr = NULL;
    return rc;
}

static void find_targets(graft_mesh *mesh)
{
    for (int64_t i = 0; i < mesh->n_nodes; i++)
        for (int64_t e = mesh->row_ptr[i]; e < mesh->row_ptr[i + 1]; e++) mesh->target[e] = (int32_t)i;
}

/* A counting sort of the edges by source. */
static void sort_by_source(graft_mesh *mesh)
{
    int64_t *next = mesh->out_ptr;

    for (int64_t e = 0; e < mesh->n_edges; e++) next[mesh->source[e] + 1]++;
    for (int64_t i = 0; i < mesh->n_sources; i++) next[i + 1] += next[i];
    for (int64_t e = 0; e < mesh->n_edges; e++) mesh->out_edge[next[mesh->source[e]]++] = (int32_t)e;
    memmove(next + 1, next, (size_t)mesh->n_sources * sizeof *next);
    next[0] = 0;
}

/* Coordinates of sources: of nodes from the host, of the halo from `halo`. */
struct offsets {
    const graft_mesh  *mesh;
    const graft_field *x;
    const double      *period;
};

/* The offset of the nearest image. */
static double nearest(double offset, double period)
{
    return period > 0 && fabs(offset) > 0.5 * period ? offset - period * round(offset / period) : offset;
}

static void offset_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct offsets *o = arg;
    const graft_mesh     *mesh = o->mesh;
    const int32_t         dim = mesh->dim;

    (void)chunk;
    for (int64_t e = begin; e < end; e++)
        for (int c = 0; c < dim; c++)
            mesh->offset[e * dim + c] = nearest(gr_field_at(o->x, mesh->row_of[mesh->source[e]], c) -
                                                    gr_field_at(o->x, mesh->row_of[mesh->target[e]], c),
                                                o->period[c]);
}

static int32_t complete(graft_mesh *mesh, const struct gr_local_mesh *local, graft_error *error)
{
    struct offsets o = { mesh, &local->x, local->args->period };
    int32_t        rc = GRAFT_OK;

    GR_TRY(GR_NEW(mesh->context, mesh->target, mesh->n_edges, error));
    GR_TRY(GR_NEW(mesh->context, mesh->out_ptr, mesh->n_sources + 1, error));
    GR_TRY(GR_NEW(mesh->context, mesh->out_edge, mesh->n_edges, error));
    GR_TRY(GR_NEW(mesh->context, mesh->offset, mesh->n_edges * mesh->dim, error));
    find_targets(mesh);
    sort_by_source(mesh);
    gr_parallel_chunks(local->team, mesh->n_edges * mesh->dim, mesh->n_edges, CHUNK_EDGES, offset_chunk, &o);
done:
    return rc;
}

static int32_t make_mesh(graft_mesh *mesh, struct gr_local_mesh *local, graft_error *error)
{
    struct gr_mesh_once once;
    int32_t             rc = gr_mesh_check(local->args, mesh->comm->n_ranks, &local->x, error);

    if (rc == GRAFT_OK && mesh->comm->n_ranks > 1)
        rc = gr_fail(error, GRAFT_ERR_UNSUPPORTED, "a mesh over %d ranks", mesh->comm->n_ranks);
    GR_TRY(gr_comm_agree(mesh->comm, rc, error));
    mesh->kind = local->args->kind;
    mesh->dim = local->args->dim;
    mesh->n_rows = local->args->n_rows;
    if (rc == GRAFT_OK) rc = gr_local_nodes(local, error);
    if (rc == GRAFT_OK) rc = gr_local_edges(local, error);
    if (rc == GRAFT_OK) rc = take_local(mesh, local, error);
    if (rc == GRAFT_OK) rc = complete(mesh, local, error);
    GR_TRY(gr_comm_agree(mesh->comm, rc, error));
    once = (struct gr_mesh_once){ mesh->n_nodes, mesh->n_edges };
    rc = gr_mesh_share(mesh, &once, error);
done:
    return rc;
}

int32_t gr_mesh_create(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                       graft_mesh **mesh, graft_error *error)
{
    struct gr_local_mesh local = { .context = context, .args = args };
    struct gr_comm      *comm = NULL;
    graft_mesh          *made = NULL;
    int32_t              rc = gr_comm_create(context, transport, context->options.halo.timeout, &comm, error);

    GR_TRY(rc);
    rc = GR_NEW(context, made, 1, error);
    if (rc == GRAFT_OK) {
        made->context = context;
        made->comm = comm;
        made->uses = 1;
        local.comm = comm;
        local.team.threads = gr_threads(context, 0);
        comm = NULL;
    }
    GR_TRY(gr_comm_agree(made != NULL ? made->comm : comm, rc, error));
    GR_TRY(make_mesh(made, &local, error));
    *mesh = made;
    made = NULL;
done:
    gr_local_fini(&local);
    gr_mesh_destroy(made);
    gr_comm_destroy(comm);
    return rc;
}

graft_mesh *gr_mesh_use(graft_mesh *mesh)
{
    mesh->uses++;
    return mesh;
}

void gr_mesh_destroy(graft_mesh *mesh)
{
    if (mesh == NULL || --mesh->uses > 0) return;
    void *const blocks[] = { mesh->node_of,     mesh->row_of,      mesh->id,           mesh->node_weight,
                             mesh->row_ptr,     mesh->source,      mesh->target,       mesh->out_ptr,
                             mesh->out_edge,    mesh->edge_weight, mesh->offset,       mesh->halo.start,
                             mesh->halo.place,  mesh->copies.node, mesh->copies.start, mesh->copies.before,
                             mesh->copies.copy, mesh->info };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(mesh->context, blocks[i]);
    gr_comm_destroy(mesh->comm);
    gr_free(mesh->context, mesh);
}
