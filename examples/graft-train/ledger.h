/* What memory a run takes: told before it begins, measured when it has ended.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_H
#define LEDGER_H

#include "run.h"

#include <jansson.h>

/** Print the ledger of the trainer and the size of the data set, line by line, with what each is for. */
void ledger_print(const struct run *run);

/** Bytes that the ledger and the data set come to. */
int64_t ledger_told(const struct run *run);

/** The most memory that this process has had at once, in bytes. */
int64_t ledger_peak(void);

/** {"data set": bytes, "features": bytes, ...}; NULL without memory. */
json_t *ledger_json(const struct run *run);

#endif
