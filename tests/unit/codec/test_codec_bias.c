/* Checks that rotated rows are decoded without bias: over many random rotations the mean of the decoded rows must be
 * the row, also for rows with few large elements. An element of the mean may be 5 standard errors off, as there are
 * thousands of elements, and the norm of the error may be 4 standard errors from its expected value.
 *     test_codec_bias [DRAWS [WIDTH...]]
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_codec.h"
#include "graft_load.h"

#include <math.h>

enum { AT_ONCE = 1000 };

static const graft_api       *api;
static const graft_codec_api *codec;

static double normal_number(struct sample *sample)
{
    const double u = sample_real(sample, 1e-12, 1), v = sample_real(sample, 0, 6.283185307179586);

    return sqrt(-2 * log(u)) * cos(v);
}

static double relu_number(struct sample *sample)
{
    return fmax(normal_number(sample), 0);
}

static double lognormal_number(struct sample *sample)
{
    return exp(normal_number(sample));
}

static double wide_lognormal_number(struct sample *sample)
{
    return exp(3 * normal_number(sample)) * (sample_below(sample, 3) == 0 ? -1 : 1);
}

static double sparse_number(struct sample *sample)
{
    return sample_below(sample, 20) == 0 ? normal_number(sample) : 0;
}

static double word_number(struct sample *sample)
{
    return sample_below(sample, 10) == 0;
}

static double one(struct sample *sample)
{
    (void)sample;
    return 1;
}

static double zero(struct sample *sample)
{
    (void)sample;
    return 0;
}

/* The kinds of rows. A row has random numbers, of which the first, the middle and the last may be replaced. */
static const struct kind {
    double (*draw)(struct sample *sample);
    float       first, middle, last; /* replacements; 0 leaves the random number unchanged */
    const char *name;
} kinds[] = {
    { normal_number, 0, 0, 0, "normal" },
    { relu_number, 0, 0, 0, "normal and not negative" },
    { lognormal_number, 0, 0, 0, "log-normal" },
    { wide_lognormal_number, 0, 0, 0, "log-normal over orders of magnitude" },
    { sparse_number, 2, 0, 1, "sparse" },
    { word_number, 0, 1, 0, "sparse, equal elements" },
    { zero, 0, 2, 0, "one element" },
    { zero, 3, 1, 0, "two elements" },
    { zero, 1, -2, 5, "three elements" },
    { one, 0, 0, 0, "constant" },
    { one, 0, 4, 0, "constant but one" },
};

/* Sums over the decodings of row x. */
struct bias {
    int64_t draws, width;
    float  *x, *rows, *decoded;
    void   *message;
    double *sum, *squares; /* [width] sums of the errors, and of their squares */
};

static void bias_init(struct bias *b, const struct kind *kind, int64_t draws, int64_t width)
{
    struct sample sample = { (uint64_t)width };
    const size_t  n = (size_t)width;

    *b = (struct bias){
        draws,        width,       calloc(n, 4), calloc(n * AT_ONCE, 4), calloc(n * AT_ONCE, 4), calloc(n + 4, AT_ONCE),
        calloc(n, 8), calloc(n, 8)
    };
    for (int64_t j = 0; j < width; j++) b->x[j] = (float)kind->draw(&sample);
    if (kind->first != 0) b->x[0] = kind->first;
    if (kind->middle != 0) b->x[width / 2] = kind->middle;
    if (kind->last != 0) b->x[width - 1] = kind->last;
    for (int64_t i = 0; i < width * AT_ONCE; i++) b->rows[i] = b->x[i % width];
}

static void bias_fini(struct bias *b)
{
    free(b->x);
    free(b->rows);
    free(b->decoded);
    free(b->message);
    free(b->sum);
    free(b->squares);
}

/* Decode the row with the random bits of rows first, first + 1, and so on. */
static int32_t decode_some(struct bias *b, int64_t first, graft_error *error)
{
    graft_dense      rows = { sizeof rows, GRAFT_F32, AT_ONCE, b->width, b->width, b->rows };
    graft_codec_args args = GRAFT_INIT(graft_codec_args);
    int32_t          rc;

    args.bits = 1;
    args.code = GRAFT_CODEC_ROTATED;
    args.rounding = GRAFT_ROUND_NEAREST;
    args.seed = 3;
    args.first = first;
    args.rows = &rows;
    args.message = b->message;
    args.message_bytes = (uint64_t)((b->width + 4) * AT_ONCE);
    rc = codec->encode(api->context, &args, error);
    rows.data = b->decoded;
    return rc == GRAFT_OK ? codec->decode(api->context, &args, error) : rc;
}

static void add_errors(struct bias *b)
{
    for (int64_t i = 0; i < AT_ONCE * b->width; i++) {
        const double off = (double)b->decoded[i] - (double)b->x[i % b->width];

        b->sum[i % b->width] += off;
        b->squares[i % b->width] += off * off;
    }
}

/* Compute the largest error of an element of the mean, in standard errors, and how much the norm of the error exceeds
 * its expected value, in standard errors and relative to the norm of the row. An element that is the same each time may
 * have an error of arithmetic. */
static void bias_measure(const struct bias *b, double *worst, double *length, double *share)
{
    const double draws = (double)b->draws;
    double       norm = 0, excess = 0, spread = 0;

    *worst = 0;
    for (int64_t j = 0; j < b->width; j++) norm += (double)b->x[j] * (double)b->x[j];
    for (int64_t j = 0; j < b->width; j++) {
        const double mean = b->sum[j] / draws, variance = (b->squares[j] / draws - mean * mean) / draws;

        excess += mean * mean - variance;
        if (variance * draws <= 1e-10 * norm) {
            if (fabs(mean) > 1e-5 * sqrt(norm)) *worst = INFINITY;
            continue;
        }
        *worst = fmax(*worst, fabs(mean) / sqrt(variance));
        spread += 2 * variance * variance;
    }
    *length = spread > 0 ? excess / sqrt(spread) : 0;
    *share = sqrt(fmax(excess, 0) / norm);
}

static void test_kind(const struct kind *kind, int64_t draws, int64_t width)
{
    graft_error error = GRAFT_INIT(graft_error);
    struct bias b;
    double      worst, length, share, lost = 0, norm = 0;
    int32_t     rc = GRAFT_OK;

    bias_init(&b, kind, draws, width);
    for (int64_t first = 0; first < draws && rc == GRAFT_OK; first += AT_ONCE) {
        rc = decode_some(&b, first, &error);
        add_errors(&b);
    }
    bias_measure(&b, &worst, &length, &share);
    for (int64_t j = 0; j < width; j++) {
        lost += b.squares[j] / (double)draws;
        norm += (double)b.x[j] * (double)b.x[j];
    }
    ok(rc == GRAFT_OK && worst <= 5 && length <= 4 && lost <= 0.6 * norm,
       "%lld elements, %s: bias %.2f %% (%.1f standard errors, an element %.1f), error %.2f", (long long)width,
       kind->name, 100 * share, length, worst, lost / norm);
    bias_fini(&b);
}

int main(int argc, char **argv)
{
    static const int64_t widths[] = { 48, 64, 100, 128, 255, 602 };
    graft_error          error = GRAFT_INIT(graft_error);
    const int64_t        draws = argc > 1 ? strtoll(argv[1], NULL, 10) : 10 * AT_ONCE;
    const int            count = argc > 2 ? argc - 2 : (int)(sizeof widths / sizeof *widths);

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0 ||
        (codec = graft_interface(api, GRAFT_CODEC_ID, sizeof *codec)) == NULL || draws % AT_ONCE != 0) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    for (int w = 0; w < count; w++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            test_kind(&kinds[k], draws, argc > 2 ? strtoll(argv[w + 2], NULL, 10) : widths[w]);
    api->close(api->context);
    return done();
}
