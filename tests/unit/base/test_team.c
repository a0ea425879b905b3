/* Checks how many threads a call uses and starts. The number must be justified by the number of its operations. The
 * first calls are made by a thread that has no team yet. Threads must have the floating-point traps of the host in
 * loops of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/call.h"
#include "base/context.h"
#include "base/limits.h"
#include "base/team.h"
#include "entry/entry.h"
#include "harness/tap.h"
#include "harness/traps.h"

#include <dirent.h>
#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* The number of threads of this process, or -1. */
static int count_tasks(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = -1; /* entries "." and ".." do not count */

    if (list == NULL) return -1;
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count - 1;
}

/* The number of threads that a call with so many operations gets. */
static int members(const graft_context *context, int asked, int64_t operations)
{
    const int threads = gr_threads_worth(gr_context_threads_for(context, asked, operations), operations);
    int       count = 0;

#pragma omp parallel num_threads(threads) reduction(+ : count) if (threads > 1)
    count++;
    return count;
}

static void *ask_often(void *arg)
{
    const graft_context *context = arg;
    const int64_t        limit = GR_OPERATIONS_OF_THREAD;
    const int            begin = count_tasks();

    ok(members(context, 4, limit - 1) == 1 && count_tasks() == begin,
       "a call with fewer operations than the limit of one thread starts no thread");
    ok(members(context, 4, limit) == 2 && count_tasks() == begin + 1,
       "a call with as many operations as the limit starts one thread");
    ok(members(context, 4, 2 * limit + 5) == 3 && count_tasks() == begin + 2,
       "a call with twice as many operations as the limit starts a second thread");
    ok(members(context, 4, limit) == 3 && count_tasks() == begin + 2,
       "a later call also uses the threads that already exist");
    ok(members(context, 2, 9 * limit) == 2, "a call uses no more threads than it asks for");
    ok(members(context, 4, INT64_MAX / 2) == 4 && members(context, 4, 0) == 1 && count_tasks() == begin + 3,
       "any number of operations uses at most the threads that are asked for, and a small call "
       "ends no thread");
    return NULL;
}

/* If no number is given, a call gets as many threads as the thread may use now and the quota of the container allows.
 * The team ends with its thread. */
static void *ask_for_default(void *arg)
{
    graft_context *context = arg;
    cpu_set_t      all, one;

    unsetenv("OMP_NUM_THREADS");
    context->processors_quota = INT64_MAX;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return NULL;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    omp_set_num_threads(3);
    ok(gr_context_threads(context, 0) == (CPU_COUNT(&all) < 3 ? CPU_COUNT(&all) : 3),
       "by default a call uses no more threads than there are processors");
    context->processors_quota = 1;
    ok(gr_context_threads(context, 0) == 1, "by default a call uses no more threads than the quota of the container");
    ok(gr_context_threads(context, 3) == 3,
       "the quota of the container does not limit a number of threads that is asked for");
    context->processors_quota = INT64_MAX;
    sched_setaffinity(0, sizeof one, &one);
    ok(gr_context_threads(context, 0) == 1, "a thread that is bound to one processor uses one thread by default");
    setenv("OMP_NUM_THREADS", "3", 1);
    ok(gr_context_threads(context, 0) == 3, "OMP_NUM_THREADS overrides the number of processors");
    return NULL;
}

/* Threads of a call must have the traps, after a smaller loop has ended those of an earlier call. */
static void *trap_and_call(void *arg)
{
    const int      traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
    graft_context *context = arg;
    struct gr_call call;
    int            in_call = 0, in_host = 0;

    feenableexcept(traps);
    if (gr_call_begin(&call, context, "a call", NULL) == GRAFT_OK && gr_context_threads(context, 4) == 4 &&
        gr_pool_team(2) == 2) {
#pragma omp parallel num_threads(2) reduction(+ : in_call)
        in_call++;
        in_call += gr_pool_team(4);
    }
    gr_call_end(&call, GRAFT_OK);
#pragma omp parallel num_threads(4) reduction(+ : in_host)
    in_host += traps_of_thread() == traps;
    ok(traps_of_thread() != traps || (in_call == 6 && in_host == 4),
       "in loops of the host all threads that a call has started have its traps: %d, %d", in_call, in_host);
    return NULL;
}

int main(void)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_context *context = NULL;
    pthread_t      thread;

    omp_set_dynamic(0);
    if (!ok(gr_context_create(NULL, &gr_all_options, &context, &error) == GRAFT_OK, "a context is created"))
        return done();
    if (pthread_create(&thread, NULL, ask_often, context) != 0) return 2;
    pthread_join(thread, NULL);
    if (pthread_create(&thread, NULL, trap_and_call, context) != 0) return 2;
    pthread_join(thread, NULL);
    if (pthread_create(&thread, NULL, ask_for_default, context) != 0) return 2;
    pthread_join(thread, NULL);
    gr_context_destroy(context);
    return done();
}
