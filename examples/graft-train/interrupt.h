/* Interruption: a first SIGINT or SIGTERM cancels the call of the library that runs, a second one ends the program at
 * once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include "graft.h"

/** Begin to catch the two signals, whose first one cancels calls of `api`. */
void interrupt_begin(const graft_api *api);

/** Cancel no calls from now on. Signals are still caught. */
void interrupt_end(void);

/** The received signal, or 0. */
int interrupt_signal(void);

#endif
