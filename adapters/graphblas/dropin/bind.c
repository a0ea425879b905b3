/* A call is bound by its calling object: the dynamic linker finds the GraphBLAS among the dependencies of this object.
 * This does not depend on names of files. Results are kept by return address.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bind.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { LIBRARIES = 4, CALLERS = 256 };

static struct {
    pthread_mutex_t    lock;
    void              *bases[LIBRARIES]; /* address of each mapped library */
    struct grb_binding at[LIBRARIES];
    int                count;
} libraries = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct caller {
    _Atomic(void *)                     address;
    _Atomic(const struct grb_binding *) binding;
};

static struct caller callers[CALLERS];

/* A symbol that the drop-in does not define leads to the library itself. */
static const char marker[] = "GxB_Iterator_new";

/* \return a handle that does not keep the object loaded, or NULL */
static void *open_object(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (handle != NULL) dlclose(handle);
    return handle;
}

static void *marker_for(void *caller)
{
    Dl_info object;
    void   *handle, *found = NULL;

    if (dladdr(caller, &object) != 0 && object.dli_fname != NULL) {
        handle = open_object(object.dli_fname);
        if (handle != NULL) found = dlsym(handle, marker);
    }
    if (found == NULL) found = dlsym(RTLD_NEXT, marker);
    return found != NULL ? found : dlsym(RTLD_DEFAULT, marker);
}

/* A library that was loaded only for a plugin is only in the scope of this plugin. Its name is stored here, and opened
 * when the linker's lock is free again. */
struct paths {
    char at[8][PATH_MAX];
    int  count;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct paths *paths = arg;

    (void)size;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "graphblas") == NULL) return 0;
    snprintf(paths->at[paths->count], sizeof paths->at[0], "%s", info->dlpi_name);
    return ++paths->count == sizeof paths->at / sizeof *paths->at;
}

static void *marker_by_name(void)
{
    struct paths paths = { .count = 0 };
    void        *found = NULL;

    dl_iterate_phdr(visit_object, &paths);
    for (int i = 0; i < paths.count && found == NULL; i++) {
        void *handle = open_object(paths.at[i]);

        if (handle != NULL) found = dlsym(handle, marker);
    }
    return found;
}

/* NULL before GrB_init(): the next call asks for the version again. */
static const struct grb_version *find_version(void *handle)
{
    static const struct grb_version *const known[] = { &grb_version_7, &grb_version_8, &grb_version_9,
                                                       &grb_version_10 };
    const int                              major = grb_calls_major(handle);

    if (major == 0) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i]->major == major) return known[i];
    }
    return &grb_version_unknown;
}

/* Under the lock. */
static struct grb_binding *bind_library(void *base, void *handle)
{
    struct grb_binding *made = &libraries.at[libraries.count];

    for (int i = 0; i < libraries.count; i++) {
        if (libraries.bases[i] == base) return &libraries.at[i];
    }
    if (libraries.count == LIBRARIES) return NULL;
    made->complete = grb_calls_fill(&made->calls, handle);
    libraries.bases[libraries.count++] = base;
    return made;
}

struct grb_binding *grb_find(void *caller)
{
    struct grb_binding *binding = NULL;
    Dl_info             library;
    void               *found = marker_for(caller), *handle = NULL;

    if (found == NULL) found = marker_by_name();
    if (found != NULL && dladdr(found, &library) != 0) handle = open_object(library.dli_fname);
    if (handle == NULL) return NULL;
    pthread_mutex_lock(&libraries.lock);
    binding = bind_library(library.dli_fbase, handle);
    if (binding != NULL && atomic_load(&binding->version) == NULL)
        atomic_store(&binding->version, find_version(handle));
    pthread_mutex_unlock(&libraries.lock);
    return binding;
}

void grb_bind_lock(void)
{
    pthread_mutex_lock(&libraries.lock);
}

void grb_bind_unlock(void)
{
    pthread_mutex_unlock(&libraries.lock);
}

const struct grb_binding *grb_bind(void *caller)
{
    struct caller            *slot = &callers[(uintptr_t)caller / 4 % CALLERS];
    const struct grb_binding *binding = NULL;

    /* The address is stored last, and a slot is filled once, so a slot with the address has its binding. A caller whose
     * slot belongs to another caller asks the linker in each call. */
    if (atomic_load_explicit(&slot->address, memory_order_acquire) == caller)
        return atomic_load_explicit(&slot->binding, memory_order_relaxed);
    binding = grb_find(caller);
    if (binding != NULL && atomic_load(&binding->version) != NULL) {
        const struct grb_binding *empty = NULL;

        if (atomic_compare_exchange_strong(&slot->binding, &empty, binding))
            atomic_store_explicit(&slot->address, caller, memory_order_release);
    }
    return binding;
}
