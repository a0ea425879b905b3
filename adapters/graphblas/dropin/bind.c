/* A call is bound by the object that it comes from: the dynamic linker is asked which GraphBLAS that object has among
 * its dependencies. This does not depend on names of files. Results are kept by return address.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bind.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { LIBRARIES = 4, CALLERS = 256 };

static struct {
    pthread_mutex_t    lock;
    void              *bases[LIBRARIES]; /* where each library is mapped */
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

/* \return a handle that keeps nothing loaded longer, or NULL */
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

/* A library that was loaded for a plugin alone is in the scope of that plugin and in no other. */
static int visit_object(struct dl_phdr_info *info, size_t size, void *found)
{
    void *handle;

    (void)size;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "graphblas") == NULL) return 0;
    handle = open_object(info->dlpi_name);
    *(void **)found = handle != NULL ? dlsym(handle, marker) : NULL;
    return *(void **)found != NULL;
}

static int resolve(void *handle, const char *name, void *field, size_t size)
{
    void *symbol = dlsym(handle, name);

    memcpy(field, &symbol, size);
    return symbol != NULL;
}

/* Fill the table. \return 1 if the library has all of it */
static int fill_calls(void *handle, struct grb_calls *calls)
{
    int complete = 1;

#define RESOLVE_FUNCTION(name, parameters) complete &= resolve(handle, #name, &calls->name##_, sizeof calls->name##_);
#define RESOLVE_OBJECT(type, name) complete &= resolve(handle, #name, &calls->name##_, sizeof calls->name##_);
    GRB_FUNCTIONS(RESOLVE_FUNCTION)
    GRB_OBJECTS(RESOLVE_OBJECT)
    resolve(handle, "GrB_Matrix_get_INT32", &calls->GrB_Matrix_get_INT32_, sizeof calls->GrB_Matrix_get_INT32_);
    return complete;
}

/* The option of the version has had two numbers, and each library knows one of them. Before GrB_init() neither works,
 * and the version is asked for again at the next call. */
static const struct grb_version *find_version(void *handle)
{
    static const struct grb_version *const known[] = { &grb_version_7, &grb_version_8, &grb_version_9,
                                                       &grb_version_10 };
    enum { VERSION_7 = 9, VERSION_8_AND_LATER = 7005 };
    GrB_Info (*get)(int, ...) = NULL;
    int found[3] = { 0, 0, 0 };

    if (!resolve(handle, "GxB_Global_Option_get", &get, sizeof get)) return NULL;
    if (get(VERSION_8_AND_LATER, found) != GrB_SUCCESS && get(VERSION_7, found) != GrB_SUCCESS) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i]->major == found[0]) return known[i];
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
    made->complete = fill_calls(handle, &made->calls);
    libraries.bases[libraries.count++] = base;
    return made;
}

struct grb_binding *grb_find(void *caller)
{
    struct grb_binding *binding = NULL;
    Dl_info             library;
    void               *found = marker_for(caller), *handle = NULL;

    if (found == NULL) dl_iterate_phdr(visit_object, &found);
    if (found != NULL && dladdr(found, &library) != 0) handle = open_object(library.dli_fname);
    if (handle == NULL) return NULL;
    pthread_mutex_lock(&libraries.lock);
    binding = bind_library(library.dli_fbase, handle);
    if (binding != NULL && binding->version == NULL) binding->version = find_version(handle);
    pthread_mutex_unlock(&libraries.lock);
    return binding;
}

const struct grb_binding *grb_bind(void *caller)
{
    struct caller            *slot = &callers[(uintptr_t)caller / 4 % CALLERS];
    const struct grb_binding *binding = NULL;

    /* The address is stored last, and a slot is filled once, so one that has the address has its binding. */
    if (atomic_load_explicit(&slot->address, memory_order_acquire) == caller)
        return atomic_load_explicit(&slot->binding, memory_order_relaxed);
    binding = grb_find(caller);
    if (binding != NULL && binding->version != NULL) {
        const struct grb_binding *empty = NULL;

        if (atomic_compare_exchange_strong(&slot->binding, &empty, binding))
            atomic_store_explicit(&slot->address, caller, memory_order_release);
    }
    return binding;
}
