/* Interruption: a first SIGINT or SIGTERM asks to stop after the epoch, a second one ends the program at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void remember(int number)
{
    caught = number;
}

/** Ignored signals stay ignored, such as SIGINT of programs in the background of a script. */
static void listen_to(int number)
{
    struct sigaction before, action = { .sa_handler = remember };

    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART | SA_ONSTACK);
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

void interrupt_begin(void)
{
    /* Signals on the normal stack during oneDNN's products have overwritten memory. */
    static char   memory[1 << 16];
    const stack_t stack = { .ss_sp = memory, .ss_size = sizeof memory };

    sigaltstack(&stack, NULL);
    listen_to(SIGINT);
    listen_to(SIGTERM);
}

int interrupt_signal(void)
{
    return caught;
}
