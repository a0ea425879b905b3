/* Interruption: a first SIGINT or SIGTERM asks to stop after the epoch, a second one ends the program at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

/** Begin to catch the two signals. */
void interrupt_begin(void);

/** The received signal, or 0. */
int interrupt_signal(void);

#endif
