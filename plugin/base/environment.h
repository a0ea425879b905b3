/* Data that the library takes from the process: variables of the environment, and the folder of its own file.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

/** The value of a variable; NULL if it is not set or variables are not read. */
const char *gr_environment(const graft_context *context, const char *variable);

/** The environment of a child process, an array that ends with NULL: the variables of this process, or none if
 *  variables are not read. */
char *const *gr_environment_of_child(const graft_context *context);

/** Write the folder of the library's file, with links resolved, to path[room]. \return 0 if it is unknown */
int gr_environment_library_folder(char *path, int64_t room);
