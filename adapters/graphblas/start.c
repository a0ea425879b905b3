/* Starts GraphBLAS where that is not up to the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <GraphBLAS.h>
#include <link.h>
#include <stdio.h>

struct places {
    ElfW(Addr) module, library; /* addresses in this module and in GraphBLAS */
    int module_seen, library_later;
};

static int is_in(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && address - object->dlpi_addr - part->p_vaddr < part->p_memsz) return 1;
    }
    return 0;
}

/* Objects come in the order in which they were loaded. */
static int visit_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    struct places *places = arg;

    (void)size;
    places->module_seen |= is_in(object, places->module);
    if (!is_in(object, places->library)) return 0;
    places->library_later = places->module_seen;
    return 1;
}

/* Whether GraphBLAS is in this process because of this module. */
static int came_with_module(void)
{
    struct places places = { .module = (ElfW(Addr))(uintptr_t)&came_with_module,
                             .library = (ElfW(Addr))(uintptr_t)&GrB_init };

    dl_iterate_phdr(visit_object, &places);
    return places.library_later;
}

/* A library that is older than the flags has a shorter struct. */
static int host_starts_it(const graft_host *host)
{
    return host->size >= GRAFT_HAS(graft_host, flags) && (host->flags & GRAFT_HOST_STARTS_LIBRARIES) != 0;
}

static GrB_Info start(void)
{
    int64_t  no_pool[64] = { 0 };
    int32_t  mode;
    GrB_Info info = GrB_init(GrB_BLOCKING);

    if (info == GrB_SUCCESS) return GxB_Global_Option_set(GxB_MEMORY_POOL, no_pool);
    /* Another thread may have started it meanwhile. */
    return GxB_Global_Option_get(GxB_MODE, &mode) == GrB_SUCCESS ? GrB_SUCCESS : info;
}

static int32_t refuse(graft_error *error, GrB_Info info)
{
    error->code = GRAFT_ERR_UNSUPPORTED;
    error->native_code = info;
    return GRAFT_ERR_UNSUPPORTED;
}

int32_t graphblas_start(const graft_host *host, graft_error *error)
{
    int32_t  mode, version[3] = { 0, 0, 0 };
    GrB_Info info = GxB_Global_Option_get(GxB_MODE, &mode);

    if (info == GrB_PANIC) {
        if (host_starts_it(host) || !came_with_module()) {
            snprintf(error->message, sizeof error->message,
                     "GraphBLAS belongs to this program, which has not started it: GrB_init() comes first");
            return refuse(error, info);
        }
        info = start();
    }
    if (info == GrB_SUCCESS) info = GxB_Global_Option_get(GxB_LIBRARY_VERSION, version);
    if (info != GrB_SUCCESS) {
        snprintf(error->message, sizeof error->message, "GraphBLAS cannot be used: it returned %d; was it finalised?",
                 (int)info);
        return refuse(error, info);
    }
    if (version[0] == GxB_IMPLEMENTATION_MAJOR) return GRAFT_OK;
    snprintf(error->message, sizeof error->message, "GraphBLAS has version %d, this module was built for %d",
             version[0], GxB_IMPLEMENTATION_MAJOR);
    return refuse(error, info);
}
