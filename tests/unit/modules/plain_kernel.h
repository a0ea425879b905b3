/* The common part of kernels for tests. A file that includes this header makes a module of its functions supports() and
 * run(), and defines both, MODULE_NAME and MODULE_DESCRIPTION before that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plain_module.h"

static int32_t prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    (void)state, (void)a, (void)bytes, (void)error;
    *prepared = NULL;
    return GRAFT_OK;
}

static void release(void *state, void *prepared)
{
    (void)state, (void)prepared;
}

static const graft_kernel_ops kernel = {
    .size = sizeof kernel,
    .args_size = sizeof(graft_mxm_args),
    .preference = -1,
    .description = MODULE_DESCRIPTION,
    .init = init,
    .fini = fini,
    .supports = supports,
    .prepare = prepare,
    .release = release,
    .run = run,
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "kernel",
    .name = MODULE_NAME,
    .kernel = &kernel,
};
