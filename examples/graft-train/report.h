/* The results of a run, as a JSON file and as a printed summary.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_H
#define REPORT_H

#include "run.h"

/** Write the JSON file. */
int32_t report_write(const struct run *run, const char *path, graft_error *error);

/** Print the summary. */
void report_print(const struct run *run);

#endif
