/* Method metis: METIS in a process of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_METIS_H
#define GR_PARTITION_METIS_H

#include "partition/child.h"
#include "partition/partition.h"

/** Find the program: the path of option partition.program, or, if that is "auto", graft-metis in the folder of the library,
 *  then in the folders of PATH. path[room]. \return OK; ERR_NOT_FOUND, which names the places */
int32_t gr_metis_find(const graft_context *context, char *path, int64_t room, graft_error *error);

/** Partition a whole graph: the program gets its entries with the weights of partition.h, and what it says is repaired
 *  by gr_partition_repair().
 * \param[in]  slice      All vertices: first is 0, n_rows is n_cols.
 * \param[in]  meanwhile  Done while the program runs; or NULL. What it fails with is the outcome.
 * \param[out] owner      [n_rows]
 * \return OK; ERR_NOT_FOUND (no program); ERR_UNSUPPORTED (more than 2^31-1 entries); ERR_MODULE (it failed, died,
 *         wrote nonsense, or did not end within option "partition.timeout"; the message has what it said); ERR_IO (no
 *         process or pipe to be had); ERR_NOMEM. Owners are as they were on failure.
 * Memory: 8 bytes per vertex here, and what the repair takes; the program has 8 bytes per row and up to 20 per entry
 * beside what METIS takes. The program is a child of the host's process, which is told of its end by SIGCHLD; no
 * handler and no mask of the host is touched, and no process is left. */
int32_t gr_partition_metis(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                           const struct gr_meanwhile *meanwhile, int32_t *owner, graft_error *error);

/** Whether METIS can number so many vertices and entries. \return OK; ERR_UNSUPPORTED */
int32_t gr_metis_check_size(int64_t n_vertices, int64_t n_entries, graft_error *error);

#endif
