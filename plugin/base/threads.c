/* Determines the number of threads of a call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/pool.h"

#include <omp.h>
#include <stdatomic.h>

/* The process that first started a team of threads. In a forked child the threads of a team do not exist, and waiting
 * for them would not end. OpenMP does not tell whether there was a team, so this variable outlives a context. */
static _Atomic pid_t gr_team_owner;

/* The default of OpenMP, but unless the user has set OMP_NUM_THREADS at most the number of processors of the thread and
 * the quota of its container. */
static int32_t default_threads(const graft_context *context, int32_t processors)
{
    const int32_t threads = omp_get_max_threads(), limit = omp_get_thread_limit();
    int64_t       most = threads < limit ? threads : limit;

    if (gr_environment(context, "OMP_NUM_THREADS") != NULL) return (int32_t)most;
    if (most > processors) most = processors;
    return (int32_t)(most < context->processors_quota ? most : context->processors_quota);
}

static int32_t threads_asked(const graft_context *context, int32_t asked)
{
    int32_t processors, found;

    if (asked <= 0) asked = (int32_t)gr_base_options(context)->threads;
    if (asked == 1) return 1; /* frequent, and it saves the system call in the next line */
    processors = omp_get_num_procs();
    if (asked <= 0) asked = default_threads(context, processors);
    if (asked > 4 * processors) asked = 4 * processors;
    found = atomic_load(&context->threads_most);
    return found == 0 || asked < found ? asked : found;
}

/* Explain why a team is smaller than requested. */
static const char *reason_for_fewer(int asked)
{
    if (omp_get_thread_limit() < asked) return "OMP_THREAD_LIMIT";
    if (omp_get_max_active_levels() < 1) return "OMP_MAX_ACTIVE_LEVELS=0";
    return omp_get_dynamic() ? "OMP_DYNAMIC=true, and the load of the machine"
                             : "ulimit -u or -v, or pids.max of a container";
}

static int start_threads(const graft_context *context, int32_t asked)
{
    graft_context *own = (graft_context *)(uintptr_t)context; /* not const, because threads_most is stored in it */
    int32_t        found;
    pid_t          nobody = 0;

    /* In a parallel region of the host OpenMP would start and end threads for every loop. */
    if (asked <= 1 || omp_get_level() > 0) return 1;
    if (!atomic_compare_exchange_strong(&gr_team_owner, &nobody, context->owner) && nobody != context->owner) return 1;
    found = gr_pool_reach(asked);
    if (found == asked) return asked;
    atomic_store(&own->threads_most, found);
    gr_log(context, GRAFT_LOG_WARNING, "%d of %d threads can be started (%s), so no more are used", found, asked,
           reason_for_fewer(asked));
    return found;
}

int gr_context_threads(const graft_context *context, int32_t asked)
{
    return start_threads(context, threads_asked(context, asked));
}

int gr_context_threads_for(const graft_context *context, int32_t asked, int64_t operations)
{
    const int32_t most = threads_asked(context, asked);
    int64_t       wanted = 1 + operations / GR_OPERATIONS_OF_THREAD;

    if (wanted > 1 && wanted < gr_pool_size()) wanted = gr_pool_size();
    return start_threads(context, wanted < most ? (int32_t)wanted : most);
}
