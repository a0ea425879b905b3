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
#include "partition/owners.h"
#include "partition/choose.h"

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

/** Where bytes lie on their way between slices and rank 0, which has those of all in the order of vertices. */
struct gr_root {
    int64_t *slice; /* [n_ranks + 1] on each rank: all of its bytes are for rank 0, or from it */
    int64_t *whole; /* [n_ranks + 1] on rank 0, by slice; on others nothing */
};

/** \return OK; ERR_NOMEM, on this rank alone. */
int32_t gr_root_init(const graft_graph *graph, struct gr_root *root, graft_error *error);
void    gr_root_fini(const graft_graph *graph, struct gr_root *root);

/** How many vertices, or entries, rank 0 has room for: those of all slices; on other ranks none. */
int64_t gr_root_rows(const graft_graph *graph);
int64_t gr_root_entries(const graft_graph *graph);

/** Collective: so many bytes for each row and each entry of the slices. \return OK; ERR_PEER. */
int32_t gr_root_gather(const graft_graph *graph, struct gr_root *root, int64_t row_bytes, int64_t entry_bytes,
                       const void *slice, void *whole, graft_error *error);
int32_t gr_root_scatter(const graft_graph *graph, struct gr_root *root, int64_t row_bytes, const void *whole,
                        void *slice, graft_error *error);

#endif
