/* The matrix object: the host's CSR, data prepared by each kernel, and blocks of rows as separate matrices, for
 * products of a few rows at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/kernel.h"

int32_t gr_matrix_create(graft_context *context, const graft_csr *csr, graft_matrix **matrix, graft_error *error)
{
    graft_matrix *made = NULL;

    if (GR_NEW(context, made, 1, error) < 0) return GRAFT_ERR_NOMEM;
    made->context = context;
    made->csr = *csr;
    *matrix = made;
    return GRAFT_OK;
}

static const char *const array_names[] = { "row_ptr", "col_idx", "values" };

enum { VALUES = 1 };

static const char *const value_calls[] = { "matrix_update_values()" };

int32_t gr_matrix_check(const graft_context *context, const graft_matrix *matrix, const char *name, int values,
                        graft_error *error)
{
    GR_TRY(gr_handle_check(context, matrix, GR_HANDLE_MATRIX, name, error));
    return gr_loans_check(&matrix->loans, context, values ? 0 : VALUES, name, value_calls, error);
}

void gr_matrix_lend(graft_matrix *matrix, const graft_csr *csr)
{
    gr_loan_take_csr(&matrix->loans, matrix->context, csr, array_names, 0, VALUES);
}

void gr_matrix_lend_values(graft_matrix *matrix)
{
    const graft_csr *csr = &matrix->csr;
    const int64_t    bytes = csr->value_type == GRAFT_F64 ? 8 : 4;

    gr_loan_take(&matrix->loans, matrix->context,
                 &(struct gr_loan){ array_names[2], VALUES, csr->values, csr->row_ptr[csr->n_rows], bytes, bytes, 0 });
}

void gr_matrix_adopt_rows(graft_matrix *matrix, int64_t *row_ptr)
{
    matrix->owned[GR_OWNED_ROWS] = row_ptr;
    matrix->owned_bytes = gr_memory_bytes(row_ptr);
}

void gr_matrix_adopt(graft_matrix *matrix)
{
    const graft_csr *csr = &matrix->csr;

    GR_ASSERT(matrix->owned[GR_OWNED_ROWS] == NULL && matrix->owned[GR_OWNED_COLUMNS] == NULL);
    matrix->owned[GR_OWNED_ROWS] = (void *)(uintptr_t)csr->row_ptr;
    matrix->owned[GR_OWNED_COLUMNS] = (void *)(uintptr_t)csr->col_idx;
    matrix->owned[GR_OWNED_VALUES] = (void *)(uintptr_t)csr->values;
    matrix->owned_bytes = 0;
    for (int i = 0; i < GR_OWNED; i++) matrix->owned_bytes += gr_memory_bytes(matrix->owned[i]);
}

/* The values of the matrix have moved. */
static void set_values_of_blocks(graft_matrix *matrix)
{
    const graft_csr *csr = &matrix->csr;

    for (int64_t i = 0; i < matrix->n_blocks; i++) {
        const int64_t skipped = csr->row_ptr[matrix->blocks[i].begin] * gr_dtype_bytes(csr->value_type);

        matrix->blocks[i].a->csr.values = csr->values != NULL ? (const char *)csr->values + skipped : NULL;
    }
}

void gr_matrix_set_values(graft_matrix *matrix, const void *values)
{
    matrix->csr.values = values;
    gr_matrix_unprepare(matrix);
    set_values_of_blocks(matrix);
}

void gr_matrix_swap_values(graft_matrix *matrix, void **values)
{
    void *const before = matrix->owned[GR_OWNED_VALUES];

    GR_ASSERT(gr_memory_bytes(before) == gr_memory_bytes(*values));
    matrix->owned[GR_OWNED_VALUES] = *values;
    gr_matrix_set_values(matrix, *values);
    *values = before;
}

int64_t gr_matrix_own_bytes(const graft_matrix *matrix)
{
    return matrix != NULL ? matrix->owned_bytes + matrix->attached.bytes : 0;
}

int64_t gr_matrix_bytes(const graft_matrix *matrix)
{
    int64_t bytes = gr_matrix_own_bytes(matrix);

    for (const struct gr_prepared *p = matrix != NULL ? matrix->prepared : NULL; p != NULL; p = p->next)
        bytes += p->bytes;
    for (int64_t i = 0; matrix != NULL && i < matrix->n_blocks; i++) bytes += gr_matrix_bytes(matrix->blocks[i].a);
    return bytes;
}

void gr_matrix_unprepare(graft_matrix *matrix)
{
    for (int64_t i = 0; i < matrix->n_blocks; i++) gr_matrix_unprepare(matrix->blocks[i].a);
    while (matrix->prepared != NULL) {
        struct gr_prepared     *first = matrix->prepared;
        const struct gr_module *module = &matrix->context->modules.at[first->module];

        module->table->kernel->release(module->state, first->data);
        matrix->prepared = first->next;
        gr_free(matrix->context, first);
    }
}

static void drop_blocks(graft_matrix *matrix)
{
    for (int64_t i = 0; i < matrix->n_blocks; i++) gr_matrix_destroy(matrix->blocks[i].a);
    gr_free(matrix->context, matrix->blocks);
    matrix->blocks = NULL;
    matrix->n_blocks = 0;
}

void gr_matrix_destroy(graft_matrix *matrix)
{
    if (matrix == NULL) return;
    gr_matrix_unprepare(matrix);
    drop_blocks(matrix);
    if (matrix->attached.data != NULL) matrix->attached.destroy(matrix->context, matrix->attached.data);
    for (int i = 0; i < GR_OWNED; i++) gr_free(matrix->context, matrix->owned[i]);
    gr_free(matrix->context, matrix);
}

int32_t gr_matrix_prepare(graft_matrix *matrix, int32_t module, void **data, graft_error *error)
{
    const struct gr_module *used = &matrix->context->modules.at[module];
    struct gr_prepared     *made = NULL;
    int32_t                 rc = GRAFT_OK;

    GR_ASSERT(module >= 0 && module < matrix->context->modules.count);
    for (struct gr_prepared *p = matrix->prepared; p != NULL; p = p->next) {
        if (p->module != module) continue;
        *data = p->data;
        return GRAFT_OK;
    }
    GR_TRY_DONE(GR_NEW(matrix->context, made, 1, error));
    made->module = module;
    rc = used->table->kernel->prepare(used->state, &matrix->csr, &made->data, &made->bytes, error);
    GR_TRY_DONE(gr_module_status(used, "prepare", rc, error));
    made->next = matrix->prepared;
    matrix->prepared = made;
    *data = made->data;
    made = NULL;
done:
    gr_free(matrix->context, made);
    return rc;
}

/* Find the first and the last column of the entries in rows begin .. end-1. */
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

/* Make a block of rows begin .. end-1. It shares columns and values with the whole matrix; its row pointers begin at
 * 0. */
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

int64_t gr_matrix_blocks_bytes(const graft_matrix *matrix)
{
    int64_t bytes = gr_memory_bytes(matrix->blocks);

    for (int64_t i = 0; i < matrix->n_blocks; i++)
        bytes += gr_memory_bytes(matrix->blocks[i].a) + gr_memory_bytes(matrix->blocks[i].a->owned[GR_OWNED_ROWS]);
    return bytes;
}

int32_t gr_matrix_cut(graft_matrix *matrix, int64_t rows, graft_error *error)
{
    const int64_t n = matrix->csr.n_rows, count = (n + rows - 1) / rows;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(rows > 0);
    if (matrix->n_blocks == count && matrix->block_rows == rows) return GRAFT_OK;
    drop_blocks(matrix);
    GR_TRY_DONE(GR_NEW(matrix->context, matrix->blocks, count, error));
    matrix->n_blocks = count;
    matrix->block_rows = rows;
    for (int64_t i = 0; i < count; i++)
        GR_TRY_DONE(make_block(matrix, &matrix->blocks[i], i * rows, (i + 1) * rows < n ? (i + 1) * rows : n, error));
done:
    if (rc < 0) drop_blocks(matrix);
    return rc;
}
