/* How many rows cross the cuts of a graph in parts, and how long it takes to find which.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"

#include "base/memory.h"
#include "cover/cover.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench_cover rmat:SCALE:EDGES|uniform:N:EDGES PARTS [THREADS]\n"
    "Vertices are dealt to PARTS parts by a hash; 1: the whole matrix is one cut, of rows and columns.";

/* What one part gathers from another. */
struct pair {
    struct gr_cut cut;
    int64_t      *row_ptr;
    int32_t      *source;
    int64_t       size[3]; /* rows of each kind of cover */
};

static void *allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    return aligned_alloc(alignment, bytes);
}

static void deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    free(memory);
}

static int part_of(int64_t vertex, int parts)
{
    return (int)(bench_mix((uint64_t)vertex) % (uint64_t)parts);
}

/* The entries of the rows of `receiver` in the columns of `sender`; of both only those with entries. */
static void pair_init(struct pair *pair, const struct bench_graph *graph, int parts, int receiver, int sender)
{
    int32_t *place = bench_new((size_t)graph->n, sizeof *place, 1);
    int64_t  entries = 0, room = 0;

    for (int64_t row = 0; row < graph->n; row++)
        if (part_of(row, parts) == receiver) room += graph->row_ptr[row + 1] - graph->row_ptr[row];
    *pair = (struct pair){ .row_ptr = bench_new((size_t)graph->n + 1, sizeof *pair->row_ptr, 1) };
    pair->source = bench_new((size_t)room, sizeof *pair->source, 1);
    for (int64_t row = 0; row < graph->n; row++) {
        if (part_of(row, parts) != receiver) continue;
        for (int64_t e = graph->row_ptr[row]; e < graph->row_ptr[row + 1]; e++) {
            const int32_t column = graph->col_idx[e];

            if (part_of(column, parts) != sender) continue;
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

/* Find the cover of every pair, one pair per thread at a time. */
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
    const int          parts = argc > 2 ? atoi(argv[2]) : 0;
    const int          threads = argc > 3 ? atoi(argv[3]) : omp_get_num_procs();
    const int          count = parts == 1 ? 1 : parts * (parts - 1);
    graft_context      context = { .host = { .allocate = allocate, .deallocate = deallocate } };
    struct bench_graph graph;
    struct pair       *pairs;

    if (parts < 1 || parts > 1024 || threads < 1) bench_die("%s", usage);
    bench_graph_init(&graph, argv[1], NULL, threads);
    pairs = bench_new((size_t)count, sizeof *pairs, 1);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < count; i++) {
        const int receiver = parts == 1 ? 0 : i / (parts - 1), other = parts == 1 ? 0 : i % (parts - 1);

        pair_init(&pairs[i], &graph, parts, receiver, other + (parts > 1 && other >= receiver));
    }
    print_covers(&context, pairs, count, threads);
    for (int i = 0; i < count; i++) {
        free(pairs[i].row_ptr);
        free(pairs[i].source);
    }
    free(pairs);
    bench_graph_fini(&graph);
    return 0;
}
