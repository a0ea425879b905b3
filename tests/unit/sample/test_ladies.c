/* graft.sample/1 with sampler=ladies: blocks and weights against plain loops over the graph; how often vertices are
 * drawn, against their probabilities by numerical integration; weighted sums, which have no bias; any number of
 * threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft.h"
#include "graft_load.h"
#include "graft_sample.h"
#include "harness/hosts.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2 };

static const graft_api        *api;
static const graft_mxm_api    *mxm;
static const graft_sample_api *samples;
static graft_error             error;
static struct strict_host      host;

/* A graph, a third of whose vertices are seeds. */
struct world {
    struct sample_csr a;
    graft_matrix     *matrix;
    int64_t           n, n_seeds, *seeds;
};

static void world_init(struct world *w, int64_t n, graft_dtype index_type)
{
    struct sample                 sample = { 77 };
    const struct sample_csr_shape shape = { .n_rows = n, .n_cols = n, .index_type = index_type, .repeats = 1 };

    *w = (struct world){ .n = n, .seeds = calloc((size_t)n, sizeof *w->seeds) };
    sample_csr_init_shape(&w->a, &sample, &shape);
    for (int64_t v = n - 1; v >= 0; v -= 3) w->seeds[w->n_seeds++] = v;
    if (mxm->matrix_create(api->context, &w->a.csr, 0, &w->matrix, &error) != GRAFT_OK) abort();
}

static void world_fini(struct world *w)
{
    mxm->matrix_destroy(w->matrix);
    sample_csr_fini(&w->a);
    free(w->seeds);
}

static int64_t source_of(const struct world *w, int64_t e)
{
    return (int64_t)sample_at(w->a.col_idx, w->a.csr.index_type, e);
}

static graft_sampler *make_ladies(const struct world *w, const char *settings)
{
    graft_sampler *sampler = NULL;

    host_set_all(api, "layers=2 batch_size=0 sampler=ladies fanout=10 threads=2 sample.ahead=0 seed=5 drop_last=no");
    host_set_all(api, settings);
    if (samples->create(api->context, w->matrix, w->seeds, w->n_seeds, &sampler, &error) == GRAFT_OK) return sampler;
    diag("%s: %s", settings, error.message);
    return NULL;
}

/* -- one batch ---------------------------------------------------------------------------------------------------- */

/* The importance of each vertex for the first n_dst vertices of the batch: a sum of squares of elements of D^-1 A. */
static void importance(const struct world *w, const int64_t *vertex, int64_t n_dst, double *q)
{
    for (int64_t v = 0; v < w->n; v++) q[v] = 0;
    for (int64_t i = 0; i < n_dst; i++) {
        const int64_t begin = w->a.row_ptr[vertex[i]], end = w->a.row_ptr[vertex[i] + 1];

        for (int64_t e = begin; e < end; e++) q[source_of(w, e)] += pow((double)(end - begin), -2);
    }
    for (int64_t i = 0; i < n_dst; i++) q[vertex[i]] = 0;
}

/* Whether the edges of a block are all edges from its sources, and the weights fit one threshold 1 / level: a source
 * with q < level has weight level / q, others and destinations have 1. number[n]: of each vertex, or n_src or more. */
static const char *check_edges(const struct world *w, const graft_sample_batch *batch, const graft_sample_block *b,
                               const int64_t *number, const double *q)
{
    double  level = 0;
    int64_t at = 0;

    for (int64_t e = 0; e < b->n_edges; e++)
        if (b->weight[e] > 1) level = q[batch->vertex[b->col_idx[e]]] * (double)b->weight[e];
    for (int64_t i = 0; i < b->n_dst; i++) {
        const int64_t v = batch->vertex[i];

        if (b->row_ptr[i] != at) return "a row pointer";
        for (int64_t e = w->a.row_ptr[v]; e < w->a.row_ptr[v + 1]; e++) {
            const int64_t u = source_of(w, e);
            const double  weight = number[u] < b->n_dst || q[u] >= level ? 1 : level / q[u];

            if (number[u] >= b->n_src) continue;
            if (at >= b->n_edges || b->entry[at] != e || b->col_idx[at] != number[u]) return "an edge";
            if (fabs((double)b->weight[at] - weight) > 1e-6 * weight) return "a weight";
            at++;
        }
    }
    return b->row_ptr[b->n_dst] == at && b->n_edges == at ? NULL : "the number of edges";
}

static const char *check_layers(const struct world *w, graft_sampler *sampler, const graft_sample_batch *batch,
                                const int64_t *fanout)
{
    int64_t    *number = malloc((size_t)w->n * sizeof *number), next = batch->n_seeds;
    double     *q = malloc((size_t)w->n * sizeof *q);
    const char *fault = NULL;

    for (int64_t v = 0; v < w->n; v++) number[v] = INT64_MAX;
    for (int64_t i = 0; i < batch->n_vertices; i++) {
        if (number[batch->vertex[i]] < INT64_MAX) fault = "a vertex twice";
        number[batch->vertex[i]] = i;
    }
    for (int32_t l = LAYERS - 1; l >= 0 && fault == NULL; l--) {
        graft_sample_block b = GRAFT_INIT(graft_sample_block);
        int64_t            candidates = 0;

        if (samples->block(sampler, l, &b, &error) != GRAFT_OK) return error.message;
        if (b.n_dst != next) fault = "destinations are not the sources of the block behind";
        importance(w, batch->vertex, b.n_dst, q);
        for (int64_t v = 0; v < w->n; v++) candidates += q[v] > 0;
        if (b.n_src - b.n_dst != (fanout[l] < candidates ? fanout[l] : candidates)) fault = "the number of vertices";
        for (int64_t i = b.n_dst; i < b.n_src; i++)
            if (!(q[batch->vertex[i]] > 0)) fault = "a vertex without an edge to a destination";
        if (fault == NULL) fault = check_edges(w, batch, &b, number, q);
        next = b.n_src;
    }
    if (next != batch->n_vertices) fault = "vertices behind the last source";
    free(number);
    free(q);
    return fault;
}

static uint64_t blend(uint64_t sum, const void *data, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) sum = (sum ^ ((const uint8_t *)data)[i]) * 0x100000001B3u;
    return sum;
}

/* Read an epoch from batch `first` on. Returns a fault or NULL. */
static const char *read_layers(const struct world *w, graft_sampler *sampler, int64_t epoch, int64_t first,
                               const int64_t *fanout, int *seen, uint64_t *print)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    int64_t            n_batches;

    if (samples->begin(sampler, epoch, first, &n_batches, &error) != GRAFT_OK) return error.message;
    for (int64_t i = first; i < n_batches; i++) {
        const char *fault;

        if (samples->next(sampler, &batch, &error) != GRAFT_OK) return error.message;
        fault = check_layers(w, sampler, &batch, fanout);
        if (fault != NULL) return fault;
        for (int64_t j = 0; seen != NULL && j < batch.n_seeds; j++) seen[batch.vertex[j]]++;
        print[i] = blend(17, batch.vertex, batch.n_vertices * 8);
        for (int32_t l = 0; l < LAYERS; l++) {
            samples->block(sampler, l, &block, &error);
            print[i] = blend(blend(print[i], block.col_idx, block.n_edges * 4), block.weight, block.n_edges * 4);
        }
    }
    return samples->next(sampler, &batch, &error) == GRAFT_ERR_NOT_FOUND ? NULL : "a batch behind the last";
}

static void test_layers(const struct world *w, const char *settings, const int64_t *fanout)
{
    static const char *const more[] = { "threads=1", "threads=2", "threads=5", "threads=4 sample.ahead=1" };
    enum { BATCHES = 300 };
    static uint64_t print[4][BATCHES], again[BATCHES], other[BATCHES];
    int            *seen = calloc((size_t)w->n, sizeof *seen), once = 1, same = 1;
    const char     *fault = NULL;
    char            all[300];

    for (int t = 0; t < 4 && fault == NULL; t++) {
        graft_sampler *sampler;

        snprintf(all, sizeof all, "%s %s", settings, more[t]);
        sampler = make_ladies(w, all);
        memset(seen, 0, (size_t)w->n * sizeof *seen);
        fault = sampler == NULL ? "no sampler" : read_layers(w, sampler, 1, 0, fanout, seen, print[t]);
        for (int64_t i = 0; i < w->n_seeds; i++) once &= seen[w->seeds[i]] == 1;
        if (fault == NULL) fault = read_layers(w, sampler, 2, 0, fanout, NULL, other);
        memcpy(again, print[t], sizeof again);
        if (fault == NULL) fault = read_layers(w, sampler, 1, 2, fanout, NULL, again);
        same &= memcmp(print[0], print[t], sizeof again) == 0 && memcmp(again, print[t], sizeof again) == 0;
        same &= memcmp(other, print[t], sizeof again) != 0;
        samples->destroy(sampler);
    }
    ok(fault == NULL && once, "%s: layer-wise blocks and their importance weights are right (%s)", settings,
       fault != NULL ? fault : "right");
    ok(same,
       "%s: batches are bitwise identical with 1, 2, 4, 5 threads and from the middle; another "
       "epoch differs",
       settings);
    free(seen);
}

/* -- draws -------------------------------------------------------------------------------------------------------- */

/* The probability that fewer than `most` of the vertices other than v have a smaller key u / q than v, u uniform. */
static double inclusion(const double *q, int64_t n, int64_t v, int64_t most)
{
    enum { STEPS = 20000, MOST = 16 };
    double sum = 0;

    for (int step = 0; step < STEPS; step++) {
        const double key = (step + 0.5) / STEPS / q[v];
        double       p[MOST + 1] = { 1 }, below = 0; /* p[k]: k vertices have smaller keys */

        for (int64_t u = 0; u < n; u++) {
            const double has = q[u] * key < 1 ? q[u] * key : 1;

            if (u == v || q[u] == 0) continue;
            for (int64_t k = most; k > 0; k--) p[k] = p[k] * (1 - has) + p[k - 1] * has;
            p[0] *= 1 - has;
        }
        for (int64_t k = 0; k < most; k++) below += p[k];
        sum += below / STEPS;
    }
    return sum;
}

/* How often each vertex is drawn for the same destinations. */
static void test_draws(const struct world *w, int64_t fanout)
{
    enum { TIMES = 20000 };
    const int64_t      seeds[] = { 2, 7, 9, 13, 17, 22, 33, 48, 51, 64, 76, 88, 94, 101 }, n_seeds = 14;
    double            *q = calloc((size_t)w->n, sizeof *q), worst = 0, chi = 0, expected = 0;
    int64_t           *times = calloc((size_t)w->n, sizeof *times), tested = 0;
    char               settings[64];
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sampler     *sampler;

    snprintf(settings, sizeof settings, "layers=1 fanout=%d", (int)fanout);
    sampler = make_ladies(w, settings);
    for (int64_t epoch = 0; epoch < TIMES; epoch++) {
        samples->begin(sampler, epoch, 0, NULL, &error);
        if (samples->sample(sampler, seeds, n_seeds, 0, &batch, &error) != GRAFT_OK) abort();
        for (int64_t i = n_seeds; i < batch.n_vertices; i++) times[batch.vertex[i]]++;
    }
    importance(w, seeds, n_seeds, q);
    for (int64_t v = 0; v < w->n; v++) {
        const double p = q[v] > 0 ? inclusion(q, w->n, v, fanout) : 0, z = (double)times[v] - TIMES * p;

        expected += p;
        if (q[v] == 0 && times[v] > 0) worst = INFINITY;
        if (p < 1e-4 || p > 1 - 1e-4) continue;
        worst = fmax(worst, fabs(z) / sqrt(TIMES * p * (1 - p)));
        chi += z * z / (TIMES * p * (1 - p));
        tested++;
    }
    ok(tested > 5 && worst < 4.5 && chi < (double)tested + 5 * sqrt(2 * (double)tested) &&
           fabs(expected - (double)fanout) < 1e-3,
       "fanout %lld: %lld vertices are drawn with the right probabilities: at most %.2f "
       "deviations, chi-square %.1f",
       (long long)fanout, (long long)tested, worst, chi);
    samples->destroy(sampler);
    free(q);
    free(times);
}

/* Vertices of equal importance: all subsets of three of the six in-neighbours of a vertex are as likely. */
static void test_subsets(void)
{
    enum { TIMES = 20000, SUBSETS = 20 };
    const int64_t      row_ptr[] = { 0, 6, 6, 6, 6, 6, 6, 6 }, seed = 0;
    const int32_t      col_idx[] = { 1, 2, 3, 4, 5, 6 };
    graft_csr          csr = GRAFT_INIT(graft_csr);
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    struct world       w = { .n = 7, .seeds = (int64_t[]){ 0 }, .n_seeds = 1 };
    graft_sampler     *sampler;
    int64_t            times[128] = { 0 }, subsets = 0;
    double             chi = 0;

    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = 7;
    csr.row_ptr = row_ptr;
    csr.col_idx = col_idx;
    if (mxm->matrix_create(api->context, &csr, 0, &w.matrix, &error) != GRAFT_OK) abort();
    sampler = make_ladies(&w, "layers=1 fanout=3");
    for (int64_t epoch = 0; epoch < TIMES; epoch++) {
        int which = 0;

        samples->begin(sampler, epoch, 0, NULL, &error);
        if (samples->sample(sampler, &seed, 1, 0, &batch, &error) != GRAFT_OK) abort();
        for (int64_t i = 1; i < batch.n_vertices; i++) which |= 1 << batch.vertex[i];
        times[which]++;
    }
    for (int i = 0; i < 128; i++) {
        if (times[i] == 0) continue;
        chi += pow((double)times[i] - (double)TIMES / SUBSETS, 2) / ((double)TIMES / SUBSETS);
        subsets++;
    }
    /* 43.8: the chi-square distribution with 19 degrees of freedom exceeds it once in 1000 times. */
    ok(subsets == SUBSETS && chi < 43.8,
       "the %lld possible subsets are drawn with the right probabilities, chi-square %.1f", (long long)subsets, chi);
    samples->destroy(sampler);
    mxm->matrix_destroy(w.matrix);
}

/* The mean over many batches of weighted sums of rows, against the sums of all in-neighbours. */
static void test_no_bias(const struct world *w)
{
    enum { TIMES = 3000 };
    graft_sampler     *sampler = make_ladies(w, "fanout=12,6 batch_size=13 threads=3");
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    double            *sum = calloc((size_t)(2 * w->n), sizeof *sum), *square = calloc((size_t)(2 * w->n), sizeof *sum);
    double             worst = 0, chi = 0;
    int64_t           *times = calloc((size_t)(2 * w->n), sizeof *times), tested = 0;

    for (int64_t epoch = 0; epoch < TIMES; epoch++) {
        samples->begin(sampler, epoch, 0, NULL, &error);
        while (samples->next(sampler, &batch, &error) == GRAFT_OK) {
            for (int32_t l = 0; l < LAYERS; l++) {
                samples->block(sampler, l, &block, &error);
                for (int64_t i = 0; i < block.n_dst; i++) {
                    const int64_t at = l * w->n + batch.vertex[i];
                    double        row = 0;

                    for (int64_t e = block.row_ptr[i]; e < block.row_ptr[i + 1]; e++)
                        row += (double)block.weight[e] * (1 + (double)(batch.vertex[block.col_idx[e]] % 7));
                    sum[at] += row;
                    square[at] += row * row;
                    times[at]++;
                }
            }
        }
    }
    for (int64_t at = 0; at < 2 * w->n; at++) {
        const int64_t v = at % w->n;
        const double  n = (double)times[at], mean = sum[at] / n, variance = square[at] / n - mean * mean;
        double        all = 0, z;

        for (int64_t e = w->a.row_ptr[v]; e < w->a.row_ptr[v + 1]; e++) all += 1 + (double)(source_of(w, e) % 7);
        if (n < 1000 || variance < 1e-9) continue;
        z = (mean - all) / sqrt(variance / n);
        chi += z * z;
        worst = fmax(worst, fabs(z));
        tested++;
    }
    ok(tested > 50 && worst < 5 && chi < 1.5 * (double)tested,
       "estimated sums over in-neighbours of %lld rows have no bias: at most %.2f deviations, "
       "mean square %.2f",
       (long long)tested, worst, chi / (double)tested);
    samples->destroy(sampler);
    free(sum);
    free(square);
    free(times);
}

/* -- limits ------------------------------------------------------------------------------------------------------- */

/* A copy of all blocks. */
static int64_t copy_blocks(graft_sampler *sampler, const graft_sample_batch *batch, int64_t *to, int *ones)
{
    graft_sample_block b = GRAFT_INIT(graft_sample_block);
    int64_t            at = 0;

    for (int64_t i = 0; i < batch->n_vertices; i++) to[at++] = batch->vertex[i];
    for (int32_t l = 0; l < batch->n_layers; l++) {
        samples->block(sampler, l, &b, &error);
        for (int64_t e = 0; e < b.n_edges; e++) to[at++] = b.entry[e] * b.n_src + b.col_idx[e];
        for (int64_t e = 0; e < b.n_edges; e++) *ones &= b.weight == NULL || b.weight[e] == 1;
    }
    return at;
}

static void test_all(const struct world *w)
{
    static const char *const settings[] = { "fanout=-1", "fanout=1000000", "fanout=0" };
    const int64_t            seeds[] = { 4, 2, 11, 3 };
    static int64_t           all[20000], some[20000];
    graft_sample_batch       batch = GRAFT_INIT(graft_sample_batch);
    char                     text[600] = "";

    for (int k = 0; k < 3; k++) {
        graft_sampler *sampler = make_ladies(w, settings[k]);
        int            ones = 1, of_all = 1;
        int64_t        count[2] = { -1, -2 };

        if (samples->sample(sampler, seeds, 4, 0, &batch, &error) == GRAFT_OK)
            count[0] = copy_blocks(sampler, &batch, some, &ones);
        if (k == 2) {
            ok(batch.n_vertices == 4 && ones, "with fanout=0 a block has only edges between destinations");
        } else if (samples->sample(sampler, seeds, 4, GRAFT_SAMPLE_ALL, &batch, &error) == GRAFT_OK) {
            count[1] = copy_blocks(sampler, &batch, all, &of_all);
            ok(count[0] == count[1] && memcmp(all, some, (size_t)count[0] * sizeof *all) == 0 && ones && of_all,
               "%s: sample() with all neighbours has weights 1", settings[k]);
        }
        samples->explain(sampler, text, sizeof text, &error);
        ok(strstr(text, "\nladies    ") != NULL, "explain() describes the sampler %s", settings[k]);
        samples->destroy(sampler);
    }
}

/* Each allocation of create() and of a batch fails once, and the next call makes the batch. */
static void test_no_memory(const struct world *w)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sampler     *sampler = NULL;
    const int64_t      fanout[] = { 7, 5 };
    const char        *fault = NULL;
    int64_t            failures = 0;
    int32_t            rc = GRAFT_ERR_NOMEM;

    samples->destroy(make_ladies(w, "fanout=7,5 threads=1"));
    for (; rc == GRAFT_ERR_NOMEM && failures < 300 && fault == NULL; failures++) {
        host.fail_at = host.calls + failures;
        rc = samples->create(api->context, w->matrix, w->seeds, w->n_seeds, &sampler, &error);
        if (rc == GRAFT_OK) rc = samples->next(sampler, &batch, &error);
        host.fail_at = -1;
        if (sampler != NULL && rc == GRAFT_ERR_NOMEM && samples->next(sampler, &batch, &error) == GRAFT_OK)
            fault = check_layers(w, sampler, &batch, fanout);
        samples->destroy(sampler);
        sampler = NULL;
    }
    ok(fault == NULL && rc == GRAFT_OK && failures > 5, "%lld allocations fail in turn, and batches are right (%s)",
       (long long)failures, fault != NULL ? fault : "right");
}

int main(void)
{
    struct world small, large;

    error = GRAFT_INIT(graft_error);
    strict_host_init(&host);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK, "the library opens"))
        return done();
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    samples = graft_interface(api, GRAFT_SAMPLE_ID, sizeof *samples);
    world_init(&small, 120, GRAFT_I64);
    world_init(&large, 40000, GRAFT_I32); /* so large that vertices of a batch have a table */
    test_layers(&small, "fanout=9 batch_size=7", (const int64_t[]){ 9, 9 });
    test_layers(&small, "fanout=30,4 batch_size=11", (const int64_t[]){ 30, 4 });
    test_layers(&large, "fanout=300,100 batch_size=2000", (const int64_t[]){ 300, 100 });
    test_draws(&small, 1);
    test_draws(&small, 3);
    test_draws(&small, 8);
    test_subsets();
    test_no_bias(&small);
    test_all(&small);
    test_no_memory(&small);
    ok(make_ladies(&small, "fanout=3,4,5") == NULL && strstr(error.message, "'fanout'") != NULL,
       "a wrong number of layer sizes is refused: %s", error.message);
    world_fini(&small);
    world_fini(&large);
    api->close(api->context);
    ok(host.live_blocks == 0 && host.fault == NULL, "all memory of the samplers is freed");
    return done();
}
