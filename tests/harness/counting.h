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
    /* Bytes of rows that were sent unquantized because no code can encode them. */
    int64_t spare[COUNTED_ITEMS][HOSTS_MOST];
    /* Messages whose length differs from the length that their frame announces. */
    int     odd;
    int     last_is_odd; /* whether the last message was one of those */
    int     item, to;    /* layer and direction, and receiving rank, of the last message */
    int     parts;       /* number of parts of the last message that follow its frame */
    int64_t said;
};

/** From now on count what this thread sends through a counting transport; NULL ends the counting. */
void counting_begin(struct counts *counts);

/** Let this thread sleep for some milliseconds before it sends the rows of its next pass, as a slow rank would. */
void counting_tire(int milliseconds);

/** Wrap the transport of a rank that is a thread. */
void counting_wrap(graft_transport *transport);

#endif
