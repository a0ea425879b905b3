/* Sparse matrices by rows: checking the host's, and making new ones that own their arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_GRAPH_CSR_H
#define GR_GRAPH_CSR_H

#include "base/context.h"
#include "graft_matrix.h"

/** A graft_csr whose arrays are Graft's own. Zeroed, it is empty and can be freed. */
struct gr_csr {
    graft_csr view; /* points to the arrays below */
    int64_t  *row_ptr;
    void     *col_idx;
    void     *values;
};

/** Room for n_rows, n_cols and entries, with types and the presence of values as in `like`. Row pointers are zero. */
int32_t gr_csr_init(const graft_context *context, struct gr_csr *csr, const graft_csr *like, int64_t n_rows,
                    int64_t n_cols, int64_t entries, graft_error *error);
void    gr_csr_fini(const graft_context *context, struct gr_csr *csr);

/** What gr_csr_init() takes of the host for so many rows and entries, and what this matrix has taken. */
int64_t gr_csr_copy_bytes(const graft_csr *like, int64_t n_rows, int64_t entries);
int64_t gr_csr_bytes(const struct gr_csr *csr);

/** Whether all that graft_csr says of itself is true; `name` is what the message calls it. O(rows + entries). With
 *  `trust`, only types, sizes and null pointers are looked at. */
int32_t gr_csr_check(const graft_csr *csr, const char *name, int32_t trust, int threads, graft_error *error);

/** Parts of it, for rows that are a slice of a matrix: `first_row` and `first_entry` are what messages call the
 *  first. Row pointers that do not fall, whatever they begin with; then columns in range and values that are finite. */
int32_t gr_csr_check_pointers(const graft_csr *csr, const char *name, int64_t first_row, graft_error *error);
int32_t gr_csr_check_entries(const graft_csr *csr, const char *name, int64_t first_row, int64_t first_entry,
                             int threads, graft_error *error);

/** Transpose; entries of a row come in the order of their columns. */
int32_t gr_csr_transpose(const graft_context *context, const graft_csr *csr, struct gr_csr *transpose,
                         graft_error *error);

/** Whether the transpose is the same, entry by entry: also in the order of columns. 8 n bytes while it works. */
int32_t gr_csr_is_symmetric(const graft_context *context, const graft_csr *csr, int *symmetric, graft_error *error);

/** The entries of two matrices of one shape with sorted rows, each place once; a value is that of `a` if it was there.
 *  `entries` is what gr_csr_union_entries() says. */
int64_t gr_csr_union_entries(const graft_csr *a, const graft_csr *b);
int32_t gr_csr_union(const graft_context *context, const graft_csr *a, const graft_csr *b, int64_t entries,
                     struct gr_csr *both, graft_error *error);

/** Rows of a square matrix without an entry (v, v). */
int64_t gr_csr_missing_loops(const graft_csr *csr);
/** An entry (v, v) of value 1 in each of them; sorted rows stay sorted. */
int32_t gr_csr_add_self_loops(const graft_context *context, const graft_csr *csr, struct gr_csr *looped,
                              graft_error *error);

/** Copy entry `from` of one matrix to place `to` of another, under column `column`. */
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

#endif
