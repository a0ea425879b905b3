/* Passes over rows: bias, layer norm, ReLU and dropout in one, forward and backward. A row is a few cache lines, so all
 * steps on it are done while it is near.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dropout.h"
#include "base/parallel.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* Layer norm of a row (Ba et al. 2016), with the biased variance and eps 1e-5. */
static void norm_row(const struct gr_rows *r, int64_t row, const float *z, float *out)
{
    float sum = 0, squares = 0, mean, rstd;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < r->width; j++) sum += z[j];
    mean = sum / (float)r->width;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < r->width; j++) squares += (z[j] - mean) * (z[j] - mean);
    rstd = 1 / sqrtf(squares / (float)r->width + 1e-5f);
    for (int64_t j = 0; j < r->width; j++) out[j] = (z[j] - mean) * rstd * r->gain[j] + r->shift[j];
    r->mean[row] = mean;
    r->rstd[row] = rstd;
}

/* h = dropout(ReLU(h)) in place. A NaN passes, so that it shows in the loss. */
static void activate_row(const struct gr_rows *r, int64_t row, float *h, uint8_t *bits)
{
    const float   scale = (float)gr_dropout_scale(r->threshold);
    const int64_t vertex = gr_vertex(r->vertex, row);

    for (int64_t j0 = 0; j0 < r->width; j0 += 8) {
        const unsigned kept = gr_dropout_kept(r->key, vertex, j0 / 8, r->threshold);
        const int      n = r->width - j0 < 8 ? (int)(r->width - j0) : 8;
        unsigned       through = 0;

        for (int k = 0; k < n; k++) {
            const unsigned passes = (unsigned)!(h[j0 + k] <= 0) & (kept >> k);

            h[j0 + k] = passes ? h[j0 + k] * scale : 0;
            through |= passes << k;
        }
        bits[j0 / 8] = (uint8_t)through;
    }
}

static void forward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows *r = arg;

    (void)chunk;
    for (int64_t row = begin; row < end; row++) {
        float *z = r->z + row * r->width, *h;

        for (int64_t j = 0; j < r->width; j++) z[j] += r->bias[j];
        if (r->h == NULL) continue;
        h = r->h + row * r->width;
        if (r->gain != NULL) norm_row(r, row, z, h);
        else if (h != z) memcpy(h, z, (uint64_t)r->width * sizeof *h);
        activate_row(r, row, h, r->bits + row * ((r->width + 7) / 8));
    }
}

void gr_rows_forward(const struct gr_rows *rows)
{
    gr_parallel_chunks(gr_threads_worth(rows->threads, rows->n * rows->width), rows->n, GR_CHUNK_ROWS, forward_chunk,
                       (void *)(uintptr_t)rows);
}

struct backward {
    const struct gr_rows          *rows;
    const struct gr_rows_gradient *gradient;
};

static void activate_row_backward(const struct gr_rows *r, float *g, const uint8_t *bits)
{
    const float scale = (float)gr_dropout_scale(r->threshold);

    for (int64_t j = 0; j < r->width; j++) g[j] = bits[j / 8] >> (j & 7) & 1 ? g[j] * scale : 0;
}

/* With x = (z - mean) rstd and y = gain x + shift: dz = rstd (u - mean(u) - x mean(u x)) for u = gain dy. */
static void norm_row_backward(const struct gr_rows *r, int64_t row, float *g, double *gain, double *shift)
{
    const float *z = r->z + row * r->width;
    const float  mean = r->mean[row], rstd = r->rstd[row], share = 1 / (float)r->width;
    float        sum_u = 0, sum_ux = 0;

    for (int64_t j = 0; j < r->width; j++) {
        gain[j] += g[j] * ((z[j] - mean) * rstd);
        shift[j] += g[j];
    }
#pragma omp simd reduction(+ : sum_u, sum_ux)
    for (int64_t j = 0; j < r->width; j++) {
        const float u = g[j] * r->gain[j];
        sum_u += u;
        sum_ux += u * ((z[j] - mean) * rstd);
    }
    for (int64_t j = 0; j < r->width; j++) {
        const float x = (z[j] - mean) * rstd;
        g[j] = rstd * (g[j] * r->gain[j] - sum_u * share - x * (sum_ux * share));
    }
}

static void backward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct backward *b = arg;
    const struct gr_rows  *r = b->rows;
    double                *bias = b->gradient->partial + chunk * GR_PARTIALS * r->width;
    double                *gain = bias + r->width, *shift = gain + r->width;

    memset(bias, 0, (uint64_t)(GR_PARTIALS * r->width) * sizeof *bias);
    for (int64_t row = begin; row < end; row++) {
        float *g = b->gradient->g + row * r->width;

        if (r->h != NULL) activate_row_backward(r, g, r->bits + row * ((r->width + 7) / 8));
        if (r->h != NULL && r->gain != NULL) norm_row_backward(r, row, g, gain, shift);
        for (int64_t j = 0; j < r->width; j++) bias[j] += g[j];
    }
}

void gr_rows_sum_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, float *sum)
{
    const int64_t chunks = gr_chunk_count(n, GR_CHUNK_ROWS);

    for (int64_t j = 0; j < width; j++) {
        double total = 0;

        for (int64_t c = 0; c < chunks; c++) total += partial[c * stride + j];
        sum[j] = (float)total;
    }
}

void gr_rows_backward(const struct gr_rows *rows, const struct gr_rows_gradient *gradient)
{
    float *const    sums[GR_PARTIALS] = { gradient->bias, gradient->gain, gradient->shift };
    struct backward b = { rows, gradient };

    gr_parallel_chunks(gr_threads_worth(rows->threads, rows->n * rows->width), rows->n, GR_CHUNK_ROWS, backward_chunk,
                       &b);
    for (int which = 0; which < GR_PARTIALS; which++) {
        if (sums[which] == NULL) continue;
        gr_rows_sum_chunks(gradient->partial + which * rows->width, GR_PARTIALS * rows->width, rows->n, rows->width,
                           sums[which]);
    }
}

void gr_rows_dropout(const float *x, int64_t x_stride, const int64_t *vertex, float *out, int64_t n, int64_t width,
                     uint64_t key, uint32_t threshold, int threads)
{
    const float scale = (float)gr_dropout_scale(threshold);

    threads = gr_threads_worth(threads, n * width);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < n; row++) {
        for (int64_t j0 = 0; j0 < width; j0 += 8) {
            const unsigned kept = gr_dropout_kept(key, gr_vertex(vertex, row), j0 / 8, threshold);

            for (int64_t j = j0; j < width && j < j0 + 8; j++) {
                out[row * width + j] = kept >> (j - j0) & 1 ? x[row * x_stride + j] * scale : 0;
            }
        }
    }
}

void gr_rows_scale(const float *x, int64_t x_stride, const float *scale, float factor, float *out, int64_t n,
                   int64_t width, int threads)
{
    threads = gr_threads_worth(threads, n * width);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < n; row++) {
        const float s = scale != NULL ? scale[row] : factor;

        for (int64_t j = 0; j < width; j++) out[row * width + j] = x[row * x_stride + j] * s;
    }
}
