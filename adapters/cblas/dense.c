/* Dense module "cblas": products with any CBLAS, each call on one thread and one block of C. A serial OpenBLAS may not
 * be called from several threads at once (Debian's gives wrong products), so it runs on one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/gemm_blocks.h"
#include "common/module.h"

#include <cblas.h>

/* Returns 0 for an OpenBLAS without threads; null for another BLAS. */
extern int openblas_get_parallel(void) __attribute__((weak));

static int one_at_a_time(void)
{
    return openblas_get_parallel != NULL && openblas_get_parallel() == 0;
}

static int32_t serial(void *module, int thread, const graft_gemm *g)
{
    (void)module, (void)thread;
    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
                (int)g->m, (int)g->n, (int)g->k, g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c,
                (int)g->ldc);
    return GRAFT_OK;
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    const int32_t rc = gemm_blocks_init(host, "cblas", sizeof(struct gemm_blocks), state, error);

    if (rc == GRAFT_OK && one_at_a_time()) {
        host->log(host->self, GRAFT_LOG_WARNING,
                  "dense module cblas runs on one thread, because it found a serial OpenBLAS");
    }
    return rc;
}

static void fini(void *state)
{
    gemm_blocks_fini(state, sizeof(struct gemm_blocks));
}

static int32_t gemm(void *state, const graft_gemm *asked, graft_error *error)
{
    graft_gemm g = *asked;

    if (one_at_a_time()) g.threads = 1;
    return gemm_blocks_gemm(state, serial, &g, error);
}

enum { PREFERENCE = 10 };

GRAFT_MODULE_NOTE("dense", "cblas", PREFERENCE);

static const graft_dense_ops ops = {
    .size = sizeof ops,
    .preference = PREFERENCE,
    .description = "CBLAS, one call per block of C",
    .init = init,
    .fini = fini,
    .gemm = gemm,
    .supports = module_float_alone,
    .gemm_size = sizeof(graft_gemm),
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "cblas",
    .dense = &ops,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    return module_give(&table, abi_min, abi_max, out, error);
}
