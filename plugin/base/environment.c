/* Reads variables of the environment, and finds the folder of the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Whether this context reads no variables, because the host said so, or because the program is set-user-ID or
 * set-group-ID. */
static int is_ignored(const graft_context *context)
{
    return (context->host.flags & GRAFT_HOST_NO_ENVIRONMENT) != 0 || getauxval(AT_SECURE) != 0;
}

const char *gr_environment(const graft_context *context, const char *variable)
{
    return is_ignored(context) ? NULL : secure_getenv(variable);
}

char *const *gr_environment_of_child(const graft_context *context)
{
    static char *const nothing[] = { NULL };

    return is_ignored(context) ? nothing : environ;
}

int gr_environment_library_folder(char *path, int64_t room)
{
    char    file[PATH_MAX];
    char   *slash;
    Dl_info info;

    if (dladdr((void *)(uintptr_t)&gr_environment_library_folder, &info) == 0 || strchr(info.dli_fname, '/') == NULL)
        return 0;
    if (realpath(info.dli_fname, file) == NULL) return 0;
    slash = strrchr(file, '/');
    *slash = '\0';
    return snprintf(path, (size_t)room, "%s", slash > file ? file : "/") < room;
}
