/* Finds the GraphBLAS to which a call belongs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_BIND_H
#define GRAFT_GRB_DROPIN_BIND_H

#include "graphblas/calls.h"

#include <stdatomic.h>

typedef void *(*grb_malloc)(size_t);

/** A GraphBLAS of this process. */
struct grb_binding {
    struct grb_calls calls;
    int              complete; /** whether it has all functions that the drop-in uses */
    grb_malloc       malloc_7; /** in version 7, a function that calls the malloc with which GraphBLAS was started */
    atomic_int       major;    /** major version; 0 as long as GraphBLAS has not been started */
};

/** The GraphBLAS library of a call from `caller` with these arguments; NULL if this process has none. A process may
 * have several, for example one in a Python package. [any-thread] */
const struct grb_binding *grb_bind(void *caller, const void *semiring, const void *output);

/** The function malloc with which GraphBLAS was started; NULL if it is unknown. [any-thread] */
grb_malloc grb_malloc_of(const struct grb_binding *binding);

#endif
