/* Checks files of partitions: a written file is read again, and every wrong file is refused with a message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/files.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include "base/crc.h"
#include "partition/owners.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 5, PARTS = 3, HEAD = 64, WHOLE = HEAD + 4 * N };

static const struct gr_graph_identity graph = { N, 12, UINT64_C(0x123456789abcdef0) };
static const int32_t                  owners[N] = { 2, 0, 1, 1, 0 };

static struct strict_host host;
static graft_context      context;
static graft_error        error = { .size = sizeof error };
static char               folder[] = "/tmp/graft-owners-XXXXXX", path[64];
static unsigned char      good[WHOLE];

static void owners_put(const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

/* Whether reading fails with this status and these words, and changes nothing. */
static int owners_is_refused(const struct gr_graph_identity *of, int32_t parts, int32_t status, const char *words)
{
    int32_t       owner[N + 1] = { 7, 7, 7, 7, 7, 7 };
    const int32_t rc = gr_partition_owners_read(&context, path, of, parts, owner, &error);

    for (int v = 0; v <= N; v++)
        if (owner[v] != 7) return 0;
    if (rc == status && strstr(error.message, words) != NULL && host.live_blocks == 0) return 1;
    diag("%d %s, expected '%s'", rc, error.message, words);
    return 0;
}

static void test_round_trip(void)
{
    int32_t  owner[N] = { 0 };
    uint32_t crc;
    FILE    *file;

    ok(gr_partition_owners_write(path, &graph, PARTS, owners, &error) == GRAFT_OK && files_in(folder) == 1,
       "a file of owners is written");
    ok(gr_partition_owners_read(&context, path, &graph, PARTS, owner, &error) == GRAFT_OK &&
           memcmp(owner, owners, sizeof owner) == 0,
       "the file of owners is read");
    file = fopen(path, "rb");
    ok(file != NULL && fread(good, 1, WHOLE, file) == WHOLE && fgetc(file) == EOF,
       "the file of owners has 64 bytes, and 4 bytes for each owner");
    fclose(file);
    ok(memcmp(good, "graftPF1", 8) == 0 && memcmp(good + 12, &(int32_t){ PARTS }, 4) == 0 &&
           memcmp(good + 16, &graph, sizeof graph) == 0 && memcmp(good + HEAD, owners, sizeof owners) == 0,
       "each number is at its documented position in the file of owners");
    memcpy(&crc, good + 8, 4);
    memset(good + 8, 0, 4);
    ok(crc == gr_crc_plain(0, good, WHOLE),
       "the CRC in the file of owners is that of the file with zeros at its position");
    memcpy(good + 8, &crc, 4);
    ok(gr_partition_owners_write(path, &graph, PARTS, owners, &error) == GRAFT_OK && files_in(folder) == 1,
       "the file of owners is overwritten");
}

static void test_owners_lengths(void)
{
    unsigned char longer[WHOLE + 4] = { 0 };
    int           right = 1;

    for (size_t bytes = 0; bytes < WHOLE; bytes++) {
        owners_put(good, bytes);
        right =
            right && owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, bytes < HEAD ? "64 at least" : "5 vertices");
    }
    ok(right, "a file of owners that is truncated at any byte is refused");
    memcpy(longer, good, WHOLE);
    for (size_t more = 1; more <= 4; more++) {
        owners_put(longer, WHOLE + more);
        right = right && owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, "5 vertices");
    }
    ok(right, "a file of owners with more bytes at its end is refused");
    for (size_t at = 0; at < WHOLE; at++) {
        memcpy(longer, good, at);
        memcpy(longer + at, good + at + 1, WHOLE - at - 1);
        owners_put(longer, WHOLE - 1);
        right = right && owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, "");
        memcpy(longer + at + 1, good + at, WHOLE - at);
        for (int i = 0; i < 4 && right; i++) {
            longer[at] = (const unsigned char[]){ 0, 1, 255, good[at] }[i];
            owners_put(longer, WHOLE + 1);
            right = owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, "");
        }
    }
    ok(right, "a file of owners with a byte missing or added anywhere is refused");
}

static void test_owners_bits(void)
{
    int right = 1;

    for (int bit = 0; bit < 8 * WHOLE; bit++) {
        unsigned char bad[WHOLE];

        memcpy(bad, good, WHOLE);
        bad[bit / 8] ^= (unsigned char)(1 << bit % 8);
        owners_put(bad, WHOLE);
        right = right && owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT,
                                           bit < 64                     ? "is not a partition: it begins with"
                                           : bit >= 128 && bit < 24 * 8 ? "is said to have the owners of"
                                                                        : "damaged: its CRC32C");
    }
    ok(right, "a file of owners with any of its %d bits flipped is refused", 8 * WHOLE);
}

/* Write a complete file with one wrong number, and expect an error. */
static int says(int at, int64_t value, int bytes, const char *words)
{
    unsigned char bad[WHOLE];
    uint32_t      crc;

    memcpy(bad, good, WHOLE);
    memcpy(bad + at, &value, (size_t)bytes);
    memset(bad + 8, 0, 4);
    crc = gr_crc_plain(0, bad, WHOLE);
    memcpy(bad + 8, &crc, 4);
    owners_put(bad, WHOLE);
    return owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, words);
}

static void test_contents(void)
{
    const struct gr_graph_identity larger = { N + 1, 12, graph.fingerprint };

    ok(says(12, 6, 4, "6 parts of 5 vertices"), "a file of owners with more parts than vertices is refused");
    ok(says(12, 0, 4, "0 parts of 5 vertices"), "a file of owners with 0 parts is refused");
    ok(says(12, -1, 4, "-1 parts of 5 vertices"), "a file of owners with a negative number of parts is refused");
    ok(says(12, 4, 4, "in 4 parts, expected 3"), "a file of owners with another number of parts is refused");
    ok(says(12, 1, 4, "in 1 part, expected 3"), "a file of owners with one part is refused if 3 are expected");
    ok(says(24, 13, 8, "13 entries"), "owners of a graph with another number of entries are refused");
    ok(says(32, 1, 8, "fingerprint 0000000000000001, expected 5, 12 and 123456789abcdef0"),
       "owners of a graph with another fingerprint are refused");
    ok(says(HEAD + 8, 3, 4, "vertex 2 is in part 3, but parts go from 0 to 2"),
       "a file with an owner that is too large is refused");
    ok(says(HEAD, -1, 4, "vertex 0 is in part -1"), "a file with a negative owner is refused");
    ok(says(16, INT64_MAX, 8, "9223372036854775807 vertices"),
       "a file of owners with too many vertices for memory is refused");
    ok(says(16, -1, 8, "-1 vertices"), "a file of owners with a negative number of vertices is refused");
    owners_put(good, WHOLE);
    ok(owners_is_refused(&larger, PARTS, GRAFT_ERR_FORMAT, "of another graph: of 5 vertices"),
       "owners of a graph with another number of vertices are refused");
    ok(owners_is_refused(&graph, 2, GRAFT_ERR_FORMAT, "in 3 parts, expected 2"),
       "a file of owners with more parts than asked for is refused");
    host.calls = 0;
    strict_host_fail(&host, 0, 0);
    ok(owners_is_refused(&graph, PARTS, GRAFT_ERR_NOMEM, "no memory"), "no memory");
    strict_host_fail(&host, -1, 0);
}

/* Each character of the path has two bytes, and the message must be cut between characters. */
static int is_long_path_cut(void)
{
    char        name[256] = "/none/";
    const char *dots;

    for (int i = 0; i < 60; i++) strcat(name, "\xC3\xB6");
    strcat(name, "/f");
    if (gr_partition_owners_check_place(name, &graph, PARTS, &error) != GRAFT_ERR_IO) return 0;
    dots = strstr(error.message, "'...\xC3\xB6");
    return dots == error.message && strstr(dots, "\xC3\xB6/f' cannot be written: No such file") != NULL;
}

static void test_places(void)
{
    char keep[sizeof path];

    memcpy(keep, path, sizeof keep);
    snprintf(path, sizeof path, "%s/none", folder);
    ok(owners_is_refused(&graph, PARTS, GRAFT_ERR_NOT_FOUND, "none"),
       "a file of owners that does not exist is reported");
    snprintf(path, sizeof path, "%s", folder);
    ok(owners_is_refused(&graph, PARTS, GRAFT_ERR_FORMAT, "a folder"),
       "a folder in place of a file of owners is refused");
    ok(gr_partition_owners_write(folder, &graph, PARTS, owners, &error) == GRAFT_ERR_IO && error.native_code == EISDIR,
       "a folder is not overwritten by a file of owners");
    snprintf(path, sizeof path, "%s/none/file", folder);
    ok(gr_partition_owners_write(path, &graph, PARTS, owners, &error) == GRAFT_ERR_IO && error.native_code == ENOENT &&
           strstr(error.message, "none/file") != NULL,
       "a file of owners is not written into a folder that does not exist");
    ok(gr_partition_owners_check_place(path, &graph, PARTS, &error) == GRAFT_ERR_IO && error.native_code == ENOENT &&
           strstr(error.message, "none/file") != NULL,
       "a missing folder is reported before owners are computed");
    ok(gr_partition_owners_check_place("/none/of/three/file", &graph, PARTS, &error) == GRAFT_ERR_IO &&
           strstr(error.message, "'/none/of/three/file' cannot be written") != NULL,
       "the path of a file that cannot be written is reported as it was given");
    ok(is_long_path_cut(), "a long path is reported by its end, after dots");
    memcpy(path, keep, sizeof keep);
    ok(gr_partition_owners_check_place(path, &graph, PARTS, &error) == GRAFT_OK &&
           gr_partition_owners_check_place("name", &graph, PARTS, &error) == GRAFT_OK && files_in(folder) == 1,
       "files of owners can be written beside other files, and in the current folder");
    ok(gr_partition_owners_check_place(path, &graph, N + 1, &error) == GRAFT_ERR_ARG &&
           strstr(error.message, "leave option partition.file out") != NULL,
       "the check of the path refuses more parts than vertices");
    ok(gr_partition_owners_write(path, &graph, N + 1, owners, &error) == GRAFT_ERR_ARG,
       "owners of more parts than vertices are not written");
    ok(files_in(folder) == 1, "no temporary file is left beside the file of owners");
}

/* A limit on the size of files must not end the process, and the old file must be preserved. */
static void test_owners_limit(void)
{
    struct rlimit was, small;
    int32_t       owner[N], other[N] = { 0 };
    int32_t       rc;

    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = WHOLE - 1;
    owners_put(good, WHOLE);
    setrlimit(RLIMIT_FSIZE, &small);
    rc = gr_partition_owners_write(path, &graph, PARTS, other, &error);
    setrlimit(RLIMIT_FSIZE, &was);
    ok(rc == GRAFT_ERR_IO && error.native_code == EFBIG && files_in(folder) == 1,
       "a file of owners larger than the limit of file sizes is an error");
    ok(gr_partition_owners_read(&context, path, &graph, PARTS, owner, &error) == GRAFT_OK &&
           memcmp(owner, owners, sizeof owner) == 0,
       "after an error the old file of owners is unchanged");
}

int main(void)
{
    strict_host_init(&host);
    context.host = host.table;
    if (mkdtemp(folder) == NULL) return 2;
    snprintf(path, sizeof path, "%s/cut", folder);
    test_round_trip();
    test_owners_lengths();
    test_owners_bits();
    test_contents();
    test_places();
    test_owners_limit();
    unlink(path);
    ok(rmdir(folder) == 0, "the folder of the test is empty at the end");
    ok(host.fault == NULL && host.live_blocks == 0, "all memory of the host was freed, and none was misused");
    return done();
}
