/* Lets the calling thread sleep, as it would while an accelerator works.
 * SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

static inline void sleep_seconds(double seconds)
{
    const struct timespec time = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    nanosleep(&time, NULL);
}
