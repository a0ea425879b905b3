/* The files of a data set that is a folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_FOLDER_H
#define GR_IO_FOLDER_H

#include "comm/collective.h"
#include "io/npy.h"
#include "io/vertices.h"

enum gr_part {
    GR_PART_GRAPH,
    GR_PART_EDGES,
    GR_PART_FEATURES,
    GR_PART_INDPTR,
    GR_PART_INDICES,
    GR_PART_VALUES,
    GR_PART_SHAPE,
    GR_PART_LABELS,
    GR_PART_SPLIT,
    GR_PART_COUNT
};

struct gr_part_file {
    struct gr_file file; /* fd is -1 if there is none */
    struct gr_npy  npy;  /* its header; not for GR_PART_GRAPH */
};

struct gr_folder {
    const char         *path;
    struct gr_part_file part[GR_PART_COUNT];
    struct gr_vertices  vertices; /* as features, labels and split agree on */
    int64_t             n_sparse_features;
};

/** Open what there is in `path`, and check what can be without reading the data: a graph is there, and nothing twice or
 *  in part; types, shapes, lengths of files; that they agree on the number of vertices. A Matrix Market file is taken
 *  for a folder with nothing but graph.mtx. `folder` is then ready for gr_folder_close(), also after a failure. */
int32_t gr_folder_open(struct gr_folder *folder, const char *path, graft_error *error);
void    gr_folder_close(struct gr_folder *folder);

/** Whether all ranks of the comm have found the same files: of the same sizes, which state the same number of vertices,
 *  and with the same bytes, of which large files are asked here and there alone.
 *  \return OK; ERR_ARG: which differs, and how on two ranks; ERR_IO; ERR_NOMEM; ERR_PEER. The same on all ranks. */
int32_t gr_folder_compare(const struct gr_folder *folder, struct gr_comm *comm, graft_error *error);

static inline int gr_folder_has(const struct gr_folder *folder, enum gr_part part)
{
    return folder->part[part].file.fd >= 0;
}

#endif
