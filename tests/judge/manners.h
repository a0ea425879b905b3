/* What a module must leave alone: what the process prints, and its settings.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MANNERS_H
#define MANNERS_H

/** Note the settings of the process. From here on what is printed goes into a file. */
void manners_begin(void);

/** Print again. NULL, or what has changed since manners_begin(), or what was printed. */
const char *manners_end(void);

/** The number of threads of this process. */
int manners_threads(void);

#endif
