/* graft_grb.h in a host of GraphBLAS: random products against GrB_mxm, what is copied, and what is left to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_train.h"
#include "graphblas/graft_grb.h"
#include "graphblas/graft_grb_train.h"
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

enum { N = 60, WIDTH = 9, CLASSES = 3 };

/* A graph in which v gathers from three others, with weights, by row. */
static GrB_Matrix three_each(GrB_Type type)
{
    GrB_Matrix a = NULL;

    GrB_Matrix_new(&a, type, N, N);
    GxB_Matrix_Option_set(a, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    for (GrB_Index v = 0; v < N; v++) {
        for (GrB_Index k = 1; k <= 3; k++) GrB_Matrix_setElement_FP64(a, 0.25 * (double)k, v, (v * k + 5 * k) % N);
    }
    GrB_Matrix_wait(a, GrB_MATERIALIZE);
    return a;
}

static GrB_Matrix all_elements(GrB_Index n, GrB_Index width)
{
    GrB_Matrix h = NULL;

    GrB_Matrix_new(&h, GrB_FP32, n, width);
    for (GrB_Index i = 0; i < n; i++) {
        for (GrB_Index j = 0; j < width; j++) GrB_Matrix_setElement_FP64(h, (double)((i * 7 + j * 3) % 13) / 8, i, j);
    }
    GrB_Matrix_wait(h, GrB_MATERIALIZE);
    return h;
}

/* What is lent without a copy, and what is not. */
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

/* The largest difference of two matrices with the same entries; -1 if the entries differ. */
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

/* Steps H = A H of label propagation: a vertex without edges loses its row, and so does later each one that only
 * gathers from such vertices. `by_col`: steps H = H A of columns. */
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

/* C = D A and C += D A for a wide D that is held by row, and an A that has empty columns, or none. */
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

/* Matrices with more rows or elements than any memory stay with GraphBLAS, and cost nothing. */
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

/* One value mask of many entries, which is read by several threads. */
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

/* The reason for which max over the products of one matrix and one that has `value` is left to GraphBLAS, or NULL. */
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

/* A mask of one value for all entries, of a type that is not built in. */
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

/* Classes, of which some are missing, and a split, of which a third is. */
static GrB_Vector some_labels(void)
{
    GrB_Vector labels = NULL;

    GrB_Vector_new(&labels, GrB_INT64, N);
    for (GrB_Index v = 0; v < N; v++) {
        if (v % 5 != 4) GrB_Vector_setElement_INT64(labels, (int64_t)(v % CLASSES), v);
    }
    return labels;
}

static GrB_Vector some_split(void)
{
    GrB_Vector split = NULL;

    GrB_Vector_new(&split, GrB_UINT8, N);
    for (GrB_Index v = 0; v < N; v++) {
        if (v % 3 != 2)
            GrB_Vector_setElement_UINT8(split, (uint8_t)(v % 3 == 0 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST), v);
    }
    return split;
}

/* The loss after three epochs, or -1. */
static double train_three(const graft_api *api, const graft_dataset *dataset, graft_error *error)
{
    const graft_train *train = graft_interface(api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train, destroy));
    graft_trainer     *trainer = NULL;
    graft_epoch        epoch = GRAFT_INIT(graft_epoch);
    int32_t            rc = train->create(api->context, dataset, &trainer, error);

    for (int i = 0; rc >= 0 && i < 3; i++) rc = train->epoch(trainer, &epoch, error);
    train->destroy(trainer);
    return rc >= 0 ? epoch.loss : -1;
}

/* A data set of GraphBLAS gives the loss of the same arrays; so does it over a distributed graph of one rank. */
static void test_lent_dataset(const graft_api *api)
{
    const graft_graphs *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graphs, destroy));
    GrB_Matrix          a = three_each(GrB_FP32), h = all_elements(N, WIDTH), wrong = all_elements(N + 1, WIDTH);
    GrB_Vector          labels = some_labels(), split = some_split();
    graft_error         error = GRAFT_INIT(graft_error);
    graft_grb_dataset   lent;
    graft_dataset       arrays;
    graft_graph        *graph = NULL;
    int32_t             classes[N];
    uint8_t             sets[N];
    double              loss;

    for (int v = 0; v < N; v++) {
        classes[v] = v % 5 != 4 ? v % CLASSES : -1;
        sets[v] = v % 3 == 0 ? GRAFT_SPLIT_TRAIN : v % 3 == 1 ? GRAFT_SPLIT_TEST : GRAFT_SPLIT_NONE;
    }
    ok(graft_grb_lend_dataset(a, h, labels, split, &lent) == GrB_SUCCESS && lent.graph.copied == 0 &&
           lent.features.copied == 0 && lent.labels.copied == 4 * N && lent.split.copied == N,
       "a data set is lent: graph and features where they are");
    ok(lent.data.n_classes == CLASSES && memcmp(lent.data.labels, classes, sizeof classes) == 0 &&
           memcmp(lent.data.split, sets, sizeof sets) == 0,
       "labels and split that are missing are -1 and none");
    arrays = lent.data;
    arrays.labels = classes;
    arrays.split = sets;
    loss = train_three(api, &lent.data, &error);
    if (!ok(loss > 0 && loss == train_three(api, &arrays, &error), "it trains, and gives the loss of its arrays"))
        diag("%s", error.message);
    ok(graft_grb_graph(graphs, api->context, NULL, a, 0, &graph, &error) == GRAFT_OK, "a distributed graph is created");
    lent.data.over = graph;
    if (!ok(train_three(api, &lent.data, &error) > 0, "and trained over")) diag("%s", error.message);
    graphs->destroy(graph);
    graph = NULL;
    ok(graft_grb_graph(graphs, api->context, NULL, NULL, 0, &graph, &error) == GRAFT_ERR_ARG && graph == NULL &&
           error.native_code == GrB_NULL_POINTER,
       "no matrix is refused, with the code of GraphBLAS");
    graft_grb_return_dataset(&lent);
    ok(graft_grb_lend_dataset(a, wrong, labels, split, &lent) == GrB_DIMENSION_MISMATCH,
       "features of other rows are refused");
    graft_grb_return_dataset(&lent);
    ok(graft_grb_lend_dataset(a, NULL, labels, split, &lent) == GrB_NULL_POINTER, "so are none");
    graft_grb_return_dataset(&lent);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&wrong);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
}

/* A graph of FP64, as every real-valued Matrix Market file gives one, and features of other types. */
static void test_types_of_dataset(const graft_api *api)
{
    GrB_Matrix  a[2] = { three_each(GrB_FP32), three_each(GrB_FP64) }, h[3] = { all_elements(N, WIDTH), NULL, NULL };
    GrB_Vector  labels = some_labels(), split = some_split();
    graft_error error = GRAFT_INIT(graft_error);
    graft_grb_dataset lent;
    double            expected = 0;

    GrB_Matrix_new(&h[1], GrB_FP64, N, WIDTH);
    GrB_Matrix_assign(h[1], NULL, NULL, h[0], GrB_ALL, N, GrB_ALL, WIDTH, NULL);
    GrB_Matrix_dup(&h[2], h[1]);
    GxB_Matrix_Option_set(h[2], GxB_SPARSITY_CONTROL, GxB_SPARSE);
    for (int i = 0; i < 6; i++) {
        const int info = graft_grb_lend_dataset(a[i % 2], h[i / 2], labels, split, &lent);
        double    loss = info == GrB_SUCCESS ? train_three(api, &lent.data, &error) : -1;

        if (i == 0) expected = loss;
        if (!ok(loss > 0 && fabs(loss - expected) < 1e-6 && (lent.graph.copied > 0) == i % 2,
                "weights of FP%d and %sfeatures of FP%d train", i % 2 ? 64 : 32, i > 3 ? "sparse " : "",
                i > 1 ? 64 : 32))
            diag("%d: %s, %g for %g", info, error.message, loss, expected);
        graft_grb_return_dataset(&lent);
    }
    for (int i = 0; i < 2; i++) GrB_Matrix_free(&a[i]);
    for (int i = 0; i < 3; i++) GrB_Matrix_free(&h[i]);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
}

/* Whether a data set with this label of vertex 7, or part of the split, is refused with vertex and value. */
static int is_refused(GrB_Type type, double value, int of_split, const char *expected)
{
    GrB_Matrix        a = three_each(GrB_FP32), h = all_elements(N, WIDTH);
    GrB_Vector        labels = some_labels(), split = some_split(), wrong = NULL;
    graft_grb_dataset lent;
    GrB_Info          info;
    int               refused;

    GrB_Vector_new(&wrong, type, N);
    GrB_Vector_assign_FP64(wrong, NULL, NULL, 1, GrB_ALL, N, NULL);
    GrB_Vector_setElement_FP64(wrong, value, 7);
    info = graft_grb_lend_dataset(a, h, of_split ? labels : wrong, of_split ? wrong : split, &lent);
    refused = info == GrB_INVALID_VALUE && strcmp(lent.why, expected) == 0;
    if (!refused) diag("%d: %s", (int)info, lent.why);
    graft_grb_return_dataset(&lent);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
    GrB_Vector_free(&wrong);
    return refused;
}

static void test_wrong_values(void)
{
    ok(is_refused(GrB_INT64, 4294967298.0, 0,
                  "labels: vertex 7 has 4294967298, expected an integer from -1 to 2147483646"),
       "a label that is too large is refused");
    ok(is_refused(GrB_INT32, -2, 0, "labels: vertex 7 has -2, expected an integer from -1 to 2147483646"),
       "so is a negative one in a vector that is lent where it is");
    ok(is_refused(GrB_FP64, NAN, 0, "labels: vertex 7 has nan, expected an integer from -1 to 2147483646"), "NaN");
    ok(is_refused(GrB_FP32, 1.5, 0, "labels: vertex 7 has 1.5, expected an integer from -1 to 2147483646"), "and 1.5");
    ok(is_refused(GrB_INT32, 257, 1, "split: vertex 7 has 257, expected an integer from 0 to 3"),
       "a part of the split that is none is refused");
    ok(is_refused(GrB_UINT8, 4, 1, "split: vertex 7 has 4, expected an integer from 0 to 3"), "also in place");
}

/* Before and after the mistake C is full, so the product is written where it is. */
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
    test_lent_dataset(api);
    test_types_of_dataset(api);
    test_wrong_values();
    test_special_values();
    test_user_mask();
    test_mistakes();
    test_error_in_place();
    api->close(api->context);
    GrB_finalize();
    return done();
}
