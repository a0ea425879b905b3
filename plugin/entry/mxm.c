/* "graft.mxm/1": reads the host's structs, checks them, and calls kernel/ and graph/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/memory.h"
#include "graph/csr.h"
#include "graph/order.h"
#include "kernel/kernel.h"

#include <string.h>

static int32_t mxm_matrix_create(graft_context *context, const graft_csr *csr, int32_t trust, graft_matrix **matrix,
                                 graft_error *error)
{
    struct gr_call call;
    graft_csr      ours, given;
    int64_t       *row_ptr = NULL;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " matrix_create", error);

    if (rc == GRAFT_OK && matrix == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "matrix is null");
    if (rc == GRAFT_OK) rc = gr_struct_read(&ours, sizeof ours, csr, "csr", &call.error);
    GR_TRY_DONE(rc);
    given = ours;
    GR_TRY_DONE(gr_csr_widen(context, &ours, "csr", &row_ptr, &call.error));
    GR_TRY_DONE(gr_csr_check(&ours, "csr", trust, trust ? 1 : gr_context_threads(context, 0), &call.error));
    GR_TRY_DONE(gr_matrix_create(context, &ours, matrix, &call.error));
    gr_matrix_adopt_rows(*matrix, row_ptr);
    row_ptr = NULL;
    gr_matrix_lend(*matrix, &given);
    gr_handle_init(*matrix, GR_HANDLE_MATRIX, context);
done:
    if (row_ptr != NULL) gr_free(context, row_ptr);
    return gr_call_end(&call, rc);
}

int32_t gr_entry_take_csr(graft_context *context, struct gr_csr *csr, int32_t rc, graft_matrix **matrix,
                          graft_error *error)
{
    if (rc == GRAFT_OK) rc = gr_matrix_create(context, &csr->view, matrix, error);
    if (rc < 0) {
        gr_csr_fini(context, csr);
        return rc;
    }
    gr_matrix_adopt(*matrix);
    gr_handle_init(*matrix, GR_HANDLE_MATRIX, context);
    return GRAFT_OK;
}

static int32_t mxm_matrix_transpose(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                    graft_error *error)
{
    struct gr_call call;
    struct gr_csr  csr = { 0 };
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " matrix_transpose", error);

    if (rc == GRAFT_OK) rc = gr_matrix_check(context, matrix, "matrix", 1, &call.error);
    if (rc == GRAFT_OK && transpose == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "transpose is null");
    if (rc == GRAFT_OK) {
        rc = gr_csr_transpose(context, &matrix->csr, &csr, &call.error);
        rc = gr_entry_take_csr(context, &csr, rc, transpose, &call.error);
    }
    return gr_call_end(&call, rc);
}

/* Check that a matrix can get new values, and that the values at `from` are finite. */
static int32_t mxm_check_values(const graft_matrix *matrix, const graft_matrix *original, const graft_csr *from,
                                graft_error *error)
{
    if (matrix == original) return gr_fail(error, GRAFT_ERR_ARG, "original is the matrix itself");
    if (matrix->csr.values == NULL || from->values == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "a matrix was created without values, or the new ones are null");
    if (from->value_type != matrix->csr.value_type)
        return gr_fail(error, GRAFT_ERR_ARG, "values are of dtype %d, expected %d", from->value_type,
                       matrix->csr.value_type);
    return gr_csr_check_entries(from, "values", 0, 0, gr_context_threads(matrix->context, 0), error);
}

static int32_t update_values(graft_matrix *matrix, const graft_csr *from, const graft_matrix *original,
                             graft_error *error)
{
    graft_csr *csr = &matrix->csr;
    void      *owned = matrix->owned[GR_OWNED_VALUES];

    if (original != NULL && owned == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "the matrix was not made by matrix_transpose()");
    if (original != NULL) GR_TRY(gr_csr_transpose_values(matrix->context, from, csr, 0, owned, error));
    else if (owned != NULL)
        memmove(owned, from->values, (uint64_t)gr_csr_entries(csr) * (csr->value_type == GRAFT_F64 ? 8 : 4));
    else {
        csr->values = from->values;
        gr_matrix_lend_values(matrix);
    }
    gr_matrix_unprepare(matrix);
    return GRAFT_OK;
}

static int32_t mxm_matrix_update_values(graft_context *context, graft_matrix *matrix, const void *values,
                                        const graft_matrix *original, graft_error *error)
{
    struct gr_call call;
    graft_csr      from;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " matrix_update_values", error);

    if (rc == GRAFT_OK) rc = gr_matrix_check(context, matrix, "matrix", 0, &call.error);
    if (rc == GRAFT_OK && (values == NULL) == (original == NULL))
        rc = gr_fail(&call.error, GRAFT_ERR_ARG, "values and original are both %s, expected one of them",
                     values == NULL ? "null" : "given");
    if (rc == GRAFT_OK && original != NULL) rc = gr_matrix_check(context, original, "original", 1, &call.error);
    if (rc == GRAFT_OK) {
        from = original != NULL ? original->csr : matrix->csr;
        if (original == NULL) from.values = values;
        rc = mxm_check_values(matrix, original, &from, &call.error);
    }
    if (rc == GRAFT_OK) rc = update_values(matrix, &from, original, &call.error);
    return gr_call_end(&call, rc);
}

/* Check the arguments that matrix_order() and matrix_permute() have in common. */
static int32_t check_order(const graft_context *context, const graft_matrix *matrix, const void *first,
                           const void *second, graft_error *error)
{
    const int32_t rc = gr_matrix_check(context, matrix, "matrix", 1, error);

    if (rc < 0) return rc;
    if (first == NULL || second == NULL) return gr_fail(error, GRAFT_ERR_ARG, "an argument is null");
    if (matrix->csr.n_rows == matrix->csr.n_cols) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "the matrix is %lld x %lld, but only a square one has an order",
                   (long long)matrix->csr.n_rows, (long long)matrix->csr.n_cols);
}

static int32_t mxm_matrix_order(graft_context *context, const graft_matrix *matrix, const char *method, int64_t *order,
                                graft_error *error)
{
    struct gr_call call;
    enum gr_order  chosen;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " matrix_order", error);

    if (rc == GRAFT_OK) rc = check_order(context, matrix, method, order, &call.error);
    if (rc == GRAFT_OK) rc = gr_csr_order_find(method, &chosen, &call.error);
    if (rc == GRAFT_OK) rc = gr_csr_order_compute(context, &matrix->csr, chosen, order, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t mxm_matrix_permute(graft_context *context, const graft_matrix *matrix, const int64_t *order,
                                  graft_matrix **permuted, graft_error *error)
{
    struct gr_call call;
    struct gr_csr  csr = { 0 };
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " matrix_permute", error);

    if (rc == GRAFT_OK) rc = check_order(context, matrix, order, permuted, &call.error);
    if (rc == GRAFT_OK) {
        rc = gr_csr_order_apply(context, &matrix->csr, order, &csr, &call.error);
        rc = gr_entry_take_csr(context, &csr, rc, permuted, &call.error);
    }
    return gr_call_end(&call, rc);
}

static int64_t mxm_matrix_bytes(const graft_matrix *matrix)
{
    struct gr_call call;
    int64_t        bytes = 0;
    const int32_t  rc = gr_call_begin_on(&call, matrix, GR_HANDLE_MATRIX, GRAFT_MXM_ID " matrix_bytes", NULL);

    if (rc == GRAFT_OK) bytes = gr_matrix_bytes(matrix);
    gr_call_end(&call, rc);
    return bytes;
}

GR_ENTRY_DESTROY(mxm_matrix_destroy, graft_matrix, MATRIX, GRAFT_MXM_ID " matrix_destroy", gr_matrix_destroy)

/* Copies of the host's structs. */
struct args_copy {
    graft_mxm_args      args;
    graft_dense         b, c;
    struct gr_mask_copy mask;
};

int32_t gr_entry_read_mask(const graft_mask **mask, const graft_epilogue **epilogue, struct gr_mask_copy *copy,
                           graft_error *error)
{
    if (*mask != NULL) {
        GR_TRY(gr_struct_read(&copy->mask, sizeof copy->mask, *mask, "args.mask", error));
        *mask = &copy->mask;
    }
    if (*epilogue == NULL) return GRAFT_OK;
    GR_TRY(gr_struct_read(&copy->epilogue, sizeof copy->epilogue, *epilogue, "args.epilogue", error));
    *epilogue = &copy->epilogue;
    if (copy->epilogue.residual == NULL) return GRAFT_OK;
    GR_TRY(gr_struct_read(&copy->residual, sizeof copy->residual, copy->epilogue.residual, "residual", error));
    copy->epilogue.residual = &copy->residual;
    return GRAFT_OK;
}

static int32_t read_mxm_args(const graft_context *context, const graft_mxm_args *theirs, struct args_copy *copy,
                             graft_error *error)
{
    graft_mxm_args *args = &copy->args;

    GR_TRY(gr_struct_read(args, sizeof *args, theirs, "args", error));
    GR_TRY(gr_struct_read(&copy->b, sizeof copy->b, args->b, "args.b", error));
    GR_TRY(gr_struct_read(&copy->c, sizeof copy->c, args->c, "args.c", error));
    GR_TRY(gr_entry_read_mask(&args->mask, &args->epilogue, &copy->mask, error));
    GR_TRY(gr_matrix_check(context, args->a, "args.a", 1, error));
    args->b = &copy->b;
    args->c = &copy->c;
    return gr_mxm_check(args, error);
}

static int32_t mxm_run(graft_context *context, const graft_mxm_args *args, graft_error *error)
{
    struct gr_call   call;
    struct args_copy copy;
    int32_t          rc = gr_call_begin(&call, context, GRAFT_MXM_ID " run", error);

    if (rc == GRAFT_OK) rc = read_mxm_args(context, args, &copy, &call.error);
    if (rc == GRAFT_OK) rc = gr_mxm_run(context, &copy.args, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                           graft_error *error)
{
    struct gr_call   call;
    struct args_copy copy;
    int32_t          rc = gr_call_begin(&call, context, GRAFT_MXM_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK && args != NULL) rc = read_mxm_args(context, args, &copy, &call.error);
    if (rc == GRAFT_OK) {
        rc = gr_mxm_explain(context, args != NULL ? &copy.args : NULL, text, capacity, &call.error);
    }
    return gr_call_end(&call, rc);
}

static int32_t mxm_convert(graft_context *context, const graft_dense *from, const graft_dense *to, graft_error *error)
{
    struct gr_team team = { 0 };
    struct gr_call call;
    graft_dense    source, target;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MXM_ID " convert", error);

    if (rc == GRAFT_OK) rc = gr_struct_read(&source, sizeof source, from, "from", &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_read(&target, sizeof target, to, "to", &call.error);
    if (rc == GRAFT_OK) rc = gr_kernel_dense_check(&source, "from", &call.error);
    if (rc == GRAFT_OK) rc = gr_kernel_dense_check(&target, "to", &call.error);
    if (rc == GRAFT_OK) team.threads = gr_context_threads(context, 0);
    if (rc == GRAFT_OK) rc = gr_kernel_dense_convert(&source, &target, team, &call.error);
    return gr_call_end(&call, rc);
}

const graft_mxm_api gr_interface_mxm = {
    .size = sizeof(graft_mxm_api),
    .matrix_create = mxm_matrix_create,
    .matrix_transpose = mxm_matrix_transpose,
    .matrix_order = mxm_matrix_order,
    .matrix_permute = mxm_matrix_permute,
    .matrix_bytes = mxm_matrix_bytes,
    .matrix_destroy = mxm_matrix_destroy,
    .run = mxm_run,
    .explain = mxm_explain,
    .convert = mxm_convert,
    .matrix_update_values = mxm_matrix_update_values,
};
