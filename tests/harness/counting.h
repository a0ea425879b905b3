/* A transport that wraps another and counts the messages of passes, by layer, direction and receiving rank.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COUNTING_H
#define COUNTING_H

#include "harness/hosts.h"

enum { COUNTED_LAYERS = 3, COUNTED_ITEMS = 2 * COUNTED_LAYERS };

/** The counts of sent data since the struct was zeroed. */
struct counts {
    int64_t bytes[COUNTED_ITEMS][HOSTS_MOST], messages[COUNTED_ITEMS][HOSTS_MOST];
    int64_t spare[COUNTED_ITEMS][HOSTS_MOST]; /* bytes of rows that no code can encode, sent raw */
    int     odd;                              /* messages whose size differs from their frame, except: */
    int     last_is_odd;                      /* whether the last message is odd */
    int     item, to;                         /* of the last message, and: */
    int     parts;                            /* the number of its parts after the frame */
    int64_t said;
};

/** Count what this thread sends through a counting transport from now on; NULL: stop. */
void counting_begin(struct counts *counts);

/** Let this thread sleep for this time before it sends the rows of its next pass. */
void counting_tire(int milliseconds);

/** Wrap a transport of ranks that are threads. */
void counting_wrap(graft_transport *transport);

#endif
