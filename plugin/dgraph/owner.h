/* The owners of vertices. These functions run before any row is sent: of the graph only `first`, the array `owner`, and
 * n_slice and n_edges of the shares of all slices are set.
 *
 * owner.c   the owners of the host or of a file, the methods for slices, and routes to rank 0
 * choice.c  the whole graph on rank 0: METIS, or the best of all methods
 * grids.c   number of ranks that share columns: parallel=auto
 * rates.c   speed of computation
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "partition/choose.h"
#include "partition/owners.h"

/** Why all methods of partition find the same owners if all ranks share the columns. */
#define GR_OWNER_DEALT "all ranks share the columns of one part: its vertices are dealt to the ranks in turn"

/** The number of parts: one for each rank, or for each group of ranks to which a part is dealt. */
int32_t gr_graph_owner_parts(const graft_graph *graph);

/** Partition the whole graph on rank 0 with METIS or AUTO, while the others wait; with parallel=auto also find the
 *  number of ranks that share columns; then the method is any, or GIVEN for graph->slice.owner. Collective. Describes
 *  the result in graph->division.partition and in the log of rank 0.
 * \return OK; errors of gr_partition_choose(), and ERR_OPTION: the same on all ranks; ERR_PEER. */
int32_t gr_graph_owner_choose(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                              graft_error *error);

/** Rank 0 calls gr_partition_metis_check_size() for a graph with this number of entries while the others wait. For
 *  AUTO, of option partition or parallel, also checks whether its machine has the memory. Collective. \return OK; the
 *  same error; ERR_UNSUPPORTED (memory): the same on all ranks; ERR_PEER. */
int32_t gr_graph_owner_check_whole(const graft_graph *graph, int64_t entries, enum gr_partition_method method,
                                   graft_error *error);

/** The speed of a rank with all of its threads. */
struct gr_owner_rates {
    double bytes_per_second;      /* that it sends to others */
    double element_seconds;       /* of a sum over neighbours: an edge in one column */
    double operations_per_second; /* of dense products */
};

/** Assumed speeds of computation, without a measurement. */
struct gr_owner_rates gr_graph_rates_assumed(const graft_context *context, double bytes_per_second);
/** Measure the speed of all ranks at the same time: sums over a part of the slice, and a dense product. *rates gets the
 *  mean of all ranks; without edges it keeps the assumed speeds. Collective. \return OK; ERR_NOMEM, errors of modules:
 *  the same on all ranks; ERR_PEER. */
int32_t gr_graph_rates_measure(const graft_graph *graph, const graft_slice *slice, struct gr_owner_rates *rates,
                               graft_error *error);

/** The cost of an epoch for partition.h, from the workload, and the options for the cover and the bits of messages.
 * \return OK; ERR_OPTION (hidden); ERR_NOMEM. */
int32_t gr_graph_owner_cost(const graft_context *context, const struct gr_workload *workload,
                            const struct gr_owner_rates *rates, struct gr_partition_cost *cost, graft_error *error);

/** Memory for graph->division.choices: the divisors of the number of ranks. \return OK; ERR_NOMEM. */
int32_t gr_graph_grids_init(graft_graph *graph, graft_error *error);
/** Broadcast the choice of rank 0. Collective. \return OK; ERR_PEER. */
int32_t gr_graph_grids_share(graft_graph *graph, graft_error *error);

/** Costs of one rank that shares no columns, and of a message. */
struct gr_grid_costs {
    struct gr_partition_cost of_rank;
    double                   latency;          /* seconds */
    double                   bytes_per_second; /* that a rank sends */
};

/** The whole graph on rank 0. */
struct gr_grid_question {
    const struct gr_slice      *whole;
    const int32_t              *owner; /* [n_vertices] ranks that are given or found by slices; NULL without them */
    enum gr_partition_method    method;
    const struct gr_grid_costs *costs;
    const struct gr_meanwhile  *meanwhile;
};

/** Predict an epoch for each way, with the rows of minimum vertex covers between the parts. Fills
 *  graph->division.choices, and sets graph->columns to the fastest choice that memory.limit allows; one column is
 *  always allowed. On rank 0.
 * \param[out] owner  [n_vertices] parts of the groups; not written if the method is GIVEN. May be question->owner,
 *                    which is read for one column only, the first choice.
 * \param[out] why    How owners were found. \return OK; ERR_NOMEM; errors of gr_partition_choose(). */
int32_t gr_graph_grids_choose(graft_graph *graph, const struct gr_grid_question *question, int32_t *owner,
                              struct gr_partition_choice *why, graft_error *error);

/** The routes from the slices to rank 0, which receives the rows and the edges of all in the order of vertices; other
 *  ranks receive none. */
struct gr_root {
    struct gr_route rows, edges;
};

/** Not collective. Zeroed before. \return OK; ERR_NOMEM. */
int32_t gr_graph_root_init(const graft_graph *graph, struct gr_root *root, graft_error *error);
void    gr_graph_root_fini(struct gr_root *root);
