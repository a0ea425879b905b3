/* Passes over the rows of a layer: bias, LayerNorm, ReLU or ELU, and dropout, forward and backward.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "base/processor.h"
#include "base/team.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/** The number of partial sums (of a row's width) of the backward pass for each chunk of GR_CHUNK_ROWS. */
enum { GR_PARTIALS = 3 };

/** z += bias; h = dropout(act(norm(z))), or with drops_first z = dropout(z + bias); h = act(norm(z)). LayerNorm keeps
 *  mean and deviation of each row, in mean and rstd [n]; with norms_columns the norm uses mean and deviation of
 *  columns, [width]. z, h: [n x width]; bits: [n x ceil(width / 8)], set where a gradient passes activation and the
 *  following dropout. h NULL: only z is updated. */
struct gr_rows {
    int64_t        n, width;
    struct gr_team team;
    const float   *bias, *gain, *shift; /* gain NULL: no norm */
    float         *z, *h, *mean, *rstd;
    uint8_t       *bits;
    uint64_t       key;       /* of the dropout */
    uint32_t       threshold; /* of 65536: elements with a smaller draw are dropped */
    enum gr_isa    isa;
    const int64_t *vertex; /* row v uses the draws of vertex[v]; NULL: vertex v */
    int            is_elu; /* ELU (Clevert et al. 2016) with alpha 1 instead of ReLU */
    int            drops_first;
    int            norms_columns;
    int            has_z; /* z already includes bias, and dropout with drops_first */
};
void gr_nn_rows_forward(struct gr_rows *rows);
/** The same for rows begin .. end-1 on the calling thread; `rows` is a struct gr_rows. */
void gr_nn_rows_forward_part(void *rows, int64_t begin, int64_t end);

/** The backward pass: turns g from the gradient of h into the gradient of z. Writes the gradients of bias, gain and
 *  shift unless they are NULL. `partial` has GR_PARTIALS * width elements for each chunk. */
struct gr_rows_gradient {
    float  *g;
    float  *bias, *gain, *shift;
    double *partial;
};

/** The backward pass while g is computed: the thread that completes the last row of a chunk of GR_CHUNK_ROWS rows
 *  processes the chunk, so that sums have the same bits as in one pass at the end. */
struct gr_rows_backward {
    struct gr_rows          rows;
    struct gr_rows_gradient gradient;
    _Atomic int64_t        *left; /* [chunks] number of incomplete rows of each; not 0: the chunk is not done */
};
void gr_nn_rows_backward_begin(struct gr_rows_backward *pass);
/** Rows begin .. end-1 of g are complete; any thread, once for each row. `pass` is a struct gr_rows_backward. */
void gr_nn_rows_backward_part(void *pass, int64_t begin, int64_t end);
/** All rows are complete: process the remaining chunks, and compute the sums. */
void gr_nn_rows_backward_end(struct gr_rows_backward *pass);
/** The same in two parts: the chunks of rows begin .. end-1, which are whole chunks, on the calling thread; and the
 *  sums. */
void gr_nn_rows_backward_rest(const struct gr_rows_backward *pass, int64_t begin, int64_t end);
void gr_nn_rows_backward_sums(const struct gr_rows_backward *pass);

/** For BatchNorm: sum[j] = sum over the rows of z(., j), or unless mean is NULL of the square of its distance from
 *  mean[j]. `partial` has width elements for each chunk; sums have the same bits for any number of threads. */
struct gr_rows_columns {
    const struct gr_rows *rows;
    const double         *mean;
    double               *partial, *sum;
};
void gr_nn_rows_sum_columns(const struct gr_rows_columns *columns);

/** Turn g from the gradient of norm(z), left by gr_nn_rows_backward_end() with norms_columns, into the gradient of
 * z. */
struct gr_rows_columns_backward {
    const struct gr_rows *rows;
    const double         *mean_g, *mean_gx; /* [width] over all rows of g, and of g times the normalised z */
    float                *g, *bias;         /* bias NULL: not computed */
    double               *partial;          /* [chunks x width] */
};
void gr_nn_rows_columns_backward(const struct gr_rows_columns_backward *columns);

/** sum[j] = sum over the chunks c of n rows, in order, of partial[c * stride + j], for j < width. */
void gr_nn_rows_sum_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, float *sum);
/** The same in double. */
void gr_nn_rows_total_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, double *sum);

/** out[n x width] = dropout(x), with the draws of `vertex` as above. */
struct gr_rows_drop {
    int64_t        n, width, x_stride;
    struct gr_team team;
    const float   *x;
    float         *out;
    uint64_t       key;
    uint32_t       threshold;
    enum gr_isa    isa;
    const int64_t *vertex;
};
void gr_nn_rows_dropout(struct gr_rows_drop *rows);
/** out[n x width] = diag(scale) x, or factor * x if scale is NULL. x may be out. */
struct gr_rows_scaling {
    int64_t        n, width, x_stride;
    struct gr_team team;
    const float   *x, *scale;
    float          factor;
    float         *out;
};
void gr_nn_rows_scale(struct gr_rows_scaling *scaling);
/** The same for rows begin .. end-1 on the calling thread; `scaling` is a struct gr_rows_scaling. */
void gr_nn_rows_scale_part(void *scaling, int64_t begin, int64_t end);

/** The host's number of vertex v. */
static inline int64_t gr_vertex(const int64_t *vertex, int64_t v)
{
    return vertex != NULL ? vertex[v] : v;
}
