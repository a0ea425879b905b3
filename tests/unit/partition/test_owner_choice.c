/* Checks owners of vertices that ranks choose together, by METIS, by the best method, and from files: test_owner_choice
 * PARTITIONER [GRAFT-METIS]. They must be those that one process chooses for the whole graph, and an error of rank 0
 * must be returned by all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/fault_runs.h"
#include "harness/files.h"
#include "harness/graphs.h"
#include "harness/spread.h"
#include "harness/tap.h"

#include "dgraph/owner.h"
#include "partition/metis.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 3, LARGEST = 4096 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static const char        *partitioner;
static graft_context     *context;
static char               folder[] = "/tmp/graft-choice-XXXXXX", path[64];
static float              x[LARGEST * WIDTH], scale[LARGEST];
static const char *const *settings; /* options of all runs */

/* Choose a program, and the behaviour of the stand-in. The process that compares runs the same program. */
static void use(const char *program, const char *behaviour, const char *const *more)
{
    graft_error error = GRAFT_INIT(graft_error);

    setenv("GRAFT_TEST_BEHAVIOUR", behaviour, 1);
    settings = more;
    if (gr_option_set(context, "partition.program", program, &error) < 0) abort();
}

static struct spread owner_choice_spread_of(const struct graph *graph, const char *partition)
{
    return (struct spread){ .graph = &graph->rows,
                            .dtype = GRAFT_F32,
                            .x = (const char *)x,
                            .x_width = WIDTH,
                            .scale = (const char *)scale,
                            .train_mask = graph->slice.train_mask,
                            .settings = settings,
                            .partition = partition,
                            .cover = "hybrid",
                            .threads = "1" };
}

/* The outcome of a run on rank 0, and whether the other ranks have the same. */
struct outcome {
    int32_t rc, rank;
    double  seconds; /* seconds of the slowest rank */
    char    message[512], fault[700];
};

static void run_choice(struct spread *s, int32_t n_ranks, double timeout, struct outcome *out)
{
    static struct ranks ranks;
    const char         *words;

    *out = (struct outcome){ 0 };
    ranks_init(&ranks, n_ranks, timeout, spread_body, s);
    ranks_run(&ranks);
    out->rc = ranks.at[0].rc;
    out->rank = ranks.at[0].error.rank;
    snprintf(out->message, sizeof out->message, "%s", out->rc < 0 ? ranks.at[0].error.message : "");
    for (int32_t i = 0; i < n_ranks; i++) {
        if (ranks.at[i].seconds > out->seconds) out->seconds = ranks.at[i].seconds;
        if (ranks.at[i].rc != out->rc || (out->rc < 0 && strcmp(ranks.at[i].error.message, out->message) != 0))
            snprintf(out->fault, sizeof out->fault, "rank %d says %d, %.200s; rank 0 %d, %.200s", i, ranks.at[i].rc,
                     ranks.at[i].error.message, out->rc, out->message);
    }
    words = ranks_fini(&ranks);
    if (words != NULL && out->fault[0] == '\0') snprintf(out->fault, sizeof out->fault, "%s", words);
}

/* The method that explain() names. */
static enum gr_partition_method chosen_of(const char *explained)
{
    static const char *const names[] = { "block", "hash", "stream", "metis" };
    const char              *at = strstr(explained, "; chosen: ");

    for (int k = 0; at != NULL && k < GR_PARTITION_METHODS; k++)
        if (strncmp(at + 10, names[k], strlen(names[k])) == 0) return (enum gr_partition_method)k;
    return GR_PARTITION_AUTO;
}

/* Run over ranks. The owners must be those of one process, and the sums those of one rank. The result is NULL or an
 * error in words. */
static const char *check_owners(const struct graph *graph, const char *partition, enum slicing slicing, int32_t n_ranks)
{
    const struct gr_partition_cost cost = { 1e-9, 1e-6, 1e-5, GR_ROWS_LEAST };
    static float                   one[LARGEST * WIDTH], many[LARGEST * WIDTH];
    static int32_t                 owner[LARGEST];
    static char                    fault[800];
    enum gr_partition_method       method = GR_PARTITION_METIS;
    struct spread  s = owner_choice_spread_of(graph, partition), alone = owner_choice_spread_of(graph, "given");
    graft_error    error = GRAFT_INIT(graft_error);
    struct outcome out;
    const int64_t  n = graph->rows.n_rows;

    memset(one, 0, sizeof one);
    memset(many, 0, sizeof many);
    s.slicing = slicing;
    s.n_passes = alone.n_passes = 1;
    s.pass[0] = (struct spread_pass){ GRAFT_PLUS_SECOND, 0, WIDTH, 0, (char *)many };
    alone.pass[0] = (struct spread_pass){ GRAFT_PLUS_SECOND, 0, WIDTH, 0, (char *)one };
    run_choice(&alone, 1, 30, &out);
    if (out.rc < 0) return "one rank fails";
    run_choice(&s, n_ranks, 30, &out);
    snprintf(fault, sizeof fault, "%.300s %.400s", out.message, out.fault);
    if (out.rc < 0 || out.fault[0] != '\0') return fault;
    if (strcmp(partition, "auto") == 0) method = chosen_of(s.explained);
    snprintf(fault, sizeof fault, "nothing is said: %.600s", s.explained);
    if (method == GR_PARTITION_AUTO || strstr(s.explained, "partition: ") == NULL) return fault;
    if (gr_partition_choose(context, &graph->slice, n_ranks, method, &cost, NULL, owner, NULL, &error) < 0)
        return "one process fails";
    if (memcmp(owner, s.found, (size_t)n * sizeof *owner) != 0) return "other owners";
    return memcmp(one, many, sizeof one) == 0 ? NULL : "other sums";
}

static void test_owners(const char *name)
{
    static const int32_t numbers[] = { 2, 3, 4, 7 };

    for (int which = 0; which < GRAPHS; which++) {
        struct graph graph;
        const char  *fault = NULL;

        graph_init(&graph, which);
        for (int i = 0; i < 8 && fault == NULL; i++)
            fault =
                check_owners(&graph, i < 4 ? "metis" : "auto", (enum slicing)((which + i) % SLICINGS), numbers[i % 4]);
        ok_or(fault == NULL, fault, "%s, %s over 2, 3, 4 and 7 ranks: owners and sums are those of one process", name,
              graph.name);
        graph_fini(&graph);
    }
}

/* A single rank has nothing to choose, and needs no program. */
static void test_one_rank(void)
{
    struct graph   graph;
    struct spread  s;
    struct outcome out;

    use(partitioner, "good", (const char *const[]){ "partition.program", "/no/such/program", NULL });
    graph_init(&graph, 5);
    s = owner_choice_spread_of(&graph, "metis");
    run_choice(&s, 1, 30, &out);
    ok(out.rc == GRAFT_OK && out.fault[0] == '\0', "a single rank owns all vertices %s%s", out.message, out.fault);
    graph_fini(&graph);
}

/* -- what METIS can do wrong -------------------------------------------------------------------------------------- */

static void test_program(const struct graph *graph, const char *program, const char *behaviour, const char *patience,
                         int32_t status, const char *words)
{
    const char *const more[] = { "partition.program", program, NULL };
    struct outcome    out;
    struct spread     s;
    char              metis[32], any[32];

    snprintf(metis, sizeof metis, "metis:0:%s", patience);
    snprintf(any, sizeof any, "auto:0:%s", patience);
    use(partitioner, behaviour, more);
    s = owner_choice_spread_of(graph, metis);
    run_choice(&s, 3, 1, &out);
    if (!ok(out.rc == status && strstr(out.message, words) != NULL && out.fault[0] == '\0' && out.seconds < 15 &&
                (status == GRAFT_OK || out.rank == 0),
            "partition=metis with a program of behaviour '%s': %s", program[1] == 'n' ? program : behaviour,
            status == GRAFT_OK ? "waited for" : out.message))
        diag("%d %s; %s; %.1f s", out.rc, out.message, out.fault, out.seconds);
    if (status == GRAFT_OK) return;
    s = owner_choice_spread_of(graph, any);
    run_choice(&s, 3, 1, &out);
    if (!ok(out.rc == GRAFT_OK && out.fault[0] == '\0' && strstr(s.explained, ", metis not (") != NULL &&
                chosen_of(s.explained) < GR_PARTITION_METIS,
            "partition=auto chooses another partitioner if METIS fails"))
        diag("%d %s; %s; %s", out.rc, out.message, out.fault, s.explained);
}

/* Ranks wait one second for each other, and at least three seconds for the program. */
static void test_programs(void)
{
    struct graph graph;

    graph_init(&graph, 5);
    test_program(&graph, "/no/such/program", "", "60", GRAFT_ERR_NOT_FOUND, "rank 0: there is no program '/no/such");
    test_program(&graph, partitioner, "dies", "60", GRAFT_ERR_MODULE, "rank 0: the program 'partitioner' was ended");
    test_program(&graph, partitioner, "fails", "60", GRAFT_ERR_MODULE, "standard error is 'metis: out of luck'");
    test_program(&graph, partitioner, "range", "60", GRAFT_ERR_MODULE, "vertex 180 is in part 3");
    test_program(&graph, partitioner, "asleep", "3", GRAFT_ERR_MODULE, "not ended after 3 seconds (option partition)");
    test_program(&graph, partitioner, "slow", "60", GRAFT_OK, "");
    graph_fini(&graph);
}

/* -- balance and choice ------------------------------------------------------------------------------------------- */

/* A ring whose training vertices are its first ones, all in one place. */
static void make_ring(struct graph *graph, int64_t n)
{
    *graph = (struct graph){ .name = "a ring" };
    graph->row_ptr = oracle_new(n + 1, sizeof *graph->row_ptr);
    graph->col_idx = oracle_new(2 * n, sizeof(int32_t));
    graph->train_mask = oracle_new(n, 1);
    for (int64_t v = 0; v < n; v++) {
        graph->row_ptr[v + 1] = 2 * v + 2;
        ((int32_t *)graph->col_idx)[2 * v] = (int32_t)((v + 1) % n);
        ((int32_t *)graph->col_idx)[2 * v + 1] = (int32_t)((v + n - 1) % n);
        graph->train_mask[v] = v < n / 4;
    }
    graph->rows = (graft_csr){ sizeof(graft_csr), GRAFT_I32, 0, 0, n, n, graph->row_ptr, graph->col_idx, NULL, NULL };
    graph->slice = (struct gr_slice){ &graph->rows, 0, graph->train_mask };
}

/* Method stream balances shares slice by slice, so the hard case is a slice that has all training vertices. */
static void test_owner_choice_balance(const char *partition, enum slicing slicing)
{
    struct graph   graph;
    struct spread  s;
    struct outcome out;
    int64_t        has[4] = { 0 }, without[4] = { 0 }, most = 0, most_without = 0;

    make_ring(&graph, 1200);
    s = owner_choice_spread_of(&graph, partition);
    s.slicing = slicing;
    run_choice(&s, 4, 30, &out);
    for (int64_t v = 0; v < 300; v++) has[s.found[v]]++;
    s.train_mask = NULL;
    if (out.rc == GRAFT_OK) run_choice(&s, 4, 30, &out);
    for (int64_t v = 0; v < 300; v++) without[s.found[v]]++;
    for (int p = 0; p < 4; p++) {
        most = has[p] > most ? has[p] : most;
        most_without = without[p] > most_without ? without[p] : most_without;
    }
    if (!ok(out.rc == GRAFT_OK && out.fault[0] == '\0' && most <= 79 && most_without > 79,
            "%s: the 300 training vertices are distributed, at most %lld to one of 4 ranks; %lld "
            "without a limit",
            partition, (long long)most, (long long)most_without))
        diag("%s %s", out.message, out.fault);
    graph_fini(&graph);
}

/* A long grid numbered by columns: ranges of it have short cuts and are more even than anything else. */
static void test_local_order(void)
{
    enum { ROWS = 8, COLUMNS = 500, N = ROWS * COLUMNS };
    struct graph   graph = { .name = "a long grid" };
    struct spread  s;
    struct outcome out;
    int64_t        entries = 0;

    graph.row_ptr = oracle_new(N + 1, sizeof *graph.row_ptr);
    graph.col_idx = oracle_new(4 * N, sizeof(int32_t));
    for (int v = 0; v < N; v++) {
        int32_t *column = graph.col_idx;

        if (v >= ROWS) column[entries++] = v - ROWS;
        if (v % ROWS > 0) column[entries++] = v - 1;
        if (v % ROWS < ROWS - 1) column[entries++] = v + 1;
        if (v < N - ROWS) column[entries++] = v + ROWS;
        graph.row_ptr[v + 1] = entries;
    }
    graph.rows = (graft_csr){ sizeof(graft_csr), GRAFT_I32, 0, 0, N, N, graph.row_ptr, graph.col_idx, NULL, NULL };
    graph.slice = (struct gr_slice){ &graph.rows, 0, NULL };
    s = owner_choice_spread_of(&graph, "auto");
    run_choice(&s, 4, 30, &out);
    if (!ok(out.rc == GRAFT_OK && out.fault[0] == '\0' && chosen_of(s.explained) == GR_PARTITION_BLOCK,
            "partition=auto chooses blocks for a grid whose vertices are in a good order"))
        diag("%s %s %s", out.message, out.fault, s.explained);
    graph_fini(&graph);
}

/* -- files -------------------------------------------------------------------------------------------------------- */

/* Expect a run to end like this. The owners stay in s->found. */
static void owner_choice_expect(struct spread *s, int32_t n_ranks, int32_t status, const char *words, const char *name)
{
    struct outcome out;

    run_choice(s, n_ranks, 30, &out);
    if (!ok(out.rc == status && out.fault[0] == '\0' &&
                strstr(status == GRAFT_OK ? s->explained : out.message, words) != NULL,
            "%s: %s", name, status == GRAFT_OK ? words : out.message))
        diag("%d %s, %s, expected %d '%s'; %s", out.rc, out.message, out.fault, status, words, s->explained);
}

static void damage(long at)
{
    FILE *file = fopen(path, "r+b");
    int   byte;

    if (file == NULL || fseek(file, at, SEEK_SET) != 0 || (byte = fgetc(file)) == EOF ||
        fseek(file, at, SEEK_SET) != 0 || fputc(byte ^ 1, file) == EOF || fclose(file) != 0)
        abort();
}

/* The owners of a partition must be written to a file, and read again without partitioning, for any slices of the
 * graph. */
static void test_kept(const struct graph *graph, const char *partition)
{
    const char *const more[] = { "partition.file", path, "partition.program", partitioner, NULL };
    const char *const none[] = { "partition.file", path, "partition.program", "/no/such/program", NULL };
    static int32_t    was[LARGEST];
    struct spread     s;
    char              name[64];

    use(partitioner, "good", more);
    s = owner_choice_spread_of(graph, partition);
    snprintf(name, sizeof name, "owners by %s are written", partition);
    owner_choice_expect(&s, 4, GRAFT_OK, partition, name);
    memcpy(was, s.found, sizeof was);
    for (int way = 0; way < SLICINGS; way++) {
        settings = none;
        s = owner_choice_spread_of(graph, "metis");
        memset(s.found, 0x55, sizeof s.found);
        s.slicing = (enum slicing)way;
        owner_choice_expect(&s, 4, GRAFT_OK, "partition: from the file /tmp/graft-choice",
                            "and read, though there is no program");
        ok(memcmp(was, s.found, (size_t)graph->rows.n_rows * sizeof *was) == 0 && files_in(folder) == 1,
           "owners that were read from a file are those that were written");
    }
    unlink(path);
}

static void test_wrong_files(const struct graph *graph, const struct graph *other)
{
    const char *const  more[] = { "partition.file", path, NULL };
    static const char *nowhere[] = { "partition.file", "/tmp/graft-no-such-folder/owners", NULL };
    static const char *no_folder[] = { "partition.file", "/etc/passwd/owners", NULL };
    const char *const  a_folder[] = { "partition.file", folder, NULL };
    static int32_t     owner[LARGEST];
    struct graph       three;
    struct spread      s;

    use(partitioner, "good", more);
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 3, GRAFT_OK, "partition: hash", "owners by hash are written");
    s = owner_choice_spread_of(other, "hash");
    owner_choice_expect(&s, 3, GRAFT_ERR_FORMAT, "is a partition of another graph", "another graph");
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 4, GRAFT_ERR_FORMAT, "is a partition in 3 parts, expected 4", "another number of ranks");
    s.owner = owner;
    owner_choice_expect(&s, 4, GRAFT_OK, "partition: given by the host",
                        "not looked at where the host says who owns what");
    damage(70);
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 3, GRAFT_ERR_FORMAT, "is damaged: its CRC32C", "a damaged file");
    unlink(path);
    graph_init(&three, 8);
    s = owner_choice_spread_of(&three, "hash");
    owner_choice_expect(&s, 4, GRAFT_ERR_ARG, "3 vertices in 4 parts is not kept", "more parts than vertices");
    graph_fini(&three);
    settings = nowhere;
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 3, GRAFT_ERR_IO, "owners' cannot be written: No such file", "a folder that is not there");
    settings = no_folder;
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 3, GRAFT_ERR_IO, "owners' cannot be written: Not a directory", "a folder that is none");
    settings = a_folder;
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 3, GRAFT_ERR_FORMAT, "is a folder", "a folder in place of the file");
    ok(files_in(folder) == 0, "no memory of the choice is left");
}

/* With parallel=feature vertices are assigned to ranks cyclically for every method, and no file is read or written. */
static void test_one_part(const struct graph *graph)
{
    const char *const feature[] = { "parallel", "feature", "partition.file", path, "partition.program", "/none", NULL };
    static const char *const methods[] = { "metis:9", "hash:9", "auto:9" };
    const char *const        file[] = { "partition.file", path, NULL };
    int64_t                  of_rank[4] = { 0 };
    static int32_t           dealt[LARGEST];
    struct spread            s;

    for (int i = 0; i < 4; i++) {
        use(partitioner, "good", feature);
        s = owner_choice_spread_of(graph, methods[i % 3]);
        owner_choice_expect(&s, 4, GRAFT_OK, "partition: none, because all ranks share the columns of one part",
                            i < 3 ? "one part" : "one part, where there is a file of four");
        if (i == 0) memcpy(dealt, s.found, sizeof dealt);
        ok(memcmp(dealt, s.found, (size_t)graph->rows.n_rows * sizeof *dealt) == 0 && files_in(folder) == (i == 3),
           "owners by %s are those by metis if ranks share columns, and are not written to a file", methods[i % 3]);
        if (i != 2) continue;
        settings = file;
        s = owner_choice_spread_of(graph, "hash");
        owner_choice_expect(&s, 4, GRAFT_OK, "partition: hash", "a file of four parts");
    }
    for (int64_t v = 0; v < graph->rows.n_rows; v++) of_rank[dealt[v]]++;
    for (int i = 0; i < 4; i++)
        ok(llabs(4 * of_rank[i] - graph->rows.n_rows) <= 32, "rank %d has a quarter of the vertices: %lld", i,
           (long long)of_rank[i]);
    unlink(path);
}

/* Owners by a hash and from a file are refined, and the refined ones are written. */
static void test_refined(const struct graph *graph)
{
    const char *const none[] = { "partition.file", path, NULL };
    static int32_t    once[LARGEST];
    struct spread     s;
    int64_t           cut;

    use(partitioner, "good", none);
    s = owner_choice_spread_of(graph, "hash");
    owner_choice_expect(&s, 4, GRAFT_OK, "partition: hash", "owners by hash");
    cut = graph_cut_entries(graph, s.found);
    s = owner_choice_spread_of(graph, "hash:9");
    owner_choice_expect(&s, 4, GRAFT_OK, "owners; refined in ", "those of a file are refined");
    memcpy(once, s.found, sizeof once);
    ok(graph_cut_entries(graph, once) * 2 < cut, "refined owners cut less than half as many entries");
    unlink(path);
    s = owner_choice_spread_of(graph, "hash:9");
    owner_choice_expect(&s, 4, GRAFT_OK, "partition: hash; refined in ", "and so are those by hash");
    ok(memcmp(once, s.found, sizeof once) == 0, "owners by hash are refined to the same owners as those of a file");
    s = owner_choice_spread_of(graph, "stream");
    owner_choice_expect(&s, 4, GRAFT_OK, "partition: from the file ", "they are written");
    ok(memcmp(once, s.found, sizeof once) == 0, "the written owners are the refined ones");
    unlink(path);
}

/* -- faults ------------------------------------------------------------------------------------------------------- */

static struct graph  small;
static int32_t       expected[LARGEST];
static struct spread fault_spread;

static int32_t choosing_body(struct rank *r)
{
    graft_graph   *made = NULL;
    const int64_t *vertex;
    int32_t        rc;

    TRY(spread_setup(r, &fault_spread));
    TRY(spread_graph(r, &fault_spread, &made));
    vertex = gr_interface_graph.owned(made);
    for (int64_t i = 0; i < made->n_owned; i++)
        if (expected[vertex[i]] != r->rank) rank_blame(r, "vertex %lld is not its", (long long)vertex[i]);
    rc = gr_comm_agree(made->comm, GRAFT_OK, &r->error);
done:
    if (run_goes_on(r, rc)) rc = gr_comm_barrier(made->comm, &r->error);
    gr_interface_graph.destroy(made);
    return rc;
}

/* Each message of a rank is lost, damaged or late, some of them while the program still runs. */
static void test_choice_faults(int32_t bad_rank, int32_t every)
{
    const struct gr_partition_cost cost = { 0 };
    graft_error                    error = GRAFT_INIT(graft_error);
    const char *const              more[] = { "partition.program", partitioner, NULL };

    use(partitioner, "good", more);
    fault_spread = owner_choice_spread_of(&small, "metis");
    if (gr_partition_choose(context, &small.slice, 3, GR_PARTITION_METIS, &cost, NULL, expected, NULL, &error) < 0)
        diag("%s", error.message);
    run_faults("the choice", choosing_body, 3, bad_rank, (const int[]){ every, 2 * every }, FAULTS);
}

static void test_owner_choice_memory(int32_t rank)
{
    const char *const more[] = { "partition.program", partitioner, "partition.file", path, NULL };
    char              fault[512] = "";
    int64_t           k = 0;
    int               found = 1;

    use(partitioner, "good", more);
    for (; found > 0 && k < 400; k++) {
        struct spread s = owner_choice_spread_of(&small, "auto");

        s.starved = 1;
        s.fail_at = k;
        found = spread_starve(&s, 3, rank, fault);
        unlink(path);
    }
    if (!ok(found == 0 && k > 60, "each of %lld allocations of rank %d fails in turn", (long long)k - 1, rank))
        diag("allocation %lld: %s", (long long)k - 1, fault);
    ok(files_in(folder) == 0, "no temporary file of owners is left");
}

int main(int argc, char **argv)
{
    const char *const more[] = { "partition.program", argc > 2 ? argv[2] : argv[1], NULL };
    const graft_api  *api;
    graft_error       error = GRAFT_INIT(graft_error);
    struct graph      other;

    if (argc < 2 || mkdtemp(folder) == NULL) return 2;
    alarm(110);
    partitioner = argv[1];
    snprintf(path, sizeof path, "%s/owners", folder);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    context = api->context;
    for (int i = 0; i < LARGEST * WIDTH; i++) x[i] = (float)(i * 7 % 16);
    use(more[1], "good", more);
    test_owners(argc > 2 ? "graft-metis" : "a partitioner");
    if (argc > 2) {
        test_owner_choice_balance("metis", SLICE_EVEN);
        test_owner_choice_balance("stream", SLICE_FIRST);
        test_local_order();
    } else {
        skip(3, "graft-metis was not built");
    }
    test_one_rank();
    test_programs();
    graph_init(&small, 0);
    graph_init(&other, 1);
    test_kept(&small, "metis");
    test_kept(&small, "given");
    test_wrong_files(&small, &other);
    test_refined(&small);
    test_one_part(&small);
    graph_fini(&other);
    test_owner_choice_memory(0);
    test_owner_choice_memory(2);
    test_choice_faults(0, 7);
    test_choice_faults(2, 7);
    graph_fini(&small);
    api->close(context);
    ok(rmdir(folder) == 0, "the folder of the test is empty at the end");
    return done();
}
