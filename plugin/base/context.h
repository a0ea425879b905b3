/* The context: everything that belongs to one graft_open().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_CONTEXT_H
#define GR_BASE_CONTEXT_H

#include "base/error.h"
#include "base/module.h"
#include "base/option.h"

#include <sys/types.h>

struct graft_context {
    graft_api         api;
    graft_host        host; /* complete: no function in it is NULL */
    pid_t             owner;
    struct gr_options options;
    struct gr_modules modules;
    struct gr_comm   *comms;          /* of exchange/, one for each transport in use */
    int32_t           keeps;          /* of these, those of which a library may still write where messages were */
    uint64_t          verified;       /* products of which rows were verified: the key of the next sample */
    char              last_run[1024]; /* which kernel ran last, for explain */
};

/** Make a context with the defaults for what the host left out. Options come from the environment. */
int32_t gr_context_create(const graft_host *host, graft_context **context, graft_error *error);
void    gr_context_destroy(graft_context *context);

void gr_log(const graft_context *context, graft_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** How many threads a call may use: `asked` if positive, else option "threads", else what OpenMP would take; never more
 *  than four for each processor, and one in a child process of one that used more. */
int gr_threads(const graft_context *context, int32_t asked);

#endif
