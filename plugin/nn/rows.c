/* Passes over rows: bias, LayerNorm, ReLU or ELU, and dropout in one pass, forward and backward. A row is a few cache
 * lines, so all steps on a row are done while it is in cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "nn/rows_loops.h"

const struct gr_rows_loops *gr_nn_rows_loops_for(enum gr_isa isa)
{
    return GR_FOR_ISA(&gr_rows, isa);
}

void gr_nn_rows_forward_part(void *rows, int64_t begin, int64_t end)
{
    const struct gr_rows *r = rows;

    gr_nn_rows_loops_for(r->isa)->forward(r, begin, end);
}

void gr_nn_rows_forward(struct gr_rows *rows)
{
    GR_ASSERT(rows->h == NULL || rows->n == 0 || rows->bits != NULL);
    gr_parallel_rows(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, gr_nn_rows_forward_part, rows);
}

static double sum_chunks_of(const double *partial, int64_t stride, int64_t chunks)
{
    double total = 0;

    for (int64_t c = 0; c < chunks; c++) total += partial[c * stride];
    return total;
}

void gr_nn_rows_sum_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, float *sum)
{
    for (int64_t j = 0; j < width; j++)
        sum[j] = (float)sum_chunks_of(partial + j, stride, gr_chunk_count(n, GR_CHUNK_ROWS));
}

void gr_nn_rows_total_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, double *sum)
{
    for (int64_t j = 0; j < width; j++) sum[j] = sum_chunks_of(partial + j, stride, gr_chunk_count(n, GR_CHUNK_ROWS));
}

static void backward_chunk(const struct gr_rows_backward *pass, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows *rows = &pass->rows;

    gr_nn_rows_loops_for(rows->isa)->backward(rows, pass->gradient.g,
                                              pass->gradient.partial + chunk * GR_PARTIALS * rows->width, begin, end);
}

void gr_nn_rows_backward_begin(struct gr_rows_backward *pass)
{
    const int64_t n = pass->rows.n;

    for (int64_t c = 0; c < gr_chunk_count(n, GR_CHUNK_ROWS); c++) {
        const int64_t begin = c * GR_CHUNK_ROWS;

        atomic_init(&pass->left[c], n - begin < GR_CHUNK_ROWS ? n - begin : GR_CHUNK_ROWS);
    }
}

void gr_nn_rows_backward_part(void *arg, int64_t begin, int64_t end)
{
    const struct gr_rows_backward *pass = arg;

    GR_ASSERT(begin <= end && end <= pass->rows.n);
    for (int64_t row = begin, next; row < end; row = next) {
        const int64_t chunk = row / GR_CHUNK_ROWS, first = chunk * GR_CHUNK_ROWS;
        const int64_t last = pass->rows.n - first < GR_CHUNK_ROWS ? pass->rows.n : first + GR_CHUNK_ROWS;

        next = end < last ? end : last;
        if (atomic_fetch_sub_explicit(&pass->left[chunk], next - row, memory_order_acq_rel) == next - row)
            backward_chunk(pass, chunk, first, last);
    }
}

static void complete_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_backward *pass = arg;

    if (atomic_load_explicit(&pass->left[chunk], memory_order_relaxed) != 0) backward_chunk(pass, chunk, begin, end);
}

void gr_nn_rows_backward_rest(const struct gr_rows_backward *pass, int64_t begin, int64_t end)
{
    GR_ASSERT(begin % GR_CHUNK_ROWS == 0 && (end % GR_CHUNK_ROWS == 0 || end == pass->rows.n));
    for (int64_t row = begin; row < end; row += GR_CHUNK_ROWS)
        complete_chunk((void *)(uintptr_t)pass, row / GR_CHUNK_ROWS, row,
                       row + GR_CHUNK_ROWS < end ? row + GR_CHUNK_ROWS : end);
}

void gr_nn_rows_backward_sums(const struct gr_rows_backward *pass)
{
    const struct gr_rows          *rows = &pass->rows;
    const struct gr_rows_gradient *gradient = &pass->gradient;
    float *const                   sums[GR_PARTIALS] = { gradient->bias, gradient->gain, gradient->shift };

    for (int which = 0; which < GR_PARTIALS; which++) {
        if (sums[which] == NULL || (which == 0 && rows->h != NULL && rows->norms_columns)) continue;
        gr_nn_rows_sum_chunks(gradient->partial + which * rows->width, GR_PARTIALS * rows->width, rows->n, rows->width,
                              sums[which]);
    }
}

void gr_nn_rows_backward_end(struct gr_rows_backward *pass)
{
    const struct gr_rows *rows = &pass->rows;

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, complete_chunk, pass);
    gr_nn_rows_backward_sums(pass);
}

static void sum_columns_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_columns *columns = arg;
    const struct gr_rows         *rows = columns->rows;

    gr_nn_rows_loops_for(rows->isa)->sum_columns(rows, columns->mean, columns->partial + chunk * rows->width, begin,
                                                 end);
}

void gr_nn_rows_sum_columns(const struct gr_rows_columns *columns)
{
    const struct gr_rows *rows = columns->rows;

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, sum_columns_chunk, (void *)columns);
    gr_nn_rows_total_chunks(columns->partial, rows->width, rows->n, rows->width, columns->sum);
}

static void columns_backward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_columns_backward *columns = arg;
    const struct gr_rows                  *rows = columns->rows;

    gr_nn_rows_loops_for(rows->isa)->columns_backward(columns, columns->partial + chunk * rows->width, begin, end);
}

void gr_nn_rows_columns_backward(const struct gr_rows_columns_backward *columns)
{
    const struct gr_rows *rows = columns->rows;

    gr_parallel_chunks(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, columns_backward_chunk,
                       (void *)columns);
    if (columns->bias != NULL)
        gr_nn_rows_sum_chunks(columns->partial, rows->width, rows->n, rows->width, columns->bias);
}

static void dropout_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct gr_rows_drop *rows = arg;

    gr_nn_rows_loops_for(rows->isa)->drop(rows, begin, end);
}

void gr_nn_rows_dropout(struct gr_rows_drop *rows)
{
    gr_parallel_rows(rows->team, rows->n * rows->width, rows->n, GR_CHUNK_ROWS, dropout_chunk, rows);
}

void gr_nn_rows_scale_part(void *scaling, int64_t begin, int64_t end)
{
    const struct gr_rows_scaling *s = scaling;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * s->x_stride;
        const float  factor = s->scale != NULL ? s->scale[row] : s->factor;
        float       *out = s->out + row * s->width;

        for (int64_t j = 0; j < s->width; j++) out[j] = x[j] * factor;
    }
}

void gr_nn_rows_scale(struct gr_rows_scaling *scaling)
{
    gr_parallel_rows(scaling->team, scaling->n * scaling->width, scaling->n, GR_CHUNK_ROWS, gr_nn_rows_scale_part,
                     scaling);
}
