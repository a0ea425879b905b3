/* How many threads a call gets, and how many are started for it: as many as its operations justify. The first calls are
 * made by a thread that has no team yet.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"
#include "base/limits.h"
#include "base/team.h"
#include "harness/tap.h"

#include <dirent.h>
#include <omp.h>
#include <pthread.h>

/* Threads of this process, or -1. */
static int count_tasks(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = -1; /* one of "." and ".." */

    if (list == NULL) return -1;
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count - 1;
}

/* The members of a team for so many operations. */
static int members(const graft_context *context, int asked, int64_t operations)
{
    const int threads = gr_threads_worth(gr_threads_for(context, asked, operations), operations);
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

    ok(members(context, 4, limit - 1) == 1 && count_tasks() == begin, "few operations start no thread");
    ok(members(context, 4, limit) == 2 && count_tasks() == begin + 1, "a limit of them starts one");
    ok(members(context, 4, 2 * limit + 5) == 3 && count_tasks() == begin + 2, "two limits start two");
    ok(members(context, 4, limit) == 3 && count_tasks() == begin + 2, "a thread that is there takes part");
    ok(members(context, 2, 9 * limit) == 2, "no more take part than are asked for");
    ok(members(context, 4, INT64_MAX / 2) == 4 && members(context, 4, 0) == 1 && count_tasks() == begin + 3,
       "nor than that for any number of operations, and none is ended by few");
    return NULL;
}

int main(void)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_context *context = NULL;
    pthread_t      thread;

    omp_set_dynamic(0);
    if (!ok(gr_context_create(NULL, &context, &error) == GRAFT_OK, "a context is created")) return done();
    if (pthread_create(&thread, NULL, ask_often, context) != 0) return 2;
    pthread_join(thread, NULL);
    gr_context_destroy(context);
    return done();
}
