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
    graft_api        *api;         /* which has its own memory */
    graft_host        host;        /* complete: no function is NULL */
    graft_host        module_host; /* the host for modules: the same functions, and options by extension() */
    pid_t             owner;
    struct gr_options options;
    struct gr_modules modules;
    struct gr_comm   *comms;            /* one for each transport in use (comm/) */
    int32_t           keeps;            /* comms whose library may still write to cancelled messages */
    uint64_t          verified;         /* number of verified products: the key of the next sample */
    char              last_run[1024];   /* the kernel that ran last, for explain() */
    _Atomic int32_t   cancel;           /* the host has asked to cancel a call */
    int32_t           defers_cancel;    /* 1: the running call can no longer be undone */
    _Atomic int32_t   threads_most;     /* no more can be started; 0: not known */
    int64_t           processors_quota; /* of the container, when the context was created */
    int32_t           binds_threads;    /* 1: OpenMP may bind the thread of a call to processors */
};

/** \return OK; ERR_CANCELLED (the host has asked to cancel the call, and the call does not defer cancellation). */
int32_t gr_context_check_cancel(const graft_context *context, graft_error *error);

/** Create a context with defaults for missing functions of the host, and options from the environment. \return OK;
 *  ERR_ARG; ERR_NOMEM; ERR_OPTION */
int32_t gr_context_create(const graft_host *host, const struct gr_option_list *options, graft_context **context,
                          graft_error *error);
void    gr_context_destroy(graft_context *context);

/** Copy a host, or NULL, with defaults for missing functions. \return OK; ERR_ARG; ERR_UNSUPPORTED */
int32_t    gr_context_complete_host(graft_host *ours, const graft_host *theirs, graft_error *error);
/** A host for the modules of a context, which forwards all calls. */
graft_host gr_context_module_host(graft_context *context);

void gr_log(const graft_context *context, graft_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Log nothing from now on. */
void gr_log_end(graft_context *context);

/** The number of threads of a call: `asked` if positive, else option "threads", else OpenMP's default, which without
 *  OMP_NUM_THREADS is at most the processors of the thread and the quota of the container. At most four for each
 *  processor, as many as OpenMP and the system start, and 1 in a parallel region of the host or in a forked child of a
 *  process that used more. The threads are started for the calling thread. */
int gr_context_threads(const graft_context *context, int32_t asked);

/** The same for a call of `operations` operations on elements. No more new threads are started than the operations
 *  justify; existing threads of the calling thread take part. */
int gr_context_threads_for(const graft_context *context, int32_t asked, int64_t operations);
