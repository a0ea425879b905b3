/* Send lists: the owned vertices that each other rank has in its halo. By these lists, a few bytes for each vertex are
 * sent from owners to halos, or back.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"
#include "graph/part.h"

/** Rows and messages that a rank receives and sends in one forward exchange; backward they go the other way. Every rank
 *  knows these numbers of all ranks. */
struct gr_flow {
    int64_t n_cut;           /* cut edges in the rows of this rank */
    int64_t in, out;         /* rows received, and sent */
    int64_t raw;             /* raw rows among received rows */
    int64_t if_post, if_pre; /* rows received if all were raw, or if all were partial sums of the sender */
    int64_t messages_in, messages_out;
    int64_t bytes; /* memory of this rank's plan */
};

struct gr_links {
    const struct gr_halo *halo;
    int64_t              *send_start; /* [n_ranks + 1] first row sent to each rank */
    int32_t              *place;      /* [rows sent] index of each row among the owned rows */
};

/** Create the lists. Collective. `halo` must outlive them. gr_halo_links_fini() is always required.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_halo_links_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                           struct gr_links *links, graft_error *error);
void    gr_halo_links_fini(const struct gr_comm *comm, struct gr_links *links);

/** Check that the lists have no rows for this rank, and strictly ascending rows for each other rank. \return 1 or 0.
 *  O(rows sent), no messages. */
int gr_halo_links_are_valid(const struct gr_links *links, int32_t n_ranks, int32_t rank);

/** Fetch data of halo vertices: halo[halo->count] receives their owners' elements of owned[], each `bytes` long.
 *  packed[rows sent] is scratch memory. Collective. \return OK; ERR_PEER. */
int32_t gr_halo_links_ask(struct gr_links *links, struct gr_comm *comm, const void *owned, void *packed, void *halo,
                          int64_t bytes, graft_error *error);

/** Send data of halo vertices to the owners: told[rows sent] receives the other ranks' elements of halo[], in the order
 *  of links->place. Collective.
 *  \return OK; ERR_PEER. */
int32_t gr_halo_links_tell(struct gr_links *links, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                           graft_error *error);

/** Return the bytes of memory of `links`. */
int64_t gr_halo_links_bytes(const struct gr_links *links);
