/* A dense module that is as slow as a far accelerator: after a product the calling thread sleeps. It has one state and
 * is called by one thread at a time. For test_workers_modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#include <time.h>

enum { PRODUCTS_A_SECOND = 200000000 };

static void sleep_dense(double products)
{
    const double          seconds = products / PRODUCTS_A_SECOND;
    const struct timespec time = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    nanosleep(&time, NULL);
}

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

static void compute_row(const graft_gemm *g, int64_t i)
{
    for (int64_t j = 0; j < g->n; j++) {
        float *c = g->c + i * g->ldc + j, sum = 0;

        for (int64_t p = 0; p < g->k; p++)
            sum += (g->transpose_a ? g->a[p * g->lda + i] : g->a[i * g->lda + p]) *
                   (g->transpose_b ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j]);
        *c = g->alpha * sum + (g->beta == 0 ? 0 : g->beta * *c);
    }
}

static int32_t gemm(void *state, const graft_gemm *g, graft_error *error)
{
    (void)state, (void)error;
    for (int64_t i = 0; i < g->m; i++) compute_row(g, i);
    sleep_dense((double)g->m * (double)g->n * (double)g->k);
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
    .description = "an accelerator that sleeps, for tests",
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
    .name = "slow",
    .dense = &dense,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    (void)abi_min, (void)abi_max, (void)error;
    *out = &table;
    return GRAFT_OK;
}
