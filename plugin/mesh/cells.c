/* The edges of each type of cells, with nodes in the order of VTK.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mesh/build.h"

static const struct gr_cell_shape line = { 2, { 1, 1 }, { { 1 }, { 0 } } };

static const struct gr_cell_shape triangle = { 3, { 2, 2, 2 }, { { 1, 2 }, { 0, 2 }, { 0, 1 } } };

static const struct gr_cell_shape quad = { 4, { 2, 2, 2, 2 }, { { 1, 3 }, { 0, 2 }, { 1, 3 }, { 0, 2 } } };

static const struct gr_cell_shape tetra = { 4, { 3, 3, 3, 3 }, { { 1, 2, 3 }, { 0, 2, 3 }, { 0, 1, 3 }, { 0, 1, 2 } } };

/* Nodes 0 to 3 go around the bottom, nodes 4 to 7 are above them. */
static const struct gr_cell_shape hexahedron = {
    8,
    { 3, 3, 3, 3, 3, 3, 3, 3 },
    { { 1, 3, 4 }, { 0, 2, 5 }, { 1, 3, 6 }, { 0, 2, 7 }, { 0, 5, 7 }, { 1, 4, 6 }, { 2, 5, 7 }, { 3, 4, 6 } }
};

/* Nodes 0 to 2 and 3 to 5 form two triangles. */
static const struct gr_cell_shape wedge = {
    6, { 3, 3, 3, 3, 3, 3 }, { { 1, 2, 3 }, { 0, 2, 4 }, { 0, 1, 5 }, { 0, 4, 5 }, { 1, 3, 5 }, { 2, 3, 4 } }
};

/* Nodes 0 to 3 go around the bottom, node 4 is the apex. */
static const struct gr_cell_shape pyramid = { 5,
                                              { 3, 3, 3, 3, 4 },
                                              { { 1, 3, 4 }, { 0, 2, 4 }, { 1, 3, 4 }, { 0, 2, 4 }, { 0, 1, 2, 3 } } };

const struct gr_cell_shape *gr_mesh_cell_shape(int32_t type)
{
    switch (type) {
    case GRAFT_CELL_LINE: return &line;
    case GRAFT_CELL_TRIANGLE: return &triangle;
    case GRAFT_CELL_QUAD: return &quad;
    case GRAFT_CELL_TETRA: return &tetra;
    case GRAFT_CELL_HEXAHEDRON: return &hexahedron;
    case GRAFT_CELL_WEDGE: return &wedge;
    case GRAFT_CELL_PYRAMID: return &pyramid;
    default: return NULL;
    }
}
