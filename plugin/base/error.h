/* Errors and the frame around every public call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_ERROR_H
#define GR_BASE_ERROR_H

#include "graft_host.h"

/** Go to `done:` with rc set when expr fails. The only macro that changes the flow of control. */
#define GR_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        rc = (expr);                                                                                                   \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/** Fill error (never NULL inside the library) with a code and a sentence, and return the code. */
int32_t gr_fail(graft_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** As gr_fail(), also keeping errno or the code of a foreign library. */
int32_t gr_fail_native(graft_error *error, int32_t code, int32_t native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *gr_status_text(int32_t code);

/** One public call in progress: it keeps the host's errno, collects the error, and hands it over at the end. */
struct gr_call {
    graft_error  error; /* complete, whatever the size of the host's own */
    graft_error *out;
    const char  *where;
    int          saved_errno;
};

/** Begin a call. Fails with ERR_ARG if context is NULL and with ERR_FORKED in a child process. */
int32_t gr_call_begin(struct gr_call *call, const graft_context *context, const char *where, graft_error *out);

/** End it: restore errno, copy the error out if rc < 0. Returns rc. */
int32_t gr_call_end(struct gr_call *call, int32_t rc);

/** Read a struct of the host by the size rule into a zeroed one of ours. NULL, or a size below 8, is ERR_ARG; more
 *  than we know of it, and not zero, ERR_UNSUPPORTED. */
int32_t gr_struct_read(void *ours, uint32_t our_size, const void *theirs, const char *name, graft_error *error);

/** Whether a struct of the host that is to be written can be; to be asked before the work is done. */
int32_t gr_struct_check_out(const void *theirs, const char *name, graft_error *error);

/** Write one of ours into a struct of the host as far as its size goes; its `size` stays. */
int32_t gr_struct_write(void *theirs, const void *ours, uint32_t our_size, const char *name, graft_error *error);

#endif
