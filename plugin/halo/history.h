/* Stale rows: the boundary rows of one layer in one direction that were received in the previous epoch, and smoothed.
 * They are used while the rows of this epoch are in flight. Source: Sylvie, section 4 (asynchronous epochs, and
 * synchronous ones in between); PipeGCN, section 3.4 (smoothing).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/messages.h"

struct gr_history {
    struct gr_messages messages; /* detached: an exchange may be in flight until the next epoch */
    int64_t            n_rows[GR_SIDES];
    void              *rows; /* [rows received x width] the stale rows */
    int64_t            capacity, width;
    graft_dtype        dtype;
    graft_semiring     semiring;
    int                has_rows, in_flight, was_used;
    int64_t            epoch, sent_epoch, used_epoch; /* of `rows`, of the rows sent last, of their last use */
    double            *chunk_drift;                   /* [chunks x 2] the part of `drift` from each chunk of rows */
    double             drift[2];                      /* sums of |new - old|^2 and |new|^2 since they were cleared */
    int64_t            age, oldest;                   /* in epochs: of the rows used last, and the largest so far */
};

/** Initialise an empty history. As gr_halo_messages_init(), it takes a channel even if it fails. gr_halo_history_fini()
 *  is always required, and waits for messages in flight, so their rows must still exist. */
int32_t gr_halo_history_init(const graft_context *context, struct gr_comm *comm, const int64_t n_rows[GR_SIDES],
                             struct gr_history *history, graft_error *error);
void    gr_halo_history_fini(struct gr_history *history);

/** Allocate memory for rows of `width` elements. Stale rows of another width or type are discarded. \return OK;
 *  ERR_NOMEM. */
int32_t gr_halo_history_reserve(struct gr_history *history, int64_t width, graft_dtype dtype, graft_error *error);
/** Return the bytes that gr_halo_history_reserve() needs. */
int64_t gr_halo_history_need(const struct gr_history *history, int64_t width, graft_dtype dtype);
/** Return the bytes of memory of `history`. */
int64_t gr_halo_history_bytes(const struct gr_history *history);

/** Reset to the state before the first exchange. Waits for messages in flight. */
void gr_halo_history_forget(struct gr_history *history);

/** Begin an exchange of an epoch. Stale rows of another semiring are discarded.
 * \return 1 if this epoch already had this exchange, so that nothing is sent again; else 0. */
int gr_halo_history_begin(struct gr_history *history, graft_semiring semiring, int64_t epoch);

/** Wait for the exchange in flight, and store its rows: (1 - smoothing) new + smoothing old if the old rows are from
 *  the epoch before, else the new rows.
 * \param[out] decoded  [rows received x width] the new rows. \return OK; ERR_PEER. */
int32_t gr_halo_history_receive(struct gr_history *history, void *decoded, double smoothing, struct gr_team team,
                                graft_error *error);

/** Record that messages of an epoch were sent. */
void gr_halo_history_mark_sent(struct gr_history *history, int64_t epoch);

/** Whether the stored rows cannot be used in an epoch: there are none, or they are older than the previous epoch. */
int gr_halo_history_is_too_old(const struct gr_history *history, int64_t epoch);

/** Record that an epoch uses the stored rows. */
void gr_halo_history_use(struct gr_history *history, int64_t epoch);

/** Set the sums of `drift` to 0. */
void gr_halo_history_clear_drift(struct gr_history *history);
