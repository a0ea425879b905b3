/* The loops of the edge operators over one row. Included once for each REAL, which gives the type and the names.
 * Columns are the innermost loop, which is vectorised. Sums over entries are in the order of the entries.
 * SPDX-License-Identifier: Apache-2.0 */

static REAL *NAME(row_of)(const graft_dense *dense, int64_t row)
{
    return (REAL *)dense->data + row * dense->stride;
}

static void NAME(gather_row)(const graft_dense *x, const graft_index *index, const graft_dense *out, int64_t i)
{
    memcpy(NAME(row_of)(out, i), NAME(row_of)(x, gr_edge_number(index, i)), (size_t)x->n_cols * sizeof(REAL));
}

static void NAME(add_rows)(const graft_dense *x, const graft_index *index, const graft_dense *out,
                           struct add_range part)
{
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t to = gr_edge_number(index, i);
        const REAL   *from = NAME(row_of)(x, i);
        REAL         *sum;

        if (to < part.row || to >= part.row_end) continue;
        sum = NAME(row_of)(out, to);
#pragma omp simd
        for (int64_t c = part.column; c < part.column_end; c++) sum[c] += from[c];
    }
}

static void NAME(entry_dots)(const struct edge_operands *o, int64_t row, int64_t e)
{
    const int64_t heads = o->out->n_cols, width = o->x->n_cols / heads;
    const REAL   *x, *y;
    REAL         *out = NAME(row_of)(o->out, e);

    memset(out, 0, (size_t)heads * sizeof *out);
    if (width == 0) return;
    x = NAME(row_of)(o->x, row);
    y = NAME(row_of)(o->y, gr_csr_column(o->csr, e));
    for (int64_t h = 0; h < heads; h++) {
        REAL sum = 0;

#pragma omp simd reduction(+ : sum)
        for (int64_t c = h * width; c < (h + 1) * width; c++) sum += x[c] * y[c];
        out[h] = sum;
    }
}

static void NAME(softmax)(const struct edge_operands *o, int64_t row, int64_t h)
{
    const int64_t begin = o->csr->row_ptr[row], end = o->csr->row_ptr[row + 1];
    REAL          highest = begin < end ? NAME(row_of)(o->x, begin)[h] : 0;
    double        sum = 0; /* in double, because the small terms of a hub would vanish in float */

    for (int64_t e = begin; e < end; e++) {
        const REAL s = NAME(row_of)(o->x, e)[h];
        if (s > highest) highest = s;
    }
    for (int64_t e = begin; e < end; e++) {
        const REAL p = NAME(exponential)(NAME(row_of)(o->x, e)[h] - highest);
        NAME(row_of)(o->out, e)[h] = p;
        sum += (double)p;
    }
    for (int64_t e = begin; e < end; e++) NAME(row_of)(o->out, e)[h] /= (REAL)sum;
}

static void NAME(softmax_backward)(const struct edge_operands *o, int64_t row, int64_t h)
{
    const int64_t begin = o->csr->row_ptr[row], end = o->csr->row_ptr[row + 1];
    double        sum = 0;

    for (int64_t e = begin; e < end; e++) sum += (double)NAME(row_of)(o->x, e)[h] * (double)NAME(row_of)(o->y, e)[h];
    for (int64_t e = begin; e < end; e++) {
        const REAL p = NAME(row_of)(o->x, e)[h], dp = NAME(row_of)(o->y, e)[h];
        NAME(row_of)(o->out, e)[h] = p * (dp - (REAL)sum);
    }
}

static void NAME(mxm_row)(const struct edge_operands *o, int64_t row)
{
    const int64_t heads = o->x->n_cols, width = o->out->n_cols / heads;
    REAL         *out = NAME(row_of)(o->out, row);

    memset(out, 0, (size_t)o->out->n_cols * sizeof *out);
    for (int64_t at = o->csr->row_ptr[row]; at < o->csr->row_ptr[row + 1]; at++) {
        const REAL *w = NAME(row_of)(o->x, o->entry != NULL ? o->entry[at] : at);
        const REAL *y = o->y != NULL ? NAME(row_of)(o->y, gr_csr_column(o->csr, at)) : NULL;

        if (y == NULL) {
#pragma omp simd
            for (int64_t h = 0; h < heads; h++) out[h] += w[h];
            continue;
        }
        for (int64_t h = 0; h < heads; h++) {
            const REAL weight = w[h];

#pragma omp simd
            for (int64_t c = h * width; c < (h + 1) * width; c++) out[c] += weight * y[c];
        }
    }
}
