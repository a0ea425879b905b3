/* The operators of graft.edge/1 by definition.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <string.h>

double oracle_element(const graft_dense *dense, int64_t row, int64_t column)
{
    const int64_t at = row * dense->stride + column;

    return dense->dtype == GRAFT_F32 ? (double)((const float *)dense->data)[at] : ((const double *)dense->data)[at];
}

static int64_t oracle_edge_number(graft_dtype index_type, const void *data, int64_t at)
{
    return index_type == GRAFT_I32 ? ((const int32_t *)data)[at] : ((const int64_t *)data)[at];
}

void oracle_gather_rows(const graft_dense *x, const graft_index *index, double *out)
{
    for (int64_t i = 0; i < index->count; i++)
        for (int64_t c = 0; c < x->n_cols; c++)
            out[i * x->n_cols + c] = oracle_element(x, oracle_edge_number(index->index_type, index->data, i), c);
}

void oracle_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, double *sum)
{
    for (int64_t at = 0; at < out->n_rows * out->n_cols; at++)
        sum[at] = oracle_element(out, at / out->n_cols, at % out->n_cols);
    for (int64_t i = 0; i < index->count; i++)
        for (int64_t c = 0; c < x->n_cols; c++)
            sum[oracle_edge_number(index->index_type, index->data, i) * out->n_cols + c] += oracle_element(x, i, c);
}

void oracle_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, int64_t heads, double *out)
{
    for (int64_t i = 0; i < a->n_rows; i++) {
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
            const int64_t j = oracle_edge_number(a->index_type, a->col_idx, e);

            memset(&out[e * heads], 0, (size_t)heads * sizeof *out);
            for (int64_t c = 0; c < x->n_cols; c++)
                out[e * heads + c / (x->n_cols / heads)] += oracle_element(x, i, c) * oracle_element(y, j, c);
        }
    }
}

void oracle_edge_softmax(const graft_csr *a, const graft_dense *s, double *p)
{
    const int64_t heads = s->n_cols;

    for (int64_t at = 0; at < a->n_rows * heads; at++) {
        const int64_t begin = a->row_ptr[at / heads], end = a->row_ptr[at / heads + 1], h = at % heads;
        double        largest = -INFINITY, sum = 0;

        for (int64_t e = begin; e < end; e++) largest = fmax(largest, oracle_element(s, e, h));
        for (int64_t e = begin; e < end; e++) sum += exp(oracle_element(s, e, h) - largest);
        for (int64_t e = begin; e < end; e++) p[e * heads + h] = exp(oracle_element(s, e, h) - largest) / sum;
    }
}

void oracle_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, double *ds)
{
    const int64_t heads = p->n_cols;

    for (int64_t at = 0; at < a->n_rows * heads; at++) {
        const int64_t begin = a->row_ptr[at / heads], end = a->row_ptr[at / heads + 1], h = at % heads;
        double        sum = 0;

        for (int64_t e = begin; e < end; e++) sum += oracle_element(p, e, h) * oracle_element(dp, e, h);
        for (int64_t e = begin; e < end; e++)
            ds[e * heads + h] = oracle_element(p, e, h) * (oracle_element(dp, e, h) - sum);
    }
}

void oracle_edge_mxm(const graft_csr *a, int transposed, const graft_dense *w, const graft_dense *y, int64_t width,
                     double *out)
{
    memset(out, 0, (size_t)((transposed ? a->n_cols : a->n_rows) * width) * sizeof *out);
    for (int64_t i = 0; i < a->n_rows; i++) {
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
            const int64_t j = oracle_edge_number(a->index_type, a->col_idx, e), to = transposed ? j : i,
                          from = transposed ? i : j;

            for (int64_t c = 0; c < width; c++)
                out[to * width + c] +=
                    oracle_element(w, e, c / (width / w->n_cols)) * (y != NULL ? oracle_element(y, from, c) : 1);
        }
    }
}
