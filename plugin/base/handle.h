/* Handles: the objects of the host. Each begins with a struct gr_handle. All are listed by address, so that a destroyed
 * or invalid handle is detected without reading its memory. Internal objects of the library are not listed.
 *
 * A context serves one call at a time. gr_handle_enter() records the call, and refuses a second call until
 * gr_handle_leave(). SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/** The kinds of handles, as X(constant, word): GR_HANDLE_constant is the kind of graft_word objects. */
#define GR_HANDLE_MAP(X)                                                                                               \
    X(CONTEXT, context)                                                                                                \
    X(MATRIX, matrix)                                                                                                  \
    X(DATA, data)                                                                                                      \
    X(TRAINER, trainer)                                                                                                \
    X(GRAPH, graph)                                                                                                    \
    X(PLAN, plan)                                                                                                      \
    X(HALO, halo)                                                                                                      \
    X(MODEL, model) X(GROUP, group) X(SAMPLER, sampler) X(MESH, mesh) X(NETWORK, network) X(STREAM, stream)

#define GR_HANDLE_ENUM(constant, word) GR_HANDLE_##constant,
enum gr_handle_kind { GR_HANDLE_MAP(GR_HANDLE_ENUM) GR_HANDLE_KINDS };
#undef GR_HANDLE_ENUM

/** The first member of every object that is given to a host. */
struct gr_handle {
    uint64_t            magic; /* a constant while the object is listed */
    enum gr_handle_kind kind;
    graft_context      *context;
    struct gr_handle   *next; /* next object of its list; after the call of destroy(), of the list of waiting objects */
    void (*destroy)(void *object);
    const char *where; /* name of the public call that destroys the object */
};

enum gr_closing { GR_OPEN, GR_CLOSE_ASKED, GR_CLOSED };

/** The callers and objects of a context. */
struct gr_callers {
    _Atomic pid_t     lock;    /* the process whose thread reads or writes the other fields; 0: none */
    _Atomic int32_t   check;   /* option "check", which calls read before they know that the context exists */
    const char       *running; /* name of the running public call, or NULL */
    pthread_t         thread;  /* the thread of the running call */
    enum gr_closing   closing;
    struct gr_handle *waiting; /* list of objects that other threads destroyed during the running call */
    int64_t           live[GR_HANDLE_KINDS];
};

/** List an object that the call is about to return to the host, so that later calls accept it. Only for calls that
 *  succeed. */
void gr_handle_init(void *object, enum gr_handle_kind kind, graft_context *context);

/** Remove an object from the list, if it is listed. gr_handle_destroy() also does this. */
void gr_handle_fini(void *object);

/** Perform a whole public call that destroys an object. The handle is no longer listed. destroy(object) is called now
 *  or, if another call of the context runs, at the end of that call. A pointer that is not a handle of this kind is
 *  ignored. */
void gr_handle_destroy(void *object, enum gr_handle_kind kind, const char *where, void (*destroy)(void *object));

/** Check an object that is argument `name` of a call. With option check=no only checks without cost are made.
 *  \return OK; ERR_ARG (NULL); ERR_STATE (destroyed, of another kind or context, or no handle at all) */
int32_t gr_handle_check(const graft_context *context, const void *object, enum gr_handle_kind kind, const char *name,
                        graft_error *error);

/** The number of listed objects of a kind in the context, and the word for the kind. */
int64_t     gr_handle_count(graft_context *context, enum gr_handle_kind kind);
const char *gr_handle_word(enum gr_handle_kind kind);

/** Whether an object of this kind is listed; for calls without an error argument. */
int gr_handle_is(const void *object, enum gr_handle_kind kind);

/** Find the context of an object and begin the call `where` in it. *held is the context if gr_handle_leave() is
 *  required, else NULL. If `held` is NULL, the call is legal during another call, and is not recorded.
 *  \return OK; ERR_ARG (NULL); ERR_FORKED; ERR_STATE (as gr_handle_check(); the context was closed; another call runs
 *          in it) */
int32_t gr_handle_enter(const void *object, enum gr_handle_kind kind, const char *where, graft_context **held,
                        graft_error *error);

/** End the call: destroy the objects that wait for its end, and free the context if it was closed and has no
 *  objects. */
void gr_handle_leave(graft_context *context);

/** Perform the public call that closes a context: it is freed now, or at the end of the running call, or with its last
 *  object. */
void gr_handle_close(graft_context *context, const char *where);
