/* Which rank owns which vertex: what owner.c is made of. All of it runs before any row is sent; of the graph there are
 * `first`, the array `owner`, and in `share` n_slice and n_entries of all slices.
 *
 * owner.c       what the host says, and methods that need nothing of others
 * choice.c      the whole graph on rank 0: METIS, or the best of all methods
 * owner_file.c  a partition in a file
 * root.c        from slices to rank 0 and back
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DGRAPH_OWNER_H
#define GR_DGRAPH_OWNER_H

#include "dgraph/graph.h"
#include "partition/choose.h"
#include "partition/owners.h"

/** The rows of this rank with which of them are trained on. Without rows, those of nobody. */
struct gr_slice gr_owner_rows(const graft_graph *graph, const graft_slice *slice);

/** Partition the whole graph on rank 0, by METIS or AUTO, while the others wait. Collective. Says what was done in
 *  graph->partition, and in the log of rank 0.
 * \return OK; what gr_partition_choose() returns, and ERR_OPTION: the same on all ranks; ERR_PEER. */
int32_t gr_owner_choose(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                        graft_error *error);

/** What partition.h calls the cost of an epoch, by the options of the context: for layers as wide as the mean of the
 *  hidden ones, with the threads of this rank, and rows by model, halo.cover and halo.bits.
 * \return OK; ERR_OPTION (hidden); ERR_NOMEM. */
int32_t gr_owner_cost(const graft_context *context, double bytes_per_second, struct gr_partition_cost *cost,
                      graft_error *error);

/** Take owners from a file, which rank 0 reads, if it is there. Collective.
 * \param[out] identity  Of the graph.
 * \param[out] found     0: there is none, and one can be written.
 * \return OK; what gr_owners_read() and gr_owners_check_place() return: the same on all ranks; ERR_PEER. */
int32_t gr_owner_load(graft_graph *graph, const graft_slice *slice, const char *path,
                      struct gr_graph_identity *identity, int32_t *found, graft_error *error);

/** Write them, by rank 0. Collective. \return OK; what gr_owners_write() returns: the same on all ranks; ERR_PEER. */
int32_t gr_owner_save(const graft_graph *graph, const char *path, const struct gr_graph_identity *identity,
                      graft_error *error);

/** The routes from the slices to rank 0, which receives the rows and the edges of all in the order of vertices; other
 *  ranks receive none. */
struct gr_root {
    struct gr_route rows, edges;
};

/** Not collective. Zeroed before. \return OK; ERR_NOMEM. */
int32_t gr_root_init(const graft_graph *graph, struct gr_root *root, graft_error *error);
void    gr_root_fini(struct gr_root *root);

#endif
