/* Stale rows: the boundary rows of one layer in one direction as they were received in the epoch before, smoothed, for
 * use while those of this epoch are in flight. Source: Sylvie, section 4 (asynchronous epochs, and synchronous ones in
 * between); PipeGCN, section 3.4 (smoothing).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_HISTORY_H
#define GR_HALO_HISTORY_H

#include "halo/messages.h"

struct gr_history {
    struct gr_messages messages; /* detached: an exchange may be in flight until the next epoch */
    int64_t            n_rows[GR_SIDES];
    void              *rows; /* [rows received x width] in use */
    int64_t            capacity, width;
    graft_dtype        dtype;
    graft_semiring     semiring;
    int                has_rows, in_flight, was_used;
    int64_t            epoch, sent_epoch, used_epoch; /* of `rows`, of what was sent last, of the last exchange */
    double            *chunk_drift;                   /* [chunks x 2] as `drift` */
    double             drift[2];    /* since gr_history_clear_drift(): sums of |new - old|^2 and |new|^2 */
    int64_t            age, oldest; /* epochs; of the rows that the last exchange used, and the most of all exchanges */
};

/** As gr_messages_init(). gr_history_fini() is due always; it waits for messages in flight, so what they point at must
 *  be there still. */
int32_t gr_history_init(const graft_context *context, struct gr_comm *comm, const int64_t n_rows[GR_SIDES],
                        struct gr_history *history, graft_error *error);
void    gr_history_fini(struct gr_history *history);

/** Have memory for rows of this width. If the last ones were not of this width, they are dropped. \return OK;
 *  ERR_NOMEM. */
int32_t gr_history_reserve(struct gr_history *history, int64_t width, graft_dtype dtype, graft_error *error);
/** Bytes of that memory. */
int64_t gr_history_need(const struct gr_history *history, int64_t width, graft_dtype dtype);
/** Bytes that it holds. */
int64_t gr_history_bytes(const struct gr_history *history);

/** Let the next exchange be as the first one. Messages in flight are waited for. */
void gr_history_forget(struct gr_history *history);

/** Begin an exchange of an epoch. Rows of another semiring are dropped.
 * \return Whether the epoch has had this exchange already, so that nothing is sent again. */
int gr_history_begin(struct gr_history *history, graft_semiring semiring, int64_t epoch);

/** Wait for the exchange in flight, and store its rows: (1 - smoothing) new + smoothing old, where the old ones are of
 *  the epoch before.
 * \param[out] decoded  [rows received x width] Overwritten. \return OK; ERR_PEER. */
int32_t gr_history_receive(struct gr_history *history, void *decoded, double smoothing, struct gr_team team,
                           graft_error *error);

/** Note that messages of an epoch were sent. */
void gr_history_sent(struct gr_history *history, int64_t epoch);

/** Whether the rows in store are of no use for an epoch: there are none, or they are older than the epoch before. */
int gr_history_is_too_old(const struct gr_history *history, int64_t epoch);

/** Note that an epoch uses the rows in store. */
void gr_history_use(struct gr_history *history, int64_t epoch);

/** Count the drift from here. */
void gr_history_clear_drift(struct gr_history *history);

#endif
