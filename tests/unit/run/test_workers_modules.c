/* Checks option workers with a kernel and a dense module in files, each of which serves one thread at a time and
 * is slower than the processor. The two must work at the same time, and losses must be bitwise identical to those in
 * the plain order.
 *
 *     test_workers_modules graft_kernel_slow.so graft_dense_slow.so
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"

#include "graft_load.h"
#include "graft_train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Vertices on a line, each with an edge to REACH others on either side, so that blocks of rows need few other
 * blocks. */
enum { N = 8192, REACH = 3, WIDTH = 16, CLASSES = 4, EPOCHS = 4 };

static int64_t row_ptr[N + 1];
static int32_t col_idx[N * 2 * REACH], labels[N];
static float   features[N * WIDTH];
static uint8_t split[N];

static graft_error error = GRAFT_INIT(graft_error);

static void make_line(void)
{
    int64_t entries = 0;

    for (int64_t v = 0; v < N; v++) {
        for (int64_t u = v - REACH; u <= v + REACH; u++)
            if (u != v && u >= 0 && u < N) col_idx[entries++] = (int32_t)u;
        row_ptr[v + 1] = entries;
        labels[v] = (int32_t)(v * 7 / 11 % CLASSES);
        split[v] = GRAFT_SPLIT_TRAIN;
        for (int64_t j = 0; j < WIDTH; j++) features[v * WIDTH + j] = (float)((v * 31 + j * 17) % 23 - 11) / 11;
    }
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct outcome {
    double loss[EPOCHS], fastest; /* losses, and seconds of the fastest epoch after the first */
    char   explained[2048];
};

static int32_t train_in_order(const graft_api *api, const graft_dataset *set, const char *workers, struct outcome *o)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    graft_trainer         *trainer = NULL;
    int32_t                rc;

    host_set(api, workers);
    o->fastest = 1e9;
    rc = train->create(api->context, set, &trainer, &error);
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        const double begin = seconds_now();
        graft_epoch  epoch = output_epoch();

        rc = train->epoch(trainer, &epoch, &error);
        o->loss[i] = epoch.loss;
        if (i > 0 && seconds_now() - begin < o->fastest) o->fastest = seconds_now() - begin;
    }
    if (rc == GRAFT_OK) rc = train->explain(trainer, o->explained, sizeof o->explained, &error);
    train->destroy(trainer);
    return rc;
}

static void compare_orders(const graft_api *api, const graft_dataset *set)
{
    static struct outcome plain, piped;

    if (!ok(train_in_order(api, set, "workers=no", &plain) == GRAFT_OK &&
                train_in_order(api, set, "workers=sparse:1:8", &piped) == GRAFT_OK,
            "models train with both dense modules")) {
        diag("%s", error.message);
        return;
    }
    ok(plain.loss[0] != plain.loss[EPOCHS - 1] && memcmp(plain.loss, piped.loss, sizeof plain.loss) == 0,
       "losses with each module are bitwise identical with and without the pipeline");
    ok(piped.fastest < 0.8 * plain.fastest,
       "both modules work at the same time: an epoch takes %.2f of its time without the pipeline",
       piped.fastest / plain.fastest);
    diag("%.0f ms in the plain order, %.0f ms in the pipeline", 1e3 * plain.fastest, 1e3 * piped.fastest);
    diag("%s", strstr(piped.explained, "workers ") != NULL ? strstr(piped.explained, "workers ") : "");
}

int main(int n, char **modules)
{
    const graft_api *api = NULL;
    const graft_csr  graph = {
         .size = sizeof graph, .index_type = GRAFT_I32, .n_rows = N, .n_cols = N, .row_ptr = row_ptr, .col_idx = col_idx
    };
    graft_dense   x = { sizeof x, GRAFT_F32, N, WIDTH, WIDTH, features };
    graft_dataset set = GRAFT_INIT(graft_dataset);

    make_line();
    set.n_vertices = N;
    set.n_features = WIDTH;
    set.graph = &graph;
    set.features = &x;
    set.labels = labels;
    set.split = split;
    set.n_classes = CLASSES;
    if (!ok(n == 3 && graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK &&
                api->load_module(api->context, modules[1], &error) == GRAFT_OK &&
                api->load_module(api->context, modules[2], &error) == GRAFT_OK,
            "a context is opened and loads both modules")) {
        diag("%s", error.message);
        return done();
    }
    host_set_all(api, "model=sage layers=3 hidden=16 threads=2 dropout=0 norm=layer reuse_input=no order=given "
                      "row_masks=no eval_every=0 mxm.kernel=slow dense.module=slow");
    compare_orders(api, &set);
    api->close(api->context);
    return done();
}
