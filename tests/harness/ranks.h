/* Ranks of internal tests. Each is a thread with a context, a transport, and an argument of the test. All allocations
 * of the ranks are counted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKS_H
#define RANKS_H

#include "comm/collective.h"

#include <stdatomic.h>

enum { RANKS_MOST = 8 };

struct ranks;

/** One rank, for use by its thread. */
struct rank {
    struct ranks   *all;
    int32_t         rank, n_ranks;
    graft_context  *context;
    graft_transport transport; /* the transport of the rank, which a test may wrap */
    struct gr_comm *comm;      /* made by the body, destroyed after it */
    graft_error     error;
    int32_t         rc;         /* status that the body returned */
    double          seconds;    /* duration of the body */
    char            fault[512]; /* an error in words, or empty */
};

struct ranks {
    int32_t n_ranks;
    double  timeout;
    int32_t (*body)(struct rank *rank);
    void           *arg;
    struct rank     at[RANKS_MOST];
    _Atomic int64_t live_bytes; /* bytes that are allocated now */
    /* Number of allocations, without those of the transport, which keeps messages for reuse. */
    _Atomic int64_t allocations;
    _Atomic int64_t peak_bytes; /* largest number of live bytes since the test set this to 0 */
    _Atomic int64_t fail_at;    /* allocations until one fails; negative if none does */
    /* The rank whose allocations count for fail_at, made by the thread of its body; negative for any rank. */
    int32_t         fail_rank;
    _Atomic int32_t finished; /* number of ranks whose bodies have reported their end */
    _Atomic int32_t failed;   /* how many of these returned an error */
    char            fault[640];
};

/** Give every rank a context and a transport. No body runs yet. */
void ranks_init(struct ranks *ranks, int32_t n_ranks, double timeout, int32_t (*body)(struct rank *rank), void *arg);

/** The host table that all ranks share. Its memory is counted and can be made to run out. */
graft_host ranks_host(struct ranks *ranks);

/** Run the bodies, each on its own thread, and wait for them. */
void ranks_run(struct ranks *ranks);

/** Close all ranks. The result is the first error in words, or NULL. Memory that was not freed is an error. */
const char *ranks_fini(struct ranks *ranks);

/** The same for bodies that must all succeed: a status other than OK is an error too. */
const char *ranks_fini_well(struct ranks *ranks);

/** Note an error of this rank in words. The result is 0. */
int rank_blame(struct rank *rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
