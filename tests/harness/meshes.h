/* Meshes for tests: grids of lines, triangles, quadrilaterals, tetrahedra, hexahedra and mixed cells, whose nodes have
 * ids in random order. The edges are found by means of tables and a sort that share no code with the library.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESHES_H
#define MESHES_H

#include "draft/graft_mesh.h"
#include "oracle/sample.h"

enum mesh_shape { SHAPE_LINES, SHAPE_TRIANGLES, SHAPE_QUADS, SHAPE_TETS, SHAPE_HEXES, SHAPE_MIXED, SHAPES };
extern const char *const mesh_shape_name[SHAPES];

enum { MESH_CORNERS = 8 };

struct mesh_cell {
    uint8_t type;
    int32_t count, node[MESH_CORNERS];
    double  x[MESH_CORNERS][3]; /* positions of the corners; in a periodic mesh a node has several images */
};

/** A directed edge between nodes. It is counted once, even if several cells have it. */
struct mesh_edge {
    int32_t target, source;
};

/** A whole mesh, before it is divided into the parts of ranks. */
struct test_mesh {
    enum mesh_shape   shape;
    int32_t           dim;
    double            period[3];
    int64_t           n_nodes, n_cells, n_edges;
    int64_t          *id;   /* [n_nodes] id of each node */
    double           *x;    /* [n_nodes x dim] position of each node; of a periodic node the position of one image */
    struct mesh_cell *cell; /* [n_cells] */
    struct mesh_edge *edge; /* [n_edges] sorted by target, then by the id of the source */
};

/** Make a mesh. `side` is the number of cells in each direction. `periodic` identifies the two ends of the first
 * direction, and then `side` must be at least 3. Ids are below `top`. */
void test_mesh_init(struct test_mesh *mesh, struct sample *sample, enum mesh_shape shape, int side, int periodic,
                    int64_t top);
void test_mesh_fini(struct test_mesh *mesh);

/** List the edges of one cell in both directions. The result is their number. */
int test_mesh_cell_edges(const struct mesh_cell *cell, struct mesh_edge *edges);

/** Component c of the vector from the target of an edge to the nearest image of its source. */
double test_mesh_offset(const struct test_mesh *mesh, const struct mesh_edge *edge, int c);

#endif
