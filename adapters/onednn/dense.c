/* Dense module "onednn": products through oneDNN's BLAS call, each on one thread and one block of C. Its code is made
 * at run time for the processor, and is the faster one for the narrow products of graph networks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/gemm_blocks.h"
#include "common/module.h"

#include <dnnl.h>

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "this oneDNN starts threads that the blocks cannot keep it from"
#endif

static int32_t serial(const graft_gemm *g)
{
    const dnnl_status_t status = dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k,
                                            g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);

    return status == dnnl_success ? GRAFT_OK : GRAFT_ERR_MODULE;
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    return gemm_blocks_init(host, "onednn", serial, state, error);
}

static const graft_dense_ops ops = {
    .size = sizeof ops,
    .preference = 20,
    .description = "oneDNN, one call per block of C",
    .init = init,
    .fini = gemm_blocks_fini,
    .gemm = gemm_blocks_gemm,
    .gemm_size = sizeof(graft_gemm),
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "onednn",
    .dense = &ops,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    return module_give(&table, abi_min, abi_max, out, error);
}
