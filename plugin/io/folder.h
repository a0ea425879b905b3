/* The files of a data set folder.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"
#include "io/npy.h"

enum gr_part {
    GR_PART_GRAPH,
    GR_PART_EDGES,
    GR_PART_EDGE_FEATURES,
    GR_PART_FEATURES,
    GR_PART_FEATURE_SCALE,
    GR_PART_FEATURE_ZERO,
    GR_PART_INDPTR,
    GR_PART_INDICES,
    GR_PART_VALUES,
    GR_PART_SHAPE,
    GR_PART_LABELS,
    GR_PART_TARGETS,
    GR_PART_SPLIT,
    GR_PART_COUNT
};

struct gr_part_file {
    struct gr_file file; /* open file; its fd is -1 if the file does not exist */
    struct gr_npy  npy;  /* header of the file, unless it is GR_PART_GRAPH */
};

/** The number of vertices, and the file that states it. All files of a data set must agree. */
struct gr_vertices {
    int64_t     count; /* the number; -1: not known yet */
    const char *said_by;
};

struct gr_folder {
    const char         *path;
    struct gr_part_file part[GR_PART_COUNT];
    struct gr_vertices  vertices; /* the number that features, labels and split state */
    int64_t             n_sparse_features;
};

/** Open the files of folder `path`, and check them without reading their data: that there is one graph, that no part is
 *  incomplete or exists twice, and that types, shapes, lengths and numbers of vertices agree. If `path` is a Matrix
 *  Market file, it is treated as a folder with only graph.mtx. Always call gr_io_folder_close(), also after a
 *  failure. */
int32_t gr_io_folder_open(struct gr_folder *folder, const char *path, graft_error *error);
void    gr_io_folder_close(struct gr_folder *folder);

/** Record that the graph in `file` has vertices up to count - 1. If no other file has a row for each vertex, count may
 *  be at most 2^24, or 16 for each byte of `file`, so that a file of few bytes cannot cause the allocation of
 *  gigabytes.
 *  \return OK; ERR_FORMAT (also if another file states another number; more than INT32_MAX) */
int32_t gr_io_vertices_agree_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count,
                                   graft_error *error);

/** Check that all ranks have the same files, by sizes, number of vertices, and CRCs (of samples of large files).
 *  [collective]
 *  \return OK; ERR_ARG (what differs, and the values of two ranks); ERR_IO; ERR_NOMEM; ERR_PEER. The same on all
 *  ranks. */
int32_t gr_io_folder_compare(const struct gr_folder *folder, struct gr_comm *comm, graft_error *error);

static inline int gr_io_folder_has(const struct gr_folder *folder, enum gr_part part)
{
    return folder->part[part].file.fd >= 0;
}
