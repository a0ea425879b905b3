/* Runs in which the transport of one rank has one fault, at each of its sends and receives in turn. Either all results
 * are right, or all live ranks return the same error before the deadline. There is never a wrong number and never a
 * hang. Many runs are made at once, because they mostly wait.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULT_RUNS_H
#define FAULT_RUNS_H

#include "harness/faulty.h"
#include "harness/ranks.h"
#include "harness/tap.h"

#define RUN_TIMEOUT 1.0 /* seconds that ranks wait for each other */

/** One run; the arg of its ranks. */
struct run {
    struct ranks  ranks;
    struct faulty faulty;
    int32_t       n_ranks, bad_rank;
    int64_t       calls;      /* of the bad rank in a run without faults */
    int32_t       by_results; /* 1, set by the body: it compares results, and a fault that changes none may pass */
    char          fault[768];
};

/** At the end of a body, with its status: whether all ranks must make one more collective call, because a rank that was
 *  done before another rank failed learns of the failure only in its next call. */
int run_goes_on(struct rank *rank, int32_t rc);

/** Run the bodies and check their results; run->fault describes an error. */
void run_one(struct run *run, int32_t (*body)(struct rank *rank));

/** A run without a fault, and the number of calls of the rank in it. Returns an error in words, or NULL. */
const char *run_well(int32_t (*body)(struct rank *rank), int32_t n_ranks, int32_t rank, int64_t *calls);

/** Runs with the fault at every `every`-th of the calls. Returns an error in words, or NULL. */
const char *run_series(int32_t (*body)(struct rank *rank), enum fault kind, int32_t n_ranks, int32_t bad_rank,
                       int32_t every, int64_t calls);

/** Checks of a body: a run without faults; and each kind of fault except `omitted` (FAULT_FLIP: all that change bytes),
 *  at every `every[0]`-th call of one rank for faults that a rank notices at once, and at every `every[1]`-th for
 *  faults that end with a timeout. */
__attribute__((unused)) static void run_faults(const char *what, int32_t (*body)(struct rank *rank), int32_t n_ranks,
                                               int32_t bad_rank, const int every[2], enum fault omitted)
{
    int64_t     calls;
    const char *fault = run_well(body, n_ranks, bad_rank, &calls);

    if (!ok(fault == NULL && calls > 100, "%s: rank %d makes %lld calls when nothing goes wrong", what, bad_rank,
            (long long)calls))
        diag("%s", fault);
    for (enum fault kind = FAULT_ERROR; kind < FAULTS; kind++) {
        const int32_t each = every[kind >= FAULT_DROP];

        if (kind == omitted || (omitted == FAULT_FLIP && (kind == FAULT_ZEROED || kind == FAULT_RANDOM))) continue;
        fault = run_series(body, kind, n_ranks, bad_rank, each, calls);
        if (!ok(fault == NULL, "%s: %s at each of %lld calls of rank %d", what, fault_name[kind],
                (long long)(calls / each), bad_rank))
            diag("%s", fault);
    }
}

#endif
