/* OpenMP ends the process if it cannot start a thread. So this file first tests whether the threads can be started, and
 * then starts the team.
 *
 * libgomp has a pool for each thread that calls it, as large as the last team: a smaller team ends the threads that it
 * does not need, a larger one starts more, and a team of one changes nothing. So the last size is remembered for each
 * calling thread. libomp has one pool for all and ends no thread: with it a team may be smaller than necessary. Teams
 * that the host or another library starts in the same thread are unknown here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include "base/assert.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROBED_MOST = 512, YIELDS_MOST = 10000 };

struct probed {
    pthread_mutex_t *gate;
    pthread_t        thread;
    pid_t            id;
};

/* The lock ensures that between a test and the start of a team no other call starts threads. A forked child never waits
 * for it: there gr_context_threads() returns 1 if the parent ever had a team. The keys store two values for each
 * thread: the size of its last team (0: none), and the host's floating-point environment in its outermost public call.
 * The library has no other thread-local storage. */
static struct {
    pthread_mutex_t lock;
    pthread_once_t  once;
    pthread_key_t   size, host;
    int             has_keys;
} gr_pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void make_pool_keys(void)
{
    gr_pool.has_keys = pthread_key_create(&gr_pool.size, NULL) == 0 && pthread_key_create(&gr_pool.host, NULL) == 0;
}

static int has_pool_keys(void)
{
    return pthread_once(&gr_pool.once, make_pool_keys) == 0 && gr_pool.has_keys;
}

int gr_pool_size(void)
{
    const int size = has_pool_keys() ? (int)(intptr_t)pthread_getspecific(gr_pool.size) : 1;

    return size > 0 ? size : 1;
}

/* A call changes nothing of the environment but traps, so an environment without traps is not stored. If the system has
 * no memory for the value, new threads start with the environment of the call. */
void gr_pool_enter(const struct gr_fp *host)
{
    if (!gr_fp_traps(*host) || !has_pool_keys() || pthread_getspecific(gr_pool.host) != NULL) return;
    pthread_setspecific(gr_pool.host, host);
}

void gr_pool_leave(const struct gr_fp *host)
{
    if (!gr_fp_traps(*host) || !has_pool_keys() || pthread_getspecific(gr_pool.host) != host) return;
    pthread_setspecific(gr_pool.host, NULL);
}

static void *wait_for_gate(void *arg)
{
    struct probed *probed = arg;

    probed->id = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(probed->gate);
    pthread_mutex_unlock(probed->gate);
    return NULL;
}

/* Test how many more threads, up to `wanted`, can exist at the same time: start and end them. \return their number. An
 * ended thread counts against the limits of the system until its id has been released, so this waits for that. */
static int probe_threads(int wanted)
{
    struct probed   probed[PROBED_MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const int       most = wanted < PROBED_MOST ? wanted : PROBED_MOST;
    int             count = 0;

    pthread_mutex_lock(&gate);
    for (; count < most; count++) {
        probed[count].gate = &gate;
        if (pthread_create(&probed[count].thread, NULL, wait_for_gate, &probed[count]) != 0) break;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++) pthread_join(probed[i].thread, NULL);
    for (int i = 0, yields = 0; i < count; i++)
        while (getpgid(probed[i].id) >= 0 && yields++ < YIELDS_MOST) sched_yield();
    return count == most ? wanted : count;
}

static int remember(int threads)
{
    return pthread_setspecific(gr_pool.size, (void *)(intptr_t)threads) == 0;
}

/* Start a team, which settings of OpenMP may make smaller. Without memory to store its size no team is started. */
static int start_team(int threads)
{
    const struct gr_fp  own = gr_fp_get();
    const struct gr_fp *host = pthread_getspecific(gr_pool.host);
    int                 started = 0;

    if (!remember(threads)) return 1;
    if (host != NULL) gr_fp_set(*host); /* new threads start with the environment of this thread */
#pragma omp parallel num_threads(threads) reduction(+ : started)
    started++;
    gr_fp_set(own);
    GR_ASSERT(started <= threads);
    return started == threads || remember(started) ? started : 1;
}

int gr_pool_reach(int wanted)
{
    int size, found;

    GR_ASSERT(wanted > 0 && omp_get_level() == 0);
    if (wanted == 1 || !has_pool_keys()) return 1;
    size = gr_pool_size();
    if (wanted > omp_get_thread_limit()) wanted = omp_get_thread_limit();
    if (wanted <= size) return wanted;
    pthread_mutex_lock(&gr_pool.lock);
    found = size + probe_threads(wanted - size);
    if (found > size) found = start_team(found);
    pthread_mutex_unlock(&gr_pool.lock);
    return found;
}

int gr_pool_team(int wanted)
{
    const int found = gr_pool_reach(wanted);

    if (found > 1 && found < gr_pool_size() && !remember(found)) return 1;
    return found;
}
