/* Passes over the rows of a layer: bias, LayerNorm, ReLU or ELU, and dropout, forward and backward.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "base/processor.h"
#include "base/team.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/** The number of partial sums for each chunk of GR_CHUNK_ROWS in the backward pass: of bias, gain and shift. */
enum { GR_PARTIALS = 3 };

/** The forward pass: z += bias and h = dropout(act(norm(z))); or, with drops_first, z = dropout(z + bias) and
 *  h = act(norm(z)). LayerNorm writes the mean and 1 / deviation of each row to mean and rstd, [n]; with norms_columns
 *  (BatchNorm) the pass reads those of each column, [width]. z, h: [n x width]; bits: [n x ceil(width / 8)], set where
 *  a gradient passes the activation and the dropout after it. h NULL: only z is updated. */
struct gr_rows {
    int64_t        n, width;
    struct gr_team team;
    const float   *bias, *gain, *shift; /* parameters of the layer; gain NULL: no norm */
    float         *z, *h, *mean, *rstd;
    uint8_t       *bits;
    uint64_t       key;       /* random key of the dropout */
    uint32_t       threshold; /* 0 to 65535: elements with a smaller draw of 16 bits are dropped */
    enum gr_isa    isa;
    const int64_t *vertex; /* row v uses the draws of vertex[v]; NULL: vertex v */
    int            is_elu; /* ELU (Clevert et al. 2016) with alpha 1 instead of ReLU */
    int            drops_first;
    int            norms_columns;
    int            has_z; /* z already includes bias, and dropout with drops_first */
};
void gr_nn_rows_forward(struct gr_rows *rows);
/** Do gr_nn_rows_forward() for rows begin to end - 1 on the calling thread; `rows` is a struct gr_rows. */
void gr_nn_rows_forward_part(void *rows, int64_t begin, int64_t end);

/** The arrays of the backward pass, which replaces g, the gradient of h, by the gradient of z, and writes the gradients
 *  of bias, gain and shift unless they are NULL. `partial` has GR_PARTIALS * width elements for each chunk. */
struct gr_rows_gradient {
    float  *g;
    float  *bias, *gain, *shift;
    double *partial;
};

/** A backward pass that runs while g is computed: the thread that completes the last row of a chunk of GR_CHUNK_ROWS
 *  rows processes the whole chunk. So sums are bitwise identical to those of one pass at the end. */
struct gr_rows_backward {
    struct gr_rows          rows;
    struct gr_rows_gradient gradient;
    _Atomic int64_t        *left; /* [chunks] number of incomplete rows of each chunk; 0: it has been processed */
};
void gr_nn_rows_backward_begin(struct gr_rows_backward *pass);
/** Report that rows begin to end - 1 of g are complete: by any thread, once for each row. `pass` is a struct
 *  gr_rows_backward. */
void gr_nn_rows_backward_part(void *pass, int64_t begin, int64_t end);
/** Process the remaining chunks, and compute the sums, when all rows are complete. */
void gr_nn_rows_backward_end(struct gr_rows_backward *pass);
/** Do the two parts of gr_nn_rows_backward_end(): _rest() processes the remaining chunks among rows begin to end - 1,
 *  which are whole chunks, on the calling thread; _sums() computes the sums. */
void gr_nn_rows_backward_rest(const struct gr_rows_backward *pass, int64_t begin, int64_t end);
void gr_nn_rows_backward_sums(const struct gr_rows_backward *pass);

/** For BatchNorm: sum[j] = the sum over rows of z(., j) if mean is NULL, else of (z(., j) - mean[j])^2. `partial` has
 *  width elements for each chunk. Sums are bitwise identical for any number of threads. */
struct gr_rows_columns {
    const struct gr_rows *rows;
    const double         *mean;
    double               *partial, *sum;
};
void gr_nn_rows_sum_columns(const struct gr_rows_columns *columns);

/** For BatchNorm: replace g, the gradient of norm(z) that gr_nn_rows_backward_end() computes with norms_columns, by the
 *  gradient of z. */
struct gr_rows_columns_backward {
    const struct gr_rows *rows;
    const double         *mean_g, *mean_gx; /* [width] means over all rows of g, and of g times the normalised z */
    float                *g, *bias;         /* bias: the sum of g over rows; NULL: not computed */
    double               *partial;          /* [chunks x width] memory for partial sums */
};
void gr_nn_rows_columns_backward(const struct gr_rows_columns_backward *columns);

/** sum[j] = the sum of partial[c * stride + j] over the chunks c of n rows, in order, for j < width. */
void gr_nn_rows_sum_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, float *sum);
/** Compute the sums of gr_nn_rows_sum_chunks() without rounding the results to float. */
void gr_nn_rows_total_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, double *sum);

/** out[n x width] = dropout(x), with the draws of `vertex` as in struct gr_rows. */
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
/** Do gr_nn_rows_scale() for rows begin to end - 1 on the calling thread; `scaling` is a struct gr_rows_scaling. */
void gr_nn_rows_scale_part(void *scaling, int64_t begin, int64_t end);

/** The host's index of vertex v. */
static inline int64_t gr_vertex(const int64_t *vertex, int64_t v)
{
    return vertex != NULL ? vertex[v] : v;
}
