/* Sizes of a mesh, its view for the host, and the text of explain().
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "base/text.h"
#include "comm/collective.h"
#include "mesh/build.h"

#include <math.h>
#include <stdio.h>

/* The arguments of a search for the longest edge. */
struct longest {
    const graft_mesh *mesh;
    double           *square; /* [chunks] square of the length of the longest edge in each chunk */
};

static void longest_of_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct longest *l = arg;

    for (int64_t e = begin; e < end; e++) {
        double square = 0;

        for (int c = 0; c < l->mesh->space.dim; c++)
            square += gr_mesh_offset(l->mesh, e, c) * gr_mesh_offset(l->mesh, e, c);
        if (square > l->square[chunk]) l->square[chunk] = square;
    }
}

static int32_t find_longest(const graft_mesh *mesh, struct gr_team team, double *longest, graft_error *error)
{
    const int64_t  count = gr_chunk_count(mesh->n_edges, GR_MESH_CHUNK);
    struct longest l = { .mesh = mesh };
    int32_t        rc = GR_NEW(mesh->context, l.square, count, error);

    if (rc < 0) return rc;
    gr_parallel_chunks(team, mesh->n_edges * mesh->space.dim, mesh->n_edges, GR_MESH_CHUNK, longest_of_chunk, &l);
    *longest = 0;
    for (int64_t k = 0; k < count; k++) *longest = fmax(*longest, sqrt(l.square[k]));
    gr_free(mesh->context, l.square);
    return GRAFT_OK;
}

/* Count the ranks that exchange rows with this rank. */
static int32_t count_neighbours(const graft_mesh *mesh, int64_t *sent, int64_t *received, int32_t *count,
                                graft_error *error)
{
    const int32_t n_ranks = mesh->comm->n_ranks;
    int32_t       rc;

    for (int32_t q = 0; q < n_ranks; q++) received[q] = mesh->halo.start[q + 1] - mesh->halo.start[q];
    rc = gr_comm_alltoall(mesh->comm, received, sizeof *received, sent, error);
    *count = 0;
    for (int32_t q = 0; q < n_ranks; q++) *count += received[q] > 0 || sent[q] > 0;
    return rc;
}

static void add_up(graft_mesh *mesh, const struct gr_mesh_once *once)
{
    const int32_t    n_ranks = mesh->comm->n_ranks;
    graft_mesh_info *all = &mesh->info[n_ranks];

    *all = (graft_mesh_info){ .size = sizeof *all };
    for (int32_t p = 0; p < n_ranks; p++) {
        const graft_mesh_info *i = &mesh->info[p];

        if (i->n_neighbours > all->n_neighbours) all->n_neighbours = i->n_neighbours;
        if (i->longest > all->longest) all->longest = i->longest;
        all->n_nodes += once[p].n_nodes;
        all->n_edges += once[p].n_edges;
        all->n_halo += i->n_halo;
        all->bytes += i->bytes;
    }
    for (int32_t p = 0; p < n_ranks; p++) mesh->info[p].longest = all->longest;
}

int32_t gr_mesh_share(graft_mesh *mesh, struct gr_team team, const struct gr_mesh_once *once, graft_error *error)
{
    const int32_t        n_ranks = mesh->comm->n_ranks;
    graft_mesh_info      mine = { .size = sizeof mine };
    struct gr_mesh_once *all = NULL;
    int64_t             *counts = NULL;
    int32_t              rc = GR_POOL_NEW(mesh->context, &mesh->pool, mesh->info, (int64_t)n_ranks + 1, error);

    if (rc == GRAFT_OK) rc = GR_NEW(mesh->context, all, n_ranks, error);
    if (rc == GRAFT_OK) rc = GR_NEW(mesh->context, counts, 2 * (int64_t)n_ranks, error);
    if (rc == GRAFT_OK) rc = find_longest(mesh, team, &mine.longest, error);
    GR_TRY_DONE(gr_comm_agree(mesh->comm, rc, error));
    mine.n_nodes = mesh->n_nodes;
    mine.n_edges = mesh->n_edges;
    mine.n_halo = mesh->halo.count;
    mine.bytes = gr_memory_bytes(mesh) + mesh->pool.bytes + gr_memory_bytes(mesh->edges.source);
    GR_TRY_DONE(count_neighbours(mesh, counts, counts + n_ranks, &mine.n_neighbours, error));
    GR_TRY_DONE(gr_comm_allgather(mesh->comm, &mine, sizeof mine, mesh->info, error));
    GR_TRY_DONE(gr_comm_allgather(mesh->comm, once, sizeof *once, all, error));
    add_up(mesh, all);
done:
    gr_free(mesh->context, all);
    gr_free(mesh->context, counts);
    return rc;
}

int32_t gr_mesh_info(const graft_mesh *mesh, int32_t rank, graft_mesh_info *info, graft_error *error)
{
    const int32_t n_ranks = mesh->comm->n_ranks;

    if (rank < -1 || rank >= n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 (all) to %d", rank, n_ranks - 1);
    *info = mesh->info[rank < 0 ? n_ranks : rank];
    return GRAFT_OK;
}

void gr_mesh_view(const graft_mesh *mesh, graft_mesh_view *view)
{
    *view = (graft_mesh_view){ .size = sizeof *view,
                               .dim = mesh->space.dim,
                               .n_rows = mesh->n_rows,
                               .n_nodes = mesh->n_nodes,
                               .n_halo = mesh->halo.count,
                               .n_edges = mesh->n_edges,
                               .n_sources = mesh->n_sources,
                               .node_of = mesh->node_of,
                               .row_of = mesh->row_of,
                               .id = mesh->id,
                               .node_weight = mesh->node_weight,
                               .row_ptr = mesh->edges.row_ptr,
                               .source = mesh->edges.source,
                               .edge_ranks = mesh->edges.ranks,
                               .position = mesh->space.position,
                               .halo_start = mesh->halo.start,
                               .halo_node = mesh->halo.place };
}

static void add_mesh_line(struct gr_text *text, const char *name, const graft_mesh_info *i)
{
    gr_text_add(text, "%-6s %12lld %14lld %12lld %10d %10.1f\n", name, (long long)i->n_nodes, (long long)i->n_edges,
                (long long)i->n_halo, i->n_neighbours, (double)i->bytes / 1e6);
}

void gr_mesh_explain(const graft_mesh *mesh, char *text, uint64_t capacity)
{
    const int32_t  n_ranks = mesh->comm->n_ranks;
    struct gr_text t = { text, capacity };
    char           name[16];

    gr_text_add(&t, "mesh of %d dimensions, %s, longest edge %.6g\n", mesh->space.dim,
                mesh->kind == GRAFT_MESH_SHARED ? "ranks share nodes" : "each node has an owner",
                mesh->info[n_ranks].longest);
    gr_text_add(&t, "%-6s %12s %14s %12s %10s %10s\n", "rank", "nodes", "edges", "halo", "neighbours", "MB");
    for (int32_t p = 0; p < n_ranks; p++) {
        snprintf(name, sizeof name, "%d", p);
        add_mesh_line(&t, name, &mesh->info[p]);
    }
    add_mesh_line(&t, "all", &mesh->info[n_ranks]);
}
