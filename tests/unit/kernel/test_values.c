/* Checks matrix_update_values(): after the values of a matrix, or of the original of a transpose, have changed,
 * products of every kernel must equal those of the oracle, which reads the arrays of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/kernels.h"
#include "harness/tap.h"
#include "oracle/product.h"

#include "graft_load.h"

#include <stdlib.h>
#include <string.h>

static const graft_api     *api;
static const graft_mxm_api *mxm;

static graft_matrix *values_make_matrix(const graft_csr *csr)
{
    graft_error   error = GRAFT_INIT(graft_error);
    graft_matrix *matrix = NULL;

    if (mxm->matrix_create(api->context, csr, 0, &matrix, &error) == GRAFT_OK) return matrix;
    printf("Bail out! a good matrix is refused: %s\n", error.message);
    exit(1);
}

/* Change the values to others that cause no rounding errors. */
static void change_values(const struct sample_csr *a)
{
    for (int64_t e = 0; e < a->row_ptr[a->csr.n_rows]; e++) {
        if (a->csr.value_type == GRAFT_F32) ((float *)a->values)[e] *= -2;
        else ((double *)a->values)[e] *= -2;
    }
}

/* Try products of all semirings with some masks. */
static void try_semirings(struct product *product, const char *kernel, struct tally *tally)
{
    for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
        product->args.semiring = s;
        for (int mask = 0; mask < PRODUCT_MASKS; mask += 6) {
            product_set_mask(product, mask);
            product_tally(product, mxm, api->context, kernel, 1, tally);
        }
    }
}

static void values_report(const char *kernel, graft_dtype dtype, const char *what, const struct tally *tally)
{
    ok_or(tally->faults == 0 && tally->by_kernel > 0, tally->first,
          "%s, %s, %s: %d products, %d by the kernel itself, %d differ", kernel,
          dtype == GRAFT_F32 ? "float" : "double", what, tally->runs, tally->by_kernel, tally->faults);
}

static void test_borrowed(const char *kernel, graft_dtype dtype)
{
    const struct product_shape shape = { 31, 29, 17, GRAFT_I32, dtype, 1, 0, PRODUCT_EXACT };
    struct sample              sample = { 12 };
    struct product             product;
    struct tally               tally = { 0 };
    int                        all = 1;

    product_init(&product, &sample, &shape);
    product.args.a = values_make_matrix(&product.a.csr);
    for (int changed = 0; changed < 3; changed++) {
        try_semirings(&product, kernel, &tally);
        change_values(&product.a);
        all &= mxm->matrix_update_values(api->context, product.args.a, product.a.values, NULL, NULL) == GRAFT_OK;
    }
    values_report(kernel, dtype, "changed in place", &tally);
    ok(all, "kernel %s: all updates of values succeed", kernel);
    mxm->matrix_destroy(product.args.a);
    product_fini(&product);
}

static void test_transposed(const char *kernel, graft_dtype dtype)
{
    const struct product_shape    shape = { 29, 31, 17, GRAFT_I32, dtype, 1, 0, PRODUCT_EXACT };
    const struct sample_csr_shape turned = { 31, 29, GRAFT_I32, dtype, 0, 1 };
    struct sample                 sample = { 12 };
    struct product                product;
    struct sample_csr             original;
    struct tally                  tally = { 0 };
    graft_matrix                 *matrix;
    int                           all = 1;

    product_init(&product, &sample, &shape);
    sample_csr_init_shape(&original, &sample, &turned);
    matrix = values_make_matrix(&original.csr);
    if (mxm->matrix_transpose(api->context, matrix, &product.args.a, NULL) < 0) exit(1);
    for (int changed = 0; changed < 3; changed++) {
        sample_csr_fini(&product.a);
        sample_csr_transpose(&product.a, &original);
        if (changed == 2) /* own values, in the order of the transpose */
            all &= mxm->matrix_update_values(api->context, product.args.a, product.a.values, NULL, NULL) == GRAFT_OK;
        try_semirings(&product, kernel, &tally);
        change_values(&original);
        all &= mxm->matrix_update_values(api->context, product.args.a, NULL, matrix, NULL) == GRAFT_OK;
    }
    values_report(kernel, dtype, "of the original of a transpose", &tally);
    ok(all, "kernel %s: all updates of values of a transpose succeed", kernel);
    mxm->matrix_destroy(product.args.a);
    mxm->matrix_destroy(matrix);
    product_fini(&product);
    sample_csr_fini(&original);
}

/* On a machine without GraphBLAS its module can be loaded, but is no kernel that can be tested. */
static void test_no_library(void)
{
    graft_module_entry info = GRAFT_INIT(graft_module_entry);
    const char        *lack;

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) < 0) return;
    ok(api->set(api->context, "graphblas.path", "/absent", NULL) == GRAFT_OK,
       "option graphblas.path accepts the path of a missing library");
    for (int32_t i = 0; api->module_info(api->context, i, &info, NULL) == GRAFT_OK; i++) {
        if (strcmp(info.name, "graphblas") != 0) continue;
        lack = kernel_lack(api, i, &info);
        ok(lack != NULL && strstr(lack, "/absent") != NULL, "kernel graphblas reports that the library is missing: %s",
           lack);
    }
    api->close(api->context);
}

int main(void)
{
    graft_module_entry info = GRAFT_INIT(graft_module_entry);
    graft_error        error = GRAFT_INIT(graft_error);
    const char        *lack;

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) return 2;
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    for (int32_t i = 0; api->module_info(api->context, i, &info, NULL) == GRAFT_OK; i++) {
        if (strcmp(info.kind, "kernel") != 0) continue;
        lack = kernel_lack(api, i, &info);
        if (lack != NULL) {
            skip(1, "kernel %s cannot be used: %s", info.name, lack);
            continue;
        }
        for (graft_dtype dtype = GRAFT_F32; dtype <= GRAFT_F64; dtype++) {
            test_borrowed(info.name, dtype);
            test_transposed(info.name, dtype);
        }
    }
    api->close(api->context);
    test_no_library();
    return done();
}
