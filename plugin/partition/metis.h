/* Method metis: METIS in a separate process.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "partition/child.h"
#include "partition/partition.h"

/** Find the program: the path of option partition.program, or, if that is "auto", graft-metis in the folder of the
 *  library, then in the folders of PATH. path[room]. \return OK; ERR_NOT_FOUND, which names the places */
int32_t gr_partition_metis_find(const graft_context *context, char *path, int64_t room, graft_error *error);

/** Whether a graph with these numbers of vertices and entries can be partitioned. The program is queried if there are
 *  more than 2^31-1 entries, because METIS then needs 64-bit indices. gr_partition_metis() does not query again.
 * \param[in] meanwhile  Called while the program runs; or NULL.
 * \return OK; ERR_UNSUPPORTED (too many; the program refuses, or does not know the query); ERR_NOT_FOUND, ERR_MODULE
 *         and ERR_IO as gr_partition_metis(); the error of meanwhile. */
int32_t gr_partition_metis_check_size(const graft_context *context, int64_t n_vertices, int64_t n_edges,
                                      const struct gr_meanwhile *meanwhile, graft_error *error);

/** Whether the check needs the program. */
static inline int gr_partition_metis_is_asked(int64_t n_vertices, int64_t n_edges)
{
    return n_vertices < INT32_MAX && n_edges > INT32_MAX;
}

/** The bytes of a partition of the whole graph on the machine of rank 0, for ranks and program, without allocations of
 *  METIS; see graft_graph.h. */
double gr_partition_metis_bytes(int64_t n_vertices, int64_t n_edges);
