/* A host with a loop of its own over minibatches: for each vertex the mean over its neighbours of the mean over theirs,
 * estimated from a few of them. One thread computes, another one makes batches ahead.
 *
 *     cc batches.c -o batches $(pkg-config --cflags --libs graft) -lpthread
 *     ./batches $(pkg-config --variable=library graft)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_sample.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { N = 2000, DEGREE = 40, LAYERS = 2 };

static int64_t row_ptr[N + 1];
static int32_t col_idx[N * DEGREE];
static double  x[N], exact[LAYERS + 1][N]; /* the feature of each vertex, and its exact means over all neighbours */

/* Make a graph in which vertex v has the DEGREE vertices after it as neighbours. */
static void make_graph(void)
{
    for (int v = 0; v < N; v++) {
        row_ptr[v + 1] = row_ptr[v] + DEGREE;
        for (int i = 0; i < DEGREE; i++) col_idx[row_ptr[v] + i] = (v + 1 + i) % N;
        exact[0][v] = x[v] = v % 100;
    }
    for (int l = 0; l < LAYERS; l++)
        for (int v = 0; v < N; v++)
            for (int i = 0; i < DEGREE; i++) exact[l + 1][v] += exact[l][(v + 1 + i) % N] / DEGREE;
}

/* The data that the other thread needs. */
struct helper {
    const graft_sample_api *samples;
    graft_sampler          *sampler;
    pthread_mutex_t         lock; /* protects the member `stop` */
    int                     stop;
};

static int read_stop(struct helper *h)
{
    int stop;

    pthread_mutex_lock(&h->lock);
    stop = h->stop;
    pthread_mutex_unlock(&h->lock);
    return stop;
}

static void *make_ahead(void *arg)
{
    struct helper *h = arg;

    while (!read_stop(h)) {
        int32_t made = 0;

        h->samples->prefetch(h->sampler, &made, NULL); /* if this fails, next() tries it again and reports the error */
        if (!made) sched_yield();
    }
    return NULL;
}

/* Compute means over the blocks of a batch, the first one over the features. The means of its seeds are then in h[0 ..
 * n_seeds-1]. */
static int32_t compute(const graft_sample_api *samples, graft_sampler *sampler, const graft_sample_batch *batch,
                       double *h, graft_error *error)
{
    graft_sample_block block = GRAFT_INIT(graft_sample_block);

    for (int64_t i = 0; i < batch->n_vertices; i++) h[i] = x[batch->vertex[i]];
    for (int32_t l = 0; l < batch->n_layers; l++) {
        double        mean[N]; /* a separate array, because destinations are sources too */
        const int32_t rc = samples->block(sampler, l, &block, error);

        if (rc < 0) return rc;
        for (int64_t i = 0; i < block.n_dst; i++) {
            mean[i] = 0;
            for (int64_t e = block.row_ptr[i]; e < block.row_ptr[i + 1]; e++)
                mean[i] += h[block.col_idx[e]] / (double)(block.row_ptr[i + 1] - block.row_ptr[i]);
        }
        memcpy(h, mean, (size_t)block.n_dst * sizeof *h);
    }
    return GRAFT_OK;
}

/* Run one epoch, in which each vertex is the seed of one batch. */
static int32_t run_epoch(const graft_sample_api *samples, graft_sampler *sampler, int64_t epoch, graft_error *error)
{
    static double      h[N];
    double             sum = 0;
    int64_t            seeds = 0, vertices = 0, n_batches;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    int32_t            rc = samples->begin(sampler, epoch, 0, &n_batches, error);

    if (rc < 0) return rc;
    while ((rc = samples->next(sampler, &batch, error)) == GRAFT_OK) {
        rc = compute(samples, sampler, &batch, h, error);
        if (rc < 0) return rc;
        for (int64_t i = 0; i < batch.n_seeds; i++) {
            const double off = h[i] - exact[LAYERS][batch.vertex[i]];
            sum += off < 0 ? -off : off;
        }
        seeds += batch.n_seeds;
        vertices += batch.n_vertices;
    }
    if (rc != GRAFT_ERR_NOT_FOUND) return rc; /* ERR_NOT_FOUND means the end of the epoch */
    printf("epoch %lld: %lld batches, %lld seeds, %lld vertices, error %.3f\n", (long long)epoch, (long long)n_batches,
           (long long)seeds, (long long)vertices, sum / (double)seeds);
    return GRAFT_OK;
}

static int32_t run(const graft_api *api, const graft_mxm_api *mxm, const graft_sample_api *samples, graft_error *error)
{
    static int64_t seeds[N];
    graft_csr      csr = GRAFT_INIT(graft_csr);
    graft_matrix  *graph = NULL;
    struct helper  helper = { .samples = samples, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t      thread;
    int32_t        rc;

    for (int v = 0; v < N; v++) seeds[v] = v;
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = N;
    csr.row_ptr = row_ptr;
    csr.col_idx = col_idx;
    api->set(api->context, "layers", "2", error);
    api->set(api->context, "fanout", "10,15", error); /* for the first layer, and for the second one */
    api->set(api->context, "batch_size", "64", error);
    api->set(api->context, "sample.ahead", "4", error);
    rc = mxm->matrix_create(api->context, &csr, 0, &graph, error);
    if (rc >= 0) rc = samples->create(api->context, graph, seeds, N, &helper.sampler, error);
    if (rc >= 0 && pthread_create(&thread, NULL, make_ahead, &helper) == 0) {
        for (int64_t epoch = 0; epoch < 3 && rc >= 0; epoch++) rc = run_epoch(samples, helper.sampler, epoch, error);
        pthread_mutex_lock(&helper.lock);
        helper.stop = 1;
        pthread_mutex_unlock(&helper.lock);
        pthread_join(thread, NULL); /* the thread must end before destroy() */
    }
    samples->destroy(helper.sampler);
    mxm->matrix_destroy(graph);
    return rc;
}

int main(int argc, char **argv)
{
    const graft_api        *api = NULL;
    const graft_mxm_api    *mxm = NULL;
    const graft_sample_api *samples = NULL;
    graft_error             error = GRAFT_INIT(graft_error);
    int32_t                 rc = graft_load(argc > 1 ? argv[1] : NULL, NULL, &api, &error);

    make_graph();
    if (rc >= 0) mxm = graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_destroy));
    if (rc >= 0) samples = graft_interface(api, GRAFT_SAMPLE_ID, GRAFT_HAS(graft_sample_api, destroy));
    if (mxm != NULL && samples != NULL) rc = run(api, mxm, samples, &error);
    if (rc < 0) fprintf(stderr, "batches: %s\n", error.message);
    if (api != NULL) api->close(api->context);
    return rc < 0 || samples == NULL;
}
