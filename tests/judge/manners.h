/* What a module must leave alone: standard output, and the settings of the process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MANNERS_H
#define MANNERS_H

/** Note the settings of the process, and redirect its output into a file. */
void manners_begin(void);

/** End the redirection. The result is NULL, or names what has changed since manners_begin() or what was printed. */
const char *manners_end(void);

/** The number of threads of this process. */
int manners_threads(void);

#endif
