/* A deadline for the start and the end of MPI, which wait for all ranks without a deadline.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEADLINE_H
#define DEADLINE_H

/** End this process with exit code `code` unless deadline_end() is called within `seconds`. Time in which the whole
 *  process is suspended does not count. If no thread can be started, there is no deadline.
 *  \param[in] line  Printed to standard error before the process ends. */
void deadline_begin(double seconds, int code, const char *line);
void deadline_end(void);

#endif
