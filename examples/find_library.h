/* How the programs of this folder find libgraft.so.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FIND_LIBRARY_H
#define FIND_LIBRARY_H

#include "graft_load.h"

#include <stdlib.h>

/** Open the library that the user names; else the library in variable GRAFT_LIBRARY, or the one that the dynamic linker
 *  finds. The run path of a program leads to the library of its build folder, or of the tree where it is installed. */
static int32_t find_library(const char *named, const graft_host *host, const graft_api **api, graft_error *error)
{
    if (named == NULL) named = getenv("GRAFT_LIBRARY");
    return graft_load(named != NULL && *named != '\0' ? named : NULL, host, api, error);
}

#endif
