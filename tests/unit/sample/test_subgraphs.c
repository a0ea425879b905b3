/* Checks graft.sample/1 with sampler=cluster and saint: blocks against the induced subgraph by plain loops, the batches
 * of an epoch, any number of threads, and that sums with the weights of saint have no bias.
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
#include <time.h>

static const graft_api        *api;
static const graft_mxm_api    *mxm;
static const graft_sample_api *samples;
static graft_error             error;
static struct strict_host      host;
static int64_t                 cancel_at = -1; /* number of the allocation that asks to cancel the call */

static void *allocate_and_cancel(void *self, uint64_t bytes, uint64_t alignment)
{
    if (cancel_at >= 0 && host.calls == cancel_at) api->cancel(api->context);
    return strict_allocate(self, bytes, alignment);
}

/* A graph, a third of whose vertices are seeds. */
struct scene {
    struct sample_csr a;
    graft_matrix     *matrix;
    int64_t           n, n_seeds, *seeds;
    uint8_t          *is_seed;
};

static void scene_init(struct scene *s, int64_t n, graft_dtype index_type)
{
    struct sample                 sample = { 31 };
    const struct sample_csr_shape shape = { .n_rows = n, .n_cols = n, .index_type = index_type, .repeats = 1 };

    *s = (struct scene){ .n = n, .seeds = calloc((size_t)n, sizeof *s->seeds), .is_seed = calloc((size_t)n, 1) };
    sample_csr_init_shape(&s->a, &sample, &shape);
    for (int64_t v = n - 1; v >= 0; v -= 3) s->seeds[s->n_seeds++] = v;
    for (int64_t i = 0; i < s->n_seeds; i++) s->is_seed[s->seeds[i]] = 1;
    if (mxm->matrix_create(api->context, &s->a.csr, 0, &s->matrix, &error) != GRAFT_OK) abort();
}

static void scene_fini(struct scene *s)
{
    mxm->matrix_destroy(s->matrix);
    sample_csr_fini(&s->a);
    free(s->seeds);
    free(s->is_seed);
}

static graft_sampler *make_subgraphs(const struct scene *s, const char *settings)
{
    graft_sampler *sampler = NULL;

    host_set_all(api, "layers=2 batch_size=0 sampler=cluster threads=2 "
                      "sample.ahead=0 seed=5");
    host_set_all(api, settings);
    if (samples->create(api->context, s->matrix, s->seeds, s->n_seeds, &sampler, &error) == GRAFT_OK) return sampler;
    diag("%s: %s", settings, error.message);
    return NULL;
}

/* -- a batch is the subgraph -------------------------------------------------------------------------------------- */

static int64_t column(const struct scene *s, int64_t e)
{
    return (int64_t)sample_at(s->a.col_idx, s->a.csr.index_type, e);
}

/* Check that a block is the induced subgraph. The result is NULL or an error in words. number[n] is -1 before and
 * after. */
static const char *check_induced(const struct scene *s, const graft_sample_batch *batch, const graft_sample_block *b,
                                 int64_t rows, const int64_t *number)
{
    int64_t at = 0;

    if (b->n_dst != rows || b->n_src != batch->n_vertices) return "the size of a block";
    for (int64_t i = 0; i < b->n_dst; i++) {
        const int64_t v = batch->vertex[i];

        if (b->row_ptr[i] != at) return "a row pointer";
        for (int64_t e = s->a.row_ptr[v]; e < s->a.row_ptr[v + 1]; e++) {
            if (number[column(s, e)] < 0) continue;
            if (at >= b->n_edges || b->entry[at] != e || b->col_idx[at] != number[column(s, e)]) return "an edge";
            at++;
        }
    }
    return b->row_ptr[b->n_dst] == at && b->n_edges == at ? NULL : "the number of edges";
}

static const char *check_batch(const struct scene *s, graft_sampler *sampler, const graft_sample_batch *batch,
                               int by_next)
{
    graft_sample_block first = GRAFT_INIT(graft_sample_block), last = GRAFT_INIT(graft_sample_block);
    int64_t           *number = malloc((size_t)s->n * sizeof *number);
    const char        *fault = NULL;

    for (int64_t v = 0; v < s->n; v++) number[v] = -1;
    for (int64_t i = 0; i < batch->n_vertices && fault == NULL; i++) {
        if (number[batch->vertex[i]] >= 0) fault = "a vertex twice";
        number[batch->vertex[i]] = i;
        if (by_next && s->is_seed[batch->vertex[i]] != (i < batch->n_seeds)) fault = "seeds are not the first vertices";
    }
    if (samples->block(sampler, 0, &first, &error) != GRAFT_OK) fault = error.message;
    if (samples->block(sampler, 1, &last, &error) != GRAFT_OK) fault = error.message;
    if (fault == NULL) fault = check_induced(s, batch, &first, batch->n_vertices, number);
    if (fault == NULL) fault = check_induced(s, batch, &last, batch->n_seeds, number);
    if (fault == NULL && batch->n_edges != first.n_edges + last.n_edges) fault = "the edges of all blocks";
    free(number);
    return fault;
}

/* Add some bytes to a hash. */
static uint64_t mix(uint64_t sum, const void *data, int64_t bytes)
{
    for (int64_t i = 0; data != NULL && i < bytes; i++) sum = (sum ^ ((const uint8_t *)data)[i]) * 0x100000001B3u;
    return sum;
}

/* Read one epoch from batch `first` on. seen[n] counts how often each vertex was a seed, and fingerprint[] has a hash
 * of each batch. */
static const char *read_subgraphs(const struct scene *s, graft_sampler *sampler, int64_t epoch, int64_t first,
                                  int64_t *n_batches, int *seen, uint64_t *fingerprint)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);

    if (samples->begin(sampler, epoch, first, n_batches, &error) != GRAFT_OK) return error.message;
    for (int64_t i = first; i < *n_batches; i++) {
        const char *fault;

        if (samples->next(sampler, &batch, &error) != GRAFT_OK) return error.message;
        fault = check_batch(s, sampler, &batch, 1);
        if (fault != NULL) return fault;
        for (int64_t j = 0; j < batch.n_seeds; j++) seen[batch.vertex[j]]++;
        if (samples->block(sampler, 0, &block, &error) != GRAFT_OK) return error.message;
        fingerprint[i] = mix(17, batch.vertex, batch.n_vertices * 8);
        fingerprint[i] = mix(fingerprint[i], batch.weight, batch.n_vertices * 4);
        fingerprint[i] = mix(fingerprint[i], block.weight, block.n_edges * 4);
    }
    return samples->next(sampler, &batch, &error) == GRAFT_ERR_NOT_FOUND ? NULL : "a batch behind the last";
}

/* A seed may occur at most `most` times in an epoch. */
static void test_subgraph_epochs(const struct scene *s, const char *settings, int64_t expected, int most)
{
    static const char *const more[] = { "threads=1", "threads=2", "threads=5", "threads=3 sample.ahead=1" };
    enum { BATCHES = 2000 };
    static uint64_t print[4][BATCHES], again[BATCHES], other[BATCHES];
    int            *seen = calloc((size_t)s->n, sizeof *seen), least = 1, largest = 0, same = 1;
    const char     *fault = NULL;
    int64_t         n_batches = 0;
    char            all[300];

    for (int t = 0; t < 4 && fault == NULL; t++) {
        graft_sampler *sampler;

        snprintf(all, sizeof all, "%s %s", settings, more[t]);
        sampler = make_subgraphs(s, all);
        memset(seen, 0, (size_t)s->n * sizeof *seen);
        fault = sampler == NULL ? "no sampler" : read_subgraphs(s, sampler, 1, 0, &n_batches, seen, print[t]);
        for (int64_t i = 0; i < s->n_seeds; i++) {
            if (seen[s->seeds[i]] < least) least = seen[s->seeds[i]];
            if (seen[s->seeds[i]] > largest) largest = seen[s->seeds[i]];
        }
        if (fault == NULL) fault = read_subgraphs(s, sampler, 2, 0, &n_batches, seen, other);
        memcpy(again, print[t], sizeof again);
        if (fault == NULL) fault = read_subgraphs(s, sampler, 1, n_batches / 2, &n_batches, seen, again);
        same &= memcmp(print[0], print[t], sizeof again) == 0 && memcmp(again, print[t], sizeof again) == 0;
        same &= memcmp(other, print[t], sizeof again) != 0;
        samples->destroy(sampler);
    }
    ok(fault == NULL && n_batches == expected, "%s: %lld batches are subgraphs of the graph (%s)", settings,
       (long long)n_batches, fault != NULL ? fault : "right");
    ok(least == 1 && largest <= most, "%s: all seeds are in one epoch", settings);
    ok(same, "%s: batches are the same with 1, 2, 3, 5 threads and from the middle; another epoch differs", settings);
    free(seen);
}

/* -- the weights of saint ----------------------------------------------------------------------------------------- */

static double feature(int64_t v)
{
    return 1 + (double)(v % 7);
}

/* Compare the mean over many batches of weighted sums with the sums over the graph. */
static void test_saint_weights(const struct scene *s)
{
    enum { EPOCHS_READ = 400 };
    graft_sampler     *sampler = make_subgraphs(s, "sampler=saint:3:4000 batch_size=9");
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    double            *sum = calloc((size_t)s->n, sizeof *sum), *square = calloc((size_t)s->n, sizeof *square);
    double             expected = 0, loss = 0, losses = 0, worst = 0, chi = 0;
    int64_t           *times = calloc((size_t)s->n, sizeof *times), n_batches, read = 0, tested = 0;
    int                is_one = 1;

    for (int64_t epoch = 0; epoch < EPOCHS_READ; epoch++) {
        samples->begin(sampler, epoch, 0, &n_batches, &error);
        while (samples->next(sampler, &batch, &error) == GRAFT_OK) {
            double one = 0;

            if (samples->block(sampler, 0, &block, &error) != GRAFT_OK) abort();
            for (int64_t i = 0; i < batch.n_vertices; i++) {
                const int64_t v = batch.vertex[i];
                double        row = 0;

                for (int64_t e = block.row_ptr[i]; e < block.row_ptr[i + 1]; e++) {
                    row += (double)block.weight[e] * feature(batch.vertex[block.col_idx[e]]);
                    is_one &= block.col_idx[e] != i || block.weight[e] == 1;
                }
                if (i < batch.n_seeds) one += (double)batch.weight[i] * feature(v);
                sum[v] += row;
                square[v] += row * row;
                times[v]++;
            }
            loss += one;
            losses += one * one;
            read++;
        }
    }
    for (int64_t i = 0; i < s->n_seeds; i++) expected += feature(s->seeds[i]);
    loss /= (double)read;
    losses = sqrt((losses / (double)read - loss * loss) / (double)read);
    ok(fabs(loss - expected) < 4.5 * losses,
       "weighted sums over seeds have no bias: %.2f, expected %.2f, deviation %.2f", loss, expected, losses);
    for (int64_t v = 0; v < s->n; v++) {
        const double n = (double)times[v], mean = sum[v] / n;
        double       all = 0, deviation;

        for (int64_t e = s->a.row_ptr[v]; e < s->a.row_ptr[v + 1]; e++) all += feature(column(s, e));
        /* Where a walk may end, it is possible that none of the in-neighbours is ever in the subgraph. */
        if (n < 200 || s->a.row_ptr[v + 1] == s->a.row_ptr[v] || !s->is_seed[v]) continue;
        deviation = sqrt((square[v] / n - mean * mean) / n) + 0.004 * all;
        chi += (mean - all) * (mean - all) / (deviation * deviation);
        worst = fmax(worst, fabs(mean - all) / deviation);
        tested++;
    }
    ok(tested > 20 && worst < 5 && chi < 2 * (double)tested,
       "weighted sums over in-neighbours of %lld seeds have no bias: at most %.2f deviations, "
       "mean square %.2f",
       (long long)tested, worst, chi / (double)tested);
    ok(is_one, "a self-loop has weight 1");
    samples->destroy(sampler);
    free(sum);
    free(square);
    free(times);
}

/* -- sample(), explain(), and lack of memory ---------------------------------------------------------------------- */

static void test_given_seeds(const struct scene *s)
{
    static const char *const kinds[] = { "sampler=cluster:12 batch_size=20", "sampler=saint batch_size=20" };
    graft_sample_batch       batch = GRAFT_INIT(graft_sample_batch);
    const int64_t            seeds[] = { 4, 2, 11, 3 };
    char                     text[600] = "";

    for (int k = 0; k < 2; k++) {
        graft_sampler *sampler = make_subgraphs(s, kinds[k]);
        const char    *fault = "sample() fails";

        if (samples->sample(sampler, seeds, 4, 0, &batch, &error) == GRAFT_OK)
            fault = check_batch(s, sampler, &batch, 0);
        ok(fault == NULL && batch.n_seeds == 4 && memcmp(batch.vertex, seeds, sizeof seeds) == 0 &&
               batch.weight == NULL,
           "%s: sample() makes a batch of given seeds (%s)", kinds[k], fault != NULL ? fault : "right");
        ok(samples->sample(sampler, seeds, 4, GRAFT_SAMPLE_ALL, &batch, &error) == GRAFT_OK && batch.n_seeds == 4,
           "%s: sample() returns all neighbours of given seeds", kinds[k]);
        samples->explain(sampler, text, sizeof text, &error);
        ok(strstr(text, k ? "saint     walks of 2 steps" : "cluster   12 parts by ") != NULL, "%s: explain()",
           kinds[k]);
        samples->destroy(sampler);
    }
}

static double seconds_of_sample(graft_sampler *sampler, const int64_t *seeds, int64_t n)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    struct timespec    begin, end;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (samples->sample(sampler, seeds, n, 0, &batch, &error) != GRAFT_OK || batch.n_seeds != n) return (double)NAN;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* Seeds of few parts: first one part after the other, then in an order in which parts alternate. */
static void test_alternating_seeds(const struct scene *s)
{
    graft_sampler     *sampler = make_subgraphs(s, "sampler=cluster:2 threads=1 partition.program=none");
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    const int64_t      one = s->seeds[0];
    int64_t           *sorted = calloc((size_t)s->n, sizeof *sorted), *mixed = calloc((size_t)s->n, sizeof *mixed);
    int64_t            count = 0;
    double             seconds[2];

    if (samples->sample(sampler, &one, 1, 0, &batch, &error) != GRAFT_OK) abort();
    for (int64_t i = 0; i < batch.n_vertices; i++) sorted[count++] = batch.vertex[i];
    for (int64_t v = 0; v < s->n; v++) mixed[v] = -1;
    for (int64_t i = 0; i < count; i++) mixed[sorted[i]] = 0;
    for (int64_t v = 0, at = count; v < s->n; v++)
        if (mixed[v] < 0) sorted[at++] = v;
    for (int64_t i = 0; i < s->n; i++) mixed[i] = sorted[i % 2 ? s->n - 1 - i / 2 : i / 2];
    seconds_of_sample(sampler, sorted, s->n);
    seconds[0] = seconds_of_sample(sampler, sorted, s->n);
    seconds[1] = seconds_of_sample(sampler, mixed, s->n);
    ok(count > s->n / 4 && count < s->n && seconds[1] < 20 * seconds[0] + 0.05,
       "create() takes %.4f s for seeds whose parts alternate, and %.4f s for sorted seeds", seconds[1], seconds[0]);
    samples->destroy(sampler);
    free(sorted);
    free(mixed);
}

/* create() is cancelled while it partitions or counts. */
static void test_subgraphs_cancel(const struct scene *s, const char *settings)
{
    graft_sampler *sampler = NULL;
    int64_t        cancelled = 0, others = 0;

    samples->destroy(make_subgraphs(s, settings));
    for (int64_t at = 0; at < 6; at++) {
        int32_t rc;

        cancel_at = host.calls + at;
        rc = samples->create(api->context, s->matrix, s->seeds, s->n_seeds, &sampler, &error);
        cancel_at = -1;
        if (rc == GRAFT_ERR_CANCELLED) cancelled++;
        else others++;
    }
    ok(cancelled == 6 && sampler == NULL, "%s: %lld of 6 calls of create() are cancelled", settings,
       (long long)cancelled);
    samples->destroy(sampler);
}

/* Each allocation of create() and of a batch fails once. */
static void test_subgraphs_no_memory(const struct scene *s, const char *settings)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sampler     *sampler = NULL;
    int64_t            failures = 0;
    int32_t            rc = GRAFT_ERR_NOMEM;
    int                good = 1;

    samples->destroy(make_subgraphs(s, settings));
    for (; rc == GRAFT_ERR_NOMEM && failures < 500; failures++) {
        host.fail_at = host.calls + failures;
        rc = samples->create(api->context, s->matrix, s->seeds, s->n_seeds, &sampler, &error);
        if (rc == GRAFT_OK) rc = samples->next(sampler, &batch, &error);
        host.fail_at = -1;
        good &= rc == GRAFT_OK || rc == GRAFT_ERR_NOMEM;
        samples->destroy(sampler);
        sampler = NULL;
    }
    ok(good && rc == GRAFT_OK && failures > 10, "%s: %lld allocations fail in turn", settings, (long long)failures);
}

int main(void)
{
    struct scene small, large;

    error = GRAFT_INIT(graft_error);
    strict_host_init(&host);
    host.table.allocate = allocate_and_cancel;
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK, "the library opens"))
        return done();
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    samples = graft_interface(api, GRAFT_SAMPLE_ID, sizeof *samples);
    scene_init(&small, 120, GRAFT_I64);
    scene_init(&large, 40000, GRAFT_I32); /* so large that vertices of a batch are found in a table */
    test_subgraph_epochs(&small, "sampler=cluster batch_size=7", 6, 1);
    test_subgraph_epochs(&small, "sampler=cluster:3 batch_size=10", 3, 1);
    test_subgraph_epochs(&small, "sampler=saint batch_size=7", 6, 6);
    test_subgraph_epochs(&large, "sampler=cluster:900 batch_size=1000", 14, 1);
    test_subgraph_epochs(&large, "sampler=saint:2:1 batch_size=100", 134, 134);
    test_saint_weights(&small);
    test_given_seeds(&small);
    test_alternating_seeds(&large);
    test_subgraphs_cancel(&small, "sampler=cluster:7");
    test_subgraphs_cancel(&small, "sampler=cluster:7 partition.program=none");
    test_subgraphs_cancel(&small, "sampler=saint threads=3");
    test_subgraphs_no_memory(&small, "sampler=cluster:1 threads=1 batch_size=20");
    test_subgraphs_no_memory(&small, "sampler=saint:2:1 threads=1 batch_size=20");
    scene_fini(&small);
    scene_fini(&large);
    api->close(api->context);
    ok(host.live_blocks == 0 && host.fault == NULL, "all memory of the samplers is freed");
    return done();
}
