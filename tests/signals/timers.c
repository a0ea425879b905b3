/* A library that is preloaded into a process and sends it signals as timers would, with handlers on the normal stack.
 * Variable GRAFT_TEST_SIGNALS is "MICROSECONDS FILE". Every so many microseconds there is a signal for the process and
 * one for each thread, and the C library makes each thread call setresgid(). At the end the numbers of both kinds of
 * signals are appended to FILE.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MOST = 64, FRAME = 2048 };

static long         interval; /* interval of the timers in microseconds */
static char         seen[256];
static _Atomic long of_process, of_threads;

/* A signal handler with a small stack frame, like that of a profiler. */
static void timers_handle(int number)
{
    volatile unsigned char frame[FRAME];

    for (int i = 0; i < FRAME; i++) frame[i] = 0xFF;
    atomic_fetch_add(number == SIGALRM ? &of_process : &of_threads, frame[FRAME - 1] == 0xFF);
}

static void timers_catch(int number)
{
    struct sigaction action = { .sa_flags = SA_RESTART };

    action.sa_handler = timers_handle;
    sigaction(number, &action, NULL);
}

static void timers_start_for(pid_t thread)
{
    struct sigevent         event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 5 };
    const struct timespec   step = { interval / 1000000, interval % 1000000 * 1000 };
    const struct itimerspec times = { step, step };
    timer_t                 timer;

    event._sigev_un._tid = thread;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &times, NULL);
}

/* Give each new thread a timer. */
static void timers_look(pid_t *known, int *count)
{
    DIR *list = opendir("/proc/self/task");

    if (list == NULL) return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        const pid_t thread = atoi(entry->d_name);
        int         at = 0;

        while (at < *count && known[at] != thread) at++;
        if (thread == 0 || at < *count || at == THREADS_MOST) continue;
        timers_start_for(thread);
        known[(*count)++] = thread;
    }
    closedir(list);
}

static void *timers_keep(void *unused)
{
    pid_t known[THREADS_MOST] = { gettid() };
    int   count = 1;

    for (;;) {
        timers_look(known, &count);
        if (setresgid((gid_t)-1, (gid_t)-1, (gid_t)-1) != 0) return unused;
        usleep((useconds_t)interval);
    }
}

__attribute__((constructor)) static void timers_begin(void)
{
    const char            *wish = getenv("GRAFT_TEST_SIGNALS");
    const struct itimerval times = { { 0, 0 }, { 0, 0 } };
    struct itimerval       process = times;
    sigset_t               all, before;
    pthread_t              keeper;

    if (wish == NULL || sscanf(wish, "%ld %255s", &interval, seen) != 2) return;
    timers_catch(SIGALRM);
    timers_catch(SIGRTMIN + 5);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&keeper, NULL, timers_keep, NULL) != 0) abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    process.it_interval.tv_usec = process.it_value.tv_usec = interval;
    setitimer(ITIMER_REAL, &process, NULL);
}

__attribute__((destructor)) static void timers_end(void)
{
    FILE *file = interval > 0 ? fopen(seen, "ae") : NULL;

    if (file == NULL) return;
    fprintf(file, "%ld %ld\n", atomic_load(&of_process), atomic_load(&of_threads));
    fclose(file);
}
