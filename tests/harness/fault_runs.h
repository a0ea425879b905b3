/* Runs in which the transport of one rank has exactly one fault, at each of its sends and receives in turn. In every
 * run either all results are right, or all ranks that are alive return the same error before the deadline. A wrong
 * number or a hang is a failure. Many runs are made at once, because they mostly wait.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULT_RUNS_H
#define FAULT_RUNS_H

#include "harness/faulty.h"
#include "harness/ranks.h"
#include "harness/tap.h"

#define RUN_TIMEOUT 1.0 /* seconds that ranks wait for each other */

/** One run. Each of its ranks gets it as its argument. */
struct run {
    struct ranks  ranks;
    struct faulty faulty;
    int32_t       n_ranks, bad_rank;
    int64_t       calls; /* number of sends and receives of the faulty rank in a run without a fault */
    /* A body sets this to 1 if it compares results. Then a fault that changes no result is accepted. */
    int32_t       by_results;
    char          fault[768];
};

/** A body calls this at its end with its status. If the result is 1, all ranks must make one more collective call,
 * because a rank that finished before another one failed learns of the failure only in its next call. */
int run_goes_on(struct rank *rank, int32_t rc);

/** Run the bodies and check their results. An error is described in run->fault. */
void run_one(struct run *run, int32_t (*body)(struct rank *rank));

/** Run the bodies without a fault and count the calls of the rank. The return value is NULL or an error in words. */
const char *run_well(int32_t (*body)(struct rank *rank), int32_t n_ranks, int32_t rank, int64_t *calls);

/** Run the bodies with the fault at every `every`-th of the calls. The return value is NULL or an error in words. */
const char *run_series(int32_t (*body)(struct rank *rank), enum fault kind, int32_t n_ranks, int32_t bad_rank,
                       int32_t every, int64_t calls);

/** Check a body by one run without faults, and by a series of runs for each kind of fault except `omitted`. If that is
 * FAULT_FLIP, all kinds that change bytes are omitted. Faults that a rank notices at once are made at every
 * `every[0]`-th call of one rank, and faults that end with a timeout at every `every[1]`-th call. */
__attribute__((unused)) static void run_faults(const char *what, int32_t (*body)(struct rank *rank), int32_t n_ranks,
                                               int32_t bad_rank, const int every[2], enum fault omitted)
{
    int64_t     calls;
    const char *fault = run_well(body, n_ranks, bad_rank, &calls);

    ok_or(fault == NULL && calls > 100, fault, "%s: rank %d makes %lld calls when nothing goes wrong", what, bad_rank,
          (long long)calls);
    for (enum fault kind = FAULT_ERROR; kind < FAULTS; kind++) {
        const int32_t each = every[kind >= FAULT_DROP];

        if (kind == omitted || (omitted == FAULT_FLIP && (kind == FAULT_ZEROED || kind == FAULT_RANDOM))) continue;
        fault = run_series(body, kind, n_ranks, bad_rank, each, calls);
        ok_or(fault == NULL, fault, "%s: %s at each of %lld calls of rank %d", what, fault_name[kind],
              (long long)(calls / each), bad_rank);
    }
}

#endif
