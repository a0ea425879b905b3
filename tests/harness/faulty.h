/* A transport that passes its calls on to another one, and makes one fault of a network or of a process in its n-th
 * send or receive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTY_H
#define FAULTY_H

#include "graft_transport.h"

enum fault {
    FAULT_NONE,
    FAULT_ERROR,     /* the send or receive returns an error */
    FAULT_LATER,     /* the send or receive succeeds, but its request fails when it is tested */
    FAULT_DELAY,     /* the call is slow, but faster than the deadline of the other ranks */
    FAULT_TRUNCATE,  /* only half of the bytes are sent */
    FAULT_FLIP,      /* one bit of the message is flipped */
    FAULT_LONGER,    /* a few extra bytes are sent */
    FAULT_ZEROED,    /* all bytes are 0 */
    FAULT_RANDOM,    /* all bytes are random */
    FAULT_DOUBLED,   /* the message is sent twice */
    FAULT_REORDERED, /* the message is sent after the next one to the same rank, or after a while */
    FAULT_DROP,      /* the message never arrives */
    FAULT_STOP,      /* the rank sleeps for longer than the deadline of the others, and then continues */
    FAULT_DIE,       /* the rank neither sends nor receives any more */
    FAULTS
};

extern const char *const fault_name[FAULTS];

/** A message that is sent late, or in addition to the messages of the rank. */
struct faulty_late {
    void          *data;
    uint64_t       bytes;
    int32_t        to, tag;
    int32_t        waits;   /* whether the message still has to be sent */
    int64_t        polls;   /* number of polled receives while the message waits */
    graft_request *request; /* request of the message after it was sent */
};

struct faulty {
    graft_transport    inner;
    enum fault         kind;
    int64_t            at;      /* number of the send or receive with the fault, counted from 0 */
    double             seconds; /* length of a delay or a sleep */
    int64_t            calls;   /* number of sends and receives so far */
    int32_t            is_hit;  /* whether the fault has happened and changed a message */
    int32_t            is_dead;
    int32_t            keeps; /* whether cancel() reports that the buffer of the message may still be written to */
    struct faulty_late late;
    /* number of tests after which a received message completes; control messages complete at once */
    int64_t            hold;
    int64_t            tests;   /* number of tests of messages so far */
    int64_t            listens; /* number of tests of control messages so far */
};

/** Wrap a transport. *faulty must not move in memory until close(). */
graft_transport faulty_wrap(struct faulty *faulty);

#endif
