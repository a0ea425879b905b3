/* One exchange of boundary rows of a layer in one direction:
 *
 *      begin    receive the messages still in flight since the last epoch; post the receives
 *               (the caller computes the rows to send, and encodes them if `encodes` is set)
 *      send     compute the CRCs of the messages, and send them
 *               (the caller does other work, and polls messages->framed)
 *      end      wait for the rows and decode them, or use stale rows
 *
 * Exchanges that are not steps of their layer, such as exchanges of an evaluation, do not change the data stored for
 * the layer.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/layers.h"

struct gr_exchange {
    struct gr_exchange_args args;
    struct gr_messages     *messages;
    struct gr_halo_layer   *layer; /* the layer's stored data; NULL: none, or not a step of the layer */
    struct gr_rank_rows     sent, received;
    struct gr_send_stats   *total; /* sum to which the rows sent are added, or NULL */
    double                  smoothing;
    int                     synchronous; /* uses the rows of this exchange, whatever option halo.staleness says */
    int                     is_repeat;   /* the epoch already has these rows: nothing is sent */
    int                     encodes;     /* the caller encodes each row after its computation */
    int                     threads;     /* largest number of threads that may compute and encode rows */
    double                  settled_at;  /* time when messages of the last epoch had arrived; 0: none in flight */
    double                  sent_at;     /* time when all messages were sent */
    double                  received_at; /* time when the rows to use were available */
};

/** Begin an exchange. The caller has set args, layer, messages, sent, received, smoothing and synchronous; messages
 *  points to the messages that all layers share. received.data may be written before the end. Allocates nothing.
 *  \return OK; ERR_PEER. */
int32_t gr_halo_exchange_begin(struct gr_exchange *exchange, struct gr_team team, graft_error *error);

/** Begin an exchange of rows of any number and width: find the layer, unless `layers` is NULL, allocate memory, and
 *  call gr_halo_exchange_begin().
 *  \return also ERR_NOMEM. */
int32_t gr_halo_exchange_open(struct gr_exchange *exchange, const struct gr_halo_layers *layers, struct gr_team team,
                              graft_error *error);

/** Send the rows, which were computed for exchange->messages and encoded, unless the exchange is a repeat. \return as
 *  gr_halo_messages_send(). */
int32_t gr_halo_exchange_send(struct gr_exchange *exchange, struct gr_team team, graft_error *error);

/** Let messages progress, between send and end. *arrived receives 1 if gr_halo_exchange_end() would not wait, else 0.
 *  \return OK; ERR_PEER, which gr_halo_exchange_end() then returns too. */
int32_t gr_halo_exchange_progress(struct gr_exchange *exchange, int32_t *arrived, graft_error *error);

/** End an exchange. *rows receives the rows to use: received.data, or the stale rows of the layer. \return OK;
 *  ERR_PEER. */
int32_t gr_halo_exchange_end(struct gr_exchange *exchange, struct gr_team team, const void **rows, graft_error *error);
