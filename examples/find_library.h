/* How the programs of this folder find libgraft.so.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FIND_LIBRARY_H
#define FIND_LIBRARY_H

#include "graft_load.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/** Find the library beside this program or in ../lib; 0 if it is in neither. */
static int find_beside(char *path, size_t capacity)
{
    static const char *const PLACES[] = { "libgraft.so", "libgraft.so.1", "../lib/libgraft.so",
                                          "../lib/libgraft.so.1" };
    char                     program[PATH_MAX];
    const ssize_t            length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length <= 0) return 0;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL) return 0;
    *slash = '\0';
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const int used = snprintf(path, capacity, "%s/%s", program, PLACES[i]);
        if (used > 0 && (size_t)used < capacity && access(path, R_OK) == 0) return 1;
    }
    return 0;
}

/** Open the library that the user names; else that of the variable GRAFT_LIBRARY, the one beside this program, or the
 *  one that the dynamic linker finds. */
static int32_t find_library(const char *named, const graft_host *host, const graft_api **api, graft_error *error)
{
    char path[PATH_MAX + 32];

    if (named == NULL) named = getenv("GRAFT_LIBRARY");
    if (named != NULL && *named != '\0') return graft_load(named, host, api, error);
    return graft_load(find_beside(path, sizeof path) ? path : NULL, host, api, error);
}

#endif
