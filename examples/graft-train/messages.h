/* What ranks sent one another, what it cost, and what few bits lost of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "run.h"

#include <jansson.h>

/** Add it to the report, as rank 0 heard it. The first failure is kept in *bad. */
void messages_json(json_t *report, const struct run *run, int *bad);

/** Print a short table. */
void messages_print(const struct run *run);

#endif
