/* The faults of shim.c, for a program that makes many of them one after the other. It finds shim_set() with dlsym().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_H
#define SHIM_H

/** Faults of a message. Those up to SHIM_RANDOM change its bytes. */
enum shim_fault {
    SHIM_NONE,
    SHIM_FLIP,      /* one bit is flipped */
    SHIM_CUT,       /* half of the bytes are sent */
    SHIM_LONGER,    /* 16 bytes more are sent */
    SHIM_ZEROED,    /* all bytes are 0 */
    SHIM_RANDOM,    /* all bytes are random */
    SHIM_DROPPED,   /* nothing is sent */
    SHIM_DOUBLED,   /* the message is sent twice */
    SHIM_REORDERED, /* the message is sent after the next one to the same rank, or after 20 ms */
    SHIM_DELAYED,   /* the sender sleeps for 50 ms before it sends */
    SHIM_SEND,      /* MPI_Isend() fails */
    SHIM_RECEIVE,   /* MPI_Irecv() of the n-th received message fails */
    SHIM_FAULTS
};

#define SHIM_NAMES                                                                                                     \
    { "none",    "flip",    "cut",       "longer",  "zeroed", "random",                                                \
      "dropped", "doubled", "reordered", "delayed", "send",   "receive" }

/** Give message number `at` of this process, counted from 0 from now on, this fault. The result has the number of
 * messages received since the last call in the lower half, and the number of messages sent in the upper half. */
long shim_set(int fault, long at);
typedef long (*shim_setter)(int fault, long at);

#endif
