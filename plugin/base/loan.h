/* Arrays that an object borrows from the host. With option check=full their digests show whether they have changed
 * without a call that says so.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_LOAN_H
#define GR_BASE_LOAN_H

#include "base/context.h"

enum { GR_LOANS = 12 };

struct gr_loan {
    const char *name;
    uint32_t    what; /* a bit of the caller's, by which check() is asked to leave it out */
    const void *data;
    int64_t     rows, row_bytes, stride; /* bytes */
    uint32_t    digest;                  /* CRC32C of the rows, without what lies between them */
};

struct gr_loans {
    int32_t        count;
    struct gr_loan at[GR_LOANS];
};

/** Take the digest of an array. One of the same name is replaced; a new one is added only with check=full, so that
 *  objects of other times have none. NULL is not added. */
void gr_loan_take(struct gr_loans *loans, const graft_context *context, const struct gr_loan *loan);

/** Take those of a matrix whose arrays are of the host: `names` are those of its row pointers, columns and values;
 *  `pattern` is the bit of the first two, `values` that of the last. */
void gr_loan_take_csr(struct gr_loans *loans, const graft_context *context, const graft_csr *csr,
                      const char *const names[3], uint32_t pattern, uint32_t values);

/** With check=full, compare all digests but those of `except`. \return OK; ERR_STATE: an array of `whose` has changed,
 *  and calls[i] should have been called, where `what` of the array is bit i. */
int32_t gr_loans_check(const struct gr_loans *loans, const graft_context *context, uint32_t except, const char *whose,
                       const char *const *calls, graft_error *error);

#endif
