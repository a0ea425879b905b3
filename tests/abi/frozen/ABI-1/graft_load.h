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
        snprintf(error->message, sizeof error->message, "cannot use '%.200s' as the Graft library: %.200s", path, why);
    }
    return code;
}

/** Load libgraft.so and open a context in it.
 *
 * \param[in]  path   The file, or NULL for the soname. A name without '/' is searched for by the dynamic linker.
 * \param[in]  host   As for graft_open(); may be NULL.
 * \param[out] api    As for graft_open(). Unchanged on failure.
 * \param[out] error  Optional.
 * \return the codes of graft_open(); ERR_NOT_FOUND (it cannot be loaded: the message quotes the dynamic linker);
 *         ERR_VERSION (it exports no graft_open, or its table of calls is shorter than that of the first release).
 * Threads: [any-thread]. Not collective. The library stays loaded until the process ends (-z nodelete), so there is
 * nothing to unload. Keeps errno. Since 1. */
static inline __attribute__((unused)) int32_t graft_load(const char *path, const graft_host *host,
                                                         const graft_api **api, graft_error *error)
{
    const int        saved_errno = errno;
    const char      *file = path != NULL ? path : "libgraft.so.1";
    const graft_api *opened = NULL;
    graft_open_fn    entry = NULL;
    int32_t          rc;
    void            *symbol = NULL;
    void            *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

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
 * Threads: [any-thread]. Not collective. Since 1. */
static inline __attribute__((unused)) const void *graft_interface(const graft_api *api, const char *id, uint64_t size)
{
    const void *table = api->get_interface(api->context, id);
    uint32_t    known = 0;

    if (table != NULL) memcpy(&known, table, sizeof known);
    return known >= size ? table : NULL;
}

GRAFT_EXTERN_C_END
#endif
