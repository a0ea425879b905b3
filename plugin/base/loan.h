/* Arrays that an object borrows from the host. With option check=full their digests detect changes without a call that
 * announces them.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

enum { GR_LOANS = 12 };

struct gr_loan {
    const char *name;
    uint32_t    what; /* a bit of the caller, which excludes the array from check() */
    const void *data;
    int64_t     rows, row_bytes, stride; /* bytes */
    uint32_t    digest;                  /* CRC32C of the rows, without the gaps between them */
};

struct gr_loans {
    int32_t        count;
    struct gr_loan at[GR_LOANS];
};

/** Compute the digest of an array. A digest of the same name is replaced; a new digest is added only with check=full,
 *  so that objects created with other values have none. NULL is not added. */
void gr_loan_take(struct gr_loans *loans, const graft_context *context, const struct gr_loan *loan);

/** Compute the digests of a matrix with arrays of the host: `names` of its row pointers, columns and values; `pattern`
 *  is the bit of the first two, `values` the bit of the last. */
void gr_loan_take_csr(struct gr_loans *loans, const graft_context *context, const graft_csr *csr,
                      const char *const names[3], uint32_t pattern, uint32_t values);

/** With check=full, compare all digests except those in `except`. \return OK; ERR_STATE: an array of `whose` has
 *  changed without calls[i], where `what` of the array is bit i. */
int32_t gr_loans_check(const struct gr_loans *loans, const graft_context *context, uint32_t except, const char *whose,
                       const char *const *calls, graft_error *error);
