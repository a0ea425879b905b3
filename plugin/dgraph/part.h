/* Parts of a graph over ranks that are derived from another part: made symmetric, reordered, or with the first rows
 * only.
 *
 * symmetrize.c   every edge in both directions      part.c   reordered, or the first rows
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "halo/links.h"

/** A part with some arrays of its own; it shares the other arrays with its original. Zeroed, it is empty. */
struct gr_made_part {
    struct gr_part part;
    struct gr_csr  local, remote;
    int64_t       *halo_start;
    int32_t       *halo_place;
};

/** Allocate the halo of made->part for `count` vertices, all zero. \return OK; ERR_NOMEM. */
int32_t gr_graph_made_part_new_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    int64_t count, graft_error *error);
/** The same from `count` ascending keys: the owner of a vertex in the upper 32 bits, its place there in the lower. */
int32_t gr_graph_made_part_key_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    const int64_t *keys, int64_t count, graft_error *error);
void    gr_graph_made_part_fini(const graft_context *context, struct gr_made_part *made);
/** The bytes of its own arrays. */
int64_t gr_graph_made_part_bytes(const struct gr_made_part *made);

/** The part of the graph with new values; `made` has its own values. On failure the caller frees them. Collective.
 * \param[in] values  [edges of the slice] of type value_type.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_send_values(const graft_graph *graph, const void *values, struct gr_made_part *made,
                             graft_error *error);

/** Swap the values of a matrix of a part, and of its view, with new ones. */
void gr_graph_part_take_values(struct gr_csr *own, graft_csr *view, struct gr_csr *made);

/** Use the values of gr_graph_send_values() in the graph and its halos. `made` receives the old ones. */
void gr_graph_take_values(graft_graph *graph, struct gr_made_part *made);

/** Every edge in both directions, once, also edges between ranks. An existing edge (i, j) keeps its value, a new one
 *  has the value of (j, i). Rows are sorted by column. `made` shares no arrays. Collective.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED (a rank would gather from more than INT32_MAX vertices): the same on all
 *         ranks; ERR_PEER. */
int32_t gr_graph_part_symmetrize(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                                 struct gr_made_part *made, graft_error *error);
/** The peak of bytes allocated by gr_graph_part_symmetrize(), if the rank receives as many edges as it sends. */
int64_t gr_graph_part_symmetrize_bytes(const struct gr_part *part);

/** Each rank puts its vertices into an order: place i gets vertex order[i]. Rows are sorted by column, the halo by
 *  owner and new place. `made` shares no arrays. `links` belongs to part->halo. Collective.
 * \return OK; ERR_ARG (not a permutation), ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_part_reorder(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                              struct gr_links *links, const int64_t *order, struct gr_made_part *made,
                              graft_error *error);
/** The peak of bytes allocated by gr_graph_part_reorder(). */
int64_t gr_graph_part_reorder_bytes(const struct gr_part *part);

/** The first `n_rows` rows, whose local columns are among the first `n_cols` columns. The halo has the vertices from
 *  which these rows gather. The local matrix and all values are shared with `part`. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_graph_part_first_rows(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                                 int64_t n_rows, int64_t n_cols, struct gr_made_part *made, graft_error *error);
