/* Errors of graft-train have the form of errors of the library: a status and a message in a graft_error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "graft_base.h"

/** Go to `done:` with rc set when expr fails. */
#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        rc = (expr);                                                                                                   \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/** Exit codes, beside 128 + the number of the signal that interrupted the program. */
enum { EXIT_FINE = 0, EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

/** Fill `error` with a code and a message, and return the code. */
int32_t problem(graft_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Set the message "cannot `doing` 'path': " and the text of errno. Returns GRAFT_ERR_IO. */
int32_t problem_errno(graft_error *error, const char *doing, const char *path);

/** Set the message "out of memory for `what`". Returns GRAFT_ERR_NOMEM. */
int32_t problem_memory(graft_error *error, const char *what);

/** Print nothing from now on if `silent`: errors of all ranks are printed by one of them. */
void problem_silence(int silent);
int  problem_is_silent(void);

/** The exit code of a failure: a bad option is a usage error. */
int problem_code(const graft_error *error);

/** Print the message as one line, and return the exit code. */
int problem_print(const graft_error *error);

#endif
