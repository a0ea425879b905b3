/* Checks graft_grb_train.h in a host that uses GraphBLAS. Data sets and distributed graphs that are made of its objects
 * must train in the same way as those made of arrays. Bad objects must be refused, also in a host that traps
 * floating-point exceptions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_train.h"
#include "graphblas/graft_grb.h"
#include "graphblas/graft_grb_train.h"
#include "objects.h"
#include "with_avx.h"

#include "harness/tap.h"

#include <fenv.h>

enum { WIDTH = 9, CLASSES = 3 };

/* Make labels, some of which are missing, or a split that contains a third of the vertices. */
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
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, destroy));
    graft_trainer         *trainer = NULL;
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);
    int32_t                rc = train->create(api->context, dataset, &trainer, error);

    for (int i = 0; rc >= 0 && i < 3; i++) rc = train->epoch(trainer, &epoch, error);
    train->destroy(trainer);
    return rc >= 0 ? epoch.loss : -1;
}

/* A data set of GraphBLAS objects must have the same loss as the same data in arrays, also with a distributed graph of
 * one rank. */
static void test_lent_dataset(const graft_api *api)
{
    const graft_graph_api *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    GrB_Matrix             a = three_each(GrB_FP32), h = all_elements(N, WIDTH), wrong = all_elements(N + 1, WIDTH);
    GrB_Vector             labels = some_labels(), split = some_split();
    graft_error            error = GRAFT_INIT(graft_error);
    graft_grb_dataset      lent;
    graft_dataset          arrays;
    graft_graph           *graph = NULL;
    int32_t                classes[N];
    uint8_t                sets[N];
    double                 loss;

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
    ok_or(loss > 0 && loss == train_three(api, &arrays, &error), error.message,
          "it trains, and gives the loss of its arrays");
    ok(graft_grb_graph(graphs, api->context, NULL, a, 0, &graph, &error) == GRAFT_OK, "a distributed graph is created");
    lent.data.over = graph;
    ok_or(train_three(api, &lent.data, &error) > 0, error.message, "and trained over");
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

/* The loss over a distributed graph of one rank with weights of this type, or -1. */
static double train_over(const graft_api *api, GrB_Matrix a, GrB_Type weights, GrB_Matrix h, graft_error *error)
{
    const graft_graph_api *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    GrB_Vector             labels = some_labels(), split = some_split();
    graft_graph           *graph = NULL;
    graft_grb_dataset      lent;
    double                 loss = -1;

    if (graft_grb_lend_dataset(a, h, labels, split, &lent) == GrB_SUCCESS &&
        graft_grb_graph_of(graphs, api->context, NULL, a, weights, 0, &graph, error) == GRAFT_OK) {
        lent.data.over = graph;
        loss = train_three(api, &lent.data, error);
    }
    graphs->destroy(graph);
    graft_grb_return_dataset(&lent);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
    return loss;
}

/* Check a graph of type FP64, as Matrix Market files with real values give it, and features of other types. */
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
    for (int i = 0; i < 2; i++) {
        const double loss = train_over(api, a[i], GrB_FP32, h[0], &error);

        if (!ok(fabs(loss - expected) < 1e-6, "weights of FP%d train over a distributed graph", i == 0 ? 32 : 64))
            diag("%s, %g for %g", error.message, loss, expected);
    }
    ok(train_over(api, a[1], GrB_FP64, h[0], &error) < 0 && error.code == GRAFT_ERR_ARG,
       "a graph for products in double is created, and no trainer takes it");
    for (int i = 0; i < 2; i++) GrB_Matrix_free(&a[i]);
    for (int i = 0; i < 3; i++) GrB_Matrix_free(&h[i]);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
}

/* A weight or feature that does not fit into FP32 must be refused with its position and value, before any conversion
 * overflows. */
static void test_values_beyond_floats(const graft_api *api)
{
    const graft_graph_api *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    GrB_Matrix        a = three_each(GrB_FP64), fine = three_each(GrB_FP32), h = NULL, good = all_elements(N, WIDTH);
    graft_error       error = GRAFT_INIT(graft_error);
    graft_graph      *graph = NULL;
    graft_grb_dataset lent;
    int               refused = 0;

    feclearexcept(FE_ALL_EXCEPT);
    GrB_Matrix_setElement_FP64(a, 1e300, 5, 10);
    refused = graft_grb_lend_dataset(a, good, NULL, NULL, &lent) == GrB_INVALID_VALUE;
    ok_or(refused && strstr(lent.why, "graph: row 5, column 10 has 1.0000000000000001e+300, expected"), lent.why,
          "a weight that FP32 cannot hold is refused");
    graft_grb_return_dataset(&lent);
    refused = graft_grb_graph(graphs, api->context, NULL, a, 0, &graph, &error) == GRAFT_ERR_FORMAT;
    ok_or(refused && graph == NULL && error.native_code == GrB_INVALID_VALUE &&
              strstr(error.message, "rows: row 5, column 10 has 1.0000000000000001e+300"),
          error.message, "so is it in a distributed graph");
    for (int sparse = 0; sparse < 2; sparse++) {
        GrB_Matrix_new(&h, GrB_FP64, N, WIDTH);
        GrB_Matrix_assign(h, NULL, NULL, good, GrB_ALL, N, GrB_ALL, WIDTH, NULL);
        GrB_Matrix_setElement_FP64(h, -1e39, 7, 2);
        if (sparse) GxB_Matrix_Option_set(h, GxB_SPARSITY_CONTROL, GxB_SPARSE);
        refused = graft_grb_lend_dataset(fine, h, NULL, NULL, &lent) == GrB_INVALID_VALUE;
        ok_or(refused && strstr(lent.why, "features: row 7, column 2 has -9.9999999999999994e+38"), lent.why,
              "so is a %s feature", sparse ? "sparse" : "dense");
        graft_grb_return_dataset(&lent);
        GrB_Matrix_free(&h);
    }
    ok(fetestexcept(FE_OVERFLOW | FE_INVALID) == 0, "no exception was raised");
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&fine);
    GrB_Matrix_free(&good);
}

enum { TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };

/* Whether a data set is refused with this reason in a host that traps floating-point exceptions. */
static int is_refused_in_traps(GrB_Matrix a, GrB_Matrix h, GrB_Vector labels, const char *expected)
{
    graft_grb_dataset lent;
    GrB_Info          info;
    int               refused;

    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(TRAPS);
    info = graft_grb_lend_dataset(a, h, labels, NULL, &lent);
    fedisableexcept(FE_ALL_EXCEPT);
    refused = info == GrB_INVALID_VALUE && strstr(lent.why, expected) != NULL;
    if (!refused) diag("%d: '%s', expected '%s'", (int)info, lent.why, expected);
    graft_grb_return_dataset(&lent);
    return refused;
}

/* Make features of type FP64 with this value in row 7, column 2. */
static GrB_Matrix features_with(double value, int sparse)
{
    GrB_Matrix good = all_elements(N, WIDTH), h = NULL;

    GrB_Matrix_new(&h, GrB_FP64, N, WIDTH);
    GrB_Matrix_assign(h, NULL, NULL, good, GrB_ALL, N, GrB_ALL, WIDTH, NULL);
    GrB_Matrix_setElement_FP64(h, value, 7, 2);
    if (sparse) GxB_Matrix_Option_set(h, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    GrB_Matrix_wait(h, GrB_MATERIALIZE);
    GrB_Matrix_free(&good);
    return h;
}

/* Check that this value is refused as a weight, as a feature and as a label. */
static void test_value_in_traps(const graft_api *api, double value, const char *name)
{
    const graft_graph_api *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    GrB_Matrix             fine = three_each(GrB_FP64), a = three_each(GrB_FP64), h = features_with(0, 0);
    GrB_Vector             labels = NULL;
    graft_error            error = GRAFT_INIT(graft_error);
    graft_graph           *graph = NULL;
    char                   text[80];
    int32_t                rc;

    GrB_Matrix_setElement_FP64(a, value, 5, 10);
    GrB_Matrix_wait(a, GrB_MATERIALIZE);
    snprintf(text, sizeof text, "graph: row 5, column 10 has %s, expected", name);
    ok(is_refused_in_traps(a, h, NULL, text), "with traps, a weight %s is refused", name);
    feenableexcept(TRAPS);
    rc = graft_grb_graph(graphs, api->context, NULL, a, 0, &graph, &error);
    fedisableexcept(FE_ALL_EXCEPT);
    snprintf(text, sizeof text, "rows: row 5, column 10 has %s, expected", name);
    if (!ok(rc == GRAFT_ERR_FORMAT && strstr(error.message, text) != NULL, "so is it in a distributed graph"))
        diag("%d: %s", rc, error.message);
    GrB_Vector_new(&labels, GrB_FP64, N);
    GrB_Vector_setElement_FP64(labels, value, 7);
    GrB_Vector_wait(labels, GrB_MATERIALIZE);
    snprintf(text, sizeof text, "labels: vertex 7 has %s, expected", name);
    ok(is_refused_in_traps(fine, h, labels, text), "so is it as a label");
    for (int sparse = 0; sparse < 2; sparse++) {
        GrB_Matrix_free(&h);
        h = features_with(value, sparse);
        snprintf(text, sizeof text, "features: row 7, column 2 has %s, expected", name);
        ok(is_refused_in_traps(fine, h, NULL, text), "so is it as a %s feature", sparse ? "sparse" : "dense");
    }
    graphs->destroy(graph);
    GrB_Matrix_free(&fine);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Vector_free(&labels);
}

static void test_search_in_traps(void)
{
    static const double special[4] = { 1, 0, INFINITY, NAN };
    static const int    flags[4] = { 0, GRAFT_GRB_ZERO, GRAFT_GRB_INFINITY, GRAFT_GRB_NAN };
    double              doubles[37];
    float               floats[37];

    if (!has_avx()) {
        skip(4, "this processor has no AVX");
        return;
    }
    for (int k = 0; k < 4; k++) {
        int found[2];

        for (int i = 0; i < 37; i++) floats[i] = (float)(doubles[i] = i == 17 ? special[k] : i + 1);
        feenableexcept(TRAPS);
        found[0] = find_special(floats, 0, 37);
        found[1] = find_special(doubles, 1, 37);
        fedisableexcept(FE_ALL_EXCEPT);
        ok(found[0] == flags[k] && found[1] == flags[k], "with traps, %g is found in an operand", special[k]);
    }
}

/* Rows of ones, which GraphBLAS may store as a single value, must have weights like the rows of other ranks. */
static void test_ones_over_ranks(const graft_api *api)
{
    const graft_graph_api *graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    GrB_Matrix             a = three_each(GrB_FP64);
    graft_error            error = GRAFT_INIT(graft_error);
    graft_graph           *graph = NULL;
    char                   text[2000] = "";

    GrB_Matrix_assign_FP64(a, a, NULL, 1, GrB_ALL, N, GrB_ALL, N, GrB_DESC_S);
    if (graft_grb_graph(graphs, api->context, NULL, a, 0, &graph, &error) == GRAFT_OK)
        graphs->explain(graph, text, sizeof text, &error);
    if (!ok(strstr(text, "weighted") != NULL && strstr(text, "unweighted") == NULL, "weights of 1 are weights"))
        diag("%s%s", error.message, text);
    graphs->destroy(graph);
    GrB_Matrix_free(&a);
}

/* Weights that GraphBLAS stores as a single 1 can be updated after they were expanded. */
static void test_update_of_ones(const graft_api *api)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, update));
    GrB_Matrix             ones = three_each(GrB_FP32), other = three_each(GrB_FP32), h = all_elements(N, WIDTH);
    GrB_Vector             labels = some_labels(), split = some_split();
    graft_error            error = GRAFT_INIT(graft_error);
    graft_trainer         *trainer = NULL;
    graft_grb_dataset      lent, next;
    int32_t                rc = GRAFT_ERR_ARG;

    GrB_Matrix_assign_FP64(ones, ones, NULL, 1, GrB_ALL, N, GrB_ALL, N, GrB_DESC_S);
    ok(graft_grb_lend_dataset(ones, h, labels, split, &lent) == GrB_SUCCESS && lent.data.graph->values == NULL &&
           lent.graph.copied == 0,
       "weights that are a single 1 are lent without a copy");
    ok(graft_grb_expand_ones(&lent.graph, 0) == GrB_SUCCESS && lent.data.graph->values != NULL, "and expanded");
    if (graft_grb_lend_dataset(other, h, labels, split, &next) == GrB_SUCCESS)
        rc = train->create(api->context, &lent.data, &trainer, &error);
    if (rc >= 0) rc = train->update(trainer, GRAFT_UPDATE_EDGE_VALUES, &next.data, &error);
    ok_or(rc >= 0, error.message, "then other weights replace them");
    train->destroy(trainer);
    graft_grb_return_dataset(&lent);
    graft_grb_return_dataset(&next);
    GrB_Matrix_free(&ones);
    GrB_Matrix_free(&other);
    GrB_Matrix_free(&h);
    GrB_Vector_free(&labels);
    GrB_Vector_free(&split);
}

/* Whether a data set with this label of vertex 7, or with this value in its split, is refused with a message that names
 * the vertex and the value. */
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

int main(void)
{
    const graft_api *api = NULL;

    GrB_init(GrB_NONBLOCKING);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) == GRAFT_OK, "the library is opened")) return done();
    test_lent_dataset(api);
    test_types_of_dataset(api);
    test_values_beyond_floats(api);
    test_value_in_traps(api, NAN, "nan");
    test_value_in_traps(api, INFINITY, "inf");
    test_value_in_traps(api, -INFINITY, "-inf");
    test_search_in_traps();
    test_ones_over_ranks(api);
    test_update_of_ones(api);
    test_wrong_values();
    api->close(api->context);
    GrB_finalize();
    return done();
}
