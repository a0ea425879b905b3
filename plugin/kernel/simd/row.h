/* The loops over one row of A for one type REAL: gather, combine, finish.
 * SPDX-License-Identifier: Apache-2.0 */

/* REGISTERS is the largest number of registers that a strip needs: narrow registers process strips that do not fill a
 * wide one. */
#define VECTOR_BYTES WIDE_BYTES
#define REGISTERS TILE_REGISTERS
#define NAME(noun) JOIN(TYPE(wide_), noun)
#if INTRINSIC_BYTES == 64
#define MASK_REGISTERS
#endif
#if INTRINSIC_BYTES >= 32
#define INTRINSICS
#endif
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef REGISTERS
#undef NAME
#undef MASK_REGISTERS
#undef INTRINSICS

#define VECTOR_BYTES NARROW_BYTES
#define REGISTERS (WIDE_BYTES / NARROW_BYTES)
#define NAME(noun) JOIN(TYPE(narrow_), noun)
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef REGISTERS
#undef NAME

#define VECTOR_BYTES ((int)sizeof(REAL))
#define REGISTERS (NARROW_BYTES / (int)sizeof(REAL) - 1)
#define NAME(noun) JOIN(TYPE(single_), noun)
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef REGISTERS
#undef NAME

/* Process the strip in the widest registers that it fills; fewer columns than a narrow register one by one. */
INLINE void TYPE(strip)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip,
                        const enum op op, const int times, const int bf16, REAL *z, int32_t *winner)
{
    if (strip.count >= TYPE(wide_LANES)) TYPE(wide_strip)(job, e0, e1, strip, op, times, bf16, z, winner);
    else if (strip.count >= TYPE(narrow_LANES)) TYPE(narrow_strip)(job, e0, e1, strip, op, times, bf16, z, winner);
    else TYPE(single_strip)(job, e0, e1, strip, op, times, bf16, z, winner);
}

INLINE void TYPE(gather_op)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip,
                            const enum op op, REAL *z, int32_t *winner)
{
    const int bf16 = sizeof(REAL) == sizeof(float) && job->args->b->dtype == GRAFT_BF16;

    if (job->times && bf16) TYPE(strip)(job, e0, e1, strip, op, 1, 1, z, winner);
    else if (job->times) TYPE(strip)(job, e0, e1, strip, op, 1, 0, z, winner);
    else if (bf16) TYPE(strip)(job, e0, e1, strip, op, 0, 1, z, winner);
    else TYPE(strip)(job, e0, e1, strip, op, 0, 0, z, winner);
}

static void TYPE(gather)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip, void *z,
                         int32_t *winner)
{
    if (job->sum) TYPE(gather_op)(job, e0, e1, strip, SUM, z, winner);
    else if (winner == NULL && job->sign > 0) TYPE(gather_op)(job, e0, e1, strip, MAX, z, winner);
    else if (winner == NULL) TYPE(gather_op)(job, e0, e1, strip, MIN, z, winner);
    else if (job->sign > 0) TYPE(gather_op)(job, e0, e1, strip, MAX_WINNER, z, winner);
    else TYPE(gather_op)(job, e0, e1, strip, MIN_WINNER, z, winner);
}

/* Whether v replaces best, as in tile.h. */
INLINE int TYPE(wins)(REAL v, REAL best, REAL sign)
{
    return best == best && !(sign * v <= sign * best);
}

static void TYPE(combine)(const struct gr_simd_job *job, int64_t count, void *z, int32_t *winner, const void *other,
                          const int32_t *other_winner)
{
    REAL       *best = z;
    const REAL *v = other;

    for (int64_t j = 0; j < count; j++) {
        if (job->sum) {
            best[j] += v[j];
        } else if (TYPE(wins)(v[j], best[j], (REAL)job->sign)) {
            best[j] = v[j];
            if (winner != NULL) winner[j] = other_winner[j];
        }
    }
}

/* With GRAFT_MXM_REPLACE, set the elements of C that the mask forbids to 0; else keep them. */
static void TYPE(forbid)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t count, REAL *c)
{
    if (allowed == NULL || !(job->args->flags & GRAFT_MXM_REPLACE)) return;
    for (int64_t j = 0; j < count; j++) c[j] = allowed[j] ? c[j] : 0;
}

INLINE void TYPE(copy)(const struct gr_simd_job *job, const void *from, int64_t bytes, void *to)
{
    if (job->stream) TYPE(wide_stream_copy)(from, bytes, to);
    else memcpy(to, from, (size_t)bytes);
}

static void TYPE(store)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t count, const REAL *z, REAL *c)
{
    if (!(job->args->flags & GRAFT_MXM_ACCUMULATE)) {
        if (allowed == NULL) TYPE(copy)(job, z, count * (int64_t)sizeof *c, c);
        for (int64_t j = 0; j < count && allowed != NULL; j++) c[j] = allowed[j] ? z[j] : c[j];
    } else if (job->sum) {
        for (int64_t j = 0; j < count && allowed == NULL; j++) c[j] += z[j];
        for (int64_t j = 0; j < count && allowed != NULL; j++) c[j] = allowed[j] ? c[j] + z[j] : c[j];
    } else {
        for (int64_t j = 0; j < count; j++) {
            if ((allowed == NULL || allowed[j]) && TYPE(wins)(z[j], c[j], (REAL)job->sign)) c[j] = z[j];
        }
    }
}

/* Do store() and forbid() in one loop, by the bits of a mask. Not for extremes that accumulate. */
static void TYPE(store_bits)(const struct gr_simd_job *job, const uint8_t *bits, int64_t count, const REAL *z, REAL *c)
{
    const uint8_t flip = job->args->mask->flags & GRAFT_MASK_COMPLEMENT ? 255 : 0;
    const int     add = (job->args->flags & GRAFT_MXM_ACCUMULATE) != 0;
    const int     zero = (job->args->flags & GRAFT_MXM_REPLACE) != 0;
    int64_t       j;

    if (add) j = TYPE(wide_merge)(bits, flip, count, 1, zero, z, c);
    else if (zero) j = TYPE(wide_merge)(bits, flip, count, 0, 1, z, c);
    else j = TYPE(wide_merge)(bits, flip, count, 0, 0, z, c);
    for (; j < count; j++) {
        if ((bits[j >> 3] ^ flip) >> (j & 7) & 1) c[j] = add ? c[j] + z[j] : z[j];
        else if (zero) c[j] = 0;
    }
}

/* Do store() and forbid() in one loop for extremes with winners. */
static void TYPE(store_winner)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t row,
                               struct gr_simd_strip strip, const REAL *z, const int32_t *winner, REAL *c)
{
    const uint32_t flags = job->args->flags;

    if (allowed == NULL && !(flags & GRAFT_MXM_ACCUMULATE) && job->a->index_type == GRAFT_I32) {
        int32_t *to = (int32_t *)job->args->winner + row * job->args->winner_stride + strip.begin;

        TYPE(copy)(job, z, strip.count * (int64_t)sizeof *c, c);
        TYPE(copy)(job, winner, strip.count * (int64_t)sizeof *to, to);
        return;
    }
    for (int64_t j = 0; j < strip.count; j++) {
        const int64_t at = row * job->args->winner_stride + strip.begin + j;

        if (allowed != NULL && !allowed[j]) {
            if (!(flags & GRAFT_MXM_REPLACE)) continue;
            c[j] = 0;
            store_winner(job, at, -1);
        } else if (!(flags & GRAFT_MXM_ACCUMULATE)) {
            c[j] = z[j];
            store_winner(job, at, winner[j]);
        } else if (z != NULL && TYPE(wins)(z[j], c[j], (REAL)job->sign)) {
            c[j] = z[j];
            store_winner(job, at, winner[j]);
        }
    }
}

/* Apply ReLU and dropout to the strip, eight columns at a time. The bits record which elements passed. */
static void TYPE(activate)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t row,
                           struct gr_simd_strip strip, REAL *z)
{
    const graft_epilogue *e = job->args->epilogue;
    const uint32_t        threshold = gr_dropout_threshold(e->dropout);
    const REAL            scale = (REAL)gr_dropout_scale(threshold);
    const int64_t         vertex = e->vertex != NULL ? e->vertex[row] : row;
    const unsigned        relu = (e->flags & GRAFT_EPILOGUE_RELU) != 0;

    for (int64_t j0 = 0; j0 < strip.count; j0 += 8) {
        const int64_t  block = (strip.begin + j0) / 8;
        const unsigned kept = gr_dropout_kept(e->dropout_key, vertex, block, threshold);
        const int      n = strip.count - j0 < 8 ? (int)(strip.count - j0) : 8;
        unsigned       bits = 0;

        for (int k = 0; k < n; k++) {
            const unsigned through = kept >> k & (unsigned)(!relu || !(z[j0 + k] <= 0)) & 1;

            z[j0 + k] = through ? z[j0 + k] * scale : 0;
            bits |= (allowed == NULL || allowed[j0 + k] ? through : 0) << k;
        }
        if (e->bits != NULL) e->bits[row * e->bits_stride + block] = (uint8_t)bits;
    }
}

static void TYPE(epilogue)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t row,
                           struct gr_simd_strip strip, REAL *z)
{
    const graft_epilogue *e = job->args->epilogue;

    if (e->bias != NULL) {
        const REAL *bias = (const REAL *)e->bias + strip.begin;
        for (int64_t j = 0; j < strip.count; j++) z[j] += bias[j];
    }
    if (e->residual != NULL) {
        const REAL *residual = (const REAL *)e->residual->data + row * e->residual->stride + strip.begin;
        for (int64_t j = 0; j < strip.count; j++) z[j] += residual[j];
    }
    if (e->dropout > 0 || e->bits != NULL) {
        TYPE(activate)(job, allowed, row, strip, z);
    } else if (e->flags & GRAFT_EPILOGUE_RELU) {
        for (int64_t j = 0; j < strip.count; j++) z[j] = z[j] <= 0 ? 0 : z[j];
    }
}

static void TYPE(finish)(const struct gr_simd_job *job, int64_t row, struct gr_simd_strip strip, void *z,
                         const int32_t *winner)
{
    const graft_mxm_args *args = job->args;
    REAL           zeros[GR_SIMD_STRIP], *sums = z, *c = (REAL *)args->c->data + row * args->c->stride + strip.begin;
    int32_t        nobody[GR_SIMD_STRIP];
    uint8_t        bytes[GR_SIMD_STRIP];
    const uint8_t *allowed = NULL;
    const int      by_bits = args->mask != NULL && args->mask->kind != GRAFT_MASK_ROWS && args->winner == NULL &&
                        args->epilogue == NULL && (job->sum || !(args->flags & GRAFT_MXM_ACCUMULATE));

    if (!by_bits) allowed = expand_mask(args->mask, row, strip, bytes);
    if (sums != NULL && args->row_scale != NULL) {
        const REAL scale = ((const REAL *)args->row_scale)[row];
        for (int64_t j = 0; j < strip.count; j++) sums[j] *= scale;
    }
    /* With an epilogue, or where C does not accumulate, a row without entries has value 0 and no winner. */
    if (sums == NULL && (args->epilogue != NULL || !(args->flags & GRAFT_MXM_ACCUMULATE))) {
        memset(zeros, 0, (size_t)strip.count * sizeof *zeros);
        memset(nobody, -1, (size_t)strip.count * sizeof *nobody);
        sums = zeros;
        winner = nobody;
    }
    if (args->epilogue != NULL) TYPE(epilogue)(job, allowed, row, strip, sums);
    if (args->winner != NULL) {
        TYPE(store_winner)(job, allowed, row, strip, sums, winner, c);
        return;
    }
    if (by_bits && sums != NULL) {
        TYPE(store_bits)(job, strip_bits(args->mask, row, strip, bytes), strip.count, sums, c);
        return;
    }
    if (by_bits) allowed = expand_mask(args->mask, row, strip, bytes);
    if (sums != NULL) TYPE(store)(job, allowed, strip.count, sums, c);
    TYPE(forbid)(job, allowed, strip.count, c);
}
