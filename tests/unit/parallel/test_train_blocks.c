/* Checks the memory of ranks that share columns: the bytes that a formula gives must be those that a trainer takes,
 * also while it is made. Slices must shrink with the number of ranks, and with feature.graph=stream so must the graph.
 * Edges that do not fit into memory.limit are received, and if that does not fit either all ranks get one error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 24000, DEGREE = 24, WIDTH = 32, CLASSES = 4, ENTRIES = N * DEGREE, FEW = 40 };

/* Few training vertices, so that the layers of a step have fewer rows. */
#define MASKED "row_masks=yes layers=3"

static int64_t row_ptr[N + 1];
static int32_t column[ENTRIES], labels[N];
static float   features[(size_t)N * WIDTH];
static uint8_t split[N];

struct job {
    graft_dataset set;
    const char   *settings;
    double        graph[HOSTS_MOST], messages[HOSTS_MOST], items[HOSTS_MOST], live[HOSTS_MOST];
    double        peak[HOSTS_MOST]; /* peak of create() */
    int32_t       code[HOSTS_MOST], streams[HOSTS_MOST];
    int32_t       has_idle[HOSTS_MOST], has_halo[HOSTS_MOST];
    char          words[HOSTS_MOST][512];
};

static void make_set(graft_dataset *set, graft_csr *graph, graft_dense *dense)
{
    uint64_t state = 5;

    for (int64_t v = 0; v < N; v++) {
        row_ptr[v + 1] = row_ptr[v] + DEGREE;
        /* One column in each of DEGREE equal parts, so that columns are sorted and no edge repeats. */
        for (int64_t k = 0; k < DEGREE; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            column[v * DEGREE + k] = (int32_t)(k * (N / DEGREE) + (int64_t)((state >> 33) % (N / DEGREE)));
        }
        labels[v] = (int32_t)(v % CLASSES);
        split[v] = GRAFT_SPLIT_TRAIN;
        for (int64_t j = 0; j < WIDTH; j++) features[v * WIDTH + j] = (float)((v + 3 * j) % 11) / 11;
    }
    *graph = (graft_csr){
        .size = sizeof *graph, .n_rows = N, .n_cols = N, .index_type = GRAFT_I32, .row_ptr = row_ptr, .col_idx = column
    };
    *dense = (graft_dense){ sizeof *dense, GRAFT_F32, N, WIDTH, WIDTH, features };
    *set = (graft_dataset){ .size = sizeof *set,
                            .n_vertices = N,
                            .n_features = WIDTH,
                            .n_classes = CLASSES,
                            .graph = graph,
                            .features = dense,
                            .labels = labels,
                            .split = split };
}

static void read_items(struct host *host, graft_trainer *trainer, struct job *job)
{
    graft_memory_item item = GRAFT_INIT(graft_memory_item);

    for (int32_t i = 0; host->report->memory_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        if (strcmp(item.name, "graph") == 0) job->graph[host->rank] = (double)item.bytes;
        if (strcmp(item.name, "messages") == 0) job->messages[host->rank] = (double)item.bytes;
        job->items[host->rank] += (double)item.bytes;
    }
}

static int32_t blocks_body(struct host *host)
{
    static char         text[HOSTS_MOST][65536];
    struct job *const   job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    struct host_trainer t;
    int64_t             live;
    int32_t             rc;

    host_set_all(host->api, job->settings);
    t = (struct host_trainer){ .graph = NULL };
    host_slice_init(&t.slice, &job->set, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &t.slice.slice, &t.graph, &host->error);
    t.slice.dataset.over = t.graph;
    live = host->live_bytes;
    host->peak_bytes = live;
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &t.slice.dataset, &t.trainer, &host->error);
    job->peak[host->rank] = (double)(host->peak_bytes - live);
    if (rc == GRAFT_OK) {
        const int64_t before = host->live_bytes;

        read_items(host, t.trainer, job);
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && !(epoch.loss > 0)) rc = GRAFT_ERR_STATE;
        if (rc == GRAFT_OK) rc = host->train->explain(t.trainer, text[host->rank], sizeof *text, &host->error);
        job->streams[host->rank] = strstr(text[host->rank], "of other ranks are received in each sum") != NULL;
        job->has_idle[host->rank] = strstr(text[host->rank], "columns   of layer 0 are 3; none is on rank 0\n") != NULL;
        job->has_halo[host->rank] = strstr(text[host->rank], "rows that each rank receives") != NULL;
        host->train->destroy(t.trainer);
        t.trainer = NULL;
        job->live[host->rank] = (double)(before - host->live_bytes);
    }
    job->code[host->rank] = rc;
    snprintf(job->words[host->rank], sizeof *job->words, "%s", rc < 0 ? host->error.message : "");
    host_trainer_destroy(host, &t);
    return GRAFT_OK;
}

static int blocks_run(struct job *job, int32_t n_ranks, const char *settings)
{
    static const char *const list[] = { "model=sage",   "layers=2",        "hidden=32",     "parallel=feature",
                                        "row_masks=no", "order=given",     "self_loops=no", "reuse_input=no",
                                        "threads=1",    "halo.timeout=60", "symmetrize=no", NULL };
    static struct hosts      hosts;
    int                      right;

    *job = (struct job){ .set = job->set, .settings = settings };
    right = hosts_run(&hosts, n_ranks, list, blocks_body, job);
    if (!right || hosts_fault(&hosts) != NULL) diag("%s", hosts_fault(&hosts));
    return right;
}

static int is_within(double found, double expected)
{
    return fabs(found - expected) <= 0.1 * expected;
}

/* The formula: two directions, each with counts and columns (resident blocks have row pointers, streamed ones two
 * receive buffers); records to and from other ranks; and slices of input and result of a sum. */
static void test_formula(struct job *job, int32_t m, int streams)
{
    const double n = N, e = ENTRIES, held = 2 * (4 * n + 4 * e + 8 * n);
    const double own = 2 * (4 * n + 4 * e) / m, graph = streams ? own + 2 * (4 * n + 4 * e) / m + 8 * n / m : held;
    const double messages = 4 * n * WIDTH / m * (3 + 1.0 / m);
    int          right = blocks_run(job, m, streams ? "feature.graph=stream" : "feature.graph=replicate");

    for (int32_t q = 0; q < m; q++) {
        const int fits = job->code[q] == GRAFT_OK && is_within(job->graph[q], graph) &&
                         is_within(job->messages[q], messages) && is_within(job->live[q], job->items[q]) &&
                         is_within(job->peak[q], job->items[q]);

        if (!fits)
            diag("rank %d: %s; graph %.0f, by formula %.0f; messages %.0f, by formula %.0f; all %.0f, in use %.0f, "
                 "at most %.0f",
                 q, job->words[q], job->graph[q], graph, job->messages[q], messages, job->items[q], job->live[q],
                 job->peak[q]);
        right = right && fits && job->streams[q] == streams;
    }
    ok(right, "%d ranks, edges are %s: memory equals the formula", m, streams ? "received" : "held");
}

/* If edges take most of the memory, create() must not temporarily need more than the trainer keeps. */
static void test_peak(struct job *job, int32_t m, const char *settings)
{
    int right = blocks_run(job, m, settings);

    for (int32_t q = 0; q < m; q++) {
        const int fits = job->code[q] == GRAFT_OK && is_within(job->peak[q], job->items[q]);

        if (!fits) diag("rank %d: %s; at most %.0f, counted %.0f", q, job->words[q], job->peak[q], job->items[q]);
        right = right && fits;
    }
    ok(right, "%d ranks, %s: the peak of memory in create() is the memory that is reported", m, settings);
}

/* By default edges are streamed only where they do not fit. */
static void test_blocks_limit(struct job *job, const char *settings, int32_t m, int32_t code, int streams)
{
    int right = blocks_run(job, m, settings);

    for (int32_t q = 0; q < m; q++) {
        const int fits = job->code[q] == code && (code < 0 || job->streams[q] == streams) &&
                         strcmp(job->words[q], job->words[0]) == 0 &&
                         (code == GRAFT_OK || strstr(job->words[q], "memory.limit") != NULL);

        if (!fits) diag("rank %d: status %d, streams %d, '%s'", q, job->code[q], job->streams[q], job->words[q]);
        right = right && fits;
    }
    ok(right, "%d ranks, %s: edges are stored as %s", m, settings,
       code < 0  ? "refused"
       : streams ? "received"
                 : "held");
}

/* Read the options that an error recommends, and append them to `settings`. \return Whether a memory limit is among
 * them. */
static int read_advice(const char *sentence, const char *settings, char *options, size_t capacity)
{
    const char *said = strstr(sentence, "expected option");
    char        words[256], *rest = words;
    size_t      at = (size_t)snprintf(options, capacity, "%s", settings);

    snprintf(words, sizeof words, "%s", said != NULL ? said : "");
    words[strcspn(words, ";")] = '\0';
    for (char *word = strtok_r(words, " ,", &rest); word != NULL; word = strtok_r(NULL, " ,", &rest))
        if (strchr(word, '=') != NULL) at += (size_t)snprintf(options + at, capacity - at, " %s", word);
    return strstr(options + strlen(settings), "memory.limit=") != NULL;
}

/* The last memory limit among the options. */
static int limit_of(const char *settings)
{
    int limit = 0;

    for (const char *at = settings; (at = strstr(at, "memory.limit=")) != NULL; at++)
        sscanf(at, "memory.limit=%d", &limit);
    return limit;
}

/* Whether all ranks are refused with one sentence. */
static int all_refused(const struct job *job, int32_t m)
{
    int right = 1;

    for (int32_t q = 0; q < m; q++)
        right = right && job->code[q] == GRAFT_ERR_NOMEM && strcmp(job->words[q], job->words[0]) == 0;
    return right;
}

/* A limit that is too low must be refused with an error that recommends a limit. The recommended limit must be
 * sufficient, and with one MB less the same limit must be recommended. If an option keeps edges resident, the error
 * must have the memory of the edges of other ranks. */
static void test_blocks_advice(struct job *job, const char *settings, int32_t m)
{
    char advised[256], less[288], again[256];
    int  right = blocks_run(job, m, settings) && all_refused(job, m);

    diag("%s", job->words[0]);
    right = read_advice(job->words[0], settings, advised, sizeof advised) && right;
    right = right && (strstr(settings, "graph=replicate") != NULL) == (strstr(job->words[0], "; with feature") != NULL);
    right = right && blocks_run(job, m, advised) && job->code[0] == GRAFT_OK;
    if (!right) diag("%s: %s", advised, job->words[0]);
    ok(right, "%d ranks, %s: the memory limit that an error names is sufficient: %s", m, settings,
       advised + strlen(settings));
    snprintf(less, sizeof less, "%s memory.limit=%d", advised, limit_of(advised) - 1);
    right = blocks_run(job, m, less) && all_refused(job, m) && read_advice(job->words[0], "", again, sizeof again);
    right = right && limit_of(again) == limit_of(advised);
    if (!right) diag("%s: %s", less, job->words[0]);
    ok(right, "%d ranks, %s: with a limit that is 1 MB smaller the error names the same limit", m, settings);
}

/* The memory that a rank needs with these options. */
static double least_of(struct job *job, const char *settings, int32_t m)
{
    double least = 0;

    if (!blocks_run(job, m, settings) || !all_refused(job, m)) return 0;
    return sscanf(job->words[0], "with parallel=%*s a rank needs %lf MB", &least) == 1 ? least : 0;
}

/* Check the estimates for other modes in the error for a grid. */
static void test_mode_estimates(struct job *job, const char *settings)
{
    static const char *const modes[] = { "parallel=grid", "feature.graph=stream",
                                         "parallel=partition partition=block" };
    char                     set[128], words[512] = "";
    double                   exact[3], about = 0, low = 0, high = 0;
    const char              *feature, *partition;

    for (int i = 0; i < 3; i++) {
        snprintf(set, sizeof set, "%s %s", modes[i], settings);
        exact[i] = least_of(job, set, 4);
        if (i == 0) snprintf(words, sizeof words, "%s", job->words[0]);
    }
    feature = strstr(words, "; with parallel=feature");
    partition = strstr(words, "; with parallel=partition");
    if (feature != NULL) sscanf(feature, "; with parallel=feature and feature.graph=stream about %lf", &about);
    if (partition != NULL) sscanf(partition, "; with parallel=partition about %lf to %lf", &low, &high);
    diag("%s; exactly %.1f and %.1f", words, exact[1], exact[2]);
    ok(exact[0] > exact[1] && is_within(about, exact[1]) && low <= exact[2] && exact[2] <= 1.1 * high,
       "%s: explain() estimates the memory of other modes", settings);
}

/* explain() must say which ranks have no column, and nothing about boundary rows where there are none. */
static void test_explained(struct job *job, const char *settings, int has_idle, int has_halo)
{
    int right = blocks_run(job, 4, settings);

    for (int32_t q = 0; q < 4; q++)
        right = right && job->code[q] == GRAFT_OK && job->has_idle[q] == has_idle && job->has_halo[q] == has_halo;
    ok(right, "4 ranks, %s: explain() names the memory that exists", settings);
}

int main(void)
{
    struct job *job = calloc(1, sizeof *job);
    graft_csr   graph;
    graft_dense dense;

    alarm(300); /* it is slow under a sanitizer */
    make_set(&job->set, &graph, &dense);
    for (int32_t m = 2; m <= 8; m *= 2) {
        test_formula(job, m, 0);
        test_formula(job, m, 1);
        test_peak(job, m, "hidden=4");
        test_peak(job, m, "hidden=4 feature.graph=stream");
        test_peak(job, m, "model=gcn hidden=4 self_loops=yes symmetrize=yes row_masks=yes feature.graph=stream");
    }
    test_blocks_limit(job, "memory.limit=100", 4, GRAFT_OK, 0);
    test_blocks_limit(job, "memory.limit=12", 4, GRAFT_OK, 1);
    test_blocks_limit(job, "memory.limit=12 feature.graph=replicate", 4, GRAFT_ERR_NOMEM, 0);
    test_blocks_limit(job, "memory.limit=3", 4, GRAFT_ERR_NOMEM, 0);
    test_blocks_advice(job, "memory.limit=6", 4);
    test_blocks_advice(job, "memory.limit=12 feature.graph=replicate", 4);
    test_blocks_advice(job, "parallel=grid memory.limit=6", 4);
    test_blocks_advice(job, "parallel=partition partition=block memory.limit=6", 4);
    test_blocks_advice(job, "parallel=partition partition=block memory.limit=9", 4);
    test_blocks_advice(job, "parallel=auto partition=block memory.limit=6", 4);
    for (int64_t v = FEW; v < N; v++) split[v] = GRAFT_SPLIT_TEST;
    test_blocks_advice(job, MASKED " feature.graph=replicate memory.limit=1", 4);
    test_blocks_advice(job, MASKED " feature.graph=stream memory.limit=1", 4);
    test_blocks_advice(job, MASKED " parallel=grid memory.limit=1", 4);
    test_blocks_advice(job, MASKED " parallel=grid feature.graph=stream memory.limit=15", 4);
    test_blocks_advice(job, "aggregator=max row_masks=no memory.limit=1", 4);
    test_blocks_advice(job, "model=gat parallel=partition memory.limit=1", 4);
    test_mode_estimates(job, "hidden=64 memory.limit=1");
    test_mode_estimates(job, MASKED " memory.limit=1");
    test_explained(job, "hidden=3", 1, 0);
    test_explained(job, "hidden=4", 0, 0);
    test_explained(job, "parallel=grid hidden=3", 0, 1);
    free(job);
    return done();
}
