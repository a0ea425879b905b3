/* A comm is the set of all ranks that a transport connects. Every wait for a message has a deadline, and when a rank
 * fails all ranks agree on one error.
 *
 * All ranks make the same collective calls in the same order. When one rank fails inside such a call, or has waited too
 * long, it notifies all others. The ranks that still run agree on one sentence and on the rank at fault, and each
 * returns ERR_PEER. Then the comm is dead: every later call on it returns the same error at once.
 *
 * The files are layers; each calls only lower layers:
 *
 * group.c       the calls of hosts, on copies                    framed.c   messages of an exchange
 * create.c      creates a comm, or shares the existing one       compare.c, sum.c, route.c   more collective calls
 * collective.c  agree, gather, exchange, broadcast, extrema      calls.c    framed messages and trees of a call
 * comm.c        messages with deadlines                          agreement.c   how all ranks stop
 * endpoint.c    requests of the transport                        frame.c       header and checksum of a message
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "graft_transport.h"

/** A pending message, in memory of the caller, which is zero before and after. It must not move while the message is
 *  pending. If the memory must be freed while the message is pending, gr_comm_fail() is called first. */
struct gr_request {
    graft_request      *handle;
    struct gr_request  *next;
    struct gr_request **link; /* the pointer to this request in the list of the comm */
    int32_t             peer;
};

enum { GR_TAG_CONTROL = 0, GR_TAG_COLLECTIVE = 1, GR_TAG_FIRST = 16, GR_CHANNEL_TAGS = 8 };

struct gr_comm {
    graft_context       *context; /* its host provides the memory */
    struct gr_comm      *next;    /* next comm of the context */
    int32_t              uses;
    graft_transport      transport;
    int32_t              rank;
    int32_t              n_ranks;
    double               timeout;   /* deadline of each wait, in seconds */
    double               last_look; /* time when gr_comm_poll() last checked for notices of other ranks */
    int64_t              channels;  /* number of channels assigned so far */
    struct gr_request   *pending;
    struct gr_agreement *agreement; /* see agreement.c */
    struct gr_calls     *calls;     /* see calls.h */
    struct gr_network   *network;   /* latency and bandwidth to each rank, or NULL; see adaptive/network.h */
    int32_t              dead;      /* OK, or ERR_PEER: the comm is dead */
    int32_t              is_unsafe; /* 1: the transport may still access memory of cancelled messages */
    graft_error          cause;     /* the error that calls on a dead comm return */
};

/** Create a comm of all ranks of a transport, or share the comm that the context has for it. Each create() needs its
 *  destroy(). The host owns the transport, which must live longer than the comm, must not serve another context
 *  meanwhile, and cannot be used again after a failure. Collective: the ranks compare their releases.
 *  \param[in] transport  NULL: one rank. The struct is copied.
 *  \param[in] timeout    The deadline of a wait in seconds (option "halo.timeout").
 *  \return OK; ERR_ARG (the transport is invalid: only on this rank); ERR_NOMEM (if there is one rank); ERR_VERSION;
 *          ERR_PEER. */
int32_t gr_comm_create(graft_context *context, const graft_transport *transport, double timeout, struct gr_comm **comm,
                       graft_error *error);

/** End one use of a comm. The last one cancels pending messages and frees the comm. Not collective; nothing is sent.
 *  NULL is legal. */
void gr_comm_destroy(struct gr_comm *comm);

/** Assign GR_CHANNEL_TAGS tags to an object, and return the first. Objects get the same tags on all ranks because they
 *  are created in the same order, so call this before any operation that can fail on one rank alone. Tags repeat after
 *  very many calls. */
int32_t gr_comm_channel(struct gr_comm *comm);

/** Begin to send or receive a message, like the functions of the transport. `peer` is another rank. \return OK;
 *  ERR_PEER. */
int32_t gr_comm_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                     struct gr_request *request, graft_error *error);
int32_t gr_comm_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                        struct gr_request *request, graft_error *error);

/** Let messages progress during other work, and set *left to the number of pending requests. Frequent calls are cheap:
 *  failures of other ranks are checked at most once in a millisecond. \return OK; ERR_PEER. */
int32_t gr_comm_poll(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                     graft_error *error);

/** Wait until all requests are done, with the deadline of the comm. \return OK; ERR_PEER. */
int32_t gr_comm_wait(struct gr_comm *comm, struct gr_request *requests, int64_t count, graft_error *error);

/** Notify all ranks of the failure in `error`, which happened on this rank alone, between two steps of a collective
 *  call, so that others may be waiting for this rank. \return ERR_PEER, with the agreed sentence in `error`. With one
 *  rank, `error` and its code are unchanged. If all ranks reach the same point, use gr_comm_agree(), which keeps the
 *  comm alive. */
int32_t gr_comm_fail(struct gr_comm *comm, graft_error *error);

/** Leave the other ranks without notice, because an object that they still use is destroyed on this rank. Every later
 *  call returns ERR_PEER with `reason`. The other ranks detect this by their deadline. */
void gr_comm_abandon(struct gr_comm *comm, const char *reason);
