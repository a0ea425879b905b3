/* Passes over the rows of a layer, under phase "rows" of the profile: executed at once, or recorded for workers.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"
#include "nn/rows.h"

/** Set rows n_dst to n_src - 1 of x[n_src x width] to zero. */
void gr_model_layer_clear_rest(struct gr_run *run, const struct gr_block *block, float *x, int64_t width);
/** out[x.rows x width] = diag(scale) x, or factor * x if scale is NULL. x may be out. */
void gr_model_layer_scale(struct gr_run *run, struct gr_operand x, const float *scale, float factor, float *out,
                          int64_t width);

/** The arguments of y = by x + beta y. */
struct gr_mix {
    const float *x;
    float       *y;
    float        by, beta;
};

/** Compute elements begin to end - 1 of y = by x + beta y. */
static inline void gr_mix_part(const struct gr_mix *m, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) m->y[i] = m->by * m->x[i] + m->beta * m->y[i];
}

/** Compute y = by x + beta y for `count` elements. */
void gr_model_layer_mix(struct gr_run *run, int64_t count, float by, const float *x, float beta, float *y);

/** Do the forward pass over rows, see struct gr_rows: bias, norm, activation and dropout. */
void               gr_model_layer_rows_forward(struct gr_run *run, struct gr_rows *rows);
/** Make an epilogue that does this pass after the product that computes Z. */
struct gr_epilogue gr_model_layer_rows_epilogue(struct gr_rows *rows);
void               gr_model_layer_rows_backward(struct gr_run *run, struct gr_rows_backward *pass);
