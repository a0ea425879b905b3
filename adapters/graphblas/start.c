/* Finds GraphBLAS, and starts it unless the host starts it.
 * SPDX-License-Identifier: Apache-2.0 */
#define GRAFT_GRB_CALLS 0 /* this file works with all versions */
#include "start.h"

#include "graft_module.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

/* Options, and their numbers in version 7 and in later versions. */
enum {
    MODE_7 = 2,
    MODE = 7003,
    FORMAT_7 = 1,
    FORMAT = 7002,
    THREADS_7 = 5,
    THREADS = 7086,
    MEMORY_POOL_7 = 103,
    JIT_CONTROL = 7029,
    JIT_OFF = 0,
    BLOCKING = 1
};

enum { OLDEST = 7, NEWEST = 10 };

/* Find a library that is already in the process, or return NULL. Functions that the program exports count too. */
static void *find_loaded(const char *path)
{
    char    name[32];
    Dl_info object;
    void   *handle, *found = dlsym(RTLD_DEFAULT, "GxB_Iterator_new");

    if (path != NULL) return dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (found != NULL) {
        /* Open the library by its own file name, because another library may precede it. */
        handle = dladdr(found, &object) != 0 ? dlopen(object.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
        return handle != NULL ? handle : dlopen(NULL, RTLD_NOW);
    }
    for (int major = NEWEST; major >= OLDEST; major--) {
        snprintf(name, sizeof name, "libgraphblas.so.%d", major);
        handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
        if (handle != NULL) return handle;
    }
    return NULL;
}

static void *load_newest(const char *path)
{
    char  name[32];
    void *handle = NULL;

    if (path != NULL) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (int major = NEWEST; major >= OLDEST && handle == NULL; major--) {
        snprintf(name, sizeof name, "libgraphblas.so.%d", major);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

/* A library that is older than the flags has a shorter struct. */
static int host_starts_it(const graft_host *host)
{
    return host->size >= GRAFT_HAS(graft_host, flags) && (host->flags & GRAFT_HOST_STARTS_LIBRARIES) != 0;
}

__attribute__((format(printf, 3, 4))) static int32_t refuse(graft_error *error, GrB_Info info, const char *format, ...)
{
    va_list list;

    error->code = GRAFT_ERR_UNSUPPORTED;
    error->native_code = info;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return GRAFT_ERR_UNSUPPORTED;
}

/* Ask for the mode. GrB_PANIC means that GraphBLAS has not been started. */
static GrB_Info ask_mode(const struct grb_calls *grb_calls)
{
    int32_t  mode;
    GrB_Info info = GxB_Global_Option_get_INT32(MODE, &mode);

    return info == GrB_SUCCESS || info == GrB_PANIC ? info : GxB_Global_Option_get_INT32(MODE_7, &mode);
}

/* Start GraphBLAS in blocking mode. Later versions are started without compilation at run time, and version 7 without
 * its memory pool, which would serialise threads. */
static GrB_Info start_own(const struct grb_calls *grb_calls, void *handle)
{
    int64_t no_pool[64] = { 0 };
    GrB_Info (*set)(int, ...) = NULL;
    GrB_Info info = grb_calls->GrB_init_(BLOCKING);

    /* Another thread may have started it meanwhile. */
    if (info != GrB_SUCCESS) return ask_mode(grb_calls) == GrB_SUCCESS ? GrB_SUCCESS : info;
    *(void **)&set = dlsym(handle, "GxB_Global_Option_set");
    if (set == NULL) return GrB_PANIC;
    if (grb_calls_major(grb_calls) == 7) return set(MEMORY_POOL_7, no_pool);
    return set(JIT_CONTROL, JIT_OFF);
}

static int32_t use_library(struct graphblas *graphblas, void *handle, int found, graft_error *error)
{
    GrB_Info info;
    int      major;

    if (!grb_calls_fill(&graphblas->calls, handle))
        return refuse(error, 0, "the GraphBLAS of this process lacks functions of SuiteSparse:GraphBLAS");
    info = ask_mode(&graphblas->calls);
    if (info == GrB_PANIC && found)
        return refuse(error, info,
                      "GraphBLAS belongs to this program, which has not started it: GrB_init() comes first");
    if (info == GrB_PANIC) {
        info = start_own(&graphblas->calls, handle);
        graphblas->own = info == GrB_SUCCESS;
    }
    if (info != GrB_SUCCESS)
        return refuse(error, info, "GraphBLAS cannot be used: it returned %d; was it finalised?", (int)info);
    major = grb_calls_major(&graphblas->calls);
    if (major < OLDEST || major > NEWEST)
        return refuse(error, 0, "GraphBLAS has version %d, this module knows %d to %d", major, OLDEST, NEWEST);
    graphblas->major = major;
    return GRAFT_OK;
}

int32_t graphblas_start(struct graphblas *graphblas, graft_error *error)
{
    const graft_host *host = graphblas->host;
    const char       *path = host->extension(host->self, GRAFT_MODULE_OPTION "graphblas.path"), *reason;
    void             *handle;
    int               found;

    if (graphblas->major != 0 && ask_mode(&graphblas->calls) == GrB_SUCCESS) return GRAFT_OK;
    graphblas->major = 0;
    if (path != NULL && path[0] == '\0') path = NULL;
    handle = find_loaded(path);
    found = handle != NULL;
    if (!found && host_starts_it(host))
        return refuse(error, 0, "GraphBLAS belongs to this program, which has not started it: GrB_init() comes first");
    if (!found) handle = load_newest(path);
    if (handle != NULL) return use_library(graphblas, handle, found, error);
    reason = dlerror();
    return refuse(error, 0, "no GraphBLAS can be loaded: %.200s", reason != NULL ? reason : "none was found");
}

GrB_Info graphblas_use_threads(const struct graphblas *graphblas, GrB_Descriptor descriptor, int32_t threads)
{
    const struct grb_calls *grb_calls = &graphblas->calls;

    if (graphblas->major == 7) return GxB_Desc_set_INT32(descriptor, THREADS_7, threads);
    return graphblas->own && threads > 0 ? grb_calls->GxB_Global_Option_set_INT32_(THREADS, threads) : GrB_SUCCESS;
}

GrB_Info graphblas_hold_by_row(const struct graphblas *graphblas, GrB_Matrix matrix)
{
    const struct grb_calls *grb_calls = &graphblas->calls;

    return GxB_Matrix_Option_set_INT32(matrix, graphblas->major == 7 ? FORMAT_7 : FORMAT, GxB_BY_ROW);
}
