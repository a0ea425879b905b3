/* Who has which of the owned vertices in its halo, and bytes for each of these, there and back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_LINKS_H
#define GR_HALO_LINKS_H

#include "comm/collective.h"
#include "graph/part.h"

/** Rows that come to a rank and go from it in one exchange, forward, and their messages; the other way they go back. As
 *  all ranks know. */
struct gr_flow {
    int64_t n_cut, in, out, raw, if_post, if_pre, messages_in, messages_out, bytes;
};

struct gr_links {
    const struct gr_halo *halo;
    int64_t              *send_start; /* [n_ranks + 1] owned rows that go, by the rank that has them in its halo */
    int32_t              *place;      /* [rows that go] which of the owned rows each is */
};

/** Find out who needs which of our rows. Collective. `halo` must outlive it. On failure it may be in parts: the caller
 *  frees it with gr_links_fini().
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_links_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                      struct gr_links *links, graft_error *error);
void    gr_links_fini(const struct gr_comm *comm, struct gr_links *links);

/** halo[halo->count] = what the owners have in owned[], so many bytes for each; `packed` has room for the rows that go.
 *  Collective. \return OK; ERR_PEER. */
int32_t gr_links_ask(struct gr_links *links, struct gr_comm *comm, const void *owned, void *packed, void *halo,
                     int64_t bytes, graft_error *error);

/** The other way: told[rows that go] = what the others have for them, in the order of links->place. Collective.
 *  \return OK; ERR_PEER. */
int32_t gr_links_tell(struct gr_links *links, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                      graft_error *error);

/** Bytes that it holds. */
int64_t gr_links_bytes(const struct gr_links *links);

#endif
