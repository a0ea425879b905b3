/* The loops of the edge operators over rows. Included once for each REAL. Sums over entries are in the order of the
 * entries, and sums over columns in the same order for every instruction set, so all results are bitwise identical.
 * SPDX-License-Identifier: Apache-2.0 */

#include "edge/dot.h"

#define VECTOR_BYTES WIDE_BYTES
#define NAME(noun) JOIN(EDGE(wide_), noun)
#include "edge/sums.h"
#undef VECTOR_BYTES
#undef NAME

#if WIDE_BYTES > 32
#define VECTOR_BYTES 32
#define NAME(noun) JOIN(EDGE(half_), noun)
#include "edge/sums.h"
#undef VECTOR_BYTES
#undef NAME
#endif

#define VECTOR_BYTES 16
#define NAME(noun) JOIN(EDGE(narrow_), noun)
#include "edge/sums.h"
#undef VECTOR_BYTES
#undef NAME

#define VECTOR_BYTES ((int)sizeof(REAL))
#define NAME(noun) JOIN(EDGE(single_), noun)
#include "edge/sums.h"
#undef VECTOR_BYTES
#undef NAME

static const REAL *EDGE(row_of)(const graft_dense *dense, int64_t row)
{
    return (const REAL *)dense->data + row * dense->stride;
}

/* Whether registers of this many lanes can be used: the columns fill a register, and no register has columns of two
 * heads. */
static int EDGE(suits)(const struct gr_edge_sums *s, int lanes)
{
    const int64_t heads = s->weight != NULL ? s->weight->n_cols : 1, width = s->out->n_cols;

    return width >= lanes && (heads == 1 || width / heads % lanes == 0);
}

static void EDGE(sums)(const struct gr_edge_sums *s, int64_t row, int64_t row_end)
{
    const int64_t head_width = s->weight != NULL ? s->out->n_cols / s->weight->n_cols : s->out->n_cols;

#define WITH(size)                                                                                                     \
    if (EDGE(suits)(s, EDGE(size##_LANES))) {                                                                          \
        if (s->weight != NULL) EDGE(size##_rows)(s, row, row_end, head_width, 1);                                      \
        else EDGE(size##_rows)(s, row, row_end, head_width, 0);                                                        \
        return;                                                                                                        \
    }
    WITH(wide)
#if WIDE_BYTES > 32
    WITH(half)
#endif
    WITH(narrow)
    WITH(single)
#undef WITH
}

static void EDGE(dots)(const struct gr_edge_operands *o, int64_t row, int64_t begin, int64_t end)
{
    const int64_t heads = o->out->n_cols, width = o->x->n_cols / heads;
    const REAL   *x = EDGE(row_of)(o->x, row);

    for (int64_t e = begin; e < end; e++) {
        const REAL *y = EDGE(row_of)(o->y, gr_csr_column(o->csr, e));
        REAL       *out = (REAL *)o->out->data + e * o->out->stride;

        for (int64_t h = 0; h < heads; h++) out[h] = EDGE(dot)(x + h * width, y + h * width, width);
    }
}

/* Compute the softmax of one head of a row, for any stride. */
static void EDGE(softmax_head)(const struct gr_edge_operands *o, int64_t row, int64_t h)
{
    const int64_t begin = o->csr->row_ptr[row], end = o->csr->row_ptr[row + 1];
    REAL         *out = (REAL *)o->out->data + h;
    REAL          highest = begin < end ? EDGE(row_of)(o->x, begin)[h] : 0;
    double        sum = 0; /* in double, because the small terms of a hub would vanish in float */

    for (int64_t e = begin; e < end; e++) {
        const REAL s = EDGE(row_of)(o->x, e)[h];
        if (s > highest) highest = s;
    }
    for (int64_t e = begin; e < end; e++) {
        const REAL p = EDGE(exponential)(EDGE(row_of)(o->x, e)[h], highest);

        out[e * o->out->stride] = p;
        sum += (double)p;
    }
    for (int64_t e = begin; e < end; e++) out[e * o->out->stride] /= (REAL)sum;
}

static void EDGE(softmax_backward_head)(const struct gr_edge_operands *o, int64_t row, int64_t h)
{
    const int64_t begin = o->csr->row_ptr[row], end = o->csr->row_ptr[row + 1];
    REAL         *out = (REAL *)o->out->data + h;
    double        sum = 0;

    for (int64_t e = begin; e < end; e++) sum += (double)EDGE(row_of)(o->x, e)[h] * (double)EDGE(row_of)(o->y, e)[h];
    for (int64_t e = begin; e < end; e++) {
        const REAL p = EDGE(row_of)(o->x, e)[h], dp = EDGE(row_of)(o->y, e)[h];
        out[e * o->out->stride] = p * (dp - (REAL)sum);
    }
}

static void EDGE(softmax)(const struct gr_edge_operands *o, int64_t row, int64_t row_end)
{
    for (; row < row_end; row++)
        for (int64_t h = 0; h < o->out->n_cols; h++) EDGE(softmax_head)(o, row, h);
}

static void EDGE(softmax_backward)(const struct gr_edge_operands *o, int64_t row, int64_t row_end)
{
    for (; row < row_end; row++)
        for (int64_t h = 0; h < o->out->n_cols; h++) EDGE(softmax_backward_head)(o, row, h);
}
