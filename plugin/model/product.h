/* The products of layers.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dense_view.h"
#include "model/run.h"
#include "nn/rows.h"

/** Execute the epilogue of a product, unless the product or an earlier call has done so. `epilogue` may be NULL. */
void gr_model_epilogue_end(struct gr_run *run, struct gr_epilogue *epilogue);

/** out[x.rows x w->cols] = diag(scale) (x w + beta out), with beta 0 or 1; scale NULL: 1. Here and below, x may be
 *  sparse features. */
int32_t gr_model_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                         const float *scale, float *out, graft_error *error);
/** rows->z[x.rows x w->cols] = x w + beta z; then do the pass over rows, block by block in the caches if possible. */
int32_t gr_model_product_rows(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                              struct gr_rows *rows, graft_error *error);
/** Compute the gradient of w: x^T g + beta times the current gradient, with beta 0 or 1. With labels, add to the
 *  gradient of their embedding too. */
int32_t gr_model_weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                                 struct gr_parameter *w, graft_error *error);
/** Compute the gradient of x: out[rows x w->rows] = diag(scale) (g w^T + beta out). */
int32_t gr_model_input_gradient(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                float beta, const float *scale, float *out, graft_error *error);
/** Compute the gradient of x: out = g w^T + beta out, with an epilogue or NULL. The last product that writes dx of a
 *  layer has epilogue run->below. */
int32_t gr_model_input_gradient_with(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                     float beta, float *out, struct gr_epilogue *epilogue, graft_error *error);

/** A sparse product, which graft.mxm computes: out[rows of a x width] = diag(scale) a x, added to out if `add`. */
struct gr_sparse_product {
    const char         *phase; /* phase of the profile to which the time counts */
    graft_matrix       *a;
    const float        *scale; /* NULL: 1 */
    struct gr_operand   x;
    graft_dtype         x_type; /* 0: GRAFT_F32 */
    int64_t             width;
    int                 add;
    int                 in_blocks; /* it is a sum over neighbours, which sparse workers may compute in blocks of rows */
    float              *out;
    struct gr_epilogue *epilogue; /* NULL: none */
};

/** The arguments of graft.mxm for a sparse product, and the structs to which they point. */
struct gr_sparse_call {
    graft_mxm_args args;
    graft_dense    from, to;
    graft_mask     mask;
};

/** Set the arguments for rows begin to end - 1 of the product; `a` consists of these rows of p->a. */
static inline void gr_sparse_call_init(struct gr_sparse_call *call, const struct gr_sparse_product *p, graft_matrix *a,
                                       int64_t begin, int64_t end)
{
    const int64_t stride = (p->width + 7) / 8;

    call->from = gr_dense_view(p->x.data, p->x_type != 0 ? p->x_type : GRAFT_F32, p->x.rows, p->width, p->x.stride);
    call->to = gr_dense_view(p->out + begin * p->width, GRAFT_F32, end - begin, p->width, p->width);
    call->args = (graft_mxm_args){ .size = sizeof call->args,
                                   .semiring = GRAFT_PLUS_TIMES,
                                   .threads = 1,
                                   .flags = p->add ? GRAFT_MXM_ACCUMULATE : 0,
                                   .a = a,
                                   .b = &call->from,
                                   .c = &call->to,
                                   .row_scale = p->scale != NULL ? p->scale + begin : NULL };
    if (p->epilogue == NULL || p->epilogue->bits == NULL) return;
    call->mask = (graft_mask){ .size = sizeof call->mask,
                               .kind = GRAFT_MASK_BITS,
                               .stride = stride,
                               .present = p->epilogue->bits + begin * stride };
    call->args.mask = &call->mask;
    call->args.flags |= GRAFT_MXM_REPLACE;
}

/** Compute a sparse product, or record it for workers. */
int32_t gr_model_product_sparse(struct gr_run *run, const struct gr_sparse_product *product, graft_error *error);

/** out[rows of a x width] = in each column the extremum over the rows of x for which the row of a has entries; 0 if
 *  there are none.
 *  \param[out] winner  [rows of a x width], or NULL. The row of x with the extremum, in the index type of a; -1:
 *  none. */
int32_t gr_model_product_extrema(struct gr_run *run, graft_matrix *a, struct gr_operand x, int64_t width, void *winner,
                                 float *out, graft_error *error);
