/* Ranks over a transport: messages whose every wait has a deadline, and one verdict for all when something fails.
 *
 * What the ranks do together they do in the same order on each. When a rank fails alone inside of that, or has waited
 * too long, it tells all others; those that live agree on one sentence and one rank at fault, and each returns
 * ERR_PEER. The comm is dead then: every later call on it returns the same at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COMM_COMM_H
#define GR_COMM_COMM_H

#include "base/context.h"
#include "graft_transport.h"

/** A message on its way, in storage of the caller, zero at first and when it has arrived. It stays where it is while it
 *  is on its way. An object that is destroyed in between calls gr_comm_fail() before. */
struct gr_request {
    graft_request      *handle;
    struct gr_request  *next;
    struct gr_request **link; /* what points at it, in the list of the comm */
    int32_t             peer;
};

enum { GR_TAG_CONTROL = 0, GR_TAG_COLLECTIVE = 1, GR_TAG_FIRST = 16, GR_CHANNEL_TAGS = 8 };

struct gr_comm {
    graft_context     *context; /* lends memory */
    struct gr_comm    *next;    /* of the context */
    int32_t            uses;
    graft_transport    transport;
    int32_t            rank;
    int32_t            n_ranks;
    double             timeout;  /* seconds */
    double             listened; /* when gr_comm_poll() last looked for complaints of the others */
    int64_t            channels; /* given so far */
    struct gr_request *pending;
    struct gr_control *control;   /* of verdict.c */
    struct gr_calls   *calls;     /* of calls.c */
    struct gr_pace    *pace;      /* of pace.h, or NULL */
    int32_t            dead;      /* 0, or ERR_PEER */
    int32_t            is_unsafe; /* bytes of messages that were given up may still be touched */
    graft_error        cause;     /* of death */
};

/** Make a comm of all ranks of a transport, or take the one that the context has for it already; each create() has its
 *  destroy(). The transport stays the host's: it must live longer, serve no other context meanwhile, and cannot be used
 *  again after a failure. Collective: the ranks find out whether they run the same release.
 *  \param[in] transport  NULL: one rank. The struct is copied.
 *  \param[in] timeout    Seconds that a rank waits for another, option "halo.timeout".
 *  \return OK; ERR_ARG (this rank alone: a transport that cannot be one); ERR_NOMEM (if there is one rank);
 *          ERR_VERSION; ERR_PEER. */
int32_t gr_comm_create(graft_context *context, const graft_transport *transport, double timeout, struct gr_comm **comm,
                       graft_error *error);

/** Not collective, sends nothing. With the last use, messages on their way are given up. */
void gr_comm_destroy(struct gr_comm *comm);

/** The first of GR_CHANNEL_TAGS tags for an object. Objects are made in the same order on all ranks, so that they get
 *  the same ones: taken before anything that can fail on one rank alone. After very many they come again. */
int32_t gr_comm_channel(struct gr_comm *comm);

/** Begin to send or receive, as the functions of the transport. `peer` is another rank. \return OK; ERR_PEER. */
int32_t gr_comm_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                     struct gr_request *request, graft_error *error);
int32_t gr_comm_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                        struct gr_request *request, graft_error *error);

/** Let messages move while there is other work; *left receives how many of the requests are still on their way. May be
 *  called very often: whether others have failed it looks no more often than once in a millisecond.
 *  \return OK; ERR_PEER. */
int32_t gr_comm_poll(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                     graft_error *error);

/** Wait until all requests are done, with the deadline of the comm. \return OK; ERR_PEER. */
int32_t gr_comm_wait(struct gr_comm *comm, struct gr_request *requests, int64_t count, graft_error *error);

/** Tell all ranks of the failure that `error` holds, which happened here between two steps of what the ranks do
 *  together; the others may be waiting for this one. Returns ERR_PEER, and in `error` what all agree on. With one rank,
 *  what it was. Where all ranks come by, gr_comm_agree() is the gentler way: the comm lives on. */
int32_t gr_comm_fail(struct gr_comm *comm, graft_error *error);

/** A message was given up, and a library may still write where it was to go, or read what it was to bring: which blocks
 *  these are nobody knows, so until the comm is destroyed nothing of the context is freed any more, but kept for the
 *  life of the process. All that messages went to or from is freed before the comm. */
void gr_comm_keep(struct gr_comm *comm);

/** Forget all messages on their way. The others will wait for them: for the end of a comm. */
void gr_comm_give_up(struct gr_comm *comm);

/** Part from the other ranks without a word, where an object is destroyed that they are still busy with: every later
 *  call returns ERR_PEER with `reason`. The others find out when they have waited long enough. */
void gr_comm_abandon(struct gr_comm *comm, const char *reason);

/** Short rests in a loop that polls: the first turns none, then other threads get their turn, then it sleeps. */
struct gr_rest {
    int32_t turns;
};
void gr_rest(struct gr_rest *rest);

#endif
