/* Dense module "onednn": computes products with oneDNN. Each call runs on one thread and computes one block of C.
 * oneDNN compiles its kernels at run time, and is the fastest module for the narrow products of graph networks. Signals
 * are blocked while its kernels run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/gemm_blocks.h"
#include "common/module.h"
#include "common/signals.h"
#include "onednn/bf16.h"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "this oneDNN starts threads of its own, which gemm_blocks.h cannot prevent"
#endif

struct onednn {
    struct gemm_blocks blocks;
    struct bf16        bf16;
};

static int32_t serial(void *module, int thread, const graft_gemm *g)
{
    const signals_set   held = signals_hold();
    const dnnl_status_t status = dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k,
                                            g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);

    (void)module, (void)thread;
    signals_release(held);
    return status == dnnl_success ? GRAFT_OK : GRAFT_ERR_MODULE;
}

static int32_t serial_bf16(void *module, int thread, const graft_gemm *g)
{
    struct onednn *onednn = module;

    return bf16_serial(&onednn->bf16, thread, g);
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    return gemm_blocks_init(host, "onednn", sizeof(struct onednn), state, error);
}

static void fini(void *state)
{
    struct onednn *onednn = state;

    if (onednn != NULL) bf16_fini(&onednn->bf16);
    gemm_blocks_fini(state, sizeof *onednn);
}

static int32_t supports(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state;
    if (type == GRAFT_BF16 && bf16_is_there()) return GRAFT_OK;
    snprintf(why, capacity, "%s",
             type == GRAFT_BF16 ? "this processor has no instructions for bfloat16 (AVX-512 BF16 or AMX)"
                                : "it multiplies floats and bfloat16, not this type");
    return GRAFT_ERR_UNSUPPORTED;
}

static int32_t gemm(void *state, const graft_gemm *g, graft_error *error)
{
    struct onednn *onednn = state;
    int32_t        rc;

    if (g->type != GRAFT_BF16) return gemm_blocks_gemm(&onednn->blocks, serial, g, error);
    if (g->alpha != 1 || (g->beta != 0 && g->beta != 1))
        return gemm_blocks_fail("onednn", error, GRAFT_ERR_UNSUPPORTED,
                                "products of bfloat16 have alpha 1 and beta 0 or 1; rows of C", g->m);
    rc = bf16_reserve(&onednn->bf16, onednn->blocks.host, g->threads);
    if (rc < 0) return gemm_blocks_fail("onednn", error, rc, "no memory for threads", g->threads);
    return gemm_blocks_gemm(&onednn->blocks, serial_bf16, g, error);
}

enum { PREFERENCE = 20 };

GRAFT_MODULE_NOTE("dense", "onednn", PREFERENCE);

static const graft_dense_ops ops = {
    .size = sizeof ops,
    .preference = PREFERENCE,
    .description = "oneDNN, one call per block of C",
    .init = init,
    .fini = fini,
    .gemm = gemm,
    .supports = supports,
    .gemm_size = sizeof(graft_gemm),
    .flags = GRAFT_DENSE_CONCURRENT,
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
