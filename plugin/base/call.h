/* Begins and ends every public call.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/affinity.h"
#include "base/fp.h"
#include "base/handle.h"

/** The state of one public call: the host's errno, processors and floating-point environment, which gr_call_end()
 *  restores, and the error, which gr_call_end() copies to the host. */
struct gr_call {
    graft_error  error; /* with all fields, also if the host's struct is smaller */
    graft_error *out;
    const char  *where;
    int          saved_errno;
    struct gr_fp saved_fp;

    const graft_context *context; /* NULL: there is none */
    graft_context       *held;    /* the value of gr_handle_enter() */
    struct gr_affinity   affinity;
};

/** Begin a call on a context, or on another object of the host; floating-point traps are masked until its end.
 *  gr_call_end() is always required. `where` is the name of the call, a string literal.
 *  \return as gr_handle_enter() */
int32_t gr_call_begin(struct gr_call *call, const graft_context *context, const char *where, graft_error *out);
int32_t gr_call_begin_on(struct gr_call *call, const void *object, enum gr_handle_kind kind, const char *where,
                         graft_error *out);

/** Restore what gr_call_begin() saved, and copy the error to the host if rc < 0. If the call has obeyed a request to
 *  cancel, the request is cleared. \return rc */
int32_t gr_call_end(struct gr_call *call, int32_t rc);
