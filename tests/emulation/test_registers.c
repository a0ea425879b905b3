/* Checks what kernel simd reports on a processor that has NEON, or SVE with registers of GRAFT_TEST_REGISTERS bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/product.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <stdlib.h>
#include <string.h>

static const char *words; /* words of the expected description */

static void test_registers_explain(const graft_api *api, const graft_mxm_api *mxm)
{
    const struct product_shape shape = { 3, 4, 5, GRAFT_I32, GRAFT_F32, 1, 0, PRODUCT_EXACT };
    struct sample              sample = { 1 };
    struct product             product;
    graft_error                error = GRAFT_INIT(graft_error);
    graft_matrix              *matrix = NULL;
    char                       text[512] = "";

    product_init(&product, &sample, &shape);
    if (ok(mxm->matrix_create(api->context, &product.a.csr, 0, &matrix, &error) == GRAFT_OK, "a matrix is made")) {
        product.args.a = matrix;
        mxm->explain(api->context, &product.args, text, sizeof text, &error);
    }
    if (!ok(strncmp(text, "simd would run: ", 16) == 0 && strstr(text, words) != NULL,
            "explain says that simd would run, with %s", words))
        diag("%s%s", text, error.message);
    mxm->matrix_destroy(matrix);
    product_fini(&product);
}

/** This is tested after test_registers_explain(), because a kernel describes itself only after it was needed. */
static void test_module_info(const graft_api *api)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    int                found = 0;

    for (int32_t i = 0; !found && api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++)
        found = strcmp(entry.kind, "kernel") == 0 && strcmp(entry.name, "simd") == 0;
    if (!ok(found && entry.state == 1 && strstr(entry.detail, words) != NULL, "module_info says that simd has %s",
            words))
        diag("%s: state %d, %s", found ? entry.name : "no kernel simd", entry.state, found ? entry.detail : "");
}

int main(void)
{
    const graft_api     *api = NULL;
    const graft_mxm_api *mxm;
    graft_error          error = GRAFT_INIT(graft_error);
    const char          *bytes = getenv("GRAFT_TEST_REGISTERS");

    words = bytes == NULL ? "" : atoi(bytes) == 64 ? "SVE with 512" : atoi(bytes) == 32 ? "SVE with 256" : "NEON";
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    if (ok(mxm != NULL, "it has " GRAFT_MXM_ID)) {
        test_registers_explain(api, mxm);
        test_module_info(api);
    }
    api->close(api->context);
    return done();
}
