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
    struct gr_file file; /* fd is -1 if the file does not exist */
    struct gr_npy  npy;  /* its header; not for GR_PART_GRAPH */
};

/** The number of vertices, and the file that states it. All files of a data set must agree. */
struct gr_vertices {
    int64_t     count; /* -1: not known yet */
    const char *said_by;
};

struct gr_folder {
    const char         *path;
    struct gr_part_file part[GR_PART_COUNT];
    struct gr_vertices  vertices; /* the number that features, labels and split agree on */
    int64_t             n_sparse_features;
};

/** Open the files of `path`, and check them without reading the data: there is one graph, and no part is incomplete or
 *  exists twice; types, shapes and lengths; the number of vertices. A Matrix Market file counts as a folder with only
 *  graph.mtx. gr_io_folder_close() is required also after a failure. */
int32_t gr_io_folder_open(struct gr_folder *folder, const char *path, graft_error *error);
void    gr_io_folder_close(struct gr_folder *folder);

/** A graph in `file` has vertices up to count - 1. If no other file has a row for each vertex, count may be at most
 *  2^24, or 16 for each byte of `file`, so that a few bytes cannot make the library allocate gigabytes.
 *  \return OK; ERR_FORMAT (also if another file states another number; more than INT32_MAX) */
int32_t gr_io_vertices_agree_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count,
                                   graft_error *error);

/** Whether all ranks have the same files: sizes, number of vertices, and CRCs (of samples of large files). [collective]
 *  \return OK; ERR_ARG (what differs, and the values of two ranks); ERR_IO; ERR_NOMEM; ERR_PEER. The same on all
 *  ranks. */
int32_t gr_io_folder_compare(const struct gr_folder *folder, struct gr_comm *comm, graft_error *error);

static inline int gr_io_folder_has(const struct gr_folder *folder, enum gr_part part)
{
    return folder->part[part].file.fd >= 0;
}
