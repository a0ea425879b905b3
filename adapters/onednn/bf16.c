/* Computes products of bfloat16 with oneDNN. Its BLAS interface has no such products, so these are matmul primitives,
 * each of which is compiled for one shape. Blocks have only a few shapes, so compiled primitives are cached.
 * SPDX-License-Identifier: Apache-2.0 */
#include "onednn/bf16.h"

#include "common/signals.h"

#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

/* The numbers of rows and columns of a piece of A. A piece has 512 KB, so that a second-level cache can also hold a
 * piece of B and oneDNN's packed data. The numbers of columns of a piece of B and of C limit the memory of a thread for
 * any number of columns. */
enum { PIECE = 512, PIECE_COLUMNS = 1024 };

int bf16_is_there(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

/* Convert [rows x columns] of a float matrix to contiguous bfloat16. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) static void
round_piece(const float *from, int64_t stride, int64_t rows, int64_t columns, char *to)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = from + i * stride;
        char        *out = to + 2 * i * columns;

        for (int64_t j = 0; j < columns; j += 16) {
            const __mmask16 in = columns - j < 16 ? (__mmask16)((1u << (columns - j)) - 1) : 0xFFFF;

            _mm256_mask_storeu_epi16(out + 2 * j, in, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(in, row + j)));
        }
    }
}

/* Describe a matmul of bfloat16 to float with row-major operands, transposed or not. */
#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t describe(const struct bf16_shape *s, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
                              dnnl_primitive_desc_t *product)
{
    const dnnl_dims_t  a_size = { s->m, s->k }, b_size = { s->k, s->n }, c_size = { s->m, s->n };
    const dnnl_dims_t  a_step = { s->transpose_a ? 1 : s->k, s->transpose_a ? s->m : 1 };
    const dnnl_dims_t  b_step = { s->transpose_b ? 1 : s->n, s->transpose_b ? s->k : 1 }, c_step = { s->ldc, 1 };
    dnnl_memory_desc_t a = NULL, b = NULL, c = NULL;
    dnnl_status_t      status = dnnl_memory_desc_create_with_strides(&a, 2, a_size, dnnl_bf16, a_step);

    if (status == dnnl_success) status = dnnl_memory_desc_create_with_strides(&b, 2, b_size, dnnl_bf16, b_step);
    if (status == dnnl_success) status = dnnl_memory_desc_create_with_strides(&c, 2, c_size, dnnl_f32, c_step);
    if (status == dnnl_success) status = dnnl_matmul_primitive_desc_create(product, engine, a, b, NULL, c, attributes);
    if (a != NULL) dnnl_memory_desc_destroy(a);
    if (b != NULL) dnnl_memory_desc_destroy(b);
    if (c != NULL) dnnl_memory_desc_destroy(c);
    return status;
}

static dnnl_status_t append_sum(dnnl_post_ops_t operations)
{
    return dnnl_post_ops_append_sum(operations, 1, 0, dnnl_data_type_undef);
}

#else

static dnnl_status_t describe(const struct bf16_shape *s, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
                              dnnl_primitive_desc_t *product)
{
    const dnnl_dims_t  a_size = { s->m, s->k }, b_size = { s->k, s->n }, c_size = { s->m, s->n };
    const dnnl_dims_t  a_step = { s->transpose_a ? 1 : s->k, s->transpose_a ? s->m : 1 };
    const dnnl_dims_t  b_step = { s->transpose_b ? 1 : s->n, s->transpose_b ? s->k : 1 }, c_step = { s->ldc, 1 };
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t matmul;
    dnnl_status_t      status = dnnl_memory_desc_init_by_strides(&a, 2, a_size, dnnl_bf16, a_step);

    if (status == dnnl_success) status = dnnl_memory_desc_init_by_strides(&b, 2, b_size, dnnl_bf16, b_step);
    if (status == dnnl_success) status = dnnl_memory_desc_init_by_strides(&c, 2, c_size, dnnl_f32, c_step);
    if (status == dnnl_success) status = dnnl_matmul_desc_init(&matmul, &a, &b, NULL, &c);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(product, &matmul, attributes, engine, NULL);
    return status;
}

static dnnl_status_t append_sum(dnnl_post_ops_t operations)
{
    return dnnl_post_ops_append_sum(operations, 1);
}

#endif

/* Compile a primitive that uses our scratchpad, because the library's scratchpad belongs to the thread that
 * compiles. */
static dnnl_status_t compile(const struct bf16_shape *shape, dnnl_engine_t engine, dnnl_primitive_t *primitive)
{
    const signals_set     held = signals_hold();
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t       operations = NULL;
    dnnl_primitive_desc_t product = NULL;
    dnnl_status_t         status = dnnl_primitive_attr_create(&attributes);

    if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_post_ops_create(&operations);
    if (status == dnnl_success && shape->add) status = append_sum(operations);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attributes, operations);
    if (status == dnnl_success) status = describe(shape, engine, attributes, &product);
    if (status == dnnl_success) status = dnnl_primitive_create(primitive, product);
    if (product != NULL) dnnl_primitive_desc_destroy(product);
    if (operations != NULL) dnnl_post_ops_destroy(operations);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    signals_release(held);
    return status;
}

/* The primitive for a shape, which is compiled when it is first used; NULL if that fails. */
static dnnl_primitive_t code_for(struct bf16 *bf16, const struct bf16_shape *shape)
{
    dnnl_primitive_t found = NULL;

    omp_set_lock(&bf16->lock);
    for (int i = 0; i < bf16->n_codes && found == NULL; i++) {
        if (memcmp(&bf16->code[i].shape, shape, sizeof *shape) == 0) found = bf16->code[i].primitive;
    }
    if (found == NULL && bf16->n_codes < BF16_CODES_MAX && compile(shape, bf16->engine, &found) == dnnl_success) {
        bf16->code[bf16->n_codes++] = (struct bf16_code){ *shape, found };
    }
    omp_unset_lock(&bf16->lock);
    return found;
}

static void drop_codes(struct bf16 *bf16)
{
    for (int i = 0; i < bf16->n_codes; i++) dnnl_primitive_destroy(bf16->code[i].primitive);
    bf16->n_codes = 0;
}

static void drop_threads(struct bf16 *bf16)
{
    const graft_host *host = bf16->host;

    for (int i = 0; i < bf16->n_threads; i++) {
        struct bf16_thread *t = &bf16->threads[i];

        if (t->stream != NULL) dnnl_stream_destroy(t->stream);
        if (t->block != NULL) host->deallocate(host->self, t->block, t->bytes, 64);
    }
    if (bf16->threads != NULL)
        host->deallocate(host->self, bf16->threads, (uint64_t)bf16->n_threads * sizeof *bf16->threads, 64);
    bf16->threads = NULL;
    bf16->n_threads = 0;
}

void bf16_fini(struct bf16 *bf16)
{
    if (bf16->engine == NULL) return;
    drop_codes(bf16);
    drop_threads(bf16);
    omp_destroy_lock(&bf16->lock);
    dnnl_engine_destroy(bf16->engine);
}

int32_t bf16_reserve(struct bf16 *bf16, const graft_host *host, int threads)
{
    if (bf16->engine == NULL) {
        if (dnnl_engine_create(&bf16->engine, dnnl_cpu, 0) != dnnl_success) return GRAFT_ERR_MODULE;
        bf16->host = host;
        omp_init_lock(&bf16->lock);
    }
    /* Free cached primitives if there are too many, which is not possible while a team uses them. A product needs at
     * most two primitives for its rows, two for its columns and three for its depth, each with or without
     * accumulation. */
    if (bf16->n_codes > BF16_CODES_MAX - 24) drop_codes(bf16);
    if (threads <= bf16->n_threads) return GRAFT_OK;
    drop_threads(bf16);
    bf16->threads = host->allocate(host->self, (uint64_t)threads * sizeof *bf16->threads, 64);
    if (bf16->threads == NULL) return GRAFT_ERR_NOMEM;
    memset(bf16->threads, 0, (uint64_t)threads * sizeof *bf16->threads);
    bf16->n_threads = threads;
    for (int i = 0; i < threads; i++) {
        if (dnnl_stream_create(&bf16->threads[i].stream, bf16->engine, dnnl_stream_default_flags) == dnnl_success)
            continue;
        drop_threads(bf16);
        return GRAFT_ERR_MODULE;
    }
    return GRAFT_OK;
}

/* The memory block of a thread, of at least `bytes`. */
static char *block_of(const struct bf16 *bf16, struct bf16_thread *t, uint64_t bytes)
{
    const graft_host *host = bf16->host;

    if (bytes <= t->bytes) return t->block;
    if (t->block != NULL) host->deallocate(host->self, t->block, t->bytes, 64);
    t->block = host->allocate(host->self, bytes, 64);
    t->bytes = t->block != NULL ? bytes : 0;
    return t->block;
}

static dnnl_status_t execute(const struct bf16 *bf16, const struct bf16_thread *t, dnnl_primitive_t code, void *data[4])
{
    static const int            name[4] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD };
    static const dnnl_query_t   query[4] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md,
                                             dnnl_query_scratchpad_md };
    const_dnnl_primitive_desc_t about = NULL;
    const signals_set           held = signals_hold();
    dnnl_exec_arg_t             args[4] = { { 0 } };
    dnnl_status_t               status = dnnl_primitive_get_primitive_desc(code, &about);
    int                         count = 0;

    for (; count < 4 && status == dnnl_success; count++) {
        args[count].arg = name[count];
        status = dnnl_memory_create(&args[count].memory, dnnl_primitive_desc_query_md(about, query[count], 0),
                                    bf16->engine, data[count]);
    }
    if (status == dnnl_success) status = dnnl_primitive_execute(code, t->stream, 4, args);
    for (int i = 0; i < count; i++) {
        if (args[i].memory != NULL) dnnl_memory_destroy(args[i].memory);
    }
    signals_release(held);
    return status;
}

static uint64_t scratch_bytes(dnnl_primitive_t code)
{
    const_dnnl_primitive_desc_t about = NULL;

    if (dnnl_primitive_get_primitive_desc(code, &about) != dnnl_success) return 0;
    return dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(about, dnnl_query_scratchpad_md, 0));
}

/* Compute a product whose rows and depth are at most PIECE, and whose columns are at most PIECE_COLUMNS. */
static int32_t multiply_piece(struct bf16 *bf16, struct bf16_thread *t, const graft_gemm *g)
{
    const struct bf16_shape shape = { .m = g->m,
                                      .n = g->n,
                                      .k = g->k,
                                      .ldc = g->ldc,
                                      .transpose_a = g->transpose_a,
                                      .transpose_b = g->transpose_b,
                                      .add = g->beta != 0 };
    const uint64_t          a_bytes = 2 * PIECE * PIECE, b_bytes = (2 * PIECE * (uint64_t)g->n + 63) / 64 * 64;
    const dnnl_primitive_t  code = code_for(bf16, &shape);
    char                   *block = code != NULL ? block_of(bf16, t, a_bytes + b_bytes + scratch_bytes(code)) : NULL;
    void                   *data[4] = { block, NULL, g->c, NULL };

    if (code == NULL) return GRAFT_ERR_MODULE;
    if (block == NULL) return GRAFT_ERR_NOMEM;
    data[1] = block + a_bytes;
    data[3] = block + a_bytes + b_bytes;
    round_piece(g->a, g->lda, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, block);
    round_piece(g->b, g->ldb, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, block + a_bytes);
    return execute(bf16, t, code, data) == dnnl_success ? GRAFT_OK : GRAFT_ERR_MODULE;
}

/* Compute a product whose columns are at most PIECE_COLUMNS. */
static int32_t multiply_columns(struct bf16 *bf16, struct bf16_thread *t, const graft_gemm *g)
{
    int32_t rc = GRAFT_OK;

    for (int64_t row = 0; row < g->m; row += PIECE) {
        for (int64_t depth = 0; depth < g->k && rc == GRAFT_OK; depth += PIECE) {
            graft_gemm piece = *g;

            piece.m = g->m - row < PIECE ? g->m - row : PIECE;
            piece.k = g->k - depth < PIECE ? g->k - depth : PIECE;
            piece.a += g->transpose_a ? depth * g->lda + row : row * g->lda + depth;
            piece.b += g->transpose_b ? depth : depth * g->ldb;
            piece.c += row * g->ldc;
            if (depth > 0) piece.beta = 1;
            rc = multiply_piece(bf16, t, &piece);
        }
    }
    return rc;
}

int32_t bf16_serial(struct bf16 *bf16, int thread, const graft_gemm *g)
{
    int32_t rc = GRAFT_OK;

    for (int64_t column = 0; column < g->n && rc == GRAFT_OK; column += PIECE_COLUMNS) {
        graft_gemm piece = *g;

        piece.n = g->n - column < PIECE_COLUMNS ? g->n - column : PIECE_COLUMNS;
        piece.b += g->transpose_b ? column * g->ldb : column;
        piece.c += column;
        rc = multiply_columns(bf16, &bf16->threads[thread], &piece);
    }
    return rc;
}

#else

int bf16_is_there(void)
{
    return 0;
}

void bf16_fini(struct bf16 *bf16)
{
    (void)bf16;
}

int32_t bf16_reserve(struct bf16 *bf16, const graft_host *host, int threads)
{
    (void)bf16, (void)host, (void)threads;
    return GRAFT_ERR_UNSUPPORTED;
}

int32_t bf16_serial(struct bf16 *bf16, int thread, const graft_gemm *gemm)
{
    (void)bf16, (void)thread, (void)gemm;
    return GRAFT_ERR_UNSUPPORTED;
}

#endif
