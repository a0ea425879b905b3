/* Checks partitions: every method on many kinds of graphs, whole and in slices, the repair of bad partitions, and the
 * costs of partitions against plain counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include <inttypes.h>
#include <math.h>

static struct strict_host host;
static graft_context      context;
static graft_error        error = { .size = sizeof error };

static const int32_t part_counts[] = { 1, 2, 3, 4, 7, 50 };
enum { PART_COUNTS = sizeof part_counts / sizeof *part_counts };

static int32_t *stream(const struct graph *graph, int32_t parts)
{
    int32_t *owner = oracle_new(graph->rows.n_rows, sizeof *owner);

    memset(owner, 0x77, (size_t)graph->rows.n_rows * sizeof *owner);
    if (gr_partition_stream(&(struct gr_partition_input){ .context = &context, .slice = &graph->slice, .parts = parts },
                            owner, &error) != GRAFT_OK)
        abort();
    return owner;
}

static int32_t *hash(const struct graph *graph, int32_t parts)
{
    int32_t *owner = oracle_new(graph->rows.n_rows, sizeof *owner);

    gr_partition_hash(&(struct gr_partition_input){ .slice = &graph->slice, .parts = parts }, owner, &error);
    return owner;
}

static int32_t *block(const struct graph *graph, int32_t parts)
{
    int32_t *owner = oracle_new(graph->rows.n_rows, sizeof *owner);

    gr_partition_block(&(struct gr_partition_input){ .slice = &graph->slice, .parts = parts }, owner, &error);
    return owner;
}

/* -- methods ------------------------------------------------------------------------------------------------------ */

/* A range must end where its share is full, at most half of one vertex early or late. */
static const char *block_fault(const struct graph *graph, int32_t parts)
{
    const int64_t n = graph->rows.n_rows, entries = graph->row_ptr[n];
    int32_t      *owner = block(graph, parts);
    const char   *fault = graph_empty_parts(graph, owner, parts) < 0 ? "an owner is out of range" : NULL;
    double        share = 0;

    for (int64_t v = 0; v < n; v++) {
        const double of_entries = (double)(graph->row_ptr[v + 1] - graph->row_ptr[v]) / (double)entries;
        const double mine = entries > 0 ? 0.5 / (double)n + 0.5 * of_entries : 1 / (double)n;
        const double part = floor((share + 0.5 * mine) * parts);

        if (v > 0 && owner[v] < owner[v - 1]) fault = "ranges are torn";
        if (fabs(part - owner[v]) > 1) fault = "a vertex is in another part than its share says";
        if (part != owner[v] && fabs((share + 0.5 * mine) * parts - fmax(part, owner[v])) > 1e-9)
            fault = "a vertex is just beside its part";
        share += mine;
    }
    free(owner);
    return fault;
}

/* Whether hash and block give the same owners for three slices as for the whole. */
static int is_same_in_slices(const struct graph *graph, int32_t parts)
{
    const int64_t n = graph->rows.n_rows, ends[] = { 0, n / 5, n / 5, n / 2, n };
    int32_t      *by_hash = hash(graph, parts), *by_block = block(graph, parts), *mine = oracle_new(n, sizeof *mine);
    int64_t       before[GR_SHARES] = { 0 }, total[GR_SHARES], own[GR_SHARES];
    uint64_t      print = 0;
    int           same = 1;

    gr_partition_slice_total(&graph->slice, total);
    for (int i = 0; i < 4; i++) {
        const size_t                    bytes = (size_t)(ends[i + 1] - ends[i]) * sizeof *mine;
        struct graph_slice              cut;
        const struct gr_partition_input input = {
            .slice = &cut.slice, .parts = parts, .before = before, .total = total
        };

        graph_cut(&cut, graph, ends[i], ends[i + 1] - ends[i]);
        gr_partition_hash(&input, mine, &error);
        same = same && memcmp(mine, by_hash + ends[i], bytes) == 0;
        gr_partition_block(&input, mine, &error);
        same = same && memcmp(mine, by_block + ends[i], bytes) == 0;
        gr_partition_slice_total(&cut.slice, own);
        for (int k = 0; k < GR_SHARES; k++) before[k] += own[k];
        print += gr_partition_slice_fingerprint(&cut.slice);
        graph_cut_fini(&cut);
    }
    same = same && print == gr_partition_slice_fingerprint(&graph->slice) && memcmp(before, total, sizeof total) == 0;
    free(by_hash);
    free(by_block);
    free(mine);
    return same;
}

static int64_t heaviest(const struct graph *graph)
{
    int64_t most = 1;

    for (int64_t v = 0; v < graph->rows.n_rows; v++)
        if (graph->row_ptr[v + 1] - graph->row_ptr[v] > most) most = graph->row_ptr[v + 1] - graph->row_ptr[v];
    return most;
}

/* No part may have more than its limit plus one vertex, because a single vertex may be too heavy for any part. */
static const char *stream_fault(const struct graph *graph, int32_t parts)
{
    int32_t      *owner = stream(graph, parts), *again = stream(graph, parts);
    const int64_t over = graph_overload(graph, owner, parts);
    const int     is_fine = heaviest(graph) * 40 <= graph_allowed(graph, GR_SHARE_ENTRIES, parts);
    const char   *fault = NULL;

    if (graph_empty_parts(graph, owner, parts) < 0) fault = "an owner is out of range";
    if (over > (is_fine ? 0 : heaviest(graph))) fault = "a part has too much";
    if (memcmp(owner, again, (size_t)graph->rows.n_rows * sizeof *owner) != 0) fault = "not the same twice";
    if (fault != NULL) diag("%s in %d: over by %" PRId64, graph->name, parts, over);
    free(owner);
    free(again);
    return fault;
}

static int is_measured_right(const struct graph *graph, int32_t *owner, int32_t parts)
{
    struct gr_partition_measure measure;
    const char                 *fault;

    if (gr_partition_measure_init(&context, &measure, &graph->slice, parts, owner, &error) != GRAFT_OK) return 0;
    fault = graph_measure_fault(graph, &measure, owner);
    if (fault != NULL) diag("%s in %d: %s", graph->name, parts, fault);
    gr_partition_measure_fini(&context, &measure);
    free(owner);
    return fault == NULL;
}

static void test_methods(const struct graph *graph)
{
    const char *block_wrong = NULL, *stream_wrong = NULL;
    int         sliced = 1, measured = 1;

    for (int i = 0; i < PART_COUNTS; i++) {
        const int32_t parts = part_counts[i];
        const char   *fault;

        if ((fault = block_fault(graph, parts)) != NULL) block_wrong = fault;
        if ((fault = stream_fault(graph, parts)) != NULL) stream_wrong = fault;
        sliced = sliced && is_same_in_slices(graph, parts);
        measured = measured && is_measured_right(graph, hash(graph, parts), parts) &&
                   is_measured_right(graph, block(graph, parts), parts) &&
                   is_measured_right(graph, stream(graph, parts), parts);
    }
    ok(block_wrong == NULL, "%s: blocks are ranges with equal shares%s%s", graph->name, block_wrong ? ": " : "",
       block_wrong ? block_wrong : "");
    ok(sliced, "%s: owners by hash and blocks, and the fingerprint, do not depend on slices", graph->name);
    ok(stream_wrong == NULL, "%s: stream makes parts of about equal sizes%s%s", graph->name, stream_wrong ? ": " : "",
       stream_wrong ? stream_wrong : "");
    ok(measured, "%s: measures of a partition equal plain counts", graph->name);
}

static void test_hash(void)
{
    enum { N = 100000, PARTS = 8 };
    const graft_csr       rows = { .n_rows = N };
    const struct gr_slice slice = { .rows = &rows, .first = INT64_C(1) << 40 };
    int32_t              *owner = oracle_new(N, sizeof *owner);
    int64_t               count[PARTS] = { 0 }, beside = 0, worst = 0;

    gr_partition_hash(&(struct gr_partition_input){ .slice = &slice, .parts = PARTS }, owner, &error);
    for (int64_t i = 0; i < N; i++) {
        count[owner[i]]++;
        beside += i > 0 && owner[i] == owner[i - 1];
    }
    for (int p = 0; p < PARTS; p++)
        if (llabs(count[p] - N / PARTS) > worst) worst = llabs(count[p] - N / PARTS);
    ok(worst < 5 * 105, "hash: parts of %d differ by %" PRId64 " from the mean, which is chance", N / PARTS, worst);
    ok(llabs(beside - N / PARTS) < 5 * 105,
       "hash: neighbours by number are in the same part as often as other vertices");
    free(owner);
}

/* Cliques of 12 in a chain: a good cut lies between cliques, and a hash cuts nearly all edges. */
static void test_quality(void)
{
    struct graph  graph;
    int32_t      *by_stream, *by_hash;
    int64_t       cut[2];
    const int64_t parts = 4;

    graph_init(&graph, 5);
    by_stream = stream(&graph, parts);
    by_hash = hash(&graph, parts);
    cut[0] = graph_cut_entries(&graph, by_stream);
    cut[1] = graph_cut_entries(&graph, by_hash);
    ok(cut[0] * 3 < cut[1], "cliques: a stream cuts %" PRId64 " entries, a hash %" PRId64, cut[0], cut[1]);
    free(by_stream);
    free(by_hash);
    graph_fini(&graph);
}

/* -- repair ------------------------------------------------------------------------------------------------------- */

/* Repair a partition, and check the result. */
static const char *repair_fault(const struct graph *graph, int32_t *owner, int32_t parts, int64_t *moved)
{
    const int64_t n = graph->rows.n_rows;
    int32_t      *was = oracle_new(n, sizeof *was), empty;
    const char   *fault = NULL;
    int64_t       changed = 0;

    memcpy(was, owner, (size_t)n * sizeof *was);
    if (gr_partition_repair(&context, &graph->slice, parts, owner, moved, &error) != GRAFT_OK) fault = "it failed";
    empty = graph_empty_parts(graph, owner, parts);
    if (empty < 0) fault = "an owner is out of range";
    if (empty > (n < parts ? parts - n : 0)) fault = "a part is empty";
    if (graph_overload(graph, owner, parts) > heaviest(graph)) fault = "a part has too much";
    for (int64_t v = 0; v < n; v++) changed += was[v] != owner[v];
    if (changed != *moved) fault = "the number of moves is wrong";
    if (fault != NULL)
        diag("%s in %d: %d empty, over by %" PRId64, graph->name, parts, empty, graph_overload(graph, owner, parts));
    free(was);
    return fault;
}

static void test_repair(const struct graph *graph)
{
    const int64_t n = graph->rows.n_rows;
    int32_t      *owner = oracle_new(n, sizeof *owner);
    struct sample sample = { 9 };
    const char   *wrong = NULL, *fault;
    int64_t       moved = 7, idle = 0;

    for (int i = 0; i < PART_COUNTS; i++) {
        for (int kind = 0; kind < 4; kind++) {
            for (int64_t v = 0; v < n; v++) {
                const int32_t any = (int32_t)sample_bits(&sample), last = part_counts[i] - 1;
                owner[v] = (int32_t[]){ any, last, v % 2 ? -1 : last, v == 0 ? INT32_MIN : part_counts[i] }[kind];
            }
            if ((fault = repair_fault(graph, owner, part_counts[i], &moved)) != NULL) wrong = fault;
            fault = repair_fault(graph, owner, part_counts[i], &moved);
            if (graph_overload(graph, owner, part_counts[i]) == 0) idle += moved;
        }
    }
    ok(wrong == NULL, "%s: bad partitions are repaired%s%s", graph->name, wrong ? ": " : "", wrong ? wrong : "");
    ok(idle == 0, "%s: a good partition is not changed by the repair", graph->name);
    free(owner);
}

/* -- the rest ----------------------------------------------------------------------------------------------------- */

static void test_seconds(void)
{
    struct gr_part_measure            part[3] = { { { 10, 100, 1 }, 0, { 5, 6, 50 }, { 7, 8, 9 } },
                                                  { { 20, 50, 1 }, 0, { 9, 10, 11 }, { 2, 45, 3 } },
                                                  { { 1, 1, 0 }, 0, { 40, 41, 42 }, { 1, 1, 1 } } };
    const struct gr_partition_measure measure = { .parts = 3, .part = part };
    const struct gr_partition_cost    costs[] = { { 1, 0, 0, 0 },          { 0, 1, 0, 0 }, { 0, 0, 1, GR_ROWS_LEAST },
                                                  { 1, 2, 4, 0 },          { 0, 0, 0, 0 }, { 0, 0, 1, GR_ROWS_POST },
                                                  { 0, 0, 1, GR_ROWS_PRE } };
    const double                      expected[] = { 100, 20, 40, 163, 0, 45, 50 };
    int                               right = 1;

    for (int i = 0; i < 7; i++) right = right && gr_partition_seconds(&measure, &costs[i]) == expected[i];
    ok(right, "the predicted time is that of the part with the most work");
}

static void test_fingerprint(void)
{
    struct graph graph;
    int64_t     *row, first;
    uint64_t     whole, swapped, other;

    graph_init(&graph, 6); /* a grid with 64-bit columns */
    whole = gr_partition_slice_fingerprint(&graph.slice);
    row = (int64_t *)graph.col_idx + graph.row_ptr[30];
    first = row[0];
    row[0] = row[1];
    row[1] = first;
    swapped = gr_partition_slice_fingerprint(&graph.slice);
    row[0] = 399;
    other = gr_partition_slice_fingerprint(&graph.slice);
    ok(whole == swapped && whole != other,
       "the fingerprint does not depend on the order of entries, and differs for other entries");
    graph_fini(&graph);
}

static void test_partition_no_memory(void)
{
    struct graph                graph;
    struct gr_partition_measure measure = { .parts = 4711 };
    int32_t                    *owner, *was;
    int64_t                     moved = 7;
    int                         clean = 1, calls[3] = { 0 };

    graph_init(&graph, 3);
    owner = hash(&graph, 7);
    was = hash(&graph, 7);
    owner[5] = was[5] = 99;
    for (int what = 0; what < 3; what++) {
        const struct gr_partition_input input = { .context = &context, .slice = &graph.slice, .parts = 7 };

        for (;; calls[what]++) {
            int32_t rc;

            strict_host_fail(&host, calls[what], 0);
            rc = what == 0   ? gr_partition_stream(&input, owner, &error)
                 : what == 1 ? gr_partition_repair(&context, &graph.slice, 7, owner, &moved, &error)
                             : gr_partition_measure_init(&context, &measure, &graph.slice, 7, owner, &error);
            if (host.failed == 0) break;
            clean = clean && rc == GRAFT_ERR_NOMEM && host.live_blocks == 0 && moved == 7 && measure.parts == 4711 &&
                    memcmp(owner, was, (size_t)graph.rows.n_rows * sizeof *owner) == 0;
        }
        memcpy(owner, was, (size_t)graph.rows.n_rows * sizeof *owner);
        if (what == 1) owner[5] = was[5] = 0;
        moved = 7;
    }
    strict_host_fail(&host, -1, 0);
    gr_partition_measure_fini(&context, &measure);
    ok(clean && calls[0] > 3 && calls[1] > 3 && calls[2] > 3, "without memory owners are unchanged");
    free(owner);
    free(was);
    graph_fini(&graph);
}

int main(void)
{
    strict_host_init(&host);
    context.host = host.table;
    for (int which = 0; which < GRAPHS; which++) {
        struct graph graph;

        graph_init(&graph, which);
        test_methods(&graph);
        test_repair(&graph);
        graph_fini(&graph);
    }
    test_hash();
    test_quality();
    test_seconds();
    test_fingerprint();
    test_partition_no_memory();
    ok(host.fault == NULL && host.live_blocks == 0, "all memory of the host was freed, and none was misused");
    return done();
}
