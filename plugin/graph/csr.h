/* Sparse matrices in CSR form: checks of matrices of the host, and matrices that own their arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "graft_matrix.h"

/** A graft_csr that owns its arrays. Zeroed, it is empty, and fini() accepts it. */
struct gr_csr {
    graft_csr view; /* points to the arrays below */
    int64_t  *row_ptr;
    void     *col_idx;
    void     *values;
};

/** Allocate arrays for n_rows, n_cols and `entries`, with the types of `like`, and values if it has them. Row pointers
 *  are zero. \return OK; ERR_NOMEM */
int32_t gr_csr_init(const graft_context *context, struct gr_csr *csr, const graft_csr *like, int64_t n_rows,
                    int64_t n_cols, int64_t entries, graft_error *error);
void    gr_csr_fini(const graft_context *context, struct gr_csr *csr);

/** copy_bytes(): the bytes that gr_csr_init() allocates for n_rows and `entries`. bytes(): those of an existing
 * matrix. */
int64_t gr_csr_copy_bytes(const graft_csr *like, int64_t n_rows, int64_t entries);
int64_t gr_csr_bytes(const struct gr_csr *csr);

/** Convert 32-bit row pointers of a matrix of the host to 64 bits: *made, which the caller frees, or NULL if they have
 *  64 bits already. \return OK; ERR_ARG (both, or neither); ERR_NOMEM */
int32_t gr_csr_widen(const graft_context *context, graft_csr *csr, const char *name, int64_t **made,
                     graft_error *error);

/** Check a matrix in O(rows + entries); `name` is how the message calls it. With `trust`, check only types, sizes and
 *  null pointers. \return OK; ERR_ARG; ERR_FORMAT (row_ptr decreases, a column out of range, a value not finite) */
int32_t gr_csr_check(const graft_csr *csr, const char *name, int32_t trust, int threads, graft_error *error);

/** Do parts of gr_csr_check() for a slice of rows; messages count rows from first_row and entries from first_entry. Row
 *  pointers must not decrease, but may begin with any number; columns must be in range and values finite. */
int32_t gr_csr_check_pointers(const graft_csr *csr, const char *name, int64_t first_row, graft_error *error);
int32_t gr_csr_check_entries(const graft_csr *csr, const char *name, int64_t first_row, int64_t first_entry,
                             int threads, graft_error *error);

/** Whether a matrix that Graft made is valid: row pointers begin at 0 and do not decrease, and columns are in range.
 *  Values are not checked. Returns 1 or 0. O(rows + entries), for tests and assertions. */
int gr_csr_is_valid(const graft_csr *csr);

/** Compute the transpose, with the entries of each row sorted by column. \return OK; ERR_ARG (rows exceed 32-bit
 *  columns); ERR_NOMEM */
int32_t gr_csr_transpose(const graft_context *context, const graft_csr *csr, struct gr_csr *transpose,
                         graft_error *error);

/** Copy the values of a matrix to `values`, the values of its transpose. Needs 8 bytes of temporary memory for each row
 *  of the transpose. With `trust`, only sizes are compared.
 *  \return OK; ERR_ARG (not the transpose of the matrix; nothing is written); ERR_NOMEM. */
int32_t gr_csr_transpose_values(const graft_context *context, const graft_csr *csr, const graft_csr *transpose,
                                int32_t trust, void *values, graft_error *error);

/** Set *symmetric to whether the transpose has the same arrays, including the order of the columns. Needs 8 bytes of
 *  temporary memory for each row. \return OK; ERR_NOMEM */
int32_t gr_csr_is_symmetric(const graft_context *context, const graft_csr *csr, int *symmetric, graft_error *error);

/** Compute the union of the entries of two matrices of equal shape with sorted rows, each place once; the value of `a`
 *  wins. `entries` must be the result of gr_csr_union_entries(). */
int64_t gr_csr_union_entries(const graft_csr *a, const graft_csr *b);
int32_t gr_csr_union(const graft_context *context, const graft_csr *a, const graft_csr *b, int64_t entries,
                     struct gr_csr *both, graft_error *error);

/** The number of rows of a square matrix without an entry (v, v). */
int64_t gr_csr_missing_loops(const graft_csr *csr);
/** The value of an added loop in a matrix whose values are indices of entries (GRAFT_I64). */
#define GR_NO_ENTRY (-1)
/** The value of added loops in other matrices: 1; or, with is_mean, the mean of the float values in their row and in
 *  the same row of `rest`, 0 if there are none. */
struct gr_loop_value {
    int              is_mean;
    const graft_csr *rest; /* NULL: none */
};

/** Add a self-loop, the entry (v, v), to each row without one. Sorted rows stay sorted. */
int32_t gr_csr_add_self_loops(const graft_context *context, const graft_csr *csr, const struct gr_loop_value *value,
                              struct gr_csr *looped, graft_error *error);

/** Copy entry `from` of one matrix to place `to` of another, with column `column`. */
void gr_csr_put(struct gr_csr *out, int64_t to, int64_t column, const graft_csr *in, int64_t from);

static inline int64_t gr_csr_entries(const graft_csr *csr)
{
    return csr->row_ptr[csr->n_rows];
}

static inline int64_t gr_csr_column(const graft_csr *csr, int64_t entry)
{
    return csr->index_type == GRAFT_I32 ? ((const int32_t *)csr->col_idx)[entry]
                                        : ((const int64_t *)csr->col_idx)[entry];
}
