/* "graft.draft.mesh": the mesh of a simulation over ranks, created from the arrays of the solver. Networks
 * (graft_network.h) compute on it. A draft.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MESH_H
#define GRAFT_MESH_H

#include "../graft_host.h"
#include "../graft_matrix.h"
#include "../graft_transport.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_MESH_ID "graft.draft.mesh/1"

typedef struct graft_mesh graft_mesh;

/** Values on the rows of the host, borrowed: element (i, j) is data[i * row_stride + j * column_stride]. Strides are in
 *  elements, so node-major arrays (x(component, node) in Fortran) have strides n_columns and 1, component-major ones 1
 *  and n_rows. */
typedef struct graft_field {
    uint32_t    size;
    graft_dtype dtype; /**< GRAFT_F32 or GRAFT_F64 */
    int64_t     n_rows, n_columns;
    int64_t     row_stride, column_stride; /**< at least 1; both 0: node-major without gaps */
    void       *data;                      /**< written only where a comment says "out" */
} graft_field;

/** How nodes are spread over ranks.
 *
 *     GHOSTS  Each node has one owner. A rank has rows for its own nodes, and for nodes of others that its cells or
 *             edges touch (ghosts). Values of ghosts are neither read nor written; the library exchanges them.
 *     SHARED  A node that several ranks touch has a row on each of them (finite and spectral elements), and counts 1 /
 *             (ranks that have it) in losses and statistics. An edge that several ranks have counts likewise in sums.
 *             Values of the copies are equal before a call, and bitwise identical after it. Several rows of one rank
 *             with the same id are one node at one place: the first is read, all are written. */
typedef int32_t graft_mesh_kind;
enum { GRAFT_MESH_GHOSTS = 1, GRAFT_MESH_SHARED = 2 };

/** Types of cells, as VTK numbers them. The edges of a cell are the edges of its polygon or solid, with nodes in the
 *  order of VTK. Each one gives two directed edges. */
enum {
    GRAFT_CELL_LINE = 3,
    GRAFT_CELL_TRIANGLE = 5,
    GRAFT_CELL_QUAD = 9,
    GRAFT_CELL_TETRA = 10,
    GRAFT_CELL_HEXAHEDRON = 12,
    GRAFT_CELL_WEDGE = 13,
    GRAFT_CELL_PYRAMID = 14
};

/** The part of a mesh on one rank. All arrays are read during create() only. Cells and edges refer to nodes by their
 *  rows on this rank, from `index_base` on. Exactly one of cells and edges is given, and may be empty on some ranks. */
typedef struct graft_mesh_args {
    uint32_t        size;
    graft_mesh_kind kind; /**< kind of the mesh; equal on all ranks, as are dim, periods and which arrays are given */
    int32_t         dim;  /**< columns of coordinates, 1 to 3 */
    int32_t         index_base;     /**< 0, or 1 as in Fortran */
    int64_t         n_rows;         /**< number of rows, 0 or more */
    const graft_field *coordinates; /**< [n_rows x dim] finite */
    const void        *ids;         /**< [n_rows] global ids of nodes, at least 0; NULL with one rank: the rows */
    const int32_t     *owners;      /**< [n_rows] rank that owns each node; NULL with GHOSTS: the lowest rank that has
                                         the node owns it. With SHARED it must be NULL */
    graft_dtype        id_type;     /**< type of ids: GRAFT_I32 or GRAFT_I64 */
    graft_dtype        index_type;  /**< type of cell_nodes or edges: GRAFT_I32 or GRAFT_I64 */
    int64_t            n_cells;
    const uint8_t     *cell_types; /**< [n_cells] GRAFT_CELL_...; NULL: all are cell_type */
    int32_t            cell_type;  /**< type of all cells, if cell_types is NULL */
    int32_t            reserved;
    const void        *cell_nodes;   /**< rows of the nodes of each cell, cell by cell */
    int64_t            n_edges;      /**< number of directed edges */
    const void        *edge_sources; /**< [n_edges] rows; repeated edges count once; loops are an error */
    const void        *edge_targets; /**< [n_edges] rows */
    double             period[3]; /**< period of a coordinate in a periodic direction, else 0: relative positions refer
                                          to the nearest image. A periodic direction needs at least three cells */
} graft_mesh_args;

/** Sizes, of one rank or of all. */
typedef struct graft_mesh_info {
    uint32_t size;
    int32_t  n_neighbours; /**< ranks with which it exchanges rows; all ranks: the largest number of any rank */
    int64_t  n_nodes;      /**< nodes that the rank computes: owned nodes (GHOSTS), or all its nodes (SHARED). All
                                ranks: nodes of the mesh, each counted once */
    int64_t  n_edges;      /**< directed edges to computed nodes; all ranks: each counted once */
    int64_t  n_halo;       /**< rows that it receives in an exchange; all ranks: the sum */
    int64_t  bytes;        /**< memory of the mesh; all ranks: the sum */
    double   longest;      /**< length of the longest edge of all ranks */
} graft_mesh_info;

/** Arrays of a mesh on this rank, owned by it: for hosts that check them, or compute with them. */
typedef struct graft_mesh_view {
    uint32_t       size;
    int32_t        dim;
    int64_t        n_rows, n_nodes, n_halo, n_edges, n_sources;
    const int32_t *node_of;     /**< [n_rows] the node of each row of the host; -1: a ghost */
    const int32_t *row_of;      /**< [n_nodes] the row of the host that is read */
    const int64_t *id;          /**< [n_nodes] the id of each node */
    const double  *node_weight; /**< [n_nodes] 1 / number of ranks that have the node; NULL: all 1 */
    const int64_t *row_ptr;     /**< [n_nodes + 1] edges to node i are row_ptr[i] to row_ptr[i + 1] - 1, sorted by the
                                     id of their source */
    const int32_t *source; /**< [n_edges] the source of each edge: a node, or (GHOSTS) n_nodes + a row of the halo */
    const int32_t *edge_ranks; /**< [n_edges] number of ranks that have the edge, whose weight is 1 / ranks; NULL:
                                     one */
    const double  *position;   /**< [n_sources x dim] coordinates; rows of the halo come from the owner. The relative
                                     position of an edge is its source minus its target, for the nearest image */
    const int64_t *halo_start; /**< [ranks + 1] rows of the halo from rank q are halo_start[q] to [q + 1] - 1 */
    const int32_t *halo_node;  /**< [n_halo] the index of each halo node among the nodes of its owner */
} graft_mesh_view;

typedef struct graft_mesh_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a mesh. Ranks compare the boxes around their nodes, and then exchange ids only with ranks whose boxes
     *  meet. With GHOSTS an edge is sent to the owner of its target unless that rank has it. To find an id that is used
     *  at two places, distant ranks compare one id in 16, with option check=full every id. If such an id is not found,
     *  each place becomes a node, and n_nodes of all ranks exceeds the number of ids.
     * \param[in]  transport  Borrowed until destroy(). NULL: one rank.
     * \param[out] mesh       Unchanged on failure.
     * \return OK; ERR_ARG (null, strides, types, dim, ranks that disagree); ERR_FORMAT (an id that is negative or
     *         repeats, a coordinate that is not finite or differs between rows of a node, a row out of range, an
     *         unknown cell type, a cell with a node twice, a loop, an owner that is no rank or does not have the
     *         node, two owners of a node, an edge as long as half a period: the message has rank, row and what was
     *         found); ERR_UNSUPPORTED (2147483647 rows or edges of a rank, or more); ERR_NOMEM; ERR_PEER. The same on
     *         all ranks, but for a null context or an invalid transport.
     * A mesh reads options halo.timeout (also for its networks), threads and check. [one-caller] [starts-openmp].
     * Collective. Memory: see info(); while it runs up to three times the bytes of the arrays given, and 32 + 16 dim
     * bytes for each node in the box of another rank. Source: nekRS-ML, plugin gnn, for SHARED. Since 0.2. */
    int32_t (*create)(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                      graft_mesh **mesh, graft_error *error);

    /** Report the sizes of rank `rank`, or with -1 of all ranks. \return OK; ERR_ARG (null, no such rank).
     * [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*info)(const graft_mesh *mesh, int32_t rank, graft_mesh_info *info, graft_error *error);

    /** Report the arrays of this rank.
     * \return OK; ERR_ARG (null). [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*view)(const graft_mesh *mesh, graft_mesh_view *view, graft_error *error);

    /** Print a table of all ranks into text[capacity]. \return OK; ERR_ARG (null). [one-caller] Not collective.
     *  Since 0.2. */
    int32_t (*explain)(const graft_mesh *mesh, char *text, uint64_t capacity, graft_error *error);

    /** Free the mesh; if it has networks, it is freed with the last of them. NULL is legal. Sends nothing.
     *  [one-caller] Not collective. Since 0.2. */
    void (*destroy)(graft_mesh *mesh);
} graft_mesh_api;

GRAFT_EXTERN_C_END
#endif
