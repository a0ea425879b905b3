/* Measures the sampler of graft.sample/1: the sampled edges per second of an epoch of batches. The program compares
 * them with the rate of the required random reads alone.
 *
 * The first epoch is checked: each block must have min(fanout, entries of the row) distinct entries of each row, and
 * the source vertices of these entries. Then epochs and replays alternate. A replay repeats the random reads that
 * sampling the first epoch requires, but knows all addresses in advance. It reads the row pointers of all destinations,
 * the columns of all edges, and one number for the vertex of each edge.
 *
 *     bench_sampler [GRAPH [BATCH [SEEDS [ROUNDS]]]] [clock=cpu] [KEY=VALUE ...]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "graft_sample.h"
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLER_ROUNDS_MOST = 99, READ_AHEAD = 32 };

struct sampler_bench {
    const graft_api        *api;
    const graft_sample_api *samples;
    graft_sampler          *sampler;
    struct bench_graph      graph;
    int64_t                 n_batches, epoch;
    int64_t                 edges, seed_edges, rows, vertices; /* counts in the first epoch */
    uint64_t                digest;                            /* hash of the vertices and entries of the first epoch */
    int64_t                *entry, *row;                       /* [edges] and [rows] that a replay reads */
    int32_t                *column, *number;                   /* [edges] columns, and [n] a number for each vertex */
    int                     threads;
    clockid_t               clock; /* 0 means the clock of bench_seconds() */
    graft_error             error;
};

static void check_sampler(const struct sampler_bench *b, int32_t rc)
{
    if (rc < 0) bench_die("%s", b->error.message);
}

static void wrong_block(int64_t batch, int layer, const char *what)
{
    fprintf(stderr, "batch %lld, block %d: %s\n", (long long)batch, layer, what);
    exit(1);
}

static void check_block(const struct sampler_bench *b, const graft_sample_batch *batch, const graft_sample_block *block,
                        int layer, int64_t fanout)
{
    const struct bench_graph *graph = &b->graph;

    for (int64_t i = 0; i < block->n_dst; i++) {
        const int64_t v = batch->vertex[i], first = graph->row_ptr[v], last = graph->row_ptr[v + 1];
        const int64_t begin = block->row_ptr[i], end = block->row_ptr[i + 1];

        if (end - begin != (fanout < 0 || last - first < fanout ? last - first : fanout))
            wrong_block(batch->index, layer, "other draws than min(fanout, entries)");
        for (int64_t e = begin; e < end; e++) {
            if (block->entry[e] < first || block->entry[e] >= last)
                wrong_block(batch->index, layer, "an entry of another row");
            if (graph->col_idx[block->entry[e]] != batch->vertex[block->col_idx[e]])
                wrong_block(batch->index, layer, "another vertex than that of the entry");
            for (int64_t before = begin; before < e; before++)
                if (block->entry[before] == block->entry[e])
                    wrong_block(batch->index, layer, "an entry is there twice");
        }
    }
}

/* Sample the first epoch and count its rows and edges. Without `keep` the blocks are checked. With `keep` the entries
 * and rows are stored for the replay. */
static void walk_epoch(struct sampler_bench *b, const int64_t *fanout, int keep)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);

    check_sampler(b, b->samples->begin(b->sampler, 0, 0, NULL, &b->error));
    b->edges = b->seed_edges = b->rows = b->vertices = 0;
    b->digest = 0;
    for (int64_t i = 0; i < b->n_batches; i++) {
        check_sampler(b, b->samples->next(b->sampler, &batch, &b->error));
        for (int l = 0; l < batch.n_layers; l++) {
            check_sampler(b, b->samples->block(b->sampler, l, &block, &b->error));
            if (!keep) check_block(b, &batch, &block, l, fanout[l]);
            if (keep) memcpy(b->entry + b->edges, block.entry, (size_t)block.n_edges * sizeof *b->entry);
            if (keep) memcpy(b->row + b->rows, batch.vertex, (size_t)block.n_dst * sizeof *b->row);
            b->edges += block.n_edges;
            if (l + 1 == batch.n_layers) b->seed_edges += block.n_edges;
            for (int64_t e = 0; e < block.n_edges; e++)
                b->digest = bench_mix(b->digest ^ (uint64_t)block.entry[e] ^ (uint64_t)block.col_idx[e] << 40);
            b->rows += block.n_dst;
        }
        b->vertices += batch.n_vertices;
    }
}

/* Returns the seconds of the requested clock. The processor clock is for a machine that runs other programs too. */
static double sampler_seconds(const struct sampler_bench *b)
{
    struct timespec now;

    if (b->clock == 0) return bench_seconds();
    clock_gettime(b->clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double sample_epoch(struct sampler_bench *b)
{
    const double       begin = sampler_seconds(b);
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);

    check_sampler(b, b->samples->begin(b->sampler, ++b->epoch, 0, NULL, &b->error));
    for (int64_t i = 0; i < b->n_batches; i++) check_sampler(b, b->samples->next(b->sampler, &batch, &b->error));
    return sampler_seconds(b) - begin;
}

static double replay_epoch(struct sampler_bench *b)
{
    const int64_t *row_ptr = b->graph.row_ptr, *row = b->row, *entry = b->entry, rows = b->rows, edges = b->edges;
    const int32_t *col_idx = b->graph.col_idx, *number = b->number;
    int32_t       *column = b->column;
    int64_t        sum = 0;
    const double   begin = sampler_seconds(b);

#pragma omp parallel num_threads(b->threads) reduction(+ : sum)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < rows; i++) {
            if (i + READ_AHEAD < rows) __builtin_prefetch(&row_ptr[row[i + READ_AHEAD]]);
            sum += row_ptr[row[i] + 1] - row_ptr[row[i]];
        }
#pragma omp for schedule(static) nowait
        for (int64_t e = 0; e < edges; e++) {
            if (e + READ_AHEAD < edges) __builtin_prefetch(&col_idx[entry[e + READ_AHEAD]]);
            column[e] = col_idx[entry[e]];
        }
#pragma omp for schedule(static) nowait
        for (int64_t e = 0; e < edges; e++) {
            if (e + READ_AHEAD < edges) __builtin_prefetch(&number[column[e + READ_AHEAD]]);
            sum += number[column[e]];
        }
    }
    if (sum < 0) bench_die("the replay has a sum of %lld", (long long)sum);
    return sampler_seconds(b) - begin;
}

/* Returns `count` distinct vertices that are spread over the graph. Vertex i of the list is i * step mod n, where step
 * is the largest number below 0.618 n that is coprime to n. sampler_worker.py computes the same list. */
static int64_t *spread_seeds(int64_t n, int64_t count)
{
    int64_t *seeds = bench_new((size_t)count, sizeof *seeds, 1), step = (int64_t)(0.618 * (double)n);

    for (; step > 1; step--) {
        int64_t x = n, y = step;

        while (y > 0) {
            const int64_t rest = x % y;
            x = y;
            y = rest;
        }
        if (x == 1) break;
    }
    for (int64_t i = 0; i < count; i++) seeds[i] = i * (step > 0 ? step : 1) % n;
    return seeds;
}

static void open_sampler(struct sampler_bench *b, int64_t count)
{
    const graft_mxm_api *mxm = graft_interface(b->api, GRAFT_MXM_ID, sizeof *mxm);
    int64_t             *seeds = spread_seeds(b->graph.n, count);
    graft_csr            csr = GRAFT_INIT(graft_csr);
    graft_matrix        *matrix;

    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = b->graph.n;
    csr.row_ptr = b->graph.row_ptr;
    csr.col_idx = b->graph.col_idx;
    check_sampler(b, mxm->matrix_create(b->api->context, &csr, 0, &matrix, &b->error));
    check_sampler(b, b->samples->create(b->api->context, matrix, seeds, count, &b->sampler, &b->error));
    check_sampler(b, b->samples->begin(b->sampler, 0, 0, &b->n_batches, &b->error));
    free(seeds);
}

static void measure_sampler(struct sampler_bench *b, int rounds)
{
    double sampled[SAMPLER_ROUNDS_MOST], replayed[SAMPLER_ROUNDS_MOST], epoch, reads;

    b->entry = bench_new((size_t)b->edges, sizeof *b->entry, b->threads);
    b->row = bench_new((size_t)b->rows, sizeof *b->row, b->threads);
    b->column = bench_new((size_t)b->edges, sizeof *b->column, b->threads);
    b->number = bench_new((size_t)b->graph.n, sizeof *b->number, b->threads);
    walk_epoch(b, NULL, 1);
    for (int round = 0; round < rounds; round++) {
        sampled[round] = sample_epoch(b);
        replayed[round] = replay_epoch(b);
    }
    epoch = bench_median(sampled, rounds);
    reads = bench_median(replayed, rounds);
    printf("%lld batches, %lld vertices, %lld rows, %lld edges, %lld to seeds; digest %016llx\n",
           (long long)b->n_batches, (long long)b->vertices, (long long)b->rows, (long long)b->edges,
           (long long)b->seed_edges, (unsigned long long)b->digest);
    printf("sampler %9.4f s  %8.2f million edges/s\n", epoch, 1e-6 * (double)b->edges / epoch);
    printf("reads   %9.4f s  %8.2f million edges/s\n", reads, 1e-6 * (double)b->edges / reads);
}

int main(int argc, char **argv)
{
    static struct sampler_bench b;
    const char                 *what = "uniform:100000:1000000", *fanout = "5,10,15";
    int64_t                     given[3] = { 1000, 100000, 5 }, widths[16] = { 0 };
    char                        number[32];
    int                         layers = 0;

    b.error.size = sizeof b.error;
    b.threads = 2;
    check_sampler(&b, graft_load(getenv("GRAFT_LIBRARY"), NULL, &b.api, &b.error));
    b.samples = graft_interface(b.api, GRAFT_SAMPLE_ID, sizeof *b.samples);
    for (int i = 1, at = 0; i < argc; i++) {
        char *const value = strchr(argv[i], '=');

        if (value == NULL && at == 0) what = argv[i];
        else if (value == NULL && at < 4) given[at - 1] = atoll(argv[i]);
        at += value == NULL;
        if (value == NULL) continue;
        *value = 0;
        if (strcmp(argv[i], "threads") == 0) b.threads = atoi(value + 1);
        if (strcmp(argv[i], "fanout") == 0) fanout = value + 1;
        else if (strcmp(argv[i], "clock") == 0) b.clock = strcmp(value + 1, "cpu") == 0 ? CLOCK_PROCESS_CPUTIME_ID : 0;
        else check_sampler(&b, b.api->set(b.api->context, argv[i], value + 1, &b.error));
    }
    for (const char *at = fanout; at != NULL && layers < 16; at = strchr(at, ','))
        widths[layers++] = atoll(at += *at == ',');
    bench_graph_init(&b.graph, what, b.api, b.threads);
    if (given[1] > b.graph.n) given[1] = b.graph.n;
    if (given[0] > given[1]) given[0] = given[1];
    if (given[0] < 1 || given[2] < 1 || given[2] > SAMPLER_ROUNDS_MOST || b.threads < 1)
        bench_die("usage: bench_sampler [GRAPH [BATCH [SEEDS [ROUNDS]]]] [clock=cpu] [KEY=VALUE ...]");
    snprintf(number, sizeof number, "%d", layers);
    check_sampler(&b, b.api->set(b.api->context, "layers", number, &b.error));
    check_sampler(&b, b.api->set(b.api->context, "fanout", fanout, &b.error));
    snprintf(number, sizeof number, "%lld", (long long)given[0]);
    check_sampler(&b, b.api->set(b.api->context, "batch_size", number, &b.error));
    snprintf(number, sizeof number, "%d", b.threads);
    check_sampler(&b, b.api->set(b.api->context, "threads", number, &b.error));
    printf("%s: %lld vertices, %lld entries; batches of %lld, fanout %s, %d threads\n", what, (long long)b.graph.n,
           (long long)b.graph.nnz, (long long)given[0], fanout, b.threads);
    open_sampler(&b, given[1]);
    walk_epoch(&b, widths, 0);
    measure_sampler(&b, (int)given[2]);
    return 0;
}
