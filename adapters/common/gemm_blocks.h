/* Divides a dense product into blocks. Each block is a single-threaded call of another library. The blocks depend only
 * on the shape and are summed in a fixed order, so C is bitwise identical for any number of threads. A library that
 * uses OpenMP is called inside our parallel region, where it starts no threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GEMM_BLOCKS_H
#define GEMM_BLOCKS_H

#include "common/mode.h"
#include "common/times.h"
#include "graft_module.h"

#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* Sizes of blocks: the number of rows of C in a block, and in a block of a deep product. For deep products also the
 * depth of a chunk, the largest number of chunks, and the number of bytes of all partial products, which the module
 * keeps. */
enum { BLOCK_ROWS = 512, DEEP_BLOCK_ROWS = 128, CHUNK_DEPTH = 4096, CHUNKS_MAX = 64, PARTIAL_MAX = 16 * 1024 * 1024 };

/** Compute a whole product on one thread, which has number `thread` in the team. Must be reentrant. Returns OK,
 * ERR_NOMEM or ERR_MODULE. Ignores rows_done. */
typedef int32_t (*gemm_serial)(void *module, int thread, const graft_gemm *gemm);

/** Data that a dense module keeps between products. They are the first member of its state. */
struct gemm_blocks {
    const graft_host *host;
    const char       *name;    /* name of the module */
    void             *partial; /* partial products of the chunks of a deep product */
    uint64_t          partial_bytes;
};

static int32_t gemm_blocks_fail(const char *name, graft_error *error, int32_t code, const char *text, int64_t number)
{
    error->code = code;
    snprintf(error->message, sizeof error->message, "%s: %s: %lld", name, text, (long long)number);
    return code;
}

/* Allocate a state of `bytes` bytes. It is zero except for its first member. */
static int32_t gemm_blocks_init(const graft_host *host, const char *name, uint64_t bytes, void **state,
                                graft_error *error)
{
    struct gemm_blocks *made = host->allocate(host->self, bytes, 64);

    if (made == NULL)
        return gemm_blocks_fail(name, error, GRAFT_ERR_NOMEM, "no memory for its state, bytes", (int64_t)bytes);
    memset(made, 0, bytes);
    made->host = host;
    made->name = name;
    *state = made;
    return GRAFT_OK;
}

static void gemm_blocks_drop_partial(struct gemm_blocks *s)
{
    if (s->partial != NULL) s->host->deallocate(s->host->self, s->partial, s->partial_bytes, 64);
    s->partial = NULL;
    s->partial_bytes = 0;
}

static void gemm_blocks_fini(struct gemm_blocks *s, uint64_t bytes)
{
    if (s == NULL) return;
    gemm_blocks_drop_partial(s);
    s->host->deallocate(s->host->self, s, bytes, 64);
}

static int64_t gemm_blocks_element(const graft_gemm *g)
{
    return g->type == GRAFT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* The address of element i of an array. */
static float *gemm_blocks_at(const graft_gemm *g, const float *array, int64_t i)
{
    return (float *)((uintptr_t)array + (uintptr_t)(i * gemm_blocks_element(g)));
}

/* Multiply row i of C by beta. */
static void gemm_blocks_scale_row(const graft_gemm *g, int64_t i)
{
    float  *c = gemm_blocks_at(g, g->c, i * g->ldc);
    double *wide = (double *)(void *)c;

    if (g->beta == 0) memset(c, 0, (size_t)(g->n * gemm_blocks_element(g)));
    else if (g->type == GRAFT_F64)
        for (int64_t j = 0; j < g->n; j++) wide[j] *= (double)g->beta;
    else
        for (int64_t j = 0; j < g->n; j++) c[j] *= g->beta;
}

/* Compute a part of a product: `m` rows of op(A) and C from row `row` on, and `k` terms of the sums from depth `depth`
 * on. */
static int32_t gemm_blocks_part(struct gemm_blocks *s, gemm_serial serial, const graft_gemm *whole, int64_t row,
                                int64_t m, int64_t depth, int64_t k)
{
    graft_gemm g = *whole;

    g.a = gemm_blocks_at(&g, g.a, g.transpose_a ? depth * g.lda + row : row * g.lda + depth);
    g.b = gemm_blocks_at(&g, g.b, g.transpose_b ? depth : depth * g.ldb);
    g.c = gemm_blocks_at(&g, g.c, row * g.ldc);
    g.m = m;
    g.k = k;
    g.threads = 1;
    /* Some libraries do not write C if the depth of a product is 0. */
    for (int64_t i = 0; i < m && k == 0; i++) gemm_blocks_scale_row(&g, i);
    return k > 0 ? serial(s, omp_get_thread_num(), &g) : GRAFT_OK;
}

static void gemm_blocks_rows_done(const graft_gemm *g, int64_t begin, int64_t end)
{
    if (g->rows_done != NULL) g->rows_done(g->rows_arg, begin, end);
}

/* Prevent the library from starting its own team, even if our team has one thread. The setting belongs to the implicit
 * task and ends with its parallel region, so the host's setting does not change. */
static void gemm_blocks_stay_alone(void)
{
    omp_set_num_threads(1);
}

static int32_t gemm_blocks_by_rows(struct gemm_blocks *s, gemm_serial serial, const graft_gemm *g)
{
    const int64_t rows = g->k >= 2 * CHUNK_DEPTH ? DEEP_BLOCK_ROWS : BLOCK_ROWS, blocks = (g->m + rows - 1) / rows;
    const mode_fp mode = mode_get();
    int32_t       worst = GRAFT_OK;

#pragma omp parallel num_threads(g->threads) reduction(min : worst)
    {
        const mode_fp own = mode_swap(mode);

        gemm_blocks_stay_alone();
        times_begin(g->times);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t row = i * rows, m = g->m - row < rows ? g->m - row : rows;

            const int32_t rc = gemm_blocks_part(s, serial, g, row, m, 0, g->k);

            if (rc < worst) worst = rc;
            gemm_blocks_rows_done(g, row, row + m);
        }
        times_end(g->times);
        mode_set(own);
    }
    return worst;
}

static int32_t gemm_blocks_reserve(struct gemm_blocks *s, uint64_t bytes, graft_error *error)
{
    if (bytes <= s->partial_bytes) return GRAFT_OK;
    gemm_blocks_drop_partial(s);
    s->partial = s->host->allocate(s->host->self, bytes, 64);
    if (s->partial == NULL)
        return gemm_blocks_fail(s->name, error, GRAFT_ERR_NOMEM, "no memory for partial products, bytes",
                                (int64_t)bytes);
    s->partial_bytes = bytes;
    return GRAFT_OK;
}

/* C = beta C + the sum of the partial products, which are added in order. */
static void gemm_blocks_add_row(const struct gemm_blocks *s, const graft_gemm *g, int64_t row, int64_t chunks)
{
    float  *c = gemm_blocks_at(g, g->c, row * g->ldc);
    double *wide = (double *)(void *)c;

    gemm_blocks_scale_row(g, row);
    for (int64_t i = 0; i < chunks; i++) {
        const float  *part = gemm_blocks_at(g, s->partial, (i * g->m + row) * g->n);
        const double *wide_part = (const double *)(const void *)part;

        if (g->type == GRAFT_F64)
            for (int64_t j = 0; j < g->n; j++) wide[j] += wide_part[j];
        else
            for (int64_t j = 0; j < g->n; j++) c[j] += part[j];
    }
    gemm_blocks_rows_done(g, row, row + 1);
}

/* Compute a weight gradient, which is a small product with a large depth: X^T G over all vertices. The depth is divided
 * into chunks, and their products are added in order. */
static int32_t gemm_blocks_by_depth(struct gemm_blocks *s, gemm_serial serial, const graft_gemm *g, int64_t chunks)
{
    const int64_t depth = (g->k + chunks - 1) / chunks;
    const mode_fp mode = mode_get();
    int32_t       worst = GRAFT_OK;

#pragma omp parallel num_threads(g->threads) reduction(min : worst)
    {
        const mode_fp own = mode_swap(mode);

        gemm_blocks_stay_alone();
        times_begin(g->times);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < chunks; i++) {
            const int64_t begin = i * depth, k = g->k - begin < depth ? g->k - begin : depth;
            graft_gemm    chunk = *g;
            int32_t       rc;

            chunk.beta = 0;
            chunk.c = gemm_blocks_at(g, s->partial, i * g->m * g->n);
            chunk.ldc = g->n;
            rc = gemm_blocks_part(s, serial, &chunk, 0, g->m, begin, k);
            if (rc < worst) worst = rc;
        }
        times_end(g->times);
#pragma omp barrier
        times_begin(g->times);
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < g->m; row++) gemm_blocks_add_row(s, g, row, chunks);
        times_end(g->times);
        mode_set(own);
    }
    return worst;
}

static int64_t gemm_blocks_longest_row(const graft_gemm *g)
{
    const int64_t ab = g->lda > g->ldb ? g->lda : g->ldb;

    return ab > g->ldc ? ab : g->ldc;
}

/* The number of chunks into which the depth is divided. It is 1 if C is large enough to be divided by rows. */
static int64_t gemm_blocks_chunks(const graft_gemm *g)
{
    const int64_t deep = g->k / CHUNK_DEPTH, room = PARTIAL_MAX / gemm_blocks_element(g) / g->m / g->n;
    const int64_t most = room < CHUNKS_MAX ? room : CHUNKS_MAX, chunks = deep < most ? deep : most;

    return chunks > 1 ? chunks : 1;
}

/** Compute a whole product by calling serial() for each block. */
static int32_t gemm_blocks_gemm(struct gemm_blocks *s, gemm_serial serial, const graft_gemm *g, graft_error *error)
{
    int64_t chunks;
    int32_t rc;

    if (g->m == 0 || g->n == 0) return GRAFT_OK;
    chunks = gemm_blocks_chunks(g);
    if (gemm_blocks_longest_row(g) > INT_MAX)
        return gemm_blocks_fail(s->name, error, GRAFT_ERR_UNSUPPORTED, "rows exceed its integers, elements",
                                gemm_blocks_longest_row(g));
    if ((g->k - 1) / chunks >= INT_MAX)
        return gemm_blocks_fail(s->name, error, GRAFT_ERR_UNSUPPORTED, "the depth exceeds its limit, elements", g->k);
    if (chunks > 1) {
        const uint64_t bytes = ((uint64_t)(chunks * g->m * g->n * gemm_blocks_element(g)) + 63) / 64 * 64;

        rc = gemm_blocks_reserve(s, bytes, error);
        if (rc < 0) return rc;
        rc = gemm_blocks_by_depth(s, serial, g, chunks);
    } else {
        rc = gemm_blocks_by_rows(s, serial, g);
    }
    if (rc == GRAFT_OK) return GRAFT_OK;
    return gemm_blocks_fail(s->name, error, rc,
                            rc == GRAFT_ERR_NOMEM ? "no memory for blocks of a product, rows of C"
                                                  : "the library failed in a product, rows of C",
                            g->m);
}

#endif
