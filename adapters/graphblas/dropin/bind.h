/* Finds the GraphBLAS to which a call belongs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_BIND_H
#define GRAFT_GRB_DROPIN_BIND_H

#include "version.h"

typedef void *(*grb_malloc)(size_t);

/** A GraphBLAS of this process. */
struct grb_binding {
    struct grb_calls                    calls;
    int                                 complete; /** < whether it has all functions that the drop-in uses */
    _Atomic(const struct grb_version *) version;  /**< NULL while GraphBLAS has not been started */
    _Atomic(grb_malloc)                 allocate; /** < the function malloc with which it was started; NULL: unknown */
};

/** The GraphBLAS that the code at `caller` is linked with; NULL: this process has no GraphBLAS. A process may have
 *  several, such as one in a Python package. [any-thread] */
const struct grb_binding *grb_bind(void *caller);

/** Held while the process forks. */
void grb_bind_lock(void);
void grb_bind_unlock(void);

/** The same, without the results of earlier calls: for single calls. [any-thread] */
struct grb_binding *grb_find(void *caller);

#endif
