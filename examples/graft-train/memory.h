/* The memory of a run: estimated before it begins, measured when it has ended.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_H
#define MEMORY_H

#include "run.h"

#include <jansson.h>

/** Print the memory of the data set and of the trainer, one line for each purpose. */
void memory_print(const struct run *run);

/** The sum of these bytes. */
int64_t memory_reported(const struct run *run);

/** The peak memory of this process so far, in bytes. */
int64_t memory_peak(void);

/** {"data set": bytes, "features": bytes, ...}; NULL when out of memory. */
json_t *memory_json(const struct run *run);

#endif
