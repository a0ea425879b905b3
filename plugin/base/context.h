/* The context: all state that belongs to one graft_open().
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/handle.h"
#include "base/module.h"
#include "base/option.h"

struct graft_context {
    struct gr_handle  handle;
    struct gr_callers callers;
    graft_api        *api;         /* the table of calls, in memory that is not the host's (base/table.h) */
    graft_host        host;        /* complete: no function is NULL */
    graft_host        module_host; /* host for modules: forwards to `host`, and answers requests for options */
    pid_t             owner;
    struct gr_options options;
    struct gr_modules modules;
    struct gr_comm   *comms;            /* a list with one comm for each transport in use (comm/) */
    int32_t           keeps;            /* number of comms whose transport may still write to cancelled messages */
    uint64_t          verified;         /* number of verified products; it selects the rows to verify next */
    char              last_run[1024];   /* name of the kernel that ran last, for explain() */
    _Atomic int32_t   cancel;           /* the host has asked to cancel a call */
    int32_t           defers_cancel;    /* 1: the running call has passed the point where it could be undone */
    _Atomic int32_t   threads_most;     /* the most threads that the system could start; 0: not known */
    int64_t           processors_quota; /* quota of the container when the context was created */
    int32_t           binds_threads;    /* 1: OpenMP may bind the thread of a call to processors */
};

/** Check whether to stop. \return OK; ERR_CANCELLED (the host has asked to cancel the call, and it can still be
 *  undone). */
int32_t gr_context_check_cancel(const graft_context *context, graft_error *error);

/** Create a context with defaults for missing functions of the host, and options from the environment. \return OK;
 *  ERR_ARG; ERR_NOMEM; ERR_OPTION */
int32_t gr_context_create(const graft_host *host, const struct gr_option_list *options, graft_context **context,
                          graft_error *error);
void    gr_context_destroy(graft_context *context);

/** Copy the host's struct, which may be NULL, and fill in defaults for missing functions. \return OK; ERR_ARG;
 *  ERR_UNSUPPORTED */
int32_t    gr_context_complete_host(graft_host *ours, const graft_host *theirs, graft_error *error);
/** Return a host for the modules of a context, which forwards all calls to the host of the context. */
graft_host gr_context_module_host(graft_context *context);

void gr_log(const graft_context *context, graft_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Log nothing from now on. */
void gr_log_end(graft_context *context);

/** Return the number of threads of a call, and start that many for the calling thread. It is `asked` if positive, else
 *  option "threads", else OpenMP's default, which without OMP_NUM_THREADS is at most the number of processors of the
 *  thread and the quota of the container. It is limited to four threads for each processor and to what OpenMP and the
 *  system can start. It is 1 in a parallel region of the host, or in a forked child of a process that used a team. */
int gr_context_threads(const graft_context *context, int32_t asked);

/** Return the number of threads of a call with this many operations on elements, and start them. New threads are
 *  started only as far as the operations justify them; all existing threads of the calling thread take part. */
int gr_context_threads_for(const graft_context *context, int32_t asked, int64_t operations);
