/* Items that each rank sends to some other ranks: they are packed by destination, exchanged among all ranks at once,
 * and results can be sent back the same way.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"

/** Numbers of items for and from each rank. A zeroed route is empty. */
struct gr_route {
    struct gr_comm *comm;
    int64_t        *out;     /* [n_ranks + 1] packed items out[p] to out[p + 1] - 1 are for rank p */
    int64_t        *in;      /* [n_ranks + 1] received items in[p] to in[p + 1] - 1 are from rank p */
    const uint8_t  *is_peer; /* [n_ranks] or NULL: only these ranks exchange counts and items; is_peer is symmetric.
                                Borrowed */
    int64_t        *counts;  /* [3 * n_ranks + 1] memory for the exchange of counts */
    char           *packed;  /* packed items, while gr_comm_route_exchange() packs them; NULL while it counts them */
    int64_t         item_bytes;
    void           *received; /* items received by gr_comm_route_exchange(); freed with the route */
};

/** Create a route without items. Then the caller may set is_peer, adds the number of items for each rank p to out[p +
 *  1], and calls gr_comm_route_plan(). Not collective. \return OK; ERR_NOMEM. */
int32_t gr_comm_route_init(struct gr_route *route, struct gr_comm *comm, graft_error *error);
void    gr_comm_route_fini(struct gr_route *route);

/** Exchange the counts, and convert them to starts on both sides. Collective. \return OK; ERR_PEER. */
int32_t gr_comm_route_plan(struct gr_route *route, graft_error *error);

/** Assign the next `count` items for rank `to` their index among the packed items. When all items are assigned,
 *  gr_comm_route_rewind() restores the starts. */
static inline int64_t gr_comm_route_take(struct gr_route *route, int32_t to, int64_t count)
{
    const int64_t place = route->out[to];

    route->out[to] += count;
    return place;
}
void gr_comm_route_rewind(struct gr_route *route);

/** The number of items that this rank sends, or receives. */
static inline int64_t gr_comm_route_n_out(const struct gr_route *route)
{
    return route->out[route->comm->n_ranks];
}
static inline int64_t gr_comm_route_n_in(const struct gr_route *route)
{
    return route->in[route->comm->n_ranks];
}

/** Return the memory for the next item for rank `to`, or NULL while items are counted. For a function that packs
 *  items. */
static inline void *gr_comm_route_item(struct gr_route *route, int32_t to)
{
    if (route->packed != NULL) return route->packed + gr_comm_route_take(route, to, 1) * route->item_bytes;
    route->out[to + 1]++;
    return NULL;
}

/** Plan a route, pack items and exchange them. pack(arg, route) calls gr_comm_route_item() for each item; it is called
 *  once to count the items, and once to pack them. Collective. \return OK; ERR_NOMEM: the same on all ranks;
 *  ERR_PEER. */
int32_t gr_comm_route_exchange(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                               int64_t item_bytes, graft_error *error);

/** The two steps of gr_comm_route_exchange(), for a rank that checks between them whether the items fit into its
 *  memory. `rc` is the result of this check, with its error. Collective. \return as gr_comm_route_exchange(); a failure
 *  `rc` of any rank: the same on all ranks. */
int32_t gr_comm_route_count(struct gr_route *route, void (*pack)(void *arg, struct gr_route *route), void *arg,
                            graft_error *error);
int32_t gr_comm_route_deliver(struct gr_route *route, int32_t rc, void (*pack)(void *arg, struct gr_route *route),
                              void *arg, int64_t item_bytes, graft_error *error);

/** Send packed items to their destinations, or send an item for each received one back. An item has `item_bytes`.
 *  Collective. \return OK; ERR_PEER. */
int32_t gr_comm_route_send(const struct gr_route *route, const void *packed, void *received, int64_t item_bytes,
                           graft_error *error);
int32_t gr_comm_route_return(const struct gr_route *route, const void *received, void *packed, int64_t item_bytes,
                             graft_error *error);
