/* Judges epilogues of sparse products, and rows in bfloat16, against the oracle. Numbers are small multiples of 1/8, so
 * that sums are exact in any order and in bfloat16. With dropout 0.5, which doubles the elements that stay, all results
 * must be equal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include "harness/tap.h"

#include <math.h>
#include <string.h>

static float b_data[JUDGE_K * JUDGE_WIDTH_MAX], c_data[JUDGE_M * JUDGE_WIDTH_MAX], c_before[JUDGE_M * JUDGE_WIDTH_MAX],
    residual_data[JUDGE_M * JUDGE_WIDTH_MAX];
static float    bias[JUDGE_WIDTH_MAX], row_scale[JUDGE_M];
static uint16_t b_half[JUDGE_K * JUDGE_WIDTH_MAX];
static uint8_t  bits[JUDGE_M * (JUDGE_WIDTH_MAX / 8 + 1)], mask_bits[JUDGE_M * (JUDGE_WIDTH_MAX / 8 + 1)];
static int32_t  winner[JUDGE_M * JUDGE_WIDTH_MAX];

graft_dense judge_dense_view(void *data, graft_dtype dtype, int64_t n_rows, int64_t n_cols)
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

static void judge_scene_weighted(struct judge_scene *s, struct sample *sample, int64_t n, int weighted)
{
    memset(s, 0, sizeof *s);
    s->n = n;
    sample_csr_init(&s->a, sample, JUDGE_M, JUDGE_K, GRAFT_I32, weighted ? GRAFT_F32 : 0, 1);
    judge.mxm->matrix_create(judge.context, &s->a.csr, 0, &s->matrix, NULL);
    epilogue_fill(sample, b_data, JUDGE_K * n);
    epilogue_fill(sample, c_before, JUDGE_M * n);
    epilogue_fill(sample, residual_data, JUDGE_M * n);
    epilogue_fill(sample, bias, n);
    for (int i = 0; i < JUDGE_M; i++) row_scale[i] = i % 3 == 0 ? 0.5f : 1;
    for (int i = 0; i < JUDGE_M; i++) s->vertex[i] = JUDGE_VERTEX_SHIFT + 7 * i;
    for (int64_t i = 0; i < JUDGE_M * ((n + 7) / 8); i++) mask_bits[i] = (uint8_t)sample_bits(sample);
    s->b = judge_dense_view(b_data, GRAFT_F32, JUDGE_K, n);
    s->c = judge_dense_view(c_data, GRAFT_F32, JUDGE_M, n);
    s->residual = judge_dense_view(residual_data, GRAFT_F32, JUDGE_M, n);
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

void judge_scene_init(struct judge_scene *s, struct sample *sample, int64_t n)
{
    judge_scene_weighted(s, sample, n, 0);
}

void judge_scene_fini(struct judge_scene *s)
{
    judge.mxm->matrix_destroy(s->matrix);
    sample_csr_fini(&s->a);
}

/* Whether dropout keeps the element (vertex, column), by the description of the random words in graft_epilogue. */
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

/* Compute element (i, j) of the product after the epilogue, and whether ReLU and dropout keep it. */
static double finish_element(const struct judge_scene *s, int64_t i, int64_t j, double z, int *through)
{
    const graft_epilogue *e = &s->epilogue;

    if (e->bias != NULL) z += (double)bias[j];
    if (e->residual != NULL) z += (double)residual_data[i * s->n + j];
    *through = !((e->flags & GRAFT_EPILOGUE_RELU) && z <= 0);
    if (e->dropout > 0 && !stays(e, e->vertex != NULL ? e->vertex[i] : i, j)) *through = 0;
    if (!*through) return 0;
    return e->dropout > 0 ? z * 65536 / (65536 - floor(e->dropout * 65536 + 0.5)) : z;
}

/* Compute the expected result from the plain product of the oracle. */
static void epilogue_expect(struct judge_scene *s)
{
    static double  z[JUDGE_M * JUDGE_WIDTH_MAX], bound[JUDGE_M * JUDGE_WIDTH_MAX];
    static int64_t unused[JUDGE_M * JUDGE_WIDTH_MAX];
    graft_mxm_args plain = s->args;

    plain.mask = NULL;
    plain.epilogue = NULL;
    plain.flags = 0;
    plain.winner = NULL;
    oracle_mxm(&s->a.csr, &plain, z, unused, bound);
    memset(s->expected_bits, 0, sizeof s->expected_bits);
    for (int64_t i = 0; i < JUDGE_M * s->n; i++) {
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

int judge_scene_right(struct judge_scene *s, double tolerance)
{
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc;

    memcpy(c_data, c_before, sizeof c_data);
    memset(bits, 0xA5, sizeof bits);
    epilogue_expect(s);
    rc = judge.mxm->run(judge.context, &s->args, &error);
    if (rc == GRAFT_ERR_UNSUPPORTED && judge.strict) {
        s->refused++;
        return 1;
    }
    if (rc < 0) {
        diag("%s", error.message);
        return 0;
    }
    for (int64_t i = 0; i < JUDGE_M * s->n; i++) {
        if (fabs((double)c_data[i] - s->expected[i]) <= tolerance * (1 + fabs(s->expected[i]))) continue;
        diag("width %lld: C(%lld,%lld) is %.9g, expected %.9g", (long long)s->n, (long long)(i / s->n),
             (long long)(i % s->n), (double)c_data[i], s->expected[i]);
        return 0;
    }
    if (s->epilogue.bits == NULL) return 1;
    return memcmp(bits, s->expected_bits, (size_t)(JUDGE_M * ((s->n + 7) / 8))) == 0;
}

/* Try every combination of parts of an epilogue, masks and flags. Every other combination computes a maximum. */
static int combinations_right(struct judge_scene *s, int *runs)
{
    for (unsigned c = 0; c < 1024; c += judge.case_step > 1 ? (unsigned)judge.case_step : 1) {
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
        if (!judge_scene_right(s, 0)) {
            diag("combination 0x%x", c);
            return 0;
        }
        ++*runs;
    }
    return 1;
}

static void report_epilogue(const char *kernel, const char *what, int right, int runs, int refused)
{
    judge.by_kernel += runs - refused;
    if (right && runs == refused) skip(1, "%s, %s: not supported", kernel, what);
    else ok(right, "%s, %s: %d products, %d refused", kernel, what, runs, refused);
}

static void judge_bfloat(const char *kernel);

void judge_epilogue(const char *kernel)
{
    static const int64_t widths[] = { 1, 3, 8, 15, 16, 17, 33, 100, 300 };
    struct sample        sample = { 42 };
    struct judge_scene   s;
    int                  right = 1, runs = 0, refused = 0;

    judge.api->set(judge.context, "mxm.kernel", kernel, NULL);
    for (size_t w = 0; w < sizeof widths / sizeof *widths && right; w++) {
        judge_scene_init(&s, &sample, widths[w]);
        right = combinations_right(&s, &runs);
        refused += s.refused;
        judge_scene_fini(&s);
    }
    report_epilogue(kernel, "epilogues with and without masks", right, runs, refused);
    judge_scene_init(&s, &sample, 65);
    s.epilogue.dropout = 0.3;
    s.epilogue.flags = GRAFT_EPILOGUE_RELU;
    right = judge_scene_right(&s, 1e-6);
    report_epilogue(kernel, "dropout of 0.3", right, 1, s.refused);
    s.refused = 0;
    s.epilogue.dropout = 0;
    s.epilogue.residual = &s.c;
    memcpy(residual_data, c_before, sizeof residual_data);
    right = judge_scene_right(&s, 0);
    report_epilogue(kernel, "C as its own residual", right, 1, s.refused);
    judge_scene_fini(&s);
    judge_bfloat(kernel);
}

/* Compare the product from float rows with the product from bfloat16 rows that hold the same numbers. */
static int halves_agree(struct judge_scene *s, int *runs)
{
    static float   c_float[JUDGE_M * JUDGE_WIDTH_MAX];
    static int32_t winner_float[JUDGE_M * JUDGE_WIDTH_MAX];
    graft_dense    half = judge_dense_view(b_half, GRAFT_BF16, JUDGE_K, s->n);
    const size_t   count = (size_t)(JUDGE_M * s->n);

    judge.mxm->convert(judge.context, &s->b, &half, NULL);
    for (graft_semiring semiring = GRAFT_PLUS_TIMES; semiring <= GRAFT_MIN_SECOND; semiring++) {
        int32_t rc;

        s->args.epilogue = NULL;
        s->args.semiring = semiring;
        s->args.winner = semiring > GRAFT_PLUS_SECOND ? winner : NULL;
        s->args.winner_stride = s->n;
        s->args.b = &s->b;
        rc = judge.mxm->run(judge.context, &s->args, NULL);
        memcpy(c_float, c_data, count * sizeof *c_float);
        memcpy(winner_float, winner, count * sizeof *winner);
        s->args.b = &half;
        if (rc == GRAFT_OK) rc = judge.mxm->run(judge.context, &s->args, NULL);
        ++*runs;
        s->refused += judge.strict && rc == GRAFT_ERR_UNSUPPORTED;
        if (judge.strict && rc == GRAFT_ERR_UNSUPPORTED) continue;
        if (rc < 0) return 0;
        if (memcmp(c_float, c_data, count * sizeof *c_float) != 0) return 0;
        if (s->args.winner != NULL && memcmp(winner_float, winner, count * sizeof *winner) != 0) return 0;
    }
    return 1;
}

static void judge_bfloat(const char *kernel)
{
    static const int64_t widths[] = { 1, 2, 5, 15, 16, 17, 33, 129, 300 };
    struct sample        sample = { 7 };
    struct judge_scene   s;
    int                  right = 1, runs = 0, refused = 0;

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        judge_scene_weighted(&s, &sample, widths[w], w & 1);
        right &= halves_agree(&s, &runs);
        refused += s.refused;
        judge_scene_fini(&s);
    }
    report_epilogue(kernel, "rows in bfloat16 as in float", right, runs, refused);
}
