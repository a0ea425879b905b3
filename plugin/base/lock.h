/* A spin lock, held for a few instructions. Its word is the id of the process that holds it, or 0. After fork() the
 * child takes over a lock that a thread of its parent held, because that thread does not exist in the child.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

/** The number of attempts of a thread after which it yields its processor. */
enum { GR_LOCK_SPINS = 64 };

static inline void gr_lock_word(_Atomic pid_t *word, pid_t self)
{
    pid_t found = 0;

    for (int spins = 0;
         !atomic_compare_exchange_weak_explicit(word, &found, self, memory_order_acquire, memory_order_relaxed);) {
        if (found != self) continue; /* another process holds it: its thread does not exist in this process */
        found = 0;
        if (++spins % GR_LOCK_SPINS == 0) sched_yield();
    }
}

static inline void gr_unlock_word(_Atomic pid_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}
