/* Interruption: a first SIGINT or SIGTERM cancels the call of the library that runs, a second one ends the program at
 * once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

/** Whose calls a signal cancels; NULL: none. */
static const graft_api *_Atomic cancellable;

/** Threads of OpenMP may run this too, so the signal is noted before its effect can be seen. */
static void cancel(int number)
{
    const graft_api *api = atomic_load(&cancellable);

    caught = number;
    if (api != NULL) api->cancel(api->context);
}

/** Ignored signals stay ignored, such as SIGINT of programs in the background of a script. */
static void listen_to(int number)
{
    struct sigaction before, action = { .sa_handler = cancel };

    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

void interrupt_begin(const graft_api *api)
{
    atomic_store(&cancellable, api);
    listen_to(SIGINT);
    listen_to(SIGTERM);
}

void interrupt_end(void)
{
    atomic_store(&cancellable, NULL);
}

int interrupt_signal(void)
{
    return caught;
}
