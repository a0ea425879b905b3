/* Passes over rows: bias, layer norm, ReLU and dropout in one, forward and backward. A row is a few cache lines, so all
 * steps on it are done while it is near.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "dense/rows_loops.h"

static const struct gr_rows_loops *loops(enum gr_isa isa)
{
    (void)isa;
#if defined(__x86_64__)
    if (isa >= GR_ISA_AVX512) return &gr_rows_avx512;
    if (isa >= GR_ISA_AVX2) return &gr_rows_avx2;
#endif
    return &gr_rows_generic;
}

/* A pass, as the threads share it. */
struct pass {
    const struct gr_rows          *rows;
    const struct gr_rows_gradient *gradient;
    const struct gr_rows_loops    *loops;
};

static void forward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *p = arg;

    (void)chunk;
    p->loops->forward(p->rows, begin, end);
}

static void backward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *p = arg;

    p->loops->backward(p->rows, p->gradient->g, p->gradient->partial + chunk * GR_PARTIALS * p->rows->width, begin,
                       end);
}

void gr_rows_forward(const struct gr_rows *rows)
{
    struct pass pass = { rows, NULL, loops(rows->isa) };

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, forward_chunk, &pass);
}

void gr_rows_forward_part(void *rows, int64_t begin, int64_t end)
{
    const struct gr_rows *r = rows;

    loops(r->isa)->forward(r, begin, end);
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
    float *const sums[GR_PARTIALS] = { gradient->bias, gradient->gain, gradient->shift };
    struct pass  pass = { rows, gradient, loops(rows->isa) };

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, backward_chunk, &pass);
    for (int which = 0; which < GR_PARTIALS; which++) {
        if (sums[which] == NULL) continue;
        gr_rows_sum_chunks(gradient->partial + which * rows->width, GR_PARTIALS * rows->width, rows->n, rows->width,
                           sums[which]);
    }
}

static void drop_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_drop *rows = arg;

    (void)chunk;
    loops(rows->isa)->drop(rows, begin, end);
}

void gr_rows_dropout(struct gr_rows_drop *rows)
{
    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, drop_chunk, rows);
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
