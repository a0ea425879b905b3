/* The input of the first layer, and the operands of products.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/block.h"

/** The first rows of sparse features. */
struct gr_sparse_part {
    int64_t        rows;
    graft_matrix  *x;         /* [rows x in] the features */
    graft_matrix  *transpose; /* for the gradient of the weights; NULL in evaluation */
    float         *transpose_values;
    const int64_t *entry; /* [entries] for each entry of the transpose, its index in x */
};

/** Sparse features. A step of training multiplies the first n_src rows, from which the first layer gathers, and, for
 *  kinds with `own_rows`, the first n_dst rows too. */
struct gr_sparse {
    struct gr_sparse_part whole;   /* all rows, for evaluation; x NULL: features are dense, or only `step` is used */
    struct gr_sparse_part step[2]; /* rows n_src and n_dst for a step; x of the second NULL: both are the first */
    float                *dropped; /* values after dropout in a step, or NULL */
};

/** The input of the first layer. */
struct gr_input {
    const void            *x;    /* dense features; NULL: they are sparse */
    graft_dtype            type; /* GRAFT_F32; or another type, which batches and blocks of rows convert to floats */
    int64_t                stride;
    float                 *dropped; /* [n_src x width] memory for features after dropout, or NULL */
    struct gr_sparse       sparse;
    int                    is_sparse;   /* features remain sparse, or are expected to remain sparse */
    int                    is_constant; /* x is dense and changes only in update(), so its sums are computed once */
    const struct gr_block *whole;       /* block of evaluation, and of sums that are computed once */
};

/** Labels in the input of the first layer: none, labels of the vertex itself, or labels summed over neighbours. */
enum gr_label_input { GR_LABELS_NONE, GR_LABELS_OWN, GR_LABELS_GATHERED };

/** The first rows of a matrix as an operand, dense or sparse features. With labels, the operand is X + L E: the product
 *  of the labels with their embedding is added. */
struct gr_operand {
    const void                  *data; /* floats, unless x_type of gr_sparse_product has another type */
    int64_t                      stride;
    int64_t                      rows;
    const struct gr_sparse_part *sparse; /* `whole`, or the array `step`, of gr_sparse; NULL: dense */
    enum gr_label_input          labels;
};

static inline struct gr_operand gr_dense_operand(const void *data, int64_t stride, int64_t rows)
{
    return (struct gr_operand){ .data = data, .stride = stride, .rows = rows };
}
