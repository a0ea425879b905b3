/* Handling of SIGINT and SIGTERM. The first signal cancels the running call of the library, and the second signal ends
 * the program immediately.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include "graft.h"

/** Begin to catch the two signals. The first signal cancels calls of `api`. */
void interrupt_begin(const graft_api *api);

/** From now on signals do not cancel calls. They are still caught. */
void interrupt_end(void);

/** Returns the received signal, or 0. */
int interrupt_signal(void);

#endif
