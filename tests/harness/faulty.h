/* A transport that wraps another one, and makes one fault of a network or a process at its n-th send or receive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTY_H
#define FAULTY_H

#include "graft_transport.h"

enum fault {
    FAULT_NONE,
    FAULT_ERROR,    /* the call fails */
    FAULT_LATER,    /* the request fails when it is tested */
    FAULT_DELAY,    /* the call is slow, but faster than the deadline of the others */
    FAULT_TRUNCATE, /* half of the bytes are sent */
    FAULT_FLIP,     /* one bit of the message is flipped */
    FAULT_DROP,     /* the message never arrives */
    FAULT_STOP,     /* the rank sleeps for longer than the deadline of the others, and goes on */
    FAULT_DIE,      /* from now on the rank neither sends nor receives */
    FAULTS
};

extern const char *const fault_name[FAULTS];

struct faulty {
    graft_transport inner;
    enum fault      kind;
    int64_t         at;      /* which send or receive, counted from 0 */
    double          seconds; /* of a delay or a sleep */
    int64_t         calls;   /* sends and receives so far */
    int32_t         is_hit;  /* 1: the fault has been in effect */
    int32_t         is_dead;
    int32_t         keeps; /* 1: it reports that the memory of a cancelled message may still be written to */
    int64_t hold;    /* a received message completes only when it was tested so many times; control messages at once */
    int64_t tests;   /* of messages, so far, and: */
    int64_t listens; /* of control messages */
};

/** The wrapping transport. *faulty stays where it is until close(). */
graft_transport faulty_wrap(struct faulty *faulty);

#endif
