/* Compares the memory of minibatch training with the memory of the data set. The measured memory is the peak of the
 * process while a trainer is created and trains. It excludes pages of mapped files, which the system may evict.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"

#include "graft_load.h"
#include "graft_train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char usage[] = "usage: bench_batches GRAPH FEATURES memory|FILE EVALUATIONS [KEY=VALUE...]\n"
                            "Features in memory, or in a new FILE that is mapped and removed. EVALUATIONS: 0 or 1.";

enum { CLASSES = 47 };

static _Atomic int64_t peak;
static _Atomic int     ends;

/* Returns the resident bytes that are not backed by a file. */
static int64_t resident_now(void)
{
    FILE     *file = fopen("/proc/self/status", "r");
    char      line[128];
    long long kilobytes = -1;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %lld", &kilobytes) == 1) break;
    if (file != NULL) fclose(file);
    return kilobytes * 1024;
}

static void *watch_memory(void *arg)
{
    while (!ends) {
        const int64_t now = resident_now();

        if (now > peak) peak = now;
        usleep(2000);
    }
    return arg;
}

/* Create features with small values, in memory or in a file that is then mapped. */
static float *make_features(const char *path, int64_t count)
{
    FILE  *file = strcmp(path, "memory") == 0 ? NULL : fopen(path, "w+");
    float *x = file == NULL ? bench_new((size_t)count, sizeof *x, 1) : NULL, row[1000];

    for (int64_t i = 0; i < count; i += 1000) {
        const int64_t some = count - i < 1000 ? count - i : 1000;

        for (int64_t j = 0; j < some; j++) row[j] = (float)(bench_mix((uint64_t)(i + j)) % 256) / 128 - 1;
        if (x != NULL) memcpy(x + i, row, (size_t)some * sizeof *x);
        else if (fwrite(row, sizeof *row, (size_t)some, file) != (size_t)some) bench_die("%s cannot be written", path);
    }
    if (x != NULL) return x;
    fflush(file);
    x = mmap(NULL, (size_t)count * sizeof *x, PROT_READ, MAP_SHARED, fileno(file), 0);
    fclose(file);
    unlink(path);
    if (x == MAP_FAILED) bench_die("%s cannot be mapped", path);
    return x;
}

static void print(const char *what, int64_t bytes, double dataset)
{
    printf("%-36s %8.1f MB  %5.2f x the data set\n", what, (double)bytes * 1e-6, (double)bytes / dataset);
}

static void measure_training(const graft_api *api, const graft_dataset *data, int evaluates, double dataset)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    graft_trainer         *trainer = NULL;
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);
    graft_metrics          metrics = GRAFT_INIT(graft_metrics);
    graft_error            error = GRAFT_INIT(graft_error);

    if (train->create(api->context, data, &trainer, &error) < 0) bench_die("%s", error.message);
    print("peak of create()", peak, dataset);
    if (train->epoch(trainer, &epoch, &error) < 0) bench_die("%s", error.message);
    print("peak with an epoch", peak, dataset);
    printf("seconds of the epoch                 %8.1f\n", epoch.seconds);
    if (evaluates) {
        const double begin = bench_seconds();

        peak = resident_now();
        if (train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error) < 0) bench_die("%s", error.message);
        print("peak of an evaluation", peak, dataset);
        printf("seconds of the evaluation            %8.1f\n", bench_seconds() - begin);
    }
    train->destroy(trainer);
}

int main(int argc, char **argv)
{
    const graft_api   *api = NULL;
    graft_error        error = GRAFT_INIT(graft_error);
    graft_dataset      data = GRAFT_INIT(graft_dataset);
    struct bench_graph g;
    graft_csr          graph = GRAFT_INIT(graft_csr);
    graft_dense        features;
    int64_t            width;
    double             dataset;
    pthread_t          watcher;
    char              *value;

    if (argc < 5) bench_die("%s", usage);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) bench_die("%s", error.message);
    bench_graph_init(&g, argv[1], api, 2);
    width = atoll(argv[2]);
    if (width < 1) bench_die("%s", usage);
    api->set(api->context, "epochs", "1000", &error);
    api->set(api->context, "eval_every", "0", &error);
    for (int i = 5; i < argc; i++) {
        value = strchr(argv[i], '=');
        if (value == NULL) bench_die("%s", usage);
        *value++ = '\0';
        if (api->set(api->context, argv[i], value, &error) < 0) bench_die("%s", error.message);
    }
    int32_t *labels = bench_new((size_t)g.n, sizeof *labels, 1);
    uint8_t *split = bench_new((size_t)g.n, 1, 1);
    for (int64_t v = 0; v < g.n; v++) {
        labels[v] = (int32_t)(bench_mix((uint64_t)v) % CLASSES);
        split[v] = v % 100 == 0 ? GRAFT_SPLIT_TRAIN : v % 10 == 1 ? GRAFT_SPLIT_VALIDATION : GRAFT_SPLIT_TEST;
    }
    graph = (graft_csr){ sizeof graph, GRAFT_I32, 0, 0, g.n, g.n, g.row_ptr, g.col_idx, NULL, NULL };
    features = graft_dense_in(GRAFT_F32, g.n, width, make_features(argv[3], g.n * width));
    data.n_vertices = g.n;
    data.n_features = width;
    data.n_classes = CLASSES;
    data.graph = &graph;
    data.features = &features;
    data.labels = labels;
    data.split = split;
    dataset = 4.0 * (double)g.n * (double)width + 4.0 * (double)g.nnz + 8.0 * (double)(g.n + 1) + 5.0 * (double)g.n;
    printf("data set: %lld vertices, %lld entries, %.1f MB\n", (long long)g.n, (long long)g.nnz, dataset * 1e-6);
    peak = resident_now();
    print("before create()", peak, dataset);
    if (pthread_create(&watcher, NULL, watch_memory, NULL) != 0) bench_die("there is no thread to watch");
    measure_training(api, &data, argv[4][0] == '1', dataset);
    ends = 1;
    pthread_join(watcher, NULL);
    api->close(api->context);
    bench_graph_fini(&g);
    return 0;
}
