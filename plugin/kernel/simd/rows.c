/* The vectorised loops, compiled once for each instruction set: ISA is part of the table's name, WIDE_BYTES the size of
 * a register. Every element is summed in the order of the entries for any register width, so the results of all
 * instruction sets are bitwise identical (except the payload of a NaN).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/simd/rows.h"

#include "base/assert.h"
#include "base/dropout.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

/* How many rows of B are prefetched ahead. A row is a cache miss, and the number of misses in flight sets the speed:
 * with 8 rows a product took 1.4 times as long as with 32, and with 64 rows it was slower too. Prefetching to level 2,
 * which tracks more lines than level 1, took 0.65 of the time (tests/bench/NOTES.md). */
enum { PREFETCH_ENTRIES = 32, NARROW_BYTES = 16 };

/* The number of registers of the widest tile. A build with sanitizers compiles half of the tiles, which takes half of
 * the time. */
#ifndef TILE_REGISTERS
#define TILE_REGISTERS 8
#endif

/* The operation on the entries of a row; a compile-time constant in every use. MAX_OF_NUMBERS and MIN_OF_NUMBERS ignore
 * NaNs, but report whether there was one. */
enum op { SUM, MAX, MIN, MAX_WINNER, MIN_WINNER, MAX_OF_NUMBERS, MIN_OF_NUMBERS };
#define IS_MAX(op) ((op) == MAX || (op) == MAX_WINNER || (op) == MAX_OF_NUMBERS)
#define OF_NUMBERS(op) ((op) == MAX_OF_NUMBERS || (op) == MIN_OF_NUMBERS)
#define KEEPS_WINNER(op) ((op) == MAX_WINNER || (op) == MIN_WINNER)

INLINE int64_t column_of(const struct gr_simd_job *job, int64_t e)
{
    int32_t column;

    memcpy(&column, job->col + (e << job->col_shift), sizeof column);
    return column;
}

static void store_winner(const struct gr_simd_job *job, int64_t at, int32_t winner)
{
    if (job->a->index_type == GRAFT_I32) ((int32_t *)job->args->winner)[at] = winner;
    else ((int64_t *)job->args->winner)[at] = winner;
}

/* One byte for each column of the strip, 1 where the mask allows it; NULL if there is no mask. */
static const uint8_t *expand_mask(const graft_mask *mask, int64_t row, struct gr_simd_strip strip, uint8_t *allowed)
{
    const uint8_t flip = mask != NULL && (mask->flags & GRAFT_MASK_COMPLEMENT) != 0;
    const int     valued = mask != NULL && mask->values != NULL && !(mask->flags & GRAFT_MASK_STRUCTURE);

    GR_ASSERT(strip.count > 0 && strip.count <= GR_SIMD_STRIP);
    if (mask == NULL) return NULL;
    if (mask->kind == GRAFT_MASK_ROWS) {
        memset(allowed, (mask->present[row >> 3] >> (row & 7) & 1) ^ flip, (size_t)strip.count);
    } else if (mask->kind == GRAFT_MASK_BITS) {
        const uint8_t *bits = mask->present + row * mask->stride;

        for (int64_t j = 0; j < strip.count; j++) {
            const int64_t column = strip.begin + j;
            allowed[j] = (uint8_t)((bits[column >> 3] >> (column & 7) & 1) ^ flip);
        }
    } else {
        const int64_t at = row * mask->stride + strip.begin;

        for (int64_t j = 0; j < strip.count; j++) {
            const int there = mask->present == NULL || mask->present[at + j] != 0;
            allowed[j] = (uint8_t)((there && (!valued || mask->values[at + j] != 0)) ^ flip);
        }
    }
    return allowed;
}

/* Sets the lowest bit of each byte that is not 0. The bits that the shifts bring from the next byte stay above the
 * lowest bit. */
INLINE uint64_t nonzero_bytes(const uint8_t *bytes)
{
    uint64_t x;

    memcpy(&x, bytes, sizeof x);
    x |= x >> 4;
    x |= x >> 2;
    x |= x >> 1;
    return x & 0x0101010101010101u;
}

/* Get the bits of a strip of a mask: from a mask of bits itself, or packed from bytes into `packed`. The complement is
 * not applied. */
static const uint8_t *strip_bits(const graft_mask *mask, int64_t row, struct gr_simd_strip strip, uint8_t *packed)
{
    const int      valued = mask->values != NULL && !(mask->flags & GRAFT_MASK_STRUCTURE);
    const int64_t  at = row * mask->stride + strip.begin;
    const uint8_t *present, *values;
    int64_t        j = 0;

    if (mask->kind == GRAFT_MASK_BITS) return mask->present + row * mask->stride + (strip.begin >> 3);
    present = mask->present != NULL ? mask->present + at : NULL;
    values = valued ? mask->values + at : NULL;
    for (; j + 8 <= strip.count; j += 8) {
        uint64_t ones = 0x0101010101010101u;

        if (present != NULL) ones &= nonzero_bytes(present + j);
        if (values != NULL) ones &= nonzero_bytes(values + j);
        packed[j >> 3] = (uint8_t)(ones * 0x0102040810204080u >> 56); /* gathers the 8 bits in the highest byte */
    }
    if (j < strip.count) packed[j >> 3] = 0;
    for (; j < strip.count; j++) {
        const int allowed = (present == NULL || present[j] != 0) && (values == NULL || values[j] != 0);

        packed[j >> 3] |= (uint8_t)(allowed << (j & 7));
    }
    return packed;
}

/* Intrinsics replace vector types where gcc 12 does not find the instruction of x86-64. For SVE it does. */
#if defined(__x86_64__)
#define INTRINSIC_BYTES WIDE_BYTES
#include <immintrin.h>
#else
#define INTRINSIC_BYTES 0
#endif

/* The processor's max and min return the second operand if either is a NaN or both are equal. `unordered` records in
 * which lanes a NaN was found; one comparison tests two registers. */
#if INTRINSIC_BYTES == 32
INLINE __m256 f32_wide_widen(const uint16_t *upper)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)upper)), 16));
}

typedef __m256  f32_wide_truth;
typedef __m256d f64_wide_truth;

#define f32_wide_stream _mm256_stream_ps
#define f64_wide_stream _mm256_stream_pd
#define f32_wide_extreme(v, best, max) ((max) ? _mm256_max_ps(v, best) : _mm256_min_ps(v, best))
#define f64_wide_extreme(v, best, max) ((max) ? _mm256_max_pd(v, best) : _mm256_min_pd(v, best))
#define f32_wide_unordered(truth, v, w) _mm256_or_ps(truth, _mm256_cmp_ps(v, w, _CMP_UNORD_Q))
#define f64_wide_unordered(truth, v, w) _mm256_or_pd(truth, _mm256_cmp_pd(v, w, _CMP_UNORD_Q))
#define f32_wide_any(truth) _mm256_movemask_ps(truth)
#define f64_wide_any(truth) _mm256_movemask_pd(truth)
#endif

#if INTRINSIC_BYTES == 64
INLINE __m512 f32_wide_widen(const uint16_t *upper)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)upper)), 16));
}

/* AVX-512 has mask registers, which gcc 12 does not use for comparisons of vector types. */
typedef __mmask16 f32_wide_truth;
typedef __mmask8  f64_wide_truth;

INLINE __mmask16 f32_wide_mask_wins(__m512 v, __m512 best, const int max)
{
    const __mmask16 ordered = _mm512_cmp_ps_mask(best, best, _CMP_ORD_Q);

    return max ? _mm512_mask_cmp_ps_mask(ordered, v, best, _CMP_NLE_UQ)
               : _mm512_mask_cmp_ps_mask(ordered, v, best, _CMP_NGE_UQ);
}

INLINE __mmask8 f64_wide_mask_wins(__m512d v, __m512d best, const int max)
{
    const __mmask8 ordered = _mm512_cmp_pd_mask(best, best, _CMP_ORD_Q);

    return max ? _mm512_mask_cmp_pd_mask(ordered, v, best, _CMP_NLE_UQ)
               : _mm512_mask_cmp_pd_mask(ordered, v, best, _CMP_NGE_UQ);
}

#define f32_wide_mask_move _mm512_mask_mov_ps
#define f64_wide_mask_move _mm512_mask_mov_pd
#define f32_wide_mask_set(lanes, k, column) ((f32_wide_lanes)_mm512_mask_set1_epi32((__m512i)(lanes), k, column))
#define f64_wide_mask_set(lanes, k, column) ((f64_wide_lanes)_mm512_mask_set1_epi64((__m512i)(lanes), k, column))
#define f32_wide_stream _mm512_stream_ps
#define f64_wide_stream _mm512_stream_pd
#define f32_wide_extreme(v, best, max) ((max) ? _mm512_max_ps(v, best) : _mm512_min_ps(v, best))
#define f64_wide_extreme(v, best, max) ((max) ? _mm512_max_pd(v, best) : _mm512_min_pd(v, best))
#define f32_wide_unordered(truth, v, w) ((__mmask16)((truth) | _mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q)))
#define f64_wide_unordered(truth, v, w) ((__mmask8)((truth) | _mm512_cmp_pd_mask(v, w, _CMP_UNORD_Q)))
#define f32_wide_any(truth) (truth)
#define f64_wide_any(truth) (truth)
#endif

#define FLOAT_ROWS
#define REAL float
#define INDEX int32_t
#define TYPE(noun) JOIN(f32_, noun)
#include "kernel/simd/row.h"
#undef FLOAT_ROWS
#undef REAL
#undef INDEX
#undef TYPE

#define REAL double
#define INDEX int64_t
#define TYPE(noun) JOIN(f64_, noun)
#include "kernel/simd/row.h"
#undef REAL
#undef INDEX
#undef TYPE

const struct gr_simd_loops JOIN(gr_simd_, ISA)[2] = {
    { f32_gather, f32_combine, f32_finish },
    { f64_gather, f64_combine, f64_finish },
};
