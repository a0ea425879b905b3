/* Finds libgraft.so for the programs of this folder, and prints its version. Needs _GNU_SOURCE for dladdr().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FIND_LIBRARY_H
#define FIND_LIBRARY_H

#include "graft_load.h"

#include <dlfcn.h>
#include <stdlib.h>

/** Open the library that the user names; otherwise the library in variable GRAFT_LIBRARY; otherwise the one that the
 * dynamic linker finds. The run path of a program leads to the library of its build folder, or of the tree where it is
 * installed. */
static int32_t find_library(const char *named, const graft_host *host, const graft_api **api, graft_error *error)
{
    if (named == NULL) named = getenv("GRAFT_LIBRARY");
    return graft_load(named != NULL && *named != '\0' ? named : NULL, host, api, error);
}

/** The file from which the library was loaded. */
static inline const char *library_path(const graft_api *api)
{
    Dl_info info;
    void   *address;

    memcpy(&address, &api->close, sizeof address);
    return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/** Print the release, the contract version and the file of the library, or the reason why there is none. \return an
 * exit status */
static inline int print_version(FILE *stream, const char *program, const char *named)
{
    graft_error      error = GRAFT_INIT(graft_error);
    const graft_api *api = NULL;

    if (find_library(named, NULL, &api, &error) < 0) {
        fprintf(stderr, "%s: %s\n", program, error.message);
        return 1;
    }
    fprintf(stream, "%s: Graft %s, contract %u, %s\n", program, api->version, api->abi, library_path(api));
    api->close(api->context);
    return fflush(stream) != 0;
}

#endif
