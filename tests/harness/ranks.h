/* Ranks that are threads of the test, each with a context, a transport and an argument of the test. The memory of all
 * ranks is counted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKS_H
#define RANKS_H

#include "comm/collective.h"

#include <stdatomic.h>

enum { RANKS_MOST = 8 };

struct ranks;

/** One rank, for its thread. */
struct rank {
    struct ranks   *all;
    int32_t         rank, n_ranks;
    graft_context  *context;
    graft_transport transport; /* its own, or a wrapper */
    struct gr_comm *comm;      /* created by the body, destroyed after it */
    graft_error     error;
    int32_t         rc;         /* of the body */
    double          seconds;    /* that the body took */
    char            fault[512]; /* an error in words, or empty */
};

struct ranks {
    int32_t n_ranks;
    double  timeout;
    int32_t (*body)(struct rank *rank);
    void           *arg;
    struct rank     at[RANKS_MOST];
    _Atomic int64_t live_bytes;  /* of the host's memory */
    _Atomic int64_t allocations; /* without allocations of the transport, which keeps its messages for reuse */
    _Atomic int64_t peak_bytes;  /* the most since the test set it to 0 */
    _Atomic int64_t fail_at;     /* the allocation that fails, counted down; negative: none */
    int32_t         fail_rank;   /* of this rank, by the thread of its body; negative: of any */
    _Atomic int32_t finished;    /* ranks whose bodies have reported their end */
    _Atomic int32_t failed;      /* finished ranks that returned an error */
    char            fault[640];
};

/** Give every rank a context and a transport; no body runs yet. */
void ranks_init(struct ranks *ranks, int32_t n_ranks, double timeout, int32_t (*body)(struct rank *rank), void *arg);

/** The host of all ranks, whose memory is counted and can run out. */
graft_host ranks_host(struct ranks *ranks);

/** Run the bodies, each on a thread, and wait for them. */
void ranks_run(struct ranks *ranks);

/** Close all ranks, and return the first fault, or NULL. Bytes that are not freed are a fault. */
const char *ranks_fini(struct ranks *ranks);

/** The same if all bodies must succeed: an error of a body is a fault too. */
const char *ranks_fini_well(struct ranks *ranks);

/** Note a fault of this rank. Returns 0. */
int rank_blame(struct rank *rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
