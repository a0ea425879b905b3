/* A mesh for networks of kind mgn, divided by hand among ranks with ghosts or shared nodes, by blocks or by a hash.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MGN_PARTS_H
#define MGN_PARTS_H

#include "harness/mgn_scene.h"
#include "harness/ranks.h"

enum { NODES = 61, MOST = 12 };

/* The data that all ranks share: the mesh, the way to divide it, and the results of one rank for comparison. */
struct world {
    struct mgn_scene scene; /* the scene with the whole mesh on one rank */
    graft_mesh_kind  kind;
    int              in_blocks; /* whether ranks have blocks of consecutive nodes; otherwise a hash assigns the nodes */
    const char      *codec;     /* value of option halo.codec; NULL for unquantized messages */
    const char      *module;    /* name or file of the dense module; NULL for the reference */
    int              exact;
    int64_t          fail_at;                 /* which allocation of the network fails on fail_rank */
    double          *output, *gradient, loss; /* results on one rank */
    double           found[RANKS_MOST][NODES * 4], *gradients[RANKS_MOST], losses[RANKS_MOST];
    int64_t          bytes_sent[RANKS_MOST];
    int              loops_multiply[RANKS_MOST]; /* whether plain loops computed the dense products of each rank */
};

/* The part of the mesh on one rank. */
struct rank_part {
    struct world  *world;
    graft_mesh     mesh;
    int32_t        global[NODES]; /* number of each of its nodes in the whole mesh */
    /* For each rank the local numbers of all nodes; -1 if the rank does not have the node. */
    int32_t        local[RANKS_MOST][NODES];
    int32_t        edge[NODES * (9 + MOST)]; /* number of each of its edges in the whole mesh */
    double         node_weight[NODES];
    void          *nodes, *edges;
    struct gr_mgn *mgn;
};

static inline int32_t rank_of(const struct world *w, int32_t n_ranks, int64_t node)
{
    return (int32_t)(w->in_blocks ? node * n_ranks / NODES : (node * 2654435761 >> 7) % n_ranks);
}

/* Whether a rank has edge k. With shared nodes an edge belongs to the owner of its source, and some edges also to the
 * owner of the target. */
static inline int edge_is_on(const struct world *w, int32_t n_ranks, int64_t k, int32_t rank)
{
    const graft_mesh *whole = &w->scene.mesh;
    const int32_t     of_source = rank_of(w, n_ranks, whole->edges.source[k]),
                  of_target = rank_of(w, n_ranks, whole->edges.target[k]);

    if (w->kind == GRAFT_MESH_GHOSTS) return of_target == rank;
    return of_source == rank || (k % 3 == 0 && of_target == rank);
}

static inline int node_is_on(const struct world *w, int32_t n_ranks, int64_t node, int32_t rank)
{
    const graft_mesh *whole = &w->scene.mesh;
    int               is_on = rank_of(w, n_ranks, node) == rank;

    for (int64_t k = 0; k < whole->n_edges && w->kind == GRAFT_MESH_SHARED; k++)
        if (whole->edges.source[k] == node || whole->edges.target[k] == node) is_on |= edge_is_on(w, n_ranks, k, rank);
    return is_on;
}

static inline void number_nodes(struct rank_part *p, int32_t n_ranks, int32_t rank)
{
    for (int32_t q = 0; q < n_ranks; q++) {
        int32_t count = 0;

        for (int32_t i = 0; i < NODES; i++) p->local[q][i] = node_is_on(p->world, n_ranks, i, q) ? count++ : -1;
        if (q == rank) p->mesh.n_nodes = p->mesh.n_rows = p->mesh.n_sources = count;
    }
    for (int32_t i = 0; i < NODES; i++) {
        int on = 0;

        for (int32_t q = 0; q < n_ranks; q++) on += p->local[q][i] >= 0;
        if (p->local[rank][i] < 0) continue;
        p->global[p->local[rank][i]] = i;
        p->node_weight[p->local[rank][i]] = 1.0 / on;
    }
}

/* Whether a rank has a row for a node that it does not own: a ghost is the source of one of its edges, a shared node is
 * a copy. */
static inline int needs_row(const struct rank_part *p, int32_t n_ranks, int32_t rank, int32_t q, int32_t node)
{
    const graft_mesh *whole = &p->world->scene.mesh;

    if (q == rank || p->local[q][node] < 0) return 0;
    if (p->world->kind == GRAFT_MESH_SHARED) return p->local[rank][node] >= 0;
    for (int64_t k = 0; k < whole->n_edges; k++)
        if (whole->edges.source[k] == node && edge_is_on(p->world, n_ranks, k, rank)) return 1;
    return 0;
}

static inline void make_rank_halo(struct rank_part *p, int32_t n_ranks, int32_t rank, int32_t *halo_row)
{
    struct gr_halo *halo = &p->mesh.halo;

    halo->start = calloc((size_t)n_ranks + 1, sizeof *halo->start);
    halo->place = calloc((size_t)(n_ranks * NODES) + 1, sizeof *halo->place);
    for (int32_t q = 0; q < n_ranks; q++) {
        for (int32_t i = 0; i < NODES; i++) {
            if (!needs_row(p, n_ranks, rank, q, i)) continue;
            halo_row[q * NODES + i] = (int32_t)halo->count;
            halo->place[halo->count++] = p->local[q][i];
        }
        halo->start[q + 1] = halo->count;
    }
}

static inline void make_rank_copies(struct rank_part *p, int32_t n_ranks, int32_t rank, const int32_t *halo_row)
{
    struct gr_mesh_copies *copies = &p->mesh.copies;
    int64_t                at = 0;

    copies->node = calloc(NODES + 1, sizeof *copies->node);
    copies->start = calloc(NODES + 1, sizeof *copies->start);
    copies->before = calloc(NODES + 1, sizeof *copies->before);
    copies->copy = calloc((size_t)p->mesh.halo.count + 1, sizeof *copies->copy);
    for (int32_t i = 0; i < NODES && p->world->kind == GRAFT_MESH_SHARED; i++) {
        int is_shared = 0;

        if (p->local[rank][i] < 0) continue;
        for (int32_t q = 0; q < n_ranks; q++) {
            if (q == rank || p->local[q][i] < 0) continue;
            is_shared = 1;
            copies->before[copies->count] += q < rank;
            copies->copy[at++] = halo_row[q * NODES + i];
        }
        if (!is_shared) continue;
        copies->node[copies->count++] = p->local[rank][i];
        copies->start[copies->count] = at;
    }
}

static inline void make_rank_edges(struct rank_part *p, int32_t n_ranks, int32_t rank, const int32_t *halo_row)
{
    const struct world *w = p->world;
    const graft_mesh   *whole = &w->scene.mesh;
    graft_mesh         *mesh = &p->mesh;
    int32_t            *place;

    mesh->edges.row_ptr = calloc(NODES + 1, sizeof *mesh->edges.row_ptr);
    mesh->edges.source = calloc((size_t)whole->n_edges + 1, sizeof *mesh->edges.source);
    mesh->edges.target = calloc((size_t)whole->n_edges + 1, sizeof *mesh->edges.target);
    mesh->edges.ranks = calloc((size_t)whole->n_edges + 1, sizeof *mesh->edges.ranks);
    mesh->edges.out_edge = calloc((size_t)whole->n_edges + 1, sizeof *mesh->edges.out_edge);
    for (int64_t k = 0; k < whole->n_edges; k++) {
        const int32_t source = whole->edges.source[k], owner = rank_of(w, n_ranks, source);
        int32_t       on = 0;

        for (int32_t q = 0; q < n_ranks; q++) on += edge_is_on(w, n_ranks, k, q);
        if (!edge_is_on(w, n_ranks, k, rank)) continue;
        mesh->edges.source[mesh->n_edges] = p->local[rank][source] >= 0
                                                ? p->local[rank][source]
                                                : (int32_t)mesh->n_nodes + halo_row[owner * NODES + source];
        mesh->edges.target[mesh->n_edges] = p->local[rank][whole->edges.target[k]];
        mesh->edges.ranks[mesh->n_edges] = on;
        p->edge[mesh->n_edges] = (int32_t)k;
        mesh->edges.row_ptr[mesh->edges.target[mesh->n_edges++] + 1]++;
    }
    for (int64_t i = 0; i < mesh->n_nodes; i++) mesh->edges.row_ptr[i + 1] += mesh->edges.row_ptr[i];
    mesh->edges.out_ptr = calloc((size_t)mesh->n_sources + 2, sizeof *mesh->edges.out_ptr);
    place = calloc((size_t)mesh->n_sources + 2, sizeof *place);
    for (int64_t k = 0; k < mesh->n_edges; k++) mesh->edges.out_ptr[mesh->edges.source[k] + 1]++;
    for (int64_t i = 0; i < mesh->n_sources; i++) mesh->edges.out_ptr[i + 1] += mesh->edges.out_ptr[i];
    memcpy(place, mesh->edges.out_ptr, (size_t)(mesh->n_sources + 1) * sizeof *place);
    for (int64_t k = 0; k < mesh->n_edges; k++) mesh->edges.out_edge[place[mesh->edges.source[k]]++] = (int32_t)k;
    free(place);
}

/* Copy the rows that a rank has out of an array of the whole mesh, in the element type of the network. */
static inline void *take_part_rows(const struct world *w, const double *whole, const int32_t *which, int64_t n,
                                   int64_t columns)
{
    double *rows = malloc((size_t)(n * columns + 1) * sizeof *rows);
    void   *converted;

    for (int64_t i = 0; i < n * columns; i++) rows[i] = whole[which[i / columns] * columns + i % columns];
    converted = mgn_scene_convert(rows, n * columns, w->scene.dtype);
    free(rows);
    return converted;
}

static inline void rank_part_init(struct rank_part *p, struct world *w, const struct rank *r)
{
    int32_t *halo_row = calloc((size_t)r->n_ranks * NODES, sizeof *halo_row);

    memset(p, 0, sizeof *p);
    p->world = w;
    p->mesh.context = r->context;
    p->mesh.comm = r->comm;
    p->mesh.kind = w->kind;
    number_nodes(p, r->n_ranks, r->rank);
    make_rank_halo(p, r->n_ranks, r->rank, halo_row);
    if (w->kind == GRAFT_MESH_GHOSTS) p->mesh.n_sources += p->mesh.halo.count;
    make_rank_copies(p, r->n_ranks, r->rank, halo_row);
    make_rank_edges(p, r->n_ranks, r->rank, halo_row);
    p->nodes = take_part_rows(w, w->scene.nodes, p->global, p->mesh.n_nodes, w->scene.what.n_node_in);
    p->edges = take_part_rows(w, w->scene.edges, p->edge, p->mesh.n_edges, w->scene.what.n_edge_in);
    free(halo_row);
}

static inline void rank_part_fini(struct rank_part *p)
{
    gr_mgn_destroy(p->mgn);
    free(p->mesh.edges.row_ptr);
    free(p->mesh.edges.source);
    free(p->mesh.edges.target);
    free(p->mesh.edges.ranks);
    free(p->mesh.edges.out_ptr);
    free(p->mesh.edges.out_edge);
    free(p->mesh.halo.start);
    free(p->mesh.halo.place);
    free(p->mesh.copies.node);
    free(p->mesh.copies.start);
    free(p->mesh.copies.before);
    free(p->mesh.copies.copy);
    free(p->nodes);
    free(p->edges);
}

#endif
