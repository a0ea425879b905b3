/* "graft.graph/1": a graph over the ranks of a transport. Each rank brings a slice of rows; then each vertex has an
 * owner, which has its row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRAPH_H
#define GRAFT_GRAPH_H

#include "graft_matrix.h"
#include "graft_transport.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_GRAPH_ID "graft.graph/1"

typedef struct graft_graph graft_graph;

/** What one rank brings of a graph: rows first_row to first_row + m - 1. The slices of all ranks, in the order of
 *  ranks, are the graph: each begins where the one before ends. One rank may bring it all, and others nothing. */
typedef struct graft_slice {
    uint32_t         size;
    uint32_t         reserved;
    int64_t          n_vertices; /**< of the whole graph; the same on all ranks */
    int64_t          first_row;
    const graft_csr *rows;    /**< [m x n_vertices] row i holds what vertex first_row + i gathers from; NULL: m is 0.
                                 The type of values, or that there are none, is the same wherever there are entries. */
    const int32_t   *owner;   /**< [m] rank that shall own each vertex, or NULL: as option "partition" says. All ranks
                                 give it, or none; one without rows need not. */
    const uint8_t   *trained; /**< [m] not 0 for vertices to train on: stream, metis and auto deal them out evenly; or
                                   NULL, on any rank: there are none in its slice */
} graft_slice;

/** What a rank has, or all of them together. Entries are those of the rows that are owned. */
typedef struct graft_graph_info {
    uint32_t size;
    int32_t  rank;       /**< -1: all ranks */
    int64_t  n_vertices; /**< of the whole graph */
    int64_t  n_slice;    /**< vertices in the slice of the rank; all: n_vertices */
    int64_t  n_owned;    /**< vertices it owns; all: n_vertices */
    int64_t  n_entries;
    int64_t  n_cut;            /**< entries whose column has another owner than their row */
    int64_t  n_halo;           /**< distinct vertices of others that its rows gather from; all: the sum */
    double   vertex_imbalance; /**< n_owned over its mean over ranks; all: the largest. 1 is even; of no vertices: 1 */
    double   entry_imbalance;  /**< the same of n_entries */
} graft_graph_info;

/** Which way rows go; see move(). */
enum {
    GRAFT_TO_OWNERS = 1, /**< from the order of slices to that of owners: features, labels */
    GRAFT_TO_SLICES = 2  /**< back: predictions */
};

/** Rows of bytes, one for each vertex. */
typedef struct graft_move {
    uint32_t    size;
    int32_t     direction;   /**< GRAFT_TO_OWNERS or GRAFT_TO_SLICES; the same on all ranks */
    int64_t     row_bytes;   /**< that are moved of each row; the same on all ranks */
    const void *from;        /**< [n_slice], or [n_owned] on the way back. NULL if there are no rows. */
    int64_t     from_stride; /**< bytes from one row to the next, at least row_bytes */
    void       *to;          /**< [n_owned], or [n_slice] on the way back. Written; must not overlap `from`. */
    int64_t     to_stride;
} graft_move;

/* Errors of collective calls. What all ranks come by is agreed on: when one rank fails, all return its status and its
 * sentence, with its rank in it and in error->rank, and may go on. When a rank dies, stops for longer than option
 * "halo.timeout", or says something else than it should, all that live return ERR_PEER, with one sentence; the graph,
 * its plans and the transport are of no use then, but to be destroyed and closed. */
typedef struct graft_graphs {
    uint32_t size;
    uint32_t reserved;

    /** Make a graph over ranks: owners are found, rows sent to them, and the columns they name asked for, each once.
     *  No rank needs memory for more than its slice, what it owns, and what its rows gather from.
     *
     *  Owners are, by slice->owner, or else by option "partition",
     *      given   the rank that has the row in its slice: what is spread already stays where it is
     *      block   ranges of vertices in the order they have, even in vertices and entries together
     *      hash    pseudo-random
     *      stream  one after the other, each where most of its neighbours are that fit there, in five passes over the
     *              rows: from the second on it is known where the neighbours behind were, and less is cut. Every slice
     *              by itself: neighbours in other slices do not count
     *      metis   by METIS, in a process that rank 0 starts (options metis.program, metis.timeout)
     *      auto    by block, hash, stream or metis, whichever promises the shortest epochs with options model, layers,
     *              hidden, threads, halo.cover and halo.bits of rank 0, and with the network as it is found to be by
     *              some messages; metis counts if it can be had. What a thread does in a second is assumed; widths of
     *              features and classes, row_masks, work that hides messages, and what ranks of one machine share are
     *              left out. Graphs that METIS cannot number go by stream, slice by slice.
     *  For metis and auto rank 0 has the structure of the whole graph for a time, and the others wait for it; it tells
     *  them that it is at work, and may take longer than halo.timeout. How owners were found is a line of explain(),
     *  and for these two in the log of rank 0.
     *
     *  Option "partition.file" names a file that keeps owners. If it is there it says who owns what, and `partition`
     *  does not matter; it must be of this graph (the same entries, however sliced; values do not count) and of as many
     *  parts as ranks. If not, owners are written there when they are found. Only rank 0 opens it. With slice->owner it
     *  is not looked at.
     *
     * \param[in]  transport  Borrowed until destroy(); graphs of one context may share it. NULL: one rank.
     * \param[in]  slice      Read during the call.
     * \param[out] graph      Untouched on failure.
     * \return OK; ERR_ARG (null; slices that overlap, leave a hole or do not reach n_vertices; ranks that disagree on
     *         n_vertices, types, options; an owner that is no rank; a file for more ranks than vertices); ERR_FORMAT
     *         (as graft_mxm.matrix_create(); a file that is none, damaged, of another graph or number of parts);
     *         ERR_UNSUPPORTED (a rank would own, or gather from, more than 2147483647 vertices; metis: as many vertices
     *         or more entries in all); ERR_NOT_FOUND, ERR_MODULE (metis: no such program; it failed, died, wrote
     *         nonsense, or took longer than metis.timeout); ERR_IO (a file that cannot be read or written; metis: no
     *         process to be had); ERR_OPTION (metis, auto: hidden has another number of widths than there are hidden
     *         layers); ERR_NOMEM; ERR_VERSION (ranks of different releases); ERR_PEER. ERR_ARG and ERR_UNSUPPORTED for
     *         a context or a transport that cannot be one are of this rank alone.
     * [one-caller] [starts-openmp]. Collective over the transport. Memory, with E entries of V value bytes in n owned
     * rows: 24 n + E (4 + V) + 12 for each vertex of the slice and 4 for each of the halo; while it works up to
     * E (32 + 2 V) more, and as much for the entries of the slice. With metis and auto before that: 4 for each entry
     * and 9 for each vertex of the slice, and 2 MiB; on rank 0 also 4 for each entry of the graph and 45 for each
     * vertex, and in the program 20 for each entry and what METIS takes. With a file, 4 on rank 0 for each vertex.
     * Since 1. */
    int32_t (*create)(graft_context *context, const graft_transport *transport, const graft_slice *slice,
                      graft_graph **graph, graft_error *error);

    /** Count what rank `rank` has, or with -1 all of them together. All ranks know it of all.
     * \return OK; ERR_ARG (null, no such rank). [one-caller] Not collective. Since 1. */
    int32_t (*info)(const graft_graph *graph, int32_t rank, graft_graph_info *info, graft_error *error);

    /** The vertices that this rank owns, rising: [n_owned], owned by the graph. Row i of what is in the order of owners
     *  belongs to the i-th. \return NULL for NULL. [one-caller] Not collective. Since 1. */
    const int64_t *(*owned)(const graft_graph *graph);

    /** Move rows that belong to vertices from the order of slices to that of owners, or back. Bits are not looked at.
     * \return OK; ERR_ARG (null, an unknown direction, a stride below row_bytes, overlap, ranks that disagree);
     *         ERR_NOMEM; ERR_PEER, after which `to` may have been written.
     * [one-caller]. Collective. Memory while it works: all of it, but not more than 64 MiB, or 64 bytes for each row
     * of `from` and `to`. Since 1. */
    int32_t (*move)(graft_graph *graph, const graft_move *move, graft_error *error);

    /** Print a table of all ranks into text[capacity], cut if it is too short.
     * \return OK; ERR_ARG. [one-caller] Not collective. Since 1. */
    int32_t (*explain)(const graft_graph *graph, char *text, uint64_t capacity, graft_error *error);

    /** Free it; a graph that has plans goes with the last of them. NULL is legal. Sends nothing.
     *  [one-caller] Not collective. Since 1. */
    void (*destroy)(graft_graph *graph);
} graft_graphs;

GRAFT_EXTERN_C_END
#endif
