/* The framed messages of one exchange: at most one to and one from each other rank. A message is a frame, which
 * contains a CRC32C, and a payload. If a sender finds that a payload cannot be used, when the receiver has already
 * posted a receive for it, it sends a substitute after it. The field `bits` of the frame then says so.
 *
 * Receives are posted first. Messages are sent together or one by one, and polled during other work. The end waits for
 * them, and checks the frame and the CRC of each received message.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "base/memory.h"
#include "base/team.h"
#include "comm/comm.h"
#include "comm/frame.h"
#include "comm/outcome.h"

/** Memory of the caller, which must exist until the exchange ends. */
struct gr_payload {
    char    *data;
    uint64_t bytes;
};

/** All messages that are sent, or all that are received. Arrays have n_ranks elements, by rank unless stated otherwise.
 *  The caller sets everything but `frame`. */
struct gr_framed_side {
    int32_t            n;              /* number of messages; peers without rows have none */
    int32_t           *peer;           /* rank of each message; the ranks after this rank come first */
    struct gr_frame   *frame;          /* frame of each message, in the order of `peer` */
    int64_t           *rows;           /* number of rows in the message of each rank, for its frame */
    struct gr_payload *payload;        /* of each rank; with 0 bytes only the frame is sent */
    struct gr_payload *substitute;     /* of each rank; with 0 bytes there is none */
    uint8_t           *is_substituted; /* of each rank; 1: the substitute is used. Set before sending */
};

/** The state of an exchange that has begun. */
struct gr_framed_state {
    struct gr_frame head; /* the fields that all frames have in common */
    int             frames_checked;
    int32_t         n_sent;  /* number of messages sent so far */
    int             is_sent; /* 1: all messages were sent */
    int             arrived; /* 1: sends and receives are complete */
    int32_t         rc;      /* result of gr_comm_framed_poll(), with its error below */
    graft_error     error;
    double          send_began_at, sent_at, received_at;
};

struct gr_framed {
    struct gr_comm        *comm; /* NULL: not in use */
    int32_t                channel;
    int16_t                substitute_bits; /* `bits` in a frame whose payload is substituted; 0: payloads never are */
    struct gr_framed_side  side[GR_SIDES];
    _Atomic uint32_t      *crc;      /* [n_ranks] CRCs of the payloads of one side, by message */
    struct gr_request     *requests; /* [3 n_ranks for each side] */
    struct gr_pool         pool;
    struct gr_outcome     *outcome;          /* outcome of the call, which is polled with the messages; NULL: none */
    double                 wait_seconds;     /* seconds of waiting without other work */
    double                 exchange_seconds; /* seconds from the first send to the arrival of the last message */
    struct gr_framed_state begun;
};

/** Prepare for exchanges. Not collective, but all ranks call it in the same order, even after a failure of a rank,
 *  because it takes the next channel of the comm even if it fails. Always call gr_comm_framed_fini(), after all
 *  messages have arrived or the comm is dead. \return OK; ERR_NOMEM. */
int32_t gr_comm_framed_init(struct gr_framed *framed, struct gr_comm *comm, graft_error *error);
void    gr_comm_framed_fini(struct gr_framed *framed);

/** Begin an exchange, and post the receives of side GR_RECEIVE. The caller sets the other side before it sends. \return
 *  OK; ERR_PEER. */
int32_t gr_comm_framed_receive(struct gr_framed *framed, const struct gr_frame *head, graft_error *error);

/** Seal and send the messages for the ranks that follow this rank, up to rank `peer`, except those already sent. Rank 0
 *  follows the last rank. This rank is the last in this order, so that it stands for all messages. \return OK;
 *  ERR_PEER. */
int32_t gr_comm_framed_send_until(struct gr_framed *framed, int32_t peer, struct gr_team team, graft_error *error);

/** Let messages progress. This is a poll() of gr_team and graft_mxm_args. gr_comm_framed_wait() returns a failure
 *  later. */
void gr_comm_framed_poll(void *framed);

/** Wait for all messages, each wait no longer than option halo.timeout, and check them. \return OK; ERR_PEER. */
int32_t gr_comm_framed_wait(struct gr_framed *framed, struct gr_team team, graft_error *error);

/** Wait for pending messages before their memory is freed. After a failure the comm is dead, but nothing is
 *  returned. */
void gr_comm_framed_drain(struct gr_framed *framed);
