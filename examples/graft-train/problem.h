/* Errors of graft-train. Like errors of the library they are a status, and a message in a graft_error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "graft_base.h"

/** Set rc to the result of expr, and go to `done:` if expr fails. */
#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        rc = (expr);                                                                                                   \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/** The exit codes. After an interrupt the exit code is 128 + the number of the signal. */
enum { EXIT_FINE = 0, EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

/** Fill `error` with a code and a message, and return the code. */
int32_t problem(graft_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Set the message "cannot `doing` 'path': " and the text of errno. Returns GRAFT_ERR_IO. */
int32_t problem_errno(graft_error *error, const char *doing, const char *path);

/** Set the message "out of memory for `what`". Returns GRAFT_ERR_NOMEM. */
int32_t problem_memory(graft_error *error, const char *what);

/** If `silent`, print nothing from now on, because one rank prints the errors of all ranks. */
void problem_silence(int silent);
int  problem_is_silent(void);

/** Returns the exit code of a failure. A bad option is a usage error. */
int problem_code(const graft_error *error);

/** Print the message as one line, and return the exit code. */
int problem_print(const graft_error *error);

#endif
