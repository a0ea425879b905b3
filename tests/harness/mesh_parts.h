/* Meshes for tests, cut into the parts of ranks; the nodes and edges of each rank, from the whole mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_PARTS_H
#define MESH_PARTS_H

#include "harness/meshes.h"

/** Bits of the ways to cut a mesh. */
enum {
    CUT_SHARED = 1,   /* kind SHARED, else GHOSTS */
    CUT_RANDOM = 2,   /* ranks of cells are drawn, else strips of cells in their order */
    CUT_OWNERS = 4,   /* GHOSTS: owners are given, and drawn from all ranks */
    CUT_LAYER = 8,    /* ranks have all cells that touch their nodes, too */
    CUT_REPEATS = 16, /* SHARED: each corner of a cell has a row, as in spectral elements */
    CUT_EDGES = 32,   /* edges are given instead of cells, the edges of a cell to its rank */
    CUT_EMPTY = 64,   /* the rank in the middle has no cells, and no nodes */
    CUT_I64 = 128     /* indices of nodes are int64 and begin with 1, coordinates are in columns */
};

struct mesh_cut {
    const struct test_mesh *mesh;
    int32_t                 n_ranks;
    int                     how;
    int32_t                *cell_rank; /* [n_cells] */
    int32_t                *owner;     /* [n_nodes] with GHOSTS */
    uint8_t                *has_cell;  /* [n_ranks x n_cells] */
    uint8_t                *has_node;  /* [n_ranks x n_nodes] a rank has a row for the node */
    uint8_t                *has_edge;  /* [n_ranks x n_edges] whether a rank gives the edge */
};

void mesh_cut_init(struct mesh_cut *cut, const struct test_mesh *mesh, struct sample *sample, int32_t n_ranks, int how);
void mesh_cut_fini(struct mesh_cut *cut);

/** The number of ranks with a node, or an edge. */
int mesh_cut_node_ranks(const struct mesh_cut *cut, int64_t node);
int mesh_cut_edge_ranks(const struct mesh_cut *cut, int64_t edge);

/** The arguments of create() on one rank. */
struct mesh_part {
    graft_mesh_args args;
    graft_field     x;
    double         *coordinates;
    int64_t        *id;
    int32_t        *owner, *node; /* [n_rows] `node`: of the whole mesh, for each row */
    uint8_t        *type;
    void           *cell_nodes, *sources, *targets;
};

void mesh_part_init(struct mesh_part *part, const struct mesh_cut *cut, int32_t rank);
void mesh_part_fini(struct mesh_part *part);

/** The node of the whole mesh with this id, or -1. */
int32_t test_mesh_node(const struct test_mesh *mesh, int64_t id);

#endif
