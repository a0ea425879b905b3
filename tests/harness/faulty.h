/* A transport that wraps another, and makes one fault of a network or a process at its n-th send or receive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTY_H
#define FAULTY_H

#include "graft_transport.h"

enum fault {
    FAULT_NONE,
    FAULT_ERROR,     /* the call fails */
    FAULT_LATER,     /* the request fails when it is tested */
    FAULT_DELAY,     /* the call is slow, but faster than the deadline of the others */
    FAULT_TRUNCATE,  /* half of the bytes are sent */
    FAULT_FLIP,      /* one bit of the message is flipped */
    FAULT_LONGER,    /* a few bytes more are sent */
    FAULT_ZEROED,    /* all bytes are 0 */
    FAULT_RANDOM,    /* all bytes are random */
    FAULT_DOUBLED,   /* the message is sent twice */
    FAULT_REORDERED, /* it is sent after the next message to the same rank, or after a while */
    FAULT_DROP,      /* the message never arrives */
    FAULT_STOP,      /* the rank sleeps for longer than the deadline of the others, and goes on */
    FAULT_DIE,       /* from now on the rank neither sends nor receives */
    FAULTS
};

extern const char *const fault_name[FAULTS];

/** A message that is sent in addition to the messages of the rank, or late. */
struct faulty_late {
    void          *data;
    uint64_t       bytes;
    int32_t        to, tag;
    int32_t        waits;   /* 1: it is not sent yet */
    int64_t        polls;   /* of receives, while it waits */
    graft_request *request; /* while it is sent */
};

struct faulty {
    graft_transport    inner;
    enum fault         kind;
    int64_t            at;      /* the number of the send or receive, from 0 */
    double             seconds; /* of a delay or a sleep */
    int64_t            calls;   /* sends and receives so far */
    int32_t            is_hit;  /* 1: the fault has been in effect, and changed something */
    int32_t            is_dead;
    int32_t            keeps; /* 1: it reports that the memory of a cancelled message may still be written to */
    struct faulty_late late;
    int64_t hold;    /* a received message completes only after this number of tests; control messages complete at
                      * once */
    int64_t tests;   /* of messages, so far, and: */
    int64_t listens; /* of control messages */
};

/** The wrapping transport. *faulty must not move until close(). */
graft_transport faulty_wrap(struct faulty *faulty);

#endif
