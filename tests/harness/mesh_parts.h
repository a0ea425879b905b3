/* Divides a mesh into the parts of ranks. The expected nodes and edges of each rank are computed from the whole mesh by
 * plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_PARTS_H
#define MESH_PARTS_H

#include "harness/meshes.h"

/** The ways to divide a mesh, as bits that can be combined. */
enum {
    CUT_SHARED = 1, /* ranks share nodes (kind SHARED); without this bit they have ghost copies of them (kind GHOSTS) */
    CUT_RANDOM = 2, /* each cell belongs to a random rank; without this bit ranks have consecutive cells */
    CUT_OWNERS = 4, /* with GHOSTS: the host passes the owners of nodes, which are random ranks */
    CUT_LAYER = 8,  /* each rank also passes all cells that touch its nodes */
    CUT_REPEATS = 16, /* with SHARED: each corner of a cell has its own row, as in spectral elements */
    CUT_EDGES = 32,   /* the host passes edges instead of cells; a rank passes the edges of its cells */
    CUT_EMPTY = 64,   /* the rank in the middle has neither cells nor nodes */
    CUT_I64 = 128     /* node indices are int64 and begin with 1, and coordinates are stored column by column */
};

struct mesh_cut {
    const struct test_mesh *mesh;
    int32_t                 n_ranks;
    int                     how;
    int32_t                *cell_rank; /* [n_cells] the rank that owns each cell */
    int32_t                *owner;     /* [n_nodes] owner of each node, with GHOSTS */
    uint8_t                *has_cell;  /* [n_ranks x n_cells] whether the rank passes the cell to create() */
    uint8_t                *has_node;  /* [n_ranks x n_nodes] whether the rank has a row for the node */
    uint8_t                *has_edge;  /* [n_ranks x n_edges] whether the rank passes the edge to create() */
};

void mesh_cut_init(struct mesh_cut *cut, const struct test_mesh *mesh, struct sample *sample, int32_t n_ranks, int how);
void mesh_cut_fini(struct mesh_cut *cut);

/** The number of ranks that have a node, and the number of ranks that pass an edge. */
int mesh_cut_node_ranks(const struct mesh_cut *cut, int64_t node);
int mesh_cut_edge_ranks(const struct mesh_cut *cut, int64_t edge);

/** The arguments of graft_mesh create() on one rank. */
struct mesh_part {
    graft_mesh_args args;
    graft_field     x;
    double         *coordinates;
    int64_t        *id;
    int32_t        *owner, *node; /* [n_rows] owner of each row, and the number of its node in the whole mesh */
    uint8_t        *type;
    void           *cell_nodes, *sources, *targets;
};

void mesh_part_init(struct mesh_part *part, const struct mesh_cut *cut, int32_t rank);
void mesh_part_fini(struct mesh_part *part);

/** The number of the node with this id in the whole mesh, or -1. */
int32_t test_mesh_node(const struct test_mesh *mesh, int64_t id);

#endif
