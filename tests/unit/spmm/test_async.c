/* Checks passes with stale rows against an oracle without messages: plain loops that keep the rows of each pass of a
 * layer and direction, and use them in the next pass for the columns of other ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/spread.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 2, STEPS = 96, WIDEST = 9, DIRECTIONS = 2 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* One pass of all ranks. Every step has rows of its own. */
struct step {
    int64_t        epoch, width;
    int32_t        layer;
    uint32_t       flags;
    graft_semiring semiring;
    int            scaled;
    double        *out; /* [n x width] result */
};

/* What the ranks do, and their results. */
struct script {
    struct spread     spread;
    struct sample_csr graph;
    int64_t           n;
    double            smoothing;
    int               real; /* whether numbers have rounding errors */
    int64_t           reserved;
    int               n_steps;
    struct step       step[STEPS];
    int64_t           oldest[RANKS_MOST][LAYERS][DIRECTIONS];
    double            drift[RANKS_MOST][2]; /* drift of layer 0 in forward passes */
};

/* A number for each element of a step. `what` chooses x, the old contents of out, or the scale. */
enum { X, BEFORE, SCALE };

static double async_number(const struct script *s, int step, int what, int64_t v, int64_t j)
{
    struct sample sample = { (uint64_t)((step * 3 + what) * 1000003 + v * 31 + j + 1) };

    sample_bits(&sample);
    if (what == SCALE) return ldexp(1, (int)sample_below(&sample, 3) - 1);
    return s->real ? sample_real(&sample, -2, 2) : sample_exact(&sample, 8, 4);
}

/* --- the ranks --- */

static graft_dense async_rows_of(const struct script *s, void *data, int64_t n, int64_t width)
{
    return (graft_dense){ sizeof(graft_dense), s->spread.dtype, n, width, width, data };
}

static int32_t do_step(struct rank *r, struct script *s, const graft_graph *graph, graft_plan *plan, int number_of)
{
    const struct step   *step = &s->step[number_of];
    const graft_dtype    dtype = s->spread.dtype;
    const int64_t       *vertex = gr_interface_graph.owned(graph), n = graph->n_owned, width = step->width;
    char                *at = calloc((size_t)(n * (2 * width + 1)) + 1, sizeof(double));
    char                *out = at + n * width * 8, *scale = out + n * width * 8;
    const graft_dense    x = async_rows_of(s, at, n, width), c = async_rows_of(s, out, n, width);
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    for (int64_t i = 0; i < n * width; i++) {
        sample_put(at, dtype, i, async_number(s, number_of, X, vertex[i / width], i % width));
        sample_put(out, dtype, i, async_number(s, number_of, BEFORE, vertex[i / width], i % width));
    }
    for (int64_t i = 0; i < n; i++) sample_put(scale, dtype, i, async_number(s, number_of, SCALE, vertex[i], 0));
    args.semiring = step->semiring;
    args.flags = step->flags;
    args.layer = step->layer;
    args.epoch = step->epoch;
    args.x = &x;
    args.out = &c;
    args.row_scale = step->scaled ? scale : NULL;
    TRY(gr_interface_aggregate.begin(plan, &args, &r->error));
    TRY(gr_interface_aggregate.end(plan, &r->error));
    for (int64_t i = 0; i < n * width; i++)
        step->out[vertex[i / width] * width + i % width] =
            dtype == GRAFT_F64 ? ((double *)(void *)out)[i] : (double)((float *)(void *)out)[i];
done:
    free(at);
    return rc;
}

/* A call that is refused must be refused on this rank alone, and change nothing. */
static void be_refused(struct rank *r, const struct script *s, const graft_graph *graph, graft_plan *plan)
{
    static const struct {
        graft_semiring semiring;
        int32_t        layer, code;
        const char    *word;
    } cases[] = { { GRAFT_MAX_SECOND, 0, GRAFT_ERR_UNSUPPORTED, "halo.staleness is for sums" },
                  { GRAFT_MIN_TIMES, 1, GRAFT_ERR_UNSUPPORTED, "GRAFT_AGGREGATE_STATELESS" },
                  { GRAFT_PLUS_TIMES, LAYERS, GRAFT_ERR_ARG, "expected 0 to 1" },
                  { GRAFT_PLUS_TIMES, -1, GRAFT_ERR_ARG, "layer is -1; with halo.staleness=1" } };
    char                *rows = calloc((size_t)graph->n_owned * 2 + 1, sizeof(double));
    const graft_dense    x = async_rows_of(s, rows, graph->n_owned, 1);
    const graft_dense    out = async_rows_of(s, rows + graph->n_owned * 8, graph->n_owned, 1);
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);

    args.x = &x;
    args.out = &out;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graft_error error = GRAFT_INIT(graft_error);
        int32_t     rc;

        args.semiring = cases[i].semiring;
        args.layer = cases[i].layer;
        rc = gr_interface_aggregate.begin(plan, &args, &error);
        if (rc != cases[i].code || strstr(error.message, cases[i].word) == NULL)
            rank_blame(r, "status %d instead of %d: %s", rc, cases[i].code, error.message);
    }
    free(rows);
}

static int32_t async_make(struct rank *r, const struct script *s, graft_graph *graph, graft_plan **plan)
{
    graft_plan_args args = GRAFT_INIT(graft_plan_args);

    args.flags = GRAFT_PLAN_TRANSPOSED;
    args.width = s->reserved;
    args.dtype = s->spread.dtype;
    args.layers = LAYERS;
    return gr_interface_aggregate.create(graph, &args, plan, &r->error);
}

/* All steps but the last use one plan, which is destroyed with messages in flight while another plan is in use. A third
 * plan is never used, and a fourth one makes the last step. */
static int32_t script_body(struct rank *r)
{
    struct script *s = r->all->arg;
    graft_graph   *graph = NULL;
    graft_plan    *plan[4] = { NULL };
    int32_t        rc;

    TRY(spread_setup(r, &s->spread));
    TRY(spread_graph(r, &s->spread, &graph));
    for (int64_t i = 0; i < graph->n_owned; i++) s->spread.found[gr_interface_graph.owned(graph)[i]] = r->rank;
    for (int i = 0; i < 3; i++) TRY(async_make(r, s, graph, &plan[i]));
    be_refused(r, s, graph, plan[0]);
    for (int i = 0; i < s->n_steps - 1; i++) {
        TRY(do_step(r, s, graph, plan[i % 2 == 0 && s->step[i].flags & GRAFT_AGGREGATE_EXACT], i));
        if (i != s->n_steps / 2) continue;
        gr_interface_aggregate.destroy(plan[2]);
        plan[2] = NULL;
    }
    for (int32_t l = 0; l < LAYERS * DIRECTIONS; l++)
        s->oldest[r->rank][l / DIRECTIONS][l % DIRECTIONS] =
            gr_halo_layers_find(&plan[0]->layers, l / DIRECTIONS, l % DIRECTIONS)->history.oldest;
    memcpy(s->drift[r->rank], gr_halo_layers_find(&plan[0]->layers, 0, GR_FORWARD)->history.drift, sizeof s->drift[0]);
    gr_interface_aggregate.destroy(plan[0]);
    plan[0] = NULL;
    TRY(async_make(r, s, graph, &plan[3]));
    TRY(do_step(r, s, graph, plan[3], s->n_steps - 1));
done:
    for (int i = 0; i < 4; i++) gr_interface_aggregate.destroy(plan[i]);
    gr_interface_graph.destroy(graph);
    return rc;
}

/* --- the oracle --- */

/* The rows of a layer in one direction at its last pass. */
struct memory {
    int            has, own; /* own: whether it used its own rows only */
    int64_t        epoch, width;
    graft_semiring semiring;
    double         x[4096], used[4096];
};

static int is_apart(const struct step *step)
{
    return (step->flags & (GRAFT_AGGREGATE_STATELESS | GRAFT_AGGREGATE_EXACT)) != 0;
}

/* Derive from the rows of a step the rows of other ranks that it uses. */
static void remember(const struct script *s, struct memory *m, const struct step *step, const double *x, double *used)
{
    const int64_t count = s->n * step->width;
    const int     same = m->has && m->width == step->width && m->semiring == step->semiring;

    if (is_apart(step)) {
        memcpy(used, x, (size_t)count * sizeof *x);
        return;
    }
    if (same && m->epoch == step->epoch) {
        memcpy(used, m->used, (size_t)count * sizeof *x);
        return;
    }
    if (same && m->epoch + 1 == step->epoch && !(step->flags & GRAFT_AGGREGATE_SYNCHRONOUS)) {
        for (int64_t i = 0; i < count; i++)
            used[i] = m->own ? m->x[i] : s->smoothing * m->used[i] + (1 - s->smoothing) * m->x[i];
        m->own = 0;
    } else {
        memcpy(used, x, (size_t)count * sizeof *x);
        m->own = 1;
    }
    m->has = 1;
    m->epoch = step->epoch;
    m->width = step->width;
    m->semiring = step->semiring;
    memcpy(m->x, x, (size_t)count * sizeof *x);
    memcpy(m->used, used, (size_t)count * sizeof *x);
}

/* Compute a sum or a maximum, and how far quantization may change it. */
static void sum_up(const struct script *s, const struct step *step, const double *x, const double *used, double *out,
                   double *slack)
{
    const graft_csr *a = &s->graph.csr;
    const int        transposed = (step->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    const int        is_max = step->semiring == GRAFT_MAX_SECOND;

    for (int64_t i = 0; i < s->n * step->width; i++) out[i] = is_max ? -INFINITY : 0;
    memset(slack, 0, (size_t)(s->n * step->width) * sizeof *slack);
    for (int64_t v = 0; v < s->n; v++)
        for (int64_t e = a->row_ptr[v]; e < a->row_ptr[v + 1]; e++) {
            const int64_t u = gr_csr_column(a, e), to = transposed ? u : v, from = transposed ? v : u;
            const int     is_own = s->spread.found[u] == s->spread.found[v];
            double        weight = 1;

            if (a->values != NULL && step->semiring == GRAFT_PLUS_TIMES)
                weight =
                    a->value_type == GRAFT_F64 ? ((const double *)a->values)[e] : (double)((const float *)a->values)[e];
            for (int64_t j = 0; j < step->width; j++) {
                const double term = weight * (is_own ? x : used)[from * step->width + j];
                double      *sum = &out[to * step->width + j];

                *sum = is_max ? fmax(*sum, term) : *sum + term;
                if (!is_own) slack[to * step->width + j] += fabs(weight);
            }
        }
    for (int64_t i = 0; i < s->n * step->width; i++)
        if (isinf(out[i])) out[i] = 0;
}

/* How far a step is off, beyond `tolerance` times the sum of magnitudes behind each element. */
static double async_error_of(const struct script *s, int number_of, const double *used, double tolerance)
{
    const struct step *step = &s->step[number_of];
    const int64_t      count = s->n * step->width;
    double            *x = oracle_new(count + 1, sizeof *x), *want = oracle_new(count + 1, sizeof *want);
    double            *slack = oracle_new(count + 1, sizeof *slack), worst = 0;

    for (int64_t i = 0; i < count; i++) x[i] = async_number(s, number_of, X, i / step->width, i % step->width);
    sum_up(s, step, x, used, want, slack);
    for (int64_t i = 0; i < count; i++) {
        const double scale = step->scaled ? async_number(s, number_of, SCALE, i / step->width, 0) : 1;
        const double before = step->flags & GRAFT_AGGREGATE_ACCUMULATE
                                  ? async_number(s, number_of, BEFORE, i / step->width, i % step->width)
                                  : 0;
        const double off = fabs(step->out[i] - (before + scale * want[i])) - tolerance * scale * slack[i];

        if (!(off <= worst)) worst = off;
    }
    free(x);
    free(want);
    free(slack);
    return worst;
}

/* Compare all steps. The return value is NULL or an error in words. */
static const char *async_check(const struct script *s, int32_t n_ranks, double tolerance)
{
    static struct memory memory[LAYERS][DIRECTIONS];
    static char          fault[300];
    static double        x[4096], used[4096];
    int64_t              oldest[LAYERS][DIRECTIONS] = { { 0 } };

    memset(memory, 0, sizeof memory);
    for (int i = 0; i < s->n_steps; i++) {
        const struct step *step = &s->step[i];
        const int          direction = (step->flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
        struct memory     *m = &memory[step->layer][direction];
        double             error;

        if (i == s->n_steps - 1) m->has = 0; /* the last step has another plan */
        for (int64_t k = 0; k < s->n * step->width; k++) x[k] = async_number(s, i, X, k / step->width, k % step->width);
        remember(s, m, step, x, used);
        if (i < s->n_steps - 1 && m->has && !m->own) oldest[step->layer][direction] = 1;
        error = async_error_of(s, i, used, tolerance);
        if (error <= (tolerance > 0 ? 1e-4 : 0)) continue;
        snprintf(fault, sizeof fault, "step %d, epoch %lld, layer %d, flags %u, width %lld, semiring %d: %g off", i,
                 (long long)step->epoch, step->layer, step->flags, (long long)step->width, step->semiring, error);
        return fault;
    }
    for (int32_t r = 0; r < n_ranks; r++)
        if (memcmp(s->oldest[r], oldest, sizeof oldest) != 0) return "another age of rows is reported than they had";
    return NULL;
}

/* --- cases --- */

static const char *const partitions[] = { "given", "block", "hash", "stream" };
static const char *const covers[] = { "hybrid", "post", "pre" };
static const char *const slicings[] = { "even", "all on rank 0", "all on the last rank", "on odd ranks" };

static void async_add(struct script *s, struct step step)
{
    if (s->n_steps == STEPS) return;
    step.out = oracle_new(s->n * step.width + 1, sizeof *step.out);
    s->step[s->n_steps++] = step;
}

static void script_init(struct script *s, struct sample *sample, int64_t n, graft_dtype dtype, int weighted)
{
    const struct sample_csr_shape shape = { n, n, GRAFT_I32, weighted ? dtype : 0, 1, 1 };

    memset(s, 0, sizeof *s);
    s->n = n;
    sample_csr_init_shape(&s->graph, sample, &shape);
    s->spread = (struct spread){
        .graph = &s->graph.csr, .dtype = dtype, .partition = "given", .cover = "hybrid", .threads = "1"
    };
}

static void script_fini(struct script *s)
{
    for (int i = 0; i < s->n_steps; i++) free(s->step[i].out);
    sample_csr_fini(&s->graph);
}

/* Whether to do something now that is done once in `in` times at random. */
static int chance(struct sample *sample, int64_t in)
{
    return sample_below(sample, in) == 0;
}

/* Write a script of epochs with forward and backward passes of all layers, as training has them, and with random calls
 * in between. */
static void write_script(struct script *s, struct sample *sample, int64_t epochs)
{
    int64_t width[LAYERS][DIRECTIONS] = { { 3, 3 }, { 5, 1 } }, epoch = 10;

    for (int64_t t = 0; t < epochs; t++, epoch += chance(sample, 8) ? sample_below(sample, 4) - 1 : 1)
        for (int k = 0; k < LAYERS * DIRECTIONS; k++) {
            const int   back = k >= LAYERS, layer = back ? LAYERS * DIRECTIONS - 1 - k : k;
            int64_t    *w = &width[layer][back];
            struct step step = { .epoch = epoch,
                                 .layer = layer,
                                 .semiring = chance(sample, 12) ? GRAFT_PLUS_SECOND : GRAFT_PLUS_TIMES };

            if (chance(sample, 16)) *w = 1 + sample_below(sample, WIDEST);
            step.width = *w;
            step.scaled = chance(sample, 2);
            step.flags = (back ? GRAFT_AGGREGATE_TRANSPOSE : 0) | (chance(sample, 3) ? GRAFT_AGGREGATE_ACCUMULATE : 0);
            if (chance(sample, 10)) step.flags |= GRAFT_AGGREGATE_SYNCHRONOUS;
            if (!chance(sample, 12)) async_add(s, step);
            if (chance(sample, 8)) async_add(s, step); /* the same epoch again */
            if (chance(sample, 8)) {
                step.width = 1 + sample_below(sample, WIDEST);
                step.flags |= chance(sample, 2) ? GRAFT_AGGREGATE_STATELESS : GRAFT_AGGREGATE_EXACT;
                if (!back && chance(sample, 2)) step.semiring = GRAFT_MAX_SECOND, step.scaled = 0;
                if (step.semiring == GRAFT_MAX_SECOND) step.flags &= ~(uint32_t)GRAFT_AGGREGATE_ACCUMULATE;
                async_add(s, step);
            }
        }
}

/* Run a script over ranks. The return value is NULL or an error in words. */
static const char *run_script(struct script *s, int32_t n_ranks)
{
    static struct ranks ranks;

    ranks_init(&ranks, n_ranks, 60, script_body, s);
    ranks_run(&ranks);
    return ranks_fini_well(&ranks);
}

/* Run some scripts. With quantized rows each edge to another rank may change the result by steps of the range of the
 * row. */
static void test_scripts(int32_t n_ranks, int count, const char *smoothing, const char *codec)
{
    static const int64_t sizes[] = { 1, 2, 5, 17, 40, 97 };
    char                 staleness[32];
    const char *const    settings[] = { "halo.staleness", staleness, "halo.codec", codec, NULL };
    static struct script s;
    struct sample        sample = { 31 + (uint64_t)n_ranks };
    const int            is_few = strcmp(codec, "f32") != 0;
    char                 first[600] = "";
    int                  failed = 0;

    snprintf(staleness, sizeof staleness, "1:0:%s", smoothing);
    for (int i = 0; i < count; i++) {
        const graft_dtype dtype = chance(&sample, 3) ? GRAFT_F64 : GRAFT_F32;
        const int         partition = (int)sample_below(&sample, 4);
        const char       *words;

        script_init(&s, &sample, sizes[sample_below(&sample, sizeof sizes / sizeof *sizes)], dtype,
                    (int)sample_below(&sample, 2));
        s.smoothing = strtod(smoothing, NULL);
        s.real = is_few;
        s.reserved = chance(&sample, 2) ? WIDEST : 0;
        s.spread.slicing = (enum slicing)sample_below(&sample, SLICINGS);
        s.spread.partition = partitions[partition];
        s.spread.cover = covers[i % 3];
        s.spread.settings = settings;
        write_script(&s, &sample, s.smoothing > 0 ? 8 : 14);
        words = run_script(&s, n_ranks);
        if (words == NULL) words = async_check(&s, n_ranks, is_few ? 2.0 * 2 / 255 * 1.1 : 0);
        if (words != NULL && failed++ == 0)
            snprintf(first, sizeof first, "script %d, %lld vertices, slices %s, %s, %s, %s: %.300s", i, (long long)s.n,
                     slicings[s.spread.slicing], s.spread.partition, s.spread.cover,
                     dtype == GRAFT_F64 ? "double" : "float", words);
        script_fini(&s);
    }
    if (!ok(failed == 0, "%d sequences of passes on %d ranks, smoothing %s, %s: all passes equal the oracle", count,
            n_ranks, smoothing, codec))
        diag("%d fail, the first: %s", failed, first);
}

/* Check the drift of the rows of a layer that is sent in f32. Each row counts once for each rank that gathers it. */
static void test_async_drift(const char *smoothing)
{
    enum { RANKS = 3, EPOCHS = 6, WIDTH = 4 };
    char                 staleness[32];
    const char *const    settings[] = { "halo.staleness", staleness, NULL };
    static struct script s;
    struct sample        sample = { 5 };
    double               want[2] = { 0 }, found[2] = { 0 }, used[EPOCHS];
    const char          *words;

    script_init(&s, &sample, 60, GRAFT_F64, 0);
    s.spread.cover = "post";
    s.spread.settings = settings;
    s.smoothing = strtod(smoothing, NULL);
    snprintf(staleness, sizeof staleness, "1:0:%s", smoothing);
    for (int t = 0; t < EPOCHS; t++)
        async_add(&s, (struct step){ .epoch = t, .width = WIDTH, .semiring = GRAFT_PLUS_TIMES });
    words = run_script(&s, RANKS);
    if (words == NULL) words = async_check(&s, RANKS, 1e-9);
    for (int64_t u = 0; u < s.n; u++)
        for (int p = 0; p < RANKS; p++) {
            int gathers = 0;

            for (int64_t v = 0; v < s.n; v++)
                for (int64_t e = s.graph.row_ptr[v]; e < s.graph.row_ptr[v + 1]; e++)
                    gathers |= s.spread.found[v] == p && gr_csr_column(&s.graph.csr, e) == u && s.spread.found[u] != p;
            for (int64_t j = 0; gathers && j < WIDTH; j++) {
                used[0] = async_number(&s, 0, X, u, j);
                /* Rows in flight are not measured yet, and the last step has another plan. */
                for (int t = 1; t < EPOCHS - 2; t++) {
                    const double x = async_number(&s, t, X, u, j);

                    want[0] += (x - used[t - 1]) * (x - used[t - 1]);
                    want[1] += x * x;
                    used[t] = s.smoothing * used[t - 1] + (1 - s.smoothing) * x;
                }
            }
        }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 2; i++) found[i] += s.drift[r][i];
    ok(words == NULL && want[1] > 0 && fabs(found[0] - want[0]) <= 1e-9 * want[0] &&
           fabs(found[1] - want[1]) <= 1e-9 * want[1],
       "smoothing %s: rows drift by %.6g of %.6g, expected %.6g of %.6g%s%s", smoothing, found[0], found[1], want[0],
       want[1], words != NULL ? ": " : "", words != NULL ? words : "");
    script_fini(&s);
}

int main(void)
{
    static const int32_t ranks[] = { 1, 2, 3, 4, 7 };

    alarm(300); /* it is slow under a sanitizer */
    for (int i = 0; i < 5; i++) {
        test_scripts(ranks[i], repeats(i == 0 ? 4 : 24), "0", "f32");
        test_scripts(ranks[i], repeats(i == 0 ? 4 : 12), "0.5", "f32");
        test_scripts(ranks[i], repeats(i == 0 ? 4 : 12), "0.25", "q8");
    }
    test_async_drift("0");
    test_async_drift("0.5");
    return done();
}
