/* Other parts of a graph over ranks, made from what there is: in both directions, in another order, a part of the rows.
 *
 * symmetrize.c   every edge in both directions      part.c   the rest
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DGRAPH_PART_H
#define GR_DGRAPH_PART_H

#include "dgraph/graph.h"
#include "halo/links.h"

/** A part with arrays of its own; those that it has not are of the part that it was made from. Zeroed, it is empty. */
struct gr_made_part {
    struct gr_part part;
    struct gr_csr  local, remote;
    int64_t       *halo_start;
    int32_t       *halo_place;
};

/** Room for a halo of so many vertices, all arrays zero; `part` has it. \return OK; ERR_NOMEM. */
int32_t gr_made_part_halo(const graft_context *context, struct gr_made_part *made, int32_t n_ranks, int64_t count,
                          graft_error *error);
void    gr_made_part_fini(const graft_context *context, struct gr_made_part *made);
/** Bytes of its own arrays. */
int64_t gr_made_part_bytes(const struct gr_made_part *made);

/** Every entry in both directions, once, also those between ranks. A value is that of (i, j) if it was there, else that
 *  of (j, i). Rows are sorted by column; `made` has all arrays of its own. Collective.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED (a rank would gather from more than INT32_MAX vertices): the same on all
 *         ranks; ERR_PEER. */
int32_t gr_part_symmetrize(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                           struct gr_made_part *made, graft_error *error);
/** Bytes that it takes at its peak, if as many edges come from others as this rank has of theirs. */
int64_t gr_part_symmetrize_bytes(const struct gr_part *part);

/** Each rank puts its vertices in an order: place i gets vertex order[i]. Rows are sorted by column, the halo by owner
 *  and place again; `made` has all arrays of its own. `links` are of part->halo. Collective.
 * \return OK; ERR_ARG (no permutation), ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_part_reorder(const graft_context *context, struct gr_comm *comm, const struct gr_part *part,
                        struct gr_links *links, const int64_t *order, struct gr_made_part *made, graft_error *error);
/** Bytes that it takes at its peak. */
int64_t gr_part_reorder_bytes(const struct gr_part *part);

/** The first rows, whose columns are among the first ones of their owners, of which `n_cols` are here. The halo is what
 *  these rows gather from. The local matrix and the values are those of `part`. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_part_first(const graft_context *context, const struct gr_part *part, int32_t n_ranks, int64_t n_rows,
                      int64_t n_cols, struct gr_made_part *made, graft_error *error);

#endif
