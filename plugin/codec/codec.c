/* Messages of rows: which code, and row by row to the loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

int32_t gr_codec_check(const struct gr_codec *c, graft_error *error)
{
    if (c->bits != 32 && c->bits != 16 && c->bits != 8 && c->bits != 4 && c->bits != 2 && c->bits != 1)
        return gr_fail(error, GRAFT_ERR_ARG, "bits are %d, expected 32, 16, 8, 4, 2 or 1", c->bits);
    if (c->dtype != GRAFT_F32 && c->dtype != GRAFT_F64)
        return gr_fail(error, GRAFT_ERR_ARG, "dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", c->dtype);
    if (c->width < 0 || c->width > INT64_MAX / 64)
        return gr_fail(error, GRAFT_ERR_ARG, "width is %lld", (long long)c->width);
    if (c->code != GRAFT_CODEC_MINMAX && c->code != GRAFT_CODEC_ROTATED)
        return gr_fail(error, GRAFT_ERR_ARG, "code is %d, expected 1 (minmax) or 2 (rotated)", c->code);
    if (c->code == GRAFT_CODEC_ROTATED && c->bits != 1)
        return gr_fail(error, GRAFT_ERR_ARG, "code is rotated, which has 1 bit, and bits are %d", c->bits);
    if (c->rounding != GRAFT_ROUND_NEAREST && c->rounding != GRAFT_ROUND_STOCHASTIC)
        return gr_fail(error, GRAFT_ERR_ARG, "rounding is %d, expected 1 (nearest) or 2 (stochastic)", c->rounding);
    return GRAFT_OK;
}

static int64_t element_bytes(const struct gr_codec *c)
{
    return c->dtype == GRAFT_F64 ? 8 : 4;
}

int64_t gr_codec_row_bytes(const struct gr_codec *c)
{
    if (c->bits == 32) return c->width * element_bytes(c);
    return (c->width * c->bits + 7) / 8 + (c->bits < 16 ? 4 : 0);
}

static const struct gr_codec_loops *loops(enum gr_isa isa)
{
    (void)isa;
#if defined(__x86_64__)
    if (isa >= GR_ISA_AVX512) return &gr_codec_avx512;
    if (isa >= GR_ISA_AVX2) return &gr_codec_avx2;
#endif
    return &gr_codec_generic;
}

/* A row of doubles as floats. The error of that is far below a step, which is at least a part in 2^16 of the largest
 * element; a row in which it is not, because all its elements are the same, is told by the return value. */
static int narrow(const double *x, int64_t width, float *out)
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
    static const uint8_t         raw[4] = { 0xC0, 0x7F, 0, 0 };
    const struct gr_codec_loops *l = loops(c->isa);
    const float                 *floats = x;

    if (c->bits == 32 || c->width == 0) {
        if (gr_codec_row_bytes(c) > 0) memset(record, 0, (size_t)gr_codec_row_bytes(c));
        if (c->width > 0) memcpy(record, x, (size_t)gr_codec_row_bytes(c));
        return GR_CODEC_DONE;
    }
    if (c->dtype == GRAFT_F64) {
        if (!narrow(x, c->width, work) && c->bits < 16 && !c->narrows) {
            memset(record, 0, (size_t)gr_codec_row_bytes(c));
            memcpy(record, raw, sizeof raw);
            return GR_CODEC_IS_RAW;
        }
        floats = work;
    }
    if (c->bits < 16) return l->encode(c, (uint64_t)row, floats, work, record);
    l->shorten(c, (uint64_t)row, floats, record);
    return GR_CODEC_DONE;
}

enum gr_codec_result gr_codec_decode_row(const struct gr_codec *c, int64_t row, const uint8_t *record, void *x,
                                         float *work)
{
    float               *floats = c->dtype == GRAFT_F64 ? work : x;
    enum gr_codec_result result = GR_CODEC_DONE;

    if (c->width == 0) return GR_CODEC_DONE;
    if (c->bits == 32) {
        memcpy(x, record, (size_t)gr_codec_row_bytes(c));
        return GR_CODEC_DONE;
    }
    if (c->bits < 16) result = loops(c->isa)->decode(c, (uint64_t)row, record, floats);
    else loops(c->isa)->lengthen(c, record, floats);
    if (result == GR_CODEC_DONE && c->dtype == GRAFT_F64)
        for (int64_t j = 0; j < c->width; j++) ((double *)x)[j] = (double)work[j];
    return result;
}

static double element(const struct gr_codec *c, const void *x, int64_t j)
{
    return c->dtype == GRAFT_F64 ? ((const double *)x)[j] : (double)((const float *)x)[j];
}

/* The step of a row of MINMAX, or of ROTATED something above 0; 0 where all elements are the same. */
static float step_of(const uint8_t *record)
{
    uint32_t params;
    float    step;

    memcpy(&params, record, sizeof params);
    if (params >> 31) return 0;
    params &= 0xFFFF0000;
    memcpy(&step, &params, sizeof step);
    return step;
}

float gr_codec_range(const struct gr_codec *c, const uint8_t *record)
{
    return c->width > 0 ? step_of(record) * (float)((1 << c->bits) - 1) : 0;
}

/* What the theory expects of a row with these parameters, over the square of its length. */
static double expected_of(const struct gr_codec *c, const uint8_t *record, double squares)
{
    const float step = c->bits < 16 ? step_of(record) : 0;

    if (step == 0 || squares == 0) return 0;
    if (c->code == GRAFT_CODEC_ROTATED) return 1.5707963267948966 - 1;
    return (double)c->width * (double)step * (double)step / (c->rounding == GRAFT_ROUND_STOCHASTIC ? 6 : 12) / squares;
}

void gr_codec_measure(const struct gr_codec *c, int64_t row, const void *x, const uint8_t *record, float *work,
                      graft_codec_error *error)
{
    struct gr_codec as_float = *c;
    double          squares = 0, lost = 0;

    error->rows++;
    if (c->bits == 32) return;
    as_float.dtype = GRAFT_F32;
    gr_codec_decode_row(&as_float, row, record, work, NULL);
    for (int64_t j = 0; j < c->width; j++) {
        const double value = element(c, x, j), off = value - (double)work[j];

        squares += value * value;
        lost += off * off;
    }
    if (squares > 0 && isfinite(squares)) error->nmse += lost / squares; /* with 16 bits what is not finite stays so */
    error->expected += expected_of(c, record, squares);
}
