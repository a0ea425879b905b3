/* Inputs for test_edge.c: operands between canaries for every operator of graft.edge/1, and the comparison of results
 * with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EDGE_SCENE_H
#define EDGE_SCENE_H

#include "graft_edge.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/product.h"
#include "oracle/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const graft_edge_api *edge;
static const graft_mxm_api  *mxm;
static graft_context        *context;

enum op { GATHER, ADD, INDEXED, SDDMM, SOFTMAX, SOFTMAX_BACKWARD, MXM, MXM_TRANSPOSED, SUM, SUM_TRANSPOSED, OPS };
static const char *const op_name[OPS] = {
    "gather_rows",      "index_add", "index_matrix",   "sddmm",         "softmax",
    "softmax_backward", "mxm",       "mxm transposed", "mxm without y", "mxm transposed without y"
};

/* A dense matrix between canaries, with gaps between its rows. */
struct operand {
    graft_dense  view;
    struct block block;
};

/* The shape of a scene: a sparse matrix [m x k], and dense operands of `heads` heads with `columns` columns each. */
struct shape {
    int64_t     m, k, heads, columns;
    graft_dtype index_type, dtype;
    int         exact; /* whether the numbers have no rounding errors */
};

struct scene {
    struct shape      shape;
    int64_t           entries, width;
    struct sample_csr a;
    graft_matrix     *matrix;
    struct block      index_block;
    graft_index       index; /* picks rows of `rows` */
    /* Operands [m x width], [k x width], [count x width] and [entries x heads]. */
    struct operand    rows, cols, picked, edges[2];
    struct operand    out[OPS];
};

static void operand_init(struct operand *operand, struct sample *sample, const struct shape *shape, int64_t n_rows,
                         int64_t n_cols)
{
    operand->view = GRAFT_INIT(graft_dense);
    operand->view.dtype = shape->dtype;
    operand->view.n_rows = n_rows;
    operand->view.n_cols = n_cols;
    operand->view.stride = n_cols + sample_below(sample, 4);
    block_init(&operand->block, (uint64_t)(n_rows * operand->view.stride) * sample_bytes(shape->dtype));
    operand->view.data = operand->block.data;
    for (int64_t at = 0; at < n_rows * n_cols; at++) {
        const double value = shape->exact ? sample_exact(sample, 24, 8) : sample_real(sample, -3, 3);
        sample_put(operand->view.data, shape->dtype, at / n_cols * operand->view.stride + at % n_cols, value);
    }
    block_keep(&operand->block);
}

static void index_init(struct scene *s, struct sample *sample)
{
    s->index = GRAFT_INIT(graft_index);
    s->index.index_type = s->shape.index_type;
    s->index.count = s->shape.m > 0 ? 2 * s->shape.m + 3 : 0;
    block_init(&s->index_block, (uint64_t)s->index.count * sample_bytes(s->shape.index_type));
    s->index.data = s->index_block.data;
    for (int64_t i = 0; i < s->index.count; i++) {
        /* Every third number is 0, so that one row is picked often. */
        sample_put(s->index_block.data, s->shape.index_type, i,
                   i % 3 == 1 ? 0 : (double)sample_below(sample, s->shape.m));
    }
    block_keep(&s->index_block);
}

/* Make the scene. The matrix has values of another type than the operands, which must not matter. */
static void edge_scene_init(struct scene *s, const struct shape *shape)
{
    struct sample sample = { (uint64_t)(shape->m * 100 + shape->columns * 10 + shape->heads) };
    const int64_t m = shape->m, k = shape->k, heads = shape->heads, width = heads * shape->columns;
    const int64_t out_cols[OPS] = { width, width, width, heads, heads, heads, width, width, heads, heads };
    int64_t       out_rows[OPS] = { m > 0 ? 2 * m + 3 : 0, m, m, 0, 0, 0, m, k, m, k };
    graft_error   error = GRAFT_INIT(graft_error);

    memset(s, 0, sizeof *s);
    s->shape = *shape;
    s->width = width;
    sample_csr_init(&s->a, &sample, m, k, shape->index_type, shape->dtype == GRAFT_F32 ? GRAFT_F64 : GRAFT_F32, 0);
    s->entries = s->a.row_ptr[m];
    out_rows[SDDMM] = out_rows[SOFTMAX] = out_rows[SOFTMAX_BACKWARD] = s->entries;
    if (mxm->matrix_create(context, &s->a.csr, 0, &s->matrix, &error) != GRAFT_OK) {
        printf("Bail out! a good matrix is refused: %s\n", error.message);
        exit(1);
    }
    index_init(s, &sample);
    operand_init(&s->rows, &sample, shape, m, width);
    operand_init(&s->cols, &sample, shape, k, width);
    operand_init(&s->picked, &sample, shape, s->index.count, width);
    for (int i = 0; i < 2; i++) operand_init(&s->edges[i], &sample, shape, s->entries, heads);
    for (int op = 0; op < OPS; op++) operand_init(&s->out[op], &sample, shape, out_rows[op], out_cols[op]);
}

static void edge_scene_fini(struct scene *s)
{
    mxm->matrix_destroy(s->matrix);
    sample_csr_fini(&s->a);
    block_fini(&s->index_block);
    block_fini(&s->rows.block);
    block_fini(&s->cols.block);
    block_fini(&s->picked.block);
    for (int i = 0; i < 2; i++) block_fini(&s->edges[i].block);
    for (int op = 0; op < OPS; op++) block_fini(&s->out[op].block);
}

/* Compute index_add() as a product with the matrix of the index. */
static int32_t add_by_matrix(const struct scene *s, const graft_dense *out, int32_t threads, graft_error *error)
{
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    graft_matrix  *matrix = NULL;
    int32_t        rc = edge->index_matrix(context, &s->index, s->shape.m, &matrix, error);

    args.semiring = GRAFT_PLUS_SECOND;
    args.flags = GRAFT_MXM_ACCUMULATE;
    args.threads = threads;
    args.a = matrix;
    args.b = &s->picked.view;
    args.c = out;
    if (rc == GRAFT_OK) rc = mxm->run(context, &args, error);
    mxm->matrix_destroy(matrix);
    return rc;
}

static int32_t run_op(struct scene *s, enum op op, const graft_dense *out, int32_t threads, graft_error *error)
{
    const graft_dense *x = &s->rows.view, *y = &s->cols.view, *e0 = &s->edges[0].view, *e1 = &s->edges[1].view;
    const uint32_t     transposed = GRAFT_EDGE_TRANSPOSE;

    switch (op) {
    case GATHER: return edge->gather_rows(context, x, &s->index, out, threads, error);
    case ADD: return edge->index_add(context, &s->picked.view, &s->index, out, threads, error);
    case INDEXED: return add_by_matrix(s, out, threads, error);
    case SDDMM: return edge->sddmm(context, s->matrix, x, y, out, threads, error);
    case SOFTMAX: return edge->softmax(context, s->matrix, e0, out, threads, error);
    case SOFTMAX_BACKWARD: return edge->softmax_backward(context, s->matrix, e0, e1, out, threads, error);
    case MXM: return edge->mxm(context, s->matrix, 0, e0, y, out, threads, error);
    case MXM_TRANSPOSED: return edge->mxm(context, s->matrix, transposed, e0, x, out, threads, error);
    case SUM: return edge->mxm(context, s->matrix, 0, e0, NULL, out, threads, error);
    default: return edge->mxm(context, s->matrix, transposed, e0, NULL, out, threads, error);
    }
}

/* The expected result of an operator, as an array without gaps. The caller frees it. */
static double *edge_expect(const struct scene *s, enum op op)
{
    const graft_csr   *a = &s->a.csr;
    const graft_dense *out = &s->out[op].view, *x = &s->rows.view, *y = &s->cols.view, *w = &s->edges[0].view;
    double            *expected = oracle_new(out->n_rows * out->n_cols, sizeof *expected);

    switch (op) {
    case GATHER: oracle_gather_rows(x, &s->index, expected); break;
    case ADD:
    case INDEXED: oracle_index_add(&s->picked.view, &s->index, out, expected); break;
    case SDDMM: oracle_sddmm(a, x, y, s->shape.heads, expected); break;
    case SOFTMAX: oracle_edge_softmax(a, w, expected); break;
    case SOFTMAX_BACKWARD: oracle_edge_softmax_backward(a, w, &s->edges[1].view, expected); break;
    case MXM: oracle_edge_mxm(a, 0, w, y, s->width, expected); break;
    case MXM_TRANSPOSED: oracle_edge_mxm(a, 1, w, x, s->width, expected); break;
    case SUM: oracle_edge_mxm(a, 0, w, NULL, s->shape.heads, expected); break;
    default: oracle_edge_mxm(a, 1, w, NULL, s->shape.heads, expected);
    }
    return expected;
}

/* Whether an element is right. Exact numbers must be equal, except for results of exponentials. */
static int edge_agrees(const struct scene *s, enum op op, double found, double expected)
{
    const double unit = s->shape.dtype == GRAFT_F32 ? 1e-6 : 1e-14;

    if (found == expected || (isnan(found) && isnan(expected))) return 1;
    return op == SOFTMAX && fabs(found - expected) <= unit * expected;
}

static int inputs_are_untouched(const struct scene *s)
{
    return block_is_untouched(&s->index_block) && block_is_untouched(&s->rows.block) &&
           block_is_untouched(&s->cols.block) && block_is_untouched(&s->picked.block) &&
           block_is_untouched(&s->edges[0].block) && block_is_untouched(&s->edges[1].block);
}

/* Compare the output with the expected result, and all other bytes with their copies. The result is NULL or a sentence
 * in static memory. */
static const char *differs(const struct scene *s, enum op op, const double *expected)
{
    static char        text[128];
    const graft_dense *out = &s->out[op].view;

    for (int64_t at = 0; at < out->n_rows * out->n_cols; at++) {
        const double found = oracle_element(out, at / out->n_cols, at % out->n_cols);
        if (edge_agrees(s, op, found, expected[at])) continue;
        snprintf(text, sizeof text, "out(%lld,%lld) is %.17g, expected %.17g", (long long)(at / out->n_cols),
                 (long long)(at % out->n_cols), found, expected[at]);
        return text;
    }
    if (!block_gaps_are_untouched(&s->out[op].block, out->n_rows, out->n_cols, out->stride, sample_bytes(out->dtype)))
        return "bytes around or between the rows of out have changed";
    return inputs_are_untouched(s) ? NULL : "an operand has changed";
}

static void restore(struct block *block)
{
    memcpy(block->memory, block->before, block->bytes);
}

/* Run one operator with `threads` threads. The result is NULL or a sentence. */
static const char *try_op(struct scene *s, enum op op, int32_t threads)
{
    static graft_error error;
    double            *expected = edge_expect(s, op);
    const char        *fault = NULL;

    error = GRAFT_INIT(graft_error);
    restore(&s->out[op].block);
    if (run_op(s, op, &s->out[op].view, threads, &error) != GRAFT_OK) fault = error.message;
    else fault = differs(s, op, expected);
    free(expected);
    return fault;
}

#endif
