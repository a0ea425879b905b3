/* The steps of gr_mesh_create().
 *
 * mesh.c       the steps in order, and steps for all meshes: targets, edges by source
 * check.c      the arguments of a rank
 * nodes.c      distinct nodes of a rank, and their indices by id
 * adjacency.c  edges of cells, or of the host, each once, by target and by the id of their source
 * meeting.c    which nodes other ranks have too; nodes with one id at distant positions
 * ghosts.c     owners, edges of owners, and their halo
 * shared.c     copies of shared nodes, weights
 * field.c      checks of the host's arrays of values
 * explain.c    sizes, and the text of explain()
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "base/memory.h"
#include "base/team.h"
#include "mesh/mesh.h"

enum { GR_MESH_CHUNK = GR_LIMIT(4096, 2) }; /* nodes or edges of a chunk */

/** A hash table with open addressing that finds nodes by their ids. A zeroed table is empty. */
struct gr_id_table {
    const int64_t *id;   /* id of each node, borrowed */
    int32_t       *slot; /* [mask + 1] index of a node + 1; 0: free */
    uint64_t       mask;
    int            shift;
};

/** Create a table with space for `most` ids. \return OK; ERR_NOMEM. */
int32_t gr_mesh_id_table_init(const graft_context *context, struct gr_id_table *table, const int64_t *id, int64_t most,
                              graft_error *error);
void    gr_mesh_id_table_fini(const graft_context *context, struct gr_id_table *table);

/** Find the node with this id. \return the node, or -1. */
int32_t gr_mesh_id_table_find(const struct gr_id_table *table, int64_t id);

/** Find the node with the id of `node`; if there is none, add `node`. \return the node in the table. */
int32_t gr_mesh_id_table_add(struct gr_id_table *table, int32_t node);

/** The part of a mesh on this rank, with local indices: distinct nodes, including ghosts, in the order of their first
 *  rows, and the edges between them. */
struct gr_local_mesh {
    graft_context         *context;
    struct gr_comm        *comm;
    const graft_mesh_args *args;
    graft_field            x; /* coordinates */
    struct gr_team         team;

    int64_t            n;       /* number of nodes */
    int32_t           *node_of; /* [n_rows] node of each row */
    int32_t           *row_of;  /* [n] first row of each node */
    int64_t           *id;      /* [n] id of each node */
    int                rises;   /* whether ids ascend with the indices of nodes */
    struct gr_id_table table;

    int64_t *row_ptr; /* [n + 1] offsets of the edges to each node, which are sorted by the id of their source */
    int32_t *source;  /* [row_ptr[n]] source of each edge */
};

/** Nodes that this rank shares with others. For k from start[q] to start[q + 1] - 1, node[k] of this rank is node
 *  place[k] of rank q, place being its local index there, in ascending order. Rank q has the same pairs. */
struct gr_meeting {
    int64_t       *start;   /* [n_ranks + 1] offsets of the pairs with each rank */
    int32_t       *node;    /* [start[n_ranks]] local index of the node */
    int32_t       *place;   /* [start[n_ranks]] local index of the node on the other rank */
    uint8_t       *is_peer; /* [n_ranks] whether there is a pair with each rank */
    struct gr_pool pool;    /* owner of these arrays */
};

/** Find the nodes that this rank shares with others. Compares the arguments of all ranks and the boxes around their
 *  nodes, and exchanges the nodes in boxes that intersect. Collective. Always call gr_pool_fini() of its pool. \return
 *  OK; ERR_ARG (ranks disagree); ERR_FORMAT (owners or coordinates of a node disagree); ERR_NOMEM: the same on all
 *  ranks; ERR_PEER. */
int32_t gr_mesh_local_meet(const struct gr_local_mesh *local, struct gr_meeting *meeting, graft_error *error);

/** The contribution of a rank to the sizes of the whole mesh: its nodes and edges that no lower rank has. */
struct gr_mesh_once {
    int64_t n_nodes, n_edges;
};

/** Make the nodes, the edges and the halo of a mesh of either kind from the nodes and edges of this rank, whose arrays
 *  may be moved to the mesh. *once receives the rank's contribution to the sizes of the mesh. Collective. \return OK;
 *  ERR_FORMAT (an owner that does not have a node); ERR_UNSUPPORTED (sizes); ERR_NOMEM: the same on all ranks;
 *  ERR_PEER. */
int32_t gr_mesh_take_ghosts(graft_mesh *mesh, struct gr_local_mesh *local, const struct gr_meeting *meeting,
                            struct gr_mesh_once *once, graft_error *error);
int32_t gr_mesh_take_shared(graft_mesh *mesh, struct gr_local_mesh *local, const struct gr_meeting *meeting,
                            struct gr_mesh_once *once, graft_error *error);

/** Read element i of an array of indices, or of ids. */
static inline int64_t gr_index_at(const void *array, graft_dtype type, int64_t i)
{
    return type == GRAFT_I32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

/** Check the arguments of this rank, except for the checks of gr_mesh_local_find_nodes() and
 *  gr_mesh_local_find_edges(), and read the coordinates. Not collective. \return as graft_mesh_api.create(). */
int32_t gr_mesh_check(const graft_mesh_args *args, int32_t n_ranks, graft_field *x, graft_error *error);

/** Find the distinct nodes. Not collective. \return OK; ERR_FORMAT (GHOSTS: an id that repeats); ERR_NOMEM. */
int32_t gr_mesh_local_find_nodes(struct gr_local_mesh *local, graft_error *error);

/** Find the edges between the nodes. Not collective. \return OK; ERR_FORMAT (a row out of range, an unknown type, a
 *  node twice in a cell, a loop); ERR_UNSUPPORTED (too many edges); ERR_NOMEM. */
int32_t gr_mesh_local_find_edges(struct gr_local_mesh *local, graft_error *error);

/** Sort the sources of each row by id, and drop repeated ones. `row_ptr` is updated, and `*source` may be reallocated.
 *  `id` has the ids of sources; NULL: ids ascend with the indices of nodes.
 *  \return OK; ERR_UNSUPPORTED (too many edges); ERR_NOMEM. */
int32_t gr_mesh_adjacency_tidy(const graft_context *context, struct gr_team team, int64_t n, const int64_t *id,
                               int64_t *row_ptr, int32_t **source, graft_error *error);

/** Free all but the arguments. May be called again. */
void gr_mesh_local_fini(struct gr_local_mesh *local);

/** Set mesh->info of all ranks. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_mesh_share(graft_mesh *mesh, struct gr_team team, const struct gr_mesh_once *once, graft_error *error);
