/* The contents of a data set, part by part, for the slice of vertices of this rank. Each function allocates arrays of
 * *data, fills them from a file that gr_io_folder_open() has opened, and checks every value. gr_io_data_close() frees
 * them. [collective] All ranks return the same code.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "io/data.h"
#include "io/folder.h"
#include "io/reading.h"

struct graft_data {
    struct gr_handle handle;
    graft_dataset    set; /* the data set, which points to the members below */
    struct gr_csr    graph;
    graft_csr        sparse;
    graft_dense      dense, float_targets, edge_features;
    void            *part[GR_PART_COUNT]; /* elements of each file, in memory; or NULL */
    void            *map;                 /* features.npy, mapped, with the elements of `dense`; or NULL */
    int64_t          map_bytes;
};

/** Read the edges in this rank's range of edges.npy and, if `numbered`, their indices in the file. Ranks agree on the
 *  number of vertices; if no file states it, it is the largest vertex + 1. */
int32_t gr_io_edges_read(const struct gr_reading *reading, const struct gr_part_file *part, int numbered,
                         struct gr_vertices *vertices, struct gr_coo *coo, graft_error *error);

/** Read the edges of a Matrix Market file: coordinate; real, integer or pattern; general or symmetric (both directions
 *  are returned); square. Each rank reads the lines that begin in an equal range of bytes. If vertices->count is
 *  negative, it becomes the number that the file states; otherwise the file must state the same. */
int32_t gr_io_mtx_read(const struct gr_reading *reading, const struct gr_file *file, struct gr_vertices *vertices,
                       struct gr_coo *coo, graft_error *error);

/** The following functions read one part each, and do nothing if the folder does not have it. For edge features,
 *  `edges` are the edges of the slice with their indices, in the order of the file, and data->graph exists. */
int32_t gr_io_edge_features_read(const struct gr_reading *reading, const struct gr_folder *folder,
                                 const struct gr_coo *edges, graft_data *data, graft_error *error);
/** Read features, labels, targets and split. */
int32_t gr_io_columns_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                           graft_error *error);
