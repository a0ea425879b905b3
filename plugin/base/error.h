/* Errors, and the begin and end of every public call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_ERROR_H
#define GR_BASE_ERROR_H

#include "base/affinity.h"
#include "base/fp.h"
#include "base/handle.h"

/** Go to `done:` with rc set if expr fails. The only macro that changes the flow of control. */
#define GR_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        rc = (expr);                                                                                                   \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/** Set error (never NULL inside the library) to a code and a message. \return the code */
int32_t gr_fail(graft_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** As gr_fail(), with errno or the code of a foreign library. */
int32_t gr_fail_native(graft_error *error, int32_t code, int32_t native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *gr_status_text(int32_t code);

/** One public call: the host's errno, processors and floating-point environment, and the error, which gr_call_end()
 *  copies to the host. */
struct gr_call {
    graft_error  error; /* complete, whatever the size of the host's struct */
    graft_error *out;
    const char  *where;
    int          saved_errno;
    struct gr_fp saved_fp;

    const graft_context *context; /* or NULL */
    graft_context       *held;    /* as gr_enter() returns it */
    struct gr_affinity   affinity;
};

/** Begin a call on a context, or on another object of the host; floating-point traps are masked until its end.
 *  gr_call_end() is always required. `where` is a literal.
 *  \return as gr_enter() */
int32_t gr_call_begin(struct gr_call *call, const graft_context *context, const char *where, graft_error *out);
int32_t gr_call_begin_on(struct gr_call *call, const void *object, enum gr_handle_kind kind, const char *where,
                         graft_error *out);

/** Restore what was saved, and copy the error to the host if rc < 0. Clears a request to cancel that this call has
 *  honoured. \return rc */
int32_t gr_call_end(struct gr_call *call, int32_t rc);

/** Check the text[capacity] of an explain() call. \return OK; ERR_ARG (null, or no capacity) */
int32_t gr_text_check(const char *text, uint64_t capacity, graft_error *error);

/** Copy a struct of the host into one of ours, zero-filled to our size. \return OK; ERR_ARG (NULL, a size below 8 or
 *  not a multiple of 8); ERR_UNSUPPORTED (it has bytes beyond our size that are not zero) */
int32_t gr_struct_read(void *ours, uint32_t our_size, const void *theirs, const char *name, graft_error *error);

/** Check before the work that a struct of the host can be written. \return OK; ERR_ARG */
int32_t gr_struct_check_out(const void *theirs, const char *name, graft_error *error);

/** Copy one of our structs into the host's, up to the host's size; its `size` is unchanged. */
int32_t gr_struct_write(void *theirs, const void *ours, uint32_t our_size, const char *name, graft_error *error);

#endif
