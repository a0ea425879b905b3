/* Option halo.file: a plan made of covers that were kept is the plan that found them, and every wrong file is refused
 * with one sentence on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../exchange/spread.h"
#include "../oracle/oracle.h"
#include "../tap.h"

#include "base/crc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 60, WIDTH = 5, RANKS = 3, HEAD = 64, FILE_MOST = 512 };

/* Where the head has what. */
enum { AT_CRC = 8, AT_KIND = 12, AT_RANK = 16, AT_RANKS = 20, AT_HALO = 24, AT_TARGETS = 32, AT_EDGES = 40 };

static struct sample_csr graph, other; /* of as many vertices */
static float             exact[N * WIDTH], rounded[N * WIDTH];
static const float      *x = rounded; /* sums of rounded numbers tell in which order they were made */
static char              folder[] = "/tmp/graft-covers-XXXXXX", name[64];
static char              out[3][N * WIDTH * sizeof(float)];
static struct ranks      ranks;

struct file {
    size_t        bytes;
    unsigned char data[FILE_MOST];
};

static const char *path_of(int32_t rank)
{
    static char path[80];

    snprintf(path, sizeof path, "%s.%d", name, rank);
    return path;
}

static struct file get(int32_t rank)
{
    struct file file = { 0 };
    FILE       *stream = fopen(path_of(rank), "rb");

    if (stream != NULL) file.bytes = fread(file.data, 1, sizeof file.data, stream);
    if (stream != NULL) fclose(stream);
    return file;
}

static void put(int32_t rank, const struct file *file)
{
    FILE *stream = fopen(path_of(rank), "wb");

    if (stream == NULL || fwrite(file->data, 1, file->bytes, stream) != file->bytes || fclose(stream) != 0) abort();
}

static void remove_files(void)
{
    for (int32_t rank = 0; rank < RANKS_MOST; rank++) unlink(path_of(rank));
}

static int files_in_folder(void)
{
    DIR *list = opendir(folder);
    int  count = -2;

    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

/* Seal what was changed, so that all but the CRC is left to find it out. */
static void seal(struct file *file)
{
    uint32_t crc;

    memset(file->data + AT_CRC, 0, sizeof crc);
    crc = gr_crc_plain(0, file->data, file->bytes);
    memcpy(file->data + AT_CRC, &crc, sizeof crc);
}

/* What weighted covers go by. */
static const char *few_bits[] = { "halo.bits", "2", "halo.cover_lambda", "0.5", NULL };

static struct spread spread_with(const char *file, const char *cover, const struct sample_csr *of,
                                 char (*results)[sizeof *out])
{
    struct spread s = { .graph = &of->csr,
                        .dtype = GRAFT_F32,
                        .x = (const char *)x,
                        .x_width = WIDTH,
                        .scale = (const char *)x,
                        .partition = "hash",
                        .cover = cover,
                        .threads = "2",
                        .n_passes = 3 };

    for (int i = 0; i < 3; i++) {
        s.pass[i] = (struct spread_pass){ .semiring = i == 2 ? GRAFT_MAX_TIMES : GRAFT_PLUS_TIMES,
                                          .flags = i == 1 ? GRAFT_AGGREGATE_TRANSPOSE : 0,
                                          .width = WIDTH,
                                          .out = results[i] };
        memset(results[i], 0, sizeof *results);
    }
    if (strcmp(cover, "weighted") == 0) s.settings = few_bits;
    for (int i = 0; i < RANKS_MOST; i++) s.file[i] = file;
    return s;
}

/* The fault of a run in which all ranks should come to `status`, and say `words`; NULL if there is none. */
static const char *run(struct spread *s, int32_t n_ranks, int32_t status, const char *words)
{
    static char fault[700];
    const char *left;

    ranks_init(&ranks, n_ranks, 30, spread_body, s);
    ranks_run(&ranks);
    fault[0] = '\0';
    for (int32_t i = 0; i < n_ranks; i++) {
        if (ranks.at[i].rc == status && (status == GRAFT_OK || strstr(ranks.at[i].error.message, words) != NULL))
            continue;
        snprintf(fault, sizeof fault, "rank %d: %d %s", i, ranks.at[i].rc, ranks.at[i].error.message);
    }
    left = ranks_fini(&ranks);
    if (fault[0] == '\0' && left != NULL) snprintf(fault, sizeof fault, "%s", left);
    return fault[0] != '\0' ? fault : NULL;
}

static void said(const char *fault)
{
    if (fault != NULL) diag("%s", fault);
}

/* Whether three ranks refuse the files that are there. */
static int is_refused(const char *cover, const struct sample_csr *of, int32_t status, const char *words)
{
    static char   spoiled[3][sizeof *out];
    struct spread s = spread_with(name, cover, of, spoiled);
    const char   *fault = run(&s, RANKS, status, words);

    said(fault);
    return fault == NULL;
}

static void test_round_trip(const char *cover)
{
    static char   first[3][sizeof *out], again[3][sizeof *out];
    struct spread plain = spread_with(NULL, cover, &graph, out), s = spread_with(name, cover, &graph, first);
    struct spread t = spread_with(name, cover, &graph, again);
    const char   *fault;
    struct file   before[RANKS];
    struct stat   status[2];
    int           same = 1;

    remove_files();
    fault = run(&plain, RANKS, GRAFT_OK, "");
    said(fault);
    ok(fault == NULL && files_in_folder() == 0, "%s: without the option there is no file", cover);
    fault = run(&s, RANKS, GRAFT_OK, "");
    said(fault);
    ok(fault == NULL && files_in_folder() == RANKS, "%s: each rank keeps its covers", cover);
    for (int32_t i = 0; i < RANKS; i++) before[i] = get(i);
    stat(path_of(0), &status[0]);
    fault = run(&t, RANKS, GRAFT_OK, "");
    said(fault);
    stat(path_of(0), &status[1]);
    for (int32_t i = 0; i < RANKS; i++) {
        const struct file now = get(i);

        same = same && now.bytes > HEAD && now.bytes == before[i].bytes &&
               memcmp(now.data, before[i].data, now.bytes) == 0;
    }
    ok(fault == NULL && same && status[0].st_ino == status[1].st_ino, "%s: the next run leaves the files alone", cover);
    ok(memcmp(plain.rows, s.rows, sizeof s.rows) == 0 && memcmp(s.rows, t.rows, sizeof s.rows) == 0 &&
           memcmp(out, first, sizeof out) == 0 && memcmp(out, again, sizeof out) == 0,
       "%s: and sends the same rows, for the same bits", cover);
}

/* Of weighted covers files know what they go by; those of the last round trip are there. */
static void test_weighted(void)
{
    few_bits[1] = "4";
    ok(is_refused("weighted", &graph, GRAFT_ERR_FORMAT, "for 2 bits and halo.cover_lambda 0.5, expected 4 and 0.5"),
       "covers for other bits");
    few_bits[1] = "2";
    few_bits[3] = "0.25";
    ok(is_refused("weighted", &graph, GRAFT_ERR_FORMAT, "for 2 bits and halo.cover_lambda 0.5, expected 2 and 0.25"),
       "covers of another price");
    few_bits[3] = "0.5";
    ok(is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "of the kind 'weighted', and option halo.cover is 'hybrid'"),
       "weighted covers, and others asked for");
}

/* Some ranks have their files, others find their covers again: each cover is the business of one rank. */
static void test_some(void)
{
    static char       again[3][sizeof *out];
    struct spread     t = spread_with(name, "hybrid", &graph, again);
    const struct file before = get(1);
    struct file       after;
    const char       *fault;

    unlink(path_of(1));
    fault = run(&t, RANKS, GRAFT_OK, "");
    said(fault);
    after = get(1);
    ok(fault == NULL && memcmp(out, again, sizeof out) == 0 && memcmp(&before, &after, sizeof after) == 0,
       "a rank without a file finds its covers and keeps them");
    for (int i = 0; i < RANKS; i++) t.file[i] = i == 1 ? NULL : name;
    fault = run(&t, RANKS, GRAFT_ERR_ARG, "whether option halo.file names one");
    said(fault);
    ok(fault == NULL, "the option is set on all ranks, or on none");
}

/* Covers with all ends in them are right as well, and many more rows: what is in the file is what counts. */
static void test_is_used(void)
{
    static char       again[3][sizeof *out];
    struct spread     plain, t;
    const struct file good = get(0);
    struct file       bad = good;
    int64_t           halo, targets, rows = 0;
    int               members = 0, refused = 0;
    const char       *fault;

    x = exact;
    plain = spread_with(NULL, "hybrid", &graph, out);
    t = spread_with(name, "hybrid", &graph, again);
    fault = run(&plain, RANKS, GRAFT_OK, "");
    said(fault);
    memcpy(&halo, bad.data + AT_HALO, sizeof halo);
    memcpy(&targets, bad.data + AT_TARGETS, sizeof targets);
    memset(bad.data + HEAD, 255, bad.bytes - HEAD);
    seal(&bad);
    put(0, &bad);
    if (fault == NULL) fault = run(&t, RANKS, GRAFT_OK, "");
    said(fault);
    for (int q = 0; q < RANKS; q++) rows += t.rows[q][0];
    ok(fault == NULL && rows == halo + targets && memcmp(out, again, sizeof out) == 0,
       "the rows are those of the file: %lld of %lld vertices and %lld rows; and the sums right", (long long)rows,
       (long long)halo, (long long)targets);
    memset(bad.data + HEAD, 0, bad.bytes - HEAD);
    seal(&bad);
    put(0, &bad);
    ok(is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "covers.0' has no cover: neither row"), "no cover at all");
    for (size_t bit = 8 * HEAD; bit < 8 * good.bytes; bit++) {
        const unsigned char mask = (unsigned char)(1 << bit % 8);

        if (!(good.data[bit / 8] & mask)) continue;
        bad = good;
        bad.data[bit / 8] ^= mask;
        seal(&bad);
        put(0, &bad);
        members++;
        refused += is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "has no cover");
    }
    ok(members > 10 && refused == members, "a cover without any one of its %d members is none", members);
    put(0, &good);
}

static void test_damage(void)
{
    const struct file good = get(2);
    struct file       bad;
    int               right = 1;

    for (size_t bytes = 0; bytes < good.bytes; bytes += 7) {
        bad = good;
        bad.bytes = bytes;
        put(2, &bad);
        right = right && is_refused("hybrid", &graph, GRAFT_ERR_FORMAT,
                                    bytes < HEAD ? "a file of covers has 64 at least" : "is said to have a cover of");
    }
    ok(right, "a file cut short anywhere");
    bad = good;
    bad.bytes++;
    put(2, &bad);
    ok(is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "is said to have"), "a byte behind the end");
    for (size_t bit = 0; bit < 8 * good.bytes; bit += 5) {
        bad = good;
        bad.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        put(2, &bad);
        right = right && is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "covers.2' ");
    }
    ok(right, "any bit the other way");
    put(2, &good);
}

/* A file that is whole, and not what is asked for. */
static int says(int at, int64_t value, int bytes, const char *words)
{
    const struct file good = get(1);
    struct file       bad = good;
    int               right;

    memcpy(bad.data + at, &value, (size_t)bytes);
    seal(&bad);
    put(1, &bad);
    right = is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, words);
    put(1, &good);
    return right;
}

static void test_others(void)
{
    static char   spoiled[3][sizeof *out];
    struct spread two = spread_with(name, "hybrid", &graph, spoiled);
    const char   *fault;
    struct file   mine = get(0), theirs = get(1);

    ok(is_refused("pre", &graph, GRAFT_ERR_FORMAT, "of the kind 'hybrid', and option halo.cover is 'pre'"),
       "another kind of cover");
    ok(is_refused("hybrid", &other, GRAFT_ERR_FORMAT, "of another graph or partition"), "another graph");
    two.partition = "block";
    fault = run(&two, RANKS, GRAFT_ERR_FORMAT, "of another graph or partition");
    said(fault);
    ok(fault == NULL, "another partition");
    two.partition = "hash";
    fault = run(&two, 2, GRAFT_ERR_FORMAT, "of rank 0 of 3, expected rank 0 of 2");
    said(fault);
    ok(fault == NULL, "another number of ranks");
    put(0, &theirs);
    put(1, &mine);
    ok(is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "of rank 1 of 3, expected rank 0 of 3"), "of another rank");
    put(0, &mine);
    put(1, &theirs);
    ok(says(0, 0x31304848, 4, "covers.1' is not a file of covers: it begins with 'HH01"), "another kind of file");
    ok(says(AT_KIND, 7, 4, "of the kind 'unknown'"), "a kind of cover that is none");
    ok(says(AT_KIND, -1, 4, "of the kind 'unknown'"), "another");
    ok(says(AT_RANKS, 4, 4, "of rank 1 of 4"), "more ranks");
    ok(says(AT_EDGES, 1, 8, "of 1 cut entries"), "another number of entries");
    ok(says(AT_HALO, -1, 8, "a cover of -1 vertices"), "a negative size");
    ok(says(AT_TARGETS, INT64_MAX, 8, "and 9223372036854775807 rows"), "one that no file has");
    ok(files_in_folder() == RANKS, "nothing is left beside");
}

/* Every other row gathers from a vertex of another rank, the n-th from the n-th vertex or the one behind it: cut
 * entries in the same places of two graphs, of other vertices. */
static void make_thin(struct sample_csr *thin, struct sample *sample, int64_t odd)
{
    const struct sample_csr_shape shape = { N, N, GRAFT_I32, GRAFT_F32, 1, 1 };

    sample_csr_init_shape(thin, sample, &shape);
    for (int64_t v = 0; v < N; v++) {
        thin->row_ptr[v + 1] = thin->row_ptr[v] + (v % 2 == 0);
        if (v % 2 == 0) sample_put(thin->col_idx, GRAFT_I32, v / 2, (double)((v + N / 2) % N + odd));
    }
}

static void test_same_places(void)
{
    static char       spoiled[3][sizeof *out];
    struct sample     sample = { 5 };
    struct sample_csr thin[2];
    struct spread     s[2];
    const char       *fault[2];

    remove_files();
    for (int i = 0; i < 2; i++) {
        make_thin(&thin[i], &sample, i);
        s[i] = spread_with(name, "hybrid", &thin[i], spoiled);
        s[i].partition = "given";
    }
    fault[0] = run(&s[0], RANKS, GRAFT_OK, "");
    said(fault[0]);
    if (fault[0] == NULL) fault[1] = run(&s[1], RANKS, GRAFT_ERR_FORMAT, "of another graph or partition: of ");
    if (fault[0] == NULL) said(fault[1]);
    ok(fault[0] == NULL && fault[1] == NULL, "cut entries in the same places, that lead to other vertices");
    for (int i = 0; i < 2; i++) sample_csr_fini(&thin[i]);
    remove_files();
}

static void test_places(void)
{
    static char   spoiled[3][sizeof *out], nowhere[80], longer[5000];
    struct spread s = spread_with(nowhere, "hybrid", &graph, spoiled);
    const char   *fault;
    struct rlimit was, small;

    snprintf(nowhere, sizeof nowhere, "%s/none/covers", folder);
    fault = run(&s, RANKS, GRAFT_ERR_IO, "none/covers.0' cannot be written");
    said(fault);
    ok(fault == NULL, "a folder that is not there is said by all ranks");
    s.file[0] = s.file[2] = name;
    remove_files();
    fault = run(&s, RANKS, GRAFT_ERR_IO, "none/covers.1' cannot be written");
    said(fault);
    ok(fault == NULL && files_in_folder() == 0, "or if one rank has it, and before any work");
    memset(longer, 'x', sizeof longer - 1);
    s.file[1] = longer;
    fault = run(&s, RANKS, GRAFT_ERR_IO, "longer than a path can be");
    said(fault);
    ok(fault == NULL, "a path too long");
    remove_files();
    mkdir(path_of(1), 0700);
    ok(is_refused("hybrid", &graph, GRAFT_ERR_FORMAT, "covers.1' is a folder"), "a folder in place of a file");
    rmdir(path_of(1));
    remove_files();
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = HEAD;
    setrlimit(RLIMIT_FSIZE, &small);
    ok(is_refused("hybrid", &graph, GRAFT_ERR_IO, "cannot be written") && files_in_folder() == 0,
       "a process that may not write so much");
    setrlimit(RLIMIT_FSIZE, &was);
}

/* Memory that one rank has not, at every allocation of a run that reads and of one that writes. */
static void test_memory(int reads)
{
    static char spoiled[3][sizeof *out];
    int         failures = 0, right = 1;

    for (int64_t at = 0; right; at++) {
        struct spread s = spread_with(name, "hybrid", &graph, spoiled);
        int           failed = 0;

        if (!reads) remove_files();
        s.starved = 1;
        s.fail_at = at;
        ranks_init(&ranks, RANKS, 30, spread_body, &s);
        ranks.fail_rank = 1;
        ranks_run(&ranks);
        for (int i = 0; i < RANKS; i++) failed += ranks.at[i].rc < 0;
        right = (failed == 0 || failed == RANKS) && ranks_fini(&ranks) == NULL;
        if (failed == 0) break;
        failures++;
    }
    ok(right && failures > 10, "%s: no memory on one rank, at each of %d places, is said by all",
       reads ? "with files" : "without", failures);
}

int main(void)
{
    static const char *const covers[] = { "pre", "post", "hybrid" };
    struct sample            sample = { 11 };

    alarm(110);
    for (int i = 0; i < 2; i++) {
        const struct sample_csr_shape shape = { N, N, GRAFT_I32, GRAFT_F32, 1, 1 };

        sample_csr_init_shape(i == 0 ? &graph : &other, &sample, &shape);
    }
    for (int i = 0; i < N * WIDTH; i++) {
        exact[i] = (float)sample_exact(&sample, 8, 4);
        rounded[i] = (float)sample_real(&sample, -1, 1);
    }
    if (mkdtemp(folder) == NULL) return 2;
    snprintf(name, sizeof name, "%s/covers", folder);
    test_round_trip("weighted");
    test_weighted();
    for (int i = 0; i < 3; i++) test_round_trip(covers[i]);
    test_some();
    test_is_used();
    test_damage();
    test_others();
    test_memory(1);
    test_memory(0);
    test_same_places();
    test_places();
    remove_files();
    ok(rmdir(folder) == 0, "the folder is empty again");
    sample_csr_fini(&graph);
    sample_csr_fini(&other);
    return done();
}
