/* The owners of vertices. These functions run before any row is sent, when only graph->first, memory for
 * graph->slice.owner, and n_slice and n_edges of graph->share are set.
 *
 * owner.c   owners from the host or a file, methods that work on slices, and routes to rank 0
 * choice.c  METIS, or the best of all methods, for the whole graph on rank 0
 * grids.c   parallel=auto: the number of ranks that share columns
 * rates.c   measures the speed of computation
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "partition/choose.h"
#include "partition/owners.h"

/** The reason why owners do not depend on the partition method if all ranks share the columns. */
#define GR_OWNER_DEALT "all ranks share the columns of one part: its vertices are dealt to the ranks in turn"

/** Return the number of parts: one for each rank, or one for each group of ranks among which a part is dealt. */
int32_t gr_graph_owner_parts(const graft_graph *graph);

/** Partition the whole graph on rank 0 with METIS or AUTO, while the others wait. With parallel=auto the method may be
 *  any, or GIVEN for the owners in graph->slice.owner, and rank 0 also finds the number of ranks that share columns.
 *  Describes the result in graph->division.partition and in the log of rank 0. Collective.
 * \return OK; errors of gr_partition_choose(), and ERR_OPTION: the same on all ranks; ERR_PEER. */
int32_t gr_graph_owner_choose(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                              graft_error *error);

/** Check on rank 0, while the others wait, whether METIS can partition a graph with this number of entries; with
 *  partition=auto or parallel=auto also whether the machine has the memory. Collective. \return OK; errors of
 *  gr_partition_metis_check_size(), ERR_UNSUPPORTED (memory): the same on all ranks; ERR_PEER. */
int32_t gr_graph_owner_check_whole(const graft_graph *graph, int64_t entries, enum gr_partition_method method,
                                   graft_error *error);

/** The speed of a rank with all of its threads. */
struct gr_owner_rates {
    double bytes_per_second;      /* bytes that a rank sends to others */
    double element_seconds;       /* time of one element of a sum over neighbours: one edge in one column */
    double operations_per_second; /* operations of dense products */
};

/** Return assumed speeds of computation, without a measurement. */
struct gr_owner_rates gr_graph_rates_assumed(const graft_context *context, double bytes_per_second);
/** Measure the speed of all ranks at the same time: sums over a part of the slice, and a dense product. *rates receives
 *  the means over ranks; if there are no edges, element_seconds does not change. Collective. \return OK; ERR_NOMEM,
 *  errors of modules: the same on all ranks; ERR_PEER. */
int32_t gr_graph_rates_measure(const graft_graph *graph, const graft_slice *slice, struct gr_owner_rates *rates,
                               graft_error *error);

/** Compute the cost of an epoch, for the room partition, from the workload, and from the options of covers and codecs.
 * \return OK; ERR_OPTION (hidden); ERR_NOMEM. */
int32_t gr_graph_owner_cost(const graft_context *context, const struct gr_workload *workload,
                            const struct gr_owner_rates *rates, struct gr_partition_cost *cost, graft_error *error);

/** Allocate graph->division.choices, one for each divisor of the number of ranks. \return OK; ERR_NOMEM. */
int32_t gr_graph_grids_init(graft_graph *graph, graft_error *error);
/** Broadcast the choice of rank 0. Collective. \return OK; ERR_PEER. */
int32_t gr_graph_grids_share(graft_graph *graph, graft_error *error);

/** Costs of the work of one rank that shares no columns, and of messages. */
struct gr_grid_costs {
    struct gr_partition_cost of_rank;
    double                   latency;          /* seconds of a message */
    double                   bytes_per_second; /* bytes that a rank sends */
};

/** What rank 0 knows for the choice of parallel=auto. */
struct gr_grid_question {
    const struct gr_slice      *whole;
    const int32_t              *owner; /* [n_vertices] owners given, or found from slices; NULL: none */
    enum gr_partition_method    method;
    const struct gr_grid_costs *costs;
    const struct gr_meanwhile  *meanwhile;
};

/** Predict the time of an epoch for each choice of columns, with the rows of minimum vertex covers between the parts.
 *  Fills graph->division.choices, and sets graph->columns to the fastest choice that memory.limit allows; one column is
 *  always allowed. Only rank 0 calls it.
 * \param[out] owner  [n_vertices] parts of the chosen groups; not written if the method is GIVEN. May be
 *                    question->owner, which is read only for the first choice, one column.
 * \param[out] why    How owners were found.
 * \return OK; ERR_NOMEM; errors of gr_partition_choose(). */
int32_t gr_graph_grids_choose(graft_graph *graph, const struct gr_grid_question *question, int32_t *owner,
                              struct gr_partition_choice *why, graft_error *error);

/** The routes from the slices to rank 0, which receives the rows and edges of all slices in the order of vertices;
 *  other ranks receive none. */
struct gr_root {
    struct gr_route rows, edges;
};

/** Initialise both routes. *root must be zero before. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_graph_root_init(const graft_graph *graph, struct gr_root *root, graft_error *error);
void    gr_graph_root_fini(struct gr_root *root);
