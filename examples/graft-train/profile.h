/* The times of the phases of a run, as a trace for chrome://tracing or Perfetto, and as a table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_H
#define PROFILE_H

#include "library.h"

struct profile {
    graft_span *spans; /* [count] spans of all epochs so far; those of threads follow their phase */
    int64_t     count, capacity;
};

/** Store the spans of the last epoch. */
int32_t profile_take(struct profile *profile, const struct library *library, graft_trainer *trainer,
                     graft_error *error);

/** Write the spans in the trace event format (a JSON array of complete events, times in microseconds), with a row for
 *  the phases and one for each thread. */
int32_t profile_write(const struct profile *profile, const char *path, graft_error *error);

/** Print seconds, their share of the `seconds` of all epochs, GB/s, GFLOP/s and balance by pass and phase. */
void profile_print(const struct profile *profile, double seconds);

void profile_fini(struct profile *profile);

#endif
