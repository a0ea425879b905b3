/* Passes over the rows of a layer: bias, norm, ReLU and dropout, there and back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DENSE_ROWS_H
#define GR_DENSE_ROWS_H

#include "base/processor.h"
#include "base/team.h"

#include <stddef.h>
#include <stdint.h>

/** Rows of a chunk in passes over rows, and how many sums of a row's width a chunk leaves. */
enum { GR_CHUNK_ROWS = 512, GR_PARTIALS = 3 };

/** A pass over rows: z += bias, h = dropout(ReLU(norm(z))). Without h, only the bias. */
struct gr_rows {
    int64_t        n, width;
    struct gr_team team;
    const float   *bias, *gain, *shift; /* gain NULL: no norm */
    float         *z, *h, *mean, *rstd;
    uint8_t       *bits;
    uint64_t       key;       /* of the dropout */
    uint32_t       threshold; /* of 65536: draws below it are dropped */
    enum gr_isa    isa;
    const int64_t *vertex; /* draws of row v are those of vertex[v]; NULL: of v */
};
void gr_rows_forward(const struct gr_rows *rows);
/** The same for rows begin to end - 1, on the calling thread; `rows` is a struct gr_rows. */
void gr_rows_forward_part(void *rows, int64_t begin, int64_t end);

/** Backward through the same: g, the gradient of h, becomes that of z; gradients of bias, gain and shift (those not
 *  NULL) are written. `partial` has room for GR_PARTIALS * width per chunk. */
struct gr_rows_gradient {
    float  *g;
    float  *bias, *gain, *shift;
    double *partial;
};
void gr_rows_backward(const struct gr_rows *rows, const struct gr_rows_gradient *gradient);

/** sum[j] = the sum of partial[c * stride + j] over the chunks c of n rows, in order, for j below width. */
void gr_rows_sum_chunks(const double *partial, int64_t stride, int64_t n, int64_t width, float *sum);

/** out[n x width] = dropout(x); the draws are those of `vertex`, as above. */
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
void gr_rows_dropout(struct gr_rows_drop *rows);
/** out[n x width] = diag(scale) x, or factor * x where scale is NULL. x may be out. */
struct gr_rows_scaling {
    int64_t        n, width, x_stride;
    struct gr_team team;
    const float   *x, *scale;
    float          factor;
    float         *out;
};
void gr_rows_scale(struct gr_rows_scaling *scaling);
/** The same for rows begin to end - 1, on the calling thread; `scaling` is a struct gr_rows_scaling. */
void gr_rows_scale_part(void *scaling, int64_t begin, int64_t end);

/** What the host calls vertex v. */
static inline int64_t gr_vertex(const int64_t *vertex, int64_t v)
{
    return vertex != NULL ? vertex[v] : v;
}

#endif
