/* Checks what the context, graft.mxm/1 and graft.edge/1 must refuse. Each call gets arguments that it cannot use, and
 * must return the status that the header documents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

enum { WIDTH = 3, ENTRIES = N * N };

static const char *context_calls(const void *arg)
{
    graft_option       option = GRAFT_INIT(graft_option);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.api.set(NULL, "lr", "1", &error));
    REFUSED(GRAFT_ERR_ARG, s.api.set(s.context, NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.set(s.context, NULL, NULL, NULL));
    REFUSED(GRAFT_ERR_ARG, s.api.option_info(NULL, 0, &option, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.option_info(s.context, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.module_info(NULL, 0, &entry, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.module_info(s.context, 0, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, -1, &entry, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, INT32_MAX, &entry, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, INT32_MIN, &entry, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.load_module(NULL, "x.so", &error));
    REFUSED(GRAFT_ERR_ARG, s.api.load_module(s.context, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.load_module(s.context, "", &error));
    s.api.close(NULL);
    s.api.get_interface(NULL, GRAFT_MXM_ID);
    return end_of_group();
}

static const char *matrix_calls(const void *arg)
{
    static const int64_t rows[] = { 0, 2, 3 }, falling[] = { 0, 3, 2 }, late[] = { 1, 2, 3 }, under[] = { 0, 1, -1 };
    static const int32_t cols[] = { 0, 1, 2 }, high[] = { 0, 3, 1 }, low[] = { 0, 1, -1 };
    static const float   values[] = { 1, 2, 3 }, odd[] = { 1, 2, (float)NAN };
    static const double  wide[] = { 1, (double)INFINITY, 3 };
    const graft_csr      good = { sizeof good, GRAFT_I32, GRAFT_F32, 0, 2, 3, rows, cols, values, NULL };
    graft_csr            bad;
    graft_matrix        *matrix = NULL;

    (void)arg;
#define BAD(status, field, value)                                                                                      \
    (bad = good, bad.field = (value), REFUSED(status, s.mxm->matrix_create(s.context, &bad, 0, &matrix, &error)))
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(NULL, &good, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(s.context, NULL, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(s.context, &good, 0, NULL, &error));
    BAD(GRAFT_ERR_ARG, size, 0);
    BAD(GRAFT_ERR_ARG, index_type, 0);
    BAD(GRAFT_ERR_ARG, index_type, GRAFT_F32);
    BAD(GRAFT_ERR_ARG, value_type, GRAFT_I32);
    BAD(GRAFT_ERR_ARG, value_type, 0);
    BAD(GRAFT_ERR_ARG, value_type, INT32_MIN);
    BAD(GRAFT_ERR_ARG, n_rows, -1);
    BAD(GRAFT_ERR_ARG, n_cols, -1);
    BAD(GRAFT_ERR_ARG, n_rows, INT64_MIN);
    BAD(GRAFT_ERR_ARG, row_ptr, NULL);
    BAD(GRAFT_ERR_ARG, col_idx, NULL);
    BAD(GRAFT_ERR_FORMAT, row_ptr, falling);
    BAD(GRAFT_ERR_FORMAT, row_ptr, late);
    BAD(GRAFT_ERR_FORMAT, row_ptr, under);
    BAD(GRAFT_ERR_FORMAT, col_idx, high);
    BAD(GRAFT_ERR_FORMAT, col_idx, low);
    BAD(GRAFT_ERR_FORMAT, values, odd);
    bad = good;
    bad.value_type = GRAFT_F64;
    bad.values = wide;
    REFUSED(GRAFT_ERR_FORMAT, s.mxm->matrix_create(s.context, &bad, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(s.context, NULL, &matrix, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &good, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(s.context, matrix, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(NULL, matrix, &matrix, &error));
    s.mxm->matrix_destroy(matrix);
    s.mxm->matrix_destroy(NULL);
    s.mxm->matrix_destroy(NULL);
    if (s.mxm->matrix_bytes(NULL) != 0) watch_blame("matrix_bytes(NULL) is not 0");
    return end_of_group();
#undef BAD
}

/* Arguments of a legal product. */
static struct product {
    float          b[N][WIDTH], c[N][WIDTH], scale[N];
    int32_t        winner[N][WIDTH];
    uint8_t        present[N][WIDTH];
    double         times[3];
    graft_dense    dense_b, dense_c;
    graft_mask     mask;
    graft_mxm_args args;
} p;

static void arguments_mxm_product_init(graft_matrix *matrix)
{
    p = (struct product){ .mask = GRAFT_INIT(graft_mask), .args = GRAFT_INIT(graft_mxm_args) };
    p.dense_b = (graft_dense){ sizeof p.dense_b, GRAFT_F32, N, WIDTH, WIDTH, p.b };
    p.dense_c = (graft_dense){ sizeof p.dense_c, GRAFT_F32, N, WIDTH, WIDTH, p.c };
    p.mask.kind = GRAFT_MASK_BYTES;
    p.mask.stride = WIDTH;
    p.mask.present = &p.present[0][0];
    p.args.semiring = GRAFT_MAX_SECOND;
    p.args.a = matrix;
    p.args.b = &p.dense_b;
    p.args.c = &p.dense_c;
    p.args.mask = &p.mask;
    p.args.winner = p.winner;
    p.args.winner_stride = WIDTH;
}

/* Expect run() and explain() to return the same status when one field of the product is changed. */
#define BAD(field, value)                                                                                              \
    do {                                                                                                               \
        arguments_mxm_product_init(matrix);                                                                            \
        p.field = (value);                                                                                             \
        snprintf(doing, DOING, "run with %s = %s", #field, #value);                                                    \
        arguments_judge(GRAFT_ERR_ARG, s.mxm->run(s.context, &p.args, &error));                                        \
        arguments_judge(GRAFT_ERR_ARG, s.mxm->explain(s.context, &p.args, text, 64, &error));                          \
    } while (0)

static void bad_products(graft_matrix *matrix, char text[64])
{
    BAD(args.size, 0);
    BAD(args.semiring, 0);
    BAD(args.semiring, 7);
    BAD(args.semiring, -1);
    BAD(args.semiring, GRAFT_PLUS_TIMES); /* a sum has no winning entry */
    BAD(args.flags, 4u);
    BAD(args.flags, UINT32_MAX);
    BAD(args.a, NULL);
    BAD(args.b, NULL);
    BAD(args.c, NULL);
    BAD(args.winner_stride, WIDTH - 1);
    BAD(args.winner_stride, -1);
    BAD(args.winner, p.c);
    BAD(args.winner, p.b);
    BAD(args.times, p.times); /* an array of times needs a number of threads */
    BAD(args.rows_arg, &p);   /* a callback's argument needs a callback */
    BAD(mask.size, 4);
    BAD(mask.kind, 0);
    BAD(mask.kind, 4);
    BAD(mask.flags, 4u);
    BAD(mask.stride, WIDTH - 1);
    BAD(mask.stride, -WIDTH);
}

static void bad_operands(graft_matrix *matrix, char text[64])
{
    BAD(dense_b.size, 0);
    BAD(dense_b.dtype, GRAFT_F64);
    BAD(dense_b.dtype, GRAFT_I32);
    BAD(dense_b.n_rows, N - 1);
    BAD(dense_b.n_rows, -1);
    BAD(dense_b.n_cols, WIDTH + 1);
    BAD(dense_b.stride, WIDTH - 1);
    BAD(dense_b.stride, -WIDTH);
    BAD(dense_b.data, NULL);
    BAD(dense_b.data, p.c);
    BAD(dense_b.data, (char *)p.c + sizeof p.c - 4);
    BAD(dense_c.size, 7);
    BAD(dense_c.dtype, 0);
    BAD(dense_c.n_rows, N + 1);
    BAD(dense_c.n_cols, 0);
    BAD(dense_c.stride, 0);
    BAD(dense_c.data, NULL);
    /* These strides are so large that no array fits into the address space. */
    BAD(dense_b.stride, INT64_MAX);
    BAD(dense_c.stride, INT64_MAX / 2);
    BAD(args.winner_stride, INT64_MAX);
    BAD(mask.stride, INT64_MAX);
}
#undef BAD

static const char *product_calls(const void *arg)
{
    void (*const bad)(graft_matrix *, char *) = *(void (*const *)(graft_matrix *, char *))arg;
    graft_matrix *matrix = NULL;
    char          text[64];

    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    arguments_mxm_product_init(matrix);
    REFUSED(GRAFT_OK, s.mxm->run(s.context, &p.args, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->run(NULL, &p.args, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->run(s.context, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(NULL, NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(s.context, NULL, NULL, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(s.context, NULL, text, 0, &error));
    REFUSED(GRAFT_OK, s.mxm->explain(s.context, NULL, text, 1, &error));
    if (text[0] != '\0') watch_blame("a text of capacity 1 is not cut");
    REFUSED(GRAFT_OK, s.api.set(s.context, "mxm.kernel", "refference", &error));
    REFUSED(GRAFT_ERR_OPTION, s.mxm->run(s.context, &p.args, &error));
    if (strstr(error.message, "'reference'") == NULL) watch_blame("no nearest kernel in: %s", error.message);
    REFUSED(GRAFT_OK, s.api.set(s.context, "mxm.kernel", "auto", &error));
    bad(matrix, text);
    s.mxm->matrix_destroy(matrix);
    return end_of_group();
}

/* Check in the same way that illegal epilogues are refused. */
static const char *epilogue_calls(const void *arg)
{
    static uint8_t bits[N];
    static float   bias[WIDTH];
    graft_dense    residual;
    graft_epilogue epilogue;
    graft_matrix  *matrix = NULL;

    (void)arg;
    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
#define GOOD                                                                                                           \
    arguments_mxm_product_init(matrix);                                                                                \
    p.args.semiring = GRAFT_PLUS_SECOND;                                                                               \
    p.args.winner = NULL;                                                                                              \
    residual = p.dense_c;                                                                                              \
    epilogue = (graft_epilogue){                                                                                       \
        .size = sizeof epilogue, .bias = bias, .residual = &residual, .dropout = 0.5, .bits = bits, .bits_stride = 1   \
    };                                                                                                                 \
    p.args.epilogue = &epilogue
#define BAD(field, value)                                                                                              \
    GOOD;                                                                                                              \
    field = (value);                                                                                                   \
    snprintf(doing, DOING, "run with %s = %s", #field, #value);                                                        \
    arguments_judge(GRAFT_ERR_ARG, s.mxm->run(s.context, &p.args, &error))
    GOOD;
    REFUSED(GRAFT_OK, s.mxm->run(s.context, &p.args, &error));
    BAD(epilogue.size, 0);
    BAD(epilogue.flags, 0x80u);
    BAD(epilogue.dropout, 1);
    BAD(epilogue.dropout, -0.25);
    BAD(epilogue.dropout, (double)NAN);
    BAD(epilogue.bits_stride, 0);
    BAD(epilogue.bits_stride, INT64_MAX);
    BAD(residual.size, 0);
    BAD(residual.dtype, GRAFT_F64);
    BAD(residual.n_rows, N + 1);
    BAD(residual.n_cols, WIDTH - 1);
    BAD(residual.stride, WIDTH - 1);
    BAD(residual.data, NULL);
    BAD(residual.data, (float *)p.c + 1); /* the residual may be C itself, but not overlap it */
#undef BAD
#undef GOOD
    s.mxm->matrix_destroy(matrix);
    return end_of_group();
}

static const char *convert_calls(const void *arg)
{
    /* Arrays have two or four times the described length, because refused arguments may claim a wider type, and the
     * wrapper reads the whole arrays. */
    static float      wide[2 * N][WIDTH];
    static uint16_t   half[4 * N][WIDTH];
    const graft_dense from = { sizeof from, GRAFT_F32, N, WIDTH, WIDTH, wide };
    const graft_dense to = { sizeof to, GRAFT_BF16, N, WIDTH, WIDTH, half };
    graft_dense       bad;

    (void)arg;
#define BAD(field, value)                                                                                              \
    (bad = to, bad.field = (value), REFUSED(GRAFT_ERR_ARG, s.mxm->convert(s.context, &from, &bad, &error)))
    REFUSED(GRAFT_OK, s.mxm->convert(s.context, &from, &to, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->convert(NULL, &from, &to, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->convert(s.context, NULL, &to, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->convert(s.context, &from, NULL, &error));
    BAD(size, 0);
    BAD(dtype, GRAFT_F32);
    BAD(dtype, GRAFT_F64);
    BAD(dtype, GRAFT_I32);
    BAD(n_rows, N - 1);
    BAD(n_rows, -1);
    BAD(n_cols, WIDTH + 1);
    BAD(stride, WIDTH - 1);
    BAD(stride, INT64_MAX);
    BAD(data, NULL);
    BAD(data, wide);
#undef BAD
    return end_of_group();
}

static const char *values_calls(const void *arg)
{
    static const int64_t rows[] = { 0, 1, 2 };
    static const int32_t cols[] = { 0, 1 };
    static const float   good[] = { 1, 2 }, bad[] = { 1, (float)NAN };
    const graft_csr      plain = { sizeof plain, GRAFT_I32, 0, 0, 2, 2, rows, cols, NULL, NULL };
    const graft_csr      valued = { sizeof valued, GRAFT_I32, GRAFT_F32, 0, 2, 2, rows, cols, good, NULL };
    graft_matrix        *ones = NULL, *matrix = NULL, *transpose = NULL, *other = NULL;

    (void)arg;
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &plain, 0, &ones, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &valued, 0, &matrix, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &set.graph.csr, 0, &other, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_transpose(s.context, matrix, &transpose, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_update_values(s.context, matrix, good, NULL, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_update_values(s.context, transpose, good, NULL, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_update_values(s.context, transpose, NULL, matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(NULL, matrix, good, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, NULL, good, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, matrix, NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, transpose, good, matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, matrix, NULL, transpose, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, transpose, NULL, other, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, transpose, NULL, transpose, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_update_values(s.context, ones, good, NULL, &error));
    REFUSED(GRAFT_ERR_FORMAT, s.mxm->matrix_update_values(s.context, matrix, bad, NULL, &error));
    s.mxm->matrix_destroy(transpose);
    s.mxm->matrix_destroy(matrix);
    s.mxm->matrix_destroy(ones);
    s.mxm->matrix_destroy(other);
    return end_of_group();
}

static const char *order_calls(const void *arg)
{
    static const int64_t rows[] = { 0, 1, 1 };
    static const int32_t cols[] = { 2 };
    const graft_csr      oblong = { sizeof oblong, GRAFT_I32, 0, 0, 2, 3, rows, cols, NULL, NULL };
    graft_matrix        *matrix = NULL, *other = NULL, *permuted = NULL;
    int64_t              order[N], twice[N], high[N];

    (void)arg;
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &oblong, 0, &other, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_order(NULL, matrix, "rcm", order, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_order(s.context, NULL, "rcm", order, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_order(s.context, matrix, NULL, order, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_order(s.context, matrix, "rcm", NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_order(s.context, other, "rcm", order, &error));
    REFUSED(GRAFT_ERR_OPTION, s.mxm->matrix_order(s.context, matrix, "rmc", order, &error));
    REFUSED(GRAFT_ERR_OPTION, s.mxm->matrix_order(s.context, matrix, "", order, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_order(s.context, matrix, "degree", order, &error));
    memcpy(twice, order, sizeof order);
    memcpy(high, order, sizeof order);
    twice[1] = twice[N - 1];
    high[N - 1] = N;
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(NULL, matrix, order, &permuted, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, NULL, order, &permuted, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, matrix, NULL, &permuted, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, matrix, order, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, other, order, &permuted, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, matrix, twice, &permuted, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, matrix, high, &permuted, &error));
    high[N - 1] = -1;
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_permute(s.context, matrix, high, &permuted, &error));
    s.mxm->matrix_destroy(matrix);
    s.mxm->matrix_destroy(other);
    return end_of_group();
}

/* Operands of edge operators with two heads that fit the sample graph. */
static struct edge_operands {
    float       x[N][4], y[N][4], s[ENTRIES][2], w[ENTRIES][2];
    graft_dense dense_x, dense_y, dense_s, dense_w;
    int32_t     numbers[3];
    graft_index index;
    graft_dense three;
} e;

static void edge_init(void)
{
    const int64_t entries = set.graph.csr.row_ptr[N];

    e = (struct edge_operands){ .numbers = { 0, N - 1, 0 } };
    e.dense_x = (graft_dense){ sizeof e.dense_x, GRAFT_F32, N, 4, 4, e.x };
    e.dense_y = (graft_dense){ sizeof e.dense_y, GRAFT_F32, N, 4, 4, e.y };
    e.dense_s = (graft_dense){ sizeof e.dense_s, GRAFT_F32, entries, 2, 2, e.s };
    e.dense_w = (graft_dense){ sizeof e.dense_w, GRAFT_F32, entries, 2, 2, e.w };
    e.index = (graft_index){ sizeof e.index, GRAFT_I32, 3, e.numbers };
    e.three = (graft_dense){ sizeof e.three, GRAFT_F32, 3, 4, 4, e.s };
}

/* Call all operators with the operands in `e`. If `bad` is not NULL, the operators that use it must fail and the others
 * must succeed. */
static void edge_with(graft_matrix *matrix, const graft_dense *bad, const char *what)
{
    int32_t rc;

#define TRIED(uses, call)                                                                                              \
    snprintf(doing, DOING, "%s with %s", #call, what);                                                                 \
    rc = (call);                                                                                                       \
    arguments_judge(bad != NULL && (uses) ? GRAFT_ERR_ARG : GRAFT_OK, rc)
    TRIED(bad != &e.dense_w, s.edge->sddmm(s.context, matrix, &e.dense_x, &e.dense_y, &e.dense_s, 0, &error));
    TRIED(bad == &e.dense_s || bad == &e.dense_w,
          s.edge->softmax(s.context, matrix, &e.dense_s, &e.dense_w, 0, &error));
    TRIED(bad != &e.dense_s, s.edge->mxm(s.context, matrix, 0, &e.dense_w, &e.dense_y, &e.dense_x, 0, &error));
    TRIED(bad != &e.dense_s,
          s.edge->mxm(s.context, matrix, GRAFT_EDGE_TRANSPOSE, &e.dense_w, &e.dense_x, &e.dense_y, 0, &error));
    TRIED(bad == &e.dense_s || bad == &e.dense_w,
          s.edge->softmax_backward(s.context, matrix, &e.dense_w, &e.dense_s, &e.dense_s, 0, &error));
    TRIED(bad == &e.dense_x, s.edge->gather_rows(s.context, &e.dense_x, &e.index, &e.three, 0, &error));
    TRIED(bad == &e.dense_x, s.edge->index_add(s.context, &e.three, &e.index, &e.dense_x, 0, &error));
#undef TRIED
}

static const char *edge_calls(const void *arg)
{
    graft_dense *const operands[] = { &e.dense_x, &e.dense_y, &e.dense_s, &e.dense_w };
    graft_matrix      *matrix = NULL;

    (void)arg;
    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    edge_init();
    edge_with(matrix, NULL, "good operands");
    for (size_t i = 0; i < NUMBER(operands); i++) {
#define BAD(field, value)                                                                                              \
    (edge_init(), operands[i]->field = (value), edge_with(matrix, operands[i], #field " = " #value))
        BAD(size, 0);
        BAD(dtype, GRAFT_BF16);
        BAD(dtype, GRAFT_I32);
        BAD(dtype, GRAFT_F64);
        BAD(n_rows, operands[i]->n_rows - 1);
        BAD(n_rows, -1);
        BAD(n_cols, 3);
        BAD(n_cols, 0);
        BAD(stride, 1);
        BAD(stride, -4);
        BAD(stride, INT64_MAX);
        BAD(data, NULL);
#undef BAD
    }
    s.mxm->matrix_destroy(matrix);
    return end_of_group();
}

static const char *edge_nulls(const void *arg)
{
    graft_matrix *matrix = NULL, *made = NULL;

    (void)arg;
    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    edge_init();
    REFUSED(GRAFT_ERR_ARG, s.edge->sddmm(NULL, matrix, &e.dense_x, &e.dense_y, &e.dense_s, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->sddmm(s.context, NULL, &e.dense_x, &e.dense_y, &e.dense_s, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->sddmm(s.context, matrix, NULL, &e.dense_y, &e.dense_s, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->sddmm(s.context, matrix, &e.dense_x, &e.dense_y, &e.dense_x, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->softmax(s.context, matrix, &e.dense_s, NULL, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->softmax_backward(s.context, matrix, NULL, NULL, NULL, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->mxm(s.context, matrix, 2u, &e.dense_w, &e.dense_y, &e.dense_x, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->mxm(s.context, matrix, 0, &e.dense_w, &e.dense_y, &e.dense_y, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->mxm(s.context, NULL, 0, &e.dense_w, &e.dense_y, &e.dense_x, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->gather_rows(s.context, &e.dense_x, NULL, &e.three, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->gather_rows(s.context, &e.dense_x, &e.index, &e.dense_x, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_add(NULL, &e.three, &e.index, &e.dense_x, 0, &error));
    REFUSED(GRAFT_OK, s.edge->index_add(s.context, &e.three, &e.index, &e.dense_x, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(NULL, &e.index, N, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(s.context, NULL, N, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(s.context, &e.index, N, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(s.context, &e.index, -1, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(s.context, &e.index, INT64_MAX, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.edge->index_matrix(s.context, &e.index, 0, &made, &error));
#define BAD(field, value)                                                                                              \
    (edge_init(), e.field = (value),                                                                                   \
     REFUSED(GRAFT_ERR_ARG, s.edge->gather_rows(s.context, &e.dense_x, &e.index, &e.three, 0, &error)),                \
     REFUSED(GRAFT_ERR_ARG, s.edge->index_add(s.context, &e.three, &e.index, &e.dense_x, 0, &error)))
    BAD(numbers[1], N);
    BAD(numbers[2], -1);
    BAD(numbers[0], INT32_MIN);
    BAD(index.size, 0);
    BAD(index.index_type, GRAFT_F32);
    BAD(index.count, -1);
    BAD(index.count, 2);
    BAD(index.count, INT64_MAX);
    BAD(index.data, NULL);
#undef BAD
    s.mxm->matrix_destroy(matrix);
    return end_of_group();
}

static const char *another_context(const void *arg)
{
    struct subject other;
    graft_matrix  *matrix = NULL;

    (void)arg;
    if (subject_open(&other, &error) < 0) return error.message;
    if (other.mxm->matrix_create(other.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    arguments_mxm_product_init(matrix);
    REFUSED(GRAFT_ERR_STATE, s.mxm->run(s.context, &p.args, &error));
    other.mxm->matrix_destroy(matrix);
    subject_close(&other);
    return end_of_group();
}

/* The number of threads is an upper limit, so a host may ask for more threads than can exist. */
static const char *many_threads(const void *arg)
{
    graft_matrix *matrix = NULL;

    p.args.threads = *(const int32_t *)arg;
    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    arguments_mxm_product_init(matrix);
    p.args.threads = *(const int32_t *)arg;
    REFUSED(GRAFT_OK, s.mxm->run(s.context, &p.args, &error));
    s.mxm->matrix_destroy(matrix);
    return end_of_group();
}

int main(void)
{
    static void (*const products)(graft_matrix *, char *) = bad_products;
    static void (*const operands)(graft_matrix *, char *) = bad_operands;
    static const int32_t      negative = INT32_MIN, thousand = 1000, most = INT32_MAX;
    static const struct group groups[] = {
        { "calls of the context", context_calls, NULL },
        { "matrix_create, matrix_transpose, matrix_destroy", matrix_calls, NULL },
        { "matrix_order, matrix_permute", order_calls, NULL },
        { "matrix_update_values", values_calls, NULL },
        { "run and explain: arguments and masks", product_calls, &products },
        { "run and explain: operands", product_calls, &operands },
        { "run: epilogues", epilogue_calls, NULL },
        { "run with a matrix of another context", another_context, NULL },
        { "run with a negative number of threads", many_threads, &negative },
        { "run with 1000 threads", many_threads, &thousand },
        { "run with 2^31 - 1 threads", many_threads, &most },
        { "convert", convert_calls, NULL },
        { "graft.edge/1: operands", edge_calls, NULL },
        { "graft.edge/1: null pointers, overlaps, numbers of rows", edge_nulls, NULL },
    };

    return run_groups(groups, NUMBER(groups));
}
