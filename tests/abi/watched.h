/* The parts of the wrappers of watch.h: every call of the library stands between watch_begin() and watch_end().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WATCHED_H
#define WATCHED_H

#include "watch.h"

/* After lack of memory: MAY_KEEP if memory of modules may stay allocated, NOT_TWICE if the call is not repeated. */
enum { MAY_KEEP = 1, NOT_TWICE = 2 };

void watch_begin(const char *call, const graft_error *error);

/** Check what must hold after every call. The result is 1 if the call is to be made again. */
int watch_end(int32_t rc, const graft_error *error, int untouched, int flags);

/** Report a wrapped table that lacks a call because the interface has grown. */
void watch_check_whole(const char *id, const void *table, size_t size);

/** Fill in the tables of graft.transport/1, graft.group/1, graft.graph/1, graft.aggregate/1, graft.halo/1 and
 * graft.codec/1. */
void watch_ranks(struct subject *subject, const graft_api *api);

/** Fill in the table of graft.model/1. */
void watch_models(struct subject *subject, const graft_api *api);

/** A copy of the elements of a dense matrix, if it has any that can be read. The caller frees it. */
void *watch_copy_dense(const graft_dense *dense, size_t *bytes);
/** Fill in the tables of graft.sample/1, graft.train/1 and graft.report/1. */
void  watch_samples(struct subject *subject, const graft_api *api);
void  watch_train(struct subject *subject, const graft_api *api);

#define WATCHED(call, error, expression, untouched, flags)                                                             \
    do {                                                                                                               \
        watch_begin(call, error);                                                                                      \
        rc = (expression);                                                                                             \
    } while (watch_end(rc, error, untouched, flags))

#define WATCHED_VOID(call, expression)                                                                                 \
    do {                                                                                                               \
        watch_begin(call, NULL);                                                                                       \
        expression;                                                                                                    \
        watch_end(GRAFT_OK, NULL, 1, 0);                                                                               \
    } while (0)

/* Whether an output, which may be NULL, equals its copy. */
static inline int watch_same(const void *output, const void *copy, size_t bytes)
{
    return output == NULL || memcmp(output, copy, bytes) == 0;
}

#endif
