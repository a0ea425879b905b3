/* A transport between the library and the one that ranks have, which counts what passes send: by layer and direction,
 * and by the rank it goes to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COUNTING_H
#define COUNTING_H

#include "harness/hosts.h"

enum { COUNTED_LAYERS = 3, COUNTED_ITEMS = 2 * COUNTED_LAYERS };

/** What went out since it was all zeros. */
struct counts {
    int64_t bytes[COUNTED_ITEMS][HOSTS_MOST], messages[COUNTED_ITEMS][HOSTS_MOST];
    int64_t spare[COUNTED_ITEMS][HOSTS_MOST]; /* bytes of rows that no code fits, as they are */
    int     odd;                              /* messages whose frame says other bytes than its last part has, but: */
    int     last_is_odd;                      /* whether the last one is so */
    int     item, to;                         /* of that, and: */
    int     parts;                            /* how many parts it has had behind its frame */
    int64_t said;
};

/** From now on what this thread sends through a counting transport is counted there; NULL: nowhere. */
void counting_begin(struct counts *counts);

/** This thread will sleep so long before it sends the rows of its next pass. */
void counting_tire(int milliseconds);

/** Make a transport of ranks that are threads a counting one. */
void counting_wrap(graft_transport *transport);

#endif
