/* The result of one call on each rank. After an error all ranks must return the same status and the same message, in
 * time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VERDICTS_H
#define VERDICTS_H

#include "graft_transport.h"
#include "harness/hosts.h"

/** The result of a call on one rank: its status, its message and its duration. */
struct verdict {
    int32_t rc, rank;
    double  seconds;
    char    message[448];
};

double verdict_clock(void);

/** Record the result of a call that began at time `begin`. */
struct verdict verdict_of(int32_t rc, const graft_error *error, double begin);

/** Check that all ranks have this status and the same message, that the message begins with "rank `rank`: ", and that
 *  no rank waited longer than `seconds`. Collective. The result is 1, or 0 with a sentence in fault[512]. */
int verdicts_agree(const graft_group_api *groups, graft_group *group, int32_t n_ranks, const struct verdict *mine,
                   int32_t rc, int32_t rank, double seconds, char *fault);

#endif
