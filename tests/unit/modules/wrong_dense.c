/* A dense module that is wrong: products are too large by a thousandth of a percent. For the test of option check.
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

static int32_t gemm(void *state, const graft_gemm *g, graft_error *error)
{
    (void)state, (void)error;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            float *c = g->c + i * g->ldc + j, sum = 0;

            for (int64_t p = 0; p < g->k; p++)
                sum += (g->transpose_a ? g->a[p * g->lda + i] : g->a[i * g->lda + p]) *
                       (g->transpose_b ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j]);
            *c = 1.00001f * g->alpha * sum + (g->beta == 0 ? 0 : g->beta * *c);
        }
        if (g->rows_done != NULL) g->rows_done(g->rows_arg, i, i + 1);
    }
    return GRAFT_OK;
}

static int32_t supports(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state, (void)type, (void)why, (void)capacity;
    return GRAFT_ERR_UNSUPPORTED;
}

static const graft_dense_ops dense = {
    .size = sizeof dense,
    .preference = -1,
    .description = "a little too large, for tests",
    .init = init,
    .fini = fini,
    .gemm = gemm,
    .supports = supports,
    .gemm_size = sizeof(graft_gemm),
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "wrong",
    .dense = &dense,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    (void)abi_min, (void)abi_max, (void)error;
    *out = &table;
    return GRAFT_OK;
}
