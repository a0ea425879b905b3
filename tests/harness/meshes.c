/* Makes meshes and their edges from tables, see harness/meshes.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/meshes.h"

#include "oracle/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const mesh_shape_name[SHAPES] = { "lines", "triangles", "quads", "tetrahedra", "hexahedra", "mixed cells" };

/* The edges of each type of cell, as pairs of corners. */
static const struct {
    uint8_t type, count, pair[12][2];
} tables[] = {
    { GRAFT_CELL_LINE, 1, { { 0, 1 } } },
    { GRAFT_CELL_TRIANGLE, 3, { { 0, 1 }, { 1, 2 }, { 2, 0 } } },
    { GRAFT_CELL_QUAD, 4, { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 0 } } },
    { GRAFT_CELL_TETRA, 6, { { 0, 1 }, { 1, 2 }, { 2, 0 }, { 0, 3 }, { 1, 3 }, { 2, 3 } } },
    { GRAFT_CELL_HEXAHEDRON,
      12,
      { { 0, 1 },
        { 1, 2 },
        { 2, 3 },
        { 3, 0 },
        { 4, 5 },
        { 5, 6 },
        { 6, 7 },
        { 7, 4 },
        { 0, 4 },
        { 1, 5 },
        { 2, 6 },
        { 3, 7 } } },
    { GRAFT_CELL_WEDGE,
      9,
      { { 0, 1 }, { 1, 2 }, { 2, 0 }, { 3, 4 }, { 4, 5 }, { 5, 3 }, { 0, 3 }, { 1, 4 }, { 2, 5 } } },
    { GRAFT_CELL_PYRAMID, 8, { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 0 }, { 0, 4 }, { 1, 4 }, { 2, 4 }, { 3, 4 } } },
};

int test_mesh_cell_edges(const struct mesh_cell *cell, struct mesh_edge *edges)
{
    size_t t = 0;
    int    count = 0;

    while (tables[t].type != cell->type) t++;
    for (int k = 0; k < tables[t].count; k++) {
        const int32_t a = cell->node[tables[t].pair[k][0]], b = cell->node[tables[t].pair[k][1]];

        edges[count++] = (struct mesh_edge){ a, b };
        edges[count++] = (struct mesh_edge){ b, a };
    }
    return count;
}

/* A regular grid whose nodes are displaced slightly. */
struct grid {
    struct test_mesh *mesh;
    int               side, n[3]; /* number of cells in each direction, and of distinct nodes in each direction */
};

static int32_t grid_node(const struct grid *g, const int *at)
{
    return (int32_t)(((int64_t)(at[2] % g->n[2]) * g->n[1] + at[1] % g->n[1]) * g->n[0] + at[0] % g->n[0]);
}

/* The box of a grid at position `at`, with corners in the order of a hexahedron of VTK. In fewer dimensions the box is
 * the first 4 or 2 corners. */
static struct mesh_cell grid_box(const struct grid *g, const int *at)
{
    static const int step[MESH_CORNERS][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 1, 1, 0 }, { 0, 1, 0 },
                                               { 0, 0, 1 }, { 1, 0, 1 }, { 1, 1, 1 }, { 0, 1, 1 } };
    struct mesh_cell box = { .count = 1 << g->mesh->dim };

    for (int k = 0; k < box.count; k++) {
        int corner[3];

        for (int c = 0; c < 3; c++) corner[c] = at[c] + step[k][c];
        box.node[k] = grid_node(g, corner);
        for (int c = 0; c < g->mesh->dim; c++) {
            box.x[k][c] = g->mesh->x[box.node[k] * g->mesh->dim + c];
            if (c == 0 && corner[0] >= g->n[0]) box.x[k][0] += g->mesh->period[0];
        }
    }
    return box;
}

static void add_cell(struct test_mesh *mesh, uint8_t type, const struct mesh_cell *box, const int *corners, int count)
{
    struct mesh_cell *cell = &mesh->cell[mesh->n_cells++];

    *cell = (struct mesh_cell){ .type = type, .count = count };
    for (int k = 0; k < count; k++) {
        cell->node[k] = box->node[corners[k]];
        memcpy(cell->x[k], box->x[corners[k]], sizeof cell->x[k]);
    }
}

/* Divide a box into cells. Tetrahedra follow the subdivision of Kuhn; in a mixed mesh the types of cells alternate. */
static void cut_box(struct test_mesh *mesh, const struct mesh_cell *box, int turn)
{
    static const int all[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const int triangle[2][3] = { { 0, 1, 2 }, { 0, 2, 3 } };
    static const int tet[6][4] = { { 0, 1, 2, 6 }, { 0, 2, 3, 6 }, { 0, 3, 7, 6 },
                                   { 0, 7, 4, 6 }, { 0, 4, 5, 6 }, { 0, 5, 1, 6 } };
    static const int wedge[2][6] = { { 0, 1, 2, 4, 5, 6 }, { 0, 2, 3, 4, 6, 7 } };
    static const int pyramid[3][5] = { { 0, 1, 2, 3, 6 }, { 0, 4, 5, 1, 6 }, { 0, 3, 7, 4, 6 } };

    if (mesh->shape == SHAPE_LINES) add_cell(mesh, GRAFT_CELL_LINE, box, all, 2);
    if (mesh->shape == SHAPE_QUADS) add_cell(mesh, GRAFT_CELL_QUAD, box, all, 4);
    for (int k = 0; mesh->shape == SHAPE_TRIANGLES && k < 2; k++)
        add_cell(mesh, GRAFT_CELL_TRIANGLE, box, triangle[k], 3);
    if (mesh->shape == SHAPE_TETS)
        for (int k = 0; k < 6; k++) add_cell(mesh, GRAFT_CELL_TETRA, box, tet[k], 4);
    if (mesh->shape == SHAPE_HEXES || (mesh->shape == SHAPE_MIXED && turn == 0))
        add_cell(mesh, GRAFT_CELL_HEXAHEDRON, box, all, 8);
    if (mesh->shape == SHAPE_MIXED && turn == 1)
        for (int k = 0; k < 2; k++) add_cell(mesh, GRAFT_CELL_WEDGE, box, wedge[k], 6);
    if (mesh->shape == SHAPE_MIXED && turn == 2)
        for (int k = 0; k < 3; k++) add_cell(mesh, GRAFT_CELL_PYRAMID, box, pyramid[k], 5);
}

static const int64_t *id_of_source; /* argument of compare_edges(), which sorts one mesh at a time */

static int compare_edges(const void *left, const void *right)
{
    const struct mesh_edge *a = left, *b = right;

    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return (id_of_source[a->source] > id_of_source[b->source]) - (id_of_source[a->source] < id_of_source[b->source]);
}

static void find_edges(struct test_mesh *mesh)
{
    int64_t count = 0;

    mesh->edge = oracle_new(24 * mesh->n_cells, sizeof *mesh->edge);
    for (int64_t c = 0; c < mesh->n_cells; c++) count += test_mesh_cell_edges(&mesh->cell[c], mesh->edge + count);
    id_of_source = mesh->id;
    qsort(mesh->edge, (size_t)count, sizeof *mesh->edge, compare_edges);
    for (int64_t e = 0; e < count; e++)
        if (e == 0 || compare_edges(&mesh->edge[e], &mesh->edge[e - 1]) != 0)
            mesh->edge[mesh->n_edges++] = mesh->edge[e];
}

/* Draw ids below `top` in random order with gaps. */
static void draw_ids(struct test_mesh *mesh, struct sample *sample, int64_t top)
{
    const int64_t gap = 3;

    for (int64_t v = 0; v < mesh->n_nodes; v++) mesh->id[v] = top - 1 - gap * v;
    for (int64_t v = mesh->n_nodes - 1; v > 0; v--) {
        const int64_t other = sample_below(sample, v + 1), id = mesh->id[v];

        mesh->id[v] = mesh->id[other];
        mesh->id[other] = id;
    }
}

void test_mesh_init(struct test_mesh *mesh, struct sample *sample, enum mesh_shape shape, int side, int periodic,
                    int64_t top)
{
    static const int dims[SHAPES] = { 1, 2, 2, 3, 3, 3 };
    struct grid      g = { .mesh = mesh, .side = side };
    int              at[3], most[3], turn = 0;

    *mesh = (struct test_mesh){ .shape = shape, .dim = dims[shape] };
    if (periodic) mesh->period[0] = side;
    for (int c = 0; c < 3; c++) {
        g.n[c] = c >= mesh->dim ? 1 : c == 0 && periodic ? side : side + 1;
        most[c] = c >= mesh->dim ? 1 : side;
    }
    mesh->n_nodes = (int64_t)g.n[0] * g.n[1] * g.n[2];
    mesh->id = oracle_new(mesh->n_nodes, sizeof *mesh->id);
    mesh->x = oracle_new(mesh->n_nodes * mesh->dim, sizeof *mesh->x);
    mesh->cell = oracle_new(6 * (int64_t)most[0] * most[1] * most[2], sizeof *mesh->cell);
    draw_ids(mesh, sample, top);
    for (at[2] = 0; at[2] < g.n[2]; at[2]++)
        for (at[1] = 0; at[1] < g.n[1]; at[1]++)
            for (at[0] = 0; at[0] < g.n[0]; at[0]++)
                for (int c = 0; c < mesh->dim; c++)
                    mesh->x[grid_node(&g, at) * mesh->dim + c] = at[c] + sample_real(sample, -0.2, 0.2);
    for (at[2] = 0; at[2] < most[2]; at[2]++)
        for (at[1] = 0; at[1] < most[1]; at[1]++)
            for (at[0] = 0; at[0] < most[0]; at[0]++) {
                const struct mesh_cell box = grid_box(&g, at);

                cut_box(mesh, &box, turn++ % 3);
            }
    find_edges(mesh);
}

void test_mesh_fini(struct test_mesh *mesh)
{
    free(mesh->id);
    free(mesh->x);
    free(mesh->cell);
    free(mesh->edge);
}

double test_mesh_offset(const struct test_mesh *mesh, const struct mesh_edge *edge, int c)
{
    double offset = mesh->x[edge->source * mesh->dim + c] - mesh->x[edge->target * mesh->dim + c];

    if (mesh->period[c] == 0) return offset;
    while (offset > mesh->period[c] / 2) offset -= mesh->period[c];
    while (offset < -mesh->period[c] / 2) offset += mesh->period[c];
    return offset;
}
