/* Adaptive widths: in how many bits each row of one layer and direction is sent, and what that depends on. The widths
 * are assigned by adaptive/. Source: AdaQP, section 4.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_ROW_BITS_H
#define GR_HALO_ROW_BITS_H

#include "graph/csr.h"
#include "graph/part.h"
#include "halo/messages.h"

/** Bytes of adaptive rows of one rank in one exchange. */
struct gr_row_bits_flow {
    int64_t bytes_in, bytes_out;
    int64_t rows_out[3]; /* of 2, 4, 8 bits */
};

struct gr_row_bits {
    struct gr_row_widths     widths;           /* of the exchanges now; its sums are those of one epoch */
    double                  *spread, *squares; /* [rows sent] the same sums over the earlier epochs */
    int64_t                  width;            /* elements of a row, that widths.at is for; -1: none yet */
    uint8_t                 *next[GR_SIDES];   /* [rows] of exchanges to come, if has_next */
    float                   *weight[GR_SIDES]; /* [rows] sum of the squared factors that a row is multiplied with */
    int                      has_next;
    int                      is_weighed, is_shared; /* the weights of rows received are known, and of those sent */
    int                      is_counting;           /* there were exchanges since widths were assigned: */
    int64_t                  counted_epoch;         /* that of the last one */
    int64_t                  exchanges;             /* exchanges in that epoch */
    int                      is_assigned;           /* widths were assigned, and: */
    struct gr_row_bits_flow *flow;                  /* [n_ranks] of an exchange */
    double                   expected_error; /* quantization error expected, of the sum of weight |x|^2 of all ranks */
};

/** Not collective. gr_row_bits_fini() is due always. \return OK; ERR_NOMEM. */
int32_t gr_row_bits_init(const graft_context *context, const int64_t rows[GR_SIDES], int32_t n_ranks,
                         struct gr_row_bits *bits, graft_error *error);
/** Be as after init(): no widths, ranges or weights are known. */
void    gr_row_bits_reset(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int32_t n_ranks);
void    gr_row_bits_fini(const graft_context *context, struct gr_row_bits *bits);

/** Bytes that it holds. */
int64_t gr_row_bits_bytes(const struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int32_t n_ranks);

/** Begin an exchange of rows of `width` elements, with the last assigned widths. The first exchange after an assignment
 *  resets the sums of ranges and squares. Precondition: no exchange of this layer and direction is in flight. */
void gr_row_bits_begin(struct gr_row_bits *bits, const int64_t rows[GR_SIDES], int64_t width, int64_t epoch);

/** Take the last epoch out of the sums of ranges and squares, because it will be repeated. */
void gr_row_bits_undo_epoch(struct gr_row_bits *bits, const int64_t rows[GR_SIDES]);

/** Compute the weights of received rows, unless they are known: the rows are multiplied with the columns of a matrix,
 *  whose values count or are 1, and its rows with those of row_scale [n_rows] of type `dtype`, or NULL. Where the
 *  result is a maximum and not a sum, no error is larger than that. Allocates nothing. */
void gr_row_bits_weigh(struct gr_row_bits *bits, const graft_csr *matrix, int has_values, graft_dtype dtype,
                       const void *row_scale);

/** The same where each row of `part` is a mean of the rows of all its neighbours; or, with part NULL, where the rows
 *  are added as they are. */
void gr_row_bits_weigh_mean(struct gr_row_bits *bits, const struct gr_part *part, const int64_t rows[GR_SIDES]);

#endif
