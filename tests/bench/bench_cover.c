/* Counts the rows that cross the cuts of a partitioned graph, and measures the time of the partitioning and of the
 * search for the vertex covers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"

#include "base/memory.h"
#include "cover/cover.h"
#include "partition/choose.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: bench_cover rmat:SCALE:EDGES|uniform:N:EDGES|DATASET PARTS [METHOD [THREADS]]\n"
                            "METHOD is hash (the default), block, stream, metis, or auto.\n"
                            "With 1 part the whole matrix is one cut, of rows and columns.";

/* The cut edges from one part to another part. */
struct pair {
    struct gr_cut cut;
    int64_t      *row_ptr;
    int32_t      *source;
    int64_t       size[3]; /* number of rows to send with each kind of cover */
};

/* A graph and its partition. */
struct partition {
    struct bench_graph graph;
    graft_csr          rows;
    uint8_t           *train_mask; /* NULL for a generated graph */
    int                parts;
    int32_t           *owner;
};

/* Assumed costs, from which "auto" chooses a method: a layer of width 128 on a typical processor, with a network of
 * 1 Gbit/s. */
static const struct gr_partition_cost some_cost = { 2 * 128 * 1e-10, 6 * 128 * 128 * 1e-11, 8 * 128 / 125e6,
                                                    GR_ROWS_LEAST };

static void cut(struct partition *partition, const graft_context *context, const char *method)
{
    static const char *const   names[] = { "block", "hash", "stream", "metis", "auto" };
    const struct gr_slice      slice = { &partition->rows, 0, partition->train_mask };
    struct gr_partition_choice choice;
    graft_error                error = GRAFT_INIT(graft_error);
    double                     seconds;
    int                        which = 0;

    while (which <= GR_PARTITION_AUTO && strcmp(method, names[which]) != 0) which++;
    if (which > GR_PARTITION_AUTO) bench_die("%s", usage);
    seconds = -bench_seconds();
    if (gr_partition_choose(context, &slice, partition->parts, (enum gr_partition_method)which, &some_cost, NULL,
                            partition->owner, &choice, &error) < 0)
        bench_die("%s", error.message);
    seconds += bench_seconds();
    printf("%d parts by %s in %.3f seconds; %s\n", partition->parts, method, seconds, choice.why);
}

static void print_measure(const struct partition *partition, const graft_context *context)
{
    const struct gr_slice       slice = { &partition->rows, 0, partition->train_mask };
    struct gr_partition_measure measure;
    graft_error                 error = GRAFT_INIT(graft_error);

    if (gr_partition_measure_init(context, &measure, &slice, partition->parts, partition->owner, &error) < 0)
        bench_die("%s", error.message);
    printf("%" PRId64 " entries cut; rows by post %" PRId64 ", by pre %" PRId64 ", at most %" PRId64 " by cover\n",
           measure.cut, measure.rows[GR_ROWS_POST], measure.rows[GR_ROWS_PRE], measure.rows[GR_ROWS_LEAST]);
    printf("most of a part, of the mean: vertices %.3f, entries %.3f, training vertices %.3f\n", measure.imbalance[0],
           measure.imbalance[1], measure.imbalance[2]);
    gr_partition_measure_fini(context, &measure);
}

/* Partition the graph and print the result. */
static void partition_init(struct partition *partition, const char *what, int parts, const char *method,
                           const graft_api *api, int threads)
{
    *partition = (struct partition){ .parts = parts };
    bench_graph_init(&partition->graph, what, api, threads);
    partition->rows = (graft_csr){ .size = sizeof(graft_csr),
                                   .index_type = GRAFT_I32,
                                   .n_rows = partition->graph.n,
                                   .n_cols = partition->graph.n,
                                   .row_ptr = partition->graph.row_ptr,
                                   .col_idx = partition->graph.col_idx };
    partition->owner = bench_new((size_t)partition->graph.n, sizeof *partition->owner, 1);
    partition->train_mask = bench_graph_trained(&partition->graph, what, api);
    cut(partition, api->context, method);
    print_measure(partition, api->context);
}

static void partition_fini(struct partition *partition)
{
    bench_graph_fini(&partition->graph);
    free(partition->train_mask);
    free(partition->owner);
}

/* Collect the edges from vertices of `sender` to vertices of `receiver`. Vertices without such an edge are left out. */
static void pair_init(struct pair *pair, const struct partition *partition, int receiver, int sender)
{
    const struct bench_graph *graph = &partition->graph;
    const int32_t            *owner = partition->owner;
    int32_t                  *place = bench_new((size_t)graph->n, sizeof *place, 1);
    int64_t                   entries = 0, room = 0;

    for (int64_t row = 0; row < graph->n; row++)
        if (owner[row] == receiver) room += graph->row_ptr[row + 1] - graph->row_ptr[row];
    *pair = (struct pair){ .row_ptr = bench_new((size_t)graph->n + 1, sizeof *pair->row_ptr, 1) };
    pair->source = bench_new((size_t)room, sizeof *pair->source, 1);
    for (int64_t row = 0; row < graph->n; row++) {
        if (owner[row] != receiver) continue;
        for (int64_t e = graph->row_ptr[row]; e < graph->row_ptr[row + 1]; e++) {
            const int32_t column = graph->col_idx[e];

            if (owner[column] != sender) continue;
            if (place[column] == 0) place[column] = (int32_t)++pair->cut.n_sources;
            pair->source[entries++] = place[column] - 1;
        }
        if (entries > pair->row_ptr[pair->cut.n_targets]) pair->row_ptr[++pair->cut.n_targets] = entries;
    }
    pair->row_ptr = realloc(pair->row_ptr, ((size_t)pair->cut.n_targets + 1) * sizeof *pair->row_ptr);
    pair->source = realloc(pair->source, ((size_t)entries + 1) * sizeof *pair->source);
    if (pair->row_ptr == NULL || pair->source == NULL) bench_die("no memory");
    pair->cut.row_ptr = pair->row_ptr;
    pair->cut.source = pair->source;
    free(place);
}

/* Find the cover of every pair of parts. Each thread processes one pair at a time. */
static double find_covers(const graft_context *context, struct pair *pairs, int count, int kind, int threads)
{
    double seconds = -bench_seconds();

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int i = 0; i < count; i++) {
        const struct gr_cut *cut = &pairs[i].cut;
        graft_error          error = GRAFT_INIT(graft_error);
        uint8_t             *source_in = bench_new((size_t)cut->n_sources, 1, 1);
        uint8_t             *target_in = bench_new((size_t)cut->n_targets, 1, 1);

        if (gr_cover_find(context, cut, (enum gr_cover_kind)kind, source_in, target_in, &pairs[i].size[kind], &error))
            bench_die("%s", error.message);
        free(source_in);
        free(target_in);
    }
    return seconds + bench_seconds();
}

static void print_covers(const graft_context *context, struct pair *pairs, int count, int threads)
{
    static const char *const name[] = { "hybrid", "pre", "post" };
    int64_t                  entries = 0;

    for (int i = 0; i < count; i++) entries += pairs[i].row_ptr[pairs[i].cut.n_targets];
    printf("%d cuts of %" PRId64 " entries, %d threads\n%-8s %12s %10s\n", count, entries, threads, "cover", "rows",
           "seconds");
    for (int kind = GR_COVER_HYBRID; kind <= GR_COVER_POST; kind++) {
        const double seconds = find_covers(context, pairs, count, kind, threads);
        int64_t      rows = 0;

        for (int i = 0; i < count; i++) rows += pairs[i].size[kind];
        printf("%-8s %12" PRId64 " %10.3f\n", name[kind], rows, seconds);
    }
}

int main(int argc, char **argv)
{
    const int        parts = argc > 2 ? atoi(argv[2]) : 0;
    const int        threads = argc > 4 ? atoi(argv[4]) : omp_get_num_procs();
    const int        count = parts == 1 ? 1 : parts * (parts - 1);
    const graft_api *api;
    graft_error      error = GRAFT_INIT(graft_error);
    struct partition partition;
    struct pair     *pairs;

    if (parts < 1 || parts > 1024 || threads < 1) bench_die("%s", usage);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) bench_die("%s", error.message);
    partition_init(&partition, argv[1], parts, argc > 3 ? argv[3] : "hash", api, threads);
    pairs = bench_new((size_t)count, sizeof *pairs, 1);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < count; i++) {
        const int receiver = parts == 1 ? 0 : i / (parts - 1), other = parts == 1 ? 0 : i % (parts - 1);

        pair_init(&pairs[i], &partition, receiver, other + (parts > 1 && other >= receiver));
    }
    print_covers(api->context, pairs, count, threads);
    for (int i = 0; i < count; i++) {
        free(pairs[i].row_ptr);
        free(pairs[i].source);
    }
    free(pairs);
    partition_fini(&partition);
    api->close(api->context);
    return 0;
}
