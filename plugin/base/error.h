/* Errors, and the size rule for structs of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

/** Return the code of expr at once if it fails. GR_TRY and GR_TRY_DONE alone change the flow of control; tests/style
 * refuses GR_TRY in a function with a label `done`, which has something to free. */
#define GR_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        const int32_t rc_of_try = (expr);                                                                              \
        if (rc_of_try < 0) return rc_of_try;                                                                           \
    } while (0)

/** As GR_TRY, for functions with something to free: store the code in rc, and go to the label `done`. */
#define GR_TRY_DONE(expr)                                                                                              \
    do {                                                                                                               \
        rc = (expr);                                                                                                   \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/** Set error (never NULL inside the library) to a code and a message. \return the code */
int32_t gr_fail(graft_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** As gr_fail(), and also store errno or the code of another library. */
int32_t gr_fail_native(graft_error *error, int32_t code, int32_t native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *gr_error_status_text(int32_t code);

/** Check the text[capacity] of an explain() call. \return OK; ERR_ARG (null, or no capacity) */
int32_t gr_text_check(const char *text, uint64_t capacity, graft_error *error);

/** Copy a struct of the host into one of ours, zero-filled to our size. \return OK; ERR_ARG (NULL, a size below 8 or
 *  not a multiple of 8); ERR_UNSUPPORTED (it has bytes beyond our size that are not zero) */
int32_t gr_struct_read(void *ours, uint32_t our_size, const void *theirs, const char *name, graft_error *error);

/** Check that results can be written to a struct of the host, before they are computed. \return OK; ERR_ARG */
int32_t gr_struct_check_out(const void *theirs, const char *name, graft_error *error);

/** Copy one of our structs to the host's, up to the size of the host's struct, whose field `size` is unchanged. */
int32_t gr_struct_write(void *theirs, const void *ours, uint32_t our_size, const char *name, graft_error *error);
