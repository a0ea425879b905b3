/* Computes sums of rows, some columns at a time in registers. Included once for each REAL and VECTOR_BYTES.
 * SPDX-License-Identifier: Apache-2.0 */

typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));

enum { NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL) };

/* Compute the columns of a row from `begin` on in n registers. The last one begins at column begin + last, so it may
 * overlap the one before it. All columns of a register are of one head. n and weighted are compile-time constants. */
INLINE void NAME(tile)(const struct gr_edge_sums *s, int64_t row, int64_t begin, int64_t last, int64_t head_width,
                       const int n, const int weighted)
{
    REAL *const out = (REAL *)s->out->data + row * s->out->stride + begin;
    const REAL *from = (const REAL *)s->from->data + begin;
    NAME(vector) sum[SUM_REGISTERS] = { { 0 } };
    int64_t head[SUM_REGISTERS] = { 0 };

#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        const int64_t at = i < n - 1 ? i * NAME(LANES) : last;

        if (weighted) head[i] = (begin + at) / head_width;
        if (s->accumulates) memcpy(&sum[i], out + at, sizeof sum[i]);
    }
    for (int64_t e = s->row_ptr[row]; e < s->row_ptr[row + 1]; e++) {
        const REAL *x = from + place_of(s, e) * s->from->stride;
        const REAL *w = weighted ? (const REAL *)s->weight->data + entry_of(s, e) * s->weight->stride : NULL;

        if (e + PREFETCH_ENTRIES < s->entries) {
            const REAL *ahead = from + place_of(s, e + PREFETCH_ENTRIES) * s->from->stride;

            for (int i = 0; i < n * NAME(LANES); i += GR_CACHE_LINE / (int)sizeof(REAL))
                __builtin_prefetch(ahead + i, 0, 2);
        }
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            NAME(vector) v;

            memcpy(&v, x + (i < n - 1 ? i * NAME(LANES) : last), sizeof v);
            sum[i] += weighted ? w[head[i]] * v : v;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) memcpy(out + (i < n - 1 ? i * NAME(LANES) : last), &sum[i], sizeof sum[i]);
}

/* Compute `count` columns, which fill at least one register. */
INLINE void NAME(tile_of)(const struct gr_edge_sums *s, int64_t row, int64_t begin, int64_t count, int64_t head_width,
                          const int weighted)
{
    const int64_t last = count - NAME(LANES);

    switch ((count + NAME(LANES) - 1) / NAME(LANES)) {
    case 1: NAME(tile)(s, row, begin, last, head_width, 1, weighted); break;
    case 2: NAME(tile)(s, row, begin, last, head_width, 2, weighted); break;
    case 3: NAME(tile)(s, row, begin, last, head_width, 3, weighted); break;
    case 4: NAME(tile)(s, row, begin, last, head_width, 4, weighted); break;
    case 5: NAME(tile)(s, row, begin, last, head_width, 5, weighted); break;
    case 6: NAME(tile)(s, row, begin, last, head_width, 6, weighted); break;
    case 7: NAME(tile)(s, row, begin, last, head_width, 7, weighted); break;
    default: NAME(tile)(s, row, begin, last, head_width, 8, weighted); break;
    }
}

/* Compute all columns of some rows. The last register of a tile may overlap the one before it: both are loaded before
 * one is stored, and have the same sums. Two tiles may not overlap. */
INLINE void NAME(rows)(const struct gr_edge_sums *s, int64_t row, int64_t row_end, int64_t head_width,
                       const int weighted)
{
    const int64_t width = s->out->n_cols, widest = SUM_REGISTERS * NAME(LANES);

    for (; row < row_end; row++) {
        for (int64_t begin = 0, count; begin < width; begin += count) {
            const int64_t left = width - begin;

            /* The columns after a tile must fill a register. */
            count = left <= widest ? left : left - widest < NAME(LANES) ? widest - NAME(LANES) : widest;
            NAME(tile_of)(s, row, begin, count, head_width, weighted);
        }
    }
}
