/* Method metis: METIS in a process of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_METIS_H
#define GR_PARTITION_METIS_H

#include "partition/child.h"
#include "partition/partition.h"

/** Find the program: the path of option partition.program, or, if that is "auto", graft-metis in the folder of the
 *  library, then in the folders of PATH. path[room]. \return OK; ERR_NOT_FOUND, which names the places */
int32_t gr_metis_find(const graft_context *context, char *path, int64_t room, graft_error *error);

/** Whether METIS can number so many vertices and edges. \return OK; ERR_UNSUPPORTED */
int32_t gr_metis_check_size(int64_t n_vertices, int64_t n_edges, graft_error *error);

#endif
