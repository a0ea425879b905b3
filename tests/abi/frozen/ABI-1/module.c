/* A kernel module as it was when this folder was frozen: sums of rows of float over neighbours without values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#include <stdio.h>
#include <string.h>

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
    (void)state;
    if (a->values == NULL && a->index_type == GRAFT_I32 && args->semiring == GRAFT_PLUS_SECOND && args->flags == 0 &&
        args->mask == NULL && args->row_scale == NULL && args->epilogue == NULL && args->b->dtype == GRAFT_F32)
        return GRAFT_OK;
    snprintf(why, capacity, "it does nothing but sums of float");
    return GRAFT_ERR_UNSUPPORTED;
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
    const int32_t *column = a->col_idx;

    (void)state, (void)prepared, (void)error;
    for (int64_t i = 0; i < a->n_rows; i++) {
        float *c = (float *)args->c->data + i * args->c->stride;

        memset(c, 0, (size_t)args->c->n_cols * sizeof *c);
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
            const float *b = (const float *)args->b->data + column[e] * args->b->stride;

            for (int64_t j = 0; j < args->c->n_cols; j++) c[j] += b[j];
        }
    }
    return GRAFT_OK;
}

static const graft_kernel_ops kernel = {
    .size = sizeof kernel,
    .preference = 1000,
    .args_size = sizeof(graft_mxm_args),
    .description = "sums of neighbours, from a frozen module",
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
    .name = "frozen",
    .kernel = &kernel,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    if (GRAFT_ABI_VERSION < abi_min || GRAFT_ABI_VERSION > abi_max) {
        error->code = GRAFT_ERR_VERSION;
        snprintf(error->message, sizeof error->message, "the library drives versions %u to %u, this module knows %u",
                 abi_min, abi_max, GRAFT_ABI_VERSION);
        return GRAFT_ERR_VERSION;
    }
    *out = &table;
    return GRAFT_OK;
}
