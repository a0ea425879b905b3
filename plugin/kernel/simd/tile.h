/* Computes sums or extremes of some columns over the entries of a row, in registers. Included once for each REAL and
 * VECTOR_BYTES; INDEX is the integer type of the size of REAL.
 * SPDX-License-Identifier: Apache-2.0 */

typedef REAL  NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef INDEX NAME(lanes) __attribute__((vector_size(VECTOR_BYTES))); /* truth values, or columns */

#ifndef INTRINSICS
typedef int NAME(truth);
#endif

enum { NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL) };

INLINE NAME(vector) NAME(select)(NAME(lanes) which, NAME(vector) yes, NAME(vector) no)
{
    return (NAME(vector))((which & (NAME(lanes))yes) | (~which & (NAME(lanes))no));
}

/* Load the columns of a row of B that begin at `at`. If REAL is float, B may be bfloat16, the upper half of a float. */
INLINE NAME(vector) NAME(load)(const void *b, int64_t at, const int bf16)
{
    NAME(vector) v;

    if (bf16 && sizeof(REAL) == 4) {
#if defined(INTRINSICS) && defined(FLOAT_ROWS)
        return (NAME(vector))NAME(widen)((const uint16_t *)b + at);
#else
        typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL) * 4)));
        words            widened;

        for (int i = 0; i < NAME(LANES); i++) widened[i] = (uint32_t)((const uint16_t *)b)[at + i] << 16;
        memcpy(&v, &widened, sizeof v);
#endif
        return v;
    }
    memcpy(&v, (const REAL *)b + at, sizeof v);
    return v;
}

/* Find the lanes in which v replaces best: v is larger (or smaller), or it is a NaN and best is a number. */
INLINE NAME(lanes) NAME(wins)(NAME(vector) v, NAME(vector) best, const int max)
{
    return (best == best) & ~(max ? v <= best : v >= best);
}

/* Replace *acc by v, and *won by the column, where v wins. */
INLINE void NAME(replace)(NAME(vector) v, INDEX column, const enum op op, NAME(vector) * acc, NAME(lanes) * won)
{
#ifdef MASK_REGISTERS
    const NAME(truth) k = NAME(mask_wins)(v, *acc, IS_MAX(op));

    *acc = NAME(mask_move)(*acc, k, v);
    if (KEEPS_WINNER(op)) *won = NAME(mask_set)(*won, k, column);
#else
    const NAME(lanes) which = NAME(wins)(v, *acc, IS_MAX(op));

    *acc = NAME(select)(which, v, *acc);
    if (KEEPS_WINNER(op)) *won = (which & column) | (~which & *won);
#endif
}

/* Apply entry e to n registers of `row`, the last of which begins at `last`. The first entry of an extreme is copied.
 * Operations OF_NUMBERS return `unordered`, updated where there is a NaN. */
INLINE NAME(truth) NAME(apply_entry)(const struct gr_simd_job *job, int64_t e, const char *row, int64_t last,
                                     const int n, const enum op op, const int times, const int bf16, const int first,
                                     NAME(truth) unordered, NAME(vector) * acc, NAME(lanes) * won)
{
    const REAL w = times ? ((const REAL *)job->a->values)[e] : 1;
    NAME(vector) before = { 0 };

#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        NAME(vector) v = NAME(load)(row, i < n - 1 ? i * NAME(LANES) : last, bf16);

        if (times) v = w * v;
        if (op == SUM) {
            acc[i] += v;
        } else if (first) {
            acc[i] = v;
            if (KEEPS_WINNER(op)) won[i] = (NAME(lanes)){ 0 } + (INDEX)column_of(job, e);
#ifdef INTRINSICS
        } else if (OF_NUMBERS(op)) {
            acc[i] = NAME(extreme)(v, acc[i], IS_MAX(op));
            if (i % 2 == 1 || i == n - 1) unordered = NAME(unordered)(unordered, v, i % 2 == 1 ? before : v);
            before = v;
#endif
        } else {
            NAME(replace)(v, (INDEX)column_of(job, e), op, &acc[i], &won[i]);
        }
    }
    (void)before;
    return unordered;
}

/* Prefetch the columns of a row of B that n registers read; the last register begins at `last`. */
INLINE void NAME(prefetch_row)(const char *row, int64_t last, const int n, const int64_t element, const int crosses)
{
    for (int64_t i = 0; i < n * NAME(LANES) * element; i += GR_CACHE_LINE) __builtin_prefetch(row + i, 0, 2);
    if (crosses) __builtin_prefetch(row + (last + NAME(LANES)) * element - 1, 0, 2);
}

/* Compute the columns from `begin` on in n registers. The last register begins at column begin + last, so it may
 * overlap the one before it, and no column beyond the row is read. n, op, times and bf16 are compile-time constants in
 * calls.
 * \return 1 if OF_NUMBERS found a NaN, and z is invalid; else 0 */
INLINE int NAME(tile)(const struct gr_simd_job *job, int64_t e0, int64_t e1, int64_t begin, int64_t last, const int n,
                      const enum op op, const int times, const int bf16, REAL *z, int32_t *winner)
{
    const int64_t element = bf16 ? 2 : (int64_t)sizeof(REAL);
    const int     crosses = job->b_crosses;
    const char   *b = (const char *)job->args->b->data + begin * element;
    const int64_t stride = job->args->b->stride * element;
    const int64_t ahead_end = job->rows_masked ? e1 : job->entries;
    NAME(vector) acc[TILE_REGISTERS] = { { 0 } };
    NAME(lanes) won[TILE_REGISTERS] = { { 0 } };
    NAME(truth) unordered = { 0 };

    for (int64_t e = e0; e < e1; e++) {
        /* The entries of the next rows follow in the same array, so this also prefetches for later rows, unless they
         * are likely to be masked out. */
        if (e + PREFETCH_ENTRIES < ahead_end) {
            NAME(prefetch_row)(b + column_of(job, e + PREFETCH_ENTRIES) * stride, last, n, element, crosses);
        }
        if (op != SUM && e == e0)
            NAME(apply_entry)(job, e, b + column_of(job, e) * stride, last, n, op, times, bf16, 1, unordered, acc, won);
        else
            unordered = NAME(apply_entry)(job, e, b + column_of(job, e) * stride, last, n, op, times, bf16, 0,
                                          unordered, acc, won);
    }
#ifdef INTRINSICS
    if (OF_NUMBERS(op) && NAME(any)(unordered)) return 1;
#endif
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        const int64_t at = i < n - 1 ? i * NAME(LANES) : last;

        memcpy(z + at, &acc[i], sizeof acc[i]);
        if (KEEPS_WINNER(op) && sizeof(REAL) == 4) memcpy(winner + at, &won[i], sizeof won[i]);
        else
            for (int k = 0; k < NAME(LANES) && KEEPS_WINNER(op); k++) winner[at + k] = (int32_t)won[i][k];
    }
    return 0;
}

/* Call tile() for n registers, 1 to REGISTERS, where n is known only at run time. Other tiles are not compiled. */
INLINE int NAME(tile_of)(const struct gr_simd_job *job, int64_t e0, int64_t e1, int64_t begin, int64_t last, int64_t n,
                         const enum op op, const int times, const int bf16, REAL *z, int32_t *winner)
{
#define TILE_OF(k)                                                                                                     \
    case k: return k <= REGISTERS ? NAME(tile)(job, e0, e1, begin, last, k, op, times, bf16, z, winner) : 0;
    switch (n) {
        TILE_OF(1)
        TILE_OF(2)
        TILE_OF(3)
        TILE_OF(4)
        TILE_OF(5)
        TILE_OF(6)
        TILE_OF(7)
        TILE_OF(8)
    }
    __builtin_unreachable();
#undef TILE_OF
}

/* Compute all columns of a strip that is at least one register wide. */
INLINE void NAME(strip)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip,
                        const enum op op, const int times, const int bf16, REAL *z, int32_t *winner)
{
    const int64_t widest = TILE_REGISTERS * NAME(LANES);

    for (int64_t j = 0; j < strip.count; j += widest) {
        const int64_t  count = strip.count - j < widest ? strip.count - j : widest;
        const int64_t  n = (count + NAME(LANES) - 1) / NAME(LANES), last = count - NAME(LANES);
        int32_t *const winners = KEEPS_WINNER(op) ? winner + j : NULL;

#ifdef INTRINSICS
        if (op == MAX &&
            !NAME(tile_of)(job, e0, e1, strip.begin + j, last, n, MAX_OF_NUMBERS, times, bf16, z + j, winners))
            continue;
        if (op == MIN &&
            !NAME(tile_of)(job, e0, e1, strip.begin + j, last, n, MIN_OF_NUMBERS, times, bf16, z + j, winners))
            continue;
#endif
        NAME(tile_of)(job, e0, e1, strip.begin + j, last, n, op, times, bf16, z + j, winners);
    }
}

/* Copy with non-temporal stores for whole cache lines, and ordinary ones for the rest. */
INLINE void NAME(stream_copy)(const void *from, int64_t bytes, void *to)
{
    int64_t at = 0;

#ifdef INTRINSICS
    at = (int64_t)(-(uintptr_t)to % GR_CACHE_LINE);
    if (at > bytes) at = bytes;
    memcpy(to, from, (size_t)at);
    for (; at + GR_CACHE_LINE <= bytes; at += GR_CACHE_LINE) {
        for (int64_t k = at; k < at + GR_CACHE_LINE; k += VECTOR_BYTES) {
            NAME(vector) v;
            memcpy(&v, (const char *)from + k, sizeof v);
            NAME(stream)((void *)((char *)to + k), v);
        }
    }
#endif
    memcpy((char *)to + at, (const char *)from + at, (size_t)(bytes - at));
}

/* Store z, or c + z, where the bits of the mask (each flipped by `flip`) are set; keep or zero the other elements.
 * `bits` begins with the bit of the first column. Handles whole registers only. \return the number of columns done */
INLINE int64_t NAME(merge)(const uint8_t *bits, uint8_t flip, int64_t count, const int add, const int zero,
                           const REAL *z, REAL *c)
{
    NAME(lanes) bit;
    int64_t j = 0;

    for (int i = 0; i < NAME(LANES); i++) bit[i] = (INDEX)1 << i;
    for (; j + NAME(LANES) <= count; j += NAME(LANES)) {
        unsigned word = (unsigned)(uint8_t)(bits[j >> 3] ^ flip) >> (j & 7);
        NAME(lanes) which;
        NAME(vector) old, new;

        if (NAME(LANES) > 8) word |= (unsigned)(uint8_t)(bits[(j >> 3) + 1] ^ flip) << 8;
        which = (bit & (INDEX)word) != 0;
        memcpy(&old, c + j, sizeof old);
        memcpy(&new, z + j, sizeof new);
        if (add) new = old + new;
        if (zero) old = (NAME(vector)){ 0 };
        new = NAME(select)(which, new, old);
        memcpy(c + j, &new, sizeof new);
    }
    return j;
}
