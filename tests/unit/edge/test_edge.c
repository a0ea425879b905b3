/* Checks graft.edge/1: every operator against the oracle, in place, with several threads, and the arguments that must
 * be refused. A wrong element, a changed byte outside of the output, or a missing error fails.
 * SPDX-License-Identifier: Apache-2.0 */
#include "edge_scene.h"
#include "graft_load.h"
#include "harness/effort.h"

#include <fenv.h>
#include <float.h>

static const graft_api *api;

static void test_edge_shapes(graft_dtype dtype, graft_dtype index_type)
{
    const int64_t columns[] = { 1, 15, 16, 17, 33 }, heads[] = { 1, 2, 4 };
    const char   *first[OPS] = { NULL };

    for (int which = 0; which < 15; which++) {
        const struct shape shape = { 41, 29, heads[which % 3], columns[which / 3], index_type, dtype, 1 };
        struct scene       scene;

        edge_scene_init(&scene, &shape);
        for (int op = 0; op < OPS; op++) {
            const char *fault = try_op(&scene, (enum op)op, 1);
            if (fault == NULL || first[op] != NULL) continue;
            first[op] = fault;
            diag("%lld heads of %lld columns: %s", (long long)shape.heads, (long long)shape.columns, fault);
        }
        edge_scene_fini(&scene);
    }
    for (int op = 0; op < OPS; op++)
        ok(first[op] == NULL, "%s, %s, %s-bit columns: the result equals the oracle", op_name[op],
           dtype == GRAFT_F32 ? "float" : "double", index_type == GRAFT_I32 ? "32" : "64");
}

/* Matrices without rows, columns, entries or width. */
static void test_empty_shapes(void)
{
    const int64_t sizes[][3] = { { 0, 5, 3 }, { 7, 0, 3 }, { 0, 0, 17 }, { 7, 5, 0 }, { 1, 1, 1 } };

    for (int which = 0; which < 10; which++) {
        const int64_t     *size = sizes[which / 2];
        const graft_dtype  dtype = which % 2 ? GRAFT_F64 : GRAFT_F32;
        const struct shape shape = { size[0], size[1], 2, size[2], GRAFT_I32, dtype, 1 };
        struct scene       scene;
        const char        *fault = NULL;

        edge_scene_init(&scene, &shape);
        for (int op = 0; op < OPS && fault == NULL; op++) fault = try_op(&scene, (enum op)op, 3);
        ok_or(fault == NULL, fault, "%lld x %lld, 2 heads of %lld columns, dtype %d", (long long)shape.m,
              (long long)shape.k, (long long)shape.columns, dtype);
        edge_scene_fini(&scene);
    }
}

/* Numbers with rounding errors, so that another order of additions would show, in shapes large enough for five
 * threads. */
static void test_edge_threads(const struct shape *shape, const char *what)
{
    const int32_t threads[] = { 2, 3, 5 };
    struct scene  s;

    edge_scene_init(&s, shape);
    for (int op = 0; op < OPS; op++) {
        struct block  *out = &s.out[op].block;
        unsigned char *alone = oracle_new((int64_t)out->bytes, 1);
        int            equal = run_op(&s, (enum op)op, &s.out[op].view, 1, NULL) == GRAFT_OK;

        memcpy(alone, out->memory, out->bytes);
        for (int i = 0; i < 3; i++) {
            restore(out);
            equal = equal && run_op(&s, (enum op)op, &s.out[op].view, threads[i], NULL) == GRAFT_OK &&
                    memcmp(alone, out->memory, out->bytes) == 0;
        }
        ok(equal && memcmp(alone, out->before, out->bytes) != 0,
           "%s, %s: 1, 2, 3 and 5 threads give bitwise identical results", op_name[op], what);
        free(alone);
    }
    ok(inputs_are_untouched(&s), "operators with several threads leave the operands unchanged");
    edge_scene_fini(&s);
}

/* index_add() must add in the order of i, in float, bitwise like a plain loop. */
static void test_edge_order(int64_t rows)
{
    const struct shape shape = { rows, 20, 1, 35, GRAFT_I64, GRAFT_F32, 0 };
    struct scene       s;
    graft_dense       *out = &s.out[ADD].view;
    float             *sum = oracle_new(shape.m * shape.columns, sizeof *sum);
    int                equal;

    edge_scene_init(&s, &shape);
    for (int64_t at = 0; at < shape.m * s.width; at++) sum[at] = (float)oracle_element(out, at / s.width, at % s.width);
    for (int64_t i = 0; i < s.index.count; i++)
        for (int64_t c = 0; c < s.width; c++)
            sum[((const int64_t *)s.index.data)[i] * s.width + c] += (float)oracle_element(&s.picked.view, i, c);
    equal = run_op(&s, ADD, out, 3, NULL) == GRAFT_OK;
    for (int64_t at = 0; at < shape.m * s.width; at++)
        equal = equal && sum[at] == (float)oracle_element(out, at / s.width, at % s.width);
    ok(equal, "index_add, %lld rows: each sum is bitwise identical to additions in the order of i", (long long)rows);
    free(sum);
    edge_scene_fini(&s);
}

/* The output may be one of the operands. */
static void test_in_place(graft_dtype dtype)
{
    const struct shape shape = { 41, 29, 3, 2, GRAFT_I32, dtype, 0 };
    struct scene       s;
    const char        *name = dtype == GRAFT_F32 ? "float" : "double";

    edge_scene_init(&s, &shape);
    for (int which = 0; which < 3; which++) {
        const enum op      op = which == 0 ? SOFTMAX : SOFTMAX_BACKWARD;
        struct operand    *place = &s.edges[which / 2]; /* the operand s, p or dp */
        const graft_dense *out = &s.out[op].view;
        int                equal = run_op(&s, op, out, 1, NULL) == GRAFT_OK;

        equal = equal && run_op(&s, op, &place->view, 1, NULL) == GRAFT_OK;
        for (int64_t at = 0; at < s.entries * shape.heads; at++)
            equal = equal && oracle_element(out, at / 3, at % 3) == oracle_element(&place->view, at / 3, at % 3);
        ok(equal && !block_is_untouched(&place->block),
           "%s, %s: a result in the place of operand %s is bitwise identical", op_name[op], name,
           which == 0   ? "s"
           : which == 1 ? "p"
                        : "dp");
        restore(&place->block);
    }
    edge_scene_fini(&s);
}

/* Scores of rows with three entries. Those of far_share are multiples of the largest float, and those of far_score are
 * the scores themselves. */
static const double far_share[][3] = {
    { 1, -1, 1 }, { -1, -1, -1 }, { -1, 1e-38, 2e-38 }, { 0.9, 0.6, -0.9 }, { -0.9, -1, -0.97 }
};
static const double far_score[][3] = { { 8388607, 8388606, 8388600 },
                                       { 16777216, 16777215, 0 },
                                       { -1e10, -1e10, -2e10 },
                                       { 0, -86.5, -1 },
                                       { 0, -99, -3e5 } };

enum { FAR_ROWS = 5, FAR_ENTRIES = 2 * 3 * FAR_ROWS, FAR_STRIDE = 5 };

/* How many numbers are not the softmax of the scores. */
static int count_wrong_softmax(const graft_dense *s, const graft_dense *p)
{
    int wrong = 0;

    for (int64_t at = 0; at < FAR_ENTRIES * s->n_cols; at++) {
        const int64_t entry = at / s->n_cols, head = at % s->n_cols, first = entry / 3 * 3;
        long double   sum = 0;

        for (int64_t e = first; e < first + 3; e++)
            sum += expl(fminl((long double)oracle_element(s, e, head) - (long double)oracle_element(s, entry, head),
                              1000)); /* 1 / exp(1000) is 0 in doubles too */
        wrong += !(fabs(oracle_element(p, entry, head) - (double)(1 / sum)) < 1e-6);
    }
    return wrong;
}

/* The softmax of finite scores whose differences overflow, or are small beside the scores, in three rounding modes. */
static void test_far_scores(graft_dtype dtype, int64_t heads, int64_t stride)
{
    static const int rounding[] = { FE_TONEAREST, FE_DOWNWARD, FE_UPWARD };
    const double     most = dtype == GRAFT_F32 ? (double)FLT_MAX : DBL_MAX;
    int64_t          row_ptr[2 * FAR_ROWS + 1];
    const int32_t    columns[FAR_ENTRIES] = { 0 };
    double           s[FAR_ENTRIES * FAR_STRIDE], p[FAR_ENTRIES * FAR_STRIDE];
    graft_csr        csr = GRAFT_INIT(graft_csr);
    graft_dense      score = { sizeof score, dtype, FAR_ENTRIES, heads, stride, s }, result = score;
    graft_matrix    *matrix = NULL;
    int32_t          rc;
    int              wrong = 0;

    csr.index_type = GRAFT_I32;
    csr.n_rows = 2 * FAR_ROWS;
    csr.n_cols = 1;
    csr.row_ptr = row_ptr;
    csr.col_idx = columns;
    result.data = p;
    for (int64_t r = 0; r <= 2 * FAR_ROWS; r++) row_ptr[r] = 3 * r;
    for (int64_t e = 0; e < FAR_ENTRIES; e++)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t row = e / 6, place = (e + h) % 3;

            sample_put(s, dtype, e * stride + h, e / 3 % 2 ? far_score[row][place] : far_share[row][place] * most);
        }
    rc = mxm->matrix_create(context, &csr, 0, &matrix, NULL);
    for (int mode = 0; mode < 3 && rc == GRAFT_OK; mode++) {
        fesetround(rounding[mode]);
        rc = edge->softmax(context, matrix, &score, &result, 1, NULL);
        fesetround(FE_TONEAREST);
        wrong += count_wrong_softmax(&score, &result);
    }
    ok(rc == GRAFT_OK && wrong == 0, "%s, %lld heads: softmax of scores that differ widely: %d wrong",
       dtype == GRAFT_F32 ? "float" : "double", (long long)heads, wrong);
    mxm->matrix_destroy(matrix);
}

/* Scores that would overflow, infinities and a NaN, in rows of three entries. */
static void test_special_scores(void)
{
    const int64_t row_ptr[] = { 0, 3, 6, 6, 9, 12 };
    const int32_t columns[12] = { 0 };
    float         s[12] = { 1000, 1001, 999, -INFINITY, 2, 2, 1, NAN, 1, -1e30f, -2e30f, -1e30f }, p[12];
    graft_csr     csr = GRAFT_INIT(graft_csr);
    graft_dense   score = GRAFT_INIT(graft_dense), result;
    graft_matrix *matrix = NULL;

    csr.index_type = GRAFT_I32;
    csr.n_rows = 5;
    csr.n_cols = 1;
    csr.row_ptr = row_ptr;
    csr.col_idx = columns;
    score.dtype = GRAFT_F32;
    score.n_rows = 12;
    score.n_cols = score.stride = 1;
    score.data = s;
    result = score;
    result.data = p;
    if (!ok(mxm->matrix_create(context, &csr, 0, &matrix, NULL) == GRAFT_OK &&
                edge->softmax(context, matrix, &score, &result, 0, NULL) == GRAFT_OK,
            "softmax accepts special scores"))
        return;
    ok(fabs((double)(p[0] + p[1] + p[2]) - 1) < 1e-6 && fabs((double)p[1] - 1 / (1 + exp(-1) + exp(-2))) < 1e-6,
       "softmax of large scores does not overflow");
    ok(p[3] == 0 && p[4] == 0.5f && p[5] == 0.5f, "softmax of minus infinity gives 0");
    ok(isnan(p[6]) && isnan(p[7]) && isnan(p[8]), "a NaN among the scores of a row makes this row NaN");
    ok(p[9] == 0.5f && p[10] == 0 && p[11] == 0.5f, "a NaN among the scores of a row changes no other row");
    mxm->matrix_destroy(matrix);
}

/* The map from a matrix to its transpose is made once, and its memory is reported. */
static void test_edge_bytes(graft_dtype index_type)
{
    const struct shape shape = { 41, 29, 1, 4, index_type, GRAFT_F32, 1 };
    struct scene       s;
    int64_t            before, once;

    edge_scene_init(&s, &shape);
    before = mxm->matrix_bytes(s.matrix);
    run_op(&s, MXM, &s.out[MXM].view, 1, NULL);
    ok(mxm->matrix_bytes(s.matrix) == before, "a product that is not transposed allocates no memory of the matrix");
    run_op(&s, MXM_TRANSPOSED, &s.out[MXM_TRANSPOSED].view, 1, NULL);
    once = mxm->matrix_bytes(s.matrix);
    run_op(&s, SUM_TRANSPOSED, &s.out[SUM_TRANSPOSED].view, 1, NULL);
    ok(once - before == 8 * (shape.k + 1) + s.entries * (8 + (int64_t)sample_bytes(index_type)) &&
           mxm->matrix_bytes(s.matrix) == once,
       "transposed products allocate %lld bytes of the matrix, only once", (long long)(once - before));
    edge_scene_fini(&s);
}

static int mentions(const char *message, const char *words)
{
    char        word[64];
    const char *end;

    for (const char *at = words; *at != '\0'; at = *end == '|' ? end + 1 : end) {
        end = at + strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)(end - at), at);
        if (strstr(message, word) == NULL) return 0;
    }
    return 1;
}

/* The scene before one of its arguments was made invalid. */
static struct scene good;

/* The operator must refuse the scene with this status and these words in its message, and write nothing. */
static void edge_refuse(struct scene *s, enum op op, const char *words, const char *what)
{
    graft_error   error = GRAFT_INIT(graft_error);
    const int32_t rc = run_op(s, op, &s->out[op].view, 2, &error);

    if (!ok(rc == GRAFT_ERR_ARG && mentions(error.message, words), "%s, %s: the operator refuses it", op_name[op],
            what))
        diag("%d: %s; it should mention %s", rc, error.message, words);
    *s = good;
    ok(inputs_are_untouched(s) && block_is_untouched(&s->out[op].block),
       "a refused call leaves operands and output unchanged");
}

static void test_bad_index(struct scene *s)
{
    int32_t *index = s->index_block.data;

    for (enum op op = GATHER; op <= ADD; op++) {
        index[7] = 41;
        index[9] = -3;
        block_keep(&s->index_block);
        edge_refuse(s, op, op == GATHER ? "index[7] is 41|x has 41 rows" : "index[7] is 41|out has 41 rows",
                    "a row too many");
        index[7] = 0;
        block_keep(&s->index_block);
        edge_refuse(s, op, "index[9] is -3|41 rows", "a negative row");
        index[9] = 0;
        block_keep(&s->index_block);
        s->index.count--;
        edge_refuse(s, op, op == GATHER ? "out is 85 x 6|84 x 6" : "x is 85 x 6|84 x 6", "a number too few");
        s->index.count = -1;
        edge_refuse(s, op, "-1", "less numbers than none");
        s->index.index_type = GRAFT_F32;
        edge_refuse(s, op, "index_type is 1", "numbers that are floats");
        s->index.data = NULL;
        edge_refuse(s, op, "index|null", "no numbers");
        s->index.size = 0;
        edge_refuse(s, op, "index|size", "an index without its size");
        s->index.data = s->out[op].view.data;
        edge_refuse(s, op, "out overlaps index", "the index in the place of out");
    }
    s->out[GATHER].view.data = s->rows.view.data;
    edge_refuse(s, GATHER, "out overlaps x", "out in the place of x");
    s->out[ADD].view.data = (char *)s->picked.view.data + 4;
    edge_refuse(s, ADD, "out overlaps x", "out that begins in x");
    s->rows.view.dtype = GRAFT_F64;
    edge_refuse(s, GATHER, "out is 85 x 6 of dtype 1|dtype 2", "another type");
    s->out[ADD].view.dtype = GRAFT_I32;
    edge_refuse(s, ADD, "out|dtype is 3", "an integer matrix");
    s->out[ADD].view.dtype = GRAFT_BF16;
    edge_refuse(s, ADD, "out|dtype is 6", "bfloat16");
    s->out[GATHER].view.n_cols--;
    edge_refuse(s, GATHER, "out is 85 x 5|85 x 6", "a column too few");
    s->out[GATHER].view.stride = 5;
    edge_refuse(s, GATHER, "out|stride 5", "a stride less than a row");
    s->out[GATHER].view.data = NULL;
    edge_refuse(s, GATHER, "out|null", "no memory for out");
}

/* A 64-bit index whose lower half is a legal row. */
static void test_bad_wide_index(void)
{
    const struct shape shape = { 41, 29, 2, 3, GRAFT_I64, GRAFT_F64, 1 };
    struct scene       s;

    edge_scene_init(&s, &shape);
    ((int64_t *)s.index_block.data)[84] = 1LL << 40;
    block_keep(&s.index_block);
    good = s;
    edge_refuse(&s, GATHER, "index[84] is 1099511627776", "a 64-bit row");
    edge_refuse(&s, ADD, "index[84] is 1099511627776", "a 64-bit row");
    edge_scene_fini(&s);
}

static void test_bad_edges(struct scene *s)
{
    for (enum op op = SDDMM; op < OPS; op++) {
        s->matrix = NULL;
        edge_refuse(s, op, "a is null", "no matrix");
        s->out[op].view.n_rows++;
        edge_refuse(s, op, "require", "a row too many");
        s->out[op].view.dtype = GRAFT_F64;
        edge_refuse(s, op, "require|dtype 1", "another type");
        s->out[op].view.size = 4;
        edge_refuse(s, op, "size", "out without its size");
        s->out[op].view.stride = INT64_MAX;
        edge_refuse(s, op, "stride", "an endless stride");
        if (op == SDDMM) continue;
        s->edges[0].view.n_rows--;
        edge_refuse(s, op, "require", "an entry too few");
        s->out[op].view.data = (char *)s->edges[0].view.data + 4;
        edge_refuse(s, op, "overlaps", "out that begins in an operand");
    }
    s->out[SDDMM].view.n_cols = 0;
    edge_refuse(s, SDDMM, "out has 0 columns|width of 6", "no heads");
    s->rows.view.n_cols = s->cols.view.n_cols = 5;
    edge_refuse(s, SDDMM, "out has 2 columns|width of 5", "2 heads of 5 columns");
    s->cols.view.n_rows--;
    edge_refuse(s, SDDMM, "y is 28 x 6|29 x 6", "a column of the matrix that y has not");
    s->rows.view.n_rows--;
    edge_refuse(s, SDDMM, "x is 40 x 6|41 x 6", "a row of the matrix that x has not");
    s->cols.view.data = s->out[SDDMM].view.data;
    edge_refuse(s, SDDMM, "out overlaps y", "y in the place of out");
    s->rows.view.data = s->out[SDDMM].view.data;
    edge_refuse(s, SDDMM, "out overlaps x", "x in the place of out");
    s->edges[1].view.n_cols--;
    edge_refuse(s, SOFTMAX_BACKWARD, "dp is|require", "a gradient of one head too few");
    s->edges[1].view.data = (char *)s->out[SOFTMAX_BACKWARD].view.data + 4;
    edge_refuse(s, SOFTMAX_BACKWARD, "ds overlaps dp", "dp that begins in ds");
    s->out[SOFTMAX].view.data = s->edges[0].view.data;
    s->out[SOFTMAX].view.stride = s->edges[0].view.stride + 1;
    edge_refuse(s, SOFTMAX, "p overlaps s", "p in the place of s with another stride");
    s->out[MXM].view.n_cols = s->cols.view.n_cols = 5;
    edge_refuse(s, MXM, "w has 2 columns|width of 5", "2 heads of 5 columns");
    s->cols.view.data = s->out[MXM].view.data;
    edge_refuse(s, MXM, "out overlaps y", "y in the place of out");
    s->cols.view.n_rows--;
    edge_refuse(s, MXM, "y is 28 x 6|29 x 6", "a column of the matrix that y has not");
    s->rows.view.n_rows--;
    edge_refuse(s, MXM_TRANSPOSED, "y is 40 x 6|41 x 6", "a row of the matrix that y has not");
    s->out[SUM].view.n_cols = 1;
    edge_refuse(s, SUM, "out is 41 x 1|41 x 2", "one column for two heads");
}

static void test_bad_calls(struct scene *s)
{
    const graft_api *other = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    graft_dense     *e = &s->edges[0].view, *out = &s->out[MXM].view;

    ok(edge->mxm(context, s->matrix, 2, e, &s->cols.view, out, 0, &error) == GRAFT_ERR_ARG &&
           mentions(error.message, "flags|0x2"),
       "an unknown flag is refused by mxm()");
    ok(edge->mxm(NULL, s->matrix, 0, e, &s->cols.view, out, 0, &error) == GRAFT_ERR_ARG &&
           edge->gather_rows(NULL, &s->rows.view, &s->index, &s->out[GATHER].view, 0, &error) == GRAFT_ERR_ARG,
       "a NULL context is refused by mxm() and gather_rows()");
    ok(edge->sddmm(context, s->matrix, NULL, e, e, 0, &error) == GRAFT_ERR_ARG && mentions(error.message, "x|null") &&
           edge->softmax(context, s->matrix, e, NULL, 0, &error) == GRAFT_ERR_ARG &&
           mentions(error.message, "p|null") &&
           edge->index_add(context, &s->picked.view, NULL, &s->out[ADD].view, 0, &error) == GRAFT_ERR_ARG &&
           mentions(error.message, "index|null") &&
           edge->index_matrix(context, &s->index, s->shape.m, NULL, &error) == GRAFT_ERR_ARG &&
           mentions(error.message, "matrix|null"),
       "an error about a NULL operand names the operand");
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &other, &error) == GRAFT_OK, "another context opens")) return;
    ok(edge->softmax(other->context, s->matrix, e, e, 0, &error) == GRAFT_ERR_STATE &&
           mentions(error.message, "another context") && strcmp(error.where, GRAFT_EDGE_ID " softmax") == 0,
       "softmax() refuses a matrix of another context");
    other->close(other->context);
    ok(inputs_are_untouched(s) && block_is_untouched(&s->out[MXM].block),
       "refused calls leave operands and output unchanged");
}

static void test_bad_input(void)
{
    const struct shape shape = { 41, 29, 2, 3, GRAFT_I32, GRAFT_F32, 1 };
    struct scene       s;

    edge_scene_init(&s, &shape);
    good = s;
    test_bad_index(&s);
    test_bad_edges(&s);
    test_bad_calls(&s);
    ok(try_op(&s, MXM_TRANSPOSED, INT32_MAX) == NULL,
       "after all refused calls a correct call runs on as many threads as it asks for");
    edge_scene_fini(&s);
}

int main(void)
{
    const struct shape wide = { 8000, 400, 4, 9, GRAFT_I32, GRAFT_F32, 0 };
    const struct shape narrow = { 40000, 30000, 2, 1, GRAFT_I64, GRAFT_F64, 0 };
    graft_error        error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    context = api->context;
    mxm = api->get_interface(context, GRAFT_MXM_ID);
    edge = api->get_interface(context, GRAFT_EDGE_ID);
    if (!ok(edge != NULL && edge->size >= sizeof *edge, "it has " GRAFT_EDGE_ID)) return done();
    test_edge_shapes(GRAFT_F32, GRAFT_I32);
    test_edge_shapes(GRAFT_F32, GRAFT_I64);
    test_edge_shapes(GRAFT_F64, GRAFT_I32);
    test_edge_shapes(GRAFT_F64, GRAFT_I64);
    test_empty_shapes();
    test_edge_threads(&wide, "36 columns, float");
    test_edge_threads(&narrow, "2 columns, double");
    test_edge_order(300);
    test_edge_order(9000); /* with so many rows the index is sorted */
    test_in_place(GRAFT_F32);
    test_in_place(GRAFT_F64);
    for (int i = 0; i < 2; i++) {
        const graft_dtype dtype = i == 0 ? GRAFT_F32 : GRAFT_F64;

        test_far_scores(dtype, 1, 1);
        test_far_scores(dtype, 4, 4);
        test_far_scores(dtype, 3, FAR_STRIDE);
    }
    if (!only_finite()) test_special_scores();
    test_edge_bytes(GRAFT_I32);
    test_edge_bytes(GRAFT_I64);
    test_bad_wide_index();
    test_bad_input();
    api->close(context);
    return done();
}
