/* Send lists: the owned vertices that each other rank has in its halo. Bytes of vertices are exchanged by them: from
 * owners to halos, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"
#include "graph/part.h"

/** Rows and messages that a rank receives and sends in one forward exchange; backward they go the other way. Every rank
 *  knows the numbers of all ranks. */
struct gr_flow {
    int64_t n_cut;           /* cut edges of its rows */
    int64_t in, out;         /* rows received, and sent */
    int64_t raw;             /* raw rows among received rows */
    int64_t if_post, if_pre; /* rows received if all were raw, or all pre-aggregated */
    int64_t messages_in, messages_out;
    int64_t bytes; /* of its plan */
};

struct gr_links {
    const struct gr_halo *halo;
    int64_t              *send_start; /* [n_ranks + 1] rows sent, by receiver */
    int32_t              *place;      /* [rows sent] the number of each among the owned rows */
};

/** Make the lists. Collective. `halo` must outlive them. gr_halo_links_fini() is always required.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_halo_links_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                           struct gr_links *links, graft_error *error);
void    gr_halo_links_fini(const struct gr_comm *comm, struct gr_links *links);

/** Whether the lists have no rows for this rank, and rising, distinct rows for each other rank. Returns 1 or 0. O(rows
 *  sent), no messages. */
int gr_halo_links_are_valid(const struct gr_links *links, int32_t n_ranks, int32_t rank);

/** Fetch: halo[halo->count] receives the owners' elements of owned[], a fixed number of bytes for each vertex.
 *  packed[rows sent] is overwritten. Collective. \return OK; ERR_PEER. */
int32_t gr_halo_links_ask(struct gr_links *links, struct gr_comm *comm, const void *owned, void *packed, void *halo,
                          int64_t bytes, graft_error *error);

/** The other way: told[rows sent] receives the receivers' elements of halo[], in the order of links->place. Collective.
 *  \return OK; ERR_PEER. */
int32_t gr_halo_links_tell(struct gr_links *links, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                           graft_error *error);

/** Bytes that it holds. */
int64_t gr_halo_links_bytes(const struct gr_links *links);
