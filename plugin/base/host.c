/* Default functions for the host, and the host struct that modules get.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"
#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

static void log_nothing(void *self, graft_log_level level, const char *message)
{
    (void)self, (void)level, (void)message;
}

/* The C library's allocator. Large blocks use huge pages where the system has them: rows are read in random order, and
 * with small pages each read would be a TLB miss. */
static void *allocate_c(void *self, uint64_t bytes, uint64_t alignment)
{
    void *memory;

    (void)self;
    if (bytes > INT64_MAX - HUGE_PAGE) return NULL;
    if (bytes >= 2 * HUGE_PAGE && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
    bytes = (bytes + alignment - 1) / alignment * alignment; /* aligned_alloc() requires a multiple of the alignment */
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

/* Answer requests of modules for options, and forward all others to the host. */
static const void *extension_for_module(void *self, const char *id)
{
    const graft_context *context = self;

    if (strncmp(id, GRAFT_MODULE_OPTION, strlen(GRAFT_MODULE_OPTION)) == 0)
        return gr_option_find_text(context, id + strlen(GRAFT_MODULE_OPTION));
    return context->host.extension(context->host.self, id);
}

/* All functions of this host forward to the host of the context. */
graft_host gr_context_module_host(graft_context *context)
{
    graft_host host = context->host;

    host.self = context;
    host.log = log_for_module;
    host.allocate = allocate_for_module;
    host.deallocate = deallocate_for_module;
    host.extension = extension_for_module;
    return host;
}

/* A host has both allocate and deallocate, or neither; then those of the C library are used. */
int32_t gr_context_complete_host(graft_host *ours, const graft_host *theirs, graft_error *error)
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

void gr_log(const graft_context *context, graft_log_level level, const char *format, ...)
{
    char    line[512];
    va_list list;

    if ((int)level < (int)gr_base_options(context)->log_level) return;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    context->host.log(context->host.self, level, line);
}

void gr_log_end(graft_context *context)
{
    context->host.log = log_nothing;
}
