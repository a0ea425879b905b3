/* Checks graft_grb.h in a host that uses GraphBLAS: random products are compared with GrB_mxm, and tests find out which
 * objects are copied and which products are left to GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graphblas/graft_grb.h"
#include "objects.h"
#include "random_calls.h"

#include "harness/tap.h"

#include <math.h>

static graft_grb grb;
static int       taken;

static GrB_Info mxm(GrB_Matrix c, GrB_Matrix m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Matrix a, GrB_Matrix b,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_mxm(&grb, c, m, accum, s, a, b, d);

    taken += grb.taken;
    return info;
}

static GrB_Info mxv(GrB_Vector w, GrB_Vector m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Matrix a, GrB_Vector u,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_mxv(&grb, w, m, accum, s, a, u, d);

    taken += grb.taken;
    return info;
}

static GrB_Info vxm(GrB_Vector w, GrB_Vector m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Vector u, GrB_Matrix a,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_vxm(&grb, w, m, accum, s, u, a, d);

    taken += grb.taken;
    return info;
}

static const struct products plain = { GrB_mxm, GrB_mxv, GrB_vxm }, tested = { mxm, mxv, vxm };

static void test_random(int calls)
{
    char fault[300];
    int  wrong = 0;

    taken = 0;
    for (int number = 0; number < calls && wrong < 5; number++) {
        if (random_call((uint64_t)number, &tested, &plain, fault, sizeof fault)) continue;
        wrong++;
        diag("call %d (%s): %s", number, grb.taken ? "taken" : grb.why, fault);
    }
    ok(wrong == 0, "%d random calls give what GrB_mxm gives", calls);
    ok(taken > calls / 8, "Graft computed %d of them", taken);
}

enum { WIDTH = 9 };

/* Check which matrices are lent to Graft without a copy, and which are copied. */
static void test_loans(void)
{
    GrB_Matrix     a = three_each(GrB_FP32), h = all_elements(N, WIDTH), c = NULL;
    graft_grb_loan loan;
    graft_grb_view view;
    const void    *x;

    graft_grb_look(a, &view);
    ok(graft_grb_lend_csr(a, 0, GrB_FP32, &loan) == GrB_SUCCESS && loan.copied == 0 && loan.csr.values == view.x &&
           loan.csr.col_idx == view.i && loan.csr.row_ptr == view.p,
       "a sparse matrix by row is lent where it is");
    graft_grb_return(&loan);
    ok(graft_grb_lend_csr(a, 0, NULL, &loan) == GrB_SUCCESS && loan.copied == 0 && loan.csr.values == NULL,
       "without values if they are not needed");
    graft_grb_return(&loan);
    ok(graft_grb_lend_csr(a, 1, GrB_FP32, &loan) == GrB_SUCCESS && loan.copied > 0 && loan.csr.n_rows == N,
       "a transpose is a copy, and says so");
    graft_grb_return(&loan);
    ok(graft_grb_lend_csr(a, 0, GrB_FP64, &loan) == GrB_SUCCESS && loan.copied > 0 &&
           loan.csr.value_type == GRAFT_F64 && ((const double *)loan.csr.values)[0] == ((const float *)view.x)[0],
       "so is another type");
    graft_grb_return(&loan);
    graft_grb_look(h, &view);
    x = view.x;
    ok(graft_grb_lend_dense(h, 0, GrB_FP32, &loan) == GrB_SUCCESS && loan.copied == 0 && loan.dense.data == view.x,
       "a full matrix by row is lent where it is");
    graft_grb_return(&loan);
    ok(graft_grb_lend_dense(a, 0, GrB_FP32, &loan) == GrB_NO_VALUE, "a matrix with gaps is no dense one");
    graft_grb_return(&loan);
    ok(graft_grb_lend_dense(h, 0, GrB_INT32, &loan) == GrB_DOMAIN_MISMATCH &&
           graft_grb_lend_csr(a, 0, GrB_INT64, &loan) == GrB_DOMAIN_MISMATCH,
       "no loan has values of integers");
    ok(graft_grb_lend_dense(NULL, 0, GrB_FP32, &loan) != GrB_SUCCESS, "nothing is lent of NULL");
    graft_grb_return(&loan);
    GrB_Matrix_dup(&c, h);
    ok(graft_grb_mxm(&grb, c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_SUCCESS &&
           grb.taken && grb.copied == 0,
       "a product of both copies nothing");
    graft_grb_look(h, &view);
    ok(view.x == x, "and the operands stay where they are");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

/* The largest difference between two matrices with the same entries, or -1 if the entries differ. */
static double difference_of(GrB_Matrix x, GrB_Matrix y)
{
    GrB_Matrix d = NULL;
    GrB_Index  n_rows = 0, n_cols = 0, entries[3] = { 0, 0, 0 };
    double     most = 0;

    GrB_Matrix_nrows(&n_rows, x);
    GrB_Matrix_ncols(&n_cols, x);
    GrB_Matrix_new(&d, GrB_FP64, n_rows, n_cols);
    GrB_Matrix_eWiseMult_BinaryOp(d, NULL, NULL, GrB_MINUS_FP64, x, y, NULL);
    GrB_Matrix_apply(d, NULL, NULL, GrB_ABS_FP64, d, NULL);
    GrB_Matrix_reduce_FP64(&most, NULL, GrB_MAX_MONOID_FP64, d, NULL);
    GrB_Matrix_nvals(&entries[0], d);
    GrB_Matrix_nvals(&entries[1], x);
    GrB_Matrix_nvals(&entries[2], y);
    GrB_Matrix_free(&d);
    return entries[0] == entries[1] && entries[1] == entries[2] ? most : -1;
}

/* Compute steps H = A H of label propagation. The row of a vertex without edges becomes empty, and later so does the
 * row of each vertex that only gathers from such vertices. With `by_col` the steps are H = H A on columns. */
static void test_lost_rows(GrB_Semiring semiring, int by_col, const char *name)
{
    enum { STEPS = 4 };
    GrB_Matrix      a = NULL, h[2] = { NULL, NULL };
    const GrB_Index n_rows = by_col ? WIDTH : N, n_cols = by_col ? N : WIDTH;
    GrB_Index       entries = 0;
    int             steps = 0;

    GrB_Matrix_new(&a, GrB_FP32, N, N);
    if (by_col) GxB_Matrix_Option_set(a, GxB_FORMAT, GxB_BY_COL);
    for (GrB_Index v = 3; v < N; v++)
        GrB_Matrix_setElement_FP32(a, (float)(v % 5), by_col ? v / 2 : v, by_col ? v : v / 2);
    for (int i = 0; i < 2; i++) {
        GrB_Matrix_new(&h[i], GrB_FP32, n_rows, n_cols);
        if (by_col) GxB_Matrix_Option_set(h[i], GxB_FORMAT, GxB_BY_COL);
        for (GrB_Index k = 0; k < N * WIDTH; k++)
            GrB_Matrix_setElement_FP32(h[i], (float)(k % 7), k / n_cols, k % n_cols);
    }
    for (int step = 0; step < STEPS; step++) {
        GrB_mxm(h[0], NULL, NULL, semiring, by_col ? h[0] : a, by_col ? a : h[0], NULL);
        graft_grb_mxm(&grb, h[1], NULL, NULL, semiring, by_col ? h[1] : a, by_col ? a : h[1], NULL);
        steps += grb.taken && difference_of(h[0], h[1]) == 0;
        if (!grb.taken) diag("%s", grb.why);
    }
    GrB_Matrix_nvals(&entries, h[1]);
    ok(steps == STEPS && entries == (N - 24) * WIDTH, "%s: all steps that lose rows are taken", name);
    GrB_Matrix_setElement_FP32(h[1], 1, 0, 0);
    graft_grb_mxm(&grb, h[0], NULL, NULL, semiring, by_col ? h[1] : a, by_col ? a : h[1], NULL);
    ok(!grb.taken && strstr(grb.why, "are missing") != NULL, "%s: a row with one of its elements is not", name);
    GrB_Matrix_free(&a);
    for (int i = 0; i < 2; i++) GrB_Matrix_free(&h[i]);
}

/* Compute C = D A and C += D A for a wide D that is stored by row. In some cases A has empty columns. */
static void test_wide_operand(GrB_Semiring semiring, GrB_Descriptor descriptor, int empty, const char *name)
{
    enum { ROWS = 37 };
    GrB_Matrix a = NULL, d = all_elements(ROWS, N), c[2] = { all_elements(ROWS, N), all_elements(ROWS, N) };
    double     difference[2];
    int        all = 1;

    GrB_Matrix_new(&a, GrB_FP32, N, N);
    for (GrB_Index v = 0; v < N; v++) {
        if (!empty || v % 4 != 0) GrB_Matrix_setElement_FP32(a, (float)(v % 5), v, (v * 7) % N);
        if (!empty) GrB_Matrix_setElement_FP32(a, 2, v, (v * 11) % N);
    }
    for (int accumulates = 0; accumulates < 2; accumulates++) {
        const GrB_BinaryOp accum = accumulates ? GrB_PLUS_FP32 : NULL;

        GrB_mxm(c[0], NULL, accum, semiring, d, a, descriptor);
        graft_grb_mxm(&grb, c[1], NULL, accum, semiring, d, a, descriptor);
        all &= grb.taken;
        if (!grb.taken) diag("%s", grb.why);
        difference[accumulates] = difference_of(c[0], c[1]);
    }
    ok(all && difference[0] == 0 && difference[1] == 0, "%s of a wide operand by row are taken", name);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&d);
    for (int i = 0; i < 2; i++) GrB_Matrix_free(&c[i]);
}

/* Matrices with more rows or elements than fit into memory are left to GraphBLAS, without any cost. */
static void test_huge(void)
{
    const GrB_Index huge = (GrB_Index)1 << 50;
    GrB_Matrix      a = NULL, h = all_elements(N, WIDTH), ones = NULL, c = NULL;

    GrB_Matrix_new(&a, GrB_FP32, huge, N);
    GrB_Matrix_new(&c, GrB_FP32, huge, WIDTH);
    GrB_Matrix_setElement_FP32(a, 2, huge - 1, 3);
    ok(graft_grb_mxm(&grb, c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_SUCCESS && !grb.taken,
       "a hypersparse matrix of 2^50 rows is left to GraphBLAS");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&c);
    GrB_Matrix_new(&a, GrB_FP32, N, huge / N);
    GrB_Matrix_new(&ones, GrB_FP32, huge / N, 1);
    GrB_Matrix_new(&c, GrB_FP32, N, 1);
    GrB_Matrix_setElement_FP32(a, 2, 1, 3);
    GrB_Matrix_assign_FP32(ones, NULL, NULL, 1, GrB_ALL, huge / N, GrB_ALL, 1, NULL);
    ok(graft_grb_mxm(&grb, c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, ones, NULL) == GrB_SUCCESS && !grb.taken,
       "so is one value for 2^44 elements");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&ones);
    GrB_Matrix_free(&c);
}

/* Check a value mask with so many entries that several threads read it. */
static void test_large_mask(void)
{
    enum { ROWS = 2000, COLUMNS = 64 };
    GrB_Matrix a = NULL, h = all_elements(N, COLUMNS), mask = NULL, c[2] = { NULL, NULL }, difference = NULL;
    GrB_Index  differ = 1;
    bool       equal = 0;

    GrB_Matrix_new(&a, GrB_FP32, ROWS, N);
    GrB_Matrix_new(&mask, GrB_FP64, ROWS, COLUMNS);
    GxB_Matrix_Option_set(mask, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    for (GrB_Index i = 0; i < ROWS; i++) {
        GrB_Matrix_setElement_FP64(a, 2, i, i % N);
        for (GrB_Index j = 0; j < COLUMNS; j++) {
            if ((i + j) % 8 != 0) GrB_Matrix_setElement_FP64(mask, (i * j) % 3 == 0 ? 0 : 1, i, j);
        }
    }
    for (int k = 0; k < 2; k++) GrB_Matrix_new(&c[k], GrB_FP32, ROWS, COLUMNS);
    GrB_mxm(c[0], mask, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
    ok(graft_grb_mxm(&grb, c[1], mask, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_SUCCESS && grb.taken,
       "a mask of 112000 values is taken");
    GrB_Matrix_new(&difference, GrB_BOOL, ROWS, COLUMNS);
    GrB_Matrix_eWiseMult_BinaryOp(difference, NULL, NULL, GrB_EQ_FP32, c[0], c[1], NULL);
    GrB_Matrix_reduce_BOOL(&equal, NULL, GrB_LAND_MONOID_BOOL, difference, NULL);
    GrB_Matrix_nvals(&differ, c[0]);
    if (equal) {
        GrB_Index entries[2] = { 0, 0 };

        GrB_Matrix_nvals(&entries[0], difference);
        GrB_Matrix_nvals(&entries[1], c[1]);
        differ = differ != entries[0] || differ != entries[1];
    }
    ok(differ == 0, "and gives what GrB_mxm gives");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&mask);
    GrB_Matrix_free(&difference);
    for (int k = 0; k < 2; k++) GrB_Matrix_free(&c[k]);
}

/* Compute a maximum over the products of one matrix and another one that contains `value`. The result is the reason for
 * which it is left to GraphBLAS, or NULL. */
static const char *reason_for(float value, int exact)
{
    GrB_Matrix  a = three_each(GrB_FP32), h = NULL, c = NULL;
    const char *why;

    GrB_Matrix_new(&h, GrB_FP32, N, WIDTH);
    GrB_Matrix_assign_FP32(h, NULL, NULL, 1, GrB_ALL, N, GrB_ALL, WIDTH, NULL);
    GrB_Matrix_setElement_FP32(h, value, 3, 4);
    GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    grb.exact = exact;
    graft_grb_mxm(&grb, c, NULL, NULL, GrB_MAX_TIMES_SEMIRING_FP32, a, h, NULL);
    why = grb.why;
    grb.exact = 0;
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
    return why;
}

static int names_word(const char *why, const char *word)
{
    return why != NULL && strstr(why, word) != NULL;
}

static void test_special_values(void)
{
    ok(reason_for(2, 1) == NULL && reason_for(0, 0) == NULL, "max of usual values is taken");
    ok(names_word(reason_for(NAN, 0), "has a NaN"), "of a NaN it is not, and the reason names it");
    ok(names_word(reason_for(-INFINITY, 1), "has an infinity"), "nor of an infinity");
    ok(names_word(reason_for(0, 1), "has a zero"), "nor of a zero, if results are to be exact");
}

/* Check a mask of a user-defined type whose entries share one value. */
static void test_user_mask(void)
{
    struct small {
        char bytes[3];
    } value = { "ab" };
    GrB_Type       type = NULL;
    GrB_Matrix     mask = NULL;
    GrB_Scalar     scalar = NULL;
    graft_grb_loan loan;

    GrB_Type_new(&type, sizeof value);
    GrB_Matrix_new(&mask, type, N, WIDTH);
    GrB_Scalar_new(&scalar, type);
    GrB_Scalar_setElement_UDT(scalar, &value);
    GrB_Matrix_assign_Scalar(mask, NULL, NULL, scalar, GrB_ALL, N, GrB_ALL, WIDTH, NULL);
    ok(graft_grb_lend_mask(mask, 0, GRAFT_MASK_STRUCTURE, &loan) == GrB_SUCCESS && loan.copied == 0,
       "a structural mask of another type is lent");
    graft_grb_return(&loan);
    ok(graft_grb_lend_mask(mask, 0, 0, &loan) == GrB_NO_VALUE, "its values are not");
    graft_grb_return(&loan);
    GrB_Matrix_free(&mask);
    GrB_Scalar_free(&scalar);
    GrB_Type_free(&type);
}

static void test_mistakes(void)
{
    GrB_Matrix  a = three_each(GrB_FP32), h = all_elements(N + 1, WIDTH), c = NULL;
    const char *text = NULL;

    GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    ok(graft_grb_mxm(&grb, c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_DIMENSION_MISMATCH,
       "a wrong shape is GrB_DIMENSION_MISMATCH");
    ok(GrB_error(&text, c) == GrB_SUCCESS && text != NULL && text[0] != '\0',
       "GrB_error has the sentence of GraphBLAS");
    ok(graft_grb_mxm(&grb, c, NULL, NULL, NULL, a, h, NULL) == GrB_NULL_POINTER, "no semiring is GrB_NULL_POINTER");
    ok(graft_grb_mxm(&grb, NULL, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_NULL_POINTER,
       "so is no output");
    ok(graft_grb_begin(&grb, NULL) == GrB_NULL_POINTER, "so is no library");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

/* C is full before and after the call with an error, so that the product is written in place. */
static void test_error_in_place(void)
{
    GrB_Matrix  a = three_each(GrB_FP32), h = all_elements(N, WIDTH), c = all_elements(N, WIDTH);
    const char *text = NULL;

    graft_grb_mxm(&grb, c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, h, a, NULL);
    ok(GrB_error(&text, c) == GrB_SUCCESS && text[0] != '\0', "a mistake leaves its sentence in C");
    ok(graft_grb_mxm(&grb, c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL) == GrB_SUCCESS &&
           grb.taken && GrB_error(&text, c) == GrB_SUCCESS && text[0] == '\0',
       "a product in place removes it");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

int main(int argc, char **argv)
{
    const graft_api *api = NULL;

    GrB_init(GrB_NONBLOCKING);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) == GRAFT_OK, "the library is opened")) return done();
    ok(graft_grb_begin(&grb, api) == GrB_SUCCESS, "a host of GraphBLAS begins");
    grb.least_work = grb.least_columns = 0;
    test_random(argc > 1 ? atoi(argv[1]) : 5000);
    grb.allocate = malloc;
    test_random(argc > 1 ? atoi(argv[1]) : 2000);
    test_loans();
    test_lost_rows(GrB_PLUS_TIMES_SEMIRING_FP32, 0, "sums");
    test_lost_rows(GxB_PLUS_PAIR_FP32, 0, "counts");
    test_wide_operand(GrB_PLUS_TIMES_SEMIRING_FP32, NULL, 1, "sums");
    test_wide_operand(GrB_PLUS_TIMES_SEMIRING_FP32, GrB_DESC_T1, 0, "sums with the transpose");
    test_wide_operand(GxB_PLUS_FIRST_FP32, NULL, 0, "sums without weights");
    test_lost_rows(GrB_MAX_TIMES_SEMIRING_FP32, 1, "maxima of columns");
    test_huge();
    test_large_mask();
    test_special_values();
    test_user_mask();
    test_mistakes();
    test_error_in_place();
    api->close(api->context);
    GrB_finalize();
    return done();
}
