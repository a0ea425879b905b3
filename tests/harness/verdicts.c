/* Compares the results of one call on all ranks; see the header of the same name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/verdicts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

double verdict_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct verdict verdict_of(int32_t rc, const graft_error *error, double begin)
{
    struct verdict v;

    memset(&v, 0, sizeof v);
    v.rc = rc;
    v.seconds = verdict_clock() - begin;
    if (rc >= 0) return v;
    v.rank = error->rank;
    snprintf(v.message, sizeof v.message, "%s", error->message);
    return v;
}

int verdicts_agree(const graft_group_api *groups, graft_group *group, int32_t n_ranks, const struct verdict *mine,
                   int32_t rc, int32_t rank, double seconds, char *fault)
{
    struct verdict all[HOSTS_MOST];
    int64_t        bytes[HOSTS_MOST];
    graft_error    error = GRAFT_INIT(graft_error);
    char           prefix[24];

    snprintf(prefix, sizeof prefix, "rank %d: ", rank);
    for (int32_t r = 0; r < n_ranks; r++) bytes[r] = sizeof *mine;
    if (groups->gather(group, -1, bytes, mine, all, &error) < 0) {
        snprintf(fault, 512, "the ranks cannot go on: %.400s", error.message);
        return 0;
    }
    for (int32_t r = 0; r < n_ranks; r++) {
        if (all[r].rc == rc && all[r].rank == rank && strcmp(all[r].message, all[0].message) == 0 &&
            strncmp(all[r].message, prefix, strlen(prefix)) == 0 && all[r].seconds < seconds)
            continue;
        snprintf(fault, 512,
                 "rank %d: status %d of rank %d after %.3g s: %.150s (rank 0: %.150s), expected %d of rank %d", r,
                 all[r].rc, all[r].rank, all[r].seconds, all[r].message, all[0].message, rc, rank);
        return 0;
    }
    return 1;
}
