/* "graft.data/1": a graph with features, labels and a split, read from files or lent by the host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DATA_H
#define GRAFT_DATA_H

#include "graft_graph.h"
#include "graft_host.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_DATA_ID "graft.data/1"

enum { GRAFT_SPLIT_NONE = 0, GRAFT_SPLIT_TRAIN = 1, GRAFT_SPLIT_VALIDATION = 2, GRAFT_SPLIT_TEST = 3 };

enum { GRAFT_DATASET_SLICE = 1 };

/** What a model is trained on; all arrays borrowed from whoever filled it. n is the number of vertices, or with
 *  GRAFT_DATASET_SLICE in `flags` that of a slice of them. Without flags first_vertex and n_slice say nothing. */
typedef struct graft_dataset {
    uint32_t           size;
    uint32_t           flags; /**< 0, or GRAFT_DATASET_SLICE: the arrays have the rows of n_slice vertices alone, from
                                   first_vertex on; the others are with other ranks */
    int64_t            n_vertices; /**< of the whole graph */
    int64_t            n_features;
    int64_t            n_classes;
    const graft_csr   *graph;           /**< [n x n_vertices], row v holds the vertices v gathers from */
    const graft_dense *features;        /**< [n x n_features] F32, or NULL when ... */
    const graft_csr   *sparse_features; /**< [n x n_features] F32 values, or NULL */
    const int32_t     *labels;          /**< [n] 0 .. n_classes-1, -1 unlabelled; or NULL */
    const uint8_t     *targets;         /**< [n x n_classes] 0 or 1, several classes at once; or NULL. Given both,
                                             softmax goes by the labels and sigmoid by the targets. */
    const uint8_t     *split;           /**< [n] GRAFT_SPLIT_...; or NULL: nothing to train on, prediction only */
    int64_t            first_vertex;
    int64_t            n_slice;
    graft_graph       *over; /**< NULL: no other ranks. Else the graph, over ranks, of which the arrays have the rows of
                                  the slice of this rank, with or without the flag; `graph` is not looked at, and
                                  arrays of no rows may be null. Borrowed as long as they are */
} graft_dataset;

/** A data set that was read from files. */
typedef struct graft_data graft_data;

typedef struct graft_data_interface {
    uint32_t size;
    uint32_t reserved;

    /** Read a data set.
     *
     * `path` is a folder with
     *     edges.npy             int32 or int64 [2, nnz], row 0 sources and row 1 destinations; or graph.mtx instead
     *     features.npy          float32 [n, d]; or, sparse, the four files of a matrix by rows:
     *                           features_csr_indptr.npy int64 [n+1], features_csr_indices.npy int32,
     *                           features_csr_data.npy float32, features_csr_shape.npy int64 [2]
     *     labels.npy            int32 [n], -1 unlabelled; or uint8 [n, c] with several classes at once
     *     split.npy             uint8 [n], 0 none, 1 train, 2 validation, 3 test
     * or one Matrix Market file (*.mtx: coordinate; real, integer or pattern; general or symmetric; square). Entry (i,
     * j) of it means that i gathers from j. From a folder, graph, or graph and features, may be all there is: what is
     * not there is NULL in the data set. Only .npy of version 1 to 3, little-endian, C order, is taken.
     * An edge that comes twice is kept once; in a Matrix Market file its values are added.
     *
     * \param[out] data  Untouched on failure.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND (no such file or folder, no graph in it); ERR_IO (errno in
     *         native_code); ERR_FORMAT (the message names the file and what it says against what it should: type,
     *         order, shape, length, line, the first vertex, edge or row at fault); ERR_NOMEM.
     * Every count that a file states is held against its length before memory is asked for.
     * [one-caller]. Not collective. Memory: the arrays, and while reading 8 bytes per edge, with values 12. Since 1. */
    int32_t (*open)(graft_context *context, const char *path, graft_data **data, graft_error *error);

    /** The data set, owned by `data`. NULL for NULL. [any-thread] Not collective. Since 1. */
    const graft_dataset *(*view)(const graft_data *data);

    /** Free it. NULL is legal. [one-caller] Not collective. Since 1. */
    void (*close)(graft_context *context, graft_data *data);

    /** Read a data set in parallel: as open(), but each rank gets a slice of the vertices. The slices follow one
     *  another in the order of ranks and have about the same number of bytes; put together they are, bit for bit, what
     *  open() gives. n_classes is that of the whole. With one rank the slice is all of it, and has no flag.
     *
     *  A rank reads an equal range of edges.npy, or of the bytes of a Matrix Market file (a line belongs to the range
     *  in which it begins), sends the entries to the ranks that have their rows, and reads the rows of its slice from
     *  the other files. All ranks must see the same files, and read them within option "halo.timeout" of one another.
     *  Each compares with the others the sizes of its files and the CRC32C of their bytes: of all of them up to 1.1 MB,
     *  and beyond that of 17 blocks of 64 kB from the first to the last. A difference in between is not noticed.
     *
     * \param[in]  transport  Borrowed during the call. NULL: one rank.
     * \param[in]  path       May differ from rank to rank.
     * \param[out] data       Untouched on failure; of this rank.
     * \return as open(); ERR_ARG (files that differ on two ranks); ERR_VERSION (ranks of different releases);
     *         ERR_PEER. The same on all ranks, with the sentence of the lowest rank that failed, and its rank in it and
     *         in error->rank; but for ERR_ARG for a null context or a transport that cannot be one. After ERR_PEER the
     *         transport is of no use but to be closed; after others it may be used again.
     * [one-caller] Collective over the transport. Memory, for E entries in the slice and R in the range, of V value
     * bytes (0 or 4): the arrays, and while reading up to R (12 + V) + E (8 + V) more, 64 kB, and 16 kB for each rank;
     * lines of a Matrix Market file count as entries, twice if it is symmetric. None of it grows with the graph if
     * there are more ranks. Since 1. */
    int32_t (*open_slice)(graft_context *context, const graft_transport *transport, const char *path, graft_data **data,
                          graft_error *error);
} graft_data_interface;

GRAFT_EXTERN_C_END
#endif
