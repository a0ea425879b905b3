/* Checks graft.data/1 open_slice() where only ranks can fail: ranks that disagree, memory, and cuts between lines. That
 * the joined slices are what open() reads, and that all ranks refuse bad files, is checked by unit/io/test_data and
 * unit/io/test_data_mtx with each of their files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_host.h"
#include "harness/lcg.h"

#include "graft_train.h"

static struct data_folder folder, other;

/** Open the path of each rank, and expect the same error on all ranks. */
static void all_refuse(const char *what, int n, int32_t status, const char *const *words)
{
    const int64_t live = memory.live_bytes + crew_live();
    const char   *fault;

    crew_open(api, n);
    fault = crew_refusal_fault(n, status, words);
    crew_close(n);
    if (fault == NULL && memory.live_bytes + crew_live() != live) fault = "memory leaked";
    ok_or(fault == NULL, fault, "%s", what);
}

#define ALL_REFUSE(what, n, status, ...) all_refuse(what, n, status, (const char *const[]){ __VA_ARGS__, NULL })

/** Ranks find, or ask for, different files. */
static void check_disagreement(void)
{
    static const uint8_t split[4] = { 1, 2, 0, 3 };

    folder_clear(&folder);
    folder_clear(&other);
    write_sample(&folder, 0);
    write_sample(&other, 0);
    write_npy(&other, "split.npy", "<u1", "(4, )", split, sizeof split);
    crew_aim(folder.path);
    crew[1].path = "/nowhere";
    ALL_REFUSE("one rank has no such folder", 3, GRAFT_ERR_NOT_FOUND, "rank 1: ", "/nowhere");
    ok(crew[0].error.rank == 1 && crew[2].error.rank == 1, "error->rank is the rank that failed");
    crew_aim(folder.path);
    crew[2].path = other.path;
    ALL_REFUSE("one has another file", 3, GRAFT_ERR_ARG, "split.npy", "on rank 2", "on rank 0");
    files_check(remove(folder_path(&other, "split.npy")) == 0, "remove");
    crew_aim(folder.path);
    crew[1].path = other.path;
    ALL_REFUSE("one lacks a file", 2, GRAFT_ERR_ARG, "split.npy", "18446744073709551615", "on rank 1");
    crew_aim(folder.path);
    crew[1].path = NULL;
    ALL_REFUSE("one has no path", 2, GRAFT_ERR_ARG, "rank 1: path is null");
    crew_aim(folder.path);
    crew[0].out = NULL;
    ALL_REFUSE("one has no place for the result", 2, GRAFT_ERR_ARG, "rank 0: data is null");
}

/** Files have the same sizes, but other contents on one rank. */
static void check_deceit(void)
{
    static const uint8_t targets[4][4] = { { 1 } };
    static const int64_t wide[2][2] = { { 0, 1 }, { 1, 3 } };
    static const int32_t narrow[2][4] = { { 0, 1, 2, 3 }, { 1, 3, 3, 3 } };
    static const float   features[12] = { 1 };
    char                 mine[PATH_MAX + 256];

    folder_clear(&folder);
    folder_clear(&other);
    write_npy(&folder, "edges.npy", "<i8", "(2, 2)", wide, sizeof wide);
    write_npy(&other, "edges.npy", "<i4", "(2, 4)", narrow, sizeof narrow);
    for (int i = 0; i < 2; i++) {
        crew_aim(folder.path);
        crew[i].path = other.path;
        ALL_REFUSE("other edges in a file of the same size", 2, GRAFT_ERR_ARG, "the contents of edges.npy",
                   "on rank 1");
    }
    write_npy(&folder, "labels.npy", "<i4", "(4, )", targets, sizeof targets);
    write_npy(&other, "labels.npy", "|u1", "(4,4)", targets, sizeof targets);
    crew_aim(folder.path);
    crew[1].path = other.path;
    ALL_REFUSE("labels of another type", 2, GRAFT_ERR_ARG, "the contents of ", "on rank 1");
    write_npy(&folder, "features.npy", "<f4", "(4, 3)", features, sizeof features);
    write_npy(&other, "features.npy", "<f4", "(3, 4)", features, sizeof features);
    files_check(remove(folder_path(&folder, "labels.npy")) == 0 && remove(folder_path(&other, "labels.npy")) == 0,
                "rm");
    crew_aim(folder.path);
    crew[1].path = other.path;
    ALL_REFUSE("another shape in a file of the same size", 2, GRAFT_ERR_ARG, "vertices is 4", "3 (0x3) on rank 1");
    write_file(&folder, "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 3\n1 1\n2 1\n7 1\n", 67);
    write_file(&other, "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n7 7 3\n1 1\n2 1\n7 1\n", 67);
    snprintf(mine, sizeof mine, "%s", folder_path(&folder, "a.mtx"));
    crew_aim(mine);
    crew[2].path = folder_path(&other, "a.mtx");
    ALL_REFUSE("another Matrix Market file of the same size", 3, GRAFT_ERR_ARG, "the contents of graph.mtx",
               "on rank 2");
}

/** One rank has a copy with some changed bytes: any bytes of a small file, the first, the last or middle ones of a
 *  large file. */
static void check_copies(void)
{
    enum { COLUMNS = 100000, COUNT = 4 * COLUMNS };
    static float         features[COUNT];
    static const int32_t labels[4] = { 0, 2, -1, 2 };
    static const int     places[] = { 0, COUNT / 2, COUNT - 1 };

    folder_clear(&folder);
    folder_clear(&other);
    write_sample(&folder, 0);
    write_sample(&other, 0);
    write_npy(&other, "labels.npy", "<i4", "(4,)", labels, sizeof labels);
    crew_aim(folder.path);
    crew[1].path = other.path;
    ALL_REFUSE("a copy with another label", 2, GRAFT_ERR_ARG, "the contents of labels.npy (by CRC32C)", "on rank 1");
    write_sample(&other, 0);
    write_npy(&folder, "features.npy", "<f4", "(4, 100000)", features, sizeof features);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        features[places[i]] = 1;
        write_npy(&other, "features.npy", "<f4", "(4, 100000)", features, sizeof features);
        features[places[i]] = 0;
        crew_aim(folder.path);
        crew[2].path = other.path;
        ALL_REFUSE("another feature in a large file", 3, GRAFT_ERR_ARG, "the contents of features.npy", "on rank 2");
    }
}

/** Any allocation of any rank or transport may fail, and all ranks must return the same error. */
static void check_memory_failures(void)
{
    static const char mtx[] = "%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n2 1 5\n3 1 7\n4 4 1\n";
    const int64_t     live = memory.live_bytes + crew_live();

    folder_clear(&folder);
    write_sample(&folder, 1);
    files_check(remove(folder_path(&folder, "edges.npy")) == 0, "edges.npy");
    write_file(&folder, "graph.mtx", mtx, sizeof mtx - 1);
    for (int who = 0; who < 2; who++) {
        const char *fault = NULL;
        int64_t     k = 0;
        int32_t     rc = -1;

        for (; rc < 0 && fault == NULL && k < 1000; k++) {
            crew_aim(folder.path);
            crew[who].memory.act_at = crew[who].memory.calls + k;
            crew_open(api, 2);
            rc = crew[0].rc;
            fault = crew_refusal_fault(2, 0, NULL);
            if (fault == NULL && rc < 0 && rc != GRAFT_ERR_NOMEM && rc != GRAFT_ERR_PEER) fault = "another status";
            if (fault == NULL && rc < 0 && strstr(crew[0].error.message, "no memory") == NULL)
                fault = crew[0].error.message;
            crew_close(2);
            if (fault == NULL && memory.live_bytes + crew_live() != live) fault = "memory leaked";
        }
        crew[who].memory.act_at = -1;
        if (!ok(fault == NULL && rc == GRAFT_OK && k > 20, "each of %lld allocations of rank %d fails in turn",
                (long long)k, who))
            diag("allocation %lld: %s", (long long)k, fault);
    }
}

enum { LARGE = 200000, EDGES = 3200000 };

static void write_large(int n_features)
{
    int32_t *edges = malloc(2 * sizeof *edges * EDGES);
    float   *features = calloc((size_t)LARGE * (size_t)n_features, sizeof *features);
    uint32_t state = 1;
    char     shape[64];

    files_check(edges != NULL && features != NULL, "malloc");
    for (int i = 0; i < EDGES; i++) {
        const uint32_t r = lcg_next(&state);

        edges[i] = (int32_t)(lcg_next(&state) % LARGE);
        /* Half of the edges end in the first 2 % of the vertices. */
        edges[EDGES + i] = (int32_t)(r % 2 == 0 ? r % LARGE : r % (LARGE / 50));
    }
    for (int64_t i = 0; i < (int64_t)LARGE * n_features; i += 97) features[i] = (float)i;
    folder_clear(&folder);
    snprintf(shape, sizeof shape, "(2, %d)", EDGES);
    write_npy(&folder, "edges.npy", "<i4", shape, edges, 2 * sizeof *edges * EDGES);
    snprintf(shape, sizeof shape, "(%d, %d)", LARGE, n_features);
    write_npy(&folder, "features.npy", "<f4", shape, features, (size_t)LARGE * (size_t)n_features * sizeof *features);
    free(edges);
    free(features);
}

/** Compare the peak memory of each of `n` ranks while it reads with the promise of the header, and its memory
 *  afterwards with the size of its arrays. */
static void check_bytes(int n)
{
    const int64_t range = EDGES / n + 1;
    int64_t       over = 0, least = INT64_MAX, most = 0, peak = 0;

    crew_aim(folder.path);
    for (int i = 0; i < n; i++) crew[i].memory.most_bytes = 0;
    crew_open(api, n);
    for (int i = 0; i < n; i++) {
        const graft_dataset *set = crew[i].rc == GRAFT_OK ? crew[i].interface->view(crew[i].data) : NULL;
        int64_t              entries, bytes, promised;

        if (!ok(set != NULL, "the data set is read on rank %d of %d", i, n)) return;
        entries = set->graph->row_ptr[set->n_slice];
        bytes = set->n_slice * (8 + 4 * set->n_features) + 4 * entries;
        /* Edges of other ranks were in memory too, but they are few. Contexts and transports need less than 100 kB. */
        promised = bytes + range * 12 + (entries + entries / 4) * 8 + 16384 * n + 200000;
        if (crew[i].memory.most_bytes > promised) over++;
        if (bytes < least) least = bytes;
        if (bytes > most) most = bytes;
        if (crew[i].memory.most_bytes > peak) peak = crew[i].memory.most_bytes;
    }
    crew_close(n);
    ok(over == 0, "%d ranks read slices within the memory of the formula; at most %.1f MB", n, (double)peak / 1e6);
    ok(most - least < most / 10, "the slices of all ranks have about the same number of bytes: %lld to %lld",
       (long long)least, (long long)most);
}

/** A graph whose arrays alone have 12.8 MB of columns and 1.6 MB of rows. */
static void data_slices_check_large(void)
{
    graft_data *out;

    write_large(8);
    memory.most_bytes = 0;
    out = opened(folder.path);
    ok(out != NULL, "ranks read the same graph of 3.2 million edges as one process, which needed %.1f MB",
       (double)memory.most_bytes / 1e6);
    data->close(out);
    check_bytes(2);
    check_bytes(7);
}

/** Lines of every length, comments, blank lines, and a value that depends on the order of sums. Wherever the file is
 *  cut, results must be bitwise identical and line numbers right. */
static void check_lines(void)
{
    enum { ENTRIES = 3000, N = 40 };
    static char text[ENTRIES * 80 + 256];
    uint32_t    state = 7;
    int used = snprintf(text, sizeof text, "%%%%MatrixMarket matrix coordinate real symmetric\n%% why\n\n%d %d %d\n", N,
                        N, ENTRIES),
        lines = 4;
    graft_data *out;

    for (int i = 0; i < ENTRIES; i++) {
        const uint32_t r = lcg_next(&state);

        if (r % 5 == 0) {
            used += snprintf(text + used, sizeof text - (size_t)used, "%%%.*s\n", (int)(r % 50),
                             " a comment that is longer than most of the entries");
            lines++;
        }
        if (r % 7 == 0) {
            used += snprintf(text + used, sizeof text - (size_t)used, "%.*s\n", (int)(r % 9), "  \t      ");
            lines++;
        }
        used += snprintf(text + used, sizeof text - (size_t)used, "%.*s%u %u %g\n", (int)(r % 4), "   ",
                         lcg_next(&state) % N + 1, lcg_next(&state) % N + 1, (double)r * 1e-3 - 7000.0);
        lines++;
    }
    folder_clear(&folder);
    write_file(&folder, "a.mtx", text, (size_t)used);
    out = opened(folder_path(&folder, "a.mtx"));
    ok(out != NULL, "ranks read lines of many kinds in the same way as one process");
    data->close(out);
    used += snprintf(text + used, sizeof text - (size_t)used, "%% and\n1 1 1\n");
    write_file(&folder, "a.mtx", text, (size_t)used);
    snprintf(text, sizeof text, "line %d: found one more line", lines + 2);
    REFUSED("one entry too many", folder_path(&folder, "a.mtx"), GRAFT_ERR_FORMAT, text, "3000 of 3000");
}

/* The message with which `n` ranks refuse their paths, without the number of the rank; or what is wrong with it. */
static void words_of_refusal(int n, const char *path, char words[600])
{
    const char *fault, *at;

    crew_aim(path);
    crew_open(api, n);
    fault = crew_refusal_fault(n, GRAFT_ERR_FORMAT, NULL);
    at = strncmp(crew[0].error.message, "rank ", 5) == 0 ? strchr(crew[0].error.message, ':') + 2
                                                         : crew[0].error.message;
    snprintf(words, 600, "%.599s", fault != NULL ? fault : at);
    crew_close(n);
}

/** An error in the last lines of a file must have the same message with any number of ranks. */
static void check_last_lines(void)
{
    static const char *const tails[] = { "5 5\n5 x\n",        "5 5\n5 5\n5 x\n",  "5 x\n5 5\n",      "5 5\n5 5\n5 5\nx",
                                         "5 5\n5 9\n\n% a\n", "5 5\n9 5\n9 9\n",  "5 5\n\n  \nx",    "5 5",
                                         "5 5\n5 5\n5 5 5\n", "x\nx\nx\nx\nx\nx", "5 5\n5 5\n\n9 9", "5" };
    char                     text[512], alone[600], together[600], fault[1300] = "";
    int                      count = 0;

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        for (int stated = 6; stated <= 9; stated++) {
            const int used = snprintf(text, sizeof text,
                                      "%%%%MatrixMarket matrix coordinate pattern general\n5 5 %d\n"
                                      "1 1\n2 1\n3 1\n4 1\n5 1\n%s",
                                      stated, tails[i]);

            folder_clear(&folder);
            write_file(&folder, "a.mtx", text, (size_t)used);
            words_of_refusal(1, folder_path(&folder, "a.mtx"), alone);
            if (crew[0].rc == GRAFT_OK) continue; /* this variant is a legal file */
            for (int n = 2; n <= CREW_MOST; n++, count++) {
                words_of_refusal(n, folder_path(&folder, "a.mtx"), together);
                if (strcmp(alone, together) != 0 && fault[0] == '\0')
                    snprintf(fault, sizeof fault, "%d ranks: %s; one: %s", n, together, alone);
            }
        }
    }
    ok_or(fault[0] == '\0' && count > 100, fault, "%d refusals of last lines are those of one rank", count);
}

/** After an error that all ranks agree on, and after a success, the transport can be used again. */
static void check_again(void)
{
    graft_data *out;

    folder_clear(&folder);
    write_sample(&folder, 1);
    out = opened(folder.path);
    crew_repeats = 40;
    crew_aim(folder.path);
    crew_open(api, 3);
    crew_repeats = 1;
    ok(out != NULL && crew_fault(data->view(out), 3) == NULL, "one transport serves several readings");
    crew_close(3);
    data->close(out);
}

/** A slice alone is no data set that a trainer accepts. */
static void check_training(void)
{
    const graft_train_api *train = api->get_interface(context, GRAFT_TRAIN_ID);
    graft_trainer         *trainer = NULL;
    graft_error            error = GRAFT_INIT(graft_error);
    int32_t                rc;

    folder_clear(&folder);
    write_sample(&folder, 0);
    crew_aim(folder.path);
    crew_open(api, 2);
    if (!ok(crew[1].rc == GRAFT_OK, "two ranks read the sample")) return;
    rc = train->create(context, crew[1].interface->view(crew[1].data), &trainer, &error);
    ok(rc == GRAFT_ERR_UNSUPPORTED && strstr(error.message, "of 4 vertices") != NULL,
       "training in one process refuses a slice: %s", error.message);
    crew_close(2);
}

int main(void)
{
    if (!host_begin()) return done();
    folder_create(&folder);
    folder_create(&other);
    alarm(600); /* ends a rank that hangs */
    check_disagreement();
    check_deceit();
    check_copies();
    check_memory_failures();
    check_lines();
    check_last_lines();
    data_slices_check_large();
    check_again();
    check_training();
    folder_destroy(&folder);
    folder_destroy(&other);
    host_end();
    return done();
}
