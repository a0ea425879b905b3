/* Runs a program that receives bytes on its standard input and returns bytes on its standard output.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

enum { GR_CHILD_ERROR_TEXT = 256 };

/** A function that is called from time to time while a program runs, for instance to send heartbeats. If it fails, the
 *  wait ends with that error. */
struct gr_meanwhile {
    int32_t (*call)(void *arg, graft_error *error);
    void *arg;
};

/** A running program. pid is -1 if there is none, and a file is -1 if it is closed. */
struct gr_child {
    pid_t       pid;
    int         both;      /* the socket of its standard input and output */
    int         error_end; /* the pipe from its standard error */
    int         guard;     /* a pipe: when it is closed, the program and the processes that it started are killed */
    double      deadline;  /* a time of gr_seconds() */
    double      timeout;
    const char *program;
    int         exit_code;                       /* exit code of a program that has ended by itself; 0 before */
    char        error_text[GR_CHILD_ERROR_TEXT]; /* the beginning of its standard error, in printable characters */
    int32_t     error_length;
};

/** Start a program by its path, without arguments, with these variables of the environment, default signal handling, a
 *  process group of its own and none of the host's files. It does not outlive the host.
 *  \return OK; ERR_NOT_FOUND (it cannot be run); ERR_IO (no process, socket or pipe available) */
int32_t gr_partition_child_start(struct gr_child *child, const char *program, char *const *variables, double timeout,
                                 graft_error *error);

/** A source of the program's input: writes the next bytes, at most `room`, to `to`. \return their number, 0 at the
 *  end */
typedef int64_t (*gr_child_source)(void *arg, char *to, int64_t room);

/** Send the input and receive output[bytes] at the same time, then wait for the end of the program. `output` is
 *  undefined on failure.
 *  \param[in] meanwhile A function to call while the program runs, or NULL.
 *  \return OK; ERR_MODULE (the output has another length, the exit code is not 0, or the deadline is past; the message
 *  quotes the standard error); the error of `meanwhile` */
int32_t gr_partition_child_talk(struct gr_child *child, gr_child_source source, void *arg, char *output, int64_t bytes,
                                const struct gr_meanwhile *meanwhile, graft_error *error);

/** Kill the program if it still runs, and the rest of its process group; reap it, and close all files. */
void gr_partition_child_end(struct gr_child *child);
