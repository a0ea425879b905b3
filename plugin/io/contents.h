/* The contents of a data set, part by part, of the slice of vertices that this rank has. Every function asks for memory
 * in *data, fills it from a file that gr_folder_open() has passed, and checks every value; what it made so far is freed
 * by gr_data_close(). All ranks call the same ones, and return the same.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_CONTENTS_H
#define GR_IO_CONTENTS_H

#include "base/memory.h"
#include "io/data.h"
#include "io/folder.h"
#include "io/reading.h"

struct graft_data {
    graft_dataset set; /* points at what follows */
    struct gr_csr graph;
    struct gr_csr sparse;
    graft_dense   dense;
    int32_t      *labels;
    uint8_t      *targets;
    uint8_t      *split;
};

/** Entries of the graph from this rank's range of edges.npy. Agrees on the number of vertices: the largest one named,
 *  if no file says. */
int32_t gr_edges_read(const struct gr_reading *reading, const struct gr_part_file *part, struct gr_vertices *vertices,
                      struct gr_coo *coo, graft_error *error);

/* Of a folder; parts that are not there are passed over. */
int32_t gr_features_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                         graft_error *error);
int32_t gr_labels_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                       graft_error *error);
int32_t gr_split_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                      graft_error *error);

#endif
