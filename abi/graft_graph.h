/* "graft.graph/1": a graph distributed over the ranks of a transport. Each rank contributes a slice of rows; then each
 * vertex has an owner, the rank that holds its row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRAPH_H
#define GRAFT_GRAPH_H

#include "graft_matrix.h"
#include "graft_transport.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_GRAPH_ID "graft.graph/1"

typedef struct graft_graph graft_graph;

/** The rows of a graph that one rank contributes: first_row to first_row + m - 1. The slices of all ranks, in the order
 *  of ranks, form the graph without gaps or overlaps. One rank may contribute all rows, and others none. */
typedef struct graft_slice {
    uint32_t         size;
    uint32_t         reserved;
    int64_t          n_vertices; /**< vertices of the whole graph; the same on all ranks */
    int64_t          first_row;
    const graft_csr *rows;  /**< [m x n_vertices] row i holds the vertices from which first_row + i gathers; NULL: m
                                 is 0. The type of values, or their absence, is the same on all ranks with edges */
    const int32_t   *owner; /**< [m] the rank that will own each vertex, or NULL: chosen by option "partition". Either
                                 all ranks with rows pass `owner`, or none does */
    const uint8_t   *train_mask; /**< [m] nonzero for training vertices, which stream, metis and auto distribute evenly;
                                   NULL: this slice has none */
} graft_slice;

/** Sizes of the part of a rank, or of the whole graph. A rank's edges are the entries of its owned rows. */
typedef struct graft_graph_info {
    uint32_t size;
    int32_t  rank;             /**< -1: all ranks */
    int64_t  n_vertices;       /**< vertices of the whole graph */
    int64_t  n_slice;          /**< vertices in the slice of the rank; n_vertices if `rank` is -1 */
    int64_t  n_owned;          /**< vertices that the rank owns; all ranks: n_vertices */
    int64_t  n_edges;          /**< edges in owned rows */
    int64_t  n_cut;            /**< cut edges: edges whose column has another owner than their row */
    int64_t  n_halo;           /**< distinct vertices of other ranks from which its rows gather; all ranks: the sum */
    double   vertex_imbalance; /**< n_owned / its mean over ranks; all ranks: the largest; 1 if there are no vertices */
    double   edge_imbalance;   /**< n_edges / its mean over ranks, likewise */
} graft_graph_info;

/** The direction of redistribute(). */
enum {
    GRAFT_TO_OWNERS = 1, /**< send from the order of slices to the order of owners, for features and labels */
    GRAFT_TO_SLICES = 2  /**< send from the order of owners to the order of slices, for predictions */
};

/** Rows of bytes, one for each vertex, that are redistributed. */
typedef struct graft_redistribution {
    uint32_t    size;
    int32_t     direction;   /**< GRAFT_TO_OWNERS or GRAFT_TO_SLICES; the same on all ranks */
    int64_t     row_bytes;   /**< bytes of each row; the same on all ranks */
    const void *from;        /**< [n_slice] rows, to slices [n_owned]; NULL if there are no rows */
    int64_t     from_stride; /**< bytes from one row to the next, at least row_bytes */
    void       *to;          /**< out, [n_owned] rows, to slices [n_slice]; must not overlap `from` */
    int64_t     to_stride;
} graft_redistribution;

/* Errors of collective calls. The ranks agree on the status: if one rank fails, all return its status and message, with
 * its rank in error->rank, and may continue. If a rank dies, does not answer within option "halo.timeout", or sends a
 * wrong message, all other ranks return ERR_PEER with the same message; then the graph, its plans and the transport can
 * only be destroyed and closed. */
typedef struct graft_graph_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a distributed graph: choose the owners of vertices, send rows to them, and find the owners of all
     *  columns. A rank needs memory only for its slice, its owned rows and its halo.
     *
     *  Owners come from slice->owner, or else from option "partition":
     *      given   the rank whose slice has the row, so that no row moves
     *      block   ranges of consecutive vertices, balanced in vertices and edges
     *      hash    pseudo-random
     *      stream  one vertex after the other, to the part with most of its neighbours that has capacity left, in five
     *              passes over the rows, each of which knows the previous assignment. All ranks assign their slices
     *              at once, in up to 64 blocks, after each of which they exchange loads and the owners of boundary
     *              vertices; up to 20 rounds of refinement follow
     *      metis   METIS, in a process that rank 0 starts (option partition.program), for at most the
     *              seconds of partition=metis:ROUNDS:SECONDS
     *      auto    block, hash, stream or metis, whichever has the shortest predicted epochs. The
     *              prediction uses options model, layers, hidden, threads, halo.cover and halo.codec of rank 0, and
     *              latency and bandwidth that are measured; it assumes a speed of computation, and ignores widths of
     *              features and classes, row_masks, overlap and shared machines. If its program is missing or fails,
     *              metis is left out, and explain() says why. Graphs that are too large for METIS, or for the memory
     *              available to rank 0, are partitioned by stream
     *  For metis and auto rank 0 holds the structure of the whole graph for a while, and may take longer than
     *  halo.timeout, because it keeps notifying the waiting ranks. explain() has a line on how owners were found; for
     *  metis and auto the log of rank 0 has it too.
     *
     *  Option "parallel" says how ranks divide the sums over neighbours of a trainer:
     *      partition  by vertices (the default)
     *      feature    by columns: rank i of m sums columns floor(d i / m) to floor(d (i + 1) / m) - 1 of all vertices
     *                 (MixGCN, section 3.1.2)
     *      grid       each group of N (grid:N) consecutive ranks has a part of the vertices and divides the
     *                 columns; groups exchange boundary rows
     *      auto       rank 0 predicts an epoch for each number of columns that divides the ranks, as partition=auto
     *                 does, but with measured rates of network, sums and dense products, and with minimum vertex covers
     *                 between the parts. It takes the fastest choice whose edges memory.limit allows; explain() has a
     *                 table. By vertices for gat, maxima, minima, stale rows, adaptive widths, fewer than 8 bits, and
     *                 graphs too large for rank 0. ERR_OPTION with "partition.file"
     *  With feature and grid each rank owns rows for all other work: the rows of a group are dealt to its ranks in
     *  turn, unless `partition` is given; with feature, every other value of `partition` does the same. A trainer sends
     *  4 n d (m-1)/m bytes in each of the two transposes of a sum, for n vertices with neighbours. A rank has the edges
     *  of all vertices of its group. With option "feature.graph" = stream it has only the edges of its own vertices
     *  inside the group, and each sum sends blocks of edges to each other rank of the group: 4 bytes a row and an edge,
     *  and 4 a value. Between groups maxima and minima exchange the rows of the halo, without row masks. With option
     *  "halo.staleness" each transpose uses rows of the previous epoch, so a sum adds rows that are two epochs old.
     *  ERR_OPTION if the columns do not divide the ranks; trainers of gat, and with adaptive widths, are refused.
     *
     *  Option "partition.file" names a file with owners. If it exists, it replaces `partition`; it must be of this
     *  graph (the same edges in any slices; values do not count) and have as many parts as there are ranks, or groups
     *  of ranks to which a part is dealt. If the file does not exist, the owners are written to it. Only rank 0 opens
     *  the file. It is not used with slice->owner, nor if all ranks share the columns, as with parallel=feature.
     *
     *  The number of `partition`, as in metis:20, is the largest number of rounds that improve the partition of any
     *  method or file: all ranks move vertices to the part with most of their neighbours. The number of cut edges never
     *  grows, and a part gets no vertex beyond 1.05 times the mean of vertices, edges or training vertices. The rounds
     *  end when a round gains less than a thousandth. Only the rows of the graph are followed, so it should be
     *  symmetric. It is not used with slice->owner, nor if all ranks share the columns. A written file has the refined
     *  owners. The partition of a file that is read is refined again.
     *
     * \param[in]  transport  Borrowed until destroy(); graphs of one context may share it. NULL: one rank.
     * \param[in]  slice      Read during the call.
     * \param[out] graph      Unchanged on failure.
     * \return OK; ERR_ARG (null; slices with overlaps or gaps; ranks that disagree on n_vertices, types or options; an
     *         owner that is not a rank; a file for more ranks than vertices); ERR_FORMAT (as
     *         graft_mxm_api.matrix_create(); a file that is damaged, or of another graph or number of parts);
     *         ERR_UNSUPPORTED (a rank would own, or gather from, more than 2147483647 vertices; metis: as many vertices
     *         in all, or as many edges if METIS has 32-bit indices); ERR_NOT_FOUND (metis: no such program);
     *         ERR_MODULE (metis: the program failed, died, wrote invalid output, or exceeded its seconds); ERR_IO
     *         (a file cannot be read or written; metis, auto: no process can be started); ERR_OPTION (metis, auto: the
     *         number of widths in `hidden` does not fit);
     *         ERR_NOMEM; ERR_VERSION (ranks of different releases); ERR_PEER. ERR_ARG and ERR_UNSUPPORTED for an
     *         invalid context or transport are returned on this rank only.
     * [one-caller] [starts-openmp]. Collective over the transport. Memory in bytes, with E edges of V value bytes in n
     * owned rows: 24 n + E (4 + V), with values E / 8, 12 for each vertex of the slice and 4 for each halo vertex, 8
     * more for each vertex of the slice if there are values and any rank has rows of another slice;
     * during the call up to E (32 + 2 V) more, and as much for the edges of the slice. Before that, stream needs 16 for
     * each edge to another slice; then stream and refinement need 4 for each edge and 8 for each vertex of the
     * slice, 16 for each neighbour in other slices, and 8 for each pair of a vertex and another rank that has it as a
     * neighbour. Before that, metis and auto need 4 for each edge and 9 for each vertex of the slice, and 2 MiB; rank 0
     * also 4 for each edge and 45 for each vertex of the graph; the program 16 for each edge and 40 for each vertex,
     * with 64-bit indices of METIS 32 and 56, and what METIS allocates. A file needs 4 for each vertex on rank 0. Since
     * 0.1. */
    int32_t (*create)(graft_context *context, const graft_transport *transport, const graft_slice *slice,
                      graft_graph **graph, graft_error *error);

    /** Report the sizes of the part of rank `rank`, or with -1 of the whole graph. Each rank knows the sizes of all
     *  ranks.
     * \return OK; ERR_ARG (null, no such rank). [one-caller] Not collective. Memory: none. Since 0.1. */
    int32_t (*info)(const graft_graph *graph, int32_t rank, graft_graph_info *info, graft_error *error);

    /** Return the vertices that this rank owns, [n_owned] in ascending order, owned by the graph; NULL for NULL. Row i
     *  of an array in the order of owners belongs to the i-th owned vertex. [one-caller] Not collective. Since 0.1. */
    const int64_t *(*owned)(const graft_graph *graph);

    /** Redistribute one row of bytes per vertex from the order of slices to the order of owners, or back.
     * \return OK; ERR_ARG (null, an unknown direction, a stride below row_bytes, overlap, ranks that disagree);
     *         ERR_NOMEM; ERR_PEER, after which `to` may have been written.
     * [one-caller]. Collective. Memory during the call: the bytes of the rows, but at most 64 MiB, or 64 bytes for each
     * row of `from` and `to` if that is more. Since 0.1. */
    int32_t (*redistribute)(graft_graph *graph, const graft_redistribution *args, graft_error *error);

    /** Print a table of all ranks into text[capacity], truncated if it is too long.
     * \return OK; ERR_ARG (null). [one-caller] Not collective. Since 0.1. */
    int32_t (*explain)(const graft_graph *graph, char *text, uint64_t capacity, graft_error *error);

    /** Free the graph; if it has plans, it is freed with the last of them. NULL is legal. Sends nothing.
     *  [one-caller] Not collective. Since 0.1. */
    void (*destroy)(graft_graph *graph);

    /** Replace the values of all edges. Owners, halos and the choice of rows that ranks exchange stay as they are, and
     *  the results of all passes that begin later are bitwise identical to those of a new graph and new plans, created
     *  from the same slices with the new values:
     *
     *      out = diag(row_scale) (A' (+.x) x)       A'(i, j) = the new value of each edge where A(i, j) had the old one
     *
     *  Edges that create() received several times stay several edges, whose values are added in the same order. The
     *  plans of the graph get the new values, in both directions, and forget stale rows and adaptive bits (options
     *  "halo.staleness", "halo.codec"). The arrays of graft_halo_api.matrix() get the new values in place; matrices
     *  that the host made of them need graft_mxm_api.matrix_update_values() next.
     *
     * \param[in] values  [n x 1] of the type of the graph's values, for the n edges of the slice of this rank in their
     *                    order at create(), without gaps. NULL: the slice has no edges. Read during the call.
     * \return OK; ERR_ARG (another number, type or stride of values; null; a plan that is destroyed on some ranks
     *         only); ERR_FORMAT (a value that is not finite: the message has the edge); ERR_STATE (a graph without
     *         values; a pass of a plan has begun and not ended; a trainer uses the graph: its update() replaces its
     *         values); ERR_NOMEM; ERR_PEER. The same on all ranks. After a failure all values are as they were.
     * [one-caller] [starts-openmp]. Collective. Cost: the values are sent to the owners of the rows, unless no rank
     * has rows of another slice, and copied once for each matrix of graph and plans; the next product prepares the
     * arrays of its kernel again. Memory during the call: the values of graph and plans once more, and twice those of
     * the slice if they are sent. Since 0.2. */
    int32_t (*update_values)(graft_graph *graph, const graft_dense *values, graft_error *error);
} graft_graph_api;

GRAFT_EXTERN_C_END
#endif
