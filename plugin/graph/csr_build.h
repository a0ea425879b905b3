/* Builds a CSR matrix from entries in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graph/csr.h"

/** Entries (row[i], col[i]) in any order; places may occur more than once. */
struct gr_coo {
    int64_t  n_rows, n_cols; /* at most INT32_MAX */
    int64_t  first_row;      /* the number of row 0 in messages */
    int64_t  count;
    int32_t *row, *col;
    float   *value;  /* [count] values; NULL: no entry has a value */
    int64_t *number; /* [count] index of each entry in its file, or NULL; not part of the matrix */
};

/** Allocate `count` entries; the caller sets n_rows and n_cols. \return OK; ERR_NOMEM */
int32_t gr_csr_coo_init(const graft_context *context, struct gr_coo *coo, int64_t count, int weighted,
                        graft_error *error);
void    gr_csr_coo_fini(const graft_context *context, struct gr_coo *coo);

/** Build the rows, each in the order of its columns, in time linear in rows and entries. Entries at the same place
 *  become one entry, with the sum of the values in their order.
 * \param[in]  coo     Valid indices. Freed during the call, to save memory; empty afterwards, also after a failure.
 *  Memory during the call: a second copy of the longest row.
 * \param[in]  name    What a message calls the matrix.
 * \param[out] csr     Has int32 columns, and float values if coo has any.
 * \param[out] merged  The number of entries merged into another entry.
 * \return OK; ERR_FORMAT (a sum that is no finite float); ERR_NOMEM. */
int32_t gr_csr_build(const graft_context *context, struct gr_coo *coo, const char *name, struct gr_csr *csr,
                     int64_t *merged, graft_error *error);
