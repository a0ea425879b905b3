/* A dense module of plain loops, for one thread. A file that includes this header makes a module. It defines
 * MODULE_NAME, MODULE_DESCRIPTION, MODULE_FACTOR, which multiplies all products, and PRODUCTS_A_SECOND before that: the
 * calling thread sleeps as long as a device with that speed would take.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plain_module.h"
#include "sleep.h"

static void compute_row(const graft_gemm *g, int64_t i)
{
    for (int64_t j = 0; j < g->n; j++) {
        float *c = g->c + i * g->ldc + j, sum = 0;

        for (int64_t p = 0; p < g->k; p++)
            sum += (g->transpose_a ? g->a[p * g->lda + i] : g->a[i * g->lda + p]) *
                   (g->transpose_b ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j]);
        *c = MODULE_FACTOR * g->alpha * sum + (g->beta == 0 ? 0 : g->beta * *c);
    }
}

static int32_t gemm(void *state, const graft_gemm *g, graft_error *error)
{
    (void)state, (void)error;
    for (int64_t i = 0; i < g->m; i++) compute_row(g, i);
    sleep_seconds((double)g->m * (double)g->n * (double)g->k / PRODUCTS_A_SECOND);
    if (g->rows_done != NULL) g->rows_done(g->rows_arg, 0, g->m);
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
    .description = MODULE_DESCRIPTION,
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
    .name = MODULE_NAME,
    .dense = &dense,
};
