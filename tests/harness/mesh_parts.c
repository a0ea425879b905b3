/* Cuts meshes into the parts of ranks, see harness/mesh_parts.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/mesh_parts.h"

#include "oracle/oracle.h"

#include <stdlib.h>
#include <string.h>

int32_t test_mesh_node(const struct test_mesh *mesh, int64_t id)
{
    for (int64_t v = 0; v < mesh->n_nodes; v++)
        if (mesh->id[v] == id) return (int32_t)v;
    return -1;
}

static int64_t find_mesh_edge(const struct test_mesh *mesh, struct mesh_edge pair)
{
    int64_t low = 0, high = mesh->n_edges; /* binary search for the first edge with this target */

    while (low < high) {
        const int64_t middle = (low + high) / 2;

        if (mesh->edge[middle].target < pair.target) low = middle + 1;
        else high = middle;
    }
    while (mesh->edge[low].source != pair.source) low++;
    return low;
}

static void draw_cells(struct mesh_cut *cut, struct sample *sample)
{
    const int64_t n = cut->mesh->n_cells;
    const int32_t empty = cut->how & CUT_EMPTY && cut->n_ranks > 1 ? cut->n_ranks / 2 : -1;

    for (int64_t c = 0; c < n; c++) {
        cut->cell_rank[c] =
            (int32_t)(cut->how & CUT_RANDOM ? sample_below(sample, cut->n_ranks) : c * cut->n_ranks / n);
        if (cut->cell_rank[c] == empty) cut->cell_rank[c] = (empty + 1) % cut->n_ranks;
        cut->has_cell[cut->cell_rank[c] * n + c] = 1;
    }
}

static int touches(const struct mesh_cut *cut, int32_t rank, const struct mesh_cell *cell)
{
    for (int k = 0; k < cell->count; k++)
        if (cut->has_node[rank * cut->mesh->n_nodes + cell->node[k]]) return 1;
    return 0;
}

static void find_nodes(struct mesh_cut *cut, int32_t rank)
{
    for (int64_t c = 0; c < cut->mesh->n_cells; c++)
        for (int k = 0; k < cut->mesh->cell[c].count; k++)
            if (cut->has_cell[rank * cut->mesh->n_cells + c])
                cut->has_node[rank * cut->mesh->n_nodes + cut->mesh->cell[c].node[k]] = 1;
}

static void add_cell_layer(struct mesh_cut *cut, int32_t rank)
{
    uint8_t *add = oracle_new(cut->mesh->n_cells, 1);

    for (int64_t c = 0; c < cut->mesh->n_cells; c++) add[c] = (uint8_t)touches(cut, rank, &cut->mesh->cell[c]);
    for (int64_t c = 0; c < cut->mesh->n_cells; c++)
        if (add[c]) cut->has_cell[rank * cut->mesh->n_cells + c] = 1;
    find_nodes(cut, rank);
    free(add);
}

static void draw_owners(struct mesh_cut *cut, struct sample *sample)
{
    const int64_t n = cut->mesh->n_nodes;

    for (int64_t v = 0; v < n; v++) {
        int32_t q = 0;

        while (!cut->has_node[q * n + v]) q++;
        if (cut->how & CUT_OWNERS) q = (int32_t)sample_below(sample, cut->n_ranks);
        if (cut->how & CUT_OWNERS && cut->how & CUT_EMPTY && q == cut->n_ranks / 2) q = 0;
        cut->owner[v] = q;
        cut->has_node[q * n + v] = 1;
    }
}

void mesh_cut_init(struct mesh_cut *cut, const struct test_mesh *mesh, struct sample *sample, int32_t n_ranks, int how)
{
    *cut = (struct mesh_cut){ .mesh = mesh, .n_ranks = n_ranks, .how = how };
    cut->cell_rank = oracle_new(mesh->n_cells, sizeof *cut->cell_rank);
    cut->owner = oracle_new(mesh->n_nodes, sizeof *cut->owner);
    cut->has_cell = oracle_new(n_ranks * mesh->n_cells, 1);
    cut->has_node = oracle_new(n_ranks * mesh->n_nodes, 1);
    cut->has_edge = oracle_new(n_ranks * mesh->n_edges, 1);
    draw_cells(cut, sample);
    for (int32_t q = 0; q < n_ranks; q++) {
        find_nodes(cut, q);
        if (how & CUT_LAYER) add_cell_layer(cut, q);
    }
    draw_owners(cut, sample);
    for (int32_t q = 0; q < n_ranks; q++)
        for (int64_t c = 0; c < mesh->n_cells; c++) {
            struct mesh_edge edges[24];
            const int        count = test_mesh_cell_edges(&mesh->cell[c], edges);

            for (int k = 0; k < count && cut->has_cell[q * mesh->n_cells + c]; k++)
                cut->has_edge[q * mesh->n_edges + find_mesh_edge(mesh, edges[k])] = 1;
        }
}

void mesh_cut_fini(struct mesh_cut *cut)
{
    free(cut->cell_rank);
    free(cut->owner);
    free(cut->has_cell);
    free(cut->has_node);
    free(cut->has_edge);
}

int mesh_cut_node_ranks(const struct mesh_cut *cut, int64_t node)
{
    int count = 0;

    for (int32_t q = 0; q < cut->n_ranks; q++) count += cut->has_node[q * cut->mesh->n_nodes + node];
    return count;
}

int mesh_cut_edge_ranks(const struct mesh_cut *cut, int64_t edge)
{
    int count = 0;

    for (int32_t q = 0; q < cut->n_ranks; q++) count += cut->has_edge[q * cut->mesh->n_edges + edge];
    return count;
}

static void add_part_row(struct mesh_part *part, const struct mesh_cut *cut, int32_t node, const double *x)
{
    const int64_t row = part->args.n_rows++;

    part->node[row] = node;
    part->id[row] = cut->mesh->id[node];
    part->owner[row] = cut->owner[node];
    memcpy(part->coordinates + 3 * row, x, (size_t)cut->mesh->dim * sizeof *x);
}

static void put_row_of(const struct mesh_part *part, void *array, int64_t at, int32_t row)
{
    if (part->args.index_type == GRAFT_I64) ((int64_t *)array)[at] = row + part->args.index_base;
    else ((int32_t *)array)[at] = row + part->args.index_base;
}

/* Append the edges of a cell to the edge list that the host passes instead of cells. */
static void add_edges(struct mesh_part *part, const struct mesh_cell *cell, const int32_t *row_of)
{
    struct mesh_edge edges[24];
    const int        count = test_mesh_cell_edges(cell, edges);

    for (int k = 0; k < count; k++) {
        put_row_of(part, part->sources, part->args.n_edges, row_of[edges[k].source]);
        put_row_of(part, part->targets, part->args.n_edges++, row_of[edges[k].target]);
    }
}

static void add_cells(struct mesh_part *part, const struct mesh_cut *cut, int32_t rank)
{
    const struct test_mesh *mesh = cut->mesh;
    int32_t                *row_of = oracle_new(mesh->n_nodes, sizeof *row_of);
    int64_t                 at = 0;

    memset(row_of, -1, (size_t)mesh->n_nodes * sizeof *row_of);
    for (int64_t c = 0; c < mesh->n_cells; c++) {
        const struct mesh_cell *cell = &mesh->cell[c];

        if (!cut->has_cell[rank * mesh->n_cells + c]) continue;
        for (int k = 0; k < cell->count; k++) {
            const int32_t v = cell->node[k];

            if (row_of[v] < 0 || cut->how & CUT_REPEATS) {
                row_of[v] = (int32_t)part->args.n_rows;
                add_part_row(part, cut, v, cell->x[k]);
            }
            if (!(cut->how & CUT_EDGES)) put_row_of(part, part->cell_nodes, at++, row_of[v]);
        }
        if (cut->how & CUT_EDGES) add_edges(part, cell, row_of);
        else part->type[part->args.n_cells++] = cell->type;
    }
    for (int32_t v = 0; v < mesh->n_nodes; v++)
        if (cut->has_node[rank * mesh->n_nodes + v] && row_of[v] < 0)
            add_part_row(part, cut, v, mesh->x + v * mesh->dim);
    free(row_of);
}

static void describe_x(struct mesh_part *part, const struct mesh_cut *cut)
{
    const int64_t n = part->args.n_rows;
    double       *columns;

    part->x = GRAFT_INIT(graft_field);
    part->x.dtype = GRAFT_F64;
    part->x.n_rows = n;
    part->x.n_columns = cut->mesh->dim;
    part->x.row_stride = 3;
    part->x.column_stride = 1;
    part->args.coordinates = n > 0 ? &part->x : NULL;
    if (cut->how & CUT_I64) {
        columns = oracle_new(3 * n, sizeof *columns);
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < 3; c++) columns[c * n + i] = part->coordinates[3 * i + c];
        free(part->coordinates);
        part->coordinates = columns;
        part->x.row_stride = 1;
        part->x.column_stride = n;
    }
    part->x.data = part->coordinates;
}

void mesh_part_init(struct mesh_part *part, const struct mesh_cut *cut, int32_t rank)
{
    const struct test_mesh *mesh = cut->mesh;
    const int64_t           most = MESH_CORNERS * mesh->n_cells + mesh->n_nodes;
    graft_mesh_args        *args = &part->args;

    *part = (struct mesh_part){ .args = GRAFT_INIT(graft_mesh_args) };
    part->coordinates = oracle_new(3 * most, sizeof *part->coordinates);
    part->id = oracle_new(most, sizeof *part->id);
    part->owner = oracle_new(most, sizeof *part->owner);
    part->node = oracle_new(most, sizeof *part->node);
    part->type = oracle_new(mesh->n_cells, 1);
    part->cell_nodes = oracle_new(most, sizeof(int64_t));
    part->sources = oracle_new(24 * mesh->n_cells, sizeof(int64_t));
    part->targets = oracle_new(24 * mesh->n_cells, sizeof(int64_t));
    args->kind = cut->how & CUT_SHARED ? GRAFT_MESH_SHARED : GRAFT_MESH_GHOSTS;
    args->dim = mesh->dim;
    args->index_base = cut->how & CUT_I64 ? 1 : 0;
    args->index_type = cut->how & CUT_I64 ? GRAFT_I64 : GRAFT_I32;
    args->id_type = GRAFT_I64;
    memcpy(args->period, mesh->period, sizeof args->period);
    add_cells(part, cut, rank);
    describe_x(part, cut);
    args->ids = args->n_rows > 0 ? part->id : NULL;
    args->owners = cut->how & CUT_OWNERS && args->n_rows > 0 ? part->owner : NULL;
    if (args->n_cells > 0) {
        args->cell_types = part->type;
        args->cell_nodes = part->cell_nodes;
    }
    if (args->n_edges > 0) {
        args->edge_sources = part->sources;
        args->edge_targets = part->targets;
    }
}

void mesh_part_fini(struct mesh_part *part)
{
    free(part->coordinates);
    free(part->id);
    free(part->owner);
    free(part->node);
    free(part->type);
    free(part->cell_nodes);
    free(part->sources);
    free(part->targets);
}
