/* Fills and prints errors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t problem(graft_error *error, int32_t code, const char *format, ...)
{
    va_list list;

    error->code = code;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return code;
}

int32_t problem_errno(graft_error *error, const char *doing, const char *path)
{
    error->native_code = errno;
    return problem(error, GRAFT_ERR_IO, "cannot %s '%s': %s", doing, path, strerror(errno));
}

int32_t problem_memory(graft_error *error, const char *what)
{
    return problem(error, GRAFT_ERR_NOMEM, "out of memory for %s", what);
}

static int is_silent;

void problem_silence(int silent)
{
    is_silent = silent;
}

int problem_is_silent(void)
{
    return is_silent;
}

int problem_code(const graft_error *error)
{
    return error->code == GRAFT_ERR_OPTION ? EXIT_USAGE : EXIT_PROBLEM;
}

int problem_print(const graft_error *error)
{
    if (!is_silent) fprintf(stderr, "graft-train: %s\n", error->message);
    return problem_code(error);
}
