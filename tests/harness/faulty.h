/* A transport that wraps another, and at its n-th send or receive does what networks and processes do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTY_H
#define FAULTY_H

#include "graft_transport.h"

enum fault {
    FAULT_NONE,
    FAULT_ERROR,    /* the call fails */
    FAULT_LATER,    /* the request fails when it is tested */
    FAULT_DELAY,    /* the call takes its time, which is less than the others wait */
    FAULT_TRUNCATE, /* half of the bytes are sent */
    FAULT_FLIP,     /* one bit of what is sent is another */
    FAULT_DROP,     /* the message never arrives */
    FAULT_STOP,     /* the rank sleeps longer than the others wait, and goes on */
    FAULT_DIE,      /* from now on the rank says nothing and hears nothing */
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
    int32_t         keeps;   /* 1: it says of a cancelled message that its memory may still be touched */
    int64_t         hold;    /* what comes has arrived when it was tested for so many times; control messages at once */
    int64_t         tests;   /* of messages, so far, and: */
    int64_t         listens; /* of control messages */
};

/** The wrapping transport. *faulty stays where it is until close(). */
graft_transport faulty_wrap(struct faulty *faulty);

#endif
