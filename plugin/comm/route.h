/* Items that each rank sends to some other ranks: packed by destination, exchanged between all ranks at once, and sent
 * back the same way.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"

/** The numbers of items by rank. Zeroed, it is empty. */
struct gr_route {
    struct gr_comm *comm;
    int64_t        *out;     /* [n_ranks + 1] packed items out[p] to out[p + 1] - 1 are for rank p */
    int64_t        *in;      /* [n_ranks + 1] received items in[p] to in[p + 1] - 1 are from rank p */
    const uint8_t  *is_peer; /* [n_ranks] or NULL: only these ranks exchange counts and items; is_peer is symmetric.
                                Borrowed */
    int64_t        *counts;  /* [3 * n_ranks + 1] for the exchange of counts */
    char           *packed;  /* while gr_comm_route_exchange() packs items; NULL: they are counted */
    int64_t         item_bytes;
    void           *received; /* by gr_comm_route_exchange(); freed with the route */
};

/** Make a route of no items. The caller then may set is_peer, adds the number of items for each rank p to out[p + 1],
 *  and calls gr_comm_route_plan(). Not collective. \return OK; ERR_NOMEM. */
int32_t gr_comm_route_init(struct gr_route *route, struct gr_comm *comm, graft_error *error);
void    gr_comm_route_fini(struct gr_route *route);

/** Exchange the counts, and turn them into starts on both sides. Collective. \return OK; ERR_PEER. */
int32_t gr_comm_route_plan(struct gr_route *route, graft_error *error);

/** The place of the next `count` items for rank `to` among the packed ones. After all items have places,
 *  gr_comm_route_rewind() restores the starts. */
static inline int64_t gr_comm_route_take(struct gr_route *route, int32_t to, int64_t count)
{
    const int64_t place = route->out[to];

    route->out[to] += count;
    return place;
}
void gr_comm_route_rewind(struct gr_route *route);

/** The number of items that this rank sends, and receives. */
static inline int64_t gr_comm_route_n_out(const struct gr_route *route)
{
    return route->out[route->comm->n_ranks];
}
static inline int64_t gr_comm_route_n_in(const struct gr_route *route)
{
    return route->in[route->comm->n_ranks];
}

/** The next item for rank `to`, for the function that packs items: where to write it, or NULL while items are
 *  counted. */
static inline void *gr_comm_route_item(struct gr_route *route, int32_t to)
{
    if (route->packed != NULL) return route->packed + gr_comm_route_take(route, to, 1) * route->item_bytes;
    route->out[to + 1]++;
    return NULL;
}

/** All of the above: pack(arg, route) is called twice, and calls gr_comm_route_item() for each item, at first to count
 *  them. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_comm_route_exchange(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                               int64_t item_bytes, graft_error *error);

/** Its two steps, for a rank that checks between them whether its items fit the memory: `rc` is its status, with its
 *  sentence in `error`. Collective. \return as above; errors of `rc`: the same on all ranks. */
int32_t gr_comm_route_count(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                            graft_error *error);
int32_t gr_comm_route_deliver(struct gr_route *route, int32_t rc, void (*pack)(void *arg, struct gr_route *route),
                              void *arg, int64_t item_bytes, graft_error *error);

/** Exchange items of `item_bytes` each, from packed to received order, and back. Collective. \return OK; ERR_PEER. */
int32_t gr_comm_route_send(const struct gr_route *route, const void *packed, void *received, int64_t item_bytes,
                           graft_error *error);
int32_t gr_comm_route_return(const struct gr_route *route, const void *received, void *packed, int64_t item_bytes,
                             graft_error *error);
