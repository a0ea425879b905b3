/* Passes over rows: bias, LayerNorm, ReLU and dropout in one pass, forward and backward. A row is a few cache lines, so
 * all steps on a row are done while it is in cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "dense/rows_loops.h"

static const struct gr_rows_loops *loops_for(enum gr_isa isa)
{
    (void)isa;
#if defined(__x86_64__)
    if (isa >= GR_ISA_AVX512) return &gr_rows_avx512;
    if (isa >= GR_ISA_AVX2) return &gr_rows_avx2;
#endif
    return &gr_rows_generic;
}

struct rows_pass {
    const struct gr_rows          *rows;
    const struct gr_rows_gradient *gradient;
    const struct gr_rows_loops    *loops;
};

static void forward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct rows_pass *p = arg;

    (void)chunk;
    p->loops->forward(p->rows, begin, end);
}

static void backward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct rows_pass *p = arg;

    p->loops->backward(p->rows, p->gradient->g, p->gradient->partial + chunk * GR_PARTIALS * p->rows->width, begin,
                       end);
}

void gr_rows_forward(const struct gr_rows *rows)
{
    struct rows_pass pass = { rows, NULL, loops_for(rows->isa) };

    GR_ASSERT(rows->h == NULL || rows->n == 0 || rows->bits != NULL);
    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, forward_chunk, &pass);
}

void gr_rows_forward_part(void *rows, int64_t begin, int64_t end)
{
    const struct gr_rows *r = rows;

    loops_for(r->isa)->forward(r, begin, end);
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
    float *const     sums[GR_PARTIALS] = { gradient->bias, gradient->gain, gradient->shift };
    struct rows_pass pass = { rows, gradient, loops_for(rows->isa) };

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, backward_chunk, &pass);
    for (int which = 0; which < GR_PARTIALS; which++) {
        if (sums[which] == NULL) continue;
        gr_rows_sum_chunks(gradient->partial + which * rows->width, GR_PARTIALS * rows->width, rows->n, rows->width,
                           sums[which]);
    }
}

static void dropout_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_drop *rows = arg;

    (void)chunk;
    loops_for(rows->isa)->drop(rows, begin, end);
}

void gr_rows_dropout(struct gr_rows_drop *rows)
{
    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, dropout_chunk, rows);
}

void gr_rows_scale_part(void *scaling, int64_t begin, int64_t end)
{
    const struct gr_rows_scaling *s = scaling;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * s->x_stride;
        const float  factor = s->scale != NULL ? s->scale[row] : s->factor;
        float       *out = s->out + row * s->width;

        for (int64_t j = 0; j < s->width; j++) out[j] = x[j] * factor;
    }
}

static void scale_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    (void)chunk;
    gr_rows_scale_part(arg, begin, end);
}

void gr_rows_scale(struct gr_rows_scaling *scaling)
{
    gr_parallel_chunks(scaling->team, scaling->n * scaling->width, scaling->n, GR_CHUNK_ROWS, scale_chunk, scaling);
}
