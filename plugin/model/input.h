/* The input of the first layer, and the operands of products.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/block.h"

/** Sparse features: their first rows. */
struct gr_sparse_part {
    int64_t        rows;
    graft_matrix  *x;         /* [rows x in] */
    graft_matrix  *transpose; /* for the gradient of the other factor; NULL in evaluation */
    float         *transpose_values;
    const int64_t *entry; /* for each entry of the transpose, its entry in x */
};

/** A step of training multiplies the first n_src rows, from which the first layer gathers, and, for kinds with
 *  `own_rows`, the first n_dst rows too. */
struct gr_sparse {
    struct gr_sparse_part whole;   /* of evaluation; x NULL: features are dense, or features of a block are in `step` */
    struct gr_sparse_part step[2]; /* the second has x NULL if the first serves for both */
    float                *dropped; /* values of a step with dropout, or NULL */
};

/** The input of the first layer. */
struct gr_input {
    const void            *x;    /* NULL: sparse */
    graft_dtype            type; /* GRAFT_F32; other types if batches and blocks of rows convert them to floats */
    int64_t                stride;
    float                 *dropped; /* [n_src x width] space for dropout, or NULL */
    struct gr_sparse       sparse;
    int                    is_sparse;   /* they stay sparse, or are expected to stay sparse */
    int                    is_constant; /* x is dense and changes only in update(), so its sums are kept */
    const struct gr_block *whole;       /* the block of evaluation, which is also the block of constant sums */
};

/** Labels that are part of the input of the first layer: of the vertex itself, or after aggregation. */
enum gr_label_input { GR_LABELS_NONE, GR_LABELS_OWN, GR_LABELS_GATHERED };

/** The first rows of a matrix as an operand: dense, or sparse features; with labels, their product with the embedding
 *  is added. */
struct gr_operand {
    const void                  *data; /* floats, unless x_type of gr_sparse_product has another type */
    int64_t                      stride;
    int64_t                      rows;
    const struct gr_sparse_part *sparse; /* whole or step of gr_sparse; NULL: dense */
    enum gr_label_input          labels;
};

static inline struct gr_operand gr_dense_operand(const void *data, int64_t stride, int64_t rows)
{
    return (struct gr_operand){ .data = data, .stride = stride, .rows = rows };
}
