/* The table of codes; checks, size, encoding and decoding of one row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codec/record.h"

/* Every code by its name; the usual one first, since they are searched in this order. */
#define CODES(ROW, isa) ROW(minmax, isa) ROW(rotated, isa) ROW(bf16, isa)

#define ONE(name, isa) +1
#define DECLARE(name, isa) extern const struct gr_codec_code GR_CODEC_JOIN(name, isa);
#define ADDRESS(name, isa) &GR_CODEC_JOIN(name, isa),

enum { N_CODES = 0 CODES(ONE, all) };

CODES(DECLARE, generic)
#if defined(__x86_64__)
CODES(DECLARE, avx2)
CODES(DECLARE, avx512)
#endif

static const struct gr_codec_code *const codes[][N_CODES] = {
    { CODES(ADDRESS, generic) },
#if defined(__x86_64__)
    { CODES(ADDRESS, avx2) },
    { CODES(ADDRESS, avx512) },
#endif
};

/* Find the code with this number and these bits. \return NULL if there is none */
static const struct gr_codec_code *find_code(const struct gr_codec *c)
{
    for (int i = 0; i < N_CODES; i++) {
        const struct gr_codec_code *code = codes[(size_t)c->isa < sizeof codes / sizeof *codes ? c->isa : 0][i];

        if (code->code == c->code && (code->bits & c->bits) != 0) return code;
    }
    return NULL;
}

int32_t gr_codec_check(const struct gr_codec *c, graft_error *error)
{
    if (c->bits != 32 && c->bits != 16 && c->bits != 8 && c->bits != 4 && c->bits != 2 && c->bits != 1)
        return gr_fail(error, GRAFT_ERR_ARG, "bits are %d, expected 32, 16, 8, 4, 2 or 1", c->bits);
    if (c->dtype != GRAFT_F32 && c->dtype != GRAFT_F64)
        return gr_fail(error, GRAFT_ERR_ARG, "dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", c->dtype);
    if (c->width < 0 || c->width > INT64_MAX / 64)
        return gr_fail(error, GRAFT_ERR_ARG, "width is %lld, expected 0 to 2^57", (long long)c->width);
    if (find_code(c) == NULL && (c->bits != 32 || c->code != GRAFT_CODEC_MINMAX))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "code is %d with %d bits, expected 1 (minmax) with any bits or 2 (rotated) with 1 bit", c->code,
                       c->bits);
    if (c->rounding != GRAFT_ROUND_NEAREST && c->rounding != GRAFT_ROUND_STOCHASTIC)
        return gr_fail(error, GRAFT_ERR_ARG, "rounding is %d, expected 1 (nearest) or 2 (stochastic)", c->rounding);
    return GRAFT_OK;
}

int64_t gr_codec_row_bytes(const struct gr_codec *c)
{
    if (c->bits == 32) return c->width * gr_dtype_bytes(c->dtype);
    return (c->width * c->bits + 7) / 8 + (c->bits < 16 ? 4 : 0);
}

/* Round a row of doubles to floats. The error is far below a quantization step, which is at least 2^-16 of the greatest
 * element, except where all floats are equal. \return 0 if all floats are equal, but differ from the doubles; else 1 */
static int narrow_doubles(const double *x, int64_t width, float *out)
{
    int same = 1, exact = 1;

    for (int64_t j = 0; j < width; j++) {
        out[j] = (float)x[j];
        same &= out[j] == out[0];
        exact &= (double)out[j] == x[j];
    }
    return exact || !same;
}

enum gr_codec_result gr_codec_encode_row(const struct gr_codec *c, int64_t row, const void *x, float *work,
                                         uint8_t *record)
{
    const float *floats = x;

    if (c->width == 0) {
        memset(record, 0, (size_t)gr_codec_row_bytes(c));
        return GR_CODEC_DONE;
    }
    if (c->bits == 32) {
        memcpy(record, x, (size_t)gr_codec_row_bytes(c));
        return GR_CODEC_DONE;
    }
    if (c->dtype == GRAFT_F64) {
        if (!narrow_doubles(x, c->width, work) && c->bits < 16 && !c->narrows) return write_unencoded(c, record);
        floats = work;
    }
    GR_ASSERT(find_code(c) != NULL);
    return find_code(c)->encode(c, (uint64_t)row, floats, work, record);
}

enum gr_codec_result gr_codec_decode_row(const struct gr_codec *c, int64_t row, const uint8_t *record, void *x,
                                         float *work)
{
    float               *floats = c->dtype == GRAFT_F64 ? work : x;
    enum gr_codec_result result;

    if (c->width == 0) return GR_CODEC_DONE;
    if (c->bits == 32) {
        memcpy(x, record, (size_t)gr_codec_row_bytes(c));
        return GR_CODEC_DONE;
    }
    GR_ASSERT(find_code(c) != NULL);
    result = find_code(c)->decode(c, (uint64_t)row, record, floats);
    if (result == GR_CODEC_DONE && c->dtype == GRAFT_F64)
        for (int64_t j = 0; j < c->width; j++) ((double *)x)[j] = (double)work[j];
    return result;
}

static double element_value(const struct gr_codec *c, const void *x, int64_t j)
{
    return c->dtype == GRAFT_F64 ? ((const double *)x)[j] : (double)((const float *)x)[j];
}

float gr_codec_range(const struct gr_codec *c, const uint8_t *record)
{
    return c->width > 0 ? step_of(record) * (float)((1 << c->bits) - 1) : 0;
}

/* Add the quantization error of a record, made from x, to `error`. */
static void measure_row(const struct gr_codec *c, int64_t row, const void *x, const uint8_t *record, float *work,
                        graft_codec_error *error)
{
    const struct gr_codec_code *code = find_code(c);
    struct gr_codec             as_float = *c;
    double                      squares = 0, lost = 0;

    error->rows++;
    if (c->bits == 32 || c->width == 0) return;
    as_float.dtype = GRAFT_F32;
    gr_codec_decode_row(&as_float, row, record, work, NULL);
    for (int64_t j = 0; j < c->width; j++) {
        const double value = element_value(c, x, j), off = value - (double)work[j];

        squares += value * value;
        lost += off * off;
    }
    if (squares > 0 && isfinite(squares)) error->nmse += lost / squares; /* bf16 keeps elements that are not finite */
    if (squares > 0 && code->expected_error != NULL) error->expected += code->expected_error(c, record, squares);
}

enum gr_codec_result gr_codec_encode_measured(const struct gr_codec *c, int64_t row, const void *x, float *work,
                                              uint8_t *record, graft_codec_error *error)
{
    const enum gr_codec_result result = gr_codec_encode_row(c, row, x, work, record);

    if (error != NULL && result == GR_CODEC_DONE) measure_row(c, row, x, record, work, error);
    return result;
}
