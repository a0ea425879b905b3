/* Checks quantized messages against the definition of each code: decoded elements must be levels of the message and as
 * near as the rounding promises; their mean must be the original (no bias); the mean squared error must be what theory
 * predicts; and results must not depend on the number of threads or the instruction set. A row that no code can encode
 * must be reported.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "codec/codec.h"
#include "graft_load.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const graft_api       *api;
static const graft_codec_api *codec;

struct code {
    int32_t     bits, code, rounding;
    const char *name;
};

static const struct code codes[] = {
    { 32, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "32 bits" },
    { 16, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "16 bits" },
    { 8, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "8 bits" },
    { 4, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "4 bits" },
    { 2, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "2 bits" },
    { 1, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "1 bit" },
    { 16, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "16 bits stochastic" },
    { 8, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "8 bits stochastic" },
    { 4, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "4 bits stochastic" },
    { 2, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "2 bits stochastic" },
    { 1, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "1 bit stochastic" },
    { 1, GRAFT_CODEC_ROTATED, GRAFT_ROUND_NEAREST, "1 bit rotated" },
};

enum { CODES = sizeof codes / sizeof *codes, ROTATED = CODES - 1 };

/* Rows, their message, and the decoded rows. */
struct trip {
    int64_t           n, width, row_bytes, n_unencoded;
    graft_dtype       dtype;
    graft_dense       x, back;
    uint8_t          *message;
    int64_t          *unencoded;
    graft_codec_error lost;
    graft_codec_args  args;
    graft_error       error;
    int32_t           rc;
};

static void trip_init(struct trip *t, int64_t n, int64_t width, graft_dtype dtype)
{
    const size_t element = dtype == GRAFT_F64 ? 8 : 4;

    memset(t, 0, sizeof *t);
    t->n = n;
    t->width = width;
    t->dtype = dtype;
    t->x = (graft_dense){ sizeof t->x, dtype, n, width, width + 3, calloc((size_t)(n * (width + 3)), element) };
    t->back = (graft_dense){ sizeof t->x, dtype, n, width, width + 1, calloc((size_t)(n * (width + 1)), element) };
    t->message = calloc((size_t)(n * (width * 8 + 4)), 1);
    t->unencoded = calloc((size_t)n, sizeof *t->unencoded);
    t->error = GRAFT_INIT(graft_error);
}

static void trip_fini(struct trip *t)
{
    free(t->x.data);
    free(t->back.data);
    free(t->message);
    free(t->unencoded);
}

static double at(const graft_dense *m, int64_t i, int64_t j)
{
    const int64_t place = i * m->stride + j;

    return m->dtype == GRAFT_F64 ? ((double *)m->data)[place] : (double)((float *)m->data)[place];
}

static void codec_fill(struct trip *t, struct sample *sample, double (*draw)(struct sample *sample))
{
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t j = 0; j < t->width; j++) sample_put(t->x.data, t->dtype, i * t->x.stride + j, draw(sample));
}

static double normal(struct sample *sample)
{
    const double u = sample_real(sample, 1e-12, 1), v = sample_real(sample, 0, 6.283185307179586);

    return sqrt(-2 * log(u)) * cos(v);
}

static double uneven(struct sample *sample)
{
    return exp(3 * normal(sample)) * (sample_below(sample, 3) == 0 ? -1 : 1);
}

static void encode_rows(struct trip *t, const struct code *c, int32_t threads, int64_t epoch)
{
    codec->row_bytes(api->context, c->bits, t->width, t->dtype, &t->row_bytes, &t->error);
    t->lost = GRAFT_INIT(graft_codec_error);
    t->args = GRAFT_INIT(graft_codec_args);
    t->args.bits = c->bits;
    t->args.code = c->code;
    t->args.rounding = c->rounding;
    t->args.threads = threads;
    t->args.seed = 11;
    t->args.epoch = epoch;
    t->args.layer = 1;
    t->args.first = 1000;
    t->args.rows = &t->x;
    t->args.message = t->message;
    t->args.message_bytes = (uint64_t)(t->n * t->row_bytes);
    t->args.unencoded = t->unencoded;
    t->args.n_unencoded = &t->n_unencoded;
    t->args.error = &t->lost;
    t->rc = codec->encode(api->context, &t->args, &t->error);
}

static void decode_rows(struct trip *t)
{
    t->args.rows = &t->back;
    if (t->rc == GRAFT_OK) t->rc = codec->decode(api->context, &t->args, &t->error);
}

/* The value of a bfloat16 of the message, by its definition. */
static double number_of(const uint8_t *two)
{
    const int    bits = two[0] | two[1] << 8, exponent = bits >> 7 & 255, fraction = bits & 127;
    const double size = exponent == 0 ? ldexp(fraction, -133) : ldexp(128 + fraction, exponent - 134);

    return bits >> 15 ? -size : size;
}

/* Element j of a row in code MINMAX, decoded here by the description in codec.h; `step` receives the distance of
 * levels. */
static double from_message(const uint8_t *record, int64_t width, int32_t bits, int64_t j, double *step)
{
    const int64_t m = (width * bits + 7) / 8;
    const int     level = record[4 + j % m] >> j / m * bits & ((1 << bits) - 1);

    *step = number_of(record + 2);
    return number_of(record) + level * *step;
}

/* Whether all decoded elements are levels of the message near their originals. */
static const char *check_minmax(const struct trip *t, const struct code *c)
{
    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t j = 0; j < t->width; j++) {
            double       step;
            const double told = from_message(t->message + i * t->row_bytes, t->width, c->bits, j, &step);
            const double x = at(&t->x, i, j), back = at(&t->back, i, j), most = fmax(fabs(x), fabs(told));
            const double near = c->rounding == GRAFT_ROUND_NEAREST ? 0.5 : 1;

            if (fabs(back - told) > 1e-6 * (most + step)) return "an element is not what the message tells";
            if (fabs(back - x) > step * near * (1 + 1e-4) + 1e-6 * most) return "an element is too far off";
        }
    }
    return NULL;
}

static void test_levels(void)
{
    static const int64_t widths[] = { 1, 2, 3, 5, 8, 31, 100, 128, 131, 1024, 1025, 1500 };
    struct sample        sample = { 5 };

    for (int k = 2; k < ROTATED; k++) {
        const char *words = NULL;

        if (codes[k].bits == 16) continue;
        for (size_t w = 0; w < sizeof widths / sizeof *widths && words == NULL; w++) {
            for (int d = 0; d < 2 && words == NULL; d++) {
                struct trip t;

                trip_init(&t, 70, widths[w], d ? GRAFT_F64 : GRAFT_F32);
                codec_fill(&t, &sample, w % 2 ? uneven : normal);
                encode_rows(&t, &codes[k], 2, 3);
                decode_rows(&t);
                words = t.rc != GRAFT_OK ? t.error.message : t.n_unencoded > 0 && d == 0 ? "rows have no code" : NULL;
                if (words == NULL && widths[w] > 1) words = check_minmax(&t, &codes[k]);
                if (words != NULL) diag("width %lld, %s", (long long)widths[w], d ? "double" : "float");
                trip_fini(&t);
            }
        }
        ok(words == NULL, "%s: elements are on the levels of the message, and near%s%s", codes[k].name,
           words != NULL ? ": " : "", words != NULL ? words : "");
    }
}

/* In 16 bits the decoded number must be the nearest one with eight significant bits, or one of its two neighbours. */
static int is_same(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static void test_short(void)
{
    struct sample sample = { 6 };

    for (int k = 1; k < CODES; k++) {
        const double most = codes[k].rounding == GRAFT_ROUND_NEAREST ? 0x1p-8 : 0x1p-7;
        struct trip  t;
        int          far = 0;

        if (codes[k].bits != 16) continue;
        trip_init(&t, 100, 77, GRAFT_F32);
        codec_fill(&t, &sample, uneven);
        ((float *)t.x.data)[0] = FLT_MAX;
        ((float *)t.x.data)[1] = only_finite() ? 1 : INFINITY;
        ((float *)t.x.data)[2] = only_finite() ? 1 : -NAN;
        ((float *)t.x.data)[3] = -FLT_MAX;
        encode_rows(&t, &codes[k], 1, 0);
        decode_rows(&t);
        for (int64_t i = 1; i < t.n; i++)
            for (int64_t j = 0; j < t.width; j++)
                far += !(fabs(at(&t.back, i, j) - at(&t.x, i, j)) <= most * fabs(at(&t.x, i, j)));
        ok(t.rc == GRAFT_OK && t.n_unencoded == 0 && far == 0 && isfinite(at(&t.back, 0, 0)) &&
               is_same(at(&t.back, 0, 1), at(&t.x, 0, 1)) && is_same(at(&t.back, 0, 2), at(&t.x, 0, 2)) &&
               at(&t.back, 0, 3) < -3.3e38 && isfinite(at(&t.back, 0, 3)),
           "%s: at most %.2g off; what is finite stays so, what is not stays that", codes[k].name, most);
        trip_fini(&t);
    }
}

/* The mean of many decodings of a row must differ from the row by a few standard errors only. The errors of two
 * elements are independent, so that the variances add up. */
static void test_bias(void)
{
    enum { TIMES = 100000, WIDTH = 20 };
    struct sample sample = { 8 };

    for (int k = 6; k < ROTATED; k++) {
        struct trip t;
        double      worst = 0, sum[WIDTH] = { 0 }, squares[WIDTH] = { 0 }, apart = 0, together = 0;

        trip_init(&t, TIMES, WIDTH, GRAFT_F32);
        for (int j = 0; j < WIDTH; j++) {
            const float x = (float)normal(&sample) + 3;

            for (int64_t i = 0; i < TIMES; i++) ((float *)t.x.data)[i * t.x.stride + j] = x;
        }
        encode_rows(&t, &codes[k], 2, 1);
        decode_rows(&t);
        for (int64_t i = 0; i < TIMES; i++) {
            double all = 0;

            for (int j = 0; j < WIDTH; j++) {
                const double off = at(&t.back, i, j) - at(&t.x, i, j);

                sum[j] += off;
                squares[j] += off * off;
                all += off;
            }
            together += all * all / TIMES;
        }
        for (int j = 0; j < WIDTH; j++) {
            const double mean = sum[j] / TIMES, variance = squares[j] / TIMES - mean * mean;

            /* An element that lies on a level is not rounded at random, so that only the error of arithmetic is
             * left. */
            if (fabs(mean) > 1e-6) worst = fmax(worst, fabs(mean) / sqrt(variance / TIMES));
            apart += variance;
        }
        ok(t.rc == GRAFT_OK && worst <= 4, "%s: the mean of 10^5 decodings is %.1f standard errors off", codes[k].name,
           worst);
        ok(fabs(together / apart - 1) < 0.05, "%s: the variance of a sum of elements is %.3f of the sum of variances",
           codes[k].name, together / apart);
        trip_fini(&t);
    }
}

/* The mean squared error for rows of normally distributed numbers. */
static void test_codec_error(void)
{
    static const double most[CODES] = { 0, 1e-5, 1e-4, 0.012, 0.26, 4, 2e-5, 2e-4, 0.024, 0.52, 6, 0.60 };
    struct sample       sample = { 9 };

    for (int k = 0; k < CODES; k++) {
        struct trip t;
        double      nmse = 0, expected;

        trip_init(&t, 2000, 128, GRAFT_F32);
        codec_fill(&t, &sample, normal);
        encode_rows(&t, &codes[k], 2, 4);
        decode_rows(&t);
        for (int64_t i = 0; i < t.n; i++) {
            double lost = 0, squares = 0;

            for (int64_t j = 0; j < t.width; j++) {
                lost += pow(at(&t.back, i, j) - at(&t.x, i, j), 2);
                squares += pow(at(&t.x, i, j), 2);
            }
            nmse += lost / squares;
        }
        expected = t.lost.expected / (double)t.n;
        nmse /= (double)t.n;
        ok(t.rc == GRAFT_OK && nmse <= most[k] && t.lost.rows == t.n &&
               fabs(t.lost.nmse / (double)t.n - nmse) <= 1e-6 * nmse + 1e-15,
           "%s: of rows of 128 normal numbers %.3g is lost, as reported, at most %.2g", codes[k].name, nmse, most[k]);
        if (codes[k].bits < 16 && codes[k].bits > 1)
            ok(nmse <= expected * 1.02, "%s: at most what the theory has, %.3g", codes[k].name, expected);
        trip_fini(&t);
    }
}

/* Rotated rows of all lengths must have about the error of long rows. */
static void test_rotation(void)
{
    struct sample sample = { 10 };
    const char   *words = NULL;

    for (int64_t width = 1; width <= 300 && words == NULL; width += width < 40 ? 1 : 37) {
        struct trip t;

        trip_init(&t, 400, width, GRAFT_F32);
        codec_fill(&t, &sample, uneven);
        encode_rows(&t, &codes[ROTATED], 1, 2);
        decode_rows(&t);
        if (t.rc != GRAFT_OK) words = "it failed";
        else if (t.lost.nmse / (double)t.n > (width < 32 ? 0.7 : 0.6)) words = "too much is lost";
        if (words != NULL) diag("width %lld: %.3g", (long long)width, t.lost.nmse / (double)t.n);
        trip_fini(&t);
    }
    ok(words == NULL, "rotated rows of 1 to 31 elements lose at most 0.7, of 32 to 300 at most 0.6%s%s",
       words != NULL ? ": " : "", words != NULL ? words : "");
}

static void test_constant(void)
{
    static const double values[] = { 0, -0.0, 1, 1.0 / 3, -1e-40, 3.4e38, -1.17549435e-38f, 100.1, -7.7e-5 };
    struct sample       sample = { 3 };

    for (int k = 2; k < CODES; k++) {
        const char *words = NULL;

        if (codes[k].bits == 16) continue;
        for (int64_t width = 1; width < 40; width += 3) {
            struct trip t;

            trip_init(&t, 200, width, GRAFT_F32);
            for (int64_t i = 0; i < t.n; i++) {
                const double x = i < 9 ? values[i] : uneven(&sample);

                for (int64_t j = 0; j < width; j++) sample_put(t.x.data, t.dtype, i * t.x.stride + j, x);
            }
            encode_rows(&t, &codes[k], 1, 0);
            decode_rows(&t);
            if (t.rc != GRAFT_OK || t.n_unencoded > 0) words = "it failed";
            for (int64_t i = 0; i < t.n; i++)
                for (int64_t j = 0; j < width; j++)
                    if (at(&t.back, i, j) != at(&t.x, i, j)) words = "another number came back";
            trip_fini(&t);
        }
        ok(words == NULL, "%s: rows of one number come back%s%s", codes[k].name, words != NULL ? ": " : "",
           words != NULL ? words : "");
    }
}

/* Rows 1, 3 and 4 cannot be encoded. If all numbers are finite, only row 4 cannot: its range overflows. */
static void test_codec_unencoded(void)
{
    const int64_t rows[] = { 1, 3, 4 }, *unfit = only_finite() ? rows + 2 : rows, count = only_finite() ? 1 : 3;
    struct sample sample = { 4 };

    for (int k = 2; k < CODES; k++) {
        struct trip t;

        if (codes[k].bits == 16) continue;
        /* The squares of row 4 overflow a float. */
        if (only_finite() && codes[k].code == GRAFT_CODEC_ROTATED) continue;
        trip_init(&t, 6, 50, GRAFT_F32);
        codec_fill(&t, &sample, normal);
        if (!only_finite()) ((float *)t.x.data)[t.x.stride * 1 + 20] = NAN;
        if (!only_finite()) ((float *)t.x.data)[t.x.stride * 3 + 49] = -INFINITY;
        ((float *)t.x.data)[t.x.stride * 4 + 7] = FLT_MAX;
        ((float *)t.x.data)[t.x.stride * 4 + 8] = -FLT_MAX;
        ((float *)t.back.data)[t.back.stride * 4 + 2] = 77;
        ((float *)t.back.data)[t.back.stride * 2 + 1] = 77;
        encode_rows(&t, &codes[k], 2, 0);
        ok(t.rc == GRAFT_OK && t.n_unencoded == count && t.lost.rows == t.n - count &&
               memcmp(t.unencoded, unfit, (size_t)count * sizeof *unfit) == 0,
           "%s: rows that fit no code are reported", codes[k].name);
        t.n_unencoded = 0;
        memset(t.unencoded, 0, 6 * sizeof *t.unencoded);
        decode_rows(&t);
        ok(t.rc == GRAFT_OK && t.n_unencoded == count && t.unencoded[count - 1] == 4 && at(&t.back, 4, 2) == 77 &&
               at(&t.back, 2, 1) != 77,
           "%s: and left alone", codes[k].name);
        t.args.unencoded = NULL;
        t.args.n_unencoded = NULL;
        ok(codec->decode(api->context, &t.args, &t.error) == GRAFT_ERR_FORMAT &&
               strstr(t.error.message, only_finite() ? "row 4 " : "row 1 ") != NULL,
           "%s: or refused: %s", codes[k].name, t.error.message);
        trip_fini(&t);
    }
}

static void test_double(void)
{
    struct trip t;

    trip_init(&t, 3, 4, GRAFT_F64);
    for (int j = 0; j < 4; j++) {
        ((double *)t.x.data)[j] = 1.0 / 3;
        ((double *)t.x.data)[t.x.stride + j] = j == 2 ? 1e300 : 0;
        ((double *)t.x.data)[t.x.stride * 2 + j] = 1e-300 * j;
    }
    encode_rows(&t, &codes[3], 1, 0);
    decode_rows(&t);
    ok(t.rc == GRAFT_OK && t.n_unencoded == 3 && t.unencoded[0] == 0 && t.unencoded[1] == 1,
       "doubles that no float holds have no code");
    encode_rows(&t, &codes[0], 1, 0);
    decode_rows(&t);
    ok(t.rc == GRAFT_OK && t.n_unencoded == 0 && at(&t.back, 0, 1) == 1.0 / 3 && at(&t.back, 1, 2) == 1e300,
       "with 32 bits doubles go as they are");
    trip_fini(&t);
}

/* Bytes that no encoder wrote must be refused or decoded to numbers, but never to NaN or infinity. */
static void test_noise(void)
{
    struct sample sample = { 12 };
    int           wrong = 0, infinite = 0;

    for (int k = 2; k < CODES; k++) {
        struct trip t;

        if (codes[k].bits == 16) continue;
        trip_init(&t, 1, 33, GRAFT_F32);
        encode_rows(&t, &codes[k], 1, 0);
        for (int turn = 0; turn < 3000; turn++) {
            for (int64_t i = 0; i < t.row_bytes; i++) t.message[i] = (uint8_t)sample_bits(&sample);
            t.rc = GRAFT_OK;
            decode_rows(&t);
            wrong += t.rc != GRAFT_OK;
            for (int64_t j = 0; t.rc == GRAFT_OK && j < t.width; j++) infinite += !isfinite(at(&t.back, 0, j));
        }
        trip_fini(&t);
    }
    ok(wrong > 0 && infinite == 0, "of random messages %d are refused, and the others are numbers", wrong);
}

static void test_codec_threads(void)
{
    struct sample sample = { 13 };
    const char   *words = NULL;

    for (int k = 0; k < CODES; k++) {
        struct trip a, b;

        trip_init(&a, 3000, 130, GRAFT_F32);
        trip_init(&b, 3000, 130, GRAFT_F32);
        codec_fill(&a, &sample, uneven);
        memcpy(b.x.data, a.x.data, (size_t)(a.n * a.x.stride) * sizeof(float));
        encode_rows(&a, &codes[k], 1, 5);
        encode_rows(&b, &codes[k], 7, 5);
        if (memcmp(a.message, b.message, (size_t)(a.n * a.row_bytes)) != 0) words = codes[k].name;
        if (a.lost.nmse != b.lost.nmse) words = "the error";
        encode_rows(&b, &codes[k], 7, 6);
        if (codes[k].rounding == GRAFT_ROUND_STOCHASTIC &&
            memcmp(a.message, b.message, (size_t)(a.n * a.row_bytes)) == 0)
            words = "another epoch is bitwise identical";
        trip_fini(&a);
        trip_fini(&b);
    }
    ok(words == NULL, "messages are the same for any number of threads%s%s", words != NULL ? ": " : "",
       words != NULL ? words : "");
}

enum { WIDEST = 300 };

/* A row, its messages and the decoded rows for two instruction sets. Arrays are exactly as long as needed, so that
 * sanitizers find accesses beyond their ends. */
struct sets {
    float   x[WIDEST], work[2 * WIDEST], back[2][WIDEST];
    uint8_t record[2][2 * WIDEST];
};

/* Compare what two instruction sets made of a row. The result is NULL or names the difference. The scale of a rotation
 * may differ, because it is a sum in another order. */
static const char *compare_sets(const struct sets *s, const struct gr_codec *c)
{
    const int64_t bytes = gr_codec_row_bytes(c);

    if (c->code != GRAFT_CODEC_ROTATED &&
        memcmp(s->record[0] + 2 * WIDEST - bytes, s->record[1] + 2 * WIDEST - bytes, (size_t)bytes) != 0)
        return "a message";
    for (int64_t j = WIDEST - c->width; j < WIDEST; j++)
        if (fabsf(s->back[0][j] - s->back[1][j]) > 1e-5f * fabsf(s->back[0][j]) + 1e-4f) return "decoding";
    return NULL;
}

static void test_instruction_sets(void)
{
    static struct sets s;
    struct sample      sample = { 14 };

    for (int k = 1; k < CODES; k++) {
        const char *words = NULL;

        for (int64_t width = 1; width <= WIDEST && words == NULL; width++) {
            struct gr_codec c = { .width = width,
                                  .dtype = GRAFT_F32,
                                  .bits = codes[k].bits,
                                  .code = codes[k].code,
                                  .rounding = codes[k].rounding,
                                  .key = 99 };
            float          *x = s.x + WIDEST - width, *work = s.work + 2 * WIDEST - GR_CODEC_WORK * width;
            const int64_t   at = 2 * WIDEST - gr_codec_row_bytes(&c);

            for (int64_t j = 0; j < width; j++) x[j] = (float)uneven(&sample);
            for (int64_t j = 0; j < width && width % 5 == 0; j++) x[j] = j % 3 ? (j % 2 ? 0 : -0.0f) : fabsf(x[j]);
            for (int isa = GR_ISA_GENERIC; isa <= (int)gr_processor_isa() && words == NULL; isa++) {
                const int which = isa > GR_ISA_GENERIC;

                c.isa = (enum gr_isa)isa;
                gr_codec_encode_row(&c, width, x, work, s.record[which] + at);
                gr_codec_decode_row(&c, width, s.record[0] + at, s.back[which] + WIDEST - width, work);
                words = which ? compare_sets(&s, &c) : NULL;
            }
            if (words != NULL) diag("width %lld: %s differs", (long long)width, words);
        }
        ok(words == NULL, "%s: the same for all instruction sets", codes[k].name);
    }
}

static void codec_refused(struct trip *t, const char *words, const char *name)
{
    const int32_t rc = codec->encode(api->context, &t->args, &t->error);

    ok(rc == GRAFT_ERR_ARG && strstr(t->error.message, words) != NULL, "%s: %s", name, t->error.message);
}

static void test_arguments(void)
{
    struct trip t;
    int64_t     bytes = 7;

    trip_init(&t, 4, 10, GRAFT_F32);
    encode_rows(&t, &codes[4], 1, 0);
    t.args.bits = 3;
    codec_refused(&t, "bits are 3", "a width that is not in the set");
    t.args.bits = 2;
    t.args.code = GRAFT_CODEC_ROTATED;
    codec_refused(&t, "rotated", "rotated in two bits");
    t.args.code = 9;
    codec_refused(&t, "code is 9", "an unknown code");
    t.args.code = GRAFT_CODEC_MINMAX;
    t.args.rounding = 0;
    codec_refused(&t, "rounding is 0", "no rounding");
    t.args.rounding = GRAFT_ROUND_NEAREST;
    t.args.message_bytes -= 1;
    codec_refused(&t, "message_bytes", "a message that is too short");
    t.args.message_bytes += 1;
    t.args.message = t.x.data;
    codec_refused(&t, "overlaps", "a message in the rows");
    t.args.message = NULL;
    codec_refused(&t, "message is null", "no message");
    t.args.message = t.message;
    t.args.n_unencoded = NULL;
    codec_refused(&t, "n_unencoded", "no place for the number of rows without a code");
    ok(codec->row_bytes(api->context, 4, -1, GRAFT_F32, &bytes, &t.error) == GRAFT_ERR_ARG && bytes == 7,
       "a negative width: %s", t.error.message);
    ok(codec->row_bytes(api->context, 2, 101, GRAFT_F64, &bytes, &t.error) == GRAFT_OK && bytes == 30 &&
           codec->row_bytes(api->context, 32, 3, GRAFT_F64, &bytes, &t.error) == GRAFT_OK && bytes == 24 &&
           codec->row_bytes(api->context, 16, 3, GRAFT_F64, &bytes, &t.error) == GRAFT_OK && bytes == 6,
       "bytes of rows are what the header says");
    trip_fini(&t);
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0 ||
        (codec = graft_interface(api, GRAFT_CODEC_ID, sizeof *codec)) == NULL) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    test_levels();
    test_short();
    test_bias();
    test_codec_error();
    test_rotation();
    test_constant();
    test_codec_unencoded();
    if (!only_finite()) test_double(); /* one of the numbers overflows a float */
    if (!only_finite()) test_noise();
    test_codec_threads();
    test_instruction_sets();
    test_arguments();
    api->close(api->context);
    return done();
}
