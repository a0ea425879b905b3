/* Parts of a graph over ranks that are derived from another part: made symmetric, reordered, or restricted to the first
 * rows.
 *
 * symmetrize.c   makes parts symmetric      part.c   reorders parts, and takes first rows      values.c   new values
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "halo/links.h"

/** A part with some arrays of its own; it shares the other arrays with its original. All fields 0: an empty part. */
struct gr_made_part {
    struct gr_part part;
    struct gr_csr  local, remote;
    int64_t       *halo_start;
    int32_t       *halo_place;
};

/** Allocate the halo of made->part for `count` vertices, all zero. \return OK; ERR_NOMEM. */
int32_t gr_graph_made_part_new_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    int64_t count, graft_error *error);
/** Allocate the halo of made->part, and fill it from `count` ascending keys, one for each vertex: the owner in the
 *  upper 32 bits, the index among the owner's vertices in the lower. */
int32_t gr_graph_made_part_key_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks,
                                    const int64_t *keys, int64_t count, graft_error *error);
void    gr_graph_made_part_fini(const graft_context *context, struct gr_made_part *made);
/** Return the bytes of the arrays that `made` itself owns. */
int64_t gr_graph_made_part_bytes(const struct gr_made_part *made);

/** Create a part that equals the part of the graph except for new values, which `made` owns. After a failure the caller
 *  frees them. Collective.
 * \param[in] values  [edges of the slice] new values, of type value_type.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_send_values(const graft_graph *graph, const void *values, struct gr_made_part *made,
                             graft_error *error);

/** Swap the values of matrix `own` of a part, and of its view, with those of `made`. */
void gr_graph_part_take_values(struct gr_csr *own, graft_csr *view, struct gr_csr *made);

/** Put the values from gr_graph_send_values() into use in the graph and its halos. `made` receives the old ones. */
void gr_graph_take_values(graft_graph *graph, struct gr_made_part *made);

/** Create a part that has every edge once in both directions, also edges between ranks. An existing edge (i, j) keeps
 *  its value, a new one gets the value of (j, i). Rows are sorted by column. `made` shares no arrays. Collective.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED (a rank would gather from more than INT32_MAX vertices): the same on all
 *         ranks; ERR_PEER. */
int32_t gr_graph_part_symmetrize(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                                 struct gr_made_part *made, graft_error *error);
/** Return the peak of bytes that gr_graph_part_symmetrize() allocates, if the rank receives as many edges as it
 *  sends. */
int64_t gr_graph_part_symmetrize_bytes(const struct gr_part *part);

/** Create a part whose vertices are in a new order on each rank: vertex order[i] gets index i. Rows are sorted by
 *  column, the halo by owner and new index. `made` shares no arrays. `links` belongs to part->halo. Collective.
 * \return OK; ERR_ARG (not a permutation), ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_part_reorder(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                              struct gr_links *links, const int64_t *order, struct gr_made_part *made,
                              graft_error *error);
/** Return the peak of bytes that gr_graph_part_reorder() allocates. */
int64_t gr_graph_part_reorder_bytes(const struct gr_part *part);

/** Create a part of the first `n_rows` rows, whose local columns must be among the first `n_cols` columns. Its halo has
 *  only the vertices from which these rows gather. The local matrix and all values are shared with `part`. Not
 *  collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_graph_part_first_rows(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                                 int64_t n_rows, int64_t n_cols, struct gr_made_part *made, graft_error *error);
