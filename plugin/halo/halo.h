/* Rows of the halo as they are, where sums over neighbours will not do: attention needs each of them. And what a rank
 * has made of them, added up at their owners.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_HALO_H
#define GR_HALO_HALO_H

#include "halo/lane.h"
#include "halo/links.h"

/** One pass. Forward, the owned rows go to those behind them, rows of the halo, where other ranks have them; backward,
 *  what stands behind the owned rows is added to the rows of its owners, in the order of ranks. */
struct gr_halo_pass {
    enum gr_direction direction;
    int32_t           layer, exact; /* exact: whatever halo.bits says */
    int32_t           apart, waits; /* no step of its layer; one that waits for its own rows */
    int64_t           epoch;
    int64_t           n_owned, width;
    float            *x; /* [n_owned + halo x width] */
};

struct gr_halo_rows {
    const struct gr_halo *halo;
    struct gr_links       links;
    int64_t               widest;
    float                *buffer; /* [rows that go x widest] */
    struct gr_flow       *flow;   /* [n_ranks] */
    struct gr_wire        wire;   /* of passes that no lane has its own for */
    struct gr_lanes       lanes;
    struct gr_lane_pass   on_lane;
    struct gr_halo_pass   pass;  /* the one in work */
    int                   begun; /* there is one */
};

/** Find out who needs which of our rows; passes of layer l have room for width[l] columns. Collective. `halo` must
 *  outlive it. On failure it may be in parts: the caller frees it with gr_halo_rows_fini().
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          const int64_t *width, int32_t layers, struct gr_halo_rows *rows, graft_error *error);
/** Say what is made of the rows, for adaptive bits: forward, attention of each row of `part` taken as even; backward
 *  they are added as they are. Not collective. */
void    gr_halo_rows_weigh(struct gr_halo_rows *rows, const struct gr_part *part);
void    gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *rows);

/** Send what goes. Until the end, rows of the halo in x are not touched, and gr_exchange_poll() of the exchange lets
 *  messages move. Allocates nothing. Collective. \return OK; ERR_PEER. */
int32_t gr_halo_rows_begin(struct gr_halo_rows *rows, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error);

/** Wait for what comes, and take it into x. Does nothing where no pass has begun. \return OK; ERR_PEER. */
int32_t gr_halo_rows_end(struct gr_halo_rows *rows, struct gr_team team, graft_error *error);

/** Bytes that it holds. */
int64_t gr_halo_rows_bytes(const struct gr_halo_rows *rows, int32_t n_ranks);

#endif
