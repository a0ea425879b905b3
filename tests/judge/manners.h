/* Compares the state of the process that a module must leave unchanged: standard output, and the settings of the
 * process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MANNERS_H
#define MANNERS_H

/** Record the settings of the process, and redirect its output into a file. */
void manners_begin(void);

/** End the redirection. The result is NULL, or a sentence about what was printed or has changed since
 * manners_begin(). */
const char *manners_end(void);

/** The number of threads of this process. */
int manners_threads(void);

#endif
