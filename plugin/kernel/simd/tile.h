/* Sums, or extremes, of some columns over the entries of a row, held in registers. Included once for each REAL and
 * VECTOR_BYTES; INDEX is the integer of the size of REAL.
 * SPDX-License-Identifier: Apache-2.0 */

typedef REAL  NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef INDEX NAME(lanes) __attribute__((vector_size(VECTOR_BYTES))); /* of truth, or of columns */

enum { NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL) };

INLINE NAME(vector) NAME(select)(NAME(lanes) which, NAME(vector) yes, NAME(vector) no)
{
    return (NAME(vector))((which & (NAME(lanes))yes) | (~which & (NAME(lanes))no));
}

/* Where v takes the place of best: it is larger (times sign), or a NaN where there was none. */
INLINE NAME(lanes) NAME(wins)(NAME(vector) v, NAME(vector) best, REAL sign)
{
    return (best == best) & ~(sign * v <= sign * best);
}

/* Columns j .. in n registers. The last register begins at column `last`, so that it may overlap the one before it and
 * nothing beyond the row is touched. n, op and times are constants where this is called. */
INLINE void NAME(tile)(const struct gr_simd_job *job, int64_t e0, int64_t e1, int64_t begin, int64_t j, int64_t last,
                       const int n, const enum op op, const int times, REAL *z, int32_t *winner)
{
    const REAL   *b = (const REAL *)job->args->b->data + begin;
    const int64_t stride = job->args->b->stride;
    const REAL    sign = (REAL)job->sign;
    NAME(vector) acc[TILE_REGISTERS] = { { 0 } };
    NAME(lanes) won[TILE_REGISTERS] = { { 0 } };

    for (int64_t e = e0; e < e1; e++) {
        const REAL *row = b + (int64_t)job->col[e] * stride;
        const REAL  w = times ? ((const REAL *)job->a->values)[e] : 1;

        /* The entries of the next rows follow in the same array, so this also looks beyond the end of this row. */
        if (e + PREFETCH_ENTRIES < job->entries) {
            const char *ahead = (const char *)(b + (int64_t)job->col[e + PREFETCH_ENTRIES] * stride + j);
            for (int i = 0; i < n * VECTOR_BYTES; i += LINE_BYTES) __builtin_prefetch(ahead + i);
        }
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            NAME(vector) v;

            memcpy(&v, row + (i < n - 1 ? j + i * NAME(LANES) : last), sizeof v);
            if (times) v = w * v;
            if (op == SUM) {
                acc[i] += v;
            } else {
                const NAME(lanes) take = e == e0 ? (NAME(lanes)){ 0 } - 1 : NAME(wins)(v, acc[i], sign);

                acc[i] = NAME(select)(take, v, acc[i]);
                if (op == EXTREME_WINNER) won[i] = (take & (INDEX)job->col[e]) | (~take & won[i]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        const int64_t at = i < n - 1 ? j + i * NAME(LANES) : last;

        memcpy(z + at, &acc[i], sizeof acc[i]);
        for (int k = 0; k < NAME(LANES) && op == EXTREME_WINNER; k++) winner[at + k] = (int32_t)won[i][k];
    }
}

/* The tile for a number of registers that is known at run time. */
INLINE void NAME(tile_of)(const struct gr_simd_job *job, int64_t e0, int64_t e1, int64_t begin, int64_t j, int64_t last,
                          int64_t n, const enum op op, const int times, REAL *z, int32_t *winner)
{
    switch (n) {
    case 1: NAME(tile)(job, e0, e1, begin, j, last, 1, op, times, z, winner); break;
    case 2: NAME(tile)(job, e0, e1, begin, j, last, 2, op, times, z, winner); break;
    case 3: NAME(tile)(job, e0, e1, begin, j, last, 3, op, times, z, winner); break;
    case 4: NAME(tile)(job, e0, e1, begin, j, last, 4, op, times, z, winner); break;
    case 5: NAME(tile)(job, e0, e1, begin, j, last, 5, op, times, z, winner); break;
    case 6: NAME(tile)(job, e0, e1, begin, j, last, 6, op, times, z, winner); break;
    case 7: NAME(tile)(job, e0, e1, begin, j, last, 7, op, times, z, winner); break;
    default: NAME(tile)(job, e0, e1, begin, j, last, 8, op, times, z, winner); break;
    }
}

/* All columns of a strip that is at least one register wide. */
static void NAME(strip)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip,
                        const enum op op, const int times, REAL *z, int32_t *winner)
{
    const int64_t widest = TILE_REGISTERS * NAME(LANES);

    for (int64_t j = 0; j < strip.count; j += widest) {
        const int64_t count = strip.count - j < widest ? strip.count - j : widest;
        const int64_t n = (count + NAME(LANES) - 1) / NAME(LANES);

        NAME(tile_of)(job, e0, e1, strip.begin, j, j + count - NAME(LANES), n, op, times, z, winner);
    }
}
