/* Creates and destroys a context, with the defaults for the host's functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"

#include "base/available.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/pool.h"

#include <omp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

static void log_nothing(void *self, graft_log_level level, const char *message)
{
    (void)self, (void)level, (void)message;
}

/* Large blocks use huge pages where the system grants them: rows are read in random order, and with small pages each
 * read would be a TLB miss. */
static void *allocate_c(void *self, uint64_t bytes, uint64_t alignment)
{
    void *memory;

    (void)self;
    if (bytes > INT64_MAX - HUGE_PAGE) return NULL;
    if (bytes >= 2 * HUGE_PAGE && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
    bytes = (bytes + alignment - 1) / alignment * alignment; /* as aligned_alloc() requires */
    memory = aligned_alloc(alignment, bytes);
    if (memory != NULL && bytes >= 2 * HUGE_PAGE) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

static void deallocate_c(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self, (void)bytes, (void)alignment;
    free(memory);
}

static const void *extension_none(void *self, const char *id)
{
    (void)self, (void)id;
    return NULL;
}

static void log_for_module(void *self, graft_log_level level, const char *message)
{
    const graft_host *host = &((graft_context *)self)->host;

    host->log(host->self, level, message);
}

static void *allocate_for_module(void *self, uint64_t bytes, uint64_t alignment)
{
    const graft_host *host = &((graft_context *)self)->host;

    return host->allocate(host->self, bytes, alignment);
}

static void deallocate_for_module(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    const graft_host *host = &((graft_context *)self)->host;

    host->deallocate(host->self, memory, bytes, alignment);
}

/* Options for modules, and the extensions of the host. */
static const void *extension_for_module(void *self, const char *id)
{
    const graft_context *context = self;

    if (strcmp(id, GRAFT_MODULE_OPTION "graphblas.path") == 0) return context->options.library.graphblas_path;
    return context->host.extension(context->host.self, id);
}

/* A host for modules, which forwards all calls. */
static graft_host module_host(graft_context *context)
{
    graft_host host = context->host;

    host.self = context;
    host.log = log_for_module;
    host.allocate = allocate_for_module;
    host.deallocate = deallocate_for_module;
    host.extension = extension_for_module;
    return host;
}

int32_t gr_check_cancel(const graft_context *context, graft_error *error)
{
    if (context->defers_cancel || !atomic_load_explicit(&context->cancel, memory_order_relaxed)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_CANCELLED, "the host asked to cancel the call");
}

/* The host gives both allocate and deallocate, or neither; then the C library's functions are used. */
static int32_t host_complete(graft_host *ours, const graft_host *theirs, graft_error *error)
{
    const uint64_t known = GRAFT_HOST_NO_ENVIRONMENT | GRAFT_HOST_STARTS_LIBRARIES;
    int32_t        rc = GRAFT_OK;

    memset(ours, 0, sizeof *ours);
    ours->size = sizeof *ours;
    if (theirs != NULL) rc = gr_struct_read(ours, sizeof *ours, theirs, "host", error);
    if (rc < 0) return rc;
    if ((ours->flags & ~known) != 0) {
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "host has flags 0x%llx, this library knows 0x%llx",
                       (unsigned long long)ours->flags, (unsigned long long)known);
    }
    if ((ours->allocate == NULL) != (ours->deallocate == NULL)) {
        return gr_fail(error, GRAFT_ERR_ARG, "host has %s but no %s; expected both or neither",
                       ours->allocate != NULL ? "allocate" : "deallocate",
                       ours->allocate != NULL ? "deallocate" : "allocate");
    }
    if (ours->allocate == NULL) {
        ours->allocate = allocate_c;
        ours->deallocate = deallocate_c;
    }
    if (ours->log == NULL) ours->log = log_nothing;
    if (ours->extension == NULL) ours->extension = extension_none;
    return GRAFT_OK;
}

int32_t gr_context_create(const graft_host *host, graft_context **context, graft_error *error)
{
    int32_t        rc = GRAFT_OK;
    graft_host     complete;
    graft_context *made = NULL;

    GR_TRY(host_complete(&complete, host, error));
    GR_TRY(GR_HOST_NEW(&complete, made, 1, error));
    made->host = complete;
    made->module_host = module_host(made);
    made->owner = getpid();
    made->processors_quota = gr_processors_quota();
    GR_TRY(gr_options_init(made, error));
    made->callers.check = made->options.library.check;
    gr_handle_init(made, GR_HANDLE_CONTEXT, made);
    *context = made;
    made = NULL;
done:
    gr_context_destroy(made);
    return rc;
}

void gr_context_destroy(graft_context *context)
{
    graft_host host;

    if (context == NULL) return;
    gr_handle_fini(context);
    gr_modules_fini(context);
    gr_options_fini(context);
    host = context->host;
    gr_host_free(&host, context);
}

void gr_log(const graft_context *context, graft_log_level level, const char *format, ...)
{
    char    line[512];
    va_list list;

    if (level < context->options.library.log_level) return;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    context->host.log(context->host.self, level, line);
}

void gr_log_end(graft_context *context)
{
    context->host.log = log_nothing;
}

/* The process that first started a team of threads. The threads of a team do not exist in a forked child, and waiting
 * for them would hang. OpenMP cannot be asked, so this variable outlives a context. */
static _Atomic pid_t gr_team_owner;

/* OpenMP's default, but no more than the processors of the thread and the quota of its container, unless the user says
 * how many. */
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

    if (asked <= 0) asked = (int32_t)context->options.resource.threads;
    if (asked == 1) return 1; /* often, and the next line is a system call */
    processors = omp_get_num_procs();
    if (asked <= 0) asked = default_threads(context, processors);
    if (asked > 4 * processors) asked = 4 * processors;
    found = atomic_load(&context->threads_most);
    return found == 0 || asked < found ? asked : found;
}

/* Why a team is smaller than it was asked to be. */
static const char *reason_for_fewer(int asked)
{
    if (omp_get_thread_limit() < asked) return "OMP_THREAD_LIMIT";
    if (omp_get_max_active_levels() < 1) return "OMP_MAX_ACTIVE_LEVELS=0";
    return omp_get_dynamic() ? "OMP_DYNAMIC=true, and the load of the machine"
                             : "ulimit -u or -v, or pids.max of a container";
}

static int start_threads(const graft_context *context, int32_t asked)
{
    graft_context *own = (graft_context *)(uintptr_t)context; /* only the number found is stored in it */
    int32_t        found;
    pid_t          nobody = 0;

    /* In a parallel region of the host, OpenMP would start threads for each loop, and end them after it. */
    if (asked <= 1 || omp_get_level() > 0) return 1;
    if (!atomic_compare_exchange_strong(&gr_team_owner, &nobody, context->owner) && nobody != context->owner) return 1;
    found = gr_pool_reach(asked);
    if (found == asked) return asked;
    atomic_store(&own->threads_most, found);
    gr_log(context, GRAFT_LOG_WARNING, "%d of %d threads can be started (%s), so no more are used", found, asked,
           reason_for_fewer(asked));
    return found;
}

int gr_threads(const graft_context *context, int32_t asked)
{
    return start_threads(context, threads_asked(context, asked));
}

int gr_threads_for(const graft_context *context, int32_t asked, int64_t operations)
{
    const int32_t most = threads_asked(context, asked);
    int64_t       wanted = 1 + operations / GR_OPERATIONS_OF_THREAD;

    if (wanted > 1 && wanted < gr_pool_size()) wanted = gr_pool_size();
    return start_threads(context, wanted < most ? (int32_t)wanted : most);
}
