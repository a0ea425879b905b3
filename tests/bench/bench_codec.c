/* Measures the speed of encoding and decoding quantized rows on one core, compared with a copy of the same rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "graft_codec.h"
#include "graft_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: bench_codec [WIDTH [ROWS]]\n"
                            "By default 128 floats in a row, and as many rows as there are in 256 MiB.";

enum { ROUNDS = 7, DEFAULT_BYTES = 256 << 20 };

static const struct code {
    int32_t     bits, code, rounding;
    const char *name;
} codes[] = {
    { 16, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "16 nearest" },
    { 8, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "8 nearest" },
    { 4, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "4 nearest" },
    { 2, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "2 nearest" },
    { 1, GRAFT_CODEC_MINMAX, GRAFT_ROUND_NEAREST, "1 nearest" },
    { 16, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "16 stochastic" },
    { 8, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "8 stochastic" },
    { 4, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "4 stochastic" },
    { 2, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "2 stochastic" },
    { 1, GRAFT_CODEC_MINMAX, GRAFT_ROUND_STOCHASTIC, "1 stochastic" },
    { 1, GRAFT_CODEC_ROTATED, GRAFT_ROUND_NEAREST, "1 rotated" },
};

enum { CODES = sizeof codes / sizeof *codes };

/* The original rows, the encoded message, and the decoded rows. */
struct bench {
    const graft_api       *api;
    const graft_codec_api *codec;
    graft_dense            x, back;
    void                  *message;
    graft_codec_args       args;
    double                 copy[ROUNDS], encode[CODES][ROUNDS], decode[CODES][ROUNDS];
};

/* Returns an approximately normally distributed number, which is the sum of four uniform numbers. */
static float bench_codec_number(uint64_t i)
{
    const uint64_t bits = bench_mix(i);

    return (float)((bits & 65535) + (bits >> 16 & 65535) + (bits >> 32 & 65535) + (bits >> 48)) / 37837.0f - 3.464f;
}

static void bench_init(struct bench *b, int64_t width, int64_t rows)
{
    const size_t count = (size_t)(width * rows);
    graft_error  error = GRAFT_INIT(graft_error);

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &b->api, &error) < 0) bench_die("%s", error.message);
    b->codec = graft_interface(b->api, GRAFT_CODEC_ID, sizeof *b->codec);
    if (b->codec == NULL) bench_die("this library has no " GRAFT_CODEC_ID);
    b->x = (graft_dense){ sizeof b->x, GRAFT_F32, rows, width, width, bench_new(count, sizeof(float), 1) };
    b->back = (graft_dense){ sizeof b->back, GRAFT_F32, rows, width, width, bench_new(count, sizeof(float), 1) };
    b->message = bench_new(count + 4 * (size_t)rows, 2, 1);
    for (size_t i = 0; i < count; i++) ((float *)b->x.data)[i] = bench_codec_number(i);
}

static void codec_bench_fini(struct bench *b)
{
    free(b->x.data);
    free(b->back.data);
    free(b->message);
    b->api->close(b->api->context);
}

static void prepare(struct bench *b, const struct code *c)
{
    graft_error error = GRAFT_INIT(graft_error);
    int64_t     row_bytes;

    if (b->codec->row_bytes(b->api->context, c->bits, b->x.n_cols, GRAFT_F32, &row_bytes, &error) < 0)
        bench_die("%s", error.message);
    b->args = GRAFT_INIT(graft_codec_args);
    b->args.bits = c->bits;
    b->args.code = c->code;
    b->args.rounding = c->rounding;
    b->args.threads = 1;
    b->args.seed = 1;
    b->args.message = b->message;
    b->args.message_bytes = (uint64_t)(b->x.n_rows * row_bytes);
}

static double bench_codec_encode(struct bench *b)
{
    graft_error  error = GRAFT_INIT(graft_error);
    const double begin = bench_seconds();

    b->args.rows = &b->x;
    if (b->codec->encode(b->api->context, &b->args, &error) < 0) bench_die("%s", error.message);
    return bench_seconds() - begin;
}

static double bench_codec_decode(struct bench *b)
{
    graft_error  error = GRAFT_INIT(graft_error);
    const double begin = bench_seconds();

    b->args.rows = &b->back;
    if (b->codec->decode(b->api->context, &b->args, &error) < 0) bench_die("%s", error.message);
    return bench_seconds() - begin;
}

/* Returns the largest allowed error of an element that MINMAX has quantized: one quantization step of its row, or half
 * a step when values are rounded to the nearest. The step is larger than range / levels because the minimum and the
 * range of the row are stored with eight significant bits. */
static double most_off(const struct code *c, double low, double high)
{
    const double range = high - low + fabs(low) / 128, step = range / ((1 << c->bits) - 1) * (1 + 1.0 / 128);

    return step * (c->rounding == GRAFT_ROUND_NEAREST ? 0.5 : 1) * (1 + 1e-4);
}

/* Returns the relative squared error of row i, or -1 if the error of an element exceeds its bound. */
static double lost_of(const struct bench *b, const struct code *c, int64_t i)
{
    const int64_t width = b->x.n_cols;
    const float  *x = (const float *)b->x.data + i * width, *back = (const float *)b->back.data + i * width;
    double        low = x[0], high = x[0], squares = 0, lost = 0;

    for (int64_t j = 0; j < width; j++) {
        if ((double)x[j] < low) low = (double)x[j];
        if ((double)x[j] > high) high = (double)x[j];
    }
    for (int64_t j = 0; j < width; j++) {
        const double value = (double)x[j], off = fabs((double)back[j] - value);

        if (c->bits == 16 && off > fabs(value) / (c->rounding == GRAFT_ROUND_NEAREST ? 256 : 128)) return -1;
        if (c->bits < 16 && c->code == GRAFT_CODEC_MINMAX && off > most_off(c, low, high)) return -1;
        squares += value * value;
        lost += off * off;
    }
    return squares > 0 ? lost / squares : 0;
}

/* Returns whether the error is within the bound of the code and equals the error that the library reports. */
static int is_right(struct bench *b, const struct code *c)
{
    graft_codec_error told = GRAFT_INIT(graft_codec_error);
    double            nmse = 0;

    prepare(b, c);
    b->args.error = &told;
    bench_codec_encode(b);
    bench_codec_decode(b);
    b->args.error = NULL;
    for (int64_t i = 0; i < b->x.n_rows; i++) {
        const double lost = lost_of(b, c, i);

        if (lost < 0) return 0;
        nmse += lost;
    }
    if (fabs(nmse - told.nmse) > 1e-6 * nmse || told.rows != b->x.n_rows) return 0;
    /* The theory assumes that elements are uniformly distributed between two levels. That does not hold with one
     * bit. */
    if (c->bits == 16 || (c->bits == 1 && c->code == GRAFT_CODEC_MINMAX)) return 1;
    return nmse <= told.expected * 1.05;
}

static void bench_codec_measure(struct bench *b)
{
    const size_t bytes = (size_t)(b->x.n_rows * b->x.n_cols) * sizeof(float);

    for (int round = 0; round < ROUNDS; round++) {
        const double begin = bench_seconds();

        memcpy(b->back.data, b->x.data, bytes);
        b->copy[round] = bench_seconds() - begin;
        for (int k = 0; k < CODES; k++) {
            prepare(b, &codes[k]);
            b->encode[k][round] = bench_codec_encode(b);
            b->decode[k][round] = bench_codec_decode(b);
        }
    }
}

static void bench_codec_print(struct bench *b)
{
    const double bytes = (double)b->x.n_rows * (double)b->x.n_cols * 4, copy = bench_median(b->copy, ROUNDS);

    printf("%lld rows of %lld floats, one core; GB/s of floats, and that / that of a copy\n", (long long)b->x.n_rows,
           (long long)b->x.n_cols);
    printf("%-14s %16s %16s\n", "", "encode", "decode");
    printf("%-14s %8.2f\n", "copy", bytes / copy * 1e-9);
    for (int k = 0; k < CODES; k++) {
        const double in = bench_median(b->encode[k], ROUNDS), out = bench_median(b->decode[k], ROUNDS);

        printf("%-14s %8.2f %7.2f %8.2f %7.2f\n", codes[k].name, bytes / in * 1e-9, copy / in, bytes / out * 1e-9,
               copy / out);
    }
}

int main(int argc, char **argv)
{
    const int64_t width = argc > 1 ? strtoll(argv[1], NULL, 10) : 128;
    const int64_t rows = argc > 2 ? strtoll(argv[2], NULL, 10) : DEFAULT_BYTES / 4 / (width > 0 ? width : 1);
    struct bench  bench;
    int           wrong = 0;

    if (argc > 3 || width < 1 || rows < 1 || rows > INT64_MAX / 16 / width) bench_die("%s", usage);
    bench_init(&bench, width, rows);
    for (int k = 0; k < CODES; k++) {
        if (is_right(&bench, &codes[k])) continue;
        printf("%s: WRONG\n", codes[k].name);
        wrong = 1;
    }
    if (!wrong) {
        bench_codec_measure(&bench);
        bench_codec_print(&bench);
    }
    codec_bench_fini(&bench);
    return wrong;
}
