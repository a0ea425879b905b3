/* Rows of the halo as they are, where sums over neighbours will not do: attention needs each of them. And what a rank
 * has made of them, added up at their owners.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_AGGREGATE_HALO_H
#define GR_AGGREGATE_HALO_H

#include "aggregate/graph.h"

struct gr_halo_rows {
    const struct gr_halo *halo;
    int64_t              *send_start;     /* [n_ranks + 1] owned rows that go, by the rank that has them in its halo */
    int32_t              *place;          /* [rows that go] which of the owned rows each is */
    int64_t              *out_at, *in_at; /* [n_ranks + 1] bytes */
    int64_t               widest;
    float                *buffer;     /* [rows that go x widest] */
    struct gr_flow       *flow;       /* [n_ranks] */
    double                seconds;    /* in which they sent and waited */
    double                sent, came; /* when the last exchange began, and when it had ended */
};

/** Find out who needs which of our rows; all passes have room for `widest` columns. Collective. `halo` must outlive it.
 *  On failure it may be in parts: the caller frees it with gr_halo_rows_fini().
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          int64_t widest, struct gr_halo_rows *rows, graft_error *error);
void    gr_halo_rows_fini(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *rows);

/** Rows of so many bytes, not more than the widest: halo[halo->count] = those that their owners have of owned[].
 *  Collective. \return OK; ERR_PEER. */
int32_t gr_halo_rows_ask(struct gr_halo_rows *rows, struct gr_comm *comm, const void *owned, void *halo, int64_t bytes,
                         graft_error *error);

/** The other way: told[rows that go] = what the others have for them, in the order of rows->place. Any number of bytes.
 *  Collective. \return OK; ERR_PEER. */
int32_t gr_halo_rows_tell(struct gr_halo_rows *rows, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                          graft_error *error);

/** From x[first x width], the owned rows, to those behind them, rows of the halo. Collective. \return OK; ERR_PEER. */
int32_t gr_halo_rows_get(struct gr_halo_rows *rows, struct gr_comm *comm, float *x, int64_t first, int64_t width,
                         graft_error *error);

/** The transpose of it: what stands behind the owned rows is added to the rows of its owners, in the order of ranks.
 *  Collective.  \return OK; ERR_PEER. */
int32_t gr_halo_rows_give(struct gr_halo_rows *rows, struct gr_comm *comm, float *x, int64_t first, int64_t width,
                          graft_error *error);

/** Bytes that it holds. */
int64_t gr_halo_rows_bytes(const struct gr_halo_rows *rows, int32_t n_ranks);

#endif
