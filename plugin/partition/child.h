/* A program that is run with bytes for its standard input and gives bytes back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_CHILD_H
#define GR_PARTITION_CHILD_H

#include "base/context.h"

enum { GR_CHILD_SAID = 256 };

/** What is to be done from time to time while a program runs, for those who wait for this process to say that it lives.
 *  A failure of it ends the wait. */
struct gr_meanwhile {
    int32_t (*call)(void *arg, graft_error *error);
    void *arg;
};

/** A program that runs. Zeroed with pid -1 it does not. */
struct gr_child {
    pid_t       pid;
    int         both, said_end; /* a socket with its input and output, a pipe with its errors; -1: closed */
    double      deadline;       /* by gr_seconds() */
    double      timeout;
    const char *program;
    char        said[GR_CHILD_SAID]; /* what it wrote to standard error, cut short, in printable characters */
    int32_t     said_length;
};

/** Start a program, by its path and without arguments. Its signals are as in a new process.
 *  ERR_NOT_FOUND if it cannot be run, ERR_IO if the system gives no process or pipe. */
int32_t gr_child_start(struct gr_child *child, const char *program, double timeout, graft_error *error);

/** Where the bytes for it come from: fill `to` with the next, at most `room`. Returns how many, 0 at the end. */
typedef int64_t (*gr_child_source)(void *arg, char *to, int64_t room);

/** Feed the program, and fill output[bytes] with what it writes, both at once, for it may write before it has read all.
 *  Then wait for its end. ERR_MODULE, with what it said, if it does not write exactly so many bytes, ends with another
 *  code than 0, or has not ended by the deadline; what `meanwhile` failed with. `output` is undefined on failure.
 *  \param[in] meanwhile  Or NULL. */
int32_t gr_child_talk(struct gr_child *child, gr_child_source source, void *arg, char *output, int64_t bytes,
                      const struct gr_meanwhile *meanwhile, graft_error *error);

/** End it if it still runs, and leave neither process nor file behind. */
void gr_child_end(struct gr_child *child);

#endif
