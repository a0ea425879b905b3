/* Exchanges of raw rows of the halo, for attention and extrema, which need single rows and not sums. Backward, each
 * rank's results for halo rows are added at the owners.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/exchange.h"
#include "halo/links.h"

/** One exchange. Forward, owned rows are sent to the ranks that have them in their halo, which receive them as rows of
 *  their halo; backward, rows of the halo are sent to their owners, which add them to their rows in the order of ranks.
 *  gr_halo_rows_begin() reads the rows to send, and gr_halo_rows_end() writes received rows. */
struct gr_halo_pass {
    enum gr_direction direction;
    int32_t           layer, exact;           /* exact: rows are unquantized, whatever the options say */
    int32_t           stateless, synchronous; /* not a training step; the pass uses its own rows, not stale ones */
    int64_t           epoch, call;            /* call: see gr_exchange_args */
    graft_dense       owned, halo;            /* of one type and width */
    int               sends_refused_rows;     /* ERR_NONFINITE leaves the comm usable, see begin() */
    int               is_refused;             /* this rank sends zeros, and discards received rows */
    int               is_own; /* `halo` is an array of the library without gaps, sent and received without a copy */
};

struct gr_halo_rows {
    const struct gr_halo *halo;
    struct gr_links       links;
    int64_t               widest;
    void                 *buffer[GR_SIDES]; /* copies of owned rows; and of halo rows, unless is_own */
    int64_t               capacity[GR_SIDES];
    struct gr_flow       *flow;     /* [n_ranks] rows and messages of each rank */
    struct gr_messages    messages; /* messages of exchanges whose layer has none of its own */
    struct gr_halo_layers layers;
    struct gr_exchange    exchange;
    struct gr_halo_pass   pass; /* arguments of `exchange` */
    int                   begun;
};

/** Create send lists and messages. Layer l has at most width[l] columns of floats. Collective. `halo` must outlive
 *  `rows`. After a failure `rows` may be incomplete, and the caller frees it with gr_halo_rows_fini().
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          const int64_t *width, int32_t layers, struct gr_halo_rows *rows, graft_error *error);
/** Compute the weights of rows for adaptive widths: forward, as if attention were uniform over each row of `part`;
 *  backward, with weight 1. Not collective. */
void    gr_halo_rows_weigh(struct gr_halo_rows *rows, const struct gr_part *part);
void    gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *rows);

/** Allocate buffers for passes of other widths and types. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_halo_rows_reserve(struct gr_halo_rows *rows, int64_t width, graft_dtype dtype, int is_own,
                             graft_error *error);

/** Let a pass use x, an array of the library: [n_owned x width] floats, followed by the rows of the halo. */
void gr_halo_rows_place(const struct gr_halo_rows *rows, struct gr_halo_pass *pass, float *x, int64_t n_owned,
                        int64_t width);

/** Begin a pass: gather, encode and send its rows. Until gr_halo_rows_end() received rows must not be accessed, and
 *  gr_comm_framed_poll(&rows->exchange.messages->framed) lets messages progress. Allocates nothing. Collective. \return
 *  OK; ERR_PEER; ERR_NONFINITE (gr_halo_messages_send() refused a row; if pass->sends_refused_rows, on this rank alone,
 *  and the pass has begun all the same). */
int32_t gr_halo_rows_begin(struct gr_halo_rows *rows, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error);

/** End a pass: wait for the rows, decode them, and store or add them in the arrays of the pass. No effect if none has
 *  begun.
 *  \return OK; ERR_PEER. */
int32_t gr_halo_rows_end(struct gr_halo_rows *rows, struct gr_team team, graft_error *error);

/** Return the bytes of memory of `rows`. */
int64_t gr_halo_rows_bytes(const struct gr_halo_rows *rows, int32_t n_ranks);
