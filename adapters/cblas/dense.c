/* Dense module "cblas": products with any CBLAS, each call on one thread and one block of C. A serial OpenBLAS may not
 * be called from several threads at once (Debian's gives wrong products), so it runs on one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/gemm_blocks.h"
#include "common/module.h"

#include <cblas.h>
#include <omp.h>
#include <sys/resource.h>

/* Returns 0 for an OpenBLAS without threads; null for another BLAS. */
extern int openblas_get_parallel(void) __attribute__((weak));

/* The buffers of OpenBLAS, one for each call at the same time; null for another BLAS. */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void  blas_memory_free(void *buffer) __attribute__((weak));

struct cblas {
    struct gemm_blocks blocks;
    int                most; /* threads that have a buffer; 0: no limit */
};

enum { BUFFERS_MOST = 256 };

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

static int is_limited(__rlimit_resource_t resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* OpenBLAS maps a buffer for a call when it first needs one more, and tries for ever if it cannot. With a limit of
 * address space it gets them now, when the library has seen that there is room, and no more threads call it. */
static int map_buffers(void)
{
    void     *buffer[BUFFERS_MOST];
    const int threads = omp_get_max_threads(), processors = omp_get_num_procs();
    int       most = threads < processors ? threads : processors;

    if (blas_memory_alloc == NULL || blas_memory_free == NULL) return 0;
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return 0;
    if (most > BUFFERS_MOST) most = BUFFERS_MOST;
    for (int i = 0; i < most; i++) buffer[i] = blas_memory_alloc(0);
    for (int i = 0; i < most; i++) blas_memory_free(buffer[i]);
    return most;
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    const int32_t rc = gemm_blocks_init(host, "cblas", sizeof(struct cblas), state, error);

    if (rc == GRAFT_OK) ((struct cblas *)*state)->most = map_buffers();
    if (rc == GRAFT_OK && one_at_a_time()) {
        host->log(host->self, GRAFT_LOG_WARNING,
                  "dense module cblas runs on one thread, because it found a serial OpenBLAS");
    }
    return rc;
}

static void fini(void *state)
{
    gemm_blocks_fini(state, sizeof(struct cblas));
}

static int32_t gemm(void *state, const graft_gemm *asked, graft_error *error)
{
    const struct cblas *cblas = state;
    graft_gemm          g = *asked;

    if (cblas->most > 0 && g.threads > cblas->most) g.threads = cblas->most;
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
