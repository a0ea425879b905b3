/* Partitions a whole graph by a given method, or by the method with the shortest predicted epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/text.h"
#include "partition/child.h"
#include "partition/partition.h"

struct gr_partition_choice {
    enum gr_partition_method method;
    double                   seconds[GR_PARTITION_METHODS]; /* predicted seconds of an epoch; negative if not tried */
    char                     why[256];                      /* the predictions as one line of text */
    char                     skipped[128];                  /* methods that AUTO skipped, and the reasons */
};

/** Whether AUTO continues without METIS after this status: there is no program, it does not support the graph, or it
 *  failed. A lack of resources of the host, and a request to cancel, are errors. */
static inline int gr_partition_goes_on(int32_t rc)
{
    return rc == GRAFT_ERR_NOT_FOUND || rc == GRAFT_ERR_UNSUPPORTED || rc == GRAFT_ERR_MODULE;
}

/** Write the predictions of AUTO: in seconds, or, with is_relative, relative to the chosen method. */
void gr_partition_list_predictions(const struct gr_partition_choice *choice, int is_relative, struct gr_text *text);

/** Partition all vertices of a graph: `first` of the slice is 0, and n_rows is n_cols.
 *
 *  AUTO tries all methods and takes the first one with the smallest gr_partition_seconds(): fewer cut edges can mean
 *  more rows to send, and equal numbers of vertices unequal numbers of edges. A method that fails with a status of
 *  gr_partition_goes_on() is skipped, and choice->why gives the reason.
 * \param[in]  cost       The cost of an epoch on the graph.
 * \param[in]  meanwhile  Called before each method, and while METIS runs; or NULL. Its failure ends the call.
 * \param[out] owner      [n_rows] The part of each vertex.
 * \param[out] choice     The chosen method and the predictions; or NULL.
 * \return OK; errors of the method, with AUTO except for skipped methods. Outputs are unchanged on failure. */
int32_t gr_partition_choose(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                            enum gr_partition_method method, const struct gr_partition_cost *cost,
                            const struct gr_meanwhile *meanwhile, int32_t *owner, struct gr_partition_choice *choice,
                            graft_error *error);
