/* Writes partitions to files, and reads them.
 *
 * A file has a head of 64 bytes and the owners, in little-endian byte order:
 *
 *     uint64  "graftPF1"                      uint32  CRC32C of the file with zeros here
 *     int32   parts                           int64   vertices, entries of the graph
 *     uint64  fingerprint of its entries      int64   0, 0, 0
 *     int32   owner[vertices], each from 0 to parts-1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

/** The identity of a graph, independent of its slices: the sum of gr_partition_slice_fingerprint() of
 * partition/partition.h. */
struct gr_graph_identity {
    int64_t  n_vertices, n_edges;
    uint64_t fingerprint;
};

/** Write a partition. The file is complete or, on failure, unchanged: it is written under a temporary name, and renamed
 *  when it is on the disk.
 * \return OK; ERR_ARG (more parts than vertices); ERR_IO, with errno in native_code. */
int32_t gr_partition_owners_write(const char *path, const struct gr_graph_identity *graph, int32_t parts,
                                  const int32_t *owner, graft_error *error);

/** Check before partitioning that the partition can be written to `path`.
 * \return OK; ERR_ARG (more parts than vertices); ERR_IO, with errno in native_code. */
int32_t gr_partition_owners_check_place(const char *path, const struct gr_graph_identity *graph, int32_t parts,
                                        graft_error *error);

/** Read a partition of this graph with this number of parts.
 * \param[out] owner  [n_vertices] Unchanged on failure.
 * \return OK; ERR_NOT_FOUND; ERR_IO; ERR_NOMEM; ERR_FORMAT (not a partition, cut short, too long, damaged, of another
 *         graph or another number of parts, more parts than vertices, an owner out of range). */
int32_t gr_partition_owners_read(const graft_context *context, const char *path, const struct gr_graph_identity *graph,
                                 int32_t parts, int32_t *owner, graft_error *error);
