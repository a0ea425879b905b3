/* The tables of the vectorised loops of the edge operators, one for each instruction set.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "edge/edge.h"

/** Sums of rows: out[row,c] (+)= sum over the entries e of `row` of weight[entry(e), head(c)] * from[place(e), c], in
 *  the order of the entries. */
struct gr_edge_sums {
    const int64_t     *row_ptr;
    const void        *place;         /* the row of `from` for each entry; NULL: entry e has row e */
    int                place_is_wide; /* `place` has int64_t, else int32_t */
    const int64_t     *entry;         /* the row of `weight` for each entry; NULL: entry e has row e */
    const graft_dense *weight;        /* [rows x heads]; NULL: all weights are 1 */
    const graft_dense *from, *out;
    int                accumulates; /* sums begin with the values of `out`, else with 0 */
    int64_t            entries;     /* number of entries of all rows */
};

/** An operator on the entries of csr; graft_edge.h has the formulas. */
struct gr_edge_operands {
    const graft_csr           *csr;
    const graft_dense         *x, *y, *out;
    const struct gr_edge_some *some;
};

struct gr_edge_loops {
    /** Compute the sums of rows row .. row_end-1. */
    void (*sums)(const struct gr_edge_sums *sums, int64_t row, int64_t row_end);
    /** Compute entries begin .. end-1 of one row: out[e,h] is the dot product of head h of x[row] and of y[col(e)]. */
    void (*dots)(const struct gr_edge_operands *o, int64_t row, int64_t begin, int64_t end);
    /** Compute rows row .. row_end-1 of softmax() of x, or of softmax_backward() of x = p and y = dp. */
    void (*softmax)(const struct gr_edge_operands *o, int64_t row, int64_t row_end);
    void (*softmax_backward)(const struct gr_edge_operands *o, int64_t row, int64_t row_end);
};

/** The loops of each instruction set: [0] for float, [1] for double. */
extern const struct gr_edge_loops gr_edge_generic[2], gr_edge_avx2[2], gr_edge_avx512[2], gr_edge_sve256[2],
    gr_edge_sve512[2];

/** The loops for a type, and for the instruction set of this processor. */
const struct gr_edge_loops *gr_edge_loops_for(graft_dtype dtype);
