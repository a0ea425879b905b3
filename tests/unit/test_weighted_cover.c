/* Covers of least price: small ones against all that there are, larger ones against an exact solver (glpsol, of GLPK)
 * and, where one price is that of all, against covers of fewest members; and what rows cost, against the definition.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../abi/strict_host.h"
#include "../oracle/bipartite.h"
#include "../oracle/sample.h"
#include "../tap.h"

#include "spmm/plan.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

static struct strict_host host;
static graft_context      context;

/* -- covers ------------------------------------------------------------------------------------------------------- */

struct cover {
    int32_t *source_price, *target_price;
    uint8_t *source_in, *target_in;
    int64_t  size;
    int32_t  rc;
};

static struct oracle_prices prices_of(const struct cover *cover)
{
    return (struct oracle_prices){ cover->source_price, cover->target_price };
}

/* Prices are 1 to `most`. */
static void cover_init(struct cover *cover, const struct oracle_bipartite *graph, struct sample *sample, int64_t most)
{
    *cover = (struct cover){ oracle_new(graph->n_sources, 4),
                             oracle_new(graph->n_targets, 4),
                             oracle_new(graph->n_sources, 1),
                             oracle_new(graph->n_targets, 1),
                             -1,
                             0 };
    for (int64_t s = 0; s < graph->n_sources; s++) cover->source_price[s] = 1 + (int32_t)sample_below(sample, most);
    for (int64_t t = 0; t < graph->n_targets; t++) cover->target_price[t] = 1 + (int32_t)sample_below(sample, most);
}

static void cover_fini(struct cover *cover)
{
    free(cover->source_price);
    free(cover->target_price);
    free(cover->source_in);
    free(cover->target_in);
}

/* Find it, of a copy of the prices. */
static void find(struct cover *cover, const struct oracle_bipartite *graph, enum gr_cover_kind kind)
{
    int32_t      *source = oracle_new(graph->n_sources, 4), *target = oracle_new(graph->n_targets, 4);
    struct gr_cut cut = { graph->n_targets, graph->n_sources, graph->row_ptr, graph->source, source, target };
    graft_error   error = GRAFT_INIT(graft_error);

    memcpy(source, cover->source_price, (size_t)graph->n_sources * 4);
    memcpy(target, cover->target_price, (size_t)graph->n_targets * 4);
    cover->rc = gr_cover_find(&context, &cut, kind, cover->source_in, cover->target_in, &cover->size, &error);
    free(source);
    free(target);
}

/* What is wrong with it, whatever it costs; NULL if nothing is. */
static const char *fault_of(const struct cover *cover, const struct oracle_bipartite *graph)
{
    uint8_t    *has = oracle_new(graph->n_sources, 1);
    const char *fault = cover->rc == GRAFT_OK ? NULL : "it failed";
    int64_t     size = 0;

    for (int64_t t = 0; t < graph->n_targets; t++) {
        int serves = 0;

        for (int64_t e = graph->row_ptr[t]; e < graph->row_ptr[t + 1]; e++) {
            has[graph->source[e]] = 1;
            serves |= !cover->source_in[graph->source[e]];
        }
        if (cover->target_in[t] != serves) fault = "a target is in it and serves no edge, or the other way round";
        size += cover->target_in[t];
    }
    for (int64_t s = 0; s < graph->n_sources; s++) {
        if (cover->source_in[s] > has[s]) fault = "a source is in it and has no edge";
        size += cover->source_in[s];
    }
    if (size != cover->size) fault = "its size is not what is said";
    free(has);
    return fault;
}

static int is_equal(const struct cover *a, const struct cover *b, const struct oracle_bipartite *graph)
{
    return memcmp(a->source_in, b->source_in, (size_t)graph->n_sources) == 0 &&
           memcmp(a->target_in, b->target_in, (size_t)graph->n_targets) == 0;
}

static void test_by_trial(int64_t most)
{
    struct sample sample = { 1 + (uint64_t)most };
    int64_t       wrong = 0, gains = 0, graphs = 1500;
    const char   *words = "";

    for (int64_t i = 0; i < graphs; i++) {
        const int64_t        nt = sample_below(&sample, 13), ns = sample_below(&sample, 13);
        struct bipartite     graph = { 0 };
        struct oracle_prices prices;
        struct cover         cover, fewest;
        uint8_t              source_in[12], target_in[12];
        int                  several = 0;
        int64_t              least;
        const char          *fault;

        bipartite_random(&graph, &sample, nt, ns, sample_below(&sample, 1 + 12 * (1 + i % 4)), (int)(i % 3));
        cover_init(&cover, &graph.view, &sample, most);
        find(&cover, &graph.view, GR_COVER_WEIGHTED);
        fault = fault_of(&cover, &graph.view);
        prices = prices_of(&cover);
        least = oracle_cover_by_trial(&graph.view, &prices, source_in, target_in, &several);
        if (fault == NULL && memcmp(source_in, cover.source_in, (size_t)ns) != 0) fault = "other sources";
        if (fault == NULL && memcmp(target_in, cover.target_in, (size_t)nt) != 0) fault = "other targets";
        if (fault == NULL && several) fault = "the oracle finds several";
        wrong += fault != NULL;
        if (fault != NULL) words = fault;
        fewest = cover;
        fewest.source_in = oracle_new(ns, 1);
        fewest.target_in = oracle_new(nt, 1);
        find(&fewest, &graph.view, GR_COVER_HYBRID);
        gains += oracle_cover_price(&graph.view, &prices, fewest.source_in, fewest.target_in) > least;
        free(fewest.source_in);
        free(fewest.target_in);
        cover_fini(&cover);
        bipartite_fini(&graph);
    }
    ok(wrong == 0 && (gains > 100 || most == 1),
       "%" PRId64 " graphs with prices up to %" PRId64
       ": the cheapest of all covers, with the most sources; in %" PRId64 " the one of fewest members costs more %s",
       graphs, most, gains, words);
}

/* With one price for all it is the cover of fewest members. Ends the graph. */
static void check_equal(const char *name, struct bipartite *graph, int32_t price)
{
    struct sample sample = { 3 };
    struct cover  cover, fewest;

    cover_init(&cover, &graph->view, &sample, 1);
    cover_init(&fewest, &graph->view, &sample, 1);
    for (int64_t s = 0; s < graph->n_sources; s++) cover.source_price[s] = price;
    for (int64_t t = 0; t < graph->n_targets; t++) cover.target_price[t] = price;
    find(&cover, &graph->view, GR_COVER_WEIGHTED);
    find(&fewest, &graph->view, GR_COVER_HYBRID);
    ok(fault_of(&cover, &graph->view) == NULL && cover.size == fewest.size && cover.size > 0 &&
           is_equal(&cover, &fewest, &graph->view),
       "%s, one price: the cover of fewest members, %" PRId64, name, cover.size);
    cover_fini(&cover);
    cover_fini(&fewest);
    bipartite_fini(graph);
}

static void test_equal(void)
{
    struct sample    sample = { 5 };
    struct bipartite graph = { 0 };

    bipartite_path(&graph, 1000000, 0);
    check_equal("a path", &graph, 1);
    bipartite_path(&graph, 99999, 0);
    check_equal("a path of an odd number of vertices", &graph, 1 << 30);
    bipartite_board(&graph, 200);
    check_equal("a board of 200 x 200", &graph, 7);
    bipartite_torn_board(&graph, &sample, 200);
    check_equal("a torn board", &graph, 1 << 30);
    for (int64_t i = 0; i < 600 * 600; i++)
        if (i % 600 <= i / 600) bipartite_add(&graph, i / 600, i % 600);
    bipartite_finish(&graph);
    check_equal("a triangle, which has one matching", &graph, 1000);
    bipartite_random(&graph, &sample, 50000, 50000, 400000, 3);
    check_equal("a graph with hubs", &graph, 3);
    bipartite_random(&graph, &sample, 100000, 100000, 130000, 0);
    check_equal("a graph of few edges", &graph, 1);
}

/* The covers of 60 graphs depend neither on the order of edges nor on numbers. */
static void test_shuffled(void)
{
    struct sample sample = { 7 };
    int           equal = 1;

    for (int i = 0; i < 60; i++) {
        struct bipartite graph, shuffled;
        struct cover     cover, other;
        int32_t         *new_target, *new_source;

        bipartite_random(&graph, &sample, 300 + 10 * i, 1200 - 10 * i, 700 + 60 * i, i % 4);
        bipartite_shuffle(&shuffled, &graph, &sample, &new_target, &new_source);
        cover_init(&cover, &graph.view, &sample, 1 + i % 9);
        cover_init(&other, &shuffled.view, &sample, 1);
        for (int64_t t = 0; t < graph.n_targets; t++) other.target_price[new_target[t]] = cover.target_price[t];
        for (int64_t s = 0; s < graph.n_sources; s++) other.source_price[new_source[s]] = cover.source_price[s];
        find(&cover, &graph.view, GR_COVER_WEIGHTED);
        find(&other, &shuffled.view, GR_COVER_WEIGHTED);
        equal = equal && fault_of(&cover, &graph.view) == NULL && cover.size == other.size;
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
    ok(equal, "60 graphs in another order and under other numbers: the same cover");
}

/* The price of the cheapest cover as glpsol has it, of the linear program, whose corners are covers (Egervary);
 * negative if it did not find one. */
static double solve(const struct cover *cover, const struct oracle_bipartite *graph)
{
    char   name[] = "/tmp/graft-cover-XXXXXX", command[200], line[200];
    double found = -1;
    FILE  *file = fdopen(mkstemp(name), "w");

    fprintf(file, "Minimize\n obj: 0 one");
    for (int64_t s = 0; s < graph->n_sources; s++) fprintf(file, "\n + %d s%" PRId64, cover->source_price[s], s);
    for (int64_t t = 0; t < graph->n_targets; t++) fprintf(file, "\n + %d t%" PRId64, cover->target_price[t], t);
    fprintf(file, "\nSubject To\n");
    for (int64_t t = 0; t < graph->n_targets; t++)
        for (int64_t e = graph->row_ptr[t]; e < graph->row_ptr[t + 1]; e++)
            fprintf(file, " s%d + t%" PRId64 " >= 1\n", graph->source[e], t);
    fprintf(file, "End\n");
    fclose(file);
    snprintf(command, sizeof command, "glpsol --lp %s --tmlim 20 -o %s.out >%s.log 2>&1", name, name, name);
    if (system(command) == 0) {
        int optimal = 0;

        snprintf(command, sizeof command, "%s.out", name);
        file = fopen(command, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            optimal |= strstr(line, "OPTIMAL") != NULL;
            if (optimal && strncmp(line, "Objective:", 10) == 0) found = atof(strchr(line, '=') + 1);
        }
        if (file != NULL) fclose(file);
    }
    snprintf(command, sizeof command, "rm -f %s %s.out %s.log", name, name, name);
    if (system(command) != 0) diag("%s is left", name);
    return found;
}

static void test_solver(void)
{
    struct sample sample = { 11 };
    int           solved = 0, right = 0;

    if (system("glpsol --version >/dev/null 2>&1") != 0) {
        skip(1, "there is no glpsol (glpk-utils)");
        return;
    }
    for (int i = 0; i < 10; i++) {
        struct bipartite     graph;
        struct oracle_prices prices;
        struct cover         cover;
        double               best, ours;

        if (i % 2 == 0) bipartite_torn_board(&graph, &sample, 20 + 2 * i);
        else bipartite_random(&graph, &sample, 250, 300, 500 + 100 * i, i % 4);
        cover_init(&cover, &graph.view, &sample, i < 5 ? 20 : 100000);
        find(&cover, &graph.view, GR_COVER_WEIGHTED);
        prices = prices_of(&cover);
        ours = (double)oracle_cover_price(&graph.view, &prices, cover.source_in, cover.target_in);
        best = solve(&cover, &graph.view);
        solved += best >= 0;
        right += fault_of(&cover, &graph.view) == NULL && fabs(ours - best) <= 1e-6 * best;
        diag("%" PRId64 " edges: %.0f, glpsol %.0f", graph.count, ours, best);
        cover_fini(&cover);
        bipartite_fini(&graph);
    }
    ok(solved >= 8 && right == solved, "%d of %d that glpsol solved cost what it finds", right, solved);
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

static int64_t peak_bytes;

static void *peak_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    void *memory = strict_allocate(self, bytes, alignment);

    if (host.live_bytes > peak_bytes) peak_bytes = host.live_bytes;
    return memory;
}

static void test_memory(void)
{
    struct sample sample = { 13 };
    int           bounded = 1;

    for (int i = 0; i < 40; i++) {
        const int64_t    nt = 1 + sample_below(&sample, 2000), ns = 1 + sample_below(&sample, 2000);
        struct bipartite graph;
        struct cover     cover;

        bipartite_random(&graph, &sample, nt, ns, sample_below(&sample, 4000), i % 3);
        cover_init(&cover, &graph.view, &sample, 100);
        peak_bytes = 0;
        context.host.allocate = peak_allocate;
        find(&cover, &graph.view, GR_COVER_WEIGHTED);
        context.host.allocate = strict_allocate;
        bounded = bounded && peak_bytes > 0 && peak_bytes <= 8 * graph.count + 8 * nt + 20 * ns + 2048;
        cover_fini(&cover);
        bipartite_fini(&graph);
    }
    ok(bounded, "memory is within the formula of the header");
}

static void test_no_memory(void)
{
    struct sample    sample = { 17 };
    struct bipartite graph;
    int              clean = 1;
    int64_t          calls = 0;

    bipartite_random(&graph, &sample, 200, 300, 500, 1);
    for (;; calls++) {
        struct cover cover;
        int64_t      touched = 0;

        cover_init(&cover, &graph.view, &sample, 100);
        memset(cover.source_in, 7, (size_t)graph.n_sources);
        memset(cover.target_in, 7, (size_t)graph.n_targets);
        strict_host_fail(&host, calls, 0);
        find(&cover, &graph.view, GR_COVER_WEIGHTED);
        for (int64_t s = 0; s < graph.n_sources; s++) touched += cover.source_in[s] != 7;
        for (int64_t t = 0; t < graph.n_targets; t++) touched += cover.target_in[t] != 7;
        cover_fini(&cover);
        if (host.failed == 0) break;
        clean = clean && cover.rc == GRAFT_ERR_NOMEM && touched == 0 && cover.size == -1 && host.live_blocks == 0;
    }
    strict_host_fail(&host, -1, 0);
    ok(clean && calls > 0, "each of %" PRId64 " allocations fails in turn: out of memory, outputs as they were", calls);
    bipartite_fini(&graph);
}

/* -- prices ------------------------------------------------------------------------------------------------------- */

enum { ROWS = 7, HALO = 10, RANKS = 3, ENTRIES = 60 };

/* The rows of rank 0, which gathers from vertices of ranks 1 and 2. */
struct cut_rows {
    int64_t        local_ptr[ROWS + 1], remote_ptr[ROWS + 1], halo_start[RANKS + 1];
    int32_t        local_col[ENTRIES], remote_col[ENTRIES];
    double         local_value[ENTRIES], remote_value[ENTRIES];
    struct gr_part part;
};

static void rows_init(struct cut_rows *r, struct sample *sample, int weighted)
{
    const int64_t first = sample_below(sample, HALO + 1);

    *r = (struct cut_rows){ .halo_start = { 0, 0, first, HALO } };
    for (int64_t row = 0; row < ROWS; row++) {
        r->local_ptr[row + 1] = r->local_ptr[row] + sample_below(sample, 5);
        r->remote_ptr[row + 1] = r->remote_ptr[row] + sample_below(sample, row == 2 ? 1 : 9);
    }
    for (int64_t e = 0; e < ENTRIES; e++) {
        r->remote_col[e] = (int32_t)sample_below(sample, HALO);
        r->local_value[e] = sample_real(sample, -1, 1);
        r->remote_value[e] = e % 7 == 0 ? 0 : sample_real(sample, -1, 1);
    }
    r->part = (struct gr_part){ { sizeof(graft_csr), GRAFT_I32, weighted ? GRAFT_F64 : 0, 0, ROWS, ROWS, r->local_ptr,
                                  r->local_col, weighted ? r->local_value : NULL },
                                { sizeof(graft_csr), GRAFT_I32, weighted ? GRAFT_F64 : 0, 0, ROWS, HALO, r->remote_ptr,
                                  r->remote_col, weighted ? r->remote_value : NULL },
                                { HALO, r->halo_start, NULL } };
}

/* Losses by the definition, of rows of each vertex of the halo and of each target of a rank; 1 bit loses 1. */
struct losses {
    double source[HALO], target[RANKS][ROWS];
    int    has_source[HALO], has_target[RANKS][ROWS];
};

static int owner_of(const struct cut_rows *r, int64_t vertex)
{
    return vertex < r->halo_start[2] ? 1 : 2;
}

static void find_losses(const struct cut_rows *r, double part, struct losses *losses)
{
    *losses = (struct losses){ 0 };
    for (int64_t row = 0; row < ROWS; row++) {
        const int weighted = r->part.local.values != NULL;
        double    whole = 0, sum[RANKS] = { 0 };

        for (int64_t e = r->local_ptr[row]; e < r->local_ptr[row + 1]; e++)
            whole += weighted ? fabs(r->local_value[e]) : 1;
        for (int64_t e = r->remote_ptr[row]; e < r->remote_ptr[row + 1]; e++)
            whole += weighted ? fabs(r->remote_value[e]) : 1;
        for (int64_t e = r->remote_ptr[row]; e < r->remote_ptr[row + 1]; e++) {
            const double value = weighted ? fabs(r->remote_value[e]) : 1, a = whole > 0 ? value / whole : 0;
            const int    u = r->remote_col[e], q = owner_of(r, u);

            sum[q] += a;
            losses->source[u] += part * a * a;
            losses->has_source[u] = losses->has_target[q][row] = 1;
        }
        for (int q = 0; q < RANKS; q++) losses->target[q][row] = part * sum[q] * sum[q];
    }
}

static double mean_of(const struct losses *l)
{
    double sum = 0;
    int    count = 0;

    for (int u = 0; u < HALO; u++) {
        sum += l->source[u];
        count += l->has_source[u];
    }
    for (int i = 0; i < RANKS * ROWS; i++) {
        sum += l->target[i / ROWS][i % ROWS];
        count += l->has_target[i / ROWS][i % ROWS];
    }
    return sum > 0 ? sum / count : 1;
}

/* What a choice of sources costs, with the targets that then have to be. */
static double cost_of(const struct cut_rows *r, const struct losses *loss, double unit, double lambda, int q,
                      const uint8_t *source_in)
{
    double cost = 0;

    for (int64_t u = 0; u < HALO; u++)
        if (owner_of(r, u) == q && source_in[u]) cost += 1 - lambda + lambda * loss->source[u] / unit;
    for (int row = 0; row < ROWS; row++) {
        int needed = 0;

        for (int64_t e = r->remote_ptr[row]; e < r->remote_ptr[row + 1]; e++)
            needed |= owner_of(r, r->remote_col[e]) == q && !source_in[r->remote_col[e]];
        if (needed) cost += 1 - lambda + lambda * loss->target[q][row] / unit;
    }
    return cost;
}

static double part_of(int bits)
{
    return bits > 8 ? 0 : 1 / pow(pow(2, bits) - 1, 2);
}

/* How much dearer the covers are than the cheapest, as a part. */
static double check_prices(const struct cut_rows *r, const struct gr_cover_choice *choice)
{
    struct gr_cuts cuts;
    struct losses  loss;
    graft_error    error = GRAFT_INIT(graft_error);
    double         unit, worst = 0;

    find_losses(r, part_of(2), &loss);
    unit = mean_of(&loss);
    find_losses(r, part_of(choice->bits), &loss);
    if (gr_cuts_init(&context, &r->part, RANKS, &cuts, &error) < 0 || gr_cuts_find(&context, choice, &cuts, &error) < 0)
        return INFINITY;
    for (int q = 1; q < RANKS; q++) {
        const double ours = cost_of(r, &loss, unit, choice->lambda, q, cuts.source_in);
        double       least = INFINITY;

        for (int set = 0; set < 1 << HALO; set++) {
            uint8_t source_in[HALO];

            for (int u = 0; u < HALO; u++) source_in[u] = set >> u & 1;
            least = fmin(least, cost_of(r, &loss, unit, choice->lambda, q, source_in));
        }
        if (ours > 0) worst = fmax(worst, ours / least - 1);
    }
    gr_cuts_fini(&context, &cuts);
    return worst;
}

static void test_prices(void)
{
    static const int32_t bits[] = { 1, 2, 4, 8, 16 };
    static const double  lambdas[] = { 0, 0.25, 0.5, 1 };
    struct sample        sample = { 19 };
    struct cut_rows      rows;

    for (int b = 0; b < 5; b++) {
        double worst = 0;

        for (int turn = 0; turn < 24; turn++) {
            const struct gr_cover_choice choice = { GR_COVER_WEIGHTED, bits[b], lambdas[turn % 4] };

            rows_init(&rows, &sample, turn % 8 < 4);
            worst = fmax(worst, check_prices(&rows, &choice));
        }
        ok(worst < 1e-5, "%d bits: covers cost the least by the definition of the price, to %.1e", bits[b], worst);
    }
}

int main(void)
{
    alarm(110);
    strict_host_init(&host);
    context.host = host.table;
    test_by_trial(1);
    test_by_trial(3);
    test_by_trial(1 << 30);
    test_equal();
    test_shuffled();
    test_solver();
    test_memory();
    test_no_memory();
    test_prices();
    ok(host.fault == NULL && host.live_blocks == 0 && host.log_lines == 0, "all memory comes home (%s)",
       host.fault != NULL ? host.fault : "nothing amiss");
    return done();
}
