/* Checks distributed products against plain loops over the whole graph: results, numbers of rows that are sent, memory,
 * and progress() while messages travel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/spread.h"
#include "harness/tap.h"
#include "oracle/bipartite.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { WIDEST = 128, COVERS = 3 };

static const char *const partitions[] = { "given", "block", "hash", "stream", "owners" };
static const char *const covers[] = { "hybrid", "pre", "post" };
static const char *const slicings[] = { "even", "all on rank 0", "all on the last", "on every other" };

/* A graph with matrices, made from a seed. */
struct world {
    struct sample_csr graph, transpose;
    int64_t           n, width;
    graft_dtype       dtype;
    int64_t           element;
    char             *x, *scale, *before;
    int32_t          *owner;
};

static char *random_array(struct sample *sample, const struct world *w, int64_t count, int exact)
{
    char *array = oracle_new(count + 1, (size_t)w->element);

    for (int64_t i = 0; i < count; i++)
        sample_put(array, w->dtype, i, exact ? sample_exact(sample, 8, 4) : sample_real(sample, -1, 1));
    return array;
}

static void aggregate_world_init(struct world *w, struct sample *sample, int64_t n, graft_dtype dtype, int weighted,
                                 int exact)
{
    const struct sample_csr_shape shape = {
        n, n, sample_below(sample, 2) ? GRAFT_I32 : GRAFT_I64, weighted ? dtype : 0, 1, exact
    };

    *w = (struct world){ .n = n, .width = WIDEST, .dtype = dtype, .element = dtype == GRAFT_F64 ? 8 : 4 };
    if (n > 0) {
        sample_csr_init_shape(&w->graph, sample, &shape);
        sample_csr_transpose(&w->transpose, &w->graph);
    } else {
        w->graph.row_ptr = oracle_new(1, sizeof *w->graph.row_ptr);
        w->graph.csr = w->transpose.csr = (graft_csr){
            .size = sizeof(graft_csr), .index_type = GRAFT_I32, .row_ptr = w->graph.row_ptr, .col_idx = w->x
        };
    }
    w->x = random_array(sample, w, n * WIDEST, exact);
    w->before = random_array(sample, w, n * WIDEST, exact);
    w->scale = random_array(sample, w, n, 0);
    w->owner = oracle_new(n + 1, sizeof *w->owner);
}

static void aggregate_world_fini(struct world *w)
{
    sample_csr_fini(&w->graph);
    sample_csr_fini(&w->transpose);
    free(w->x);
    free(w->before);
    free(w->scale);
    free(w->owner);
}

static void add_pass(struct spread *s, const struct world *w, graft_semiring semiring, uint32_t flags, int64_t width,
                     int scaled)
{
    const struct spread_pass pass = { semiring, flags, width, scaled,
                                      oracle_new(w->n * width + 1, (size_t)w->element) };

    memcpy(pass.out, w->before, (size_t)(w->n * width * w->element));
    s->pass[s->n_passes++] = pass;
}

static void spread_fini(struct spread *s)
{
    for (int i = 0; i < s->n_passes; i++) free(s->pass[i].out);
}

static struct spread aggregate_spread_of(const struct world *w)
{
    return (struct spread){ .graph = &w->graph.csr,
                            .dtype = w->dtype,
                            .x = w->x,
                            .x_width = w->width,
                            .scale = w->scale,
                            .partition = "given",
                            .cover = "hybrid",
                            .threads = "1",
                            .reserved = w->width };
}

/* The largest error of a pass, in units of the sum of magnitudes behind each element. */
static double aggregate_error_of(const struct world *w, const struct spread_pass *pass)
{
    const int         transposed = (pass->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    const graft_csr  *a = transposed ? &w->transpose.csr : &w->graph.csr;
    const graft_dense b = { sizeof b, w->dtype, w->n, pass->width, w->width, w->x };
    const graft_dense c = { sizeof c, w->dtype, w->n, pass->width, pass->width, NULL };
    graft_dense       before = c;
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    double           *want = oracle_new(w->n * pass->width + 1, sizeof *want), worst = 0;
    double           *bound = oracle_new(w->n * pass->width + 1, sizeof *bound);

    before.data = w->before;
    args.semiring = pass->semiring;
    args.flags = pass->flags & GRAFT_AGGREGATE_ACCUMULATE ? GRAFT_MXM_ACCUMULATE : 0;
    args.b = &b;
    args.c = &before;
    args.row_scale = pass->scaled ? w->scale : NULL;
    oracle_mxm(a, &args, want, NULL, bound);
    for (int64_t i = 0; i < w->n * pass->width; i++) {
        const double found = sample_at(pass->out, w->dtype, i), off = fabs(found - want[i]);

        if (off > 0 && !(off <= worst * bound[i])) worst = bound[i] > 0 ? off / bound[i] : INFINITY;
        if (isnan(found) != isnan(want[i])) worst = INFINITY;
    }
    free(want);
    free(bound);
    return worst;
}

/* The maximum matching of the cut entries from rank q to rank p, and the numbers of their sources and targets. */
struct pair {
    int64_t edges, matching, sources, targets;
};

static struct pair pair_of(const struct world *w, const int32_t *owner, int32_t q, int32_t p)
{
    struct bipartite cut = { .n_targets = w->n, .n_sources = w->n };
    uint8_t         *seen = oracle_new(w->n + 1, 1);
    struct pair      pair = { 0 };

    for (int64_t v = 0; v < w->n; v++) {
        int64_t before = pair.edges;

        for (int64_t e = w->graph.csr.row_ptr[v]; e < w->graph.csr.row_ptr[v + 1]; e++) {
            const int64_t u = gr_csr_column(&w->graph.csr, e);

            if (owner[v] != p || owner[u] != q) continue;
            bipartite_add(&cut, v, u);
            pair.edges++;
            pair.sources += !seen[u];
            seen[u] = 1;
        }
        pair.targets += pair.edges > before;
    }
    bipartite_finish(&cut);
    pair.matching = oracle_matching_size(&cut.view, -1);
    bipartite_fini(&cut);
    free(seen);
    return pair;
}

/* Check that the right number of rows is sent and reported. The return value is NULL or an error in words. */
static const char *check_rows(const struct world *w, const struct spread *s, int32_t n_ranks)
{
    struct pair all = { 0 };
    int64_t     rows = 0, messages = 0;

    for (int32_t q = 0; q < n_ranks; q++) {
        for (int32_t p = 0; p < n_ranks; p++) {
            const struct pair pair = p == q ? (struct pair){ 0 } : pair_of(w, s->found, q, p);
            int64_t           want = s->cover[0] == 'h' ? pair.matching : pair.sources;

            if (s->cover[1] == 'r') want = pair.targets;
            if (s->rows[q][p] != want || want > pair.sources + pair.targets)
                return "a pair of ranks sends another number of rows than the cover has";
            rows += want;
            messages += want > 0;
            all.edges += pair.edges;
            all.sources += pair.sources;
            all.targets += pair.targets;
        }
    }
    if (s->graph_info[n_ranks].n_cut != all.edges || s->graph_info[n_ranks].n_halo != all.sources)
        return "info of the graph counts another cut";
    if (s->plan_info[n_ranks].n_cut != all.edges || s->plan_info[n_ranks].halo_rows != rows ||
        s->plan_info[n_ranks].halo_rows_sent != rows || s->plan_info[n_ranks].messages != messages)
        return "info of the plan counts other rows";
    if (s->plan_info[n_ranks].halo_rows_if_post != all.sources || s->plan_info[n_ranks].halo_rows_if_pre != all.targets)
        return "info of the plan has other rows by post and pre";
    if (s->plan_info[0].passes != s->n_passes || !(s->plan_info[0].wait_seconds >= 0) ||
        !(s->plan_info[0].exchange_seconds >= s->plan_info[0].wait_seconds) ||
        !(s->plan_info[0].overlap_fraction >= 0 && s->plan_info[0].overlap_fraction <= 1))
        return "info of the plan tells another number of passes, or times that cannot be";
    if (s->graph_info[n_ranks].n_owned != w->n || s->graph_info[n_ranks].n_slice != w->n ||
        s->graph_info[n_ranks].n_edges != (w->n > 0 ? w->graph.csr.row_ptr[w->n] : 0))
        return "info of the graph counts other vertices or entries";
    return NULL;
}

/* Run over ranks. The return value is NULL or an error in words. */
static const char *run_spread(struct spread *s, int32_t n_ranks)
{
    static struct ranks ranks;

    ranks_init(&ranks, n_ranks, 30, spread_body, s);
    ranks_run(&ranks);
    return ranks_fini_well(&ranks);
}

/* Add passes of all semirings and flags, in random widths. */
static void add_passes(struct spread *s, const struct world *w, struct sample *sample)
{
    static const int64_t widths[] = { 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, WIDEST };

    for (graft_semiring semiring = GRAFT_PLUS_TIMES; semiring <= GRAFT_MIN_SECOND; semiring++) {
        const int sum = semiring <= GRAFT_PLUS_SECOND;

        for (uint32_t flags = 0; flags < 4; flags++) {
            const int64_t width = widths[sample_below(sample, sizeof widths / sizeof *widths)];

            if ((!sum && flags & GRAFT_AGGREGATE_TRANSPOSE) || s->n_passes == PASSES_MOST) continue;
            add_pass(s, w, semiring, flags, width, 0);
        }
    }
}

/* One graph over some ranks, with numbers that cause no rounding errors, so that only one result is right. */
static const char *aggregate_check_case(struct sample *sample, int32_t n_ranks, int64_t n, char name[256])
{
    const graft_dtype dtype = sample_below(sample, 3) == 0 ? GRAFT_F64 : GRAFT_F32;
    const int         halves = dtype == GRAFT_F32 && sample_below(sample, 3) == 0;
    const int         weighted = (int)sample_below(sample, 2), partition = (int)sample_below(sample, 5);
    const int         cover = (int)sample_below(sample, 4) % COVERS;
    /* This rank owns nothing if owners are given. */
    const int32_t     spared = (int32_t)sample_below(sample, n_ranks);
    static char       fault[300];
    struct world      w;
    struct spread     s;
    const char       *words;

    aggregate_world_init(&w, sample, n, dtype, weighted, 1);
    for (int64_t v = 0; v < n; v++) {
        w.owner[v] = (int32_t)sample_below(sample, n_ranks);
        if (w.owner[v] == spared) w.owner[v] = 0;
    }
    s = aggregate_spread_of(&w);
    s.halves = halves;
    s.slicing = (enum slicing)sample_below(sample, SLICINGS);
    s.partition = partition < 4 ? partitions[partition] : "given";
    s.owner = partition == 4 ? w.owner : NULL;
    s.cover = covers[cover];
    s.reserved = sample_below(sample, 2) ? w.width : 0;
    add_passes(&s, &w, sample);
    snprintf(name, 256, "%d ranks, %lld vertices, %s, slices %s, partition %s, cover %s, %s", n_ranks, (long long)n,
             dtype == GRAFT_F64 ? "double"
             : halves           ? "bfloat16"
                                : "float",
             slicings[s.slicing], partitions[partition], s.cover, weighted ? "weighted" : "unweighted");
    words = run_spread(&s, n_ranks);
    if (words == NULL) words = check_rows(&w, &s, n_ranks);
    for (int i = 0; i < s.n_passes && words == NULL; i++) {
        const double error = aggregate_error_of(&w, &s.pass[i]);

        if (error == 0) continue;
        snprintf(fault, sizeof fault, "semiring %d, flags %u, width %lld: error %g", s.pass[i].semiring,
                 s.pass[i].flags, (long long)s.pass[i].width, error);
        words = fault;
    }
    spread_fini(&s);
    aggregate_world_fini(&w);
    return words;
}

static void test_cases(int32_t n_ranks, int count)
{
    static const int64_t sizes[] = { 0, 1, 2, 3, 5, 17, 40, 64, 97 };
    struct sample        sample = { 100 + (uint64_t)n_ranks };
    int                  failed = 0;
    char                 name[256], first[256] = "", fault[700] = "";

    for (int i = 0; i < count; i++) {
        const int64_t n = sizes[sample_below(&sample, sizeof sizes / sizeof *sizes)];
        const char   *words = aggregate_check_case(&sample, n_ranks, n, name);

        if (words == NULL || failed++ > 0) continue;
        snprintf(first, sizeof first, "%s", name);
        snprintf(fault, sizeof fault, "%s", words);
    }
    if (!ok(failed == 0, "%d graphs over %d ranks: all passes are exact, and as few rows are sent as the cover has",
            count, n_ranks))
        diag("%d fail, the first: %s: %s", failed, first, fault);
}

/* Real numbers, means, and threads: results must be right within rounding, and bitwise identical for any number of
 * threads. */
static void test_real(int32_t n_ranks, graft_dtype dtype)
{
    static const char *const threads[] = { "1", "2", "3" };
    const double             bound = dtype == GRAFT_F64 ? 1e-14 : 1e-6;
    struct sample            sample = { 7 };
    struct world             w;
    struct spread            s[3];
    const char              *words = NULL;
    double                   worst = 0;
    int                      differ = 0;

    aggregate_world_init(&w, &sample, 700, dtype, 1, 0);
    for (int t = 0; t < 3 && words == NULL; t++) {
        s[t] = aggregate_spread_of(&w);
        s[t].partition = "hash";
        s[t].threads = threads[t];
        for (uint32_t flags = 0; flags < 4; flags++) {
            add_pass(&s[t], &w, GRAFT_PLUS_TIMES, flags, WIDEST, 1);
            add_pass(&s[t], &w, GRAFT_PLUS_SECOND, flags, 33, 1);
        }
        add_pass(&s[t], &w, GRAFT_MAX_TIMES, 0, 33, 0);
        words = run_spread(&s[t], n_ranks);
        for (int i = 0; i < s[t].n_passes; i++) {
            const double error = aggregate_error_of(&w, &s[t].pass[i]);

            if (!(error <= worst)) worst = error;
            differ += memcmp(s[t].pass[i].out, s[0].pass[i].out, (size_t)(w.n * s[t].pass[i].width * w.element)) != 0;
        }
    }
    ok(words == NULL && worst <= bound, "%d ranks, %s: errors are %.1e of the sum of magnitudes %s", n_ranks,
       dtype == GRAFT_F64 ? "double" : "float", worst, words != NULL ? words : "");
    ok(differ == 0, "passes are bitwise identical with 1, 2 and 3 threads");
    for (int t = 0; t < 3; t++) spread_fini(&s[t]);
    aggregate_world_fini(&w);
}

/* One entry in each row, each in a column of its own, so that cut entries have as many ends as possible. */
static void make_thin(struct world *w)
{
    for (int64_t v = 0; v < w->n; v++) {
        w->graph.row_ptr[v + 1] = v + 1;
        sample_put(w->graph.col_idx, w->graph.csr.index_type, v, (double)((v + w->n / 2) % w->n));
    }
}

/* Compare the memory that all ranks need while a plan is made with the documented bound per cut edge and vertex. */
static void test_aggregate_memory(int32_t n_ranks, int weighted, int thin)
{
    struct sample sample = { 9 };
    struct world  w;

    aggregate_world_init(&w, &sample, 4000, GRAFT_F32, weighted, 1);
    if (thin) make_thin(&w);
    for (int i = 0; i < COVERS; i++) {
        struct spread s = aggregate_spread_of(&w);
        const char   *words;
        int64_t       limit, cut;

        s.partition = "hash";
        s.cover = covers[i];
        s.forward_only = s.weighs = 1;
        s.reserved = 0;
        words = run_spread(&s, n_ranks);
        cut = s.plan_info[n_ranks].n_cut;
        limit = 64 * cut + 24 * w.n + n_ranks * (n_ranks * 512 + 8192);
        ok(words == NULL && s.plan_peak <= limit && s.plan_peak > s.plan_stays,
           "%d ranks, %s: a plan needs %.1f bytes for each of %lld cut entries while it is made, "
           "and %.1f afterwards %s",
           n_ranks, s.cover, (double)s.plan_peak / (double)cut, (long long)cut, (double)s.plan_stays / (double)cut,
           words != NULL ? words : "");
        if (n_ranks > 2) continue; /* otherwise messages that the transport keeps would count */
        ok(s.plan_stays >= s.plan_info[n_ranks].bytes && s.plan_stays < s.plan_info[n_ranks].bytes * 11 / 10 + 65536,
           "info() of a plan reports %lld of %lld bytes that it keeps", (long long)s.plan_info[n_ranks].bytes,
           (long long)s.plan_stays);
    }
    aggregate_world_fini(&w);
}

/* Call progress() between begin() and end(), also with rows of the last epoch. */
static void test_aggregate_progress(int32_t n_ranks, const char *staleness)
{
    const char *const settings[] = { "halo.staleness", staleness, NULL };
    struct sample     sample = { 10 };
    struct world      w;
    struct spread     s;
    const char       *words;
    double            worst = 0;

    aggregate_world_init(&w, &sample, 97, GRAFT_F32, 1, 1);
    s = aggregate_spread_of(&w);
    s.partition = "hash";
    s.settings = settings;
    s.progresses = 1;
    for (int i = 0; i < 12; i++) add_pass(&s, &w, GRAFT_PLUS_TIMES, 0, 33, 0);
    words = run_spread(&s, n_ranks);
    for (int i = 0; i < 12; i++) worst = fmax(worst, aggregate_error_of(&w, &s.pass[i]));
    ok(words == NULL && worst == 0, "%d ranks, staleness %s: progress() alone receives all messages %s", n_ranks,
       staleness, words != NULL ? words : "");
    spread_fini(&s);
    aggregate_world_fini(&w);
}

int main(void)
{
    alarm(600); /* it is slow under a sanitizer */
    test_cases(1, repeats(20));
    test_cases(2, repeats(60));
    test_cases(3, repeats(60));
    test_cases(4, repeats(60));
    test_cases(7, repeats(60));
    test_real(1, GRAFT_F32);
    test_real(4, GRAFT_F32);
    test_real(3, GRAFT_F64);
    test_aggregate_progress(1, "0");
    test_aggregate_progress(2, "0");
    test_aggregate_progress(4, "0");
    test_aggregate_progress(4, "1");
    test_aggregate_memory(2, 0, 0);
    test_aggregate_memory(2, 1, 1);
    test_aggregate_memory(8, 0, 0);
    return done();
}
