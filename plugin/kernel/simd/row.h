/* The loops over one row of A, for one REAL: gather, combine, finish.
 * SPDX-License-Identifier: Apache-2.0 */

#define VECTOR_BYTES WIDE_BYTES
#define NAME(noun) JOIN(TYPE(wide_), noun)
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef NAME

#define VECTOR_BYTES NARROW_BYTES
#define NAME(noun) JOIN(TYPE(narrow_), noun)
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef NAME

#define VECTOR_BYTES ((int)sizeof(REAL))
#define NAME(noun) JOIN(TYPE(single_), noun)
#include "kernel/simd/tile.h"
#undef VECTOR_BYTES
#undef NAME

/* The strip in registers as wide as it allows; a few columns one by one. */
INLINE void TYPE(strip)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip,
                        const enum op op, const int times, REAL *z, int32_t *winner)
{
    if (strip.count >= TYPE(wide_LANES)) TYPE(wide_strip)(job, e0, e1, strip, op, times, z, winner);
    else if (strip.count >= TYPE(narrow_LANES)) TYPE(narrow_strip)(job, e0, e1, strip, op, times, z, winner);
    else TYPE(single_strip)(job, e0, e1, strip, op, times, z, winner);
}

static void TYPE(gather)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip, void *z,
                         int32_t *winner)
{
    if (job->sum && job->times) TYPE(strip)(job, e0, e1, strip, SUM, 1, z, winner);
    else if (job->sum) TYPE(strip)(job, e0, e1, strip, SUM, 0, z, winner);
    else if (winner == NULL && job->times) TYPE(strip)(job, e0, e1, strip, EXTREME, 1, z, winner);
    else if (winner == NULL) TYPE(strip)(job, e0, e1, strip, EXTREME, 0, z, winner);
    else if (job->times) TYPE(strip)(job, e0, e1, strip, EXTREME_WINNER, 1, z, winner);
    else TYPE(strip)(job, e0, e1, strip, EXTREME_WINNER, 0, z, winner);
}

/* Whether v takes the place of best; as in the tiles. */
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

/* Elements of C that the mask does not allow: 0, or as they are. */
static void TYPE(forbid)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t count, REAL *c)
{
    if (allowed == NULL || !(job->args->flags & GRAFT_MXM_REPLACE)) return;
    for (int64_t j = 0; j < count; j++) c[j] = allowed[j] ? c[j] : 0;
}

static void TYPE(store)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t count, const REAL *z, REAL *c)
{
    if (!(job->args->flags & GRAFT_MXM_ACCUMULATE)) {
        if (allowed == NULL) memcpy(c, z, (size_t)count * sizeof *c);
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

/* As store() and forbid(), for extremes that keep their winners. */
static void TYPE(store_winner)(const struct gr_simd_job *job, const uint8_t *allowed, int64_t row,
                               struct gr_simd_strip strip, const REAL *z, const int32_t *winner, REAL *c)
{
    const uint32_t flags = job->args->flags;

    for (int64_t j = 0; j < strip.count; j++) {
        const int64_t at = row * job->args->winner_stride + strip.begin + j;

        if (allowed != NULL && !allowed[j]) {
            if (!(flags & GRAFT_MXM_REPLACE)) continue;
            c[j] = 0;
            put_winner(job, at, -1);
        } else if (!(flags & GRAFT_MXM_ACCUMULATE)) {
            c[j] = z != NULL ? z[j] : 0;
            put_winner(job, at, z != NULL ? winner[j] : -1);
        } else if (z != NULL && TYPE(wins)(z[j], c[j], (REAL)job->sign)) {
            c[j] = z[j];
            put_winner(job, at, winner[j]);
        }
    }
}

static void TYPE(finish)(const struct gr_simd_job *job, int64_t row, struct gr_simd_strip strip, void *z,
                         const int32_t *winner)
{
    static const REAL     zeros[GR_SIMD_STRIP];
    const graft_mxm_args *args = job->args;
    REAL                 *sums = z, *c = (REAL *)args->c->data + row * args->c->stride + strip.begin;
    uint8_t               bytes[GR_SIMD_STRIP];
    const uint8_t        *allowed = expand_mask(args->mask, row, strip, bytes);

    if (sums != NULL && args->row_scale != NULL) {
        const REAL scale = ((const REAL *)args->row_scale)[row];
        for (int64_t j = 0; j < strip.count; j++) sums[j] *= scale;
    }
    if (args->winner != NULL) {
        TYPE(store_winner)(job, allowed, row, strip, sums, winner, c);
        return;
    }
    if (sums != NULL) TYPE(store)(job, allowed, strip.count, sums, c);
    else if (!(args->flags & GRAFT_MXM_ACCUMULATE)) TYPE(store)(job, allowed, strip.count, zeros, c);
    TYPE(forbid)(job, allowed, strip.count, c);
}
