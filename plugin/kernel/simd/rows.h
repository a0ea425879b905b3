/* What the vectorised loops are given, and the table of them that each instruction set fills.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_KERNEL_SIMD_ROWS_H
#define GR_KERNEL_SIMD_ROWS_H

#include "graft_mxm.h"

/** Columns that are done in one sweep over the entries of a row, at most. */
enum { GR_SIMD_STRIP = 256, GR_CACHE_LINE = 64 };

/** A product, as the loops see it. */
struct gr_simd_job {
    const graft_mxm_args *args;
    const graft_csr      *a;
    const int32_t        *col; /* columns of a */
    int64_t               entries;
    int                   sum, times, rows_masked; /* rows_masked: most of them, by a mask of rows */
    int                   stream;                  /* C and winners go past the caches, where that can be */
    int                   b_crosses;               /* rows of B begin inside cache lines */
    double                sign;                    /* 1 for max, -1 for min */
};

/** Columns begin .. begin+count-1, at most GR_SIMD_STRIP of them. */
struct gr_simd_strip {
    int64_t begin, count;
};

/** The loops for one type of C, which z has too. z and winner have `strip.count` elements. */
struct gr_simd_loops {
    /** z and, unless NULL, winner over the entries e0 .. e1-1 of a row, of which there is at least one. */
    void (*gather)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip, void *z,
                   int32_t *winner);

    /** Take another z of the same row into z: the sum, or the better of each, the first of equal ones. */
    void (*combine)(const struct gr_simd_job *job, int64_t count, void *z, int32_t *winner, const void *other,
                    const int32_t *other_winner);

    /** Put z into C by scale, mask, accumulate and replace. z NULL: the row of A is empty, or no column is allowed. */
    void (*finish)(const struct gr_simd_job *job, int64_t row, struct gr_simd_strip strip, void *z,
                   const int32_t *winner);
};

/** By instruction set, each for float and double. */
extern const struct gr_simd_loops gr_simd_generic[2];
extern const struct gr_simd_loops gr_simd_avx2[2];
extern const struct gr_simd_loops gr_simd_avx512[2];

#endif
