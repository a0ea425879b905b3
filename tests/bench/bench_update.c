/* Measures update() of a host with time steps. Each step sets new features, trains for an epoch and predicts. The time
 * of update() is compared with the times of the other calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "harness/hosts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench_update [SIDE [RANKS [STEPS [KEY=VALUE...]]]]\n"
    "A grid of SIDE x SIDE vertices (default: 400) on 1 to 8 RANKS (2), which are threads of this process, each with\n"
    "option threads = 1. KEY=VALUE are other options.";

enum { FEATURES = 16, CLASSES = 4, STEPS_MOST = 1000, SETTINGS_MOST = 12 };

/* The measured calls of a step. For comparison, COPY copies the features with memcpy(). */
enum { COPY, UPDATE, EPOCH, PREDICT, CALLS };
static const char *const call_name[CALLS] = { "memcpy of the features", "update", "epoch", "predict" };

struct bench {
    graft_dataset dataset;
    graft_csr     graph;
    graft_dense   features;
    int64_t      *row_ptr;
    int32_t      *col_idx, *labels;
    uint8_t      *split;
    float        *x;
    int           steps;
    double        seconds[CALLS][STEPS_MOST]; /* durations of the calls on rank 0 */
};

/* Make a periodic grid in which every vertex gathers from its four neighbours. */
static void make_grid(struct bench *b, int64_t side)
{
    const int64_t n = side * side;

    b->row_ptr = bench_new((size_t)n + 1, sizeof *b->row_ptr, 1);
    b->col_idx = bench_new((size_t)(4 * n), sizeof *b->col_idx, 1);
    b->labels = bench_new((size_t)n, sizeof *b->labels, 1);
    b->split = bench_new((size_t)n, 1, 1);
    b->x = bench_new((size_t)(n * FEATURES), sizeof *b->x, 1);
    for (int64_t v = 0; v < n; v++) {
        const int64_t i = v / side, j = v % side;
        int32_t      *to = b->col_idx + 4 * v;

        to[0] = (int32_t)((i + side - 1) % side * side + j);
        to[1] = (int32_t)(i * side + (j + side - 1) % side);
        to[2] = (int32_t)(i * side + (j + 1) % side);
        to[3] = (int32_t)((i + 1) % side * side + j);
        b->row_ptr[v + 1] = 4 * (v + 1);
        b->labels[v] = (int32_t)(bench_mix((uint64_t)(i / 16 * side + j / 16)) % CLASSES);
        b->split[v] = (uint8_t)(v % 4 == 0 ? GRAFT_SPLIT_VALIDATION : GRAFT_SPLIT_TRAIN);
    }
    b->graph = (graft_csr){ sizeof b->graph, GRAFT_I32, 0, 0, n, n, b->row_ptr, b->col_idx, NULL, NULL };
    b->features = (graft_dense){ sizeof b->features, GRAFT_F32, n, FEATURES, FEATURES, b->x };
    b->dataset = (graft_dataset)GRAFT_INIT(graft_dataset);
    b->dataset.n_vertices = n;
    b->dataset.n_features = FEATURES;
    b->dataset.n_classes = CLASSES;
    b->dataset.graph = &b->graph;
    b->dataset.features = &b->features;
    b->dataset.labels = b->labels;
    b->dataset.split = b->split;
}

/* Simulate one time step: the features of this rank become waves that travel over its rows. */
static void advance(const struct host_slice *slice, int step)
{
    float *const x = slice->dataset.features->data;

    for (int64_t i = 0; i < (slice->end - slice->first) * FEATURES; i++)
        x[i] = (float)sin(0.01 * (double)(slice->first + i / FEATURES) + 0.1 * step + (double)(i % FEATURES));
}

static int32_t bench_step(struct host *host, struct host_trainer *t, int step, int32_t *labels, float *copy)
{
    struct bench *b = host->all->arg;
    graft_epoch   epoch = GRAFT_INIT(graft_epoch);
    const int64_t rows = t->slice.end - t->slice.first;
    double        at[CALLS + 1];
    int32_t       rc = GRAFT_OK;

    advance(&t->slice, step);
    at[COPY] = bench_seconds();
    memcpy(copy, t->slice.dataset.features->data, (size_t)(rows * FEATURES) * sizeof *copy);
    at[UPDATE] = bench_seconds();
    rc = host->train->update(t->trainer, GRAFT_UPDATE_FEATURES, &t->slice.dataset, &host->error);
    at[EPOCH] = bench_seconds();
    if (rc == GRAFT_OK) rc = host->train->epoch(t->trainer, &epoch, &host->error);
    at[PREDICT] = bench_seconds();
    if (rc == GRAFT_OK) rc = host->train->predict(t->trainer, GRAFT_WEIGHTS_LAST, labels, NULL, &host->error);
    at[CALLS] = bench_seconds();
    for (int i = 0; i < CALLS && host->rank == 0; i++) b->seconds[i][step] = at[i + 1] - at[i];
    return rc;
}

static int32_t bench_body(struct host *host)
{
    struct bench       *b = host->all->arg;
    struct host_trainer t;
    int32_t             rc = host_trainer_create(host, &b->dataset, SLICES_EVEN, &t);
    const int64_t       rows = t.slice.end - t.slice.first;
    int32_t            *labels = bench_new((size_t)rows + 1, sizeof *labels, 1);
    float              *copy = bench_new((size_t)(rows * FEATURES) + 1, sizeof *copy, 1);

    for (int step = 0; step < b->steps && rc == GRAFT_OK; step++) rc = bench_step(host, &t, step, labels, copy);
    host_trainer_destroy(host, &t);
    free(labels);
    free(copy);
    return rc;
}

int main(int argc, char **argv)
{
    static struct hosts hosts;
    static struct bench b;
    const char         *settings[SETTINGS_MOST + 4] = { "threads=1", "eval_every=0", "epochs=1000000" };
    const int64_t       side = argc > 1 ? atoll(argv[1]) : 400;
    const int32_t       ranks = argc > 2 ? atoi(argv[2]) : 2;
    double              median[CALLS];

    b.steps = argc > 3 ? atoi(argv[3]) : 30;
    if (side < 2 || side > 20000 || ranks < 1 || ranks > HOSTS_MOST || b.steps < 1 || b.steps > STEPS_MOST ||
        argc - 4 > SETTINGS_MOST)
        bench_die("%s", usage);
    for (int i = 4; i < argc; i++) settings[i - 1] = argv[i];
    make_grid(&b, side);
    hosts_run(&hosts, ranks, settings, bench_body, &b);
    if (hosts_fault(&hosts) != NULL) bench_die("%s", hosts_fault(&hosts));
    for (int i = 0; i < CALLS; i++) {
        median[i] = bench_median(b.seconds[i], b.steps);
        printf("%-24s %9.3f ms\n", call_name[i], 1e3 * median[i]);
    }
    printf("update / (epoch + predict) %.2f %%\n", 100 * median[UPDATE] / (median[EPOCH] + median[PREDICT]));
    free(b.row_ptr);
    free(b.col_idx);
    free(b.labels);
    free(b.split);
    free(b.x);
    return 0;
}
