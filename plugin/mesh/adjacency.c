/* The edges of a rank, each once, by target and by the id of their source. Candidate edges, which repeat where cells
 * are adjacent, are sorted by target with a counting sort; then each row is sorted, and repeated edges are dropped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/parallel.h"
#include "mesh/build.h"

#include <string.h>

enum { OPERATIONS_OF_NODE = 64 };

/* -- types of cells, with nodes in the order of VTK --------------------------------------------------------------- */

/* A type of cells: the number of nodes, and for each node the nodes to which it has an edge. */
enum { CELL_NODES = 8, CELL_VALENCE = 4 };
struct cell_shape {
    int32_t n_nodes;
    uint8_t valence[CELL_NODES];
    uint8_t neighbour[CELL_NODES][CELL_VALENCE];
};

static const struct cell_shape line = { 2, { 1, 1 }, { { 1 }, { 0 } } };

static const struct cell_shape triangle = { 3, { 2, 2, 2 }, { { 1, 2 }, { 0, 2 }, { 0, 1 } } };

static const struct cell_shape quad = { 4, { 2, 2, 2, 2 }, { { 1, 3 }, { 0, 2 }, { 1, 3 }, { 0, 2 } } };

static const struct cell_shape tetra = { 4, { 3, 3, 3, 3 }, { { 1, 2, 3 }, { 0, 2, 3 }, { 0, 1, 3 }, { 0, 1, 2 } } };

/* Nodes 0 to 3 go around the bottom, nodes 4 to 7 are above them. */
static const struct cell_shape hexahedron = {
    8,
    { 3, 3, 3, 3, 3, 3, 3, 3 },
    { { 1, 3, 4 }, { 0, 2, 5 }, { 1, 3, 6 }, { 0, 2, 7 }, { 0, 5, 7 }, { 1, 4, 6 }, { 2, 5, 7 }, { 3, 4, 6 } }
};

/* Nodes 0 to 2 and 3 to 5 form two triangles. */
static const struct cell_shape wedge = {
    6, { 3, 3, 3, 3, 3, 3 }, { { 1, 2, 3 }, { 0, 2, 4 }, { 0, 1, 5 }, { 0, 4, 5 }, { 1, 3, 5 }, { 2, 3, 4 } }
};

/* Nodes 0 to 3 go around the bottom, node 4 is the apex. */
static const struct cell_shape pyramid = { 5,
                                           { 3, 3, 3, 3, 4 },
                                           { { 1, 3, 4 }, { 0, 2, 4 }, { 1, 3, 4 }, { 0, 2, 4 }, { 0, 1, 2, 3 } } };

/* Find the shape of cells of a type. Returns NULL if the type is unknown. */
static const struct cell_shape *shape_of(int32_t type)
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

static int32_t type_of(const graft_mesh_args *args, int64_t cell)
{
    return args->cell_types != NULL ? args->cell_types[cell] : args->cell_type;
}

/* -- edges of cells, or of the host ------------------------------------------------------------------------------- */

static int32_t refuse_row(const char *what, int64_t item, int corner, int64_t found, const graft_mesh_args *a,
                          graft_error *error)
{
    const long long base = a->index_base;

    if (corner < 0)
        return gr_fail(error, GRAFT_ERR_FORMAT, "%s %lld is %lld, expected a row, %lld to %lld", what,
                       (long long)item + base, (long long)found, base, (long long)a->n_rows - 1 + base);
    return gr_fail(error, GRAFT_ERR_FORMAT, "node %d of %s %lld is %lld, expected a row, %lld to %lld", corner, what,
                   (long long)item + base, (long long)found, base, (long long)a->n_rows - 1 + base);
}

static int is_row(const graft_mesh_args *a, int64_t given)
{
    return given >= a->index_base && given - a->index_base < a->n_rows;
}

/* Read and check the nodes of a cell, which begin at cell_nodes[at]. */
static int32_t read_cell(const struct gr_local_mesh *local, int64_t cell, int64_t at, const struct cell_shape *shape,
                         int32_t *nodes, graft_error *error)
{
    const graft_mesh_args *a = local->args;

    for (int32_t i = 0; i < shape->n_nodes; i++) {
        const int64_t given = gr_index_at(a->cell_nodes, a->index_type, at + i);

        if (!is_row(a, given)) return refuse_row("cell", cell, i, given, a, error);
        nodes[i] = local->node_of[given - a->index_base];
        for (int32_t j = 0; j < i; j++)
            if (nodes[j] == nodes[i])
                return gr_fail(error, GRAFT_ERR_FORMAT, "cell %lld: its nodes %d and %d are the same, row %lld",
                               (long long)cell + a->index_base, j, i, (long long)given);
    }
    return GRAFT_OK;
}

/* Check the cells, and add the number of edges to each node to next[node + 1]. */
static int32_t count_cells(const struct gr_local_mesh *local, int64_t *next, graft_error *error)
{
    const graft_mesh_args *a = local->args;
    int32_t                nodes[CELL_NODES];

    for (int64_t cell = 0, at = 0; cell < a->n_cells; cell++) {
        const struct cell_shape *shape = shape_of(type_of(a, cell));

        if (shape == NULL)
            return gr_fail(error, GRAFT_ERR_FORMAT, "cell %lld: its type is %d, expected one of GRAFT_CELL_...",
                           (long long)cell + a->index_base, type_of(a, cell));
        if (read_cell(local, cell, at, shape, nodes, error) < 0) return error->code;
        for (int32_t i = 0; i < shape->n_nodes; i++) next[nodes[i] + 1] += shape->valence[i];
        at += shape->n_nodes;
    }
    return GRAFT_OK;
}

static void put_cells(const struct gr_local_mesh *local, int64_t *next, int32_t *source)
{
    const graft_mesh_args *a = local->args;
    int32_t                nodes[CELL_NODES];

    for (int64_t cell = 0, at = 0; cell < a->n_cells; cell++) {
        const struct cell_shape *shape = shape_of(type_of(a, cell));

        for (int32_t i = 0; i < shape->n_nodes; i++)
            nodes[i] = local->node_of[gr_index_at(a->cell_nodes, a->index_type, at + i) - a->index_base];
        for (int32_t i = 0; i < shape->n_nodes; i++)
            for (int k = 0; k < shape->valence[i]; k++) source[next[nodes[i]]++] = nodes[shape->neighbour[i][k]];
        at += shape->n_nodes;
    }
}

static int32_t count_given_edges(const struct gr_local_mesh *local, int64_t *next, graft_error *error)
{
    const graft_mesh_args *a = local->args;

    for (int64_t e = 0; e < a->n_edges; e++) {
        const int64_t s = gr_index_at(a->edge_sources, a->index_type, e);
        const int64_t t = gr_index_at(a->edge_targets, a->index_type, e);

        if (!is_row(a, s)) return refuse_row("the source of edge", e, -1, s, a, error);
        if (!is_row(a, t)) return refuse_row("the target of edge", e, -1, t, a, error);
        if (local->node_of[s - a->index_base] == local->node_of[t - a->index_base])
            return gr_fail(error, GRAFT_ERR_FORMAT, "edge %lld is a loop: source and target are the node of row %lld",
                           (long long)e + a->index_base, (long long)s);
        next[local->node_of[t - a->index_base] + 1]++;
    }
    return GRAFT_OK;
}

static void put_given_edges(const struct gr_local_mesh *local, int64_t *next, int32_t *source)
{
    const graft_mesh_args *a = local->args;

    for (int64_t e = 0; e < a->n_edges; e++) {
        const int64_t i = gr_index_at(a->edge_sources, a->index_type, e) - a->index_base;
        const int64_t j = gr_index_at(a->edge_targets, a->index_type, e) - a->index_base;

        source[next[local->node_of[j]]++] = local->node_of[i];
    }
}

int32_t gr_mesh_local_find_edges(struct gr_local_mesh *local, graft_error *error)
{
    const int has_cells = local->args->n_cells > 0;
    int64_t  *next;

    GR_TRY(GR_NEW(local->context, local->row_ptr, local->n + 1, error));
    next = local->row_ptr;
    GR_TRY(has_cells ? count_cells(local, next, error) : count_given_edges(local, next, error));
    for (int64_t i = 0; i < local->n; i++) next[i + 1] += next[i];
    GR_TRY(GR_NEW(local->context, local->source, next[local->n], error));
    if (has_cells) put_cells(local, next, local->source);
    else put_given_edges(local, next, local->source);
    memmove(next + 1, next, (size_t)local->n * sizeof *next); /* next[i] was the end of row i, the begin of i + 1 */
    next[0] = 0;
    return gr_mesh_adjacency_tidy(local->context, local->team, local->n, local->rises ? NULL : local->id,
                                  local->row_ptr, &local->source, error);
}

/* The arguments of gr_mesh_adjacency_tidy(). */
struct tidy {
    const int64_t *id; /* ids of sources; NULL: they ascend with the indices of nodes */
    const int64_t *row_ptr;
    int32_t       *source;
    int32_t       *left; /* [n] number of distinct sources of each row */
};

static inline int64_t id_of(const struct tidy *t, int32_t source)
{
    return t->id != NULL ? t->id[source] : source;
}

/* Make the tree below `at` a heap; its two subtrees are heaps. */
static void sift_down(const struct tidy *t, int32_t *row, int64_t at, int64_t count)
{
    const int32_t source = row[at];
    const int64_t key = id_of(t, source);

    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && id_of(t, row[child + 1]) > id_of(t, row[child])) child++;
        if (id_of(t, row[child]) <= key) break;
        row[at] = row[child];
    }
    row[at] = source;
}

/* Sort a row with a heap sort, which needs no memory. */
static void sort_long_row(const struct tidy *t, int32_t *row, int64_t count)
{
    for (int64_t at = count / 2; at-- > 0;) sift_down(t, row, at, count);
    for (int64_t end = count; end-- > 1;) {
        const int32_t last = row[end];

        row[end] = row[0];
        row[0] = last;
        sift_down(t, row, 0, end);
    }
}

/* Drop repeats of sorted sources. Returns the number that is left. */
static int32_t drop_repeats(int32_t *row, int64_t count)
{
    int32_t left = 0;

    for (int64_t k = 0; k < count; k++)
        if (left == 0 || row[k] != row[left - 1]) row[left++] = row[k];
    return left;
}

/* Sort a row and drop repeated sources, with an insertion sort, which is fast because few distinct sources remain; or,
 * if there are many, with a heap sort. Returns the number of distinct sources. */
static int32_t tidy_row(const struct tidy *t, int32_t *row, int64_t count)
{
    int32_t left = 0;

    for (int64_t k = 0; k < count; k++) {
        const int32_t source = row[k];
        const int64_t key = id_of(t, source);
        int32_t       to = left;

        if (left == GR_SORT_BY_INSERTION) {
            memmove(row + left, row + k, (size_t)(count - k) * sizeof *row);
            sort_long_row(t, row, left + count - k);
            return drop_repeats(row, left + count - k);
        }
        while (to > 0 && id_of(t, row[to - 1]) > key) to--;
        if (to > 0 && row[to - 1] == source) continue;
        for (int32_t j = left++; j > to; j--) row[j] = row[j - 1];
        row[to] = source;
    }
    return left;
}

static void tidy_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct tidy *t = arg;

    for (int64_t i = begin; i < end; i++)
        t->left[i] = tidy_row(t, t->source + t->row_ptr[i], t->row_ptr[i + 1] - t->row_ptr[i]);
}

/* Compact the rows, and reallocate them if that saves an eighth of the memory. */
static int32_t join_tidy_rows(const graft_context *context, const struct tidy *t, int64_t n, int64_t *row_ptr,
                              int32_t **source, graft_error *error)
{
    const int64_t candidates = row_ptr[n];
    int64_t       count = 0;
    int32_t      *block = NULL;

    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = row_ptr[i];

        if (count < begin) memmove(*source + count, *source + begin, (size_t)t->left[i] * sizeof **source);
        row_ptr[i] = count;
        count += t->left[i];
    }
    row_ptr[n] = count;
    if (count >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "a rank has %lld edges, expected less than %d", (long long)count,
                       INT32_MAX);
    if (candidates - count <= candidates / 8) return GRAFT_OK;
    if (GR_NEW(context, block, count, error) < 0) return error->code;
    if (count > 0) memcpy(block, *source, (size_t)count * sizeof *block);
    gr_free(context, *source);
    *source = block;
    return GRAFT_OK;
}

int32_t gr_mesh_adjacency_tidy(const graft_context *context, struct gr_team team, int64_t n, const int64_t *id,
                               int64_t *row_ptr, int32_t **source, graft_error *error)
{
    struct tidy t = { .id = id, .row_ptr = row_ptr, .source = *source };
    int32_t     rc = GR_NEW(context, t.left, n, error);

    if (rc < 0) return rc;
    gr_parallel_rows(team, n * OPERATIONS_OF_NODE, n, GR_MESH_CHUNK, tidy_chunk, &t);
    rc = join_tidy_rows(context, &t, n, row_ptr, source, error);
    gr_free(context, t.left);
    return rc;
}
