/* Checks partitions that ranks make together: method stream, and the refinement of any partition. Cuts and loads are
 * counted by code that shares nothing with the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/fault_runs.h"
#include "harness/graphs.h"
#include "harness/spread.h"
#include "harness/tap.h"

#include "partition/refine.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 20000, NOT_TOUCHED = 0x77777777 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static const int32_t rank_counts[] = { 1, 2, 3, 5 };
enum { RANK_COUNTS = sizeof rank_counts / sizeof *rank_counts };

/* What all ranks of a run do. */
static struct {
    const struct graph  *graph;
    int32_t              parts;
    enum slicing         slicing;
    const char          *threads;
    int64_t              rounds; /* 0 for stream, otherwise rounds of refining `owner` */
    /* Number of the allocation after the setup that fails on one rank; -1 for none. */
    int64_t              fail_at;
    int32_t              owner[LARGEST]; /* owners before and after the run */
    const int32_t       *expected;       /* owners to compare with, in which case the result is not stored; or NULL */
    struct gr_refinement done;           /* statistics of the last rank */
} scene;

/* Cut the slice of a rank, and list the first vertices of all slices. */
static void cut_slice(const struct rank *r, struct graph_slice *cut, int64_t first[RANKS_MOST + 1])
{
    int64_t begin, end;

    first[0] = 0;
    for (int32_t p = 0; p < r->n_ranks; p++) {
        spread_slice(scene.slicing, scene.graph->rows.n_rows, r->n_ranks, p, &begin, &end);
        first[p + 1] = first[p] + end - begin;
    }
    graph_cut(cut, scene.graph, first[r->rank], first[r->rank + 1] - first[r->rank]);
}

/* Partition a slice. The owners lie between two numbers, which must stay unchanged. */
static int32_t partition_slice(struct rank *r, const struct gr_partition_input *input, int32_t *place)
{
    const int64_t        n = input->slice->rows->n_rows;
    const int32_t *const was = scene.owner + input->slice->first;
    struct gr_refinement done = { 0 };
    int32_t              rc;

    for (int64_t i = 0; i < n + 2; i++) place[i] = NOT_TOUCHED;
    if (scene.rounds > 0) memcpy(place + 1, was, (size_t)n * sizeof *was);
    if (scene.rounds > 0) rc = gr_partition_refine(input, scene.rounds, place + 1, &done, &r->error);
    else rc = gr_partition_stream(input, place + 1, &r->error);
    if (place[0] != NOT_TOUCHED || place[n + 1] != NOT_TOUCHED) rank_blame(r, "more is written than the slice");
    for (int64_t i = 0; i < n && rc < 0; i++)
        if (place[1 + i] != (scene.rounds > 0 ? was[i] : NOT_TOUCHED)) rank_blame(r, "owners change with a failure");
    if (rc < 0) return rc;
    if (scene.expected == NULL) {
        memcpy(scene.owner + input->slice->first, place + 1, (size_t)n * sizeof *place);
        if (r->rank == r->n_ranks - 1) scene.done = done;
    } else if (memcmp(scene.expected + input->slice->first, place + 1, (size_t)n * sizeof *place) != 0) {
        rank_blame(r, "other owners");
    }
    return rc;
}

static int32_t joint_body(struct rank *r)
{
    int64_t            first[RANKS_MOST + 1];
    struct graph_slice cut;
    int32_t           *place, rc;

    cut_slice(r, &cut, first);
    place = oracle_new(cut.rows.n_rows + 2, sizeof *place);
    TRY(gr_option_set(r->context, "threads", scene.threads, &r->error));
    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    if (r->rank == r->all->fail_rank && scene.fail_at >= 0) atomic_store(&r->all->fail_at, scene.fail_at);
    rc = partition_slice(r,
                         &(struct gr_partition_input){ .context = r->context,
                                                       .slice = &cut.slice,
                                                       .parts = scene.parts,
                                                       .comm = r->n_ranks > 1 ? r->comm : NULL,
                                                       .first = first },
                         place);
done:
    if (scene.expected != NULL && run_goes_on(r, rc)) rc = gr_comm_barrier(r->comm, &r->error);
    free(place);
    graph_cut_fini(&cut);
    return rc;
}

/* Run on all ranks. The result is NULL or an error in words. */
static const char *run_joint(const struct graph *graph, int32_t parts, int32_t n_ranks, enum slicing slicing,
                             const char *threads, int64_t rounds)
{
    static struct ranks ranks;

    if (graph->rows.n_rows > LARGEST) return "the graph is too large for the test";
    scene.graph = graph;
    scene.parts = parts;
    scene.slicing = slicing;
    scene.threads = threads;
    scene.rounds = rounds;
    scene.expected = NULL;
    ranks_init(&ranks, n_ranks, 60, joint_body, NULL);
    ranks_run(&ranks);
    return ranks_fini_well(&ranks);
}

static int64_t heaviest_vertex(const struct graph *graph)
{
    int64_t most = 1;

    for (int64_t v = 0; v < graph->rows.n_rows; v++)
        if (graph->row_ptr[v + 1] - graph->row_ptr[v] > most) most = graph->row_ptr[v + 1] - graph->row_ptr[v];
    return most;
}

/* -- stream ------------------------------------------------------------------------------------------------------- */

static const char *joint_stream_fault(const struct graph *graph, int32_t parts, int32_t n_ranks, enum slicing slicing)
{
    static int32_t once[LARGEST];
    const int64_t  heaviest = heaviest_vertex(graph);
    const int      is_fine = heaviest * 40 <= graph_allowed(graph, GR_SHARE_ENTRIES, parts);
    const char    *fault = run_joint(graph, parts, n_ranks, slicing, "1", 0);

    if (fault != NULL) return fault;
    memcpy(once, scene.owner, sizeof once);
    if (graph_empty_parts(graph, once, parts) < 0) return "an owner is out of range";
    if (graph_overload(graph, once, parts) > (is_fine ? 0 : heaviest)) return "a part has too much";
    fault = run_joint(graph, parts, n_ranks, slicing, "3", 0);
    if (fault != NULL) return fault;
    return memcmp(once, scene.owner, sizeof once) == 0 ? NULL : "other owners with three threads";
}

static void test_joint_stream(const struct graph *graph, int which)
{
    const char *fault = NULL;

    for (int i = which % 2; i < RANK_COUNTS && fault == NULL; i += 2)
        fault = joint_stream_fault(graph, (int32_t[]){ rank_counts[i], 5 }[which % 2], rank_counts[i],
                                   (enum slicing)((which + i) % SLICINGS));
    ok_or(fault == NULL, fault, "%s: slices of 1 to 5 ranks, in even parts, whatever the threads", graph->name);
}

/* Make communities under shuffled names. Each vertex draws so many neighbours inside of its own community and
 * outside. */
static void make_communities(struct graph *graph, int64_t communities, int64_t members, int inside, int outside,
                             uint64_t seed, int32_t *community)
{
    const int64_t n = communities * members, half = n * (inside + outside);
    struct sample sample = { seed };
    int64_t      *name = oracle_new(n, sizeof *name), *end = oracle_new(2 * half, sizeof *end), *next;

    for (int64_t i = 0; i < n; i++) {
        const int64_t j = sample_below(&sample, i + 1);

        name[i] = name[j];
        name[j] = i;
    }
    *graph = (struct graph){ .name = "communities" };
    graph->row_ptr = oracle_new(n + 1, sizeof *graph->row_ptr);
    graph->col_idx = oracle_new(2 * half, sizeof(int32_t));
    graph->train_mask = oracle_new(n, 1);
    for (int64_t i = 0; i < half; i++) {
        const int64_t a = i / (inside + outside), own = a / members * members;
        const int64_t b =
            i % (inside + outside) < inside ? own + sample_below(&sample, members) : sample_below(&sample, n);

        community[name[a]] = (int32_t)(a / members);
        end[2 * i] = name[a];
        end[2 * i + 1] = name[b];
        graph->row_ptr[name[a] + 1]++;
        graph->row_ptr[name[b] + 1]++;
    }
    for (int64_t v = 0; v < n; v++) graph->row_ptr[v + 1] += graph->row_ptr[v];
    next = oracle_new(n, sizeof *next);
    memcpy(next, graph->row_ptr, (size_t)n * sizeof *next);
    for (int64_t i = 0; i < 2 * half; i++) ((int32_t *)graph->col_idx)[next[end[i]]++] = (int32_t)end[i ^ 1];
    graph->rows = (graft_csr){ sizeof(graft_csr), GRAFT_I32, 0, 0, n, n, graph->row_ptr, graph->col_idx, NULL, NULL };
    graph->slice = (struct gr_slice){ &graph->rows, 0, graph->train_mask };
    free(next);
    free(end);
    free(name);
}

/* Compare the cut over ranks with that of one process, over a few graphs. */
static void test_stream_quality(void)
{
    static int32_t community[LARGEST];
    double         times[RANK_COUNTS] = { 0 };
    const char    *fault = NULL;

    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct graph graph;
        int64_t      one = 0;

        make_communities(&graph, 40, 50, 6, 1, seed, community);
        for (int i = 0; i < RANK_COUNTS && fault == NULL; i++) {
            fault = run_joint(&graph, 4, rank_counts[i], SLICE_EVEN, "1", 0);
            if (i == 0) one = graph_cut_entries(&graph, scene.owner);
            times[i] += (double)graph_cut_entries(&graph, scene.owner) / (double)one / 2;
        }
        graph_fini(&graph);
    }
    for (int i = 1; i < RANK_COUNTS; i++)
        if (!ok(fault == NULL && times[i] < 1.15, "communities: %d ranks cut %.2f times as many edges as one process",
                rank_counts[i], times[i]))
            diag("%s", fault != NULL ? fault : "");
}

/* -- refinement --------------------------------------------------------------------------------------------------- */

static const char *refine_fault(const struct graph *graph, int32_t parts, int32_t n_ranks, enum slicing slicing)
{
    static int32_t was[LARGEST], once[LARGEST];
    const int64_t  cut = graph_cut_entries(graph, scene.owner), over = graph_overload(graph, scene.owner, parts);
    const char    *fault;

    memcpy(was, scene.owner, sizeof was);
    fault = run_joint(graph, parts, n_ranks, slicing, "1", 20);
    if (fault != NULL) return fault;
    memcpy(once, scene.owner, sizeof once);
    if (graph_empty_parts(graph, once, parts) < 0) return "an owner is out of range";
    if (graph_empty_parts(graph, once, parts) > graph_empty_parts(graph, was, parts)) return "a part has become empty";
    if (scene.done.cut_before != cut || scene.done.cut != graph_cut_entries(graph, once)) return "it says another cut";
    if (scene.done.cut > cut) return "the cut has grown";
    if (graph_overload(graph, once, parts) > over) return "a part has too much";
    if (scene.done.rounds < (cut > 0) || scene.done.rounds > 20) return "another number of rounds";
    memcpy(scene.owner, was, sizeof was);
    fault = run_joint(graph, parts, n_ranks, slicing, "3", 20);
    if (fault != NULL) return fault;
    return memcmp(once, scene.owner, sizeof once) == 0 ? NULL : "other owners with three threads";
}

/* Refine random owners, ranges, and the result of stream. */
static void test_refine(const struct graph *graph, int which)
{
    const int64_t n = graph->rows.n_rows;
    struct sample sample = { 12 };
    const char   *fault = NULL;

    for (int i = which % 2; i < RANK_COUNTS && fault == NULL; i += 2) {
        const int32_t      n_ranks = rank_counts[i], parts = i % 2 == 0 ? n_ranks : 5;
        const enum slicing slicing = (enum slicing)((which + i) % SLICINGS);
        const int          origin = (which + i) % 3;

        if (origin == 0) fault = run_joint(graph, parts, n_ranks, slicing, "1", 0);
        for (int64_t v = 0; v < n && origin > 0; v++)
            scene.owner[v] = (int32_t)(origin == 1 ? sample_below(&sample, parts) : v * parts / n);
        if (fault == NULL) fault = refine_fault(graph, parts, n_ranks, slicing);
    }
    ok_or(fault == NULL, fault, "%s: refined, the cut never grows and loads stay", graph->name);
}

/* A partition with by far the smallest cut, in which every fourth vertex has lost its owner. */
static void test_planted_partition(void)
{
    enum { PARTS = 4, MEMBERS = 400, N = PARTS * MEMBERS };
    static int32_t planted[N];
    struct sample  sample = { 3 };
    struct graph   graph;

    make_communities(&graph, PARTS, MEMBERS, 8, 2, 5, planted);
    for (int i = 0; i < RANK_COUNTS; i++) {
        const char *fault;
        int64_t     wrong = 0, found = 0;

        for (int64_t v = 0; v < N; v++)
            scene.owner[v] = sample_below(&sample, 4) == 0 ? (int32_t)sample_below(&sample, PARTS) : planted[v];
        for (int64_t v = 0; v < N; v++) wrong += scene.owner[v] != planted[v];
        fault = run_joint(&graph, PARTS, rank_counts[i], SLICE_EVEN, "1", 50);
        for (int64_t v = 0; v < N; v++) found += scene.owner[v] == planted[v];
        if (!ok(fault == NULL && wrong > N / 8 && found == N && scene.done.cut < scene.done.cut_before,
                "%" PRId64 " of %d vertices in wrong parts are all found by %d ranks", wrong, (int)N, rank_counts[i]))
            diag("%s; %" PRId64 " are right", fault != NULL ? fault : "", found);
    }
    graph_fini(&graph);
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

/* Two halves. Each vertex draws so many neighbours in its own half and in the other one. */
static void make_halves(struct graph *graph, int64_t half, int inside, int outside)
{
    const int64_t n = 2 * half, degree = inside + outside;
    struct sample sample = { 9 };

    *graph = (struct graph){ .name = "halves" };
    graph->row_ptr = oracle_new(n + 1, sizeof *graph->row_ptr);
    graph->col_idx = oracle_new(n * degree, sizeof(int32_t));
    graph->train_mask = oracle_new(n, 1);
    for (int64_t v = 0; v < n; v++) graph->row_ptr[v + 1] = (v + 1) * degree;
    for (int64_t e = 0; e < n * degree; e++) {
        const int64_t own = e / degree / half, of = e % degree < inside ? own : 1 - own;

        ((int32_t *)graph->col_idx)[e] = (int32_t)(of * half + sample_below(&sample, half));
    }
    graph->rows = (graft_csr){ sizeof(graft_csr), GRAFT_I32, 0, 0, n, n, graph->row_ptr, graph->col_idx, NULL, NULL };
    graph->slice = (struct gr_slice){ &graph->rows, 0, graph->train_mask };
}

/* The memory that graft_graph.h states for `stream` on rank p: first for edges that leave the slice, then for
 * everything else. */
static int64_t stated_bytes(const struct graph *graph, int32_t n_ranks, int32_t p)
{
    const int64_t  n = graph->rows.n_rows;
    const int32_t *column = graph->col_idx;
    uint8_t       *is_halo = oracle_new(n, 1);
    int64_t        begin, end, first, last, rest, leaving = 0, halo = 0, pairs = 0;

    spread_slice(scene.slicing, n, n_ranks, p, &begin, &end);
    for (int64_t e = graph->row_ptr[begin]; e < graph->row_ptr[end]; e++) {
        if (column[e] >= begin && column[e] < end) continue;
        leaving++;
        halo += !is_halo[column[e]];
        is_halo[column[e]] = 1;
    }
    for (int32_t q = 0; q < n_ranks; q++) {
        spread_slice(scene.slicing, n, n_ranks, q, &first, &last);
        memset(is_halo, 0, (size_t)n);
        for (int64_t e = graph->row_ptr[first]; e < graph->row_ptr[last] && q != p; e++) {
            if (column[e] < begin || column[e] >= end) continue;
            pairs += !is_halo[column[e]];
            is_halo[column[e]] = 1;
        }
    }
    free(is_halo);
    rest = 4 * (graph->row_ptr[end] - graph->row_ptr[begin]) + 8 * (end - begin) + 16 * halo + 8 * pairs;
    return rest > 16 * leaving ? rest : 16 * leaving;
}

/* With few edges that leave the slice the other arrays need the most memory, with many edges these do. */
static void test_stream_bytes(int inside, int outside, int64_t rounds)
{
    static struct ranks ranks;
    struct graph        graph;
    const char         *fault;
    int64_t             stated = 0, peak;

    make_halves(&graph, LARGEST / 2, inside, outside);
    scene.graph = &graph;
    scene.parts = 3;
    scene.slicing = SLICE_EVEN;
    scene.threads = "1";
    scene.rounds = rounds;
    memset(scene.owner, 0, sizeof scene.owner);
    for (int32_t p = 0; p < 2; p++) stated += stated_bytes(&graph, 2, p);
    ranks_init(&ranks, 2, 60, joint_body, NULL);
    atomic_store(&ranks.peak_bytes, 0);
    ranks_run(&ranks);
    peak = atomic_load(&ranks.peak_bytes);
    fault = ranks_fini_well(&ranks);
    if (!ok(fault == NULL && peak > stated / 2 && peak < stated + stated / 20,
            "%s needs %" PRId64 " bytes, %" PRId64 " are stated", rounds > 0 ? "refinement" : "stream", peak, stated))
        diag("%s", fault != NULL ? fault : "");
    graph_fini(&graph);
}

/* -- faults ------------------------------------------------------------------------------------------------------- */

static void test_joint_memory(const struct graph *graph, int64_t rounds)
{
    static struct ranks ranks;
    static int32_t      start[LARGEST];
    int64_t             at = 0;
    int                 left = 1;
    char                fault[512] = "";

    memcpy(start, scene.owner, sizeof start);
    for (; left && fault[0] == '\0'; at++) {
        const char *words;

        memcpy(scene.owner, start, sizeof start);
        scene.rounds = rounds;
        ranks_init(&ranks, 3, 20, joint_body, NULL);
        ranks.fail_rank = 1;
        scene.fail_at = at;
        ranks_run(&ranks);
        left = atomic_load(&ranks.fail_at) < 0;
        for (int32_t i = 0; i < 3; i++) {
            const struct rank *r = &ranks.at[i];

            if ((r->rc == GRAFT_OK) == left || (left && r->rc != GRAFT_ERR_NOMEM && r->rc != GRAFT_ERR_PEER) ||
                (left && strcmp(r->error.message, ranks.at[0].error.message) != 0))
                snprintf(fault, sizeof fault, "rank %d: %d %.300s", i, r->rc, r->error.message);
        }
        words = ranks_fini(&ranks);
        if (words != NULL) snprintf(fault, sizeof fault, "%.500s", words);
    }
    scene.fail_at = -1;
    if (!ok(fault[0] == '\0' && at > 20 && scene.graph == graph,
            "%s: each of %" PRId64 " allocations of a rank may fail", rounds > 0 ? "refinement" : "stream", at - 1))
        diag("allocation %" PRId64 ": %s", at - 1, fault);
}

static void test_joint_faults(const struct graph *graph, int64_t rounds, int32_t bad_rank, int32_t every)
{
    static int32_t start[LARGEST], expected[LARGEST];
    const char    *fault;

    memcpy(start, scene.owner, sizeof start);
    fault = run_joint(graph, 3, 3, SLICE_EVEN, "1", rounds);
    if (fault != NULL) diag("%s", fault);
    memcpy(expected, scene.owner, sizeof expected);
    memcpy(scene.owner, start, sizeof start);
    scene.expected = expected;
    run_faults(rounds > 0 ? "refinement" : "stream", joint_body, 3, bad_rank, (const int[]){ every, 2 * every },
               FAULTS);
    scene.expected = NULL;
}

int main(void)
{
    struct graph graph;

    alarm(110);
    scene.fail_at = -1;
    for (int which = 0; which < GRAPHS; which++) {
        graph_init(&graph, which);
        test_joint_stream(&graph, which);
        test_refine(&graph, which);
        graph_fini(&graph);
    }
    test_stream_quality();
    test_planted_partition();
    graph_init(&graph, 0);
    if (run_joint(&graph, 3, 3, SLICE_EVEN, "1", 0) != NULL) abort();
    test_joint_memory(&graph, 0);
    for (int64_t v = 0; v < graph.rows.n_rows; v++) scene.owner[v] = (int32_t)(v % 3);
    test_joint_memory(&graph, 6);
    for (int64_t v = 0; v < graph.rows.n_rows; v++) scene.owner[v] = (int32_t)(v % 3);
    test_joint_faults(&graph, 6, 2, 41);
    test_joint_faults(&graph, 0, 0, 97);
    graph_fini(&graph);
    test_stream_bytes(16, 4, 0);
    test_stream_bytes(16, 4, 3);
    test_stream_bytes(1, 19, 0);
    return done();
}
