/* Checks graft.data/1 with folders of .npy files: the contents of good files, the error of every kind of bad file, and
 * memory that runs out. Real data sets of GRAFT_TEST_DATA are compared with known sizes and checksums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_host.h"

#include <math.h>
#include <sys/stat.h>

static struct data_folder folder;

static void sample(int sparse)
{
    folder_clear(&folder);
    write_sample(&folder, sparse);
}

static void check_sample(int sparse)
{
    static const int32_t labels[4] = { 0, 2, -1, 1 };
    static const float   features[4][3] = { { 1, 0, 0.5f }, { 0, 0, 0 }, { -2, 0, 0 }, { 0, 4, 0 } };
    graft_data          *out;
    const graft_dataset *set;

    sample(sparse);
    out = opened(folder.path);
    if (!ok(out != NULL, "a folder with %s features opens", sparse ? "sparse" : "dense")) return;
    set = data->view(out);
    ok(set->n_vertices == 4 && set->n_features == 3 && set->n_classes == 3,
       "the data set has 4 vertices, 3 features and 3 classes");
    ok(strcmp(graph_text(set->graph), "4: 0<1 0<3 1<0 3<0 3<2") == 0,
       "destinations gather from sources, in ascending order");
    ok(set->graph->index_type == GRAFT_I32 && set->graph->values == NULL && set->graph->n_cols == 4,
       "a graph of edges.npy has no values");
    ok(memcmp(set->labels, labels, sizeof labels) == 0 && set->targets == NULL, "the labels are those of the file");
    ok(memcmp(set->split, "\1\2\0\3", 4) == 0, "the split is that of the file");
    if (sparse) {
        const graft_csr *csr = set->sparse_features;
        ok(set->features == NULL && csr->n_rows == 4 && csr->n_cols == 3 && csr->value_type == GRAFT_F32,
           "the features have the expected form");
        ok(strcmp(graph_text(csr), "4: 0<0=1 0<2=0.5 2<0=-2 3<1=4") == 0, "the sparse features are those of the files");
    } else {
        const graft_dense *dense = set->features;
        ok(set->sparse_features == NULL && dense->n_rows == 4 && dense->n_cols == 3 && dense->stride == 3,
           "the features have the expected form");
        ok(memcmp(dense->data, features, sizeof features) == 0, "the dense features are those of the file");
    }
    data->close(out);
}

static void check_variants(void)
{
    static const int64_t wide[2][4] = { { 5, 0, 5, 5 }, { 0, 5, 0, 0 } };
    static const uint8_t targets[2][3] = { { 1, 0, 1 }, { 0, 0, 0 } };
    /* clang-format off */
    static const struct {
        const char *what, *header;
        int         version;
    } headers[] = {
        { "version 1", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }    \n", 1 },
        { "version 2", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }    \n", 2 },
        { "version 3", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }    \n", 3 },
        { "another order of keys", "{'shape': (2, 1), 'fortran_order': False, 'descr': '<i4'}", 1 },
        { "other quotes and blanks", " {\"descr\":\"<i4\" ,\n 'fortran_order' :False,\t'shape':( 2,1 ,) , } ", 1 },
    };
    /* clang-format on */
    static const int32_t edge[2] = { 1, 0 };
    graft_data          *out;

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const char *header = headers[i].header;

        folder_clear(&folder);
        write_npy_as(&folder, "edges.npy", headers[i].version, (uint32_t)strlen(header), header, edge, sizeof edge);
        reads_as(headers[i].what, folder.path, "2: 0<1");
    }
    folder_clear(&folder);
    write_npy(&folder, "edges.npy", "<i8", "(2, 4)", wide, sizeof wide);
    reads_as("edges of 64 bits, one three times, no other file", folder.path, "6: 0<5 5<0");
    ok(strstr(last_log, "merged 2 duplicate edges") != NULL, "the log reports merged edges: %s", last_log);
    write_npy(&folder, "edges.npy", "<i4", "(2, 0)", wide, 0);
    reads_as("a graph without edges and vertices", folder.path, "0:");
    write_npy(&folder, "labels.npy", "|u1", "(2, 3)", targets, sizeof targets);
    out = opened(folder.path);
    if (ok(out != NULL, "a data set in which a vertex has several classes is read")) {
        const graft_dataset *set = data->view(out);
        ok(set->n_vertices == 2 && set->n_classes == 3 && set->labels == NULL &&
               memcmp(set->targets, targets, sizeof targets) == 0,
           "the targets are those of the file");
        ok(set->features == NULL && set->sparse_features == NULL && set->split == NULL && set->n_features == 0,
           "arrays without a file are NULL");
    }
    data->close(out);
}

/** Float targets with one or more columns, of which some values are unknown. */
static void check_float_targets(void)
{
    static const float values[8] = { 1, NAN, -2, 0.5f, 3, 4, NAN, 7 };
    graft_data        *out;

    for (int columns = 1; columns <= 2; columns++) {
        sample(0);
        remove(folder_path(&folder, "labels.npy"));
        write_npy(&folder, "targets.npy", "<f4", columns == 1 ? "(4,)" : "(4, 2)", values, (size_t)columns * 16);
        out = opened(folder.path);
        if (ok(out != NULL, "float targets of %d columns are read", columns)) {
            const graft_dataset *set = data->view(out);
            const graft_dense   *y = set->float_targets;

            ok(y != NULL && y->dtype == GRAFT_F32 && y->n_rows == 4 && y->n_cols == columns && y->stride == columns &&
                   memcmp(y->data, values, (size_t)columns * 16) == 0 && set->n_classes == columns &&
                   set->labels == NULL && set->targets == NULL,
               "float targets are unchanged, including NaN");
        }
        data->close(out);
    }
    sample(0);
    write_npy(&folder, "targets.npy", "<f4", "(4,)", values, 16);
    REFUSED("labels and float targets", folder.path, GRAFT_ERR_FORMAT, "labels.npy", "targets.npy");
}

/** Random edges, many of them repeated, more than are read at once, and vertices without edges. */
static void data_check_random(void)
{
    enum { N = 80, EDGES = 6000 };
    static int32_t narrow[2][EDGES];
    static int64_t wide[2][EDGES];
    static float   expected[N * N];
    static uint8_t split[N];
    uint32_t       random = 1;

    for (int i = 0; i < EDGES; i++) {
        for (int end = 0; end < 2; end++) {
            random = random * 1664525u + 1013904223u;
            narrow[end][i] = (int32_t)(random >> 16) % N / 3 * 3;
            wide[end][i] = narrow[end][i];
        }
        expected[narrow[1][i] * N + narrow[0][i]] = 1;
    }
    folder_clear(&folder);
    write_npy(&folder, "split.npy", "|u1", "(80,)", split, sizeof split);
    write_npy(&folder, "edges.npy", "<i4", "(2, 6000)", narrow, sizeof narrow);
    ok(is_matrix(folder.path, expected, N), "%d random edges with 32-bit indices are read", EDGES);
    write_npy(&folder, "edges.npy", "<i8", "(2, 6000)", wide, sizeof wide);
    ok(is_matrix(folder.path, expected, N), "%d random edges with 64-bit indices are read", EDGES);
}

/** Edge features must follow their edges. Most edges are repeated, and the features of the first one count. There are
 *  more rows than are read at once. */
static void check_edge_features(void)
{
    enum { N = 80, EDGES = 6000, WIDTH = 70 };
    static int32_t edges[2][EDGES];
    static float   features[EDGES][WIDTH], first[N * N];
    uint32_t       random = 3;
    graft_data    *out;
    int            wrong = 0;

    for (int i = EDGES - 1; i >= 0; i--) {
        for (int end = 0; end < 2; end++) {
            random = random * 1664525u + 1013904223u;
            edges[end][i] = (int32_t)(random >> 16) % N / 2 * 2;
        }
        for (int j = 0; j < WIDTH; j++) features[i][j] = (float)(i + j);
        first[edges[1][i] * N + edges[0][i]] = (float)i;
    }
    folder_clear(&folder);
    write_npy(&folder, "edges.npy", "<i4", "(2, 6000)", edges, sizeof edges);
    write_npy(&folder, "edge_features.npy", "<f4", "(6000, 70)", features, sizeof features);
    out = opened(folder.path);
    if (ok(out != NULL, "a data set with edge features is read")) {
        const graft_dataset *set = data->view(out);
        const graft_dense   *y = set->edge_features;
        const int64_t        n = set->n_vertices;

        for (int64_t v = 0; v < n && y != NULL; v++)
            for (int64_t e = set->graph->row_ptr[v]; e < set->graph->row_ptr[v + 1]; e++)
                for (int j = 0; j < WIDTH; j++)
                    wrong += ((const float *)y->data)[e * y->stride + j] !=
                             first[v * N + ((const int32_t *)set->graph->col_idx)[e]] + (float)j;
        ok(y != NULL && y->n_rows == set->graph->row_ptr[n] && y->n_cols == WIDTH && wrong == 0,
           "each edge has the features of its first occurrence in the file");
    }
    data->close(out);
    features[5999][69] = INFINITY;
    write_npy(&folder, "edge_features.npy", "<f4", "(6000, 70)", features, sizeof features);
    REFUSED("a feature that is not finite", folder.path, GRAFT_ERR_FORMAT, "edge_features.npy", "row 5999",
            "column 69");
    write_npy(&folder, "edge_features.npy", "<f4", "(5999, 70)", features, sizeof features - sizeof *features);
    REFUSED("a row too few", folder.path, GRAFT_ERR_FORMAT, "edge_features.npy", "5999 rows", "6000 edges");
    write_npy(&folder, "edge_features.npy", "<f4", "(6000, 0)", features, 0);
    REFUSED("rows without columns", folder.path, GRAFT_ERR_FORMAT, "edge_features.npy", "0 columns");
    folder_clear(&folder);
    write_npy(&folder, "edge_features.npy", "<f4", "(0, 1)", features, 0);
    write_file(&folder, "graph.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 0\n", 55);
    REFUSED("features of edges beside a Matrix Market file", folder.path, GRAFT_ERR_FORMAT, "edge_features.npy",
            "no edges.npy");
}

static void check_npy_refusals(void)
{
#define DICT(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"
#define SHAPE(shape) DICT("<f4", "False", shape)
    /* clang-format off */
    static const struct {
        const char *what, *header, *words[3];
    } cases[] = {
        { "a shape far beyond the file", SHAPE("(65536, 65536)"), { "48 bytes", "(65536, 65536)", "17179869184" } },
        { "a shape whose product overflows", SHAPE("(4294967296, 4294967296)"), { "48 bytes", "more than 2^63" } },
        { "a shape whose bytes overflow", SHAPE("(4, 1152921504606846979)"), { "more than 2^63" } },
        { "a length beyond 64 bits", SHAPE("(4, 99999999999999999999)"), { "2^63", "byte" } },
        { "a negative length", SHAPE("(-4, 3)"), { "'-'", "not negative" } },
        { "one row more than there is", SHAPE("(5, 3)"), { "48 bytes", "needs 60" } },
        { "one row less than there is", SHAPE("(3, 3)"), { "48 bytes", "needs 36" } },
        { "one dimension", SHAPE("(12,)"), { "(12,)", "uint8 [n, features]" } },
        { "three dimensions", SHAPE("(4, 3, 1)"), { "(4, 3, 1)", "uint8 [n, features]" } },
        { "no dimension", SHAPE("()"), { "()", "uint8 [n, features]" } },
        { "five dimensions", SHAPE("(4, 3, 1, 1, 1)"), { "4 dimensions", "byte" } },
        { "a shape that is a number", SHAPE("(12)"), { "','", "byte" } },
        { "a shape of words", SHAPE("(four, 3)"), { "'f'", "byte" } },
        { "doubles", DICT("<f8", "False", "(2, 3)"), { "<f8", "uint8 [n, features]" } },
        { "a big-endian file", DICT(">f4", "False", "(4, 3)"), { ">f4", "big-endian" } },
        { "a Fortran-ordered file", DICT("<f4", "True", "(4, 3)"), { "Fortran order", "C order" } },
        { "a file of Python objects", DICT("|O", "False", "(4, 3)"), { "'|O'", "objects" } },
        { "complex numbers", DICT("<c8", "False", "(4, 3)"), { "'<c8'", "float32" } },
        { "a record type", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4, 3), }", { "records" } },
        { "a missing key", "{'descr': '<f4', 'shape': (4, 3), }", { "no key 'fortran_order'" } },
        { "a key that comes twice", "{'descr': '<f4', 'descr': '<f4', 'shape': (4, 3), }", { "'descr' twice" } },
        { "an unknown key", "{'descr': '<f4', 'colour': '<f4', 'shape': (4, 3), }", { "'colour'" } },
        { "an order that is a number", DICT("<f4", "0", "(4, 3)"), { "True or False", "byte" } },
        { "a dict that does not end", "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)", { "'}'" } },
        { "something after the dict", SHAPE("(4, 3)") " + 1", { "'+'", "end of the header" } },
        { "a quote that does not end", "{'descr", { "closing quote" } },
        { "a text of 100 characters", "{'descr': '<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4'",
          { "short text" } },
        { "an empty header", "", { "'{'" } },
        { "a header of control characters", "\1\2\3", { "'?'", "'{'" } },
    };
    /* clang-format on */
#undef SHAPE
    static const float features[12] = { 0 };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sample(0);
        write_npy_as(&folder, "features.npy", 1, (uint32_t)strlen(cases[i].header), cases[i].header, features,
                     sizeof features);
        REFUSED(cases[i].what, folder.path, GRAFT_ERR_FORMAT, "/features.npy'", cases[i].words[0],
                cases[i].words[1] != NULL ? cases[i].words[1] : "", cases[i].words[2] != NULL ? cases[i].words[2] : "");
    }
    write_npy_as(&folder, "features.npy", 2, UINT32_MAX, DICT("<f4", "False", "(4, 3)"), features, sizeof features);
    REFUSED("a header of 4 GB", folder.path, GRAFT_ERR_FORMAT, "features.npy", "4294967295", "10000");
    write_npy_as(&folder, "features.npy", 1, 10001, DICT("<f4", "False", "(4, 3)"), features, sizeof features);
    REFUSED("a header of 10001 bytes", folder.path, GRAFT_ERR_FORMAT, "features.npy", "10001", "10000");
    write_npy_as(&folder, "features.npy", 1, 9000, DICT("<f4", "False", "(4, 3)"), features, sizeof features);
    REFUSED("a header beyond the file", folder.path, GRAFT_ERR_FORMAT, "features.npy", "inside its header", "9010");
    write_npy_as(&folder, "features.npy", 4, 62, DICT("<f4", "False", "(4, 3)"), features, sizeof features);
    REFUSED("version 4", folder.path, GRAFT_ERR_FORMAT, "features.npy", "version 4.0");
    write_file(&folder, "features.npy", "PK\3\4 an archive", 15);
    REFUSED("an .npz file", folder.path, GRAFT_ERR_FORMAT, "features.npy", "15 bytes", "NUMPY");
    write_file(&folder, "features.npy", "", 0);
    REFUSED("an empty file", folder.path, GRAFT_ERR_FORMAT, "features.npy", "0 bytes", "NUMPY");
}

/** Wrong contents that no header shows. */
static void check_content_refusals(void)
{
    /* clang-format off */
    static const struct {
        const char *what, *file, *descr, *shape;
        union {
            int32_t i4[10];
            int64_t i8[5];
            float   f4[12];
            uint8_t u1[8];
        } bytes;
        size_t      count;
        const char *words[3];
    } cases[] = {
        { "a source beyond the vertices", "edges.npy", "<i4", "(2, 5)", { .i4 = { 1, 0, 3, 4, 0 } }, 40,
          { "edge 3", "source 4", "/features" } },
        { "a negative destination", "edges.npy", "<i4", "(2, 5)", { .i4 = { [9] = -7 } }, 40,
          { "edge 4", "destination -7" } },
        { "edges in three rows", "edges.npy", "<i4", "(3, 1)", { .i4 = { 0 } }, 12, { "3 rows", "expected 2" } },
        { "edges of floats", "edges.npy", "<f4", "(2, 5)", { .f4 = { 0 } }, 40, { "<f4", "int32 or int64" } },
        { "a label below -1", "labels.npy", "<i4", "(4,)", { .i4 = { 0, 0, -2 } }, 16, { "vertex 2", "label -2" } },
        { "a label of a billion", "labels.npy", "<i4", "(4,)", { .i4 = { [3] = 1065353216 } }, 16,
          { "vertex 3", "label 1065353216" } },
        { "too many labels", "labels.npy", "<i4", "(5,)", { .i4 = { 0 } }, 20, { "has 5", "features", "has 4" } },
        { "labels of 64 bits", "labels.npy", "<i8", "(4,)", { .i8 = { 0 } }, 32, { "<i8", "int32 [n] or uint8" } },
        { "a target of 2", "labels.npy", "|u1", "(4, 2)", { .u1 = { [5] = 2 } }, 8, { "vertex 2", "column 1 is 2" } },
        { "targets of no class", "labels.npy", "|u1", "(4, 0)", { .u1 = { 0 } }, 0, { "0 columns" } },
        { "an infinite target", "targets.npy", "<f4", "(4, 2)", { .f4 = { NAN, [5] = INFINITY } }, 32,
          { "vertex 2", "column 1", "NaN" } },
        { "targets of 64 bits", "targets.npy", "<f8", "(4,)", { .i8 = { 0 } }, 32, { "<f8", "float32 [n]" } },
        { "targets without columns", "targets.npy", "<f4", "(4, 0)", { .f4 = { 0 } }, 0, { "0 columns" } },
        { "a target too few", "targets.npy", "<f4", "(3,)", { .f4 = { 0 } }, 12, { "has 3", "features", "has 4" } },
        { "a split of 4", "split.npy", "|u1", "(4,)", { .u1 = { 0, 4 } }, 4, { "vertex 1", "is 4", "validation" } },
        { "a short split", "split.npy", "|u1", "(3,)", { .u1 = { 0 } }, 3, { "has 3", "features", "has 4" } },
        { "a split of int32", "split.npy", "<i4", "(4,)", { .i4 = { 0 } }, 16, { "<i4", "uint8 [n]" } },
        { "a feature that is not a number", "features.npy", "<f4", "(4, 3)", { .f4 = { [7] = NAN } }, 48,
          { "row 2, column 1", "nan" } },
        { "an infinite feature", "features.npy", "<f4", "(4, 3)", { .f4 = { [11] = -INFINITY } }, 48,
          { "row 3, column 2", "-inf" } },
        { "features without columns", "features.npy", "<f4", "(4, 0)", { .f4 = { 0 } }, 0, { "0 columns" } },
        { "row pointers that begin at 1", "features_csr_indptr.npy", "<i8", "(5,)", { .i8 = { 1, 2, 2, 3, 4 } }, 40,
          { "row_ptr[0] is 1" } },
        { "row pointers that fall", "features_csr_indptr.npy", "<i8", "(5,)", { .i8 = { 0, 3, 2, 3, 4 } }, 40,
          { "row 1", "from 3 to 2" } },
        { "row pointers that overshoot", "features_csr_indptr.npy", "<i8", "(5,)", { .i8 = { 0, 2, 900, 3, 4 } }, 40,
          { "row 2", "from 900 to 3" } },
        { "row pointers that end early", "features_csr_indptr.npy", "<i8", "(5,)", { .i8 = { 0, 2, 2, 3, 3 } }, 40,
          { "ends with 3", "4 entries" } },
        { "a row pointer too few", "features_csr_indptr.npy", "<i8", "(4,)", { .i8 = { 0, 2, 2, 4 } }, 32,
          { "4 elements", "4 rows" } },
        { "no row pointer", "features_csr_indptr.npy", "<i8", "(0,)", { .i8 = { 0 } }, 0, { "0 elements", "4 rows" } },
        { "a column out of range", "features_csr_indices.npy", "<i4", "(4,)", { .i4 = { 0, 2, 3, 1 } }, 16,
          { "row 2", "column 3", "0 to 2" } },
        { "a negative column", "features_csr_indices.npy", "<i4", "(4,)", { .i4 = { -1, 2, 0, 1 } }, 16,
          { "row 0", "column -1" } },
        { "a column too few", "features_csr_indices.npy", "<i4", "(3,)", { .i4 = { 0, 2, 0 } }, 12,
          { "has 3", "features_csr_data.npy", "has 4" } },
        { "a sparse feature that is infinite", "features_csr_data.npy", "<f4", "(4,)", { .f4 = { [3] = INFINITY } }, 16,
          { "row 3", "not finite" } },
        { "a shape of three", "features_csr_shape.npy", "<i8", "(3,)", { .i8 = { 4, 3, 1 } }, 24, { "3 elements" } },
        { "a shape of no features", "features_csr_shape.npy", "<i8", "(2,)", { .i8 = { 4, 0 } }, 16, { "0 features" } },
        { "a shape of more rows", "features_csr_shape.npy", "<i8", "(2,)", { .i8 = { INT64_MAX, 3 } }, 16,
          { "9223372036854775807 rows" } },
        { "a shape of fewer rows", "features_csr_shape.npy", "<i8", "(2,)", { .i8 = { -1, 3 } }, 16, { "-1 rows" } },
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int sparse = strncmp(cases[i].file, "features_csr", 12) == 0;

        sample(sparse);
        if (strcmp(cases[i].file, "targets.npy") == 0) remove(folder_path(&folder, "labels.npy"));
        write_npy(&folder, cases[i].file, cases[i].descr, cases[i].shape, &cases[i].bytes, cases[i].count);
        REFUSED(cases[i].what, folder.path, GRAFT_ERR_FORMAT, sparse ? "/features_csr" : cases[i].file,
                cases[i].words[0], cases[i].words[1] != NULL ? cases[i].words[1] : "",
                cases[i].words[2] != NULL ? cases[i].words[2] : "");
    }
}

static void check_large_vertices(void)
{
    static const int64_t huge[2] = { 3000000000, 0 };
    static const int32_t large[2] = { INT32_MAX - 1, 0 }, little[2] = { 1, 0 };

    folder_clear(&folder);
    write_npy(&folder, "edges.npy", "<i8", "(2, 1)", huge, sizeof huge);
    REFUSED("a vertex beyond 2^31", folder.path, GRAFT_ERR_FORMAT, "edges.npy", "edge 0", "3000000000", "2147483646");
    write_npy(&folder, "edges.npy", "<i4", "(2, 1)", large, sizeof large);
    REFUSED("one edge that asks for 2^31 rows", folder.path, GRAFT_ERR_FORMAT, "edges.npy", "2147483647 vertices",
            "labels.npy");
    write_npy(&folder, "edges.npy", "<i4", "(2, 1)", little, sizeof little);
    write_npy(&folder, "features.npy", "<f4", "(2147483648, 0)", little, 0);
    REFUSED("rows without columns, 2^31 of them", folder.path, GRAFT_ERR_FORMAT, "features.npy", "0 columns");
}

/** Folders with missing or additional files. */
static void check_folder_refusals(void)
{
    sample(0);
    files_check(remove(folder_path(&folder, "edges.npy")) == 0, "remove");
    REFUSED("a folder without graph", folder.path, GRAFT_ERR_NOT_FOUND, "edges.npy", "graph.mtx");
    REFUSED("a folder that is not there", folder_path(&folder, "none"), GRAFT_ERR_NOT_FOUND, folder.path, "/none");
    REFUSED("a path through a file", folder_path(&folder, "labels.npy/x"), GRAFT_ERR_NOT_FOUND, "labels.npy/x");
    REFUSED("an empty path", "", GRAFT_ERR_NOT_FOUND, "''");
    REFUSED("an .npy file in place of a graph", folder_path(&folder, "labels.npy"), GRAFT_ERR_FORMAT, "labels.npy",
            "line 1", "MatrixMarket");
    sample(0);
    write_file(&folder, "graph.mtx", "", 0);
    REFUSED("a folder with two graphs", folder.path, GRAFT_ERR_FORMAT, "edges.npy", "graph.mtx", "two graphs");
    sample(1);
    files_check(remove(folder_path(&folder, "features_csr_data.npy")) == 0, "remove");
    REFUSED("sparse features in part", folder.path, GRAFT_ERR_NOT_FOUND, "no features_csr_data.npy");
    sample(1);
    write_sample(&folder, 0);
    REFUSED("features twice", folder.path, GRAFT_ERR_FORMAT, "twice", "features.npy", "features_csr");
    folder_clear(&folder);
    write_file(&folder, "labels.npy", "", 0);
    write_file(&folder, "graph.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 0\n", 55);
    REFUSED("a fault in the second file", folder.path, GRAFT_ERR_FORMAT, "labels.npy", "0 bytes");
    write_npy(&folder, "labels.npy", "<i4", "(2,)", "\0\0\0\0\1\0\0\0", 8);
    REFUSED("Matrix Market against labels", folder.path, GRAFT_ERR_FORMAT, "graph.mtx' has 3", "labels.npy' has 2");
}

/** Paths that are no regular file, or that cannot be opened or read. */
static void check_file_refusals(void)
{
    const char *edges;
    graft_error error = GRAFT_INIT(graft_error);
    graft_data *out = NULL;
    const int   is_root = geteuid() == 0;

    folder_clear(&folder);
    edges = folder_path(&folder, "edges.npy");
    files_check(mkfifo(edges, 0600) == 0, edges);
    alarm(20); /* a reader of a named pipe without a writer would wait forever */
    REFUSED("a pipe", folder.path, GRAFT_ERR_FORMAT, "edges.npy", "a pipe");
    REFUSED("a pipe in place of the folder", edges, GRAFT_ERR_FORMAT, "edges.npy", "a pipe");
    alarm(0);
    folder_clear(&folder);
    files_check(mkdir(folder_path(&folder, "edges.npy"), 0700) == 0, "mkdir");
    REFUSED("a folder in place of a file", folder.path, GRAFT_ERR_FORMAT, "edges.npy", "a folder");
    folder_clear(&folder);
    files_check(symlink("edges.npy", folder_path(&folder, "edges.npy")) == 0, "symlink");
    REFUSED("a link to itself", folder.path, GRAFT_ERR_IO, "edges.npy", "cannot be opened");
    data->open(context, folder.path, &out, &error);
    ok(error.native_code == ELOOP && strcmp(error.where, "graft.data/1 open") == 0,
       "native_code of a file error is errno");
    sample(0);
    files_check(remove(folder_path(&folder, "labels.npy")) == 0, "remove");
    files_check(symlink("elsewhere", folder_path(&folder, "labels.npy")) == 0, "symlink");
    REFUSED("a link that leads nowhere", folder.path, GRAFT_ERR_NOT_FOUND, "labels.npy");
    REFUSED("a device", "/dev/zero", GRAFT_ERR_FORMAT, "dev/zero", "a device");

    sample(0);
    files_check(chmod(folder_path(&folder, "split.npy"), 0) == 0, "chmod");
    if (is_root) files_check(seteuid(65534) == 0, "seteuid");
    REFUSED("a file that may not be read", folder.path, GRAFT_ERR_IO, "ermission denied");
    if (is_root) files_check(seteuid(0) == 0, "seteuid");
}

/** Another process truncates a file before one allocation or another, so that its header may have been read or not. */
static void check_cut(void)
{
    int while_read = 0, k = 0;

    for (graft_data *out = NULL; out == NULL && k < 100; k++) {
        graft_error error = GRAFT_INIT(graft_error);
        int32_t     rc;

        sample(0);
        memory.cut_path = folder_path(&folder, "edges.npy");
        memory.act_at = memory.calls + k;
        rc = data->open(context, folder.path, &out, &error);
        while_read += rc == GRAFT_ERR_IO && strstr(error.message, "edges.npy' ended at byte 100") != NULL;
        if (rc < 0 && strstr(error.message, "edges.npy") == NULL) while_read = -1000;
        data->close(out);
    }
    memory.cut_path = NULL;
    memory.act_at = -1;
    ok(while_read > 0 && k < 100, "a file that is truncated while it is read is refused");
}

static void check_all_truncations(void)
{
    static const char *const names[2][4] = {
        { "edges.npy", "features.npy", "labels.npy", "split.npy" },
        { "features_csr_indptr.npy", "features_csr_indices.npy", "features_csr_data.npy", "features_csr_shape.npy" },
    };

    for (int sparse = 0; sparse < 2; sparse++) {
        for (int i = 0; i < 4; i++) {
            sample(sparse);
            check_truncations(&folder, names[sparse][i], folder.path, 0);
        }
    }
}

static void check_all_out_of_memory(void)
{
    static const uint8_t targets[8] = { 1 };
    static const float   floats[8] = { 1 };

    sample(0);
    check_out_of_memory("dense features", folder.path);
    sample(1);
    write_npy(&folder, "labels.npy", "|u1", "(4, 2)", targets, sizeof targets);
    check_out_of_memory("sparse features and targets", folder.path);
    sample(0);
    remove(folder_path(&folder, "labels.npy"));
    write_npy(&folder, "targets.npy", "<f4", "(4, 2)", floats, sizeof floats);
    check_out_of_memory("float targets", folder.path);
    sample(0);
    write_npy(&folder, "edge_features.npy", "<f4", "(5, 1)", floats, 5 * sizeof *floats);
    check_out_of_memory("features of edges", folder.path);
}

static void check_arguments(void)
{
    graft_data *out = NULL;

    REFUSED("a null path", NULL, GRAFT_ERR_ARG, "path");
    ok(data->open(context, folder.path, NULL, NULL) == GRAFT_ERR_ARG, "open() refuses a NULL result");
    ok(data->open(NULL, folder.path, &out, NULL) == GRAFT_ERR_ARG && out == NULL, "open() refuses a NULL context");
    ok(data->view(NULL) == NULL, "view() of NULL is NULL");
    data->close(NULL);
}

struct known {
    const char *name;
    int64_t     vertices, edges, features, classes, split[4];
};

static void check_known(const char *path, const struct known *known)
{
    graft_data          *out = opened(path);
    const graft_dataset *set = data->view(out);
    int64_t              split[4] = { 0 };

    if (!ok(out != NULL, "data set %s is read", known->name)) return;
    for (int64_t i = 0; i < set->n_vertices; i++) split[set->split[i]]++;
    ok(set->n_vertices == known->vertices && set->graph->row_ptr[set->n_vertices] == known->edges,
       "%s: the graph is that of the oracle", known->name);
    ok(set->n_features == known->features && set->n_classes == known->classes,
       "%s: the numbers of features and classes are right", known->name);
    ok(memcmp(split + 1, known->split + 1, sizeof split - sizeof *split) == 0 || known->split[1] == 0,
       "%s: the split is right", known->name);
    data->close(out);
}

static void check_real(void)
{
    static const struct known sets[] = {
        { "cora", 2708, 10556, 1433, 7, { 0, 140, 500, 1000 } },
        { "citeseer", 3327, 9104, 3703, 6, { 0, 120, 500, 1000 } },
        { "amazon_photo", 7650, 238162, 745, 8, { 0 } },
        { "dblp", 17716, 105734, 1639, 4, { 0 } },
        { "facebook_pages", 22470, 341646, 4714, 4, { 0 } },
        { "tolokers", 11758, 1038000, 10, 2, { 0, 5879, 2939, 2940 } },
        { "acl_papers", 73254, 2111520, 2000, 5, { 0 } },
        { "gnnre", 104727, 435138, 34, 5, { 0 } },
    };
    const char *base = getenv("GRAFT_TEST_DATA");

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/%s", base != NULL ? base : "", sets[i].name);
        if (base != NULL && access(path, F_OK) == 0) check_known(path, &sets[i]);
        else skip(4, "%s: variable GRAFT_TEST_DATA names no folder that has this data set", sets[i].name);
    }
}

int main(void)
{
    if (!host_begin()) return done();
    folder_create(&folder);
    check_arguments();
    check_sample(0);
    check_sample(1);
    check_variants();
    check_float_targets();
    check_edge_features();
    data_check_random();
    check_npy_refusals();
    check_content_refusals();
    check_large_vertices();
    check_folder_refusals();
    check_file_refusals();
    check_cut();
    check_all_truncations();
    check_all_out_of_memory();
    check_real();
    folder_destroy(&folder);
    host_end();
    return done();
}
