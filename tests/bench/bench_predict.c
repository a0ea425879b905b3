/* Measures the prediction of a list of vertices, compared with the prediction of all vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "graft_model.h"
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench_predict [GRAPH [FEATURES [ROUNDS [KEY=VALUE...]]]]\n"
    "An untrained model predicts 1, 10, 100, ... vertices of GRAPH (default: uniform:100000:1000000, see bench_mxm)\n"
    "with random features (128 columns), in turns with all vertices, ROUNDS times (5). KEY=VALUE are other options.";

enum { CLASSES = 40, ROUNDS_MOST = 100, LISTS_MOST = 12 };

struct predict_bench {
    const graft_api       *api;
    const graft_model_api *models;
    graft_model           *model;
    graft_dataset          data;
    int64_t               *list;
    int32_t               *all, *some; /* predicted classes of all vertices, and of the vertices of a list */
    graft_error            error;
};

static void check_predict(const struct predict_bench *b, int32_t rc)
{
    if (rc < 0) bench_die("%s", b->error.message);
}

static void make_untrained(struct predict_bench *b, int64_t features, float *x)
{
    const graft_train_api *train = graft_interface(b->api, GRAFT_TRAIN_ID, sizeof *train);
    const int64_t          n = b->data.n_vertices;
    int32_t               *labels = bench_new((size_t)n, sizeof *labels, 1);
    uint8_t               *split = bench_new((size_t)n, 1, 1);
    graft_trainer         *trainer = NULL;

    for (int64_t i = 0; i < n * features; i++) x[i] = (float)(bench_mix((uint64_t)i) >> 40) * 0x1p-24f;
    for (int64_t v = 0; v < n; v++) {
        labels[v] = (int32_t)(v % CLASSES);
        split[v] = (uint8_t)(v % 3 == 0 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST);
    }
    b->data.labels = labels;
    b->data.split = split;
    check_predict(b, train->create(b->api->context, &b->data, &trainer, &b->error));
    check_predict(b, b->models->create(trainer, GRAFT_MODEL_LAST, &b->model, &b->error));
    train->destroy(trainer);
    b->data.labels = NULL;
    b->data.split = NULL;
    free(labels);
    free(split);
}

static double predict_all(struct predict_bench *b)
{
    const double begin = bench_seconds();

    check_predict(b, b->models->predict(b->model, GRAFT_WEIGHTS_LAST, &b->data, b->all, NULL, &b->error));
    return bench_seconds() - begin;
}

/* Returns the seconds of predicting `count` vertices. The classes must equal those of the prediction of all
 * vertices. */
static double predict_list(struct predict_bench *b, int64_t count)
{
    const graft_prediction args = { .size = sizeof args,
                                    .weights = GRAFT_WEIGHTS_LAST,
                                    .dataset = &b->data,
                                    .vertices = b->list,
                                    .n = count,
                                    .labels = b->some };
    const double           begin = bench_seconds();
    double                 end;

    check_predict(b, b->models->predict_vertices(b->model, &args, &b->error));
    end = bench_seconds();
    for (int64_t i = 0; i < count; i++) {
        if (b->some[i] == b->all[b->list[i]]) continue;
        fprintf(stderr, "vertex %lld of a list of %lld: class %d, expected %d\n", (long long)b->list[i],
                (long long)count, b->some[i], b->all[b->list[i]]);
        exit(1);
    }
    return end - begin;
}

static void measure_lists(struct predict_bench *b, int rounds)
{
    double    seconds[LISTS_MOST + 1][ROUNDS_MOST], all;
    const int most = LISTS_MOST;
    int64_t   size[LISTS_MOST] = { 1 };
    int       lists = 0;

    for (int64_t count = 1; count <= b->data.n_vertices && lists < most; count *= 10) size[lists++] = count;
    for (int round = 0; round < rounds; round++) {
        seconds[LISTS_MOST][round] = predict_all(b);
        for (int i = 0; i < lists; i++) seconds[i][round] = predict_list(b, size[i]);
    }
    all = bench_median(seconds[LISTS_MOST], rounds);
    printf("%10lld vertices, all   %9.4f s\n", (long long)b->data.n_vertices, all);
    for (int i = 0; i < lists; i++) {
        const double one = bench_median(seconds[i], rounds);

        printf("%10lld of a list       %9.4f s   %.3f of all\n", (long long)size[i], one, one / all);
    }
}

int main(int argc, char **argv)
{
    static struct predict_bench b;
    const char                 *what = argc > 1 ? argv[1] : "uniform:100000:1000000";
    const int64_t               features = argc > 2 ? atoll(argv[2]) : 128;
    const int                   rounds = argc > 3 ? atoi(argv[3]) : 5;
    struct bench_graph          graph;
    graft_csr                   csr = GRAFT_INIT(graft_csr);
    graft_dense                 x = GRAFT_INIT(graft_dense);

    b.error.size = sizeof b.error;
    if (features < 1 || rounds < 1 || rounds > ROUNDS_MOST) bench_die("%s", usage);
    check_predict(&b, graft_load(getenv("GRAFT_LIBRARY"), NULL, &b.api, &b.error));
    for (int i = 4; i < argc; i++) {
        char *const value = strchr(argv[i], '=');

        if (value == NULL) bench_die("%s", usage);
        *value = 0;
        check_predict(&b, b.api->set(b.api->context, argv[i], value + 1, &b.error));
    }
    b.models = graft_interface(b.api, GRAFT_MODEL_ID, sizeof(graft_model_api));
    bench_graph_init(&graph, what, b.api, 1);
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = x.n_rows = graph.n;
    csr.row_ptr = graph.row_ptr;
    csr.col_idx = graph.col_idx;
    x.dtype = GRAFT_F32;
    x.n_cols = x.stride = features;
    x.data = bench_new((size_t)(graph.n * features), sizeof(float), 1);
    b.data = (graft_dataset)GRAFT_INIT(graft_dataset);
    b.data.n_vertices = graph.n;
    b.data.n_features = features;
    b.data.n_classes = CLASSES;
    b.data.graph = &csr;
    b.data.features = &x;
    b.list = bench_new((size_t)graph.n, sizeof *b.list, 1);
    b.all = bench_new((size_t)graph.n, sizeof *b.all, 1);
    b.some = bench_new((size_t)graph.n, sizeof *b.some, 1);
    for (int64_t i = 0; i < graph.n; i++) b.list[i] = (int64_t)(bench_mix((uint64_t)i) % (uint64_t)graph.n);
    make_untrained(&b, features, x.data);
    measure_lists(&b, rounds);
    b.models->destroy(b.model);
    b.api->close(b.api->context);
    bench_graph_fini(&graph);
    free(b.list);
    free(b.all);
    free(b.some);
    free(x.data);
    return 0;
}
