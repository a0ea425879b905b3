/* What graft.mxm offers beside a product: epilogues, bfloat16 rows, conversion, mxm.verify, orders of vertices.
 * Numbers are small multiples of 1/8, so that sums are exact in any order and in bfloat16. With dropout 0.5, which
 * doubles the kept elements, all results must be equal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_mxm.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>

static const graft_api *api;
static const graft_mxm *mxm;
static graft_context   *context;

enum { M = 37, K = 29, WIDTH_MAX = 300, VERTEX_SHIFT = 1000 };

/* One product with all parts of an epilogue, and its expected result. */
struct scene {
    struct sample_csr a;
    graft_matrix     *matrix;
    int64_t           n, vertex[M];
    graft_dense       b, c, residual;
    graft_mask        mask;
    graft_epilogue    epilogue;
    graft_mxm_args    args;
    double            expected[M * WIDTH_MAX];
    uint8_t           expected_bits[M * (WIDTH_MAX / 8 + 1)];
};

static float    b_data[K * WIDTH_MAX], c_data[M * WIDTH_MAX], c_before[M * WIDTH_MAX], residual_data[M * WIDTH_MAX];
static float    bias[WIDTH_MAX], row_scale[M];
static uint16_t b_half[K * WIDTH_MAX];
static uint8_t  bits[M * (WIDTH_MAX / 8 + 1)], mask_bits[M * (WIDTH_MAX / 8 + 1)];
static int32_t  winner[M * WIDTH_MAX];

static graft_dense epilogue_dense(void *data, graft_dtype dtype, int64_t n_rows, int64_t n_cols)
{
    graft_dense view = GRAFT_INIT(graft_dense);

    view.dtype = dtype;
    view.n_rows = n_rows;
    view.n_cols = view.stride = n_cols;
    view.data = data;
    return view;
}

static void epilogue_fill(struct sample *sample, float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) data[i] = (float)sample_exact(sample, 31, 8);
}

static void scene_init_weighted(struct scene *s, struct sample *sample, int64_t n, int weighted)
{
    memset(s, 0, sizeof *s);
    s->n = n;
    sample_csr_init(&s->a, sample, M, K, GRAFT_I32, weighted ? GRAFT_F32 : 0, 1);
    mxm->matrix_create(context, &s->a.csr, 0, &s->matrix, NULL);
    epilogue_fill(sample, b_data, K * n);
    epilogue_fill(sample, c_before, M * n);
    epilogue_fill(sample, residual_data, M * n);
    epilogue_fill(sample, bias, n);
    for (int i = 0; i < M; i++) row_scale[i] = i % 3 == 0 ? 0.5f : 1;
    for (int i = 0; i < M; i++) s->vertex[i] = VERTEX_SHIFT + 7 * i;
    for (int64_t i = 0; i < M * ((n + 7) / 8); i++) mask_bits[i] = (uint8_t)sample_bits(sample);
    s->b = epilogue_dense(b_data, GRAFT_F32, K, n);
    s->c = epilogue_dense(c_data, GRAFT_F32, M, n);
    s->residual = epilogue_dense(residual_data, GRAFT_F32, M, n);
    s->mask = GRAFT_INIT(graft_mask);
    s->mask.kind = GRAFT_MASK_BITS;
    s->mask.stride = (n + 7) / 8;
    s->mask.present = mask_bits;
    s->epilogue = GRAFT_INIT(graft_epilogue);
    s->args = GRAFT_INIT(graft_mxm_args);
    s->args.semiring = GRAFT_PLUS_SECOND;
    s->args.a = s->matrix;
    s->args.b = &s->b;
    s->args.c = &s->c;
    s->args.epilogue = &s->epilogue;
}

static void epilogue_scene_init(struct scene *s, struct sample *sample, int64_t n)
{
    scene_init_weighted(s, sample, n, 0);
}

static void epilogue_scene_fini(struct scene *s)
{
    mxm->matrix_destroy(context, s->matrix);
    sample_csr_fini(&s->a);
}

/* Whether the draw of (vertex, column) lets the element stay: the words of the header of graft_epilogue, read anew. */
static int stays(const graft_epilogue *e, int64_t vertex, int64_t column)
{
    const uint64_t block = (uint64_t)column / 8;
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)vertex,
                                  (uint32_t)((uint64_t)vertex >> 32) };
    const uint32_t key[2] = { (uint32_t)e->dropout_key, (uint32_t)(e->dropout_key >> 32) };
    uint32_t       word[4];

    oracle_philox(counter, key, word);
    return (word[column % 8 / 2] >> (column % 2 ? 16 : 0) & 0xFFFF) >= (uint32_t)floor(e->dropout * 65536 + 0.5);
}

/* Element (i, j) of Z after the epilogue, and whether it got through. */
static double finish_element(const struct scene *s, int64_t i, int64_t j, double z, int *through)
{
    const graft_epilogue *e = &s->epilogue;

    if (e->bias != NULL) z += (double)bias[j];
    if (e->residual != NULL) z += (double)residual_data[i * s->n + j];
    *through = !((e->flags & GRAFT_EPILOGUE_RELU) && z <= 0);
    if (e->dropout > 0 && !stays(e, e->vertex != NULL ? e->vertex[i] : i, j)) *through = 0;
    if (!*through) return 0;
    return e->dropout > 0 ? z * 65536 / (65536 - floor(e->dropout * 65536 + 0.5)) : z;
}

/* The expected result, from the oracle's plain product. */
static void epilogue_expect(struct scene *s)
{
    static double  z[M * WIDTH_MAX], bound[M * WIDTH_MAX];
    static int64_t unused[M * WIDTH_MAX];
    graft_mxm_args plain = s->args;

    plain.mask = NULL;
    plain.epilogue = NULL;
    plain.flags = 0;
    plain.winner = NULL;
    oracle_mxm(&s->a.csr, &plain, z, unused, bound);
    memset(s->expected_bits, 0, sizeof s->expected_bits);
    for (int64_t i = 0; i < M * s->n; i++) {
        const int64_t row = i / s->n, j = i % s->n, at = row * ((s->n + 7) / 8) + j / 8;
        const int     allowed = s->args.mask == NULL || (mask_bits[at] >> j % 8 & 1);
        const double  old = (double)c_before[i];
        int           through;
        const double  value = finish_element(s, row, j, z[i], &through);

        if (allowed && through) s->expected_bits[at] |= (uint8_t)(1u << j % 8);
        if (allowed) s->expected[i] = s->args.flags & GRAFT_MXM_ACCUMULATE ? old + value : value;
        else s->expected[i] = s->args.flags & GRAFT_MXM_REPLACE ? 0 : old;
    }
}

static int runs_right(struct scene *s, double tolerance)
{
    graft_error error = GRAFT_INIT(graft_error);

    memcpy(c_data, c_before, sizeof c_data);
    memset(bits, 0xA5, sizeof bits);
    epilogue_expect(s);
    if (mxm->run(context, &s->args, &error) < 0) {
        diag("%s", error.message);
        return 0;
    }
    for (int64_t i = 0; i < M * s->n; i++) {
        if (fabs((double)c_data[i] - s->expected[i]) <= tolerance * (1 + fabs(s->expected[i]))) continue;
        diag("width %lld: C(%lld,%lld) is %.9g, expected %.9g", (long long)s->n, (long long)(i / s->n),
             (long long)(i % s->n), (double)c_data[i], s->expected[i]);
        return 0;
    }
    if (s->epilogue.bits == NULL) return 1;
    return memcmp(bits, s->expected_bits, (size_t)(M * ((s->n + 7) / 8))) == 0;
}

/* Every combination of the parts of an epilogue, of masks and of flags; odd combinations with a max. */
static int combinations_right(struct scene *s, int *runs)
{
    for (unsigned c = 0; c < 1024; c++) {
        graft_epilogue *e = &s->epilogue;

        e->bias = c & 1 ? bias : NULL;
        e->residual = c & 2 ? &s->residual : NULL;
        e->flags = c & 4 ? GRAFT_EPILOGUE_RELU : 0;
        e->dropout = c & 8 ? 0.5 : 0;
        e->dropout_key = 0x123456789ABCDEFu + c;
        e->vertex = c & 16 ? s->vertex : NULL;
        e->bits = c & 32 ? bits : NULL;
        e->bits_stride = (s->n + 7) / 8;
        s->args.mask = c & 64 ? &s->mask : NULL;
        s->args.flags = (c & 128 ? GRAFT_MXM_ACCUMULATE : 0) | (c & 256 ? GRAFT_MXM_REPLACE : 0);
        s->args.row_scale = c & 512 ? row_scale : NULL;
        s->args.threads = c % 3 + 1;
        if (!runs_right(s, 0)) {
            diag("combination 0x%x", c);
            return 0;
        }
        ++*runs;
    }
    return 1;
}

static void test_epilogue_kernel(const char *kernel)
{
    static const int64_t widths[] = { 1, 3, 8, 15, 16, 17, 33, 100, 300 };
    struct sample        sample = { 42 };
    struct scene         s;
    int                  right = 1, runs = 0;

    api->set(context, "mxm.kernel", kernel, NULL);
    for (size_t w = 0; w < sizeof widths / sizeof *widths && right; w++) {
        epilogue_scene_init(&s, &sample, widths[w]);
        right = combinations_right(&s, &runs);
        epilogue_scene_fini(&s);
    }
    ok(right, "%s: %d epilogues, with and without masks, equal the oracle's, bits too", kernel, runs);
    epilogue_scene_init(&s, &sample, 65);
    s.epilogue.dropout = 0.3;
    s.epilogue.flags = GRAFT_EPILOGUE_RELU;
    ok(runs_right(&s, 1e-6), "%s: dropout of 0.3 keeps and scales the right elements", kernel);
    s.epilogue.dropout = 0;
    s.epilogue.residual = &s.c;
    memcpy(residual_data, c_before, sizeof residual_data);
    ok(runs_right(&s, 0), "%s: C may be its own residual", kernel);
    epilogue_scene_fini(&s);
}

/* The same product from float and from bfloat16 rows that hold the same numbers. */
static int halves_agree(struct scene *s)
{
    static float   c_float[M * WIDTH_MAX];
    static int32_t winner_float[M * WIDTH_MAX];
    graft_dense    half = epilogue_dense(b_half, GRAFT_BF16, K, s->n);
    const size_t   count = (size_t)(M * s->n);

    mxm->convert(context, &s->b, &half, NULL);
    for (graft_semiring semiring = GRAFT_PLUS_TIMES; semiring <= GRAFT_MIN_SECOND; semiring++) {
        s->args.epilogue = NULL;
        s->args.semiring = semiring;
        s->args.winner = semiring > GRAFT_PLUS_SECOND ? winner : NULL;
        s->args.winner_stride = s->n;
        s->args.b = &s->b;
        if (mxm->run(context, &s->args, NULL) < 0) return 0;
        memcpy(c_float, c_data, count * sizeof *c_float);
        memcpy(winner_float, winner, count * sizeof *winner);
        s->args.b = &half;
        if (mxm->run(context, &s->args, NULL) < 0) return 0;
        if (memcmp(c_float, c_data, count * sizeof *c_float) != 0) return 0;
        if (s->args.winner != NULL && memcmp(winner_float, winner, count * sizeof *winner) != 0) return 0;
    }
    return 1;
}

static void test_halves(const char *kernel)
{
    static const int64_t widths[] = { 1, 2, 5, 15, 16, 17, 33, 129, 300 };
    struct sample        sample = { 7 };
    struct scene         s;
    int                  right = 1;

    api->set(context, "mxm.kernel", kernel, NULL);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        scene_init_weighted(&s, &sample, widths[w], w & 1);
        right &= halves_agree(&s);
        epilogue_scene_fini(&s);
    }
    ok(right, "%s: rows in bfloat16 give what rows in float give", kernel);
}

static void test_convert(void)
{
    float       from[8] = { 1, 1.00390625f, 1.01171875f, 3e38f, 3.4e38f, -0.0f, INFINITY, NAN }, back[8];
    uint16_t    to[8];
    graft_dense a = epilogue_dense(from, GRAFT_F32, 2, 4), b = epilogue_dense(to, GRAFT_BF16, 2, 4),
                c = epilogue_dense(back, GRAFT_F32, 2, 4);
    graft_error error = GRAFT_INIT(graft_error);

    ok(mxm->convert(context, &a, &b, &error) == GRAFT_OK && mxm->convert(context, &b, &c, &error) == GRAFT_OK,
       "float becomes bfloat16 and float again");
    ok(to[0] == 0x3F80 && to[1] == 0x3F80 && to[2] == 0x3F82, "ties go to even: 1 + 1/256 down, 1 + 3/256 up");
    ok(to[4] == 0x7F80 && to[5] == 0x8000 && to[6] == 0x7F80, "what is too large becomes infinite, -0 stays");
    ok(isnan(back[7]) && back[0] == 1, "a NaN stays one");
    ok(mxm->convert(context, &a, &a, &error) == GRAFT_ERR_ARG, "float to float is refused");
    b.n_rows = 1;
    ok(mxm->convert(context, &a, &b, &error) == GRAFT_ERR_ARG && strstr(error.message, "2 x 4") != NULL,
       "other shapes are refused: %s", error.message);
}

static void test_epilogue_refusals(void)
{
    struct sample sample = { 3 };
    struct scene  s;
    graft_error   error = GRAFT_INIT(graft_error);

    epilogue_scene_init(&s, &sample, 16);
    s.epilogue.dropout = 1;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "dropout"), "%s", error.message);
    s.epilogue.dropout = (double)NAN;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG, "dropout that is not a number is refused");
    s.epilogue.dropout = 0;
    s.epilogue.flags = 64;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "0x40"), "%s", error.message);
    s.epilogue.flags = 0;
    s.epilogue.bits = bits;
    s.epilogue.bits_stride = 1;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "bits_stride"), "%s",
       error.message);
    s.epilogue.bits = NULL;
    s.residual.n_cols = 15;
    s.epilogue.residual = &s.residual;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "37 x 15"), "%s", error.message);
    s.residual = s.c;
    s.residual.data = c_data + 1;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG && strstr(error.message, "overlap"), "%s", error.message);
    s.args.epilogue = NULL;
    s.c.dtype = GRAFT_BF16;
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_ARG, "C in bfloat16 is refused: %s", error.message);
    epilogue_scene_fini(&s);
}

static void test_verify(const char *wrong_kernel)
{
    struct sample sample = { 5 };
    struct scene  s;
    graft_error   error = GRAFT_INIT(graft_error);

    epilogue_scene_init(&s, &sample, 17);
    s.args.epilogue = NULL;
    ok(api->load_module(context, wrong_kernel, &error) == GRAFT_OK, "a kernel that is wrong loads");
    api->set(context, "mxm.kernel", "wrong", &error);
    ok(mxm->run(context, &s.args, &error) == GRAFT_OK, "and is believed");
    api->set(context, "mxm.verify", "3", &error);
    ok(mxm->run(context, &s.args, &error) == GRAFT_ERR_MODULE && strstr(error.message, "but reference gives"),
       "but not with mxm.verify: %s", error.message);
    api->set(context, "mxm.kernel", "auto", &error);
    ok(mxm->run(context, &s.args, &error) == GRAFT_OK, "which has nothing against the others");
    api->set(context, "mxm.verify", "0", &error);
    epilogue_scene_fini(&s);
}

/* An order is one, and a product in it is the same product. */
static void test_epilogue_order(const char *method)
{
    enum { N = 61, WIDTH = 9 };
    static float      x[N * WIDTH], y[N * WIDTH], placed_x[N * WIDTH], placed_y[N * WIDTH];
    struct sample     sample = { 11 };
    struct sample_csr a;
    graft_matrix     *matrix = NULL, *permuted = NULL;
    graft_dense       b = epilogue_dense(x, GRAFT_F32, N, WIDTH), c = epilogue_dense(y, GRAFT_F32, N, WIDTH);
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    int64_t           order[N];
    int               seen[N] = { 0 }, right = 1;

    sample_csr_init(&a, &sample, N, N, GRAFT_I64, GRAFT_F32, 0);
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)sample_real(&sample, -1, 1);
    mxm->matrix_create(context, &a.csr, 0, &matrix, NULL);
    if (!ok(mxm->matrix_order(context, matrix, method, order, NULL) == GRAFT_OK, "there is an order %s", method))
        return;
    for (int i = 0; i < N; i++) right &= order[i] >= 0 && order[i] < N && seen[order[i]]++ == 0;
    if (!ok(right, "%s names every vertex once", method)) return;
    mxm->matrix_permute(context, matrix, order, &permuted, NULL);
    args.semiring = GRAFT_PLUS_TIMES;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    mxm->run(context, &args, NULL);
    for (int i = 0; i < N; i++) memcpy(placed_x + i * WIDTH, x + order[i] * WIDTH, WIDTH * sizeof *x);
    b.data = placed_x;
    c.data = placed_y;
    args.a = permuted;
    mxm->run(context, &args, NULL);
    for (int i = 0; i < N; i++) right &= memcmp(placed_y + i * WIDTH, y + order[i] * WIDTH, WIDTH * sizeof *y) == 0;
    ok(right, "a product in order %s has the bits of the same product out of it", method);
    mxm->matrix_destroy(context, permuted);
    mxm->matrix_destroy(context, matrix);
    sample_csr_fini(&a);
}

/* A path with its names shuffled is a band again in order rcm; the largest degree comes first in order degree. */
static void test_what_orders_are(void)
{
    enum { N = 50 };
    int64_t       row_ptr[N + 1] = { 0 }, order[N], place[N], bandwidth = 0;
    int32_t       col_idx[2 * N], name[N];
    graft_csr     csr = GRAFT_INIT(graft_csr);
    graft_matrix *matrix = NULL;
    graft_error   error = GRAFT_INIT(graft_error);

    for (int i = 0; i < N; i++) name[i * 21 % N] = i; /* vertex name v is step name[v] of the path */
    for (int v = 0, e = 0; v < N; v++) {
        if (name[v] > 0) col_idx[e++] = (name[v] - 1) * 21 % N;
        if (name[v] < N - 1) col_idx[e++] = (name[v] + 1) * 21 % N;
        row_ptr[v + 1] = e;
    }
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = N;
    csr.row_ptr = row_ptr;
    csr.col_idx = col_idx;
    mxm->matrix_create(context, &csr, 0, &matrix, NULL);
    mxm->matrix_order(context, matrix, "rcm", order, NULL);
    for (int i = 0; i < N; i++) place[order[i]] = i;
    for (int v = 0; v < N; v++) {
        for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
            const int64_t distance = llabs((long long)(place[v] - place[col_idx[e]]));
            if (distance > bandwidth) bandwidth = distance;
        }
    }
    ok(bandwidth == 1, "rcm finds the path in a shuffled path: bandwidth %lld", (long long)bandwidth);
    mxm->matrix_order(context, matrix, "degree", order, NULL);
    ok(row_ptr[order[0] + 1] - row_ptr[order[0]] == 2 && row_ptr[order[N - 1] + 1] - row_ptr[order[N - 1]] == 1,
       "degree puts the ends of the path last");
    ok(mxm->matrix_order(context, matrix, "alphabet", order, &error) == GRAFT_ERR_OPTION, "%s", error.message);
    order[3] = order[4];
    ok(mxm->matrix_permute(context, matrix, order, &matrix, &error) == GRAFT_ERR_ARG, "%s", error.message);
    mxm->matrix_destroy(context, matrix);
}

int main(int argc, char **argv)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    if (!ok(argc == 2 && graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    context = api->context;
    mxm = api->get_interface(context, GRAFT_MXM_ID);
    for (int32_t i = 0; api->module_info(context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0 || strcmp(entry.name, "graphblas") == 0) continue;
        test_epilogue_kernel(entry.name);
        test_halves(entry.name);
    }
    api->set(context, "mxm.kernel", "auto", NULL);
    test_convert();
    test_epilogue_refusals();
    test_verify(argv[1]);
    test_epilogue_order("degree");
    test_epilogue_order("rcm");
    test_epilogue_order("community");
    test_what_orders_are();
    api->close(context);
    return done();
}
