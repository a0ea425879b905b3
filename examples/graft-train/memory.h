/* The memory of a run, which is estimated before the run and measured afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_H
#define MEMORY_H

#include "run.h"

#include <jansson.h>

/** Print the memory of the data set and of the trainer, one line for each purpose. */
void memory_print(const struct run *run);

/** Returns the sum of the bytes that memory_print() prints. */
int64_t memory_reported(const struct run *run);

/** Returns the peak memory of this process so far, in bytes. */
int64_t memory_peak(void);

/** Returns {"data set": bytes, "features": bytes, ...}, or NULL when out of memory. */
json_t *memory_json(const struct run *run);

#endif
