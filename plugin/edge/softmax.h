/* softmax() and its gradient for floats, where scores have 1, 2, 4 or 8 heads and no gaps between rows: so lane k of
 * eight has head k modulo the number of heads. Other shapes use the loops of loops.h.
 * SPDX-License-Identifier: Apache-2.0 */

static int has_head_lanes(const graft_dense *dense, int64_t heads)
{
    return HEAD_LANES % heads == 0 && dense->stride == heads;
}

INLINE void store8(float *to, int64_t count, floats8 v)
{
    memcpy(to, &v, (size_t)(count < HEAD_LANES ? count : HEAD_LANES) * sizeof *to);
}

/* Give every lane the largest number, or the sum, of all lanes of its head. */
INLINE floats8 max_of_heads(floats8 v, int64_t heads)
{
    for (int64_t step = HEAD_LANES / 2; step >= heads; step /= 2) {
        floats8 other;

        for (int64_t k = 0; k < HEAD_LANES; k++) other[k] = v[k ^ step];
        v = max8(v, other);
    }
    return v;
}

INLINE floats8 sum_of_heads(doubles8 v, int64_t heads)
{
    for (int64_t step = HEAD_LANES / 2; step >= heads; step /= 2) {
        doubles8 other;

        for (int64_t k = 0; k < HEAD_LANES; k++) other[k] = v[k ^ step];
        v += other;
    }
    return __builtin_convertvector(v, floats8);
}

/* Whether the magnitude of each number is below 2^23, so that floats near it differ by less than 1. */
INLINE int are_moderate(floats8 v)
{
    const words8 below = ((words8)v & 0x7FFFFFFFu) - 0x4B000000u; /* minus the bits of 2^23: negative if smaller */
    uint32_t     all = UINT32_C(1) << 31;

#if defined(__AVX__)
    return _mm256_movemask_ps((__m256)below) == 0xFF;
#endif
    for (int k = 0; k < HEAD_LANES; k++) all &= below[k];
    return all != 0;
}

/* Compute the softmax of one row. Scores more than 100 below the largest count as 100 below it. Returns 0, and writes
 * nothing, if the largest score of a head is so large that floats near it differ by 1 or more. */
static int softmax_lanes(const float *s, float *p, int64_t count, int64_t heads)
{
    floats8  high = (floats8){ 0 } - INFINITY, least, sums;
    doubles8 sum = { 0 }; /* in double, because the small terms of a hub would vanish in float */

    for (int64_t i = 0; i < count; i += HEAD_LANES) high = max8(load8(s + i, count - i, -INFINITY), high);
    high = max_of_heads(high, heads);
    if (!are_moderate(high)) return 0;
    least = high - 100.0f;
    for (int64_t i = 0; i < count; i += HEAD_LANES) {
        const floats8 e = exp8(max8(least, load8(s + i, count - i, -INFINITY)) - high);

        store8(p + i, count - i, e);
        sum += __builtin_convertvector(e, doubles8);
    }
    sums = sum_of_heads(sum, heads);
    for (int64_t i = 0; i < count; i += HEAD_LANES) store8(p + i, count - i, load8(p + i, count - i, 0) / sums);
    return 1;
}

static void softmax_backward_lanes(const float *p, const float *dp, float *ds, int64_t count, int64_t heads)
{
    doubles8 sum = { 0 };
    floats8  sums;

    for (int64_t i = 0; i < count; i += HEAD_LANES)
        sum += __builtin_convertvector(load8(p + i, count - i, 0), doubles8) *
               __builtin_convertvector(load8(dp + i, count - i, 0), doubles8);
    sums = sum_of_heads(sum, heads);
    for (int64_t i = 0; i < count; i += HEAD_LANES)
        store8(ds + i, count - i, load8(p + i, count - i, 0) * (load8(dp + i, count - i, 0) - sums));
}

static void floats_softmax(const struct gr_edge_operands *o, int64_t row, int64_t row_end)
{
    const int64_t heads = o->out->n_cols, *row_ptr = o->csr->row_ptr;

    if (heads == 0 || !has_head_lanes(o->x, heads) || !has_head_lanes(o->out, heads)) {
        f32_softmax(o, row, row_end);
        return;
    }
    for (; row < row_end; row++) {
        const int64_t begin = row_ptr[row] * heads, count = row_ptr[row + 1] * heads - begin;

        if (!softmax_lanes((const float *)o->x->data + begin, (float *)o->out->data + begin, count, heads))
            f32_softmax(o, row, row + 1);
    }
}

static void floats_softmax_backward(const struct gr_edge_operands *o, int64_t row, int64_t row_end)
{
    const int64_t heads = o->out->n_cols, *row_ptr = o->csr->row_ptr;

    if (heads == 0 || !has_head_lanes(o->x, heads) || !has_head_lanes(o->y, heads) || !has_head_lanes(o->out, heads)) {
        f32_softmax_backward(o, row, row_end);
        return;
    }
    for (; row < row_end; row++) {
        const int64_t begin = row_ptr[row] * heads, count = row_ptr[row + 1] * heads - begin;

        softmax_backward_lanes((const float *)o->x->data + begin, (const float *)o->y->data + begin,
                               (float *)o->out->data + begin, count, heads);
    }
}
