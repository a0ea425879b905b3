/* Finds the GraphBLAS library that must compute a call. A call belongs to the library that owns its arguments, because
 * built-in objects lie in the image of their library. Without such an argument it belongs to the library in the scope
 * of its caller. Neither rule depends on names of files or on the order in which libraries were loaded, and both also
 * hold for calls through function pointers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bind.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of objects that this process has mapped and unmapped. */
struct changes {
    unsigned long long mapped, unmapped;
};

/* A known library. It stays in the list when it is unmapped, because another thread may read the list. It is valid as
 * long as no object has been unmapped since it was last resolved. */
struct library {
    struct grb_binding         binding;
    uintptr_t                  begin, end; /* first and last address of its image */
    _Atomic unsigned long long unmapped;
    struct library            *next;
};

static _Atomic(struct library *) libraries;

static int read_changes(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct changes *changes = arg;

    (void)size;
    changes->mapped = info->dlpi_adds;
    changes->unmapped = info->dlpi_subs;
    return 1;
}

/* A mapped object that is searched for: the one at `address`, or object number `number` of those that have "graphblas"
 * in their names. */
struct object {
    uintptr_t address, begin, end;
    int       number;
    char      name[PATH_MAX]; /* path of the object; empty for the program itself */
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object *object = arg;
    uintptr_t      begin = UINTPTR_MAX, end = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        if (start < begin) begin = start;
        if (start + info->dlpi_phdr[i].p_memsz > end) end = start + info->dlpi_phdr[i].p_memsz;
    }
    if (object->address != 0 && (object->address < begin || object->address >= end)) return 0;
    if (object->address == 0 && strstr(info->dlpi_name, "graphblas") == NULL) return 0;
    if (object->address == 0 && object->number-- > 0) return 0;
    object->begin = begin;
    object->end = end;
    snprintf(object->name, sizeof object->name, "%s", info->dlpi_name);
    return 1;
}

/* \return a handle that does not keep the object loaded, or NULL */
static void *open_object(const struct object *object)
{
    void *handle = dlopen(object->name[0] != '\0' ? object->name : NULL, RTLD_LAZY | RTLD_NOLOAD);

    if (handle != NULL) dlclose(handle);
    return handle;
}

/* Whether the version of the library is known. Before GrB_init() it is not, and the next call asks for it again. */
static int is_started(struct library *library)
{
    struct grb_binding *binding = &library->binding;

    if (atomic_load(&binding->major) == 0) atomic_store(&binding->major, grb_calls_major(&binding->calls));
    return atomic_load(&binding->major) != 0;
}

/* Resolve the object if it is a GraphBLAS library. No lock is held, because the linker may run code of the host that
 * multiplies. Two threads may therefore add the same library. \return NULL if it is not a GraphBLAS library, or if
 * there is no memory */
static struct library *add_library(const struct object *object, unsigned long long unmapped)
{
    void           *handle = open_object(object);
    const uintptr_t product = handle != NULL ? (uintptr_t)dlsym(handle, "GrB_mxm") : 0;
    struct library *made, *first = atomic_load(&libraries), *old = first;

    if (product < object->begin || product >= object->end) return NULL;
    made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->binding.complete = grb_calls_fill(&made->binding.calls, handle);
    *(void **)&made->binding.malloc_7 = dlsym(handle, "GB_Global_malloc_function");
    made->begin = object->begin;
    made->end = object->end;
    while (old != NULL && (old->begin != made->begin || old->end != made->end ||
                           memcmp(&old->binding.calls, &made->binding.calls, sizeof made->binding.calls) != 0))
        old = old->next;
    if (old != NULL) {
        free(made);
        made = old;
    }
    atomic_store(&made->unmapped, unmapped);
    if (old == NULL) {
        do made->next = first;
        while (!atomic_compare_exchange_weak(&libraries, &first, made));
    }
    return made;
}

/* The known GraphBLAS library whose image contains the address, or NULL */
static struct library *known_at(uintptr_t address, unsigned long long unmapped)
{
    struct library *library = atomic_load_explicit(&libraries, memory_order_acquire);

    while (library != NULL && (address < library->begin || address >= library->end ||
                               atomic_load_explicit(&library->unmapped, memory_order_relaxed) != unmapped))
        library = library->next;
    return library;
}

static struct library *library_at(uintptr_t address, unsigned long long unmapped)
{
    struct library *library = known_at(address, unmapped);
    struct object   object;

    if (library != NULL || address == 0) return library;
    object.address = address;
    return dl_iterate_phdr(visit_object, &object) != 0 ? add_library(&object, unmapped) : NULL;
}

typedef struct library *(*finder)(uintptr_t address, unsigned long long unmapped);

/* The library that owns the arguments of a call. A built-in semiring lies in the image of its library. So does a
 * built-in type, and one of the first words of a matrix points to its type: word number 4 in versions 7 and 8, and 6 in
 * later ones. The words before it are sizes and pointers to memory. */
static struct library *owner_of(const void *semiring, const void *output, finder find, unsigned long long unmapped)
{
    enum { FIRST = 2, LAST = 6 };
    const uintptr_t *words = output;
    struct library  *library = find((uintptr_t)semiring, unmapped);

    for (int i = FIRST; library == NULL && words != NULL && i <= LAST; i++) library = find(words[i], unmapped);
    return library;
}

/* Find the library as the linker resolves symbols of the caller: first in the global scope, then among the dependencies
 * of its object. A symbol that the drop-in does not define leads to GraphBLAS. */
static struct library *library_in_scope(void *caller, unsigned long long unmapped)
{
    static const char marker[] = "GrB_Matrix_new";
    struct object     object = { .address = (uintptr_t)caller };
    void             *found = dlsym(RTLD_DEFAULT, marker), *handle = NULL;

    if (found == NULL && dl_iterate_phdr(visit_object, &object) != 0) handle = open_object(&object);
    if (handle != NULL) found = dlsym(handle, marker);
    return library_at((uintptr_t)found, unmapped);
}

/* The last resort is to find a library by its name. A library that has been started is preferred. */
static struct library *library_by_name(unsigned long long unmapped)
{
    struct library *library, *any = NULL;
    struct object   object;

    for (int i = 0;; i++) {
        object.address = 0;
        object.number = i;
        if (dl_iterate_phdr(visit_object, &object) == 0) return any;
        library = add_library(&object, unmapped);
        if (library != NULL && is_started(library)) return library;
        if (library != NULL) any = library;
    }
}

const struct grb_binding *grb_bind(void *caller, const void *semiring, const void *output)
{
    static _Thread_local struct {
        void           *caller;
        struct changes  changes;
        struct library *library;
    } last;
    struct changes  now = { 0, 0 };
    struct library *library;

    dl_iterate_phdr(read_changes, &now);
    library = owner_of(semiring, output, known_at, now.unmapped);
    if (library == NULL && last.caller == caller && memcmp(&last.changes, &now, sizeof now) == 0)
        library = last.library;
    if (library == NULL) library = owner_of(semiring, output, library_at, now.unmapped);
    if (library == NULL && (library = library_in_scope(caller, now.unmapped)) != NULL) {
        last.caller = caller;
        last.changes = now;
        last.library = library;
    }
    if (library == NULL) library = library_by_name(now.unmapped);
    if (library == NULL) return NULL;
    is_started(library);
    return &library->binding;
}

/* The function malloc of the library. In version 7 there is no public option for it, but the library exports a function
 * of its own. */
grb_malloc grb_malloc_of(const struct grb_binding *binding)
{
    enum { MALLOC_FUNCTION = 7037 };
    grb_malloc function = NULL;

    if (atomic_load(&binding->major) == 7) return binding->malloc_7;
    if (binding->calls.GxB_Global_Option_get_FUNCTION_(MALLOC_FUNCTION, (void **)&function) != GrB_SUCCESS) return NULL;
    return function;
}
