/* Arrays that an object borrows from the host. With option check=full their digests detect changes without a call that
 * announces them.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

enum { GR_LOANS = 12 };

struct gr_loan {
    const char *name;
    uint32_t    what; /* a bit that the caller gives the array; check() can except it. 0: no bit */
    const void *data;
    int64_t     rows, row_bytes, stride; /* bytes */
    uint32_t    digest;                  /* CRC32C of the rows, without the gaps between them */
};

struct gr_loans {
    int32_t        count;
    struct gr_loan at[GR_LOANS];
};

/** Compute the digest of an array. It replaces the digest with the same name. A first digest is stored only if option
 *  check is full when the object is created. NULL is not stored. */
void gr_loan_take(struct gr_loans *loans, const graft_context *context, const struct gr_loan *loan);

/** Compute the digests of the arrays of a matrix. `names` are the names of its row pointers, columns and values;
 *  `pattern` is the bit of the first two, and `values` that of the last. */
void gr_loan_take_csr(struct gr_loans *loans, const graft_context *context, const graft_csr *csr,
                      const char *const names[3], uint32_t pattern, uint32_t values);

/** With check=full, compare all digests except those of arrays with a bit in `except`. \return OK; ERR_STATE: an array
 *  of object `whose` has changed, and calls[i], the call that announces changes of arrays with bit i, was not made. */
int32_t gr_loans_check(const struct gr_loans *loans, const graft_context *context, uint32_t except, const char *whose,
                       const char *const *calls, graft_error *error);
