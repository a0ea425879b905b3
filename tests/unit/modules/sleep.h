/* A calling thread that waits for an accelerator.
 * SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

static inline void sleep_seconds(double seconds)
{
    const struct timespec time = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    nanosleep(&time, NULL);
}
