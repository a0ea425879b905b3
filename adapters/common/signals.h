/* Blocks signals during calls of code that handlers of the host must not interrupt. A handler runs on the stack of the
 * thread, below its stack pointer, and code that is generated at run time may have data there (oneDNN 2.6 does).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/** A set of signals as the kernel stores it: signal n is bit n - 1. */
typedef uint64_t signals_set;

/* Signals that report a fault of the thread itself. If they were blocked, the kernel would end the process. */
static inline signals_set signals_of_faults(void)
{
    static const int fault[] = { SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };
    signals_set      set = 0;

    for (unsigned i = 0; i < sizeof fault / sizeof *fault; i++) set |= (signals_set)1 << (fault[i] - 1);
    return set;
}

/** Block the signals of this thread. Returns its previous mask, for signals_release(). The system call is made without
 * the C library, which never blocks its own signals: it sends them to all threads in setuid(), and their handler would
 * do the same harm. Takes about 0.1 microseconds. Keeps errno. */
static inline signals_set signals_hold(void)
{
    const signals_set all = ~signals_of_faults();
    signals_set       before = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
    return before;
}

static inline void signals_release(signals_set before)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

#endif
