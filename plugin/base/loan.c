/* Computes and compares digests of borrowed arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/loan.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/dtype.h"
#include "base/options.h"

#include <string.h>

static uint32_t digest_rows(const struct gr_loan *loan)
{
    uint32_t crc = 0;

    if (loan->stride == loan->row_bytes) return gr_crc(0, loan->data, (uint64_t)(loan->rows * loan->row_bytes));
    for (int64_t row = 0; row < loan->rows; row++)
        crc = gr_crc(crc, (const char *)loan->data + row * loan->stride, (uint64_t)loan->row_bytes);
    return crc;
}

void gr_loan_take(struct gr_loans *loans, const graft_context *context, const struct gr_loan *loan)
{
    struct gr_loan *at = loans->at;

    while (at < loans->at + loans->count && strcmp(at->name, loan->name) != 0) at++;
    if (at == loans->at + loans->count) {
        if (loan->data == NULL || gr_base_options(context)->check != GR_CHECK_FULL) return;
        GR_ASSERT(loans->count < GR_LOANS);
        loans->count++;
    }
    *at = *loan;
    if (at->data == NULL) at->rows = 0;
    at->digest = digest_rows(at);
}

void gr_loan_take_csr(struct gr_loans *loans, const graft_context *context, const graft_csr *csr,
                      const char *const names[3], uint32_t pattern, uint32_t values)
{
    const void *pointers = csr->row_ptr_32 != NULL ? (const void *)csr->row_ptr_32 : csr->row_ptr;
    const int   bytes = csr->row_ptr_32 != NULL ? 4 : 8, index = gr_dtype_bytes(csr->index_type);
    const int   value = csr->values != NULL ? gr_dtype_bytes(csr->value_type) : 0;
    int64_t     entries;

    if (pointers == NULL) return;
    entries = csr->row_ptr_32 != NULL ? csr->row_ptr_32[csr->n_rows] : csr->row_ptr[csr->n_rows];
    gr_loan_take(loans, context, &(struct gr_loan){ names[0], pattern, pointers, csr->n_rows + 1, bytes, bytes, 0 });
    gr_loan_take(loans, context, &(struct gr_loan){ names[1], pattern, csr->col_idx, entries, index, index, 0 });
    gr_loan_take(loans, context, &(struct gr_loan){ names[2], values, csr->values, entries, value, value, 0 });
}

int32_t gr_loans_check(const struct gr_loans *loans, const graft_context *context, uint32_t except, const char *whose,
                       const char *const *calls, graft_error *error)
{
    if (gr_base_options(context)->check != GR_CHECK_FULL) return GRAFT_OK;
    for (int32_t i = 0; i < loans->count; i++) {
        const struct gr_loan *loan = &loans->at[i];

        if ((loan->what & except) != 0 || digest_rows(loan) == loan->digest) continue;
        if (loan->what != 0)
            return gr_fail(error, GRAFT_ERR_STATE, "%s: the borrowed array '%s' has changed without a call of %s",
                           whose, loan->name, calls[__builtin_ctz(loan->what)]);
        return gr_fail(error, GRAFT_ERR_STATE,
                       "%s: the borrowed array '%s' has changed, and no call can say so: create the object anew", whose,
                       loan->name);
    }
    return GRAFT_OK;
}
