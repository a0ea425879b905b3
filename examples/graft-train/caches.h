/* Reports of caches. A cache has rows of other ranks in minibatch training over ranks, or rows of other batches
 * (history=full).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHES_H
#define CACHES_H

#include "run.h"

#include <jansson.h>

/** Add the caches of all ranks to the JSON report, if there are any. The first failure is stored in *bad. */
void caches_json(json_t *report, const struct run *run, int *bad);

/** Returns the bytes that all ranks sent for caches in all epochs, or 0 without caches. */
int64_t caches_bytes(const struct run *run);

/** Print a line for each cache. */
void caches_print(const struct run *run);

#endif
