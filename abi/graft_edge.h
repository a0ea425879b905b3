/* "graft.edge/1": gather and scatter of rows by index, and the operators on edges that form attention.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_EDGE_H
#define GRAFT_EDGE_H

#include "graft_mxm.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_EDGE_ID "graft.edge/1"

/** Indices of rows, borrowed. */
typedef struct graft_index {
    uint32_t    size;
    graft_dtype index_type; /**< GRAFT_I32 or GRAFT_I64 */
    int64_t     count;
    const void *data; /**< [count] in any order, possibly repeated */
} graft_index;

enum { GRAFT_EDGE_TRANSPOSE = 1u };

/* Conventions of all operators.
 *
 * Edge e of a matrix A is its e-th entry, in row row(e) and column col(e); the values of A are not used. A matrix over
 * the edges has a row for each edge and a column for each head. A matrix of `width` columns has `heads` heads side by
 * side, each of width/heads columns: head(c) = c / (width/heads).
 *
 * All dense operands of a call are GRAFT_F32, or all are GRAFT_F64, with any stride. `threads` is the largest number of
 * threads of a call; 0: option "threads". Results are bitwise identical for any number. NaN and infinities propagate as
 * in arithmetic. Work is divided into chunks of about equal numbers of edges; only sddmm() splits a row of A, so a row
 * with a large share of all edges is the work of one thread. */
typedef struct graft_edge_api {
    uint32_t size;
    uint32_t reserved;

    /** Gather rows: out[i,c] = x[index[i],c].
     *
     * \param[in]  x      [n x width]
     * \param[in]  index  Each in 0 .. n-1.
     * \param[out] out    [count x width]; must overlap neither x nor index.
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap, an index out of range: the message has it and its
     *         position).
     * [one-caller] [starts-openmp]. Not collective. Memory: none. Since 0.1. */
    int32_t (*gather_rows)(graft_context *context, const graft_dense *x, const graft_index *index,
                           const graft_dense *out, int32_t threads, graft_error *error);

    /** Add rows: out[index[i],c] += x[i,c], for each element of out in the order of i.
     *
     * \param[in]     x      [count x width]
     * \param[in]     index  Each in 0 .. n-1.
     * \param[in,out] out    [n x width]; must overlap neither x nor index.
     * \return as gather_rows().
     * [one-caller] [starts-openmp]. Not collective. Memory: where out is larger than 1 MB and the index long, 8 (n + 1)
     * + count * (4, or 8 from 2^31 on) during the call, to sort the index, so that each row of out is read and written
     * once; if this memory cannot be allocated, the call is slower, with the same result. For an index that is used
     * more than once see index_matrix(). Source: SuperGCN 2.1 (index_add). Since 0.1. */
    int32_t (*index_add)(graft_context *context, const graft_dense *x, const graft_index *index, const graft_dense *out,
                         int32_t threads, graft_error *error);

    /** Compute scores of edges: out[e,h] = sum over the columns c of head h of x[row(e),c] * y[col(e),c].
     *
     * \param[in]  a    [m x k]
     * \param[in]  x,y  [m x width], [k x width]
     * \param[out] out  [edges x heads]; its columns are the number of heads, which divides width. Must not overlap
     *                  x or y.
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap).
     * [one-caller] [starts-openmp]. Not collective. Memory: none. Since 0.1. */
    int32_t (*sddmm)(graft_context *context, graft_matrix *a, const graft_dense *x, const graft_dense *y,
                     const graft_dense *out, int32_t threads, graft_error *error);

    /** Compute the softmax over the edges of each row: p[e,h] = exp(s[e,h] - max) / sum of the same over the edges of
     *  row(e), where max is the largest s over these edges. A score of minus infinity gives 0 if its row has a finite
     *  score.
     *
     * \param[in]  s  [edges x heads] scores
     * \param[out] p  [edges x heads]; may be s itself (same data, same stride), else must not overlap it.
     * \return as sddmm().
     * [one-caller] [starts-openmp]. Not collective. Memory: none. Since 0.1. */
    int32_t (*softmax)(graft_context *context, graft_matrix *a, const graft_dense *s, const graft_dense *p,
                       int32_t threads, graft_error *error);

    /** Compute the gradient ds with respect to the scores from the gradient dp with respect to the result p of
     * softmax():
     *
     *      ds[e,h] = p[e,h] * (dp[e,h] - sum over the edges f of row(e) of p[f,h] * dp[f,h])
     *
     * \param[in]  p, dp  [edges x heads]
     * \param[out] ds     [edges x heads]; may be p or dp itself (same data, same stride), else must not overlap them.
     * \return as sddmm().
     * [one-caller] [starts-openmp]. Not collective. Memory: none. Since 0.1. */
    int32_t (*softmax_backward)(graft_context *context, graft_matrix *a, const graft_dense *p, const graft_dense *dp,
                                const graft_dense *ds, int32_t threads, graft_error *error);

    /** Compute a product with weights w for each edge and head in place of the values of A:
     *
     *      flags 0                 out[i,c] = sum over the edges e of row i     of w[e,head(c)] * y[col(e),c]
     *      GRAFT_EDGE_TRANSPOSE    out[j,c] = sum over the edges e of column j  of w[e,head(c)] * y[row(e),c]
     *
     * Sums are formed in the order of the edges. Rows of out without edges become 0.
     *
     * \param[in]  a    [m x k]
     * \param[in]  w    [edges x heads]; heads divides width.
     * \param[in]  y    [k x width], transposed [m x width]; or NULL: every element is 1, and width is heads.
     * \param[out] out  [m x width], transposed [k x width]; must overlap neither w nor y.
     * \return OK; ERR_ARG (as sddmm(); unknown flags; transposed: more rows than the index type can represent);
     *         ERR_NOMEM.
     * [one-caller] [starts-openmp]. Not collective. Memory: none, except that the first transposed call on a matrix
     * creates a map of its transpose, 8 (k + 1) + edges * (8 + index bytes), which graft_mxm_api.matrix_bytes() counts.
     * Since 0.1. */
    int32_t (*mxm)(graft_context *context, graft_matrix *a, uint32_t flags, const graft_dense *w, const graft_dense *y,
                   const graft_dense *out, int32_t threads, graft_error *error);

    /** Sort an index once for many additions: create the matrix A [n x count] without values, whose row r has an entry
     *  in column i for each i with index[i] = r, in the order of i. Then graft_mxm_api.run() with this matrix, B = x, C
     *  = out, GRAFT_PLUS_SECOND and GRAFT_MXM_ACCUMULATE does what index_add() does, except that the rows of x are
     *  summed before they are added to out. run() also offers means, maxima, masks and an epilogue.
     *
     * \param[in]  index   Each in 0 .. n-1. Not used after the call.
     * \param[out] matrix  For graft_mxm_api.matrix_destroy(); unchanged on failure.
     * \return OK; ERR_ARG (null, a negative n, types, an index out of range); ERR_NOMEM.
     * [one-caller] [starts-openmp]. Not collective. Memory: 8 (n + 1) + count * (4, or 8 from 2^31 on), which
     * graft_mxm_api.matrix_bytes() counts. Source: SuperGCN 2.1 (index_add, sorted and clustered). Since 0.2. */
    int32_t (*index_matrix)(graft_context *context, const graft_index *index, int64_t n, graft_matrix **matrix,
                            graft_error *error);
} graft_edge_api;

GRAFT_EXTERN_C_END
#endif
