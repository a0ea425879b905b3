/* A transport that counts the messages of passes by layer, direction and receiving rank, and hands them on to another
 * transport. Tests compare the counts with the traffic that a trainer reports.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COUNTING_H
#define COUNTING_H

#include "harness/hosts.h"

enum { COUNTED_LAYERS = 3, COUNTED_ITEMS = 2 * COUNTED_LAYERS };

/** What a rank has sent since the test set this struct to 0. */
struct counts {
    int64_t bytes[COUNTED_ITEMS][HOSTS_MOST], messages[COUNTED_ITEMS][HOSTS_MOST];
    /* Bytes of rows that were sent unquantized because the codec cannot encode their values. */
    int64_t spare[COUNTED_ITEMS][HOSTS_MOST];
    /* Number of messages whose length differs from the length in their frame. */
    int     odd;
    int     last_is_odd; /* whether the last message had a wrong length */
    int     item, to;    /* layer and direction of the last message, and the rank that receives it */
    int     parts;       /* number of buffers of the last message after its frame */
    int64_t said;
};

/** Start to count what this thread sends through a counting transport. NULL ends the counting. */
void counting_begin(struct counts *counts);

/** Make this thread sleep for some milliseconds before it sends the rows of its next pass, to imitate a slow rank. */
void counting_tire(int milliseconds);

/** Wrap the transport of a rank that is a thread, so that its messages are counted. */
void counting_wrap(graft_transport *transport);

#endif
