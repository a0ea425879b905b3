/* The loops of rows.c over the elements of rows, compiled once for each instruction set: ISA is part of the table's
 * name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/rows_loops.h"

#include "base/assert.h"
#include "base/draws.h"
#include "base/dropout.h"
#include "nn/layer_norm.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* Pack eight bytes, each 0 or 1, into bits. */
static uint8_t pack_bits(const uint8_t *flags)
{
    uint64_t word = 0;

    for (int k = 0; k < 8; k++) word |= (uint64_t)flags[k] << 8 * k;
    return (uint8_t)(word * UINT64_C(0x0102040810204080) >> 56);
}

/* Compute e^x - 1 for -0.25 < x <= 0, accurate to the last bits, by its series up to x^7 / 7!; exp(x) - 1 would
 * cancel. */
static float expm1_near(float x)
{
    const float p = 1.0f / 120 + x * (1.0f / 720 + x * (1.0f / 5040));

    return x + x * x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * p)));
}

/* h = ELU(h) for up to GR_DRAWS columns. */
static void elu_piece(int count, float *h)
{
    float below[GR_DRAWS] = { 0 };

    for (int j = 0; j < count; j++) below[j] = h[j] > 0 ? 0 : h[j];
    for (int j = 0; j < count; j += HEAD_LANES) {
        floats8 x;

        memcpy(&x, below + j, sizeof x);
        x = exp8(max8((floats8){ 0 } - 100, x)) - 1.0f;
        memcpy(below + j, &x, sizeof x);
    }
    for (int j = 0; j < count; j++) below[j] = h[j] > -0.25f ? expm1_near(h[j] > 0 ? 0 : h[j]) : below[j];
    for (int j = 0; j < count; j++) h[j] = h[j] > 0 ? h[j] : below[j];
}

/* The threshold of the dropout after the activation; 0: there is none. */
static uint32_t last_threshold(const struct gr_rows *r)
{
    return r->drops_first ? 0 : r->threshold;
}

/* h = dropout(act(h)) for up to GR_DRAWS columns; `bits` records which elements passed. NaN passes, so that it reaches
 * the loss. */
static void activate_piece(const struct gr_rows *r, int64_t vertex, int64_t begin, int count, float *h, uint8_t *bits)
{
    const float    scale = (float)gr_dropout_scale(last_threshold(r));
    const uint16_t threshold = (uint16_t)last_threshold(r);
    const uint8_t  all = r->is_elu != 0;
    uint16_t       draws[GR_DRAWS];
    uint8_t        through[GR_DRAWS] = { 0 };

    GR_ASSERT(count > 0 && count <= GR_DRAWS && begin % 8 == 0);
    if (r->is_elu) elu_piece(count, h);
    if (threshold > 0) gr_draw(r->key, (uint64_t)vertex, (uint64_t)begin / 8, (count + 7) / 8, draws);
    else memset(draws, 255, sizeof draws);
    for (int j = 0; j < count; j++) through[j] = (all | !(h[j] <= 0)) & (draws[j] >= threshold);
    for (int j = 0; j < count; j++) h[j] = through[j] ? h[j] * scale : 0;
    for (int j = 0; j < count; j += 8) bits[j / 8] = pack_bits(through + j);
}

static void activate_row(const struct gr_rows *r, int64_t row, float *h, uint8_t *bits)
{
    const int64_t vertex = gr_vertex(r->vertex, row);

    for (int64_t j = 0; j < r->width; j += GR_DRAWS) {
        const int64_t left = r->width - j;

        activate_piece(r, vertex, j, (int)(left < GR_DRAWS ? left : GR_DRAWS), h + j, bits + j / 8);
    }
}

static void norm_row(const struct gr_rows *r, int64_t row, float *z, float *out)
{
    float       mean;
    const float rstd = row_moments_f32(r->width, 2, NULL, z, &mean);

    for (int64_t j = 0; j < r->width; j++) out[j] = (z[j] - mean) * rstd * r->gain[j] + r->shift[j];
    r->mean[row] = mean;
    r->rstd[row] = rstd;
}

/* Normalise a row by the mean and deviation of each column. */
static void norm_columns_of_row(const struct gr_rows *r, const float *z, float *out)
{
    for (int64_t j = 0; j < r->width; j++) out[j] = (z[j] - r->mean[j]) * r->rstd[j] * r->gain[j] + r->shift[j];
}

/* out = dropout(x) for a row; x may be out. */
static void drop_row(uint64_t key, int64_t vertex, uint32_t share, int64_t width, const float *x, float *out)
{
    const float    scale = (float)gr_dropout_scale(share);
    const uint16_t threshold = (uint16_t)share;
    uint16_t       draws[GR_DRAWS];

    for (int64_t begin = 0; begin < width; begin += GR_DRAWS) {
        const int64_t left = width - begin, count = left < GR_DRAWS ? left : GR_DRAWS;

        gr_draw(key, (uint64_t)vertex, (uint64_t)begin / 8, (int)(count + 7) / 8, draws);
        for (int64_t j = 0; j < count; j++) out[begin + j] = draws[j] >= threshold ? x[begin + j] * scale : 0;
    }
}

/* Apply the dropout before norm and activation, if there is one, to a row or to its gradient. */
static void drop_row_first(const struct gr_rows *r, int64_t row, float *x)
{
    if (r->drops_first && r->threshold > 0) drop_row(r->key, gr_vertex(r->vertex, row), r->threshold, r->width, x, x);
}

static void rows_forward(const struct gr_rows *r, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        float *z = r->z + row * r->width, *h;

        for (int64_t j = 0; j < r->width && !r->has_z; j++) z[j] += r->bias[j];
        if (!r->has_z) drop_row_first(r, row, z);
        if (r->h == NULL) continue;
        h = r->h + row * r->width;
        if (r->gain != NULL && r->norms_columns) norm_columns_of_row(r, z, h);
        else if (r->gain != NULL) norm_row(r, row, z, h);
        else if (h != z) memcpy(h, z, (uint64_t)r->width * sizeof *h);
        activate_row(r, row, h, r->bits + row * ((r->width + 7) / 8));
    }
}

/* Unpack bits into eight bytes, nonzero where the bit is set. */
static void unpack_bits(uint8_t bits, uint8_t *flags)
{
    const uint64_t word = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);

    for (int k = 0; k < 8; k++) flags[k] = (uint8_t)(word >> 8 * k);
}

static void activate_row_backward(const struct gr_rows *r, float *g, const uint8_t *bits)
{
    const float scale = (float)gr_dropout_scale(last_threshold(r));
    uint8_t     through[GR_DRAWS];

    for (int64_t begin = 0; begin < r->width; begin += GR_DRAWS) {
        const int64_t count = r->width - begin < GR_DRAWS ? r->width - begin : GR_DRAWS;

        for (int64_t j = 0; j < count; j += 8) unpack_bits(bits[(begin + j) / 8], through + j);
        for (int64_t j = 0; j < count; j++) g[begin + j] = through[j] ? g[begin + j] * scale : 0;
    }
}

/* Multiply g by the derivative of ELU, computed from h = scale ELU(z); elements of g that were dropped are 0. */
static void elu_row_backward(const struct gr_rows *r, const float *h, float *g)
{
    const float scale = (float)gr_dropout_scale(last_threshold(r));

    for (int64_t j = 0; j < r->width; j++) g[j] *= h[j] > 0 ? 1 : h[j] / scale + 1;
}

static void norm_row_backward(const struct gr_rows *r, int64_t row, float *g, double *gain, double *shift)
{
    const struct normed_f32 normed = { r->z + row * r->width, r->mean[row], r->rstd[row] };

    for (int64_t j = 0; j < r->width; j++) {
        gain[j] += g[j] * ((normed.z[j] - normed.mean) * normed.scale);
        shift[j] += g[j];
    }
    norm_row_back_f32(r->width, &normed, normed.scale, r->gain, 0, g);
}

/* Add to the gradients of gain and shift. The gradient of z is computed later, because it needs their final sums. */
static void norm_columns_backward(const struct gr_rows *r, int64_t row, const float *g, double *gain, double *shift)
{
    const float *z = r->z + row * r->width;

    for (int64_t j = 0; j < r->width; j++) {
        gain[j] += g[j] * ((z[j] - r->mean[j]) * r->rstd[j]);
        shift[j] += g[j];
    }
}

static void rows_sum_columns(const struct gr_rows *r, const double *mean, double *partial, int64_t begin, int64_t end)
{
    memset(partial, 0, (uint64_t)r->width * sizeof *partial);
    for (int64_t row = begin; row < end; row++) {
        const float *z = r->z + row * r->width;

        for (int64_t j = 0; j < r->width && mean == NULL; j++) partial[j] += z[j];
        for (int64_t j = 0; j < r->width && mean != NULL; j++) partial[j] += (z[j] - mean[j]) * (z[j] - mean[j]);
    }
}

/* Compute dz from dy for x = (z - mean) rstd and y = gain x + shift: dz = gain rstd (dy - mean(dy) - x mean(dy x)),
 * with means over rows. */
static void rows_columns_backward(const struct gr_rows_columns_backward *c, double *partial, int64_t begin, int64_t end)
{
    const struct gr_rows *r = c->rows;

    memset(partial, 0, (uint64_t)r->width * sizeof *partial);
    for (int64_t row = begin; row < end; row++) {
        const float *z = r->z + row * r->width;
        float       *g = c->g + row * r->width;

        for (int64_t j = 0; j < r->width; j++) {
            const float x = (z[j] - r->mean[j]) * r->rstd[j];

            g[j] = r->gain[j] * r->rstd[j] * (g[j] - (float)c->mean_g[j] - x * (float)c->mean_gx[j]);
        }
        drop_row_first(r, row, g);
        for (int64_t j = 0; j < r->width; j++) partial[j] += g[j];
    }
}

static void rows_backward(const struct gr_rows *r, float *gradient, double *partial, int64_t begin, int64_t end)
{
    double *bias = partial, *gain = bias + r->width, *shift = gain + r->width;

    memset(bias, 0, (uint64_t)(GR_PARTIALS * r->width) * sizeof *bias);
    for (int64_t row = begin; row < end; row++) {
        float *g = gradient + row * r->width;

        if (r->h != NULL) activate_row_backward(r, g, r->bits + row * ((r->width + 7) / 8));
        if (r->h != NULL && r->is_elu) elu_row_backward(r, r->h + row * r->width, g);
        if (r->h != NULL && r->gain != NULL && r->norms_columns) {
            norm_columns_backward(r, row, g, gain, shift);
            continue;
        }
        if (r->h != NULL && r->gain != NULL) norm_row_backward(r, row, g, gain, shift);
        drop_row_first(r, row, g);
        for (int64_t j = 0; j < r->width; j++) bias[j] += g[j];
    }
}

static void rows_dropout(const struct gr_rows_drop *r, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++)
        drop_row(r->key, gr_vertex(r->vertex, row), r->threshold, r->width, r->x + row * r->x_stride,
                 r->out + row * r->width);
}

const struct gr_rows_loops JOIN(gr_rows_, ISA) = { rows_forward, rows_backward, rows_sum_columns, rows_columns_backward,
                                                   rows_dropout };
