/* Checks the assignment of bit widths against the integer program that glpsol of GLPK solves, and for few groups
 * against all assignments. An assignment that is not optimal within the documented gap fails.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/sample.h"

#include "adaptive/assign.h"
#include "base/error.h"
#include "graft_load.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { GROUPS = 60, CHANNELS = 24, EXCHANGES = 4 };

static const int        widths[3] = { 2, 4, 8 };
static const graft_api *api;
static graft_error      error = GRAFT_INIT(graft_error);

/* An assignment problem that owns its arrays. */
struct problem {
    struct gr_assign_group   groups[GROUPS];
    struct gr_assign_channel channels[CHANNELS];
    struct gr_assign         assign;
};

static void problem_init(struct problem *p, struct sample *sample, int64_t groups, int32_t channels, int32_t exchanges)
{
    p->assign = (struct gr_assign){ .groups = p->groups,
                                    .channels = p->channels,
                                    .n_groups = groups,
                                    .n_channels = channels,
                                    .n_exchanges = exchanges };
    for (int32_t c = 0; c < channels; c++)
        p->channels[c] = (struct gr_assign_channel){ 1 + sample_below(sample, 300), sample_real(sample, 0, 1e-4),
                                                     sample_real(sample, 1e-9, 1e-8), c % exchanges };
    for (int64_t i = 0; i < groups; i++)
        p->groups[i] = (struct gr_assign_group){ 1 + sample_below(sample, 400), exp(sample_real(sample, -5, 5)),
                                                 (int32_t)sample_below(sample, channels), 0 };
}

/* The terms of the objective, computed by its definition. */
struct terms {
    double  variance, seconds;
    int64_t bytes;
};

static double assign_lost(const struct gr_assign_group *g, int bits)
{
    return g->variance / pow(pow(2, bits) - 1, 2);
}

static int64_t sent(const struct problem *p, const struct gr_assign_group *g, int bits)
{
    return g->rows * ((p->channels[g->channel].width * bits + 7) / 8 + 4);
}

/* The terms if all groups have `bits`, or with 0 the widths that they have now. */
static struct terms terms_of(const struct problem *p, int bits)
{
    struct terms t = { 0 };

    for (int64_t i = 0; i < p->assign.n_groups; i++) {
        const int b = bits > 0 ? bits : p->groups[i].bits;

        t.variance += assign_lost(&p->groups[i], b);
        t.bytes += sent(p, &p->groups[i], b);
    }
    for (int32_t x = 0; x < p->assign.n_exchanges; x++) {
        double slowest = 0;

        for (int32_t c = 0; c < p->assign.n_channels; c++) {
            int64_t bytes = 0;

            for (int64_t i = 0; i < p->assign.n_groups; i++)
                if (p->groups[i].channel == c) bytes += sent(p, &p->groups[i], bits > 0 ? bits : p->groups[i].bits);
            if (p->channels[c].exchange == x && bytes > 0)
                slowest = fmax(slowest, p->channels[c].gamma + p->channels[c].theta * (double)bytes);
        }
        t.seconds += slowest;
    }
    return t;
}

static void weights_of(const struct problem *p, double lambda, double *variance, double *seconds)
{
    const struct terms few = terms_of(p, 2), many = terms_of(p, 8);

    *variance = few.variance > many.variance ? lambda / (few.variance - many.variance) : 0;
    *seconds = many.seconds > few.seconds ? (1 - lambda) / (many.seconds - few.seconds) : 0;
}

static double assign_objective(const struct problem *p, double lambda)
{
    const struct terms t = terms_of(p, 0);
    double             variance, seconds;

    weights_of(p, lambda, &variance, &seconds);
    return variance * t.variance + seconds * t.seconds;
}

/* The smallest objective over all assignments. */
static double enumerate(struct problem *p, double lambda, int64_t at)
{
    double best = INFINITY;

    if (at == p->assign.n_groups) return assign_objective(p, lambda);
    for (int k = 0; k < 3; k++) {
        p->groups[at].bits = widths[k];
        best = fmin(best, enumerate(p, lambda, at + 1));
    }
    return best;
}

static void write_program(FILE *file, const struct problem *p, double lambda)
{
    double variance, seconds;

    weights_of(p, lambda, &variance, &seconds);
    fprintf(file, "Minimize\n obj: 0 one");
    for (int64_t i = 0; i < p->assign.n_groups; i++)
        for (int k = 0; k < 3; k++)
            fprintf(file, "\n + %.15g x%lld_%d", variance * assign_lost(&p->groups[i], widths[k]), (long long)i,
                    widths[k]);
    for (int32_t x = 0; x < p->assign.n_exchanges; x++) fprintf(file, "\n + %.15g z%d", seconds, x);
    fprintf(file, "\nSubject To\n");
    for (int64_t i = 0; i < p->assign.n_groups; i++)
        fprintf(file, " x%lld_2 + x%lld_4 + x%lld_8 = 1\n", (long long)i, (long long)i, (long long)i);
    for (int32_t c = 0; c < p->assign.n_channels; c++) {
        int any = 0;

        for (int64_t i = 0; i < p->assign.n_groups; i++) any |= p->groups[i].channel == c;
        if (!any) continue;
        fprintf(file, " z%d", p->channels[c].exchange);
        for (int64_t i = 0; i < p->assign.n_groups; i++)
            for (int k = 0; k < 3 && p->groups[i].channel == c; k++)
                fprintf(file, "\n - %.15g x%lld_%d", p->channels[c].theta * (double)sent(p, &p->groups[i], widths[k]),
                        (long long)i, widths[k]);
        fprintf(file, "\n >= %.15g\n", p->channels[c].gamma);
    }
    fprintf(file, "Binary\n");
    for (int64_t i = 0; i < p->assign.n_groups; i++)
        fprintf(file, " x%lld_2 x%lld_4 x%lld_8\n", (long long)i, (long long)i, (long long)i);
    fprintf(file, "End\n");
}

/* The objective that glpsol finds; negative if it is not installed or found no optimum. */
static double solve(const struct problem *p, double lambda)
{
    char   name[] = "/tmp/graft-assign-XXXXXX", command[200], line[200];
    double found = -1;
    int    optimal = 0;
    FILE  *file = fdopen(mkstemp(name), "w");

    write_program(file, p, lambda);
    fclose(file);
    snprintf(command, sizeof command, "glpsol --lp %s --mipgap 0.001 --tmlim 20 -o %s.out >%s.log 2>&1", name, name,
             name);
    if (system(command) == 0) {
        snprintf(command, sizeof command, "%s.out", name);
        file = fopen(command, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            optimal |= strstr(line, "OPTIMAL") != NULL;
            if (strncmp(line, "Objective:", 10) == 0) found = atof(strchr(line, '=') + 1);
        }
        if (file != NULL) fclose(file);
    }
    snprintf(command, sizeof command, "rm -f %s %s.out %s.log", name, name, name);
    if (system(command) != 0) diag("%s is left", name);
    return optimal ? found : -1;
}

static void test_enumerated(void)
{
    struct sample  sample = { 1 };
    struct problem p;
    double         worst = 0;

    for (int turn = 0; turn < 40; turn++) {
        const double lambda = sample_real(&sample, 0, 1);
        double       ours;

        problem_init(&p, &sample, 1 + turn % 7, 1 + (int32_t)sample_below(&sample, 4), 1 + turn % 2);
        gr_adaptive_assign_balance(api->context, &p.assign, lambda, &error);
        ours = assign_objective(&p, lambda);
        worst = fmax(worst, ours / enumerate(&p, lambda, 0) - 1);
    }
    ok(worst <= 0.01,
       "for 40 problems of 1 to 7 groups all assignments are within 1 %% of the best of all "
       "choices: %.3g %%",
       100 * worst);
}

static void test_solver(void)
{
    struct sample  sample = { 2 };
    struct problem p;
    double         worst = 0;
    int            solved = 0;

    if (system("glpsol --version >/dev/null 2>&1") != 0) {
        skip(1, "the program glpsol (package glpk-utils) is not installed");
        return;
    }
    for (int turn = 0; turn < 12; turn++) {
        const double lambda = turn < 6 ? 0.5 : sample_real(&sample, 0.1, 0.9);
        double       best;

        problem_init(&p, &sample, 20 + 3 * turn, 3 + turn, 1 + turn % EXCHANGES);
        gr_adaptive_assign_balance(api->context, &p.assign, lambda, &error);
        best = solve(&p, lambda);
        if (best < 0) continue;
        solved++;
        worst = fmax(worst, assign_objective(&p, lambda) / best - 1);
        diag("%lld groups, %d channels, %d exchanges, lambda %.2f: %.5f, glpsol %.5f", (long long)p.assign.n_groups,
             p.assign.n_channels, p.assign.n_exchanges, lambda, assign_objective(&p, lambda), best);
    }
    ok(solved >= 6 && worst <= 0.01, "assignments for %d problems are within 1 %% of the optimum of glpsol: %.3g %%",
       solved, 100 * worst);
}

static void test_budgets(void)
{
    struct sample  sample = { 3 };
    struct problem p;
    const char    *words = NULL;

    for (int turn = 0; turn < 200 && words == NULL; turn++) {
        struct terms few, many, got;
        double       variance;
        int64_t      bytes;

        problem_init(&p, &sample, 1 + turn % GROUPS, 1 + turn % CHANNELS, 1);
        few = terms_of(&p, 2);
        many = terms_of(&p, 8);
        bytes = few.bytes + sample_below(&sample, many.bytes - few.bytes + 1);
        if (gr_adaptive_assign_within_bytes(api->context, &p.assign, bytes, &error) != GRAFT_OK) words = error.message;
        got = terms_of(&p, 0);
        if (got.bytes > bytes) words = "more bytes than wanted";
        if (gr_adaptive_assign_within_bytes(api->context, &p.assign, few.bytes - 1, &error) != GRAFT_ERR_OPTION)
            words = "a budget that cannot be met is met";
        variance = sample_real(&sample, many.variance, few.variance);
        if (gr_adaptive_assign_within_variance(api->context, &p.assign, variance, &error) != GRAFT_OK)
            words = error.message;
        got = terms_of(&p, 0);
        if (got.variance > variance * (1 + 1e-9)) words = "more is lost than wanted";
        if (gr_adaptive_assign_within_variance(api->context, &p.assign, many.variance * 0.999, &error) !=
            GRAFT_ERR_OPTION)
            words = "a loss that cannot be met is met";
    }
    ok(words == NULL, "budgets of bytes and of quantization error are kept%s%s", words != NULL ? ": " : "",
       words != NULL ? words : "");
    ok(strstr(error.message, "with 8 bits") != NULL, "a budget that cannot be kept is reported: %s", error.message);
}

/* Groups of equal elements have no quantization error, and small groups may have more bits in the same number of bytes.
 * The other groups must get the widths that they get without such groups. */
static void test_nothing_to_save(void)
{
    struct sample  sample = { 5 };
    struct problem p;
    double         worst = 0;

    for (int turn = 0; turn < 50; turn++) {
        int64_t few, more = 0;
        double  alone;

        problem_init(&p, &sample, 20, 5, 1);
        few = terms_of(&p, 2).bytes + sample_below(&sample, terms_of(&p, 4).bytes);
        gr_adaptive_assign_within_bytes(api->context, &p.assign, few, &error);
        alone = terms_of(&p, 0).variance;
        p.assign.n_groups = GROUPS;
        p.assign.n_channels = 7;
        for (int32_t c = 5; c < 7; c++) p.channels[c] = (struct gr_assign_channel){ c - 4, 0, 1e-9, 0 };
        for (int64_t i = GROUPS - 1; i >= 0; i--) { /* one of three groups is a copy of an earlier one */
            if (i % 3 == 0) p.groups[i] = p.groups[i / 3];
            else p.groups[i] = (struct gr_assign_group){ 3, 0, 5 + (int32_t)(i % 2), 0 };
            if (i % 3 != 0) more += sent(&p, &p.groups[i], 2);
        }
        gr_adaptive_assign_within_bytes(api->context, &p.assign, few + more, &error);
        worst = fmax(worst, terms_of(&p, 0).variance / alone - 1);
    }
    ok(worst < 1e-12, "groups without quantization error take no bits from other groups: %g", worst);
}

/* The extreme widths, and problems that have no solution to look for. */
static void test_ends(void)
{
    struct sample         sample = { 4 };
    struct gr_assign_cost cost;
    struct problem        p;
    int                   few = 0, many = 0;

    problem_init(&p, &sample, 30, 5, 2);
    gr_adaptive_assign_balance(api->context, &p.assign, 1, &error);
    for (int i = 0; i < 30; i++) many += p.groups[i].bits == 8;
    gr_adaptive_assign_balance(api->context, &p.assign, 0, &error);
    gr_adaptive_assign_cost(api->context, &p.assign, &cost, &error);
    for (int i = 0; i < 30; i++) few += p.groups[i].bits == 2;
    ok(many == 30 && fabs(cost.seconds - terms_of(&p, 2).seconds) < 1e-12 && few >= 1,
       "with lambda=1 all groups get 8 bits; with lambda=0 no time is spent beyond that of 2 bits");
    p.assign.n_groups = 0;
    ok(gr_adaptive_assign_balance(api->context, &p.assign, 0.5, &error) == GRAFT_OK,
       "an assignment of no groups succeeds");
}

int main(void)
{
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    alarm(110);
    test_enumerated();
    test_solver();
    test_budgets();
    test_nothing_to_save();
    test_ends();
    api->close(api->context);
    return done();
}
