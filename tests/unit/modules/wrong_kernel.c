/* A kernel that is wrong: every sum is 1 too large. For the test of option mxm.verify.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL;
    return GRAFT_OK;
}

static void fini(void *state)
{
    (void)state;
}

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)a, (void)why, (void)capacity;
    return args->c->dtype == GRAFT_F32 && args->mask == NULL && args->b->dtype == GRAFT_F32 ? GRAFT_OK
                                                                                            : GRAFT_ERR_UNSUPPORTED;
}

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

static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    (void)state, (void)prepared, (void)error;
    for (int64_t row = 0; row < a->n_rows; row++) {
        float *c = (float *)args->c->data + row * args->c->stride;

        for (int64_t j = 0; j < args->c->n_cols; j++) c[j] = 1;
        for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
            const float *b = (const float *)args->b->data + ((const int32_t *)a->col_idx)[e] * args->b->stride;

            for (int64_t j = 0; j < args->c->n_cols; j++) c[j] += b[j];
        }
    }
    return GRAFT_OK;
}

static const graft_kernel kernel = {
    .size = sizeof kernel,
    .args_size = sizeof(graft_mxm_args),
    .preference = -1,
    .description = "one too many, for tests",
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
    .name = "wrong",
    .kernel = &kernel,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    (void)abi_min, (void)abi_max, (void)error;
    *out = &table;
    return GRAFT_OK;
}
