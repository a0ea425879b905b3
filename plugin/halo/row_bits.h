/* Adaptive widths: the bits of each row of one layer and direction, and the data from which adaptive/ assigns them.
 * Source: AdaQP, section 4.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "graph/csr.h"
#include "graph/part.h"
#include "halo/messages.h"

/** Bytes and widths of the rows of one rank in one exchange. */
struct gr_row_bits_flow {
    int64_t bytes_in, bytes_out;
    int64_t rows_out[3]; /* rows sent with 2, 4 and 8 bits */
};

struct gr_row_bits {
    struct gr_pool           pool;             /* owner of all arrays */
    struct gr_row_widths     widths;           /* current widths; their sums cover one epoch */
    double                  *spread, *squares; /* [rows sent] the same sums over the earlier epochs */
    int64_t                  width;            /* elements of the rows for which widths.at was computed; -1: none */
    uint8_t                 *next[GR_SIDES];   /* [rows] widths of future exchanges, if has_next */
    float                   *weight[GR_SIDES]; /* [rows] sum of the squares of a row's factors */
    int                      has_next;
    int                      is_weighed, is_shared; /* the weights of received rows are known; and of sent rows */
    int                      is_counting;           /* there were exchanges since widths were assigned */
    int64_t                  counted_epoch;         /* epoch of the last exchange */
    int64_t                  exchanges;             /* exchanges in counted_epoch */
    int                      is_assigned;           /* widths were assigned; else `flow` and expected_error are 0 */
    struct gr_row_bits_flow *flow;                  /* [n_ranks] bytes of each rank in one exchange */
    double                   expected_error; /* expected error relative to the sum of weight |x|^2, on all ranks */
};

/** Allocate the arrays, and reset them. Not collective. gr_pool_fini() of bits->pool is always required. \return OK;
 *  ERR_NOMEM. */
int32_t gr_halo_row_bits_init(const graft_context *context, const int64_t rows[GR_SIDES], int32_t n_ranks,
                              struct gr_row_bits *bits, graft_error *error);
/** Reset to the state after init(): no widths, ranges or weights. */
void    gr_halo_row_bits_reset(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int32_t n_ranks);

/** Begin an exchange of rows of `width` elements, with the last assigned widths. The first exchange after an assignment
 *  resets the sums of ranges and squares. Precondition: no exchange of this layer and direction is in flight. */
void gr_halo_row_bits_begin(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int64_t width, int64_t epoch);

/** Remove the last epoch from the sums of ranges and squares, because it will be repeated. */
void gr_halo_row_bits_undo_epoch(struct gr_row_bits *bits, const int64_t rows[GR_SIDES]);

/** Compute the weights of received rows, unless they are known, for products with `matrix`: received row j is
 *  multiplied by the elements of column j, or by 1 without has_values, and row i of the product by row_scale[i] of type
 *  `dtype`, or by 1 if it is NULL. For a maximum the weights are upper bounds. Allocates nothing. */
void gr_halo_row_bits_weigh(struct gr_row_bits *bits, const graft_csr *matrix, int has_values, graft_dtype dtype,
                            const void *row_scale);

/** Compute the weights of received rows for sums in which each row of `part` is a mean over all its neighbours. If
 *  `part` is NULL, all weights are 1. */
void gr_halo_row_bits_weigh_mean(struct gr_row_bits *bits, const struct gr_part *part, const int64_t rows[GR_SIDES]);
