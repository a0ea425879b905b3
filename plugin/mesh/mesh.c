/* Creates a mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "comm/collective.h"
#include "comm/options.h"
#include "mesh/build.h"

#include <math.h>
#include <string.h>

static void find_targets(graft_mesh *mesh)
{
    for (int64_t i = 0; i < mesh->n_nodes; i++)
        for (int64_t e = mesh->edges.row_ptr[i]; e < mesh->edges.row_ptr[i + 1]; e++)
            mesh->edges.target[e] = (int32_t)i;
}

/* Sort the edges by source with a counting sort. */
static void sort_by_source(graft_mesh *mesh)
{
    int32_t *next = mesh->edges.out_ptr;

    for (int64_t e = 0; e < mesh->n_edges; e++) next[mesh->edges.source[e] + 1]++;
    for (int64_t i = 0; i < mesh->n_sources; i++) next[i + 1] += next[i];
    for (int64_t e = 0; e < mesh->n_edges; e++) mesh->edges.out_edge[next[mesh->edges.source[e]]++] = (int32_t)e;
    memmove(next + 1, next, (size_t)mesh->n_sources * sizeof *next);
    next[0] = 0;
}

struct positions {
    graft_mesh        *mesh;
    const graft_field *x;
};

static void position_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct positions *p = arg;
    const graft_mesh       *mesh = p->mesh;

    for (int64_t i = begin; i < end; i++)
        for (int c = 0; c < mesh->space.dim; c++)
            mesh->space.position[i * mesh->space.dim + c] = gr_mesh_field_at(p->x, mesh->row_of[i], c);
}

/* Check that no edge is half a period long: ranks could round its relative position to either of two images. */
static int32_t check_images(const graft_mesh *mesh, graft_error *error)
{
    for (int c = 0; c < mesh->space.dim; c++)
        for (int64_t e = 0; e < mesh->n_edges && mesh->space.period[c] > 0; e++) {
            const double  offset = fabs(gr_mesh_offset(mesh, e, c)), period = mesh->space.period[c];
            const int64_t node = mesh->edges.target[e];

            if (fabs(offset - 0.5 * period) > 1e-9 * period) continue;
            return gr_fail(
                error, GRAFT_ERR_FORMAT,
                "row %lld, node %lld: an edge to it has length %.10g in direction %d, half of its period, so "
                "that two images are nearest; a periodic direction needs three cells at least",
                (long long)mesh->row_of[node] + mesh->index_base, (long long)mesh->id[node], offset, c);
        }
    return GRAFT_OK;
}

static int32_t complete(graft_mesh *mesh, const struct gr_local_mesh *local, graft_error *error)
{
    struct positions p = { mesh, &local->x };

    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->edges.target, mesh->n_edges, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->edges.out_ptr, mesh->n_sources + 1, error));
    GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->edges.out_edge, mesh->n_edges, error));
    if (mesh->space.position == NULL) /* with ghosts it exists, and has those of the halo */
        GR_TRY(GR_POOL_NEW(mesh->context, &mesh->pool, mesh->space.position, mesh->n_sources * mesh->space.dim, error));
    find_targets(mesh);
    sort_by_source(mesh);
    gr_parallel_rows(local->team, mesh->n_nodes * mesh->space.dim, mesh->n_nodes, GR_MESH_CHUNK, position_chunk, &p);
    return check_images(mesh, error);
}

/* Do the part of gr_mesh_create() that needs no other rank. */
static int32_t read_local(graft_mesh *mesh, struct gr_local_mesh *local, graft_error *error)
{
    GR_TRY(gr_mesh_check(local->args, mesh->comm->n_ranks, &local->x, error));
    mesh->kind = local->args->kind;
    mesh->space.dim = local->args->dim;
    mesh->index_base = local->args->index_base;
    mesh->n_rows = local->args->n_rows;
    memcpy(mesh->space.period, local->args->period, sizeof mesh->space.period);
    return gr_mesh_local_find_nodes(local, error);
}

static int32_t make_mesh(graft_mesh *mesh, struct gr_local_mesh *local, graft_error *error)
{
    struct gr_meeting   meeting = { 0 };
    struct gr_mesh_once once;
    int32_t             rc = gr_comm_agree(mesh->comm, read_local(mesh, local, error), error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_mesh_local_meet(local, &meeting, error));
    GR_TRY_DONE(gr_comm_agree(mesh->comm, gr_mesh_local_find_edges(local, error), error));
    GR_TRY_DONE(mesh->kind == GRAFT_MESH_SHARED || mesh->comm->n_ranks == 1
                    ? gr_mesh_take_shared(mesh, local, &meeting, &once, error)
                    : gr_mesh_take_ghosts(mesh, local, &meeting, &once, error));
    gr_mesh_local_fini(local);
    GR_TRY_DONE(gr_comm_agree(mesh->comm, complete(mesh, local, error), error));
    GR_ASSERT(gr_csr_halo_is_valid(&mesh->halo, mesh->comm->n_ranks, mesh->comm->rank));
    rc = gr_mesh_share(mesh, local->team, &once, error);
done:
    gr_pool_fini(local->context, &meeting.pool);
    return rc;
}

int32_t gr_mesh_create(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                       graft_mesh **mesh, graft_error *error)
{
    struct gr_local_mesh local = { .context = context, .args = args };
    struct gr_comm      *comm = NULL;
    graft_mesh          *made = NULL;
    int32_t              rc = gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, error);

    GR_TRY_DONE(rc);
    rc = GR_NEW(context, made, 1, error);
    if (rc == GRAFT_OK) {
        made->context = context;
        made->comm = comm;
        made->users.count = 1;
        local.comm = comm;
        local.team.threads = gr_context_threads(context, 0);
        comm = NULL;
    }
    GR_TRY_DONE(gr_comm_agree(made != NULL ? made->comm : comm, rc, error));
    GR_TRY_DONE(make_mesh(made, &local, error));
    *mesh = made;
    made = NULL;
done:
    gr_mesh_local_fini(&local);
    gr_mesh_destroy(made);
    gr_comm_destroy(comm);
    return rc;
}

graft_mesh *gr_mesh_use(graft_mesh *mesh)
{
    mesh->users.count++;
    return mesh;
}

void gr_mesh_destroy(graft_mesh *mesh)
{
    if (mesh == NULL || --mesh->users.count > 0) return;
    gr_free(mesh->context, mesh->edges.source);
    gr_pool_fini(mesh->context, &mesh->pool);
    gr_comm_destroy(mesh->comm);
    gr_free(mesh->context, mesh);
}
