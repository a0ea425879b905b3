/* Dense module "cblas": computes products of floats and doubles with any CBLAS library. Each call runs on one thread
 * and computes one block of C. A serial OpenBLAS may not be called from several threads at once (Debian's gives wrong
 * products), so with it the module uses one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/gemm_blocks.h"
#include "common/module.h"

#include <cblas.h>
#include <omp.h>
#include <sys/resource.h>

/* Returns 0 for an OpenBLAS without threads. The pointer is NULL for another BLAS. */
extern int openblas_get_parallel(void) __attribute__((weak));

/* The buffers of OpenBLAS; each simultaneous call needs one. The pointers are NULL for another BLAS. */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void  blas_memory_free(void *buffer) __attribute__((weak));

struct cblas {
    struct gemm_blocks blocks;
    int                most; /* largest number of threads that have a buffer; 0 for no limit */
};

enum { BUFFERS_MOST = 256 };

static int one_at_a_time(void)
{
    return openblas_get_parallel != NULL && openblas_get_parallel() == 0;
}

static int32_t serial(void *module, int thread, const graft_gemm *g)
{
    const CBLAS_TRANSPOSE a = g->transpose_a ? CblasTrans : CblasNoTrans,
                          b = g->transpose_b ? CblasTrans : CblasNoTrans;

    (void)module, (void)thread;
    if (g->type == GRAFT_F64)
        cblas_dgemm(CblasRowMajor, a, b, (int)g->m, (int)g->n, (int)g->k, (double)g->alpha, (const void *)g->a,
                    (int)g->lda, (const void *)g->b, (int)g->ldb, (double)g->beta, (void *)g->c, (int)g->ldc);
    else
        cblas_sgemm(CblasRowMajor, a, b, (int)g->m, (int)g->n, (int)g->k, g->alpha, g->a, (int)g->lda, g->b,
                    (int)g->ldb, g->beta, g->c, (int)g->ldc);
    return GRAFT_OK;
}

static int32_t supports(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state;
    if (type == GRAFT_F64) return GRAFT_OK;
    snprintf(why, capacity, "it multiplies floats and doubles, not %s", type == GRAFT_BF16 ? "bfloat16" : "this type");
    return GRAFT_ERR_UNSUPPORTED;
}

static int is_limited(__rlimit_resource_t resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static int has_limit(void)
{
    return is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
}

/* OpenBLAS maps a buffer when a call first needs one more, and tries forever if it cannot. If the address space is
 * limited, OpenBLAS therefore maps its buffers now, when the library has checked that there is enough memory, and later
 * no more threads than there are buffers call it. */
static int map_buffers(void)
{
    void     *buffer[BUFFERS_MOST];
    const int threads = omp_get_max_threads(), processors = omp_get_num_procs();
    int       most = threads < processors ? threads : processors;

    if (blas_memory_alloc == NULL || blas_memory_free == NULL) return 0;
    if (!has_limit()) return 0;
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

/* The functions that both tables share. */
#define FUNCTIONS                                                                                                      \
    .size = sizeof(graft_dense_ops), .preference = PREFERENCE, .description = "CBLAS, one call per block of C",        \
    .init = init, .fini = fini, .gemm = gemm, .supports = supports, .gemm_size = sizeof(graft_gemm)

static const graft_dense_ops ops = { FUNCTIONS, .flags = GRAFT_DENSE_CONCURRENT };
static const graft_dense_ops ops_alone = { FUNCTIONS };

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "cblas",
    .dense = &ops,
};

/* For a library that only one thread may call at a time, or if a limit of address space leaves buffers for the threads
 * of only one product at a time. */
static const graft_module_table table_alone = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "cblas",
    .dense = &ops_alone,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    return module_give(one_at_a_time() || has_limit() ? &table_alone : &table, abi_min, abi_max, out, error);
}
