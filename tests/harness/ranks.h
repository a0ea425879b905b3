/* Ranks of internal tests. Each rank is a thread with a context, a transport, and an argument that the test chooses.
 * All allocations of the ranks are counted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKS_H
#define RANKS_H

#include "comm/collective.h"

#include <stdatomic.h>

enum { RANKS_MOST = 8 };

struct ranks;

/** One rank; only its own thread uses it. */
struct rank {
    struct ranks   *all;
    int32_t         rank, n_ranks;
    graft_context  *context;
    graft_transport transport; /* the transport of the rank, which a test may wrap */
    struct gr_comm *comm;      /* the comm, which the body makes and which is destroyed after the body */
    graft_error     error;
    int32_t         rc;         /* status that the body returned */
    double          seconds;    /* duration of the body */
    char            fault[512]; /* the error in words, or an empty text */
};

struct ranks {
    int32_t n_ranks;
    double  timeout;
    int32_t (*body)(struct rank *rank);
    void           *arg;
    struct rank     at[RANKS_MOST];
    _Atomic int64_t live_bytes; /* bytes that are allocated at present */
    /* number of allocations, except those of the transport, which reuses messages */
    _Atomic int64_t allocations;
    _Atomic int64_t peak_bytes; /* largest number of live bytes since the test set this to 0 */
    _Atomic int64_t fail_at;    /* number of allocations until one fails; negative if none does */
    /* The rank whose allocations, by the thread of its body, count for fail_at; negative for any rank. */
    int32_t         fail_rank;
    _Atomic int32_t finished; /* number of ranks whose bodies have reported their end */
    _Atomic int32_t failed;   /* number of finished ranks whose bodies returned an error */
    char            fault[640];
};

/** Give every rank a context and a transport. No body runs yet. */
void ranks_init(struct ranks *ranks, int32_t n_ranks, double timeout, int32_t (*body)(struct rank *rank), void *arg);

/** The host table that all ranks share. It counts memory and can make allocations fail. */
graft_host ranks_host(struct ranks *ranks);

/** Run the bodies, each on its own thread, and wait for them. */
void ranks_run(struct ranks *ranks);

/** Close all ranks. The result is the first error in words, or NULL. Memory that was not freed is an error. */
const char *ranks_fini(struct ranks *ranks);

/** Like ranks_fini(), for bodies that must all succeed: any other status than OK is an error. */
const char *ranks_fini_well(struct ranks *ranks);

/** Record an error of this rank in words. The result is 0. */
int rank_blame(struct rank *rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
