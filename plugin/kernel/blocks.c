/* Blocks of rows of a matrix as separate matrices, for products of a few rows at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/direction.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/kernel.h"

/* The first and the last column in entries begin .. end-1 of an array of indices. */
static void find_column_range(const graft_csr *csr, int64_t begin, int64_t end, int64_t *first, int64_t *last)
{
    *first = csr->n_cols;
    *last = -1;
    for (int64_t e = csr->row_ptr[begin]; e < csr->row_ptr[end]; e++) {
        const int64_t column = csr->index_type == GRAFT_I64 ? ((const int64_t *)csr->col_idx)[e]
                                                            : (int64_t)((const int32_t *)csr->col_idx)[e];

        if (column < *first) *first = column;
        if (column > *last) *last = column;
    }
}

/* Rows begin .. end-1: columns and values are shared with the whole matrix; row pointers begin at 0. */
static int32_t make_block(graft_matrix *whole, struct gr_row_block *block, int64_t begin, int64_t end,
                          graft_error *error)
{
    const graft_csr *csr = &whole->csr;
    const int64_t    skipped = csr->row_ptr[begin];
    graft_csr        part = *csr;
    int64_t         *row_ptr = NULL;
    int32_t          rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(whole->context, row_ptr, end - begin + 1, error));
    for (int64_t row = begin; row <= end; row++) row_ptr[row - begin] = csr->row_ptr[row] - skipped;
    part.n_rows = end - begin;
    part.row_ptr = row_ptr;
    part.col_idx = (const char *)csr->col_idx + skipped * (csr->index_type == GRAFT_I64 ? 8 : 4);
    if (csr->values != NULL) part.values = (const char *)csr->values + skipped * (csr->value_type == GRAFT_F64 ? 8 : 4);
    GR_TRY_DONE(gr_matrix_create(whole->context, &part, &block->a, error));
    gr_matrix_adopt_rows(block->a, row_ptr);
    row_ptr = NULL;
    block->begin = begin;
    block->end = end;
    find_column_range(csr, begin, end, &block->first, &block->last);
done:
    gr_free(whole->context, row_ptr);
    return rc;
}

void gr_matrix_blocks_set_values(graft_matrix *matrix)
{
    const graft_csr *csr = &matrix->csr;

    for (int64_t i = 0; i < matrix->n_blocks; i++) {
        const int64_t skipped = csr->row_ptr[matrix->blocks[i].begin] * gr_dtype_bytes(csr->value_type);

        matrix->blocks[i].a->csr.values = csr->values != NULL ? (const char *)csr->values + skipped : NULL;
    }
}

int64_t gr_matrix_blocks_bytes(const graft_matrix *matrix)
{
    int64_t bytes = gr_memory_bytes(matrix->blocks);

    for (int64_t i = 0; i < matrix->n_blocks; i++)
        bytes += gr_memory_bytes(matrix->blocks[i].a) + gr_memory_bytes(matrix->blocks[i].a->owned[GR_OWNED_ROWS]);
    return bytes;
}

void gr_matrix_drop_blocks(graft_matrix *matrix)
{
    for (int64_t i = 0; i < matrix->n_blocks; i++) gr_matrix_destroy(matrix->blocks[i].a);
    gr_free(matrix->context, matrix->blocks);
    matrix->blocks = NULL;
    matrix->n_blocks = 0;
}

int32_t gr_matrix_cut(graft_matrix *matrix, int64_t rows, graft_error *error)
{
    const int64_t n = matrix->csr.n_rows, count = (n + rows - 1) / rows;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(rows > 0);
    if (matrix->n_blocks == count && matrix->block_rows == rows) return GRAFT_OK;
    gr_matrix_drop_blocks(matrix);
    GR_TRY_DONE(GR_NEW(matrix->context, matrix->blocks, count, error));
    matrix->n_blocks = count;
    matrix->block_rows = rows;
    for (int64_t i = 0; i < count; i++)
        GR_TRY_DONE(make_block(matrix, &matrix->blocks[i], i * rows, (i + 1) * rows < n ? (i + 1) * rows : n, error));
done:
    if (rc < 0) gr_matrix_drop_blocks(matrix);
    return rc;
}
