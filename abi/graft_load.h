/* Header-only loader for hosts: finds libgraft.so, opens it, and explains failures. Needs <dlfcn.h> (link with -ldl
 * where the C library requires it).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_LOAD_H
#define GRAFT_LOAD_H

#include "graft_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

GRAFT_EXTERN_C_BEGIN

typedef int32_t (*graft_open_fn)(uint32_t, uint32_t, const graft_host *, const graft_api **, graft_error *);

static inline __attribute__((unused)) int32_t graft_load_refuse(graft_error *error, int32_t code, const char *path,
                                                                const char *why)
{
    if (error != NULL && error->size >= sizeof *error) {
        error->code = code;
        error->native_code = 0;
        error->rank = 0;
        snprintf(error->where, sizeof error->where, "graft_load");
        snprintf(error->message, sizeof error->message, "cannot use '%.160s' as the Graft library: %.160s%s", path, why,
                 code != GRAFT_ERR_NOT_FOUND || strchr(path, '/') != NULL
                     ? ""
                     : "; pass the path of the file, or link the program with a run path, or set LD_LIBRARY_PATH");
    }
    return code;
}

/* The functions of the C library, whose own headers declare them with _GNU_SOURCE only. */
int graft_load_getaffinity(int thread, size_t bytes, void *processors) __asm__("sched_getaffinity");
int graft_load_setaffinity(int thread, size_t bytes, const void *processors) __asm__("sched_setaffinity");

/* The processors on which a thread may run, of as many as kernels know: 8192. With OMP_PROC_BIND or OMP_PLACES, OpenMP
 * binds the thread that loads it, and threads that start their first team, to one place. */
struct graft_load_processors {
    int           is_known;
    unsigned long bits[8192 / (8 * sizeof(unsigned long))];
};

static inline __attribute__((unused)) void graft_load_note_processors(struct graft_load_processors *before)
{
    before->is_known = graft_load_getaffinity(0, sizeof before->bits, before->bits) == 0;
}

/* For the same thread: restore the processors that were noted. */
static inline __attribute__((unused)) void graft_load_keep_processors(const struct graft_load_processors *before)
{
    struct graft_load_processors after;

    graft_load_note_processors(&after);
    if (before->is_known && after.is_known && memcmp(before->bits, after.bits, sizeof after.bits) != 0)
        (void)graft_load_setaffinity(0, sizeof before->bits, before->bits);
}

/* As dlopen(), but this thread keeps its processors. */
static inline __attribute__((unused)) void *graft_load_file(const char *file)
{
    struct graft_load_processors before;
    void                        *library;

    graft_load_note_processors(&before);
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    graft_load_keep_processors(&before);
    return library;
}

/** Load libgraft.so and open a context in it.
 *
 * \param[in]  path   The file, or NULL for the soname. A name without '/' is searched for by the dynamic linker.
 * \param[in]  host   As for graft_open(); may be NULL.
 * \param[out] api    As for graft_open(). Unchanged on failure.
 * \param[out] error  Optional.
 * \return the codes of graft_open(); ERR_NOT_FOUND (it cannot be loaded: the message quotes the dynamic linker);
 *         ERR_VERSION (it exports no graft_open, or its table of calls is shorter than in the first release).
 * Threads: [any-thread]. Not collective. The library stays loaded until the process ends (-z nodelete), so there is
 * nothing to unload. Keeps errno and the processors of the thread. Since 0.1. */
static inline __attribute__((unused)) int32_t graft_load(const char *path, const graft_host *host,
                                                         const graft_api **api, graft_error *error)
{
    const int        saved_errno = errno;
    const char      *file = path != NULL ? path : "libgraft.so.1";
    const graft_api *opened = NULL;
    graft_open_fn    entry = NULL;
    int32_t          rc;
    void            *symbol = NULL;
    void            *library = graft_load_file(file);

    if (library != NULL) symbol = dlsym(library, "graft_open");
    if (symbol == NULL) {
        const char *reason = dlerror();
        rc = graft_load_refuse(error, library == NULL ? GRAFT_ERR_NOT_FOUND : GRAFT_ERR_VERSION, file,
                               reason != NULL ? reason : "it exports a null graft_open");
        if (library != NULL) dlclose(library);
        errno = saved_errno;
        return rc;
    }
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no conversion from an object to a function pointer. */
    rc = entry(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, host, &opened, error);
    if (rc == GRAFT_OK && opened->size < GRAFT_HAS(graft_api, module_info)) {
        opened->close(opened->context);
        rc = graft_load_refuse(error, GRAFT_ERR_VERSION, file, "its table of calls is shorter than this host needs");
    }
    if (rc == GRAFT_OK) *api = opened;
    errno = saved_errno;
    return rc;
}

/** Return an interface of the library, or NULL if the library does not have it or its table is shorter than `size`. A
 *  host asks for the last call that it uses, in the order of the table, so that it runs with libraries that are older
 *  than its headers:
 *
 *      const graft_mxm_api *mxm = graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, run));
 *
 * Threads: [any-thread]. Not collective. Since 0.1. */
static inline __attribute__((unused)) const void *graft_interface(const graft_api *api, const char *id, uint64_t size)
{
    const void *table = api->get_interface(api->context, id);
    uint32_t    known = 0;

    if (table != NULL) memcpy(&known, table, sizeof known);
    return known >= size ? table : NULL;
}

GRAFT_EXTERN_C_END
#endif
