/* The interface of the vectorised loops: their arguments, and the table that each instruction set fills.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_mxm.h"

#include "base/limits.h"
#include "base/processor.h"

/** A product, as the loops receive it. */
struct gr_simd_job {
    const graft_mxm_args *args;
    const graft_csr      *a;
    const char           *col;       /* the columns of a; for 64-bit ones their lower halves, which suffice */
    int                   col_shift; /* log2 of the bytes from one column to the next */
    int64_t               entries;
    int                   sum, times, rows_masked; /* rows_masked: a mask of rows forbids most rows */
    int                   stream;    /* non-temporal stores for C and winners, where the instruction set has them */
    int                   b_crosses; /* rows of B begin inside cache lines */
    double                sign;      /* 1 for max, -1 for min */
};

/** Columns begin .. begin+count-1; count is at most GR_SIMD_STRIP. */
struct gr_simd_strip {
    int64_t begin, count;
};

/** The loops for one type of C and z. z and winner have strip.count elements. */
struct gr_simd_loops {
    /** Compute z and, unless NULL, winner from the entries e0 .. e1-1 of a row; e0 < e1. */
    void (*gather)(const struct gr_simd_job *job, int64_t e0, int64_t e1, struct gr_simd_strip strip, void *z,
                   int32_t *winner);

    /** Combine another partial result of the same row into z: add it, or keep the better value, the first of equal
     *  values. */
    void (*combine)(const struct gr_simd_job *job, int64_t count, void *z, int32_t *winner, const void *other,
                    const int32_t *other_winner);

    /** Store z in C with scale, mask, accumulate and replace. z is NULL if the row of A is empty, or the mask allows no
     *  column. */
    void (*finish)(const struct gr_simd_job *job, int64_t row, struct gr_simd_strip strip, void *z,
                   const int32_t *winner);
};

/** The loops of each instruction set: [0] for float, [1] for double. */
extern const struct gr_simd_loops gr_simd_generic[2];
extern const struct gr_simd_loops gr_simd_avx2[2];
extern const struct gr_simd_loops gr_simd_avx512[2];
extern const struct gr_simd_loops gr_simd_sve256[2];
extern const struct gr_simd_loops gr_simd_sve512[2];
