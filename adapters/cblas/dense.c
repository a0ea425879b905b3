/* Dense module "cblas": products through any CBLAS, each call on one thread and one block of C.
 *
 * The blocks are cut by the shape alone and summed in order, so that the bits of C do not depend on the number of
 * threads. The threads are ours; OpenBLAS built on OpenMP sees that it is called inside a parallel region, and starts
 * none. A serial OpenBLAS is not safe to call from several threads at once (Debian's, at least, gives wrong products),
 * so it gets one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* Rows of C in a block; the depth of a chunk of a deep product, how many there may be, and elements of each at most. */
enum { BLOCK_ROWS = 512, CHUNK_DEPTH = 4096, CHUNKS_MAX = 16, PARTIAL_MAX = 4 * 1024 * 1024 };

/* 0 for an OpenBLAS without threads; null if this is another BLAS. */
extern int openblas_get_parallel(void) __attribute__((weak));

struct state {
    const graft_host *host;
    int               serial;  /* calls must come one at a time */
    float            *partial; /* products of the chunks of a deep product */
    uint64_t          partial_bytes;
};

static int32_t fail(graft_error *error, int32_t code, const char *text, int64_t number)
{
    error->code = code;
    snprintf(error->message, sizeof error->message, "cblas: %s: %lld", text, (long long)number);
    return code;
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    struct state *made = host->allocate(host->self, sizeof *made, 64);

    if (made == NULL) return fail(error, GRAFT_ERR_NOMEM, "no memory for its state, bytes", (int64_t)sizeof *made);
    memset(made, 0, sizeof *made);
    made->host = host;
    made->serial = openblas_get_parallel != NULL && openblas_get_parallel() == 0;
    if (made->serial) {
        host->log(host->self, GRAFT_LOG_WARNING,
                  "dense module cblas runs on one thread, because it found a serial OpenBLAS");
    }
    *state = made;
    return GRAFT_OK;
}

static void drop_partial(struct state *s)
{
    if (s->partial != NULL) s->host->deallocate(s->host->self, s->partial, s->partial_bytes, 64);
    s->partial = NULL;
    s->partial_bytes = 0;
}

static void fini(void *state)
{
    struct state *s = state;

    if (s == NULL) return;
    drop_partial(s);
    s->host->deallocate(s->host->self, s, sizeof *s, 64);
}

/* Part of a product: rows of op(A) and C from `row`, `m` of them; depth from `depth`, `k` of it. */
static void part(const graft_gemm *g, int64_t row, int64_t m, int64_t depth, int64_t k, float beta, float *c,
                 int64_t ldc)
{
    const float *a = g->transpose_a ? g->a + depth * g->lda + row : g->a + row * g->lda + depth;
    const float *b = g->transpose_b ? g->b + depth : g->b + depth * g->ldb;

    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
                (int)m, (int)g->n, (int)k, g->alpha, a, (int)g->lda, b, (int)g->ldb, beta, c, (int)ldc);
}

/* Keep the BLAS from starting a team of its own, also where ours has one thread. The number is that of the implicit
 * task, and ends with the parallel region it is set in: the host's stays as it was. */
static void stay_alone(void)
{
    omp_set_num_threads(1);
}

static void by_rows(const graft_gemm *g)
{
    const int64_t blocks = (g->m + BLOCK_ROWS - 1) / BLOCK_ROWS;

#pragma omp parallel num_threads(g->threads)
    {
        stay_alone();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t row = i * BLOCK_ROWS, m = g->m - row < BLOCK_ROWS ? g->m - row : BLOCK_ROWS;

            part(g, row, m, 0, g->k, g->beta, g->c + row * g->ldc, g->ldc);
        }
    }
}

static int32_t reserve(struct state *s, uint64_t bytes, graft_error *error)
{
    if (bytes <= s->partial_bytes) return GRAFT_OK;
    drop_partial(s);
    s->partial = s->host->allocate(s->host->self, bytes, 64);
    if (s->partial == NULL)
        return fail(error, GRAFT_ERR_NOMEM, "no memory for partial products, bytes", (int64_t)bytes);
    s->partial_bytes = bytes;
    return GRAFT_OK;
}

/* Weight gradients are small and deep: X^T G over all vertices. The depth is cut, and the parts are added in order. */
static int32_t by_depth(struct state *s, const graft_gemm *g, int64_t chunks, graft_error *error)
{
    const int64_t depth = (g->k + chunks - 1) / chunks, size = g->m * g->n;
    const int32_t rc = reserve(s, ((uint64_t)(chunks * size) * sizeof(float) + 63) / 64 * 64, error);

    if (rc < 0) return rc;
#pragma omp parallel num_threads(g->threads)
    {
        stay_alone();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < chunks; i++) {
            const int64_t begin = i * depth, k = g->k - begin < depth ? g->k - begin : depth;

            part(g, 0, g->m, begin, k, 0, s->partial + i * size, g->n);
        }
#pragma omp for schedule(static)
        for (int64_t row = 0; row < g->m; row++) {
            float *c = g->c + row * g->ldc;

            for (int64_t j = 0; j < g->n; j++) c[j] = g->beta == 0 ? 0 : g->beta * c[j];
            for (int64_t i = 0; i < chunks; i++) {
                for (int64_t j = 0; j < g->n; j++) c[j] += s->partial[i * size + row * g->n + j];
            }
        }
    }
    return GRAFT_OK;
}

static int32_t gemm(void *state, const graft_gemm *asked, graft_error *error)
{
    struct state *s = state;
    graft_gemm    g = *asked;
    int64_t       chunks = g.k / CHUNK_DEPTH;

    if (g.m == 0 || g.n == 0) return GRAFT_OK;
    if (g.n > INT_MAX || g.lda > INT_MAX || g.ldb > INT_MAX || g.ldc > INT_MAX) {
        return fail(error, GRAFT_ERR_UNSUPPORTED, "rows are longer than its integers can say, columns", g.n);
    }
    if (g.k / CHUNKS_MAX > INT_MAX) return fail(error, GRAFT_ERR_UNSUPPORTED, "the depth is too much for it", g.k);
    if (s->serial) g.threads = 1;
    if (chunks > CHUNKS_MAX) chunks = CHUNKS_MAX;
    if (chunks > 1 && g.m * g.n <= PARTIAL_MAX) return by_depth(s, &g, chunks, error);
    if (g.k > INT_MAX) return fail(error, GRAFT_ERR_UNSUPPORTED, "the depth is too much for it", g.k);
    by_rows(&g);
    return GRAFT_OK;
}

static const graft_dense_ops ops = {
    .size = sizeof ops,
    .preference = 10,
    .description = "CBLAS, one call per block of C",
    .init = init,
    .fini = fini,
    .gemm = gemm,
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
    if (abi_min > GRAFT_ABI_VERSION || abi_max < GRAFT_ABI_VERSION) {
        error->code = GRAFT_ERR_VERSION;
        snprintf(error->message, sizeof error->message,
                 "dense module cblas knows version %u, the library drives %u to %u", GRAFT_ABI_VERSION, abi_min,
                 abi_max);
        return GRAFT_ERR_VERSION;
    }
    *out = &table;
    return GRAFT_OK;
}
