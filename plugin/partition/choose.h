/* Partition of a whole graph by a given method, or by the one with the shortest predicted epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_CHOOSE_H
#define GR_PARTITION_CHOOSE_H

#include "partition/child.h"
#include "partition/partition.h"

struct gr_partition_choice {
    enum gr_partition_method method;
    double                   seconds[GR_PARTITION_METHODS]; /* predicted for an epoch; negative where not tried */
    char                     why[256];                      /* the predictions as one line of text */
};

/** Whether AUTO does without METIS if that fails so: there is no program, it cannot take the graph, or it fails. What
 *  the host lacks, and a request to cancel, are errors. */
static inline int gr_partition_goes_on(int32_t rc)
{
    return rc == GRAFT_ERR_NOT_FOUND || rc == GRAFT_ERR_UNSUPPORTED || rc == GRAFT_ERR_MODULE;
}

/** Partition all vertices of a graph: `first` of the slice is 0, and n_rows is n_cols.
 *
 *  AUTO tries all methods and takes the one with the smallest gr_partition_seconds(), the first of equal ones: fewer
 *  cut edges can mean more rows to send, and equal numbers of vertices unequal numbers of edges. A method that fails
 *  as gr_partition_goes_on() says is skipped, and choice->why gives the reason.
 * \param[in]  cost       The cost of what the graph is for.
 * \param[in]  meanwhile  Called before each method, and while METIS runs; or NULL. If it fails, that is the result.
 * \param[out] owner      [n_rows]
 * \param[out] choice     Or NULL.
 * \return OK; what the method returns, of AUTO without what is skipped. Outputs are unchanged on failure. */
int32_t gr_partition_choose(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                            enum gr_partition_method method, const struct gr_partition_cost *cost,
                            const struct gr_meanwhile *meanwhile, int32_t *owner, struct gr_partition_choice *choice,
                            graft_error *error);

#endif
