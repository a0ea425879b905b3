/* "graft.data/1": a graph with features, labels and a split, read from files or provided by the host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DATA_H
#define GRAFT_DATA_H

#include "graft_graph.h"
#include "graft_host.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_DATA_ID "graft.data/1"

enum { GRAFT_SPLIT_NONE = 0, GRAFT_SPLIT_TRAIN = 1, GRAFT_SPLIT_VALIDATION = 2, GRAFT_SPLIT_TEST = 3 };

enum { GRAFT_DATASET_SLICE = 1 };

/** A data set; the struct does not own its arrays. n is n_vertices, or n_slice with GRAFT_DATASET_SLICE in `flags` or a
 *  graph in `over`; otherwise first_vertex and n_slice are ignored. */
typedef struct graft_dataset {
    uint32_t           size;
    uint32_t           flags; /**< 0, or GRAFT_DATASET_SLICE: the arrays only have the rows of n_slice vertices from
                                   first_vertex on; other ranks have the remaining rows */
    int64_t            n_vertices; /**< vertices of the whole graph */
    int64_t            n_features;
    int64_t            n_classes;       /**< outputs of a model: classes, or columns of float_targets */
    const graft_csr   *graph;           /**< [n x n_vertices], row v holds the vertices from which v gathers */
    const graft_dense *features;        /**< [n x n_features] F32, F16, BF16, or U8 with feature_scale and
                                             feature_zero; NULL if features are sparse. With option batch_size, in one
                                             process, with order=given and without normalize_features, batches read
                                             only the rows that they need, in place: data may be a mapped file.
                                             Evaluations, predictions and update() read all rows. Rows of other types
                                             than F32 are converted to float when batches, and evaluations and
                                             predictions in blocks of rows (eval.blocks), read them; otherwise a trainer
                                             copies all rows as floats. Over ranks a trainer copies its rows, with
                                             batches, order=given and no normalize_features in this type, and then an
                                             evaluation has them as floats. All ranks with rows have the same type,
                                             feature_scale and feature_zero. update() needs the same type */
    const graft_csr   *sparse_features; /**< [n x n_features] F32 values; NULL if features are dense */
    const int32_t     *labels;          /**< [n] 0 .. n_classes-1, or -1 for unlabelled vertices; or NULL */
    const uint8_t     *targets;         /**< [n x n_classes] 0 or 1, for several classes per vertex; or NULL. If both
                                             are given, softmax uses the labels and sigmoid the targets */
    const uint8_t     *split;           /**< [n] GRAFT_SPLIT_...; NULL: prediction only */
    int64_t            first_vertex;
    int64_t            n_slice;
    graft_graph       *over; /**< NULL: one process. Otherwise the distributed graph; the arrays have the rows of this
                                  rank's slice, with or without the flag. `graph` is ignored (except by
                                  graft_train_api.update(), for new values), and arrays of no rows may be null.
                                  Borrowed as long as the arrays */
    const graft_dense *float_targets; /**< [n x n_classes] F32 targets of a regression, n_classes numbers for each
                                           vertex; NaN where a target is unknown. NULL: labels or targets, or none */
    const graft_dense *edge_features; /**< [edges x d] F32, read with option edge_features=array: row e belongs to entry
                                           e of the graph, in the order of its col_idx; over ranks, to entry e of the
                                           slice from which `over` was created. d is the same on all ranks. Repeated
                                           entries have a row each. With symmetrize an added reverse edge gets the row
                                           of the original edge, an existing edge keeps its own row, and of repeated
                                           entries the first one stays. NULL: none. Not borrowed: create(), update() and
                                           predict() copy it */
    const float
        *feature_scale; /**< [n_features] scales, for features of U8: x stands for scale (x - zero) of its column,
                                     rounded after each operation; finite for x from 0 to 255. Copied. NULL with
                                     features of other types */
    const float *feature_zero; /**< [n_features] zeros of the columns; see feature_scale */
} graft_dataset;

/** A data set that was read from files. */
typedef struct graft_data graft_data;

typedef struct graft_data_api {
    uint32_t size;
    uint32_t reserved;

    /** Read a data set.
     *
     * `path` is a folder with
     *     edges.npy             int32 or int64 [2, edges], row 0 sources and row 1 destinations; or graph.mtx
     *     edge_features.npy     float32 [edges, d], row i for edge i of edges.npy
     *     features.npy          float32, float16, bfloat16 ('<V2' or '|V2') or uint8 [n, d]; uint8 requires
     *                           feature_scale.npy and feature_zero.npy, float32 [d]; or, if sparse, four files of a CSR
     *                           matrix: features_csr_indptr.npy int64 [n+1], features_csr_indices.npy int32,
     *                           features_csr_data.npy float32, features_csr_shape.npy int64 [2]
     *     labels.npy            int32 [n], -1 for unlabelled vertices; or uint8 [n, c] for several classes per vertex
     *     targets.npy           instead of labels.npy, for regression: float32 [n] or [n, c], NaN where not known
     *     split.npy             uint8 [n], 0 none, 1 train, 2 validation, 3 test
     * or one Matrix Market file (*.mtx: coordinate; real, integer or pattern; general or symmetric; square), whose
     * entry (i, j) means that i gathers from j. A folder may have only the graph, or graph and features; missing arrays
     * are NULL in the data set. With option batch_size not 0, features.npy is mapped and not read, so it may be larger
     * than memory; its values are not checked then, and it must not change. Only little-endian .npy files of version 1
     * to 3 in C order are read. A repeated edge is stored once, with the first of its rows of edge_features.npy; in a
     * Matrix Market file its values are added.
     *
     * \param[out] data  Unchanged on failure.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND (no such file or folder, or no graph in it); ERR_IO (errno in
     *         native_code); ERR_FORMAT (the message has the file, what was found and what was expected: type, order,
     *         shape, length, line, the first wrong vertex, edge or row); ERR_NOMEM.
     * Every count in a file is compared with its length before memory is allocated.
     * [one-caller]. Not collective. Memory: the arrays, and while reading 8 bytes per edge, with values 12, with
     * edge_features.npy 24. Since 0.1. */
    int32_t (*open)(graft_context *context, const char *path, graft_data **data, graft_error *error);

    /** Return the data set, owned by `data`; NULL for NULL. [any-thread] Not collective. Since 0.1. */
    const graft_dataset *(*view)(const graft_data *data);

    /** Free the data. NULL is legal. [one-caller] Not collective. Since 0.1. */
    void (*close)(graft_data *data);

    /** Read a data set in parallel: as open(), but each rank receives a slice of the vertices. Slices are consecutive
     *  in the order of ranks and have about the same number of bytes; concatenated they are bitwise identical to the
     *  result of open(). n_classes counts the classes of the whole data set. With one rank the slice is the whole data
     *  set, without the flag.
     *
     *  A rank reads an equal range of edges.npy, or of the bytes of a Matrix Market file (a line belongs to the range
     *  in which it begins), sends edges to the ranks of their rows, and reads the rows of its slice from the other
     *  files. All ranks must see the same files, and reach each step within option "halo.timeout". They compare the
     *  sizes and CRC32C of their files: of all bytes up to 1.1 MB, of 17 blocks of 64 kB in larger files, where
     *  differences between blocks are not noticed.
     *
     * \param[in]  transport  Borrowed during the call. NULL: one rank.
     * \param[in]  path       May differ between ranks.
     * \param[out] data       The slice of this rank. Unchanged on failure.
     * \return as open(); ERR_ARG (files differ between ranks); ERR_VERSION (ranks of different releases); ERR_PEER. The
     *         same on all ranks, with the message of the lowest rank that failed and its number in error->rank, except
     *         for ERR_ARG for a null context or an invalid transport. After ERR_PEER the transport can only be closed;
     *         after other codes it may be used again.
     * [one-caller] Collective over the transport. Memory, for E edges in the slice and R in the range, of V value bytes
     * (0 or 4; with edge_features.npy 8): the arrays, and while reading up to R (12 + V) + E (8 + V) more, 64 kB, and
     * 16 kB for each rank, with edge_features.npy another 8 E; lines of a Matrix Market file count as edges, twice if
     * it is symmetric. Since 0.1. */
    int32_t (*open_slice)(graft_context *context, const graft_transport *transport, const char *path, graft_data **data,
                          graft_error *error);
} graft_data_api;

GRAFT_EXTERN_C_END
#endif
