/* Implements deadlines with a separate thread, because a call of MPI that waits does not return to its caller.
 * SPDX-License-Identifier: Apache-2.0 */
#include "deadline.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  change;
static pthread_t       thread;
static int             is_running, is_over;
static double          limit;
static int             exit_code;
static char            text[256];

/** The thread reads the clock every STEP seconds. If more than SUSPENDED seconds have passed between two readings, the
 *  whole process was suspended, and that time does not count. */
static const double STEP = 0.1, SUSPENDED = 2;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void wait_until(double end)
{
    const struct timespec until = { (time_t)end, (long)(1e9 * (end - (double)(time_t)end)) };

    pthread_cond_timedwait(&change, &lock, &until);
}

static void *watch(void *unused)
{
    double waited = 0, last = now();

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_over) {
        double passed;

        wait_until(last + STEP);
        passed = now() - last;
        last += passed;
        waited += passed < SUSPENDED ? passed : STEP;
        if (is_over || waited < limit) continue;
        fputs(text, stderr);
        _exit(exit_code);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int start_watch(void)
{
    pthread_condattr_t attributes;

    if (pthread_condattr_init(&attributes) != 0) return 0;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&thread, NULL, watch, NULL) == 0) return 1;
    pthread_cond_destroy(&change);
    return 0;
}

void deadline_begin(double seconds, int code, const char *line)
{
    sigset_t all, before;

    snprintf(text, sizeof text, "%s\n", line);
    limit = seconds;
    exit_code = code;
    is_over = 0;
    /* The new thread blocks all signals, so that the main thread receives them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_running = start_watch();
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
    pthread_cond_destroy(&change);
    is_running = 0;
}
