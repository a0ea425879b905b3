/* Checks the parts of graft.mxm beside plain products: epilogues, bfloat16 rows, conversion, mxm.verify, and orders of
 * vertices. Products are compared with the oracle (judge/epilogue.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_mxm.h"
#include "harness/effort.h"
#include "harness/tap.h"
#include "judge/judge.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>

static void test_convert(void)
{
    float       from[8] = { 1, 1.00390625f, 1.01171875f, 3e38f, 3.4e38f, -0.0f, INFINITY, NAN }, back[8];
    uint16_t    to[8];
    graft_dense a = judge_dense_view(from, GRAFT_F32, 2, 4), b = judge_dense_view(to, GRAFT_BF16, 2, 4),
                c = judge_dense_view(back, GRAFT_F32, 2, 4);
    graft_error error = GRAFT_INIT(graft_error);

    ok(judge.mxm->convert(judge.context, &a, &b, &error) == GRAFT_OK &&
           judge.mxm->convert(judge.context, &b, &c, &error) == GRAFT_OK,
       "convert() from float to bfloat16 and back succeeds");
    ok(to[0] == 0x3F80 && to[1] == 0x3F80 && to[2] == 0x3F82,
       "convert() rounds ties to even: 1 + 1/256 down, 1 + 3/256 up");
    ok(to[4] == 0x7F80 && to[5] == 0x8000 && to[6] == 0x7F80,
       "convert() gives infinity for numbers that are too large, and keeps -0");
    ok(isnan(back[7]) && back[0] == 1, "convert() keeps a NaN");
    ok(judge.mxm->convert(judge.context, &a, &a, &error) == GRAFT_ERR_ARG, "convert() refuses float to float");
    b.n_rows = 1;
    ok(judge.mxm->convert(judge.context, &a, &b, &error) == GRAFT_ERR_ARG && strstr(error.message, "2 x 4") != NULL,
       "convert() refuses matrices of different shapes: %s", error.message);
}

static void test_epilogue_refusals(void)
{
    static uint8_t     room[JUDGE_M];
    struct sample      sample = { 3 };
    struct judge_scene s;
    graft_error        error = GRAFT_INIT(graft_error);

    judge_scene_init(&s, &sample, 16);
    s.epilogue.dropout = 1;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "dropout"), "%s",
       error.message);
    s.epilogue.dropout = (double)NAN;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG, "a dropout probability that is NaN is refused");
    s.epilogue.dropout = 0;
    s.epilogue.flags = 64;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "0x40"), "%s",
       error.message);
    s.epilogue.flags = 0;
    s.epilogue.bits = room;
    s.epilogue.bits_stride = 1;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "bits_stride"), "%s",
       error.message);
    s.epilogue.bits = NULL;
    s.residual.n_cols = 15;
    s.epilogue.residual = &s.residual;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "37 x 15"), "%s",
       error.message);
    s.residual = s.c;
    s.residual.data = (float *)s.c.data + 1;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "overlap"), "%s",
       error.message);
    s.args.epilogue = NULL;
    s.c.dtype = GRAFT_BF16;
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_ARG, "an output in bfloat16 is refused: %s",
       error.message);
    judge_scene_fini(&s);
}

static void test_verify(const char *wrong_kernel)
{
    struct sample      sample = { 5 };
    struct judge_scene s;
    graft_error        error = GRAFT_INIT(graft_error);

    judge_scene_init(&s, &sample, 17);
    s.args.epilogue = NULL;
    ok(judge.api->load_module(judge.context, wrong_kernel, &error) == GRAFT_OK, "a wrong kernel is loaded");
    judge.api->set(judge.context, "mxm.kernel", "wrong", &error);
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_OK,
       "without verification the results of a wrong kernel are accepted");
    judge.api->set(judge.context, "mxm.verify", "3", &error);
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_ERR_MODULE &&
           strstr(error.message, "but reference gives"),
       "with mxm.verify a wrong kernel is refused: %s", error.message);
    judge.api->set(judge.context, "mxm.kernel", "auto", &error);
    ok(judge.mxm->run(judge.context, &s.args, &error) == GRAFT_OK, "mxm.verify accepts the other kernels");
    judge.api->set(judge.context, "mxm.verify", "0", &error);
    judge_scene_fini(&s);
}

/* An order must be a permutation, and the product in it must be the same product. */
static void test_epilogue_order(const char *method)
{
    enum { N = 61, WIDTH = 9 };
    static float      x[N * WIDTH], y[N * WIDTH], placed_x[N * WIDTH], placed_y[N * WIDTH];
    struct sample     sample = { 11 };
    struct sample_csr a;
    graft_matrix     *matrix = NULL, *permuted = NULL;
    graft_dense       b = judge_dense_view(x, GRAFT_F32, N, WIDTH), c = judge_dense_view(y, GRAFT_F32, N, WIDTH);
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    int64_t           order[N];
    int               seen[N] = { 0 }, right = 1;

    sample_csr_init(&a, &sample, N, N, GRAFT_I64, GRAFT_F32, 0);
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)sample_real(&sample, -1, 1);
    judge.mxm->matrix_create(judge.context, &a.csr, 0, &matrix, NULL);
    if (!ok(judge.mxm->matrix_order(judge.context, matrix, method, order, NULL) == GRAFT_OK,
            "an order by %s is computed", method))
        return;
    for (int i = 0; i < N; i++) right &= order[i] >= 0 && order[i] < N && seen[order[i]]++ == 0;
    if (!ok(right, "the order by %s has every vertex once", method)) return;
    judge.mxm->matrix_permute(judge.context, matrix, order, &permuted, NULL);
    args.semiring = GRAFT_PLUS_TIMES;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    judge.mxm->run(judge.context, &args, NULL);
    for (int i = 0; i < N; i++) memcpy(placed_x + i * WIDTH, x + order[i] * WIDTH, WIDTH * sizeof *x);
    b.data = placed_x;
    c.data = placed_y;
    args.a = permuted;
    judge.mxm->run(judge.context, &args, NULL);
    for (int i = 0; i < N; i++) right &= memcmp(placed_y + i * WIDTH, y + order[i] * WIDTH, WIDTH * sizeof *y) == 0;
    ok(right, "a product in the order by %s is bitwise identical to the product in the original order", method);
    judge.mxm->matrix_destroy(permuted);
    judge.mxm->matrix_destroy(matrix);
    sample_csr_fini(&a);
}

/* In order rcm a path with shuffled names must become a band again. In order degree the largest degree comes first. */
static void test_what_orders_are(void)
{
    enum { N = 50 };
    int64_t       row_ptr[N + 1] = { 0 }, order[N], place[N], bandwidth = 0;
    int32_t       col_idx[2 * N], name[N];
    graft_csr     csr = GRAFT_INIT(graft_csr);
    graft_matrix *matrix = NULL;
    graft_error   error = GRAFT_INIT(graft_error);

    for (int i = 0; i < N; i++) name[i * 21 % N] = i; /* vertex name[v] is step v of the path */
    for (int v = 0, e = 0; v < N; v++) {
        if (name[v] > 0) col_idx[e++] = (name[v] - 1) * 21 % N;
        if (name[v] < N - 1) col_idx[e++] = (name[v] + 1) * 21 % N;
        row_ptr[v + 1] = e;
    }
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = N;
    csr.row_ptr = row_ptr;
    csr.col_idx = col_idx;
    judge.mxm->matrix_create(judge.context, &csr, 0, &matrix, NULL);
    judge.mxm->matrix_order(judge.context, matrix, "rcm", order, NULL);
    for (int i = 0; i < N; i++) place[order[i]] = i;
    for (int v = 0; v < N; v++) {
        for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
            const int64_t distance = llabs((long long)(place[v] - place[col_idx[e]]));
            if (distance > bandwidth) bandwidth = distance;
        }
    }
    ok(bandwidth == 1, "order rcm restores a shuffled path: its bandwidth is %lld", (long long)bandwidth);
    judge.mxm->matrix_order(judge.context, matrix, "degree", order, NULL);
    ok(row_ptr[order[0] + 1] - row_ptr[order[0]] == 2 && row_ptr[order[N - 1] + 1] - row_ptr[order[N - 1]] == 1,
       "order degree puts the ends of a path last");
    ok(judge.mxm->matrix_order(judge.context, matrix, "alphabet", order, &error) == GRAFT_ERR_OPTION, "%s",
       error.message);
    order[3] = order[4];
    ok(judge.mxm->matrix_permute(judge.context, matrix, order, &matrix, &error) == GRAFT_ERR_ARG, "%s", error.message);
    judge.mxm->matrix_destroy(matrix);
}

int main(int argc, char **argv)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    if (!ok(argc == 2 && graft_load(getenv("GRAFT_LIBRARY"), NULL, &judge.api, &error) == GRAFT_OK,
            "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    judge.context = judge.api->context;
    judge.mxm = judge.api->get_interface(judge.context, GRAFT_MXM_ID);
    judge.case_step = case_step();
    for (int32_t i = 0; judge.api->module_info(judge.context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0 || strcmp(entry.name, "graphblas") == 0) continue;
        judge_epilogue(entry.name);
    }
    judge.api->set(judge.context, "mxm.kernel", "auto", NULL);
    test_convert();
    test_epilogue_refusals();
    test_verify(argv[1]);
    test_epilogue_order("degree");
    test_epilogue_order("rcm");
    test_epilogue_order("community");
    test_what_orders_are();
    judge.api->close(judge.context);
    return done();
}
