/* One exchange of boundary rows of a layer in one direction:
 *
 *      begin    receive the messages still in flight since the last epoch; post the receives
 *               (the caller computes the rows to send, and encodes them if `encodes` says so)
 *      send     seal and send them
 *               (the caller does other work, and polls messages->framed)
 *      end      wait, decode; or take stale rows
 *
 * Exchanges that are not steps of their layer, such as exchanges of an evaluation, do not change the data stored for
 * the layer.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/layers.h"

struct gr_exchange {
    struct gr_exchange_args args;
    struct gr_messages     *messages;
    struct gr_halo_layer   *layer; /* NULL: not a step of a layer, or no data are stored for the layer */
    struct gr_rank_rows     sent, received;
    struct gr_send_stats   *total; /* what is sent is added to it; NULL: to nothing */
    double                  smoothing;
    int                     synchronous; /* waits for its own rows, whatever option halo.staleness says */
    int                     is_repeat;   /* the epoch already has these rows: nothing is sent */
    int                     encodes;     /* rows to send are encoded after their computation */
    int                     threads;     /* that may compute and encode them */
    double                  settled_at;  /* when messages of the last epoch had arrived; 0: none were in flight */
    double                  sent_at;     /* when all messages were sent */
    double                  received_at; /* when the rows to use were available */
};

/** Begin. args, layer, messages, sent, received, smoothing and synchronous are set; messages points to the messages
 *  that all layers share. received.data may be written before the end. Allocates nothing. \return OK; ERR_PEER. */
int32_t gr_halo_exchange_begin(struct gr_exchange *exchange, struct gr_team team, graft_error *error);

/** The same for rows of any number and width: finds the layer, unless `layers` is NULL, and allocates memory first.
 *  \return also ERR_NOMEM. */
int32_t gr_halo_exchange_open(struct gr_exchange *exchange, const struct gr_halo_layers *layers, struct gr_team team,
                              graft_error *error);

/** Send the rows, which were computed for exchange->messages and encoded, unless the exchange is a repeat. \return as
 *  gr_halo_messages_send(). */
int32_t gr_halo_exchange_send(struct gr_exchange *exchange, struct gr_team team, graft_error *error);

/** Let messages progress, between sending and the end. *arrived: 1 if the end does not wait, else 0. \return OK;
 *  ERR_PEER, which the end then returns too. */
int32_t gr_halo_exchange_progress(struct gr_exchange *exchange, int32_t *arrived, graft_error *error);

/** End. *rows receives the rows to use: received.data, or others. \return OK; ERR_PEER. */
int32_t gr_halo_exchange_end(struct gr_exchange *exchange, struct gr_team team, const void **rows, graft_error *error);
