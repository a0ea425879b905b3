/* Checks adaptive bit widths of plans and halos (AdaQP). The weights of rows must be those that products with unit
 * vectors and plain sums over the graph show; sender and receiver of a row must agree on its width; sent bytes and
 * quantization errors must stay within their budgets; the balance between ranks must be optimal; and a failure must be
 * the same error on all ranks. Wrong widths, a budget that is exceeded, or ranks that differ fail a check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/adapting.h"
#include "harness/tap.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 300 };

static struct sample_csr graph;
static float             x[N * WIDTH], scale[N];

/* Make rows whose magnitudes differ much. */
static void make_world(void)
{
    const struct sample_csr_shape shape = { N, N, GRAFT_I32, GRAFT_F32, 0, 0 };
    struct sample                 sample = { 5 };

    sample_csr_init_shape(&graph, &sample, &shape);
    for (int64_t v = 0; v < N; v++) {
        const double size = exp(sample_real(&sample, -3, 3));

        scale[v] = (float)sample_real(&sample, 0.2, 1);
        for (int j = 0; j < WIDTH; j++) x[v * WIDTH + j] = (float)(size * sample_real(&sample, -1, 1));
    }
}

static void adapt_job_init(struct adapting_job *job, const char *cover, const char *const *settings)
{
    memset(job, 0, sizeof *job);
    job->n = N;
    job->adapts = 1;
    job->spread = (struct spread){ .graph = &graph.csr,
                                   .dtype = GRAFT_F32,
                                   .x = (char *)x,
                                   .x_width = WIDTH,
                                   .scale = (char *)scale,
                                   .partition = "hash",
                                   .cover = cover,
                                   .threads = "1",
                                   .settings = settings };
}

/* -- tests -------------------------------------------------------------------------------------------------------- */

#define ADAPTIVE "halo.codec", "adaptive"

static void test_weights(const char *cover, int32_t n_ranks, enum slicing slicing)
{
    static const char *const   settings[] = { ADAPTIVE, NULL };
    static struct adapting_job job;
    int64_t                    bytes, rows = 0;
    double                     worst = 0;
    const char                *words;
    int32_t                    rc;

    adapt_job_init(&job, cover, settings);
    job.probes = 1;
    job.spread.slicing = slicing;
    words = adapting_run(&job, n_ranks, &rc);
    if (words == NULL) words = adapting_check(&job, n_ranks, &bytes);
    for (int32_t p = 0; p < n_ranks && words == NULL; p++)
        for (int lane = 0; lane < LANES; lane++)
            for (int64_t row = 0; row < job.seen[p][lane].start[1][n_ranks]; row++, rows++) {
                const double probed = job.seen[p][lane].probed[row];

                worst = fmax(worst, fabs((double)job.seen[p][lane].weight[1][row] - probed) / probed);
            }
    ok(words == NULL && worst < 1e-5 && (rows > 0) == (n_ranks > 1),
       "%s on %d ranks: weights of %lld rows are squares of what products make of them, within %.2g%s%s", cover,
       n_ranks, (long long)rows, worst, words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

static void test_adapt_bytes(int32_t n_ranks, const char *staleness)
{
    static struct adapting_job job;
    char                       limit[32];
    const char *const          settings[] = { ADAPTIVE, "halo.budget", limit, "halo.staleness", staleness, NULL };
    const char *const          plain[] = { "halo.codec", "q8", NULL };
    int64_t                    many, bytes = 0;
    const char                *words;
    int32_t                    rc;

    adapt_job_init(&job, "hybrid", plain);
    job.adapts = 0;
    words = adapting_run(&job, n_ranks, &rc);
    many = job.sent;
    adapting_fini(&job);
    snprintf(limit, sizeof limit, "bytes:%lld", (long long)(many * 6 / 10));
    adapt_job_init(&job, "hybrid", settings);
    job.adapts = 3;
    if (words == NULL) words = adapting_run(&job, n_ranks, &rc);
    if (words == NULL) words = adapting_check(&job, n_ranks, &bytes);
    ok(words == NULL && bytes <= many * 6 / 10 && bytes > many * 55 / 100 && job.off < 0.02 && job.off > 0,
       "%d ranks, halo.staleness=%s: of %lld bytes with 8 bits, %lld may be sent, and %lld are: %.2g off%s%s", n_ranks,
       staleness, (long long)many, (long long)many * 6 / 10, (long long)bytes, job.off, words != NULL ? ": " : "",
       words != NULL ? words : "");
    adapting_fini(&job);
}

static void test_adapt_error(const char *limit, const char *rounding)
{
    char                       budget[32];
    const char *const          settings[] = { ADAPTIVE, "halo.budget", budget, "halo.rounding", rounding, NULL };
    static struct adapting_job job;
    int64_t                    bytes = 0;
    const char                *words;
    double                     lost = 0, expected = 0;
    int32_t                    rc;

    snprintf(budget, sizeof budget, "error:%s", limit);
    adapt_job_init(&job, "hybrid", settings);
    words = adapting_run(&job, 4, &rc);
    if (words == NULL) words = adapting_check(&job, 4, &bytes);
    if (words == NULL) lost = adapting_lost(&job, 4);
    if (words == NULL) expected = adapting_expected(&job, 4);
    ok(job.seen[3][LANES - 1].info.expected_error == expected,
       "info() of the plan reports the expected quantization error");
    ok(expected <= atof(limit) && expected > 0.8 * atof(limit) && fabs(lost / expected - 1) < 0.15,
       "quantization error of %s: %.3g is expected, as all ranks know, and %.3g is measured", limit, expected, lost);
    ok(words == NULL && lost < 1.15 * atof(limit) && lost > 0.5 * atof(limit) && adapting_count(&job, 4, 2) > 0,
       "at most %s of the squares may be lost, %s, and %.3g are, with %lld, %lld and %lld rows of 2, 4, 8 bits%s%s",
       limit, rounding, lost, (long long)adapting_count(&job, 4, 2), (long long)adapting_count(&job, 4, 4),
       (long long)adapting_count(&job, 4, 8), words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

/* The expected quantization error of a lane, computed from the sums at the last decision and the widths that it
 * chose. */
static double error_of_sums(const struct adapting_job *job, int32_t n_ranks, int lane)
{
    double lost = 0, said = 0;

    for (int32_t p = 0; p < n_ranks; p++) {
        const struct seen *s = &job->seen[p][lane];

        for (int64_t row = 0; row < s->start[0][n_ranks]; row++) {
            const double weight = (double)s->weight[0][row], levels = pow(2, s->bits[0][row]) - 1;

            lost += weight * s->decided[0][row] / (lane % 2 ? 6 : 12) / (levels * levels);
            said += weight * s->decided[1][row];
        }
    }
    return lost / said;
}

/* Widths depend on sums over all passes since the last decision, which are compared with sums of the test. Stored
 * ranges are a little larger than the true ones. */
static void test_trace(const char *cover, int adapts)
{
    static const char *const   settings[] = { ADAPTIVE, "halo.budget", "error:0.02", NULL };
    static struct adapting_job job;
    double                     least = INFINITY, most = 0, off = 0, squares = 0;
    const char                *words;
    int32_t                    rc;

    adapt_job_init(&job, cover, settings);
    job.adapts = adapts;
    job.passes = 4;
    job.traces = 1;
    words = adapting_run(&job, 3, &rc);
    for (int lane = 0; lane < LANES && words == NULL; lane++) {
        for (int32_t p = 0; p < 3; p++) {
            const struct seen *s = &job.seen[p][lane];

            for (int64_t row = 0; row < s->start[0][3]; row++) {
                least = fmin(least, s->traced[0][row] / s->summed[0][row]);
                most = fmax(most, s->traced[0][row] / s->summed[0][row]);
                squares = fmax(squares, fabs(s->traced[1][row] / s->summed[1][row] - 1));
            }
        }
        off = fmax(off, fabs(job.seen[0][lane].expected_error / error_of_sums(&job, 3, lane) - 1));
    }
    ok(words == NULL && least > 0.999 && most < 1.1 && squares < 1e-5 && off < 0.05,
       "%s, assignment %d: sums of ranges over all passes are %.4f to %.4f of the right ones, "
       "sums of squares are %.1g off, the expected error is %.1g off%s%s",
       cover, adapts, least, most, squares, off, words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

/* Any number of threads must give bitwise identical results. */
static void test_adapt_threads(void)
{
    static const char *const   settings[] = { ADAPTIVE, "halo.budget", "error:0.02", NULL };
    static struct adapting_job job[2];
    const char                *words = NULL;
    int                        differ = 0;
    int32_t                    rc;

    for (int i = 0; i < 2; i++) {
        adapt_job_init(&job[i], "hybrid", settings);
        job[i].spread.pass_threads = 1 + 4 * i;
        if (words == NULL) words = adapting_run(&job[i], 3, &rc);
    }
    for (int p = 0; p < 3 && words == NULL; p++)
        for (int lane = 0; lane < LANES; lane++)
            differ |= memcmp(job[0].seen[p][lane].bits[0], job[1].seen[p][lane].bits[0],
                             (size_t)job[0].seen[p][lane].start[0][3]);
    ok(words == NULL && differ == 0 && adapting_count(&job[0], 3, 4) > 0,
       "runs with 1 and 5 threads are bitwise identical%s%s", words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job[0]);
    adapting_fini(&job[1]);
}

/* The weights of the rows of a halo: 1 / degree^2 of each destination that has the vertex in forward passes, 1 in
 * backward passes. */
static void test_halo(int32_t n_ranks)
{
    static const char *const   settings[] = { ADAPTIVE, "halo.budget", "error:0.05", NULL };
    static struct adapting_job job;
    int64_t                    bytes = 0;
    double                     sum = 0, want = 0;
    const char                *words;
    int                        odd = 0;
    int32_t                    rc;

    adapt_job_init(&job, "hybrid", settings);
    job.halo = 1;
    words = adapting_run(&job, n_ranks, &rc);
    if (words == NULL) words = adapting_check(&job, n_ranks, &bytes);
    for (int32_t p = 0; p < n_ranks && words == NULL; p++) {
        const struct seen *forward = &job.seen[p][0], *back = &job.seen[p][1];

        for (int64_t row = 0; row < forward->start[0][n_ranks]; row++) {
            const int64_t u = forward->vertex[row];
            double        weight = 0;
            int32_t       q = 0;

            while (row >= forward->start[0][q + 1]) q++;
            for (int64_t v = 0; v < N; v++)
                for (int64_t e = graph.row_ptr[v]; e < graph.row_ptr[v + 1]; e++)
                    if (job.spread.found[v] == q && ((const int32_t *)graph.col_idx)[e] == u)
                        weight += pow((double)(graph.row_ptr[v + 1] - graph.row_ptr[v]), -2);
            odd += fabs(weight / (double)forward->weight[0][row] - 1) > 1e-5;
            want += weight;
            sum += (double)forward->weight[0][row];
        }
        for (int64_t row = 0; row < back->start[0][n_ranks]; row++) odd += back->weight[0][row] != 1;
    }
    ok(words == NULL && odd == 0 && (n_ranks == 1 || sum > 0),
       "a halo on %d ranks: even attention gives rows that go the weight %.6g in all, and it is %.6g%s%s", n_ranks,
       want, sum, words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

/* -- the balance -------------------------------------------------------------------------------------------------- */

/* Eight rows: in each of 4 lanes two ranks send each other one row. */
enum { FEW = 8 };

struct few {
    double variance[FEW]; /* variance of a row over that of its lane */
    double gamma, theta[2];
    double price[2];
};

static void terms(const struct few *f, const int bits[FEW], double *variance, double *seconds)
{
    *variance = *seconds = 0;
    for (int lane = 0; lane < LANES; lane++) {
        double slowest = 0;

        for (int p = 0; p < 2; p++) {
            const int b = bits[2 * lane + p];

            *variance += f->variance[2 * lane + p] / pow(pow(2, b) - 1, 2);
            slowest = fmax(slowest, f->gamma + f->theta[p] * (double)(WIDTH * b / 8 + 4));
        }
        *seconds += slowest;
    }
}

static double adapt_objective(const struct few *f, const int bits[FEW])
{
    double variance, seconds;

    terms(f, bits, &variance, &seconds);
    return f->price[0] * variance + f->price[1] * seconds;
}

static double least(const struct few *f, int bits[FEW], int at)
{
    double best = INFINITY;

    if (at == FEW) return adapt_objective(f, bits);
    for (int b = 2; b <= 8; b *= 2) {
        bits[at] = b;
        best = fmin(best, least(f, bits, at + 1));
    }
    return best;
}

/* Compute the quantization errors of the rows from the rows themselves, and their prices from the ranges of their
 * values. */
static void few_init(struct few *f, const struct adapting_job *job, double lambda)
{
    const int all[2][FEW] = { { 2, 2, 2, 2, 2, 2, 2, 2 }, { 8, 8, 8, 8, 8, 8, 8, 8 } };
    double    variance[2], seconds[2];

    *f = (struct few){ .gamma = job->network.gamma };
    for (int lane = 0; lane < LANES; lane++) {
        double said = 0;

        for (int p = 0; p < 2; p++) {
            const struct seen *s = &job->seen[p][lane];
            const float       *row = s->rows[0];
            float              low = row[0], high = row[0];

            for (int j = 0; j < WIDTH; j++) {
                low = fminf(low, row[j]);
                high = fmaxf(high, row[j]);
                said += (double)s->weight[0][0] * (double)row[j] * (double)row[j];
            }
            f->variance[2 * lane + p] = (double)s->weight[0][0] * WIDTH * pow((double)(high - low), 2);
            f->variance[2 * lane + p] /= lane % 2 ? 6 : 12;
        }
        for (int p = 0; p < 2; p++) f->variance[2 * lane + p] /= said;
    }
    for (int p = 0; p < 2; p++) f->theta[p] = job->network.theta * (1 + p + 2 * (1 - p));
    for (int i = 0; i < 2; i++) terms(f, all[i], &variance[i], &seconds[i]);
    f->price[0] = lambda / (variance[0] - variance[1]);
    f->price[1] = (1 - lambda) / (seconds[1] - seconds[0]);
}

static void few_job_init(struct adapting_job *job, const char *const *settings)
{
    static const int64_t   row_ptr[] = { 0, 1, 1, 1, 2 };
    static const int32_t   column[] = { 2, 1 };
    static const int32_t   owner[] = { 0, 0, 1, 1 };
    static const graft_csr rows = { sizeof rows, GRAFT_I32, 0, 0, 4, 4, row_ptr, column, NULL, NULL };

    adapt_job_init(job, "post", settings);
    job->n = 4;
    job->spread.graph = &rows;
    job->spread.owner = owner;
    job->spread.partition = "given";
    job->network = (struct gr_network){ 1e-5, 1e-6 };
}

static void test_adapt_balance(const char *lambda)
{
    char                       budget[32];
    const char *const          settings[] = { ADAPTIVE, "halo.budget", budget, NULL };
    static struct adapting_job job;
    struct few                 f;
    int                        bits[FEW], any[FEW];
    int64_t                    bytes;
    double                     ours = 0, best = 0;
    const char                *words;
    int32_t                    rc;

    snprintf(budget, sizeof budget, "balance:%s", lambda);
    few_job_init(&job, settings);
    words = adapting_run(&job, 2, &rc);
    if (words == NULL) words = adapting_check(&job, 2, &bytes);
    if (words == NULL) {
        few_init(&f, &job, atof(lambda));
        for (int i = 0; i < FEW; i++) bits[i] = job.seen[i % 2][i / 2].bits[0][0];
        ours = adapt_objective(&f, bits);
        best = least(&f, any, 0);
        for (int i = 0; i < FEW; i++) diag("lane %d, rank %d: %d bits", i / 2, i % 2, bits[i]);
    }
    ok(words == NULL && ours <= 1.01 * best,
       "lambda %s: of 8 rows the balance is %.6g, and the least of 6561 is %.6g%s%s", lambda, ours, best,
       words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

/* The weighted quantization error of the two rows of a lane. */
static double lane_loss(const struct few *f, int lane, int first, int second)
{
    return f->variance[2 * lane] / pow(pow(2, first) - 1, 2) + f->variance[2 * lane + 1] / pow(pow(2, second) - 1, 2);
}

/* With a budget just above the quantization error that the two rows of a lane have in 4 bits they need no more bits,
 * and just below it they do. The error depends on the rounding, which is to nearest in forward passes and stochastic in
 * backward ones. */
static void test_adapt_limit(int lane, double share)
{
    char                       limit[32] = "error:1000";
    const char *const          settings[] = { ADAPTIVE, "halo.budget", limit, NULL };
    static struct adapting_job job;
    struct few                 f;
    double                     lost = 0, four = 0;
    int                        bits[2] = { 0 };
    const char                *words = NULL;
    int64_t                    bytes;
    int32_t                    rc;

    /* The first run reads the rows, which are the same in every epoch. */
    for (int run = 0; run < 2 && words == NULL; run++) {
        few_job_init(&job, settings);
        words = adapting_run(&job, 2, &rc);
        if (words == NULL) words = adapting_check(&job, 2, &bytes);
        if (words == NULL) {
            few_init(&f, &job, 0.5);
            four = lane_loss(&f, lane, 4, 4);
            snprintf(limit, sizeof limit, "error:%.9g", share * four);
            for (int p = 0; p < 2; p++) bits[p] = job.seen[p][lane].bits[0][0];
            lost = lane_loss(&f, lane, bits[0], bits[1]);
        }
        adapting_fini(&job);
    }
    ok(words == NULL && lost <= share * four && (bits[0] + bits[1] <= 8) == (share > 1),
       "lane %d: with 4 bits it loses %.3g, and in a limit of %s its rows have %d and %d bits%s%s", lane, four, limit,
       bits[0], bits[1], words != NULL ? ": " : "", words != NULL ? words : "");
}

/* -- what goes wrong ---------------------------------------------------------------------------------------------- */

static void test_adapt_refused(void)
{
    static const struct {
        const char *settings[8], *odd[2];
        int32_t     code;
        const char *said;
    } cases[] = {
        { { ADAPTIVE, "halo.budget", "bytes:9" }, { 0 }, GRAFT_ERR_OPTION, "with 2 bits everywhere it is" },
        { { ADAPTIVE, "halo.budget", "error:1e-9" }, { 0 }, GRAFT_ERR_OPTION, "with 8 bits everywhere it is" },
        { { ADAPTIVE }, { "halo.budget", "bytes:77" }, GRAFT_ERR_ARG, "option halo.budget is balance:0.5" },
        { { ADAPTIVE }, { "halo.budget", "error:0.1" }, GRAFT_ERR_ARG, "error:0.1 on rank" },
        { { ADAPTIVE }, { "halo.budget", "balance:0.7" }, GRAFT_ERR_ARG, "balance:0.7 on rank" },
        { { ADAPTIVE }, { "halo.budget", "balance:0.5:7" }, GRAFT_ERR_ARG, "option halo.budget is balance:0.5 on" },
        { { "halo.codec", "q8" }, { 0 }, GRAFT_ERR_STATE, "without adaptive widths" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct adapting_job job;
        const char                *words;
        int32_t                    rc;

        adapt_job_init(&job, "hybrid", cases[i].settings);
        job.odd[0] = cases[i].odd[0];
        job.odd[1] = cases[i].odd[1];
        words = adapting_run(&job, 3, &rc);
        ok(rc == cases[i].code && words != NULL && strstr(words, cases[i].said) != NULL,
           "all ranks report the same error: %s", words != NULL ? words : "nothing");
        adapting_fini(&job);
    }
}

/* Rows have no quantization error at first. Later they have one, and the budget can no longer be met. */
static void test_later(void)
{
    static const char *const   settings[] = { ADAPTIVE, "halo.budget", "error:1e-9", NULL };
    static struct adapting_job job;
    int64_t                    bytes, few;
    const char                *words;
    int32_t                    rc;

    adapt_job_init(&job, "post", settings);
    job.flat_epochs = 2;
    words = adapting_run(&job, 3, &rc);
    few = adapting_count(&job, 3, 2);
    adapting_fini(&job);
    adapt_job_init(&job, "post", settings);
    job.flat_epochs = 1;
    job.adapts = 2;
    if (words == NULL) words = adapting_run(&job, 3, &rc);
    if (words == NULL) words = adapting_check(&job, 3, &bytes);
    ok(words == NULL && few > 0 && adapting_count(&job, 3, 8) > 0 && adapting_count(&job, 3, 2) == 0,
       "if a limit can no longer be kept, the result is as near to it as with 8 bits%s%s", words != NULL ? ": " : "",
       words != NULL ? words : "");
    adapting_fini(&job);
}

static void test_starved(void)
{
    static const char *const   settings[] = { ADAPTIVE, NULL };
    static struct adapting_job job;
    const char                *words = NULL;
    int                        failed = 0;

    for (int32_t rank = 0; rank < 2; rank++) {
        int k = 0;

        do {
            int64_t bytes;
            int32_t rc;

            adapting_fini(&job);
            adapt_job_init(&job, "hybrid", settings);
            job.starves = ++k;
            job.starved_rank = rank;
            words = adapting_run(&job, 3, &rc);
            if (words == NULL) words = adapting_check(&job, 3, &bytes);
            else if (rc == GRAFT_ERR_PEER && strstr(words, "no memory") != NULL) words = NULL;
            failed += job.has_failed;
        } while (words == NULL && job.has_failed && k < 1000);
    }
    ok(words == NULL && failed > 30,
       "%d allocations fail in turn: all ranks report it, and the next assignment succeeds%s%s", failed,
       words != NULL ? ": " : "", words != NULL ? words : "");
    adapting_fini(&job);
}

/* -- how fast the network is -------------------------------------------------------------------------------------- */

static int32_t (*quick_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);

enum { SLOW_MICROSECONDS = 20000 };

/* A slow network: a message from rank 1 to rank 2 takes twenty milliseconds, and a hundred more for each megabyte. */
static int32_t adapt_slow_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                               graft_request **request, graft_error *error)
{
    if (to == 2 && bytes != 64) usleep((useconds_t)(SLOW_MICROSECONDS + bytes / 10));
    return quick_send(self, to, tag, data, bytes, request, error);
}

static int32_t adapt_measure(struct rank *r)
{
    struct gr_network(*found)[5][5] = r->all->arg;
    int32_t rc;

    if (r->rank == 1) r->transport.send = adapt_slow_send;
    rc = gr_comm_create(r->context, &r->transport, 20, &r->comm, &r->error);
    if (rc == GRAFT_OK) rc = gr_adaptive_network_measure(r->comm, &r->error);
    if (rc == GRAFT_OK) rc = gr_adaptive_network_measure(r->comm, &r->error); /* a measurement exists after this */
    if (rc == GRAFT_OK && r->rank == 0)
        memcpy(*found, r->comm->network, (size_t)(r->n_ranks * r->n_ranks) * sizeof(struct gr_network));
    return rc;
}

static void test_pace(int32_t n_ranks)
{
    static struct ranks      ranks;
    static struct gr_network found[5][5];
    const struct gr_network *pace = &found[0][0], *slow = pace + n_ranks + 2;
    /* Half of a round trip counts as one message. One of the two messages of a round trip is slow here, and on a busy
     * machine both take longer. */
    const double             gamma = SLOW_MICROSECONDS * 1e-6 / 2;
    const char              *left;
    int                      failed = 0, odd = 0;

    memset(found, 0, sizeof found);
    ranks_init(&ranks, n_ranks, 20, adapt_measure, found);
    quick_send = ranks.at[0].transport.send;
    ranks_run(&ranks);
    for (int32_t i = 0; i < n_ranks; i++) failed += ranks.at[i].rc < 0;
    left = ranks_fini(&ranks);
    for (int32_t i = 0; i < n_ranks * n_ranks; i++)
        odd += &pace[i] != slow && i / n_ranks != i % n_ranks && pace[i].theta > slow->theta / 2;
    ok(failed == 0 && left == NULL && odd == 0 && slow->theta > 0.8e-7 && slow->theta < 3e-7 &&
           slow->gamma > 0.8 * gamma && slow->gamma < 1.6 * gamma,
       "on %d ranks the slow pair is found, with %.3g s for a message and %.3g s for a byte%s%s", n_ranks, slow->gamma,
       slow->theta, left != NULL ? ": " : "", left != NULL ? left : "");
}

int main(void)
{
    static const int32_t ranks[] = { 1, 2, 3, 4, 7 };

    alarm(110);
    make_world();
    for (int i = 0; i < 5; i++) {
        test_weights("hybrid", ranks[i], SLICE_EVEN);
        test_weights("post", ranks[i], SLICE_ODD);
        test_weights("pre", ranks[i], SLICE_LAST);
        test_halo(ranks[i]);
    }
    test_adapt_bytes(2, "0");
    test_adapt_bytes(4, "0");
    test_adapt_bytes(4, "1");
    test_adapt_bytes(7, "1");
    test_adapt_error("0.02", "auto");
    test_adapt_error("0.001", "auto");
    test_adapt_error("0.02", "stochastic");
    test_trace("hybrid", 1);
    test_trace("post", 2);
    test_adapt_threads();
    test_adapt_balance("0.5");
    test_adapt_balance("0.99");
    test_adapt_balance("0.01");
    for (int lane = 0; lane < LANES; lane++) {
        test_adapt_limit(lane, 1.1);
        test_adapt_limit(lane, 0.9);
    }
    test_adapt_refused();
    test_later();
    test_starved();
    for (int32_t n = 3; n <= 5; n++) test_pace(n);
    sample_csr_fini(&graph);
    return done();
}
