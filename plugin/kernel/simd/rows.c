/* The vectorised loops, compiled once for each instruction set: ISA names the table, WIDE_BYTES is the size of a
 * register. Every element is summed in the order of the entries whatever the width, so all of them give the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/simd/rows.h"

#include "base/dropout.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

/* Rows of B that are asked for ahead of the one in work: enough to cover a miss, few enough to stay in the cache. */
enum { PREFETCH_ENTRIES = 8, LINE_BYTES = 64, TILE_REGISTERS = 8, NARROW_BYTES = 16 };

enum op { SUM, EXTREME, EXTREME_WINNER };

static void put_winner(const struct gr_simd_job *job, int64_t at, int32_t winner)
{
    if (job->a->index_type == GRAFT_I32) ((int32_t *)job->args->winner)[at] = winner;
    else ((int64_t *)job->args->winner)[at] = winner;
}

/* One byte for each column of the strip, 1 where the mask allows it; NULL if there is no mask. */
static const uint8_t *expand_mask(const graft_mask *mask, int64_t row, struct gr_simd_strip strip, uint8_t *allowed)
{
    const uint8_t flip = mask != NULL && (mask->flags & GRAFT_MASK_COMPLEMENT) != 0;
    const int     valued = mask != NULL && mask->values != NULL && !(mask->flags & GRAFT_MASK_STRUCTURE);

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

#define REAL float
#define INDEX int32_t
#define TYPE(noun) JOIN(f32_, noun)
#include "kernel/simd/row.h"
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
