/* Meshes for tests: grids of lines, triangles, quads, tetrahedra, hexahedra and mixed cells, with ids in no order, and
 * the edges between their nodes from tables and a sort that share no code with the library.
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
    double  x[MESH_CORNERS][3]; /* of its corners: in a periodic mesh a node has several images */
};

/** A directed edge; its weight counts it once, even if several cells have it. */
struct mesh_edge {
    int32_t target, source;
};

/** A whole mesh. */
struct test_mesh {
    enum mesh_shape   shape;
    int32_t           dim;
    double            period[3];
    int64_t           n_nodes, n_cells, n_edges;
    int64_t          *id;   /* [n_nodes] */
    double           *x;    /* [n_nodes x dim] an image of each */
    struct mesh_cell *cell; /* [n_cells] */
    struct mesh_edge *edge; /* [n_edges] by target, and then by the id of the source */
};

/** `side`: cells in each direction. `periodic`: in the first direction; then `side` is at least 3. `top`: ids are below
 *  it. */
void test_mesh_init(struct test_mesh *mesh, struct sample *sample, enum mesh_shape shape, int side, int periodic,
                    int64_t top);
void test_mesh_fini(struct test_mesh *mesh);

/** The edges of one cell, both directions: returns their number. */
int test_mesh_cell_edges(const struct mesh_cell *cell, struct mesh_edge *edges);

/** Component c of the vector from target to source, to the nearest image. */
double test_mesh_offset(const struct test_mesh *mesh, const struct mesh_edge *edge, int c);

#endif
