/* Method metis: METIS in a separate process.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "partition/child.h"
#include "partition/partition.h"

/** Find the program: the path of option partition.program, or, if that is "auto", graft-metis in the folder of the
 *  library, then in the folders of PATH. Writes its path to path[room]. \return OK; ERR_NOT_FOUND, whose message names
 *  the folders */
int32_t gr_partition_metis_find(const graft_context *context, char *path, int64_t room, graft_error *error);

/** Check that a graph with n_vertices vertices and n_edges entries can be partitioned. The program is queried if there
 *  are more than 2^31-1 entries, because METIS then needs 64-bit indices. gr_partition_metis() does not query again.
 * \param[in] meanwhile  Called while the program runs; or NULL.
 * \return OK; ERR_UNSUPPORTED (too many; the program refuses, or does not know the query); ERR_NOT_FOUND, ERR_MODULE
 *         and ERR_IO as gr_partition_metis(); the error of meanwhile. */
int32_t gr_partition_metis_check_size(const graft_context *context, int64_t n_vertices, int64_t n_edges,
                                      const struct gr_meanwhile *meanwhile, graft_error *error);

/** Whether gr_partition_metis_check_size() queries the program. */
static inline int gr_partition_metis_is_asked(int64_t n_vertices, int64_t n_edges)
{
    return n_vertices < INT32_MAX && n_edges > INT32_MAX;
}

/** The bytes that a partition of the whole graph needs on the machine of rank 0, in ranks and program, without the
 *  allocations of METIS; see graft_graph.h. */
double gr_partition_metis_bytes(int64_t n_vertices, int64_t n_edges);
