/* Checks distributed products with quantized rows: the result must be as near the exact one as the code allows, rows
 * that no code can encode must arrive unquantized, and ranks or frames with different widths must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "harness/spread.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 4000, WIDTH = 96 }; /* large enough for several threads */

/* A graph, and passes over it. */
struct world {
    struct sample_csr graph;
    graft_dtype       dtype;
    size_t            element;
    char             *x, *scale;
};

static void wire_world_init(struct world *w, struct sample *sample, graft_dtype dtype)
{
    const struct sample_csr_shape shape = { N, N, GRAFT_I32, 0, 0, 0 };

    *w = (struct world){ .dtype = dtype, .element = dtype == GRAFT_F64 ? 8 : 4 };
    sample_csr_init_shape(&w->graph, sample, &shape);
    w->x = oracle_new(N * WIDTH, w->element);
    w->scale = oracle_new(N, w->element);
    for (int64_t i = 0; i < N * WIDTH; i++) sample_put(w->x, dtype, i, sample_real(sample, -1, 1));
    for (int64_t i = 0; i < N; i++) sample_put(w->scale, dtype, i, sample_real(sample, 0.5, 1));
}

static void wire_world_fini(struct world *w)
{
    sample_csr_fini(&w->graph);
    free(w->x);
    free(w->scale);
}

/* What rank 0 reported of the last pass. */
static graft_plan_info info;

/* Make all passes. The return value is NULL or an error in words. */
static const char *wire_play(struct spread *s, int32_t n_ranks)
{
    static struct ranks ranks;
    static char         kept[512];
    const char         *words = NULL;

    ranks_init(&ranks, n_ranks, 20, spread_body, s);
    ranks_run(&ranks);
    for (int32_t i = 0; i < n_ranks && words == NULL; i++)
        if (ranks.at[i].rc < 0) words = ranks.at[i].error.message;
    for (int32_t i = 1; i < n_ranks && words != NULL; i++)
        if (strcmp(ranks.at[i].error.message, ranks.at[0].error.message) != 0) words = "ranks say different things";
    if (words != NULL) snprintf(kept, sizeof kept, "%s", words);
    info = s->plan_info[0];
    return ranks_fini(&ranks) != NULL ? "something is left" : words != NULL ? kept : NULL;
}

/* Make one pass with options, whose result goes to `out`. The return value is NULL or an error in words. */
static const char *pass_with(const struct world *w, int32_t n_ranks, const char *cover, const char *const *settings,
                             graft_semiring semiring, uint32_t flags, char *out)
{
    struct spread s = { .graph = &w->graph.csr,
                        .dtype = w->dtype,
                        .x = w->x,
                        .x_width = WIDTH,
                        .scale = w->scale,
                        .partition = "hash",
                        .cover = cover,
                        .threads = "1",
                        .pass_threads = 8, /* more than the plan has scratch memory for */
                        .settings = settings,
                        .reserved = WIDTH,
                        .n_passes = 1,
                        .pass = { { semiring, flags, WIDTH, semiring == GRAFT_PLUS_TIMES, out } } };

    memset(out, 0, N * WIDTH * w->element);
    return wire_play(&s, n_ranks);
}

/* The distance of two results, relative to the norm of the second. */
static double wire_apart(const struct world *w, const char *a, const char *b)
{
    double off = 0, length = 0;

    for (int64_t i = 0; i < N * WIDTH; i++) {
        off += pow(sample_at(a, w->dtype, i) - sample_at(b, w->dtype, i), 2);
        length += pow(sample_at(b, w->dtype, i), 2);
    }
    return sqrt(off / length);
}

/* A code, and the largest relative error of the result. Numbers of equal magnitude have an error of step / sqrt(12) if
 * they are rounded to nearest, and sqrt(2) times that if rounding is stochastic. Partial sums have wider ranges. */
struct code {
    int         bits;
    const char *codec, *rounding;
    double      most;
};

static const struct code codes[] = {
    { 16, "bf16", "auto", 0.004 },        { 8, "q8", "auto", 0.006 },     { 4, "q4", "auto", 0.12 },
    { 2, "q2", "nearest", 0.36 },         { 2, "q2", "stochastic", 0.6 }, { 1, "q1:rotated", "auto", 0.8 },
    { 1, "q1:minmax", "stochastic", 1.9 }
};

/* Check what a plan reports of sent bytes and quantization errors, with all rows measured. The return value is NULL or
 * an error in words. */
static const char *check_info(int bits, int transposed, int64_t element)
{
    const int64_t rows = transposed ? info.halo_rows : info.halo_rows_sent;
    const int64_t each = bits == 32 ? WIDTH * element : (bits * WIDTH + 7) / 8 + (bits <= 8 ? 4 : 0);

    if (info.bytes_sent != rows * each || info.bytes_unquantized != 0) return "other bytes are said to be sent";
    if (info.sampled_rows != (bits < 32 ? rows : 0)) return "other rows were looked at";
    if (bits < 32 && !(info.nmse > 0)) return "nothing is lost";
    /* For 16 bits no error is predicted: each element changes by at most 2^-7 of itself. */
    if (info.nmse > (bits < 16 ? 1.5 * info.expected : (double)info.sampled_rows * pow(2, -14)))
        return "more is lost than is expected";
    return NULL;
}

static void test_code(struct world *w, const struct code *c, const char *cover, int32_t n_ranks, uint32_t flags)
{
    const char *const settings[] = { "halo.codec", c->codec, "halo.rounding", c->rounding, "halo.error_statistics",
                                     "exact",      NULL };
    const int         transposed = (flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    char             *exact = oracle_new(N * WIDTH, w->element), *few = oracle_new(N * WIDTH, w->element);
    const char       *words = pass_with(w, n_ranks, cover, NULL, GRAFT_PLUS_TIMES, flags, exact);
    double            off;

    if (words == NULL) words = check_info(32, transposed, (int64_t)w->element);
    if (words == NULL) words = pass_with(w, n_ranks, cover, settings, GRAFT_PLUS_TIMES, flags, few);
    if (words == NULL) words = check_info(c->bits, transposed, (int64_t)w->element);
    off = wire_apart(w, few, exact);
    ok(words == NULL && off <= c->most && off > (c->bits == 1 || c->bits == 16 ? 1e-5 : 1e-6),
       "%s, %s, %s%s on %d ranks, %s: the quantization error is %.2g of the result%s%s", c->codec, c->rounding, cover,
       transposed ? ", transposed" : "", n_ranks, w->dtype == GRAFT_F64 ? "double" : "float", off,
       words != NULL ? ": " : "", words != NULL ? words : "");
    free(exact);
    free(few);
}

/* There must be no quantization error with flag GRAFT_AGGREGATE_EXACT, and none on one rank. Maxima are quantized, and
 * with 8 bits their error must be small. */
static void test_exact(struct world *w)
{
    static const char *const two[] = { "halo.codec", "q2", NULL }, *const eight[] = { "halo.codec", "q8", NULL };
    char       *exact = oracle_new(N * WIDTH, w->element), *few = oracle_new(N * WIDTH, w->element);
    const char *words = pass_with(w, 3, "hybrid", NULL, GRAFT_PLUS_TIMES, 0, exact);

    if (words == NULL) words = pass_with(w, 3, "hybrid", two, GRAFT_PLUS_TIMES, GRAFT_AGGREGATE_EXACT, few);
    ok(words == NULL && memcmp(exact, few, N * WIDTH * w->element) == 0,
       "with GRAFT_AGGREGATE_EXACT the result is bitwise identical to that without quantization");
    words = pass_with(w, 1, "hybrid", two, GRAFT_PLUS_TIMES, 0, few);
    ok(words == NULL && wire_apart(w, few, exact) < 1e-6, "on one rank there is no quantization error");
    words = pass_with(w, 3, "hybrid", NULL, GRAFT_MAX_SECOND, 0, exact);
    if (words == NULL) words = pass_with(w, 3, "hybrid", eight, GRAFT_MAX_SECOND, 0, few);
    ok(words == NULL && wire_apart(w, few, exact) < 0.01, "rows of maxima are quantized too");
    free(exact);
    free(few);
}

/* Results must not depend on the thread and the kernel that compute and encode rows. Kernels add in the same order as
 * long as no row is so long that simd splits it. */
static void test_makers(struct world *w, const char *cover, uint32_t flags)
{
    static const char *const one[] = { "halo.codec", "q2", "halo.rounding", "stochastic", NULL };
    static const char *const others[][9] = {
        { "halo.codec", "q2", "halo.rounding", "stochastic", "threads", "3", NULL },
        { "halo.codec", "q2", "halo.rounding", "stochastic", "threads", "3", "mxm.kernel", "reference", NULL },
        { "halo.codec", "q2", "halo.rounding", "stochastic", "threads", "2", "mxm.verify", "9", NULL },
    };
    char       *first = oracle_new(N * WIDTH, w->element), *out = oracle_new(N * WIDTH, w->element);
    const char *words = pass_with(w, 3, cover, one, GRAFT_PLUS_TIMES, flags, first);

    for (size_t i = 0; i < sizeof others / sizeof *others && words == NULL; i++) {
        if (strcmp(others[i][7] != NULL ? others[i][7] : "", "reference") == 0 && (int)GR_TASK_ENTRIES < N) continue;
        words = pass_with(w, 3, cover, others[i], GRAFT_PLUS_TIMES, flags, out);
        ok(words == NULL && memcmp(first, out, N * WIDTH * w->element) == 0,
           "%s%s, %s %s%s%s: quantized passes are bitwise identical%s%s", cover,
           flags & GRAFT_AGGREGATE_TRANSPOSE ? ", transposed" : "", others[i][4], others[i][5],
           others[i][6] != NULL ? ", " : "", others[i][6] != NULL ? others[i][7] : "", words != NULL ? ": " : "",
           words != NULL ? words : "");
    }
    free(first);
    free(out);
}

/* A row has a NaN: its message must be sent unquantized, so that the other ranks have the result without a code. */
static void test_wire_raw(struct world *w, const char *cover)
{
    static const char *const send[] = { "halo.codec", "q2", NULL };
    static const char *const refuse[] = { "halo.codec", "q2", "halo.nonfinite", "refuse", NULL };
    char                    *exact = oracle_new(N * WIDTH, w->element), *few = oracle_new(N * WIDTH, w->element);
    const char              *words;
    int64_t                  differ = 0;

    for (int64_t v = 0; v < N; v++) sample_put(w->x, w->dtype, v * WIDTH + 5, (double)NAN);
    words = pass_with(w, 3, cover, NULL, GRAFT_PLUS_TIMES, 0, exact);
    if (words == NULL) words = pass_with(w, 3, cover, send, GRAFT_PLUS_TIMES, 0, few);
    if (words == NULL && info.bytes_unquantized != info.halo_rows_sent * WIDTH * (int64_t)w->element)
        words = "other bytes are said to go as they are";
    for (int64_t i = 0; i < N * WIDTH; i++) {
        const double a = sample_at(exact, w->dtype, i), b = sample_at(few, w->dtype, i);

        differ += !(a == b || (isnan(a) && isnan(b)));
    }
    ok(words == NULL && differ == 0, "%s: rows with a NaN are sent unquantized%s%s", cover, words != NULL ? ": " : "",
       words != NULL ? words : "");
    words = pass_with(w, 3, cover, refuse, GRAFT_PLUS_TIMES, 0, few);
    ok(words != NULL && strstr(words, "not finite") != NULL && strstr(words, "2 bits") != NULL,
       "%s: with halo.nonfinite=refuse rows with a NaN are an error on all ranks: %s", cover,
       words != NULL ? words : "none");
    free(exact);
    free(few);
}

/* The share of elements in which two results differ. */
static double differing(const struct world *w, const char *a, const char *b)
{
    int64_t count = 0;

    for (int64_t i = 0; i < N * WIDTH; i++) count += sample_at(a, w->dtype, i) != sample_at(b, w->dtype, i);
    return (double)count / (N * WIDTH);
}

/* Each vertex gathers from one vertex of the other rank, which gathers from it, so that the same rows are sent in both
 * directions. */
static void pairs_init(struct spread *s, const struct world *w, graft_csr *graph)
{
    static const char *const settings[] = { "halo.codec", "q2", "halo.rounding", "stochastic", NULL };
    static int64_t           row_ptr[N + 1];
    static int32_t           column[N], owner[N];

    for (int32_t v = 0; v < N; v++) {
        row_ptr[v + 1] = v + 1;
        column[v] = (v + N / 2) % N;
        owner[v] = v >= N / 2;
    }
    *graph = (graft_csr){ sizeof *graph, GRAFT_I32, 0, 0, N, N, row_ptr, column, NULL, NULL };
    *s = (struct spread){ .graph = graph,
                          .dtype = w->dtype,
                          .x = w->x,
                          .x_width = WIDTH,
                          .scale = w->scale,
                          .partition = "given",
                          .owner = owner,
                          .cover = "hybrid",
                          .threads = "1",
                          .settings = settings,
                          .reserved = WIDTH };
}

/* The rounding direction of an element of 2 bits must be drawn independently in each epoch, layer and direction. For an
 * element between two levels, a third of the pairs of draws differ. */
static void test_wire_draws(const struct world *w)
{
    enum { FORWARD = 5, BACK = FORWARD, AGAIN, RESULTS }; /* layers 0 to 3 of an epoch, and layer 0 of the next one */
    struct spread s;
    graft_csr     graph;
    char         *out[RESULTS];
    const char   *words = NULL;
    double        least = 1;

    for (int i = 0; i < RESULTS; i++) out[i] = oracle_new(N * WIDTH, w->element);
    for (int run = 0; run < 3 && words == NULL; run++) {
        pairs_init(&s, w, &graph);
        s.n_passes = run == 0 ? FORWARD : 1;
        for (int i = 0; i < s.n_passes; i++)
            s.pass[i] = (struct spread_pass){ GRAFT_PLUS_TIMES, run == 1 ? GRAFT_AGGREGATE_TRANSPOSE : 0, WIDTH, 0,
                                              out[run == 0   ? i
                                                  : run == 1 ? BACK
                                                             : AGAIN] };
        words = wire_play(&s, 2);
    }
    for (int a = 0; a < AGAIN; a++)
        for (int b = 0; b < a; b++) least = fmin(least, differing(w, out[a], out[b]));
    ok(words == NULL && least > 0.3 && differing(w, out[AGAIN], out[0]) == 0,
       "equal rows in two epochs, layers or directions are rounded differently: at least %.3g "
       "of the elements%s%s",
       least, words != NULL ? ": " : "", words != NULL ? words : "");
    for (int i = 0; i < RESULTS; i++) free(out[i]);
}

/* One row has a NaN. The messages with it must be sent unquantized without quantization error, and the others have the
 * error of their width. */
static void test_one_raw(struct world *w)
{
    static const char *const settings[] = { "halo.codec", "q2", "halo.error_statistics", "exact", NULL };
    char                    *out = oracle_new(N * WIDTH, w->element);
    const char              *words = NULL;
    int64_t                  raw = 0;
    int                      found = 0;

    for (int64_t v = 0; v < 20 && words == NULL; v++) {
        sample_put(w->x, w->dtype, v * WIDTH + 5, (double)NAN);
        words = pass_with(w, 5, "post", settings, GRAFT_PLUS_TIMES, 0, out);
        sample_put(w->x, w->dtype, v * WIDTH + 5, 0.5);
        raw = info.bytes_unquantized / (WIDTH * (int64_t)w->element);
        if (words == NULL && info.sampled_rows + raw != info.halo_rows_sent)
            words = "rows that went raw were looked at";
        if (words == NULL && !(info.nmse > 0 && isfinite(info.nmse))) words = "nothing was lost, or no number";
        found += raw > 0 && raw < info.halo_rows_sent;
    }
    ok(words == NULL && found > 0, "messages with a row that cannot be encoded have no quantization error%s%s",
       words != NULL ? ": " : "", words != NULL ? words : "");
    free(out);
}

int main(void)
{
    static const char *const covers[] = { "hybrid", "post", "pre" };
    struct sample            sample = { 21 };

    alarm(110);
    for (int d = 0; d < 2; d++) {
        struct world w;
        int          number = 0;

        wire_world_init(&w, &sample, d ? GRAFT_F64 : GRAFT_F32);
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            for (int k = 0; k < 3; k++, number++)
                test_code(&w, &codes[c], covers[k], 2 + number % 3, number % 2 ? GRAFT_AGGREGATE_TRANSPOSE : 0);
        test_exact(&w);
        test_wire_draws(&w);
        for (int k = 0; k < 3; k++) test_makers(&w, covers[k], k == 0 ? GRAFT_AGGREGATE_TRANSPOSE : 0);
        test_one_raw(&w);
        for (int k = 0; k < 3; k++) test_wire_raw(&w, covers[k]);
        wire_world_fini(&w);
    }
    return done();
}
