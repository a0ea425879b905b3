/* Checks graft.data/1 with Matrix Market files: the contents of good files, and the error of every kind of bad file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_host.h"

#include <locale.h>

static struct data_folder folder;

static void check_mtx(void)
{
#define BANNER(words) "%%MatrixMarket matrix coordinate " words "\n"
    /* clang-format off */
    static const struct {
        const char *what, *text, *expected;
    } cases[] = {
        { "pattern", BANNER("pattern general") "3 3 2\n1 3\n3 2\n", "3: 0<2 2<1" },
        { "no end of the last line", BANNER("pattern general") "3 3 2\n1 3\n3 2", "3: 0<2 2<1" },
        { "symmetric", BANNER("pattern symmetric") "3 3 3\n2 1\n3 3\n3 1\n", "3: 0<1 0<2 1<0 2<0 2<2" },
        { "real", BANNER("real general") "2 2 2\n1 2 -2.5e0\n2 1 +.5E1\n", "2: 0<1=-2.5 1<0=5" },
        { "integer", BANNER("integer general") "2 2 2\n1 2 -7\n2 1 16777217\n", "2: 0<1=-7 1<0=1.67772e+07" },
        { "a weighted symmetric one", BANNER("real symmetric") "2 2 2\n2 1 3\n1 1 1e-400\n", "2: 0<0=0 0<1=3 1<0=3" },
        { "duplicates without values", BANNER("pattern general") "2 2 3\n1 2\n1 2\n1 2\n", "2: 0<1" },
        { "duplicates with values", BANNER("real general") "2 2 4\n1 2 1\n2 1 8\n1 2 2\n1 2 4\n", "2: 0<1=7 1<0=8" },
        { "\\r\\n, comments, blank lines",
          "%%matrixmarket MATRIX Coordinate PATTERN General\r\n% 9 9 9\r\n\r\n"
          "  3\t3  1 \r\n\r\n%\n 1  2\t\r\n\r\n \r\n",
          "3: 0<1" },
        { "no entries", BANNER("real general") "2 2 0\n", "2:" },
        { "no vertices", BANNER("real general") "0 0 0", "0:" },
    };
    /* clang-format on */
    graft_data *out;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        folder_clear(&folder);
        write_file(&folder, "a.mtx", cases[i].text, strlen(cases[i].text));
        reads_as(cases[i].what, folder_path(&folder, "a.mtx"), cases[i].expected);
        write_file(&folder, "graph.mtx", cases[i].text, strlen(cases[i].text));
        reads_as("the same in a folder", folder.path, cases[i].expected);
    }
    out = opened(folder.path);
    ok(out != NULL && data->view(out)->graph->value_type == GRAFT_F32 && data->view(out)->labels == NULL,
       "values of a Matrix Market file are float, and the data set has only a graph");
    data->close(out);
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
        write_file(&folder, "graph.mtx", cases[3].text, strlen(cases[3].text));
        reads_as("real, in a locale with a comma,", folder.path, cases[3].expected);
        setlocale(LC_NUMERIC, "C");
    } else {
        skip(1, "the locale de_DE.UTF-8 is not installed");
    }
}

/** Random entries, many of them repeated, in more bytes than are read at once. */
static void data_mtx_check_random(void)
{
    enum { N = 70, ENTRIES = 9000 };
    static float general[N * N], symmetric[N * N];
    static char  text[ENTRIES * 16 + 128];
    uint32_t     random = 1;

    for (int is_symmetric = 0; is_symmetric < 2; is_symmetric++) {
        float *expected = is_symmetric ? symmetric : general;
        int    used = snprintf(text, sizeof text, "%%%%MatrixMarket matrix coordinate real %s\n%d %d %d\n",
                            is_symmetric ? "symmetric" : "general", N, N, ENTRIES);

        for (int i = 0; i < ENTRIES; i++) {
            int row, col;

            random = random * 1664525u + 1013904223u;
            row = (int)(random >> 8 & 0xff) % N, col = (int)(random >> 16 & 0xff) % N;
            used += snprintf(text + used, sizeof text - (size_t)used, "%d %d %d.25\n", row + 1, col + 1, i % 9);
            expected[row * N + col] += (float)(i % 9) + 0.25f;
            if (is_symmetric && row != col) expected[col * N + row] += (float)(i % 9) + 0.25f;
        }
        write_file(&folder, "a.mtx", text, (size_t)used);
        ok(is_matrix(folder_path(&folder, "a.mtx"), expected, N), "%d random entries, %s, are read", ENTRIES,
           is_symmetric ? "symmetric" : "general");
    }
}

/** Check the order in which values of repeated entries are added. It must be that of the file. The test has a long and
 *  a short row of a wide matrix, and values whose sums depend on the order. */
static void check_order_of_sums(void)
{
    enum { N = 70000, LONG = 4000, SHORT = 40 };
    static const char *const values[] = { "1e8", "1", "-1e8", "3" };
    static const float       numbers[] = { 1e8f, 1, -1e8f, 3 };
    static float             sum[2][N];
    static uint8_t           there[2][N];
    static char              text[(LONG + SHORT) * 24 + 128];
    const graft_csr         *graph = NULL;
    graft_data              *out;
    uint32_t                 random = 3;
    int64_t                  at = 0, faults = 0;
    int                      used =
        snprintf(text, sizeof text, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", N, N, LONG + SHORT);

    for (int i = 0; i < LONG + SHORT; i++) {
        /* So few columns that many are repeated. */
        const int row = i % 100 == 0 && i / 100 < SHORT, most = row == 1 ? 9 : 1500;
        int       col;

        random = random * 1664525u + 1013904223u;
        col = (int)(random >> 8) % most * (N / most);
        used += snprintf(text + used, sizeof text - (size_t)used, "%d %d %s\n", row + 1, col + 1, values[random >> 30]);
        sum[row][col] = there[row][col] ? sum[row][col] + numbers[random >> 30] : numbers[random >> 30];
        there[row][col] = 1;
    }
    write_file(&folder, "a.mtx", text, (size_t)used);
    out = opened(folder_path(&folder, "a.mtx"));
    if (out != NULL) graph = data->view(out)->graph;
    for (int64_t i = 0; graph != NULL && i < 2 * (int64_t)N; i++) {
        const int64_t row = i / N, col = i % N;

        if (!there[row][col]) continue;
        faults += at >= graph->row_ptr[row + 1] || ((const int32_t *)graph->col_idx)[at] != col ||
                  ((const float *)graph->values)[at] != sum[row][col];
        at++;
    }
    ok(graph != NULL && faults == 0 && at == graph->row_ptr[N],
       "sums of %lld repeated entries are added in the order of the file, %lld are wrong", (long long)at,
       (long long)faults);
    data->close(out);
}

static void check_mtx_refusals(void)
{
    /* clang-format off */
    static const struct {
        const char *what, *text, *words[3];
    } cases[] = {
        { "no banner", "3 3 1\n1 2\n", { "line 1", "'3'", "MatrixMarket" } },
        { "an empty file", "", { "line 1", "''", "MatrixMarket" } },
        { "a vector", "%%MatrixMarket vector coordinate real general\n3 1\n1 1\n", { "line 1", "'vector'" } },
        { "an array", "%%MatrixMarket matrix array real general\n1 1\n1\n", { "'array'", "coordinate" } },
        { "complex values", BANNER("complex general") "1 1 1\n1 1 1 1\n", { "'complex'", "real, integer or pattern" } },
        { "hermitian", BANNER("complex hermitian") "1 1 0\n", { "'complex'" } },
        { "a real hermitian", BANNER("real hermitian") "1 1 0\n", { "'hermitian'", "general or symmetric" } },
        { "skew-symmetric", BANNER("real skew-symmetric") "1 1 0\n", { "'skew-symmetric'", "general or symmetric" } },
        { "a banner with more words", BANNER("real general twice") "1 1 0\n", { "line 1", "'twice'" } },
        { "a banner alone", BANNER("real general"), { "line 2", "rows, columns and entries" } },
        { "two sizes", BANNER("real general") "3 3\n1 1 1\n", { "line 2", "''", "number of entries" } },
        { "four sizes", BANNER("real general") "3 3 1 7\n1 1 1\n", { "line 2", "'7'" } },
        { "a rectangle", BANNER("real general") "3 4 1\n1 1 1\n", { "line 2", "3 rows, 4 columns" } },
        { "entries: 2^64 - 1", BANNER("real general") "3 3 18446744073709551615\n1 1 1\n",
          { "line 2", "'18446744073709551615'" } },
        { "entries: 2^63 - 1", BANNER("real symmetric") "3 3 9223372036854775807\n1 1 1\n",
          { "line 2", "9223372036854775807 entries", "at most 1" } },
        { "entries: -1", BANNER("real general") "3 3 -1\n1 1 1\n", { "line 2", "'-1'" } },
        { "entries that cannot be", BANNER("pattern general") "3 3 3\n1 1\n2 2\n",
          { "3 entries", "8 bytes", "most 2" } },
        { "fewer entries than stated", BANNER("pattern general") "3 3 3\n1 1\n2 2\n%%%%%%\n",
          { "line 6", "end of the file", "2 of 3" } },
        { "more entries than stated", BANNER("pattern general") "3 3 1\n1 1\n2 2\n",
          { "line 4", "one more line", "1 of 1" } },
        { "2^31 vertices", BANNER("pattern general") "2147483648 2147483648 1\n1 1\n", { "2147483648 vertices" } },
        { "2^31 - 1 vertices and one edge", BANNER("pattern general") "2147483647 2147483647 1\n1 1\n",
          { "2147483647 vertices", "labels.npy" } },
        { "an index of 0", BANNER("pattern general") "3 3 2\n1 1\n0 2\n", { "line 4", "'0'", "from 1 to 3" } },
        { "an index beyond n", BANNER("pattern general") "3 3 2\n1 1\n2 4\n", { "line 4", "'4'", "from 1 to 3" } },
        { "a negative index", BANNER("pattern general") "3 3 1\n-1 1\n", { "line 3", "'-1'", "from 1 to 3" } },
        { "an index of 2^64 + 1", BANNER("pattern general") "3 3 1\n18446744073709551617 1\n",
          { "line 3", "'184467" } },
        { "a broken index", BANNER("pattern general") "3 3 1\n1.5 1\n", { "line 3", "'1.5'" } },
        { "one index", BANNER("pattern general") "3 3 1\n1   \n", { "line 3", "''", "a column" } },
        { "a value in a pattern", BANNER("pattern general") "3 3 1\n1 1 1\n", { "line 3", "two fields" } },
        { "no value", BANNER("real general") "3 3 1\n1 1   \n", { "line 3", "''", "finite number" } },
        { "a value of 1e400", BANNER("real general") "3 3 1\n1 1 1e400\n", { "line 3", "'1e400'", "finite" } },
        { "a value beyond float", BANNER("real general") "3 3 1\n1 1 1e39\n", { "line 3", "'1e39'", "float" } },
        { "nan", BANNER("real general") "3 3 1\n1 1 nan\n", { "line 3", "'nan'", "finite" } },
        { "inf", BANNER("real general") "3 3 1\n1 1 -inf\n", { "line 3", "'-inf'", "finite" } },
        { "a hexadecimal value", BANNER("real general") "3 3 1\n1 1 0x10\n", { "line 3", "'0x10'", "finite" } },
        { "a value with a comma", BANNER("real general") "3 3 1\n1 1 1,5\n", { "line 3", "'1,5'", "finite" } },
        { "^", BANNER("real general") "3 3 1\n1 1 ^\n", { "line 3", "'^'" } },
        { "a broken integer", BANNER("integer general") "3 3 1\n1 1 1.5\n", { "line 3", "'1.5'", "integer" } },
        { "a sum beyond float", BANNER("real general") "3 3 2\n1 2 3e38\n1 2 3e38\n", { "row 0, column 1", "float" } },
    };
    /* clang-format on */

    folder_clear(&folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(&folder, "a.mtx", cases[i].text, strlen(cases[i].text));
        REFUSED(cases[i].what, folder_path(&folder, "a.mtx"), GRAFT_ERR_FORMAT, "/a.mtx'", cases[i].words[0],
                cases[i].words[1] != NULL ? cases[i].words[1] : "", cases[i].words[2] != NULL ? cases[i].words[2] : "");
    }
#undef BANNER
}

/** A comment, a run of blanks and a field that are longer than any buffer. */
static void check_long_lines(void)
{
    enum { LENGTH = 1 << 20 };
    static const char banner[] = "%%MatrixMarket matrix coordinate pattern general\n", rest[] = "\n2 2 1\n1 2\n";
    static char       text[sizeof banner + LENGTH + sizeof rest];
    char *const       line = text + sizeof banner - 1;
    const size_t      count = sizeof banner - 1 + LENGTH + sizeof rest - 1;

    folder_clear(&folder);
    memcpy(text, banner, sizeof banner);
    memcpy(line + LENGTH, rest, sizeof rest);
    memset(line, '%', LENGTH);
    write_file(&folder, "a.mtx", text, count);
    reads_as("a comment of 1 MB", folder_path(&folder, "a.mtx"), "2: 0<1");
    memset(line, ' ', LENGTH);
    write_file(&folder, "a.mtx", text, count);
    reads_as("a line with 1 MB of blanks", folder_path(&folder, "a.mtx"), "2: 0<1");
    memset(line, '7', LENGTH);
    write_file(&folder, "a.mtx", text, count);
    REFUSED("a number of 1 MB", folder_path(&folder, "a.mtx"), GRAFT_ERR_FORMAT, "line 2", "'777", "...'", "128");
}

static void check_damage(void)
{
    static const char mtx[] = "%%MatrixMarket matrix coordinate real symmetric\n% two\n3 3 2\n2 1 5\n3 1 7\n";

    folder_clear(&folder);
    write_file(&folder, "graph.mtx", mtx, sizeof mtx - 1);
    check_truncations(&folder, "graph.mtx", folder.path, 1);
    write_file(&folder, "graph.mtx", mtx, sizeof mtx - 2);
    reads_as("graph.mtx without its last line end", folder.path, "3: 0<1=5 0<2=7 1<0=5 2<0=7");
    check_out_of_memory("a folder", folder.path);
    check_out_of_memory("a file", folder_path(&folder, "graph.mtx"));
}

int main(void)
{
    if (!host_begin()) return done();
    folder_create(&folder);
    check_mtx();
    data_mtx_check_random();
    check_order_of_sums();
    check_mtx_refusals();
    check_long_lines();
    check_damage();
    folder_destroy(&folder);
    host_end();
    return done();
}
