/* Passes over the rows of a layer, under phase "rows" of the profile: executed at once, or recorded for workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/rows.h"

#include "base/parallel.h"
#include "model/workers.h"

#include <string.h>

/* The bytes that a pass over rows reads and writes: Z and H, or their gradients. */
static double row_pass_bytes(const struct gr_rows *rows)
{
    return 4 * (double)rows->n * (double)rows->width * (rows->h != NULL && rows->h != rows->z ? 3 : 2);
}

void gr_model_layer_rows_forward(struct gr_run *run, struct gr_rows *rows)
{
    double begin;

    gr_model_workers_sync(run);
    begin = gr_profile_begin(&run->profile);
    gr_nn_rows_forward(rows);
    gr_profile_end(&run->profile, "rows", begin, row_pass_bytes(rows), 0);
}

static void rows_forward_all(struct gr_run *run, void *rows)
{
    gr_model_layer_rows_forward(run, rows);
}

struct gr_epilogue gr_model_layer_rows_epilogue(struct gr_rows *rows)
{
    return (struct gr_epilogue){ .some = gr_nn_rows_forward_part, .all = rows_forward_all, .arg = rows };
}

void gr_model_layer_rows_backward(struct gr_run *run, struct gr_rows_backward *pass)
{
    const double begin = gr_profile_begin(&run->profile);

    if (gr_model_workers_backward(run, pass)) return;
    gr_model_workers_sync(run);
    gr_nn_rows_backward_end(pass);
    gr_profile_end(&run->profile, "rows", begin, row_pass_bytes(&pass->rows), 0);
}

void gr_model_layer_clear_rest(struct gr_run *run, const struct gr_block *block, float *x, int64_t width)
{
    const int64_t rows = block->n_src - block->n_dst;
    const double  begin = gr_profile_begin(&run->profile);

    if (gr_model_workers_clear(run, x + block->n_dst * width, rows, width)) return;
    memset(x + block->n_dst * width, 0, (uint64_t)(rows * width) * sizeof *x);
    gr_profile_end_alone(&run->profile, "rows", begin);
}

void gr_model_layer_scale(struct gr_run *run, struct gr_operand x, const float *scale, float factor, float *out,
                          int64_t width)
{
    const double           begin = gr_profile_begin(&run->profile);
    struct gr_rows_scaling scaling = { .n = x.rows,
                                       .width = width,
                                       .x_stride = x.stride,
                                       .team = gr_run_team(run),
                                       .x = x.data,
                                       .scale = scale,
                                       .factor = factor,
                                       .out = out };

    if (gr_model_workers_scale(run, &scaling)) return;
    gr_nn_rows_scale(&scaling);
    gr_profile_end(&run->profile, "rows", begin, 8 * (double)x.rows * (double)width, (double)x.rows * (double)width);
}

static void mix_chunk(void *arg, int64_t begin, int64_t end)
{
    gr_mix_part(arg, begin, end);
}

void gr_model_layer_mix(struct gr_run *run, int64_t count, float by, const float *x, float beta, float *y)
{
    struct gr_mix m = { x, y, by, beta };
    const double  begin = gr_profile_begin(&run->profile);

    if (gr_model_workers_mix(run, count, &m)) return;
    gr_model_workers_sync(run);
    gr_parallel_rows(gr_run_team(run), count, count, 128 * GR_CHUNK_ROWS, mix_chunk, &m);
    gr_profile_end(&run->profile, "rows", begin, 12 * (double)count, 3 * (double)count);
}
