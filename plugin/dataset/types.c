/* Dense features of all types: conversion of the host's rows to floats, and checks of values. Types of two bytes are
 * widened exactly. A byte x in column j becomes scale[j] (x - zero[j]), rounded after each operation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bfloat.h"
#include "base/dtype.h"
#include "base/finite.h"
#include "base/team.h"
#include "dataset/dataset.h"
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

/* Widen an IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction. No operation has subnormal floats as operand or
 * result, because a host may have set the processor to treat them as zero. */
static float widen_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF;
    const uint32_t below = gr_float_bits((float)rest * 0x1p-24f);
    const uint32_t usual = (rest << 13) + (112u << 23), beyond = 0x7F800000u | (rest & 0x3FF) << 13;

    return gr_float_of_bits(sign | (rest < 0x400 ? below : rest < 0x7C00 ? usual : beyond));
}

static void widen_row(const struct gr_features *f, int64_t row, float *to)
{
    const graft_dense *x = &f->x;
    const int64_t      at = row * x->stride, width = x->n_cols;
    const uint16_t    *two = (const uint16_t *)x->data + at; /* a value of two bytes, or of one */
    const uint8_t     *one = (const uint8_t *)x->data + at;

    switch (x->dtype) {
    case GRAFT_F16:
        for (int64_t j = 0; j < width; j++) to[j] = widen_half(two[j]);
        break;
    case GRAFT_BF16:
        for (int64_t j = 0; j < width; j++) to[j] = gr_bfloat_widen(two[j]);
        break;
    case GRAFT_U8:
        for (int64_t j = 0; j < width; j++) to[j] = f->scale[j] * ((float)one[j] - f->zero[j]);
        break;
    default: memcpy(to, (const float *)x->data + at, (uint64_t)width * sizeof *to);
    }
}

void gr_dataset_normalize(float *x, int64_t count)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++) sum += x[j];
    for (int64_t j = 0; j < count && sum != 0; j++) x[j] = (float)(x[j] / sum);
}

/* Prefetch the beginning of a row that will soon be read. */
static void prefetch_row(const graft_dense *x, int64_t row)
{
    enum { LINE = 64, LINES = 4 };
    const int64_t     element = gr_dtype_bytes(x->dtype), bytes = x->n_cols * element;
    const char *const at = (const char *)x->data + row * x->stride * element;

    for (int64_t line = 0; line < LINES && line * LINE < bytes; line++) __builtin_prefetch(at + line * LINE);
}

void gr_dataset_widen(const struct gr_features *f, const int64_t *row, int64_t count, int normalizes, int threads,
                      float *to)
{
    enum { AHEAD = 12 };
    const int64_t      width = f->x.n_cols;
    const struct gr_fp fp = gr_fp_get();

    threads = gr_threads_worth(threads, count * width);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct gr_fp own = gr_fp_swap(fp);

#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < count; i++) {
            if (row != NULL && i + AHEAD < count) prefetch_row(&f->x, row[i + AHEAD]);
            widen_row(f, row != NULL ? row[i] : i, to + i * width);
            if (normalizes) gr_dataset_normalize(to + i * width, width);
        }
        gr_fp_set(own);
    }
}

static int32_t check_scale(const struct gr_features *f, graft_error *error)
{
    for (int64_t j = 0; j < f->x.n_cols; j++) {
        const double least = (double)f->scale[j] * (0.0 - (double)f->zero[j]);
        const double most = (double)f->scale[j] * (255.0 - (double)f->zero[j]);

        if (isfinite((float)least) && isfinite((float)most)) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "feature_scale and feature_zero of column %lld are %g and %g, so that its values are %g to %g; "
                       "expected finite ones",
                       (long long)j, (double)f->scale[j], (double)f->zero[j], least, most);
    }
    return GRAFT_OK;
}

int32_t gr_dataset_view_features(const graft_dataset *data, struct gr_features *f, graft_error *error)
{
    graft_dense form;

    GR_TRY(gr_struct_read(&f->x, sizeof f->x, data->features, "dataset.features", error));
    f->scale = data->feature_scale;
    f->zero = data->feature_zero;
    form = f->x;
    if (form.dtype != GRAFT_F32 && form.dtype != GRAFT_F16 && form.dtype != GRAFT_BF16 && form.dtype != GRAFT_U8)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features have dtype %d, expected GRAFT_F32 (1), GRAFT_U8 (5), GRAFT_BF16 (6) or GRAFT_F16 (7)",
                       form.dtype);
    form.dtype = GRAFT_F32;
    GR_TRY(gr_kernel_dense_check(&form, "features", error));
    if ((f->scale != NULL) != (f->x.dtype == GRAFT_U8) || (f->zero != NULL) != (f->x.dtype == GRAFT_U8))
        return gr_fail(error, GRAFT_ERR_ARG,
                       "feature_scale is %s and feature_zero %s, but features have dtype %d; expected both with "
                       "GRAFT_U8 (5), and none with other types",
                       f->scale != NULL ? "given" : "null", f->zero != NULL ? "given" : "null", f->x.dtype);
    if (f->scale != NULL) return check_scale(f, error);
    return GRAFT_OK;
}

int64_t gr_dataset_first_not_finite(const graft_dense *x, int64_t from, int64_t count)
{
    const uint16_t  exponent = x->dtype == GRAFT_F16 ? 0x7C00 : 0x7F80; /* all bits 1 in infinities and NaNs */
    const uint16_t *half = (const uint16_t *)x->data + from;
    int64_t         at = 0;
    int             found = 0;

    if (x->dtype == GRAFT_U8) return count;
    if (x->dtype == GRAFT_F32) return gr_first_not_finite((const float *)x->data + from, count);
    for (int64_t i = 0; i < count; i++) found |= (half[i] & exponent) == exponent;
    if (!found) return count;
    while ((half[at] & exponent) != exponent) at++;
    return at;
}

float gr_dataset_element(const graft_dense *x, int64_t at)
{
    if (x->dtype == GRAFT_F32) return ((const float *)x->data)[at];
    return x->dtype == GRAFT_F16 ? widen_half(((const uint16_t *)x->data)[at])
                                 : gr_bfloat_widen(((const uint16_t *)x->data)[at]);
}

int32_t gr_dataset_refuse(int64_t vertex, int64_t column, double value, graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_FORMAT, "features of vertex %lld: column %lld is %g, expected a finite number",
                   (long long)vertex, (long long)column, value);
}
