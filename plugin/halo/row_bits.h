/* Adaptive widths: the bits of each sent row of one layer and direction, and the data for their assignment in
 * adaptive/. Source: AdaQP, section 4.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "graph/csr.h"
#include "graph/part.h"
#include "halo/messages.h"

/** Bytes of adaptive rows of one rank in one exchange. */
struct gr_row_bits_flow {
    int64_t bytes_in, bytes_out;
    int64_t rows_out[3]; /* of 2, 4, 8 bits */
};

struct gr_row_bits {
    struct gr_pool           pool;             /* owner of all arrays */
    struct gr_row_widths     widths;           /* of present exchanges; its sums cover one epoch */
    double                  *spread, *squares; /* [rows sent] the same sums over the earlier epochs */
    int64_t                  width;            /* elements of a row for which widths.at is valid; -1: none yet */
    uint8_t                 *next[GR_SIDES];   /* [rows] of future exchanges, if has_next */
    float                   *weight[GR_SIDES]; /* [rows] sum of the squared factors of a row */
    int                      has_next;
    int                      is_weighed, is_shared; /* the weights of received rows are known, and of sent rows */
    int                      is_counting;           /* there were exchanges since widths were assigned: */
    int64_t                  counted_epoch;         /* epoch of the last exchange */
    int64_t                  exchanges;             /* exchanges in that epoch */
    int                      is_assigned;           /* widths were assigned, and: */
    struct gr_row_bits_flow *flow;                  /* [n_ranks] of an exchange */
    double                   expected_error; /* expected quantization error, relative to the sum of weight |x|^2 of all
                                                ranks */
};

/** Not collective. gr_pool_fini() of bits->pool is always required. \return OK; ERR_NOMEM. */
int32_t gr_halo_row_bits_init(const graft_context *context, const int64_t rows[GR_SIDES], int32_t n_ranks,
                              struct gr_row_bits *bits, graft_error *error);
/** Reset to the state after init(): no widths, ranges or weights. */
void    gr_halo_row_bits_reset(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int32_t n_ranks);

/** Begin an exchange of rows of `width` elements, with the last assigned widths. The first exchange after an assignment
 *  resets the sums of ranges and squares. Precondition: no exchange of this layer and direction is in flight. */
void gr_halo_row_bits_begin(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int64_t width, int64_t epoch);

/** Remove the last epoch from the sums of ranges and squares, because it will be repeated. */
void gr_halo_row_bits_undo_epoch(struct gr_row_bits *bits, const int64_t rows[GR_SIDES]);

/** Compute the weights of received rows, unless they are known. A received row is multiplied by a column of a matrix,
 *  whose values are used or taken as 1, and the rows of the matrix by row_scale [n_rows] of type `dtype`, or NULL. For
 *  a maximum the weights are an upper bound. Allocates nothing. */
void gr_halo_row_bits_weigh(struct gr_row_bits *bits, const graft_csr *matrix, int has_values, graft_dtype dtype,
                            const void *row_scale);

/** Compute the weights of received rows for sums in which each row of `part` is a mean over all its neighbours; or,
 *  with part NULL, in which rows are added with weight 1. */
void gr_halo_row_bits_weigh_mean(struct gr_row_bits *bits, const struct gr_part *part, const int64_t rows[GR_SIDES]);
