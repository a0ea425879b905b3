/* A thread that waits, because MPI does not return to the one that called it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "deadline.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  change = PTHREAD_COND_INITIALIZER;
static pthread_t       thread;
static int             is_running, is_over;
static double          limit;
static int             exit_code;
static char            text[256];

/** The time between two looks at the clock, and the most that counts for it: the time in which a process is suspended
 *  does not count. */
static const long STEP_NANOSECONDS = 100000000;

static void *watch(void *unused)
{
    double waited = 0;

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_over) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += STEP_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&change, &lock, &until);
        waited += 1e-9 * (double)STEP_NANOSECONDS;
        if (is_over || waited < limit) continue;
        fputs(text, stderr);
        _exit(exit_code);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void deadline_begin(double seconds, int code, const char *line)
{
    sigset_t all, before;

    snprintf(text, sizeof text, "%s\n", line);
    limit = seconds;
    exit_code = code;
    is_over = 0;
    /* Signals are for the thread that works. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_running = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void deadline_end(void)
{
    if (!is_running) return;
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_signal(&change);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    is_running = 0;
}
