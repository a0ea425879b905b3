/* Partition of a whole graph by a method of choice, or by the one that promises the shortest epochs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_CHOOSE_H
#define GR_PARTITION_CHOOSE_H

#include "partition/child.h"
#include "partition/partition.h"

enum gr_partition_method {
    GR_PARTITION_BLOCK,
    GR_PARTITION_HASH,
    GR_PARTITION_STREAM,
    GR_PARTITION_METIS,
    GR_PARTITION_METHODS, /* how many there are */
    GR_PARTITION_AUTO = GR_PARTITION_METHODS
};

struct gr_partition_choice {
    enum gr_partition_method method;                        /* the one that was taken */
    double                   seconds[GR_PARTITION_METHODS]; /* predicted for an epoch; negative where not tried */
    char                     why[256];                      /* a line about all, for people */
};

/** Partition all vertices of a graph: `first` of the slice is 0, and n_rows is n_cols.
 *
 *  AUTO tries all methods and takes the one with the smallest gr_partition_seconds(), the first of equal ones: fewer
 *  cut entries can mean more rows to send, and even numbers of vertices uneven numbers of entries. METIS counts if it
 *  can be had; the line says why if not.
 * \param[in]  cost       Of what the graph is for.
 * \param[in]  meanwhile  Done before each method, and while METIS is at work; or NULL. What it fails with, which is
 *                        ERR_PEER, is the outcome.
 * \param[out] owner      [n_rows]
 * \param[out] choice     Optional.
 * \return OK; ERR_NOMEM; ERR_PEER; with METIS alone what gr_partition_metis() returns. Outputs are as they were on
 *         failure. */
int32_t gr_partition_choose(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                            enum gr_partition_method method, const struct gr_partition_cost *cost,
                            const struct gr_meanwhile *meanwhile, int32_t *owner, struct gr_partition_choice *choice,
                            graft_error *error);

#endif
