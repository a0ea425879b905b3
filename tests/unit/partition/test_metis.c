/* Checks partitions by another program: test_metis PARTITIONER [GRAFT-METIS]. Covers programs that misbehave, hosts
 * that wait for children themselves, graft-metis on many kinds of graphs and on bad input, and the choice of the best
 * method.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include "base/clock.h"
#include "draft/graft_partitioner.h"
#include "partition/child.h"
#include "partition/choose.h"
#include "partition/metis.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct strict_host host;
static graft_context     *context;
#define INPUT(whole, number, call)                                                                                     \
    (&(struct gr_partition_input){ .context = context, .slice = whole, .parts = number, .meanwhile = call })

/* -- what must not change ----------------------------------------------------------------------------------------- */

struct manners {
    int              files;
    sigset_t         mask;
    struct sigaction action[NSIG];
};

static void metis_look(struct manners *manners)
{
    DIR           *list = opendir("/proc/self/fd");
    struct dirent *entry;

    memset(manners, 0, sizeof *manners);
    while ((entry = readdir(list)) != NULL) manners->files += entry->d_name[0] != '.';
    closedir(list);
    sigprocmask(SIG_SETMASK, NULL, &manners->mask);
    for (int i = 1; i < NSIG; i++) sigaction(i, NULL, &manners->action[i]);
}

/* What has changed in the process, or that a child is left; NULL if nothing. */
static const char *change_since(const struct manners *was)
{
    struct manners is;

    metis_look(&is);
    if (is.files != was->files) return "a file is left open";
    if (memcmp(&is.mask, &was->mask, sizeof is.mask) != 0) return "the mask of signals has changed";
    for (int i = 1; i < NSIG; i++)
        if (is.action[i].sa_handler != was->action[i].sa_handler) return "a handler of signals has changed";
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) return "a child is left";
    return NULL;
}

/* -- programs ----------------------------------------------------------------------------------------------------- */

static void metis_choose(const char *program, const char *timeout, const char *behaviour)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        partition[32];

    snprintf(partition, sizeof partition, "metis:0:%s", timeout);
    if (context->api->set(context, "partition.program", program, &error) < 0 ||
        context->api->set(context, "partition", partition, &error) < 0)
        abort();
    setenv("GRAFT_TEST_BEHAVIOUR", behaviour, 1);
}

/* A graph so large that neither side can write all before the other reads. */
static void large_graph(struct graph *graph)
{
    const int64_t n = 200000;

    *graph = (struct graph){ .name = "a large ring" };
    graph->row_ptr = oracle_new(n + 1, sizeof *graph->row_ptr);
    graph->col_idx = oracle_new(n, sizeof(int32_t));
    graph->train_mask = oracle_new(n, 1);
    for (int64_t v = 0; v < n; v++) {
        graph->row_ptr[v + 1] = v + 1;
        ((int32_t *)graph->col_idx)[v] = (int32_t)((v + 1) % n);
    }
    graph->rows = (graft_csr){ sizeof(graft_csr), GRAFT_I32, 0, 0, n, n, graph->row_ptr, graph->col_idx, NULL, NULL };
    graph->slice = (struct gr_slice){ &graph->rows, 0, graph->train_mask };
}

static void test_good(const struct graph *graph, const char *program)
{
    static const char *const behaviours[] = { "good", "early", "talks", "files", "one part" };
    const int64_t            n = graph->rows.n_rows;
    int32_t                 *owner = oracle_new(n, sizeof *owner);

    for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++) {
        graft_error    error = GRAFT_INIT(graft_error);
        struct manners manners;
        const char    *change;
        int64_t        wrong = 0;
        int32_t        rc;

        metis_choose(program, "60", behaviours[i]);
        metis_look(&manners);
        rc = gr_partition_metis(INPUT(&graph->slice, 8, NULL), owner, &error);
        change = change_since(&manners);
        for (int64_t v = 0; v < n && i < 4; v++) wrong += owner[v] != v % 8;
        if (i == 4) wrong = graph_overload(graph, owner, 8);
        if (!ok(rc == GRAFT_OK && change == NULL && wrong == 0,
                "a partitioning program with behaviour '%s' succeeds: %s", behaviours[i],
                i < 4 ? "its owners" : "repaired"))
            diag("%d %s, %s, %" PRId64 " wrong", rc, error.message, change != NULL ? change : "", wrong);
    }
    free(owner);
}

static void test_bad(const struct graph *graph, const char *program)
{
    static const struct {
        const char *behaviour, *words[3];
    } bad[] = {
        { "deaf", { "partitioner", "exit code 5" } },
        { "stops reading", { "partitioner", "wrote 0 bytes, expected 800016" } },
        { "silent", { "partitioner", "wrote 0 bytes, expected 800016" } },
        { "short", { "wrote 800015 bytes, expected 800016" } },
        { "long", { "wrote more than 800016 bytes" } },
        { "range", { "vertex 100000 is in part 8", "0 to 7" } },
        { "negative", { "vertex 0 is in part -1", "0 to 7" } },
        { "magic", { "begins with 0000000000000007", "314f507466617267" } },
        { "vertices", { "for 200001 vertices", "for 200000" } },
        { "dies", { "signal 9" } },
        { "fails", { "exit code 4", "standard error is 'metis: out of luck'" } },
        { "answers and fails", { "exit code 3" } },
        { "sleeps", { "not ended after 1 seconds", "option partition" } },
        { "asleep", { "not ended after 1 seconds", "option partition" } },
        { "closes", { "not ended after 1 seconds", "option partition" } },
    };
    const int64_t n = graph->rows.n_rows;
    int32_t      *owner = oracle_new(n, sizeof *owner);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        graft_error    error = GRAFT_INIT(graft_error);
        const double   begin = gr_seconds();
        const char    *change;
        struct manners manners;
        int64_t        touched = 0;
        int32_t        rc;
        int            said = 1;

        memset(owner, 0x55, (size_t)n * sizeof *owner);
        metis_choose(program, strstr(bad[i].words[0], "not ended") != NULL ? "1" : "60", bad[i].behaviour);
        metis_look(&manners);
        rc = gr_partition_metis(INPUT(&graph->slice, 8, NULL), owner, &error);
        change = change_since(&manners);
        for (int k = 0; k < 3 && bad[i].words[k] != NULL; k++)
            said = said && strstr(error.message, bad[i].words[k]) != NULL;
        for (int64_t v = 0; v < n; v++) touched += owner[v] != 0x55555555;
        if (!ok(rc == GRAFT_ERR_MODULE && said && change == NULL && touched == 0 && gr_seconds() - begin < 50,
                "a partitioning program with behaviour '%s' is an error", bad[i].behaviour))
            diag("%d %s, %s, %" PRId64 " touched", rc, error.message, change != NULL ? change : "", touched);
    }
    free(owner);
}

/* A host whose function `poll` asks to stop after some calls. */
static int32_t lose_patience(void *left, graft_error *error)
{
    return --*(int *)left > 0 ? GRAFT_OK : gr_fail(error, GRAFT_ERR_PEER, "the others are gone");
}

static void test_meanwhile(const struct graph *graph, const char *program)
{
    static const char *const       behaviours[] = { "asleep", "sleeps", "closes", "good" };
    const struct gr_partition_cost cost = { 1e-9, 1e-6, 1e-5, GR_ROWS_LEAST };
    int32_t                       *owner = oracle_new(graph->rows.n_rows, sizeof *owner);
    graft_error                    error = GRAFT_INIT(graft_error);
    int                            left = 30;
    const struct gr_meanwhile      meanwhile = { lose_patience, &left };

    for (int i = 0; i < 4; i++) {
        const double   begin = gr_seconds();
        struct manners manners;
        const char    *change;
        int32_t        rc;

        left = i < 3 ? 30 : 1000000;
        metis_choose(program, "60", behaviours[i]);
        metis_look(&manners);
        rc = gr_partition_metis(INPUT(&graph->slice, 8, &meanwhile), owner, &error);
        change = change_since(&manners);
        if (!ok(rc == (i < 3 ? GRAFT_ERR_PEER : GRAFT_OK) && change == NULL && gr_seconds() - begin < 50 &&
                    (i == 3 ? left < 1000000 : strcmp(error.message, "the others are gone") == 0),
                "a partitioning program with behaviour '%s' while other ranks wait", behaviours[i]))
            diag("%d %s, %s, %d left", rc, error.message, change != NULL ? change : "", left);
    }
    left = 30;
    metis_choose(program, "60", "asleep");
    ok(gr_partition_choose(context, &graph->slice, 8, GR_PARTITION_AUTO, &cost, &meanwhile, owner, NULL, &error) ==
               GRAFT_ERR_PEER &&
           left <= 0,
       "a choice among all partitioners does not continue without METIS if the other ranks are gone");
    free(owner);
}

static void test_not_there(const struct graph *graph)
{
    static const char *const none[] = { "/no/such/program", "/etc/passwd", "/tmp", "" };
    graft_error              error = GRAFT_INIT(graft_error);
    int32_t                 *owner = oracle_new(graph->rows.n_rows, sizeof *owner), right = 1;
    struct manners           manners;

    for (int i = 0; i < 4; i++) {
        metis_choose(none[i], "60", "good");
        metis_look(&manners);
        right = right && gr_partition_metis(INPUT(&graph->slice, 8, NULL), owner, &error) == GRAFT_ERR_NOT_FOUND &&
                strstr(error.message, none[i]) != NULL && change_since(&manners) == NULL;
        if (!right) diag("%s", error.message);
    }
    ok(right, "a partitioning program that does not exist or cannot be run is named in the error");
    free(owner);
}

/* -- hosts -------------------------------------------------------------------------------------------------------- */

static void collect_all(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

/* Run in a child process, because the test changes signal handlers. */
static int works_in(const struct graph *graph, const char *program, void (*handler)(int), int close_standard)
{
    pid_t pid;
    int   status = 0;

    metis_choose(program, "1", "good");
    pid = fork();
    if (pid == 0) {
        struct sigaction action = { .sa_handler = handler };
        graft_error      error = GRAFT_INIT(graft_error);
        int32_t         *owner = oracle_new(graph->rows.n_rows, sizeof *owner);
        int64_t          wrong = 0;

        sigaction(SIGCHLD, &action, NULL);
        for (int fd = 0; fd < 3 && close_standard; fd++) close(fd);
        for (int i = 0; i < 3; i++)
            wrong += gr_partition_metis(INPUT(&graph->slice, 8, NULL), owner, &error) != GRAFT_OK;
        for (int64_t v = 0; v < graph->rows.n_rows; v++) wrong += owner[v] != v % 8;
        setenv("GRAFT_TEST_BEHAVIOUR", "sleeps", 1);
        wrong += gr_partition_metis(INPUT(&graph->slice, 8, NULL), owner, &error) != GRAFT_ERR_MODULE;
        _exit(wrong > 0);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_hosts(const struct graph *graph, const char *program)
{
    ok(works_in(graph, program, SIG_IGN, 0), "METIS works in a host that ignores the end of child processes");
    ok(works_in(graph, program, collect_all, 0), "METIS works in a host that collects all child processes");
    ok(works_in(graph, program, SIG_DFL, 1), "METIS works in a host that has closed standard input, output and error");
}

static void test_metis_no_memory(const char *program)
{
    graft_error  error = GRAFT_INIT(graft_error);
    struct graph graph;
    int32_t      owner[400];
    int          clean = 1, calls = 0;

    graph_init(&graph, 0);
    metis_choose(program, "60", "one part");
    memset(owner, 0x55, sizeof owner);
    for (;; calls++) {
        const int64_t  blocks = host.live_blocks;
        struct manners manners;
        int32_t        rc;

        metis_look(&manners);
        strict_host_fail(&host, calls, 0);
        rc = gr_partition_metis(INPUT(&graph.slice, 8, NULL), owner, &error);
        if (host.failed == 0) break;
        clean = clean && rc == GRAFT_ERR_NOMEM && host.live_blocks == blocks && change_since(&manners) == NULL &&
                owner[0] == 0x55555555 && memcmp(owner, owner + 1, sizeof owner - sizeof *owner) == 0;
    }
    strict_host_fail(&host, -1, 0);
    ok(clean && calls > 3, "each of %d allocations fails in turn: owners are unchanged, and no memory is left", calls);
    graph_fini(&graph);
}

/* -- graft-metis -------------------------------------------------------------------------------------------------- */

static const char *metis_fault(const struct graph *graph, int32_t parts)
{
    const int64_t n = graph->rows.n_rows;
    graft_error   error = GRAFT_INIT(graft_error);
    int32_t      *owner = oracle_new(n, sizeof *owner), *again = oracle_new(n, sizeof *owner);
    int64_t       heaviest = 1;
    const char   *fault = NULL;

    for (int64_t v = 0; v < n; v++)
        if (graph->row_ptr[v + 1] - graph->row_ptr[v] > heaviest) heaviest = graph->row_ptr[v + 1] - graph->row_ptr[v];
    if (gr_partition_metis(INPUT(&graph->slice, parts, NULL), owner, &error) != GRAFT_OK ||
        gr_partition_metis(INPUT(&graph->slice, parts, NULL), again, &error) != GRAFT_OK)
        fault = "it failed";
    else if (graph_empty_parts(graph, owner, parts) != (n < parts ? parts - n : 0)) fault = "a part is empty";
    else if (graph_overload(graph, owner, parts) > heaviest) fault = "a part has too much";
    else if (memcmp(owner, again, (size_t)n * sizeof *owner) != 0) fault = "not the same twice";
    if (fault != NULL)
        diag("%s in %d: %s, over by %" PRId64, graph->name, parts, error.message, graph_overload(graph, owner, parts));
    free(owner);
    free(again);
    return fault;
}

static void test_metis(const char *program)
{
    static const int32_t parts[] = { 1, 2, 3, 4, 7, 50, 400 };

    metis_choose(program, "60", "");
    for (int which = 0; which < GRAPHS; which++) {
        struct graph graph;
        const char  *fault = NULL;

        graph_init(&graph, which);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (metis_fault(&graph, parts[i]) != NULL) fault = metis_fault(&graph, parts[i]);
        ok(fault == NULL, "graft-metis, %s: parts have about equal sizes%s%s", graph.name, fault ? ": " : "",
           fault ? fault : "");
        graph_fini(&graph);
    }
}

static void test_metis_quality(const char *program)
{
    graft_error  error = GRAFT_INIT(graft_error);
    struct graph graph;
    int32_t      owner[360];

    metis_choose(program, "60", "");
    graph_init(&graph, 5);
    if (gr_partition_metis(INPUT(&graph.slice, 3, NULL), owner, &error) != GRAFT_OK) memset(owner, 0, sizeof owner);
    ok(graph_cut_entries(&graph, owner) == 4, "graft-metis cuts a chain of 30 cliques in 3 at 2 links");
    graph_fini(&graph);
}

struct bytes {
    const char *at;
    int64_t     left;
};

static int64_t next_bytes(void *arg, char *to, int64_t room)
{
    struct bytes *bytes = arg;
    const int64_t some = bytes->left < room ? bytes->left : room;

    memcpy(to, bytes->at, (size_t)some);
    bytes->at += some;
    bytes->left -= some;
    return some;
}

/* Whether the program ends with this exit status and a sentence when it reads these bytes. */
static int metis_is_refused(const char *program, const void *input, int64_t bytes, int code)
{
    struct bytes    source = { input, bytes };
    graft_error     error = GRAFT_INIT(graft_error);
    struct gr_child child;
    char            output[64], words[40];
    int32_t         rc;

    if (gr_partition_child_start(&child, program, environ, 60, &error) != GRAFT_OK) return 0;
    rc = gr_partition_child_talk(&child, next_bytes, &source, output, sizeof output, NULL, &error);
    gr_partition_child_end(&child);
    snprintf(words, sizeof words, "exit code %d; its standard error is '", code);
    if (rc == GRAFT_ERR_MODULE && strstr(error.message, words) != NULL) return 1;
    diag("%" PRId64 " bytes: %s", bytes, error.message);
    return 0;
}

static void test_metis_input(const char *program)
{
    enum { N = 3, ENTRIES = 2 };
    static struct input {
        graft_partitioner_input head;
        int64_t                 row_ptr[N + 1], column[ENTRIES], weight[N * 2];
        char                    more;
    } good = { { GRAFT_PARTITIONER_INPUT, 0, 2, 2, N, ENTRIES }, { 0, 1, 2, 2 }, { 1, 0 }, { 1, 1, 1, 1, 1, 1 }, 0 },
      bad;
    const int64_t whole = offsetof(struct input, more);
    int           right = 1;

    for (int64_t bytes = 0; bytes < whole; bytes++) right = right && metis_is_refused(program, &good, bytes, 2);
    ok(right, "graft-metis refuses input that ends after any of %" PRId64 " bytes", whole);
    ok(metis_is_refused(program, &good, whole + 1, 2), "graft-metis refuses input that is too long");
#define REFUSES(field, value, code)                                                                                    \
    (bad = good, bad.field = (value),                                                                                  \
     ok(metis_is_refused(program, &bad, whole, code), "graft-metis refuses " #field " of " #value))
    REFUSES(head.magic, 1, 2);
    REFUSES(head.reserved, 2, 2);
    REFUSES(head.n_weights, 17, 2);
    REFUSES(head.n_parts, 0, 2);
    REFUSES(head.n_vertices, -1, 2);
    REFUSES(head.n_edges, -1, 2);
    REFUSES(head.n_edges, INT64_C(1) << 31, 3);
    REFUSES(head.n_edges, INT64_MAX, 3);
    REFUSES(head.n_vertices, INT32_MAX, 3);
    REFUSES(head.n_parts, INT64_C(1) << 31, 3);
    REFUSES(row_ptr[0], 1, 2);
    REFUSES(row_ptr[1], 3, 2);
    REFUSES(row_ptr[1], -1, 2);
    REFUSES(row_ptr[3], 1, 2);
    REFUSES(column[1], 3, 2);
    REFUSES(column[0], -1, 2);
    REFUSES(column[0], INT64_MIN, 2);
    REFUSES(weight[2], -1, 2);
    REFUSES(weight[5], INT64_C(1) << 31, 2);
    REFUSES(weight[5], INT32_MAX, 3);
#undef REFUSES
}

/* -- choice ------------------------------------------------------------------------------------------------------- */

/* The time of an epoch by plain counts. A pair of parts sends the rows of its smaller side. */
static double seconds_of(const struct graph *graph, const int32_t *owner, int32_t parts,
                         const struct gr_partition_cost *cost)
{
    graft_error                 error = GRAFT_INIT(graft_error);
    struct gr_partition_measure measure;
    double                      seconds;

    if (gr_partition_measure_init(context, &measure, &graph->slice, parts, owner, &error) < 0) abort();
    if (graph_measure_fault(graph, &measure, owner) != NULL) abort();
    seconds = gr_partition_seconds(&measure, cost);
    gr_partition_measure_fini(context, &measure);
    return seconds;
}

/* Check the method that was chosen among those that are available. The result is NULL or an error in words. */
static const char *choice_fault(const struct graph *graph, int32_t parts, const struct gr_partition_cost *cost,
                                int with_metis)
{
    const int64_t              n = graph->rows.n_rows;
    int32_t                   *owner = oracle_new(n, sizeof *owner), *one = oracle_new(n, sizeof *one);
    struct gr_partition_choice choice, alone;
    graft_error                error = GRAFT_INIT(graft_error);
    const char                *fault = NULL;

    if (gr_partition_choose(context, &graph->slice, parts, GR_PARTITION_AUTO, cost, NULL, owner, &choice, &error) < 0)
        fault = "it failed";
    for (int k = 0; k < GR_PARTITION_METHODS && fault == NULL; k++) {
        const enum gr_partition_method method = (enum gr_partition_method)k;
        const int32_t rc = gr_partition_choose(context, &graph->slice, parts, method, cost, NULL, one, &alone, &error);

        if (method == GR_PARTITION_METIS && !with_metis) {
            if (rc != GRAFT_ERR_NOT_FOUND || choice.seconds[k] >= 0) fault = "metis is not there";
            continue;
        }
        if (rc != GRAFT_OK || alone.method != method) fault = "a method alone failed";
        if (alone.seconds[k] != seconds_of(graph, one, parts, cost)) fault = "the predicted time is another";
        if (choice.seconds[k] != alone.seconds[k]) fault = "alone it is predicted another time";
        if (choice.seconds[k] < choice.seconds[choice.method]) fault = "another method is better";
        if (method == choice.method && memcmp(one, owner, (size_t)n * sizeof *one) != 0) fault = "not its owners";
    }
    if (fault == NULL && strstr(choice.why, "chosen: ") == NULL) fault = "it does not say so";
    if (fault != NULL) diag("%s in %d: %s; %s; %s", graph->name, parts, fault, choice.why, error.message);
    free(owner);
    free(one);
    return fault;
}

static void test_choice_no_memory(void)
{
    const struct gr_partition_cost cost = { 1e-9, 1e-6, 1e-5, GR_ROWS_LEAST };
    struct gr_partition_choice     choice = { .why = "untouched" };
    graft_error                    error = GRAFT_INIT(graft_error);
    struct graph                   graph;
    int32_t                        owner[400];
    int                            clean = 1, calls = 0;

    metis_choose("/no/such/program", "60", "");
    graph_init(&graph, 0);
    memset(owner, 0x55, sizeof owner);
    for (;; calls++) {
        const int64_t blocks = host.live_blocks;
        int32_t       rc;

        strict_host_fail(&host, calls, 0);
        rc = gr_partition_choose(context, &graph.slice, 4, GR_PARTITION_AUTO, &cost, NULL, owner, &choice, &error);
        if (host.failed == 0) break;
        clean = clean && rc == GRAFT_ERR_NOMEM && host.live_blocks == blocks && owner[0] == 0x55555555 &&
                memcmp(owner, owner + 1, sizeof owner - sizeof *owner) == 0 && strcmp(choice.why, "untouched") == 0;
    }
    strict_host_fail(&host, -1, 0);
    ok(clean && calls > 10,
       "a choice among partitioners: each of %d allocations fails in turn, and outputs are unchanged", calls);
    graph_fini(&graph);
}

static void test_metis_choice(const char *program)
{
    static const struct gr_partition_cost costs[] = {
        { 1e-9, 1e-6, 1e-5, GR_ROWS_PRE }, { 1, 0, 0, 0 }, { 0, 0, 1, GR_ROWS_LEAST }, { 0, 0, 1, GR_ROWS_POST }
    };

    metis_choose(program != NULL ? program : "/no/such/program", "60", "");
    for (int which = 0; which < GRAPHS; which++) {
        struct graph graph;
        const char  *fault = NULL, *found;

        graph_init(&graph, which);
        for (int i = 0; i < 8; i++)
            if ((found = choice_fault(&graph, i < 4 ? 4 : 7, &costs[i % 4], program != NULL)) != NULL) fault = found;
        ok(fault == NULL, "with %s metis, %s: the best of all partitioners is chosen%s%s",
           program != NULL ? "with" : "without", graph.name, fault ? ": " : "", fault ? fault : "");
        graph_fini(&graph);
    }
}

static void test_data_sets(const char *program)
{
    static const char *const names[] = { "cora", "citeseer", "amazon_photo" };

    metis_choose(program, "60", "");
    for (int i = 0; i < 3; i++) {
        struct graph graph;
        int32_t     *owner;
        graft_error  error = GRAFT_INIT(graft_error);
        int64_t      cut[2];

        if (!graph_read(&graph, context, names[i])) {
            skip(2, "%s: variable GRAFT_TEST_DATA names no folder that has this data set", names[i]);
            continue;
        }
        ok(metis_fault(&graph, 4) == NULL, "graft-metis divides %s into 4 parts of about equal sizes", names[i]);
        owner = oracle_new(graph.rows.n_rows, sizeof *owner);
        gr_partition_hash(INPUT(&graph.slice, 4, NULL), owner, &error);
        cut[0] = graph_cut_entries(&graph, owner);
        if (gr_partition_metis(INPUT(&graph.slice, 4, NULL), owner, &error) != GRAFT_OK) diag("%s", error.message);
        cut[1] = graph_cut_entries(&graph, owner);
        ok(cut[1] * 3 < cut[0], "it cuts %" PRId64 " entries, a hash %" PRId64, cut[1], cut[0]);
        free(owner);
        graph_fini(&graph);
    }
}

int main(int argc, char **argv)
{
    const graft_api *api;
    graft_error      error = GRAFT_INIT(graft_error);
    struct graph     large;

    if (argc < 2) return 2;
    strict_host_init(&host);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &host.table, &api, &error) < 0) return 2;
    context = api->context;
    large_graph(&large);
    if (open("/dev/null", O_RDONLY) < 0) return 2; /* a file of the host that programs would inherit */
    test_good(&large, argv[1]);
    test_bad(&large, argv[1]);
    test_meanwhile(&large, argv[1]);
    test_not_there(&large);
    test_hosts(&large, argv[1]);
    test_metis_no_memory(argv[1]);
    graph_fini(&large);
    test_metis_choice(NULL);
    test_choice_no_memory();
    if (argc > 2) {
        test_metis_choice(argv[2]);
        test_metis(argv[2]);
        test_metis_quality(argv[2]);
        test_metis_input(argv[2]);
        test_data_sets(argv[2]);
    } else {
        skip(1, "graft-metis was not built");
    }
    api->close(context);
    ok(host.fault == NULL && host.live_blocks == 0, "all memory of the host was freed, and none was misused");
    return done();
}
