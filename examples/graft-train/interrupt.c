/* Handles SIGINT and SIGTERM. The first signal cancels the running call of the library, and the second signal ends the
 * program immediately.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

/** The library whose calls a signal cancels, or NULL. */
static const graft_api *_Atomic cancellable;

/** OpenMP threads may run this handler too. It therefore stores the signal before it cancels the call, so that a
 *  cancelled caller finds the signal. */
static void cancel(int number)
{
    const graft_api *api = atomic_load(&cancellable);

    caught = number;
    if (api != NULL) api->cancel(api->context);
}

/** Install the handler, unless the signal is ignored. Scripts ignore SIGINT in background programs, for example. */
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
