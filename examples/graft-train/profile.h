/* Where the time of a run went: a trace for chrome://tracing or Perfetto, and a table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_H
#define PROFILE_H

#include "library.h"

struct profile {
    graft_span *spans; /* [count] of all epochs so far; those of threads behind their phase */
    int64_t     count, capacity;
};

/** Keep the spans of the last epoch. */
int32_t profile_take(struct profile *profile, const struct library *library, graft_trainer *trainer,
                     graft_error *error);

/** Write them in the trace event format (JSON array of complete events, times in microseconds): a row of the phases and
 *  one for each thread. */
int32_t profile_write(const struct profile *profile, const char *path, graft_error *error);

/** Seconds, share of the `seconds` that all epochs took, GB/s, GFLOP/s and balance by pass and phase. */
void profile_print(const struct profile *profile, double seconds);

void profile_fini(struct profile *profile);

#endif
