/* Checks parallel=auto: which ways to divide sums it compares, which one it takes, what it predicts, and that results
 * are those of one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAYS_MOST = 8, VERTICES = 2048, DEGREE_MOST = 70, RANKS = 4 };

/* A line of the table that explain() prints. */
struct way {
    int    columns, is_chosen, is_limited;
    char   method[16];
    double halo_rows, transposed, seconds;
};

static int read_ways(const char *explained, struct way *way)
{
    const char *line = strstr(explained, "group of   partition");
    int         count = 0;

    while (line != NULL && (line = strchr(line, '\n')) != NULL && count < WAYS_MOST) {
        char        mark[32] = "";
        struct way *w = &way[count];

        line++;
        if (sscanf(line, "%d %15s %lf %lf %lf%31[^\n]", &w->columns, w->method, &w->halo_rows, &w->transposed,
                   &w->seconds, mark) < 5)
            break;
        w->is_chosen = strcmp(mark, "  chosen") == 0;
        w->is_limited = strcmp(mark, "  over memory.limit") == 0;
        count++;
    }
    return count;
}

/* Whether the reported rates are possible for any computer, under a sanitizer too. */
static int has_rates(const char *explained)
{
    const char *line = strstr(explained, "MB/s between ranks, ");
    double      latency, elements, operations;

    return line != NULL &&
           sscanf(line,
                  "MB/s between ranks, %lf us a message; a rank sums %lf G elements/s and multiplies at %lf GFLOP/s",
                  &latency, &elements, &operations) == 3 &&
           latency > 0 && elements > 1e-4 && elements < 1e3 && operations > 1e-4 && operations < 1e5;
}

/* The table must have the divisors of the number of ranks in order, and of those that memory allows the fastest must be
 * chosen. The result is NULL or an error in words. */
static const char *check_ways(const char *explained, int32_t n_ranks, double n, struct way *chosen)
{
    struct way way[WAYS_MOST];
    const int  count = read_ways(explained, way);
    int        at = 0, n_chosen = 0;

    if (!has_rates(explained)) return "no rates are measured";
    for (int c = 1; c <= n_ranks; c++) {
        if (n_ranks % c != 0) continue;
        if (at >= count || way[at].columns != c) return "a number of columns is missing";
        if (fabs(way[at].transposed - 2 * n * (c - 1) / c) > 1) return "another number of transposed rows";
        if (c == n_ranks && way[at].halo_rows != 0) return "one group has a halo";
        n_chosen += way[at].is_chosen;
        if (way[at].is_chosen) *chosen = way[at];
        at++;
    }
    if (n_chosen != 1) return "not one way is chosen";
    for (int i = 0; i < count; i++)
        if (!way[i].is_limited && way[i].seconds < chosen->seconds) return "a faster way is not chosen";
    return NULL;
}

/* -- results ------------------------------------------------------------------------------------------------------ */

/* Compare the predicted bytes of the chosen way with the sent ones. */
static const char *check_prediction(const char *explained, const struct way *chosen, int is_coded)
{
    const double most = chosen->columns == 1 ? 0.002 : is_coded ? 0.02 : 0.003;
    const char  *line = strstr(explained, "parallel  a step is predicted to send"), *sent;
    char         words[32];
    double       predicted = -1, measured = -1;

    if (line == NULL || (sent = strstr(line, "; the last one sent ")) == NULL) return "nothing is predicted";
    snprintf(words, sizeof words, " MB in groups of %d", chosen->columns);
    for (const char *at = line; (at = strstr(at, words)) != NULL; at++) {
        const char *begin = at;

        if (at[strlen(words)] != ',' && at[strlen(words)] != ' ') continue;
        while (begin[-1] != ' ') begin--;
        predicted = atof(begin);
        break;
    }
    measured = atof(sent + strlen("; the last one sent "));
    /* A slice may be one column wider than another, and a quantized record may be partly filled. */
    if (!(predicted > 0) || fabs(predicted - measured) > most * measured) {
        diag("%g MB predicted, %g MB sent by %d columns", predicted, measured, chosen->columns);
        return "other bytes are sent than predicted";
    }
    return NULL;
}

static void test_chosen_way(int number, const char *model, int32_t n_ranks, const char *more)
{
    const struct shape shape = { 3000, strstr(more, "row_masks=yes") != NULL ? FEW : 0 };
    struct job        *job = calloc(1, sizeof *job);
    struct sample      sample = { (uint64_t)number };
    struct settings    settings;
    struct way         chosen = { 0 };
    const char        *words;

    train_job_init(job, &sample, &shape);
    train_settings_init(&settings, model, number % 2 == 0 ? "hash" : "block", "hybrid", more);
    words = train_run_case(job, n_ranks, &settings);
    if (words == NULL) words = check_ways(job->at[0].explained, n_ranks, (double)shape.n, &chosen);
    if (words == NULL) words = check_prediction(job->at[0].explained, &chosen, strstr(more, "codec") != NULL);
    if (words == NULL && !(train_worst_of(job) <= (strstr(more, "codec") != NULL ? 0.05 : 1e-4)))
        words = "other results than in one process";
    if (!ok(words == NULL,
            "%s on %d ranks, %s: the time is predicted, a strategy is chosen, and training equals "
            "one process",
            model, n_ranks, more))
        diag("%s\n%s", words, job->at[0].explained);
    train_job_fini(job);
    free(job);
}

/* -- choices ------------------------------------------------------------------------------------------------------ */

/* A graph over ranks, and its description. */
struct question {
    struct job job;
    int        gives_owners, disagrees;
    char       explained[HOSTS_MOST][8192];
    int32_t    owner[VERTICES], column[VERTICES * DEGREE_MOST];
    int64_t    row_ptr[VERTICES + 1];
};

static int32_t question_body(struct host *host)
{
    struct question  *q = host->all->arg;
    struct host_slice s;
    graft_graph      *graph = NULL;
    int32_t           rc;

    host_slice_init(&s, &q->job.set.dataset, SLICES_EVEN, host->rank, host->n_ranks);
    if (q->disagrees && host->rank == 1) host_set_all(host->api, "model=gat halo.codec=q2");
    if (q->gives_owners) s.slice.owner = q->owner + s.first;
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    if (rc == GRAFT_OK)
        rc = host->graphs->explain(graph, q->explained[host->rank], sizeof q->explained[0], &host->error);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

/* Make self-loops only, so that no edge joins two ranks; or edges from everywhere to everywhere, of which option
 * halo.cover=post sends each end. */
static void make_edges(struct question *q, int64_t degree, int is_local)
{
    graft_csr *graph = &q->job.set.graph.csr;

    for (int64_t v = 0; v < VERTICES; v++) {
        q->owner[v] = (int32_t)(v * RANKS / VERTICES);
        q->row_ptr[v + 1] = (v + 1) * degree;
        for (int64_t e = v * degree; e < (v + 1) * degree; e++)
            q->column[e] = is_local ? (int32_t)v : (int32_t)((v * 31 + e * 7919) % VERTICES);
    }
    graph->row_ptr = q->row_ptr;
    graph->col_idx = q->column;
    graph->index_type = GRAFT_I32;
    graph->values = NULL;
}

static void ask(struct question *q, struct hosts *hosts, int64_t degree, int is_local, const char *const *settings)
{
    static const struct shape shape = { VERTICES, 0 };
    struct sample             sample = { 5 };

    train_job_init(&q->job, &sample, &shape);
    make_edges(q, degree, is_local);
    hosts_run(hosts, RANKS, settings, question_body, q);
    train_job_fini(&q->job);
}

/* Owners must be parts by a method, without another prediction in seconds, or dealt out in turn. */
static const char *check_described(const char *explained, int shares_all, int has_method)
{
    const int is_dealt = strstr(explained, "partition: none, because all ranks share the columns") != NULL;

    if (strstr(explained, "predicted for an epoch: ") != NULL) return "an epoch is predicted twice";
    return is_dealt == (shares_all && has_method) ? NULL : "wrong owners are described";
}

static void test_choice(const char *name, int is_local, int gives_owners, int columns, const char *const *settings)
{
    static struct question q;
    static struct hosts    hosts;
    struct way             chosen = { 0 };
    const char            *words;

    q.gives_owners = gives_owners;
    ask(&q, &hosts, 8, is_local, settings);
    words = hosts_fault(&hosts);
    if (words == NULL) words = check_ways(q.explained[0], RANKS, is_local ? 0 : VERTICES, &chosen);
    for (int32_t i = 1; i < RANKS && words == NULL; i++)
        if (strcmp(q.explained[i], q.explained[0]) != 0) words = "ranks explain other choices";
    if (words == NULL && chosen.columns != columns) words = "another way is chosen";
    if (words == NULL)
        words = check_described(q.explained[0], columns == RANKS,
                                !gives_owners && strcmp(settings[0], "partition=given") != 0);
    if (!ok(words == NULL, "%s: each rank has %d columns", name, columns)) diag("%s\n%s", words, q.explained[0]);
}

static void test_rows_alone(const char *setting, const char *reason)
{
    static struct question q;
    static struct hosts    hosts;
    const char *const      settings[] = { "partition=block", "parallel=auto", setting, NULL };
    const char            *words;

    q.gives_owners = 0;
    ask(&q, &hosts, 8, 0, settings);
    words = hosts_fault(&hosts);
    if (words == NULL && strstr(q.explained[0], reason) == NULL) words = "no reason";
    if (words == NULL && strstr(q.explained[0], "group of ") != NULL) words = "ways are compared";
    if (!ok(words == NULL, "%s is trained with shared rows: %s", setting, reason))
        diag("%s\n%s", words, q.explained[0]);
}

static void test_file_refused(void)
{
    static struct question q;
    static struct hosts    hosts;
    const char *const      settings[] = { "partition=block", "parallel=auto", "partition.file=/nowhere/owners", NULL };
    int                    alike = 1;

    q.gives_owners = 0;
    ask(&q, &hosts, 8, 0, settings);
    for (int i = 0; i < RANKS; i++)
        alike &= hosts.at[i].rc == GRAFT_ERR_OPTION &&
                 strstr(hosts.at[i].error.message, "parallel=auto compares several") != NULL;
    ok_or(alike, hosts.at[0].error.message, "a file of owners is refused on all ranks");
}

/* Edges take 2 x 4 bytes per entry. Where they are streamed a rank has half of them, own and received ones, and the
 * others send 3 x 4 bytes per entry and row. Partition parallelism is allowed in any case. */
static void test_limit(const char *edges, const char *limit, int is_limited, int streams)
{
    static struct question q;
    static struct hosts    hosts;
    const char *const      settings[] = {
        "partition=hash", "halo.cover=post", "parallel=auto", "hidden=512", edges, limit, NULL
    };
    const double bytes = 3 * 4 * (double)VERTICES * (1 + DEGREE_MOST);
    struct way   way[WAYS_MOST];
    double       sent = 0;
    const char  *line;
    int          count, as_expected;

    q.gives_owners = 0;
    ask(&q, &hosts, DEGREE_MOST, 0, settings);
    count = read_ways(q.explained[0], way);
    line = strstr(q.explained[0], "\nedges are sent in each sum where 4 ranks share columns, ");
    if (line != NULL) sscanf(line, "\nedges are sent in each sum where 4 ranks share columns, %lf MB", &sent);
    as_expected = hosts_fault(&hosts) == NULL && count == 3 && way[2].is_limited == is_limited && !way[1].is_limited &&
                  (line != NULL) == streams && (!streams || fabs(1e6 * sent / bytes - 1) < 1e-3);
    ok_or(as_expected, q.explained[0], "%s, %s: the edges of all rows are %s memory.limit%s", edges, limit,
          is_limited ? "over" : "within", streams ? ", streamed" : "");
}

/* Read the number of halo rows of all ranks. */
static int64_t read_halo(const char *explained)
{
    const char *line = strstr(explained, "\nall ");
    long long   halo = -1;

    return line != NULL && sscanf(line, "\nall %*d %*d %*d %lld", &halo) == 1 ? (int64_t)halo : -1;
}

/* The halo must have about as few rows as that of the parts which ranks find from slices without parallel=auto. Parts
 * that are predicted to be faster may have more rows where the network is fast and the others are less even. */
static void test_rows_of_slices(int64_t degree)
{
    static struct question q;
    static struct hosts    hosts;
    const char *const      rows[] = { "partition=stream", "halo.cover=post", NULL };
    const char *const      ways[] = { "partition=stream", "halo.cover=post", "parallel=auto", NULL };
    struct way             way[WAYS_MOST];
    int64_t                halo;

    q.gives_owners = 0;
    ask(&q, &hosts, degree, 0, rows);
    halo = read_halo(q.explained[0]);
    ask(&q, &hosts, degree, 0, ways);
    ok_or(halo > 0 && hosts_fault(&hosts) == NULL && read_ways(q.explained[0], way) > 0 &&
              2 * way[0].halo_rows <= 3 * halo,
          q.explained[0], "rows alone are at most 1.5 times those of parts by slices, %lld", (long long)halo);
}

/* Until there is a trainer the options of the model are those of rank 0. */
static void test_disagreement(const char *const *settings)
{
    static struct question q;
    static struct hosts    hosts;
    struct way             chosen = { 0 };
    const char            *words;

    q.disagrees = 1;
    ask(&q, &hosts, 8, 0, settings);
    words = hosts_fault(&hosts);
    if (words == NULL) words = check_ways(q.explained[0], RANKS, VERTICES, &chosen);
    ok_or(words == NULL, words, "a rank with another model takes part in the comparison");
}

int main(void)
{
    const char *const far[] = { "partition=given", "halo.cover=post", "parallel=auto", "hidden=512", NULL };
    const char *const any[] = { "partition=auto", "halo.cover=post", "parallel=auto", "hidden=512", NULL };
    const char *const hash[] = { "partition=hash", "halo.cover=post", "parallel=auto", "hidden=512", NULL };

    alarm(300);
    train_shared = "parallel=auto row_masks=no";
    test_chosen_way(0, "sage", 4, "reuse_input=no");
    test_chosen_way(1, "gcn", 6, "reuse_input=no input_dropout=0.2");
    test_chosen_way(2, "gin", 8, "reuse_input=yes");
    test_chosen_way(3, "sage", 3, "halo.codec=q8");
    test_chosen_way(5, "sage", 4, "recompute=yes");
    test_chosen_way(7, "sage", 4, "row_masks=yes partition=block");
    test_chosen_way(6, "gcn", 4, "reuse_input=no halo.cover=post feature.graph=stream");
    test_choice("no edge between ranks", 1, 0, 1, far);
    test_choice("no edge between ranks, any method", 1, 0, 1, any);
    test_choice("edges between all ranks", 0, 0, 4, hash);
    test_choice("edges between all ranks, owners of the host", 0, 1, 4, hash);
    test_choice("owners of the host without an edge between them", 1, 1, 1, hash);
    for (int64_t degree = 1; degree <= 8; degree++) test_rows_of_slices(degree);
    test_limit("feature.graph=replicate", "memory.limit=1", 1, 0);
    test_limit("feature.graph=auto", "memory.limit=1", 0, 1);
    test_limit("feature.graph=auto", "memory.limit=0", 0, 0);
    test_limit("feature.graph=stream", "memory.limit=0", 0, 1);
    test_rows_alone("model=gat", "attention reads whole rows");
    test_rows_alone("aggregator=max", "not predicted for maxima and minima");
    test_rows_alone("aggregator=min", "not predicted for maxima and minima");
    test_rows_alone("model=mlp", "mlp has no sums");
    test_rows_alone("halo.staleness=1", "two epochs old");
    test_rows_alone("halo.codec=adaptive", "decide no adaptive width");
    test_rows_alone("halo.codec=q4", "fewer than 8 bits");
    test_file_refused();
    test_disagreement(hash);
    return done();
}
