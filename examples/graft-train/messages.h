/* Reports of the messages between ranks: their bytes and times, and their quantization error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "run.h"

#include <jansson.h>

/** Add the reports of all ranks to the JSON report, on rank 0. The first failure is stored in *bad. */
void messages_json(json_t *report, const struct run *run, int *bad);

/** Print a short table of the messages. */
void messages_print(const struct run *run);

#endif
