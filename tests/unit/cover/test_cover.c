/* Checks minimum vertex covers of cut edges. Small covers are compared with the oracle, large ones with a certificate,
 * which is a matching of the same size: no cover can be smaller. Memory, threads and stack must stay within the
 * documented bounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/bipartite.h"
#include "oracle/sample.h"

#include "cover/cover.h"
#include "cover/matching.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>

/* -- covers ------------------------------------------------------------------------------------------------------- */

static struct strict_host host;
static graft_context      context;

struct cover {
    uint8_t *source_in, *target_in;
    int64_t  size;
    int32_t  rc;
};

static struct gr_cut cut_of(const struct oracle_bipartite *graph)
{
    return (struct gr_cut){
        .n_targets = graph->n_targets, .n_sources = graph->n_sources, .row_ptr = graph->row_ptr, .source = graph->source
    };
}

/* Allocate the outputs; the fields begin as 7, which is no valid result. */
static void cover_init(struct cover *cover, const struct oracle_bipartite *cut, enum gr_cover_kind kind)
{
    const struct gr_cut own = cut_of(cut);
    graft_error         error = GRAFT_INIT(graft_error);

    *cover = (struct cover){ oracle_new(cut->n_sources, 1), oracle_new(cut->n_targets, 1), 7, 0 };
    memset(cover->source_in, 7, (size_t)cut->n_sources);
    memset(cover->target_in, 7, (size_t)cut->n_targets);
    cover->rc = gr_cover_find(&context, &own, kind, cover->source_in, cover->target_in, &cover->size, &error);
}

static void cover_fini(struct cover *cover)
{
    free(cover->source_in);
    free(cover->target_in);
}

static int is_equal(const struct oracle_bipartite *cut, const struct cover *a, const struct cover *b)
{
    return a->rc == GRAFT_OK && b->rc == GRAFT_OK && a->size == b->size &&
           memcmp(a->source_in, b->source_in, (size_t)cut->n_sources) == 0 &&
           memcmp(a->target_in, b->target_in, (size_t)cut->n_targets) == 0;
}

/* Whether every edge is covered. The result is NULL or names the fault. */
static const char *fault_of_cover(const struct oracle_bipartite *cut, const struct cover *cover)
{
    uint8_t    *serves = oracle_new(cut->n_sources, 1);
    int64_t     size = 0;
    const char *fault = cover->rc == GRAFT_OK ? NULL : "it failed";

    for (int64_t t = 0; t < cut->n_targets; t++) {
        int64_t served = 0;

        for (int64_t e = cut->row_ptr[t]; e < cut->row_ptr[t + 1]; e++) {
            if (cover->source_in[cut->source[e]]) serves[cut->source[e]] = 1;
            else served++;
        }
        if (served > 0 && !cover->target_in[t]) fault = "an edge has no end in it";
        if (served == 0 && cover->target_in[t]) fault = "a target is in it and serves no edge";
        if (cover->target_in[t] > 1) fault = "a target is neither 0 nor 1";
        size += cover->target_in[t];
    }
    for (int64_t s = 0; s < cut->n_sources; s++) {
        if (cover->source_in[s] != serves[s]) fault = "a source is in it and serves no edge, or is neither 0 nor 1";
        size += cover->source_in[s];
    }
    if (size != cover->size) fault = "its size is not what is said";
    free(serves);
    return fault;
}

static int has_edge(const struct oracle_bipartite *cut, int64_t t, int64_t s)
{
    for (int64_t e = cut->row_ptr[t]; e < cut->row_ptr[t + 1]; e++)
        if (cut->source[e] == s) return 1;
    return 0;
}

/* The number of pairs, or -1 if they are no matching. No cover can have fewer members. */
static int64_t count_pairs(const struct oracle_bipartite *cut, const struct gr_matching *matching)
{
    int64_t pairs = 0, sources = 0;

    for (int64_t t = 0; t < cut->n_targets; t++) {
        const int32_t s = matching->of_target[t];

        if (s < 0) continue;
        if (s >= cut->n_sources || matching->of_source[s] != t || !has_edge(cut, t, s)) return -1;
        pairs++;
    }
    for (int64_t s = 0; s < cut->n_sources; s++) sources += matching->of_source[s] >= 0;
    return pairs == sources ? pairs : -1;
}

/* Whether the hybrid cover is a cover of minimum size, which is `expected` unless that is -1. */
static int is_minimum(const struct oracle_bipartite *cut, int64_t expected)
{
    const struct gr_cut own = cut_of(cut);
    struct gr_matching  matching = { 0 };
    struct cover        cover;
    graft_error         error = GRAFT_INIT(graft_error);
    const char         *fault;
    int64_t             pairs;

    cover_init(&cover, cut, GR_COVER_HYBRID);
    fault = fault_of_cover(cut, &cover);
    pairs = gr_cover_matching_find(&context, &own, &matching, &error) == GRAFT_OK ? count_pairs(cut, &matching) : -1;
    if (fault == NULL && pairs != cover.size) fault = "there is no matching of its size";
    if (fault == NULL && expected >= 0 && expected != cover.size) fault = "its size is not the known one";
    if (fault != NULL) diag("%s: size %" PRId64 ", pairs %" PRId64, fault, cover.size, pairs);
    gr_cover_matching_fini(&context, &matching);
    cover_fini(&cover);
    return fault == NULL;
}

/* -- tests -------------------------------------------------------------------------------------------------------- */

/* The cover of the oracle, by trying all sets if there are at most 12 sources. */
static void cover_expect(struct cover *cover, const struct oracle_bipartite *cut)
{
    int several = 0;

    *cover = (struct cover){ oracle_new(cut->n_sources, 1), oracle_new(cut->n_targets, 1), 0, 0 };
    if (cut->n_sources <= 12) cover->size = oracle_cover_by_trial(cut, cover->source_in, cover->target_in, &several);
    else cover->size = oracle_cover(cut, cover->source_in, cover->target_in);
    cover->rc = several ? -1 : GRAFT_OK;
}

static int is_as_expected(const struct oracle_bipartite *cut)
{
    struct cover cover, expected;
    const char  *fault;
    int          equal;

    cover_init(&cover, cut, GR_COVER_HYBRID);
    cover_expect(&expected, cut);
    fault = fault_of_cover(cut, &cover);
    equal = is_equal(cut, &cover, &expected);
    if (fault != NULL || !equal) {
        diag("%" PRId64 " targets, %" PRId64 " sources, %" PRId64 " entries: size %" PRId64 ", expected %" PRId64
             "; %s",
             cut->n_targets, cut->n_sources, cut->row_ptr[cut->n_targets], cover.size, expected.size,
             fault != NULL ? fault
             : equal       ? ""
                           : "another cover than that of the most sources");
    }
    cover_fini(&cover);
    cover_fini(&expected);
    return fault == NULL && equal;
}

static void test_by_oracle(const char *what, int64_t graphs, int64_t largest)
{
    struct sample    sample = { 11 + (uint64_t)largest };
    struct bipartite graph;
    int64_t          wrong = 0, gains = 0;

    for (int64_t i = 0; i < graphs; i++) {
        const int64_t nt = sample_below(&sample, largest + 1), ns = sample_below(&sample, largest + 1);
        struct cover  hybrid, pre, post;

        if (i % 2 == 0 && largest > 12) bipartite_torn_board(&graph, &sample, 8 + 2 * sample_below(&sample, 5));
        else bipartite_random(&graph, &sample, nt, ns, sample_below(&sample, 1 + largest * (1 + i % 4)), (int)(i % 3));
        wrong += !is_as_expected(&graph.view);
        cover_init(&hybrid, &graph.view, GR_COVER_HYBRID);
        cover_init(&pre, &graph.view, GR_COVER_PRE);
        cover_init(&post, &graph.view, GR_COVER_POST);
        gains += hybrid.size < pre.size && hybrid.size < post.size;
        cover_fini(&hybrid);
        cover_fini(&pre);
        cover_fini(&post);
        bipartite_fini(&graph);
    }
    ok(wrong == 0,
       "%" PRId64 " graphs of up to %" PRId64 " and %" PRId64 " vertices: the cover of %s (%" PRId64 " wrong)", graphs,
       largest, largest, what, wrong);
    ok(gains > graphs / 100, "of which %" PRId64 " have a hybrid cover smaller than all targets or all sources", gains);
}

static void test_modes(void)
{
    struct bipartite graph = { .n_targets = 4, .n_sources = 5 };
    struct cover     cover;

    bipartite_add(&graph, 0, 1);
    bipartite_add(&graph, 2, 1);
    bipartite_add(&graph, 2, 4);
    bipartite_add(&graph, 2, 1);
    bipartite_add(&graph, 2, 0);
    bipartite_finish(&graph);
    cover_init(&cover, &graph.view, GR_COVER_PRE);
    ok(cover.size == 2 && memcmp(cover.target_in, (uint8_t[]){ 1, 0, 1, 0 }, 4) == 0 &&
           fault_of_cover(&graph.view, &cover) == NULL,
       "the cover \"pre\" has all targets with an edge, and no source");
    cover_fini(&cover);
    cover_init(&cover, &graph.view, GR_COVER_POST);
    ok(cover.size == 3 && memcmp(cover.source_in, (uint8_t[]){ 1, 1, 0, 0, 1 }, 5) == 0 &&
           fault_of_cover(&graph.view, &cover) == NULL,
       "the cover \"post\" has all sources with an edge, and no target");
    cover_fini(&cover);
    cover_init(&cover, &graph.view, GR_COVER_HYBRID);
    ok(cover.size == 2 && memcmp(cover.source_in, (uint8_t[]){ 0, 1, 0, 0, 0 }, 5) == 0 &&
           memcmp(cover.target_in, (uint8_t[]){ 0, 0, 1, 0 }, 4) == 0,
       "the cover \"hybrid\" has source 1 and target 2; the edge between them is covered by the "
       "source");
    cover_fini(&cover);
    bipartite_fini(&graph);
}

static void test_small(void)
{
    static const int64_t size[][2] = { { 0, 0 }, { 0, 3 }, { 3, 0 }, { 3, 4 } };
    struct bipartite     graph = { 0 };
    struct cover         cover;
    int                  right = 1;

    for (int i = 0; i < 4; i++) {
        for (int kind = GR_COVER_HYBRID; kind <= GR_COVER_POST; kind++) {
            graph = (struct bipartite){ .n_targets = size[i][0], .n_sources = size[i][1] };
            bipartite_finish(&graph);
            cover_init(&cover, &graph.view, (enum gr_cover_kind)kind);
            right = right && cover.size == 0 && fault_of_cover(&graph.view, &cover) == NULL;
            cover_fini(&cover);
            bipartite_fini(&graph);
        }
    }
    ok(right, "the cover of a graph without edges is empty");
    bipartite_add(&graph, 0, 0);
    bipartite_finish(&graph);
    cover_init(&cover, &graph.view, GR_COVER_HYBRID);
    ok(cover.size == 1 && cover.source_in[0] == 1 && cover.target_in[0] == 0,
       "a graph with one edge is covered by its source");
    cover_fini(&cover);
    bipartite_fini(&graph);
}

/* The cover must depend neither on the order of edges nor on the numbers of vertices. */
static void test_shuffled(void)
{
    struct sample sample = { 5 };
    int           equal = 1, graphs = 60;

    for (int i = 0; i < graphs; i++) {
        struct bipartite graph, shuffled;
        struct cover     cover, other;
        int32_t         *new_target, *new_source;

        bipartite_random(&graph, &sample, 300 + 10 * i, 1200 - 10 * i, 700 + 60 * i, i % 4);
        bipartite_shuffle(&shuffled, &graph, &sample, &new_target, &new_source);
        cover_init(&cover, &graph.view, GR_COVER_HYBRID);
        cover_init(&other, &shuffled.view, GR_COVER_HYBRID);
        equal = equal && cover.rc == GRAFT_OK && cover.size == other.size && is_minimum(&graph.view, cover.size);
        for (int64_t t = 0; t < graph.n_targets; t++)
            equal = equal && cover.target_in[t] == other.target_in[new_target[t]];
        for (int64_t s = 0; s < graph.n_sources; s++)
            equal = equal && cover.source_in[s] == other.source_in[new_source[s]];
        free(new_target);
        free(new_source);
        cover_fini(&cover);
        cover_fini(&other);
        bipartite_fini(&graph);
        bipartite_fini(&shuffled);
    }
    ok(equal, "%d graphs with edges and vertices in another order have the same cover", graphs);
}

/* Check the cover of a graph of known shape, and free the graph. */
static void check_shape(const char *name, struct bipartite *graph, int64_t expected)
{
    struct sample    sample = { 17 };
    struct bipartite shuffled;
    int32_t         *new_target, *new_source;

    ok(is_minimum(&graph->view, expected), "%s, %" PRId64 " edges: a minimum cover", name, graph->count);
    bipartite_shuffle(&shuffled, graph, &sample, &new_target, &new_source);
    ok(is_minimum(&shuffled.view, expected), "%s shuffled: the cover is a minimum cover", name);
    free(new_target);
    free(new_source);
    bipartite_fini(&shuffled);
    bipartite_fini(graph);
}

static void test_cover_shapes(void)
{
    struct bipartite graph = { 0 };
    struct sample    sample = { 3 };

    bipartite_path(&graph, 1000000, 0);
    check_shape("a path of an even number of vertices", &graph, 500000);
    bipartite_path(&graph, 99999, 0);
    check_shape("a path of an odd number of vertices", &graph, 49999);
    bipartite_path(&graph, 200000, 1);
    check_shape("a cycle", &graph, 100000);
    for (int64_t i = 0; i < 200000; i++) bipartite_add(&graph, i, 0);
    bipartite_finish(&graph);
    check_shape("a star about a source", &graph, 1);
    for (int64_t i = 0; i < 200000; i++) bipartite_add(&graph, 0, i);
    bipartite_finish(&graph);
    check_shape("a star about a target", &graph, 1);
    for (int64_t i = 0; i < 700 * 500; i++) bipartite_add(&graph, i / 500, i % 500);
    bipartite_finish(&graph);
    check_shape("a complete graph of 700 and 500", &graph, 500);
    for (int64_t i = 0; i < 600 * 600; i++)
        if (i % 600 <= i / 600) bipartite_add(&graph, i / 600, i % 600);
    bipartite_finish(&graph);
    check_shape("a triangle, which has one matching", &graph, 600);
    bipartite_board(&graph, 200);
    check_shape("a board of 200 x 200", &graph, 20000);
    bipartite_random(&graph, &sample, 50000, 50000, 400000, 3);
    check_shape("a graph with hubs", &graph, -1);
    bipartite_random(&graph, &sample, 100000, 100000, 130000, 0);
    check_shape("a graph of few edges", &graph, -1);
    for (int64_t i = 0; i < 300000; i++) bipartite_add(&graph, i / 3, (i / 3 + sample_below(&sample, 4)) % 100000);
    bipartite_finish(&graph);
    check_shape("a band", &graph, -1);
}

/* -- memory, threads, stack --------------------------------------------------------------------------------------- */

static int64_t peak_bytes;

static void *peak_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    void *memory = strict_allocate(self, bytes, alignment);

    if (host.live_bytes > peak_bytes) peak_bytes = host.live_bytes;
    return memory;
}

/* The bytes at the peak of a call; `around` receives those of the cut and the outputs. */
static int64_t cover_measure(const struct oracle_bipartite *cut, int64_t *around)
{
    struct cover cover;

    peak_bytes = 0;
    context.host.allocate = peak_allocate;
    cover_init(&cover, cut, GR_COVER_HYBRID);
    context.host.allocate = strict_allocate;
    cover_fini(&cover);
    *around = 4 * cut->row_ptr[cut->n_targets] + 9 * cut->n_targets + cut->n_sources;
    return peak_bytes;
}

static void test_cover_memory(void)
{
    struct sample    sample = { 23 };
    int              bounded = 1;
    int64_t          around = 0, peak;
    struct bipartite graph = { 0 };

    for (int64_t i = 0; i < 100000; i++) bipartite_add(&graph, i, i);
    bipartite_finish(&graph);
    peak = cover_measure(&graph.view, &around);
    ok(peak > 0 && peak + around <= 54 * graph.count + 2048,
       "edges apart: %.1f bytes per edge with the cut and the outputs", (double)(peak + around) / (double)graph.count);
    bipartite_fini(&graph);
    for (int i = 0; i < 40; i++) {
        const int64_t nt = 1 + sample_below(&sample, 2000), ns = 1 + sample_below(&sample, 2000);
        const int64_t greedy = 8 * nt + 8 * ns, search = 20 * ns;

        bipartite_random(&graph, &sample, nt, ns, sample_below(&sample, 4000), i % 3);
        peak = cover_measure(&graph.view, &around);
        bounded = bounded && peak <= 4 * graph.count + 4 * nt + 12 * ns + (greedy > search ? greedy : search) + 2048;
        bipartite_fini(&graph);
    }
    ok(bounded, "the memory of a cover is within the formula of the header");
}

static void test_cover_no_memory(void)
{
    struct sample    sample = { 29 };
    struct bipartite graph;
    int              clean = 1;
    int64_t          calls = 0;

    bipartite_random(&graph, &sample, 200, 300, 500, 1);
    for (;; calls++) {
        struct cover cover;
        int64_t      touched = 0;

        strict_host_fail(&host, calls, 0);
        cover_init(&cover, &graph.view, GR_COVER_HYBRID);
        for (int64_t s = 0; s < graph.n_sources; s++) touched += cover.source_in[s] != 7;
        for (int64_t t = 0; t < graph.n_targets; t++) touched += cover.target_in[t] != 7;
        cover_fini(&cover);
        if (host.failed == 0) break;
        clean = clean && cover.rc == GRAFT_ERR_NOMEM && touched == 0 && cover.size == 7 && host.live_blocks == 0;
    }
    strict_host_fail(&host, -1, 0);
    ok(clean && calls > 0, "each of %" PRId64 " allocations fails in turn: out of memory, outputs as they were", calls);
    bipartite_fini(&graph);
}

static void test_cover_threads(void)
{
    enum { PAIRS = 64 };
    struct sample    sample = { 31 };
    struct bipartite graph[PAIRS];
    struct cover     alone[PAIRS], together[PAIRS];
    int              equal = 1;

    for (int i = 0; i < PAIRS; i++) {
        bipartite_random(&graph[i], &sample, 500 + 40 * i, 3000 - 40 * i, 4000, i % 3);
        cover_init(&alone[i], &graph[i].view, GR_COVER_HYBRID);
    }
#pragma omp parallel for num_threads(4) schedule(dynamic, 1)
    for (int i = 0; i < PAIRS; i++) cover_init(&together[i], &graph[i].view, GR_COVER_HYBRID);
    for (int i = 0; i < PAIRS; i++) {
        equal = equal && is_equal(&graph[i].view, &alone[i], &together[i]);
        cover_fini(&alone[i]);
        cover_fini(&together[i]);
        bipartite_fini(&graph[i]);
    }
    ok(equal, "four threads that each make a cover get the same covers");
}

static void *cover_on_thread(void *arg)
{
    struct bipartite *graph = arg;
    struct cover      cover;

    cover_init(&cover, &graph->view, GR_COVER_HYBRID);
    graph->count = cover.size;
    cover_fini(&cover);
    return NULL;
}

/* A board has the longest augmenting paths. A recursion along them would need megabytes of stack. */
static void test_stack(void)
{
    struct sample    sample = { 37 };
    struct bipartite graph, shuffled;
    int32_t         *new_target, *new_source;
    pthread_attr_t   attributes;
    pthread_t        thread;
    int              failed;

    bipartite_board(&graph, 300);
    bipartite_shuffle(&shuffled, &graph, &sample, &new_target, &new_source);
    failed = pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, 256 << 10) != 0 ||
             pthread_create(&thread, &attributes, cover_on_thread, &shuffled) != 0 || pthread_join(thread, NULL) != 0;
    ok(!failed && shuffled.count == 45000, "a board of 300 x 300 is covered on a stack of 256 KiB");
    pthread_attr_destroy(&attributes);
    free(new_target);
    free(new_source);
    bipartite_fini(&graph);
    bipartite_fini(&shuffled);
}

int main(void)
{
    strict_host_init(&host);
    context.host = host.table;
    test_small();
    test_modes();
    test_by_oracle("all that were tried", 1500, 12);
    test_by_oracle("the oracle", 300, 45);
    test_shuffled();
    test_cover_shapes();
    test_cover_memory();
    test_cover_no_memory();
    test_cover_threads();
    test_stack();
    ok(host.fault == NULL && host.live_blocks == 0 && host.log_lines == 0, "all memory of covers is freed (%s)",
       host.fault != NULL ? host.fault : "nothing amiss");
    return done();
}
